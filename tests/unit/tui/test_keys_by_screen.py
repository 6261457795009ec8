"""Every key on every screen has the meaning that users know, or says why it has none there."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.support.key_page import key_page, keys_on
from tui.app import _SCREENS
from tui.keys import ACTIONS, SCREENS
from tui.keys.ideas import EVERYWHERE
from tui.kit.bindings import doer_of
from tui.kit.screen import Board
from tui.words.reasons import ELSEWHERE

MEANINGS = """
key   | fleet         | worker        | diff          | compare       | review        | inbox
j k   | +             | +             | +             | +             | +             | +
h l   | +             | +             | +             | +             | +             | .
J K   | +             | +             | +             | +             | +             | .
n N   | needs you     | error         | not yet seen  | differ        | unresolved    | unanswered
enter | the worker    | link or fold  | fold, unfold  | both sides    | who, why      | where it
space | mark          | .             | seen          | take the hunk | take what     | mark
a     | allow         | allow         | approve       | choose        | approve       | allow once
A     | for the run   | for the run   | .             | .             | .             | for the run
x     | stop          | stop          | drop the hunk | leave the     | neither       | deny
X     | stop the run  | stop the run  | drop the file | reject the c  | reject the i  | for the run
c     | message       | message       | on the line   | on the hunk   | on the hunk   | answer
C     | send          | send          | send          | send          | send          | .
s     | all marked    | message       | message       | message       | proposal      | message
r     | retry         | retry         | retry         | retry         | retry         | what failed
R     | feedback      | feedback      | feedback      | feedback      | feedback      | feedback
p     | pause         | pause         | pause         | .             | land once     | snooze
P     | the run       | the run       | the run       | the run       | the run       | the run
d     | its diff      | its diff      | last seen     | this pair     | which sides   | its diff
m     | its review    | its review    | its review    | composite's   | word by word  | its review
M     | .             | .             | .             | every hunk    | of the file   | .
e     | command       | link or file  | suggest       | file          | in place      | command
E     | worktree      | worktree      | the file      | .             | the file      | .
v     | tiles         | lines         | lines         | lines         | single lines  | items
!     | its change    | its change    | this change   | composite     | result        | .
L     | approved      | land it       | land it       | composite     | result        | .
+ =   | larger        | everything    | more context  | more context  | more context  | .
-     | smaller       | messages      | less context  | less context  | less context  | .
F     | .             | follow        | .             | .             | .             | .
o     | one more      | one more      | one more      | one more      | one more      | one more
O     | pull request  | pull request  | pull request  | pull request  | pull request  | pull request
w     | by name       | by name       | by name       | by name       | by name       | by name
f     | whole screen  | whole screen  | whole screen  | whole screen  | whole screen  | whole screen
W     | checkout      | checkout      | checkout      | .             | checkout      | checkout
H     | program       | program       | program       | program       | .             | program
T     | shell         | shell         | shell         | shell         | shell         | shell
ga    | own terminal  | own terminal  | own terminal  | own terminal  | own terminal  | own terminal
gk    | its files     | its files     | its files     | .             | .             | .
gx    | .             | end the shell | .             | .             | .             | .
ctrl+right_square_bracket | . | leave the terminal | . | . | .  | .
y     | copy          | copy          | copy          | copy          | copy          | copy
Y     | copy          | copy          | copy          | copy          | copy          | copy
u z   | undo          | undo          | undo          | undo          | undo          | undo
U Z   | redo          | redo          | redo          | redo          | redo          | redo
t     | .             | .             | .             | .             | target's side | .
i     | .             | .             | .             | .             | incoming side | .
b     | .             | .             | .             | .             | target first  | .
B     | .             | .             | .             | .             | incoming first| .
gb    | .             | .             | .             | .             | the base      | .
7     | .             | .             | .             | .             | first         | .
8     | .             | .             | .             | .             | second        | .
9     | .             | .             | .             | .             | third         | .
gm    | .             | .             | .             | .             | regenerate    | .
gy    | .             | .             | .             | differently   | .             | .
,s    | .             | .             | split         | .             | columns       | .
,w    | .             | .             | whitespace    | .             | whitespace    | .
,l    | .             | wrap          | wrap          | .             | .             | .
,t    | .             | timestamps    | .             | .             | .             | .
,i    | .             | .             | spaces        | .             | .             | .
,g    | .             | .             | generated     | .             | .             | .
,v    | .             | .             | moved         | .             | .             | .
,c    | .             | .             | output        | .             | output        | .
,f    | band          | kinds         | .             | .             | .             | .
,o    | order         | .             | by risk       | .             | by risk       | .
,m    | theme         | theme         | theme         | theme         | theme         | theme
,k    | key file      | key file      | key file      | key file      | key file      | key file
"""
"""The meaning of each key, as a piece of its line on the help page; `+` moves, `.` is nothing."""
_ANYWHERE = [
    *("0", "gi", "1", "gf", "2", "gw", "3", "gd", "4", "gc", "5", "gr", "gp", "gh", "gt", "gT"),
    *("j", "k", "down", "up", "gg", "G", "home", "end", "escape", "q", ":", "ctrl+p", "?"),
    *("ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l"),
]


def _rows() -> list[tuple[str, str, str]]:
    head, *rows = [line.split("|") for line in MEANINGS.strip().splitlines()]
    return [
        (key, screen.strip(), cell.strip())
        for keys, *cells in rows
        for key in keys.split()
        for screen, cell in zip(head[1:], cells, strict=True)
    ]


def _does(screen: str, idea: str) -> bool:
    module, name = _SCREENS[screen]
    kind: type[Board] = getattr(import_module(f"tui.screens.{module}"), name)
    return any(doer_of(one, idea) for one in (kind, *kind.held))


@pytest.mark.parametrize("screen", SCREENS[:6])
def test_a_key_means_what_was_told_or_says_why_not(screen: str):
    for key, where, meaning in _rows():
        action = keys_on(screen).get(key)
        if where == screen and meaning == ".":
            assert action is None or not _does(screen, action.idea), key
        elif where == screen:
            assert action is not None, key
            assert meaning == "+" or (action.screen == screen and meaning in action.told), key
            assert _does(screen, action.idea) or action.id in ELSEWHERE, key


def test_no_key_of_a_screen_was_left_out_of_what_is_told():
    told = {(key, screen) for key, screen, meaning in _rows() if meaning != "."}
    for screen in SCREENS[:6]:
        own = {key for key, action in keys_on(screen).items() if action.screen == screen}
        assert {(key, screen) for key in own - {"ctrl+r"}} <= told


@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_everywhere_is_everywhere(screen: str):
    on = keys_on(screen)
    missing = [key for key in _ANYWHERE if key not in on or not _does(screen, on[key].idea)]
    assert not missing


def test_a_reason_why_a_key_does_nothing_is_given_only_where_it_does_nothing():
    somewhere = {idea.name for idea in EVERYWHERE}
    for action_id in ELSEWHERE:
        screen, _, idea = action_id.partition(".")
        if screen == "everywhere":
            assert idea in somewhere
            assert not any(_does(kind, idea) for kind in SCREENS)
        else:
            assert action_id in ACTIONS
            assert not _does(screen, idea)


def test_the_page_of_keys_is_current():
    page = Path(__file__).parents[3] / "docs" / "keys.md"
    assert page.read_text() == key_page(), "write it: python -m tests.support.key_page"
