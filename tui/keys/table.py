"""Map ideas to actions on each screen, and pressed keys to actions.

Ids (`fleet.retry`, `everywhere.help`) are public: key files name them, so none is ever renamed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tui.keys.ideas import ACTING, EVERYWHERE, PALETTE_ONLY, REVIEWING, SHOWING, Idea

SCREENS = ("fleet", "worker", "diff", "compare", "review", "inbox", "plan", "runs", "stats")
CHORD_STARTS = ("g", ",", "]", "[")
IDEAS: Mapping[str, Idea] = {
    idea.name: idea for idea in (*ACTING, *EVERYWHERE, *PALETTE_ONLY, *SHOWING, *REVIEWING)
}


class Action(NamedTuple):
    """One idea on one screen. `label` is for the footer, `told` for the help page."""

    id: str
    screen: str
    idea: str
    label: str
    told: str


_GROUPS = {"six": SCREENS[:6], "all": SCREENS}
_ROWS = """
mark               | fleet inbox | mark | mark it
mark               | diff | seen | mark the hunk or file as seen, go to the next
mark               | compare | take | take the hunk
mark               | review | take | take what is under the cursor
open               | fleet | open | open the worker
open               | worker | open | open the tool call, link or fold under the cursor
open               | diff | fold | fold, unfold; show the picture under the cursor
open               | compare | both sides | show both sides of the hunk in full
open               | review | why | show the whole conflict: who, why, prompts
open               | inbox | go there | go where it happened
open               | plan | its workers | show the step's workers in Fleet
open               | runs | open | open the run
yes                | fleet worker | allow | allow its request
yes                | diff | approve | approve the change; apply the suggestion under the cursor
yes                | compare | choose | choose this candidate
yes                | review | approve | approve the result
yes                | inbox | allow once | allow once
yes_wide           | fleet worker inbox | allow for run | allow it for the run; answer all like it
no                 | fleet worker | stop | deny its request; without one, stop it; again: kill
no                 | diff | drop | drop the hunk; again: keep; delete the comments under the cursor
no                 | compare | leave out | leave the hunk out
no                 | review | neither | take neither side
no                 | inbox | deny | deny, with a reason
no_wide            | fleet worker plan runs | stop run | stop the run
no_wide            | diff | drop file | drop the file
no_wide            | compare | reject | reject the candidate
no_wide            | review | reject | reject the incoming change
no_wide            | inbox | deny all | deny it for the run
next               | fleet | needs you | next worker that needs you
next               | worker | next error | next error or failed tool
next               | diff | next new | next hunk not yet seen
next               | compare | next differing | next hunk where candidates differ
next               | review | next open | next unresolved conflict
next               | inbox | next | next unanswered item
next               | plan | needs you | next step that needs you
previous           | fleet |  | previous worker that needs you
previous           | worker |  | previous error or failed tool
previous           | diff |  | previous hunk not yet seen
previous           | compare |  | previous hunk where candidates differ
previous           | review |  | previous unresolved conflict
previous           | inbox |  | previous unanswered item
previous           | plan |  | previous step that needs you
comment            | fleet worker | say | send it a message
comment            | diff | comment | comment on the line or range; on comments: answer
comment            | compare review | comment | comment on the hunk
comment            | inbox | answer | answer in words
send               | fleet worker diff compare review | send | send the pending comments
steer              | fleet | steer | send it, or all marked, a message
steer              | worker diff compare | steer | send it a message
steer              | review | ask agent | ask an agent for a proposal
steer              | inbox | say | send the asking worker a message
retry              | fleet worker diff compare review | retry | retry as it was
retry              | inbox | retry | retry what failed
retry_with         | six | feedback | retry with feedback
pause              | fleet worker diff | pause | pause the worker; again: continue
pause              | review | wait | land once your edits are out of the way; again: cancel
pause              | inbox | snooze | snooze the item: move it to the end; again: bring it back
pause_run          | all | pause run | pause the run; again: continue
diff               | fleet worker inbox | diff | open its diff
diff               | diff | compare with | compare with target, base, last attempt, last seen
diff               | compare | compare pair | compare this pair directly; first, the taken composite
diff               | review | compare sides | choose which sides to compare, or show the result
merge              | fleet worker diff inbox | review | open its review
merge              | compare | review | open the composite's review
merge              | review | word by word | merge both sides, word by word
merge_all          | compare | take all | take every hunk of this candidate
merge_all          | review | whole file | merge the rest of the file, or all files
edit               | fleet inbox | edit | edit the command it asks for, then allow that
edit               | worker | edit | edit its command, or the link or file under the cursor
edit               | diff | suggest | suggest another text for the line or range
edit               | compare | edit | edit this hunk's file
edit               | review | edit | edit this hunk in place
edit_all           | fleet worker | worktree | open its worktree in your editor
edit_all           | diff | edit file | edit the file as it would land
edit_all           | review | edit file | edit the file
copy               | fleet | copy | copy its last line
copy               | worker | copy | copy the line
copy               | diff | copy | copy the line or range
copy               | compare review | copy | copy the hunk
copy               | inbox | copy | copy the question
copy_name          | fleet worker compare inbox | copy name | copy its branch
copy_name          | diff review | copy place | copy path and line
select             | fleet | range | start a range that marks tiles under the cursor; again: end it
select             | worker diff compare | range | select a range of lines
select             | review | lines | pick single lines
select             | inbox | range | select a range of items
pick               | fleet worker diff compare review inbox plan | worker | pick a worker by name
new                | six | new worker | one more worker like this one
new                | plan | new worker | one more worker in this step
publish            | six | pull request | open a pull request
zoom               | fleet | zoom | show this tile on the whole screen
zoom               | worker diff compare review inbox | zoom | show this pane on the whole screen
follow             | worker | follow | follow the end; again: stop following
check              | fleet worker | check | check its change
check              | diff | check | check this change
check              | compare | check | check the composite
check              | review | check | check the result
land               | fleet | land | land the approved change
land               | worker diff | land | land it
land               | compare | land | land the composite or winner
land               | review | land | land the result
try                | fleet worker diff inbox | try | try it in your checkout (asks); again: restore
try                | review | try | try the result in your checkout (asks); again: restore
serve              | fleet worker diff compare inbox | program | start its program; again: stop it
terminal           | six | shell | open a shell inside its sandbox, in a pane
take_over          | six | take over | type into its agent's own terminal
checkpoint         | fleet worker diff | checkpoint | keep its files as they are now
detach             | worker | leave it | leave the terminal; its program keeps running
end_shell          | worker | end shell | end the shell, and all that runs in it
explain            | compare | explain | ask an agent what the candidates do differently
more               | fleet | larger | show larger tiles
more               | worker | more | show more: messages, tools, everything
more               | diff compare review | context | show more context
more               | stats | longer | count a longer time
less               | stats | shorter | count a shorter time
less               | fleet | smaller | show smaller tiles, then a table
less               | worker | less | show less: everything, tools, messages
less               | diff compare review |  | show less context
undo               | six | undo | undo what you did last
redo               | six | redo | redo it
take_target        | review | target | take the target's side
take_incoming      | review | incoming | take the incoming side
take_both          | review | both | take both, target first
take_both_reversed | review |  | take both, incoming first
take_base          | review | base | restore the base, as it was before both
take_first         | review | first proposal | take the first proposal
take_second        | review |  | take the second proposal
take_third         | review |  | take the third proposal
regenerate         | review | regenerate | regenerate the file, by its command
show_split         | diff | split | show split, unified, or by width
show_split         | review | split | show columns, a card, or by width
show_space         | diff review | whitespace | ignore or show whitespace
show_long          | worker diff | wrap | cut off or wrap long lines
show_times         | worker | times | show or hide timestamps
show_invisible     | diff | invisible | show spaces and tabs
show_generated     | diff | generated | show or fold generated files
show_moved         | diff | moved | show or fold moved code
show_check         | diff review | check output | show the check's output, and the tree it ran on
show_kinds         | fleet | kinds | show only one band
show_kinds         | worker | kinds | show only some kinds of lines; in a search, only its hits
show_order         | fleet | order | order by need, by plan, or by node
show_order         | diff review | order | order the files by risk, or as git does
show_theme         | all | theme | choose another theme
show_keys          | all | key file | show where your key file is
"""
"""One line per idea and what it does: the screens, the footer's label, the help page's words."""


def _actions() -> dict[str, Action]:
    found: list[Action] = []
    for line in _ROWS.strip().splitlines():
        idea, screens, label, told = (cell.strip() for cell in line.split("|"))
        found.extend(
            Action(f"{screen}.{idea}", screen, idea, label, told)
            for screen in _GROUPS.get(screens, screens.split())
        )
    for everywhere in (*EVERYWHERE, *PALETTE_ONLY):
        name = everywhere.name
        short = name.removeprefix("go_").replace("_", " ")
        found.append(Action(f"everywhere.{name}", "everywhere", name, short, everywhere.meaning))
    return {action.id: action for action in found}


ACTIONS: Mapping[str, Action] = _actions()


@dataclass(frozen=True)
class Keymap:
    """Map keys to actions. `keys` has every action's keys by id."""

    keys: Mapping[str, tuple[str, ...]]

    def of(self, action_id: str) -> tuple[str, ...]:
        """The keys of an action."""
        return self.keys[action_id]

    def shown(self, action_id: str) -> str:
        """The first key of an action, as it is written on screen; empty where it has none."""
        keys = self.keys.get(action_id, ())
        return shown(keys[0]) if keys else ""

    @property
    def shown_by_idea(self) -> dict[str, str]:
        """The first key of every idea, as it is written on screen."""
        return {action_id.rpartition(".")[2]: self.shown(action_id) for action_id in self.keys}


def actions_on(screen: str) -> list[Action]:
    """Every action of a screen, its own ones first."""
    own = [action for action in ACTIONS.values() if action.screen == screen]
    return own + [action for action in ACTIONS.values() if action.screen == "everywhere"]


def default_keymap() -> Keymap:
    """The keys as they are without a key file."""
    return Keymap({action.id: IDEAS[action.idea].keys for action in ACTIONS.values()})


_SHOWN = {
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
    "ctrl+right_square_bracket": "ctrl+]",
}


def shown(key: str) -> str:
    """A key as it is written on screen."""
    return _SHOWN.get(key, key)


_KEYS = {shown(key): key for idea in IDEAS.values() for key in idea.keys} | {
    sign: key for key, sign in _SHOWN.items()
}


def key_of(sign: str) -> str:
    """Return the key that is written like this on screen; empty where no key is."""
    return _KEYS.get(sign, sign if len(sign) == 1 and sign.isascii() else "")
