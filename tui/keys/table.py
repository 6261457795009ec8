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
mark               | diff | seen | mark the hunk or file seen, go on
mark               | compare | take | take the hunk
mark               | review | take | take what is under the cursor
mark               | runs | mark | mark it; two marked can be compared
open               | fleet | open | open the worker
open               | worker | open | the link or fold under the cursor
open               | diff | fold | fold, unfold
open               | compare | both | both sides of the hunk in full
open               | review | why | the conflict in full: who, why, prompts
open               | inbox | go there | where it happened
open               | plan | its workers | show the step's workers in Fleet
open               | runs | open | open the run
yes                | fleet worker | allow | allow what it asks
yes                | diff | approve | approve the change; apply the suggestion under the cursor
yes                | compare | choose | choose this candidate
yes                | review | approve | approve the result
yes                | inbox | allow once | allow once
yes_wide           | fleet worker inbox | for the run | allow it for the run
no                 | fleet worker | stop | stop it; again: kill; deny what it asks
no                 | diff | drop | drop the hunk; again: keep
no                 | compare | leave out | leave the hunk out
no                 | review | neither | neither side
no                 | inbox | deny | deny, with a reason
no_wide            | fleet worker plan runs | stop run | stop the run
no_wide            | diff | drop file | drop the file
no_wide            | compare | reject | reject the candidate
no_wide            | review | reject | reject the incoming change
no_wide            | inbox | deny all | deny it for the run
next               | fleet | needs you | next worker that needs you
next               | worker | next error | next error or failed tool
next               | diff | next new | next hunk not yet seen
next               | compare | differ | next hunk where candidates differ
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
comment            | fleet worker | say | say something to it
comment            | diff | comment | comment on the line or range
comment            | compare review | comment | comment on the hunk
comment            | inbox | answer | answer in words
send               | fleet worker diff compare review | send | send the pending comments
steer              | fleet | steer | say something to it, or to all marked
steer              | worker diff compare | steer | say something to it
steer              | review | ask agent | ask an agent for a proposal
steer              | inbox | say | say something to the asking worker
retry              | fleet worker diff compare review | retry | retry as it was
retry              | inbox | retry | retry what failed
retry_with         | six | retry with | retry with feedback
pause              | fleet worker diff | pause | pause the worker; again: go on
pause              | review | wait | land by itself once your edits are out of the way; again: not
pause              | inbox | put off | put the item off; again: take it back
pause_run          | all | pause run | pause the run; again: go on
diff               | fleet worker inbox | diff | its diff
diff               | diff | against | compare with target, base, last attempt, last seen
diff               | compare | pair | this pair directly
diff               | review | sides | each side to base, or side to side; all decided: the result
diff               | runs | compare | compare the two that are marked
merge              | fleet worker diff inbox | review | its review
merge              | compare | review | the composite's review
merge              | review | word by word | both sides, word by word
merge_all          | compare | take all | take every hunk of this candidate
merge_all          | review | whole file | rest of the file, or all files
edit               | worker | edit | the link or file under the cursor
edit               | diff | suggest | another text for the line or range, as a suggestion
edit               | compare | edit | this hunk's file
edit               | review | edit | this hunk, in place
edit_all           | fleet worker | worktree | its worktree
edit_all           | diff | edit file | the file, as it is to land
edit_all           | review | edit file | the file
copy               | fleet | copy | copy its last line
copy               | worker | copy | copy the line
copy               | diff | copy | copy the line or range
copy               | compare review | copy | copy the hunk
copy               | inbox | copy | copy the question
copy_name          | fleet worker compare inbox | copy name | copy its branch
copy_name          | diff review | copy place | copy path and line
select             | fleet | range | range of tiles: marks what the cursor goes over; again: ends it
select             | worker diff compare | range | range of lines
select             | review | lines | pick single lines
select             | inbox | range | range of items
pick               | fleet worker diff compare review inbox plan | pick | pick a worker by name
new                | six | new worker | one more worker like this one
new                | plan | new worker | one more worker in this step
publish            | six | pull request | open a pull request
zoom               | fleet | zoom | this tile, whole screen
zoom               | worker diff compare review inbox | zoom | this pane, whole screen
follow             | worker | follow | follow the end; again: hold
check              | fleet worker | check | check its change
check              | diff | check | check this change
check              | compare | check | check the composite
check              | review | check | check the result
land               | fleet | land | land what is approved
land               | worker diff | land | land it
land               | compare | land | land the composite or winner
land               | review | land | land the result
try                | fleet worker diff inbox | try | its result into your checkout; again: back
try                | review | try | the result into your checkout; again: back
serve              | fleet worker diff compare inbox | program | its program; again: end it
terminal           | six | shell | a shell inside its sandbox
more               | fleet | larger | larger tiles
more               | worker | more | says, tools, everything
more               | diff compare review | context | more context
more               | stats | longer | of a longer time
less               | stats | shorter | of a shorter time
less               | fleet | smaller | smaller tiles, then a table
less               | worker | less | everything, tools, says
less               | diff compare review |  | less context
undo               | six | undo | undo what you did last
redo               | six | redo | redo it
take_target        | review | target | take the target's side
take_incoming      | review | incoming | take the incoming side
take_both          | review | both | both, target first
take_both_reversed | review |  | both, incoming first
take_base          | review | base | the base, as it was before both
show_split         | diff | split | split, unified, or by width
show_split         | review | split | columns, card, or by width
show_space         | diff review | white space | ignore white space, or not
show_long          | worker diff | wrap | long lines cut or wrapped
show_times         | worker | times | time stamps on or off
show_invisible     | diff | invisible | blanks and tabs made visible
show_generated     | diff | generated | generated files, shown or folded
show_check         | diff review | check output | what the check printed, and on what it ran
show_kinds         | fleet | kinds | only one band
show_kinds         | worker | kinds | only some kinds of line
show_order         | fleet | order | needs you first, plan order, or by node
show_theme         | all | theme | another theme
show_keys          | all | key file | where your key file is
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
}


def shown(key: str) -> str:
    """A key as it is written on screen."""
    return _SHOWN.get(key, key)
