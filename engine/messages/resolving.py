"""List what a human may do about conflicts: one action at a time, each of which undo reverts.

`commands` hands these on; texts and paths keep bytes that are no UTF-8 by `surrogateescape`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ChooseHunk:
    """Decide one hunk: target, incoming, both, both_reversed, base, neither or combined.

    A hunk is named by its key, or counted from 0 within its file.
    """

    path: str
    hunk: str | int
    choice: str


@dataclass(frozen=True, kw_only=True)
class WriteHunk:
    """Put this text in a hunk's place; `source` says where it came from if nobody typed it."""

    path: str
    hunk: str | int
    text: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class PickedLine:
    """One line of one version of a hunk (`target`, `incoming` or `base`), counted from 0."""

    side: str
    at: int


@dataclass(frozen=True, kw_only=True)
class PickLines:
    """Make a hunk of single lines, in this order."""

    path: str
    hunk: str | int
    lines: tuple[PickedLine, ...]


@dataclass(frozen=True, kw_only=True)
class ChooseRest:
    """Decide every hunk that is still open and that the choice fits; in all files if none named."""

    choice: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChooseWhole:
    """Decide a whole path: one of the options that its conflict offers."""

    path: str
    choice: str


@dataclass(frozen=True, kw_only=True)
class ChooseMode:
    """Decide the mode of a file: `100644` or `100755`."""

    path: str
    mode: str


@dataclass(frozen=True, kw_only=True)
class ChoosePlace:
    """Decide where a file that both sides moved is to lie: `target`, `incoming` or `both`."""

    path: str
    place: str


@dataclass(frozen=True, kw_only=True)
class SetFile:
    """Put this text at a path, conflicted or not; None deletes it."""

    path: str
    text: str | None
    mode: str = "100644"


@dataclass(frozen=True, kw_only=True)
class EditFile:
    """Take over what an editor made of a conflicted file's text; markers left are left open."""

    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Reopen:
    """Take back what is decided for a hunk, or for the whole path."""

    path: str
    hunk: str | int | None = None


@dataclass(frozen=True, kw_only=True)
class UndoChoice:
    """Take back the last decision."""


@dataclass(frozen=True, kw_only=True)
class RedoChoice:
    """Make the decision again that was taken back last."""


@dataclass(frozen=True, kw_only=True)
class ForgetAnswer:
    """Never offer this remembered answer again."""

    key: str


@dataclass(frozen=True, kw_only=True)
class ConfirmAnswer:
    """Mark a remembered answer as looked at and right."""

    key: str


@dataclass(frozen=True, kw_only=True)
class AskAgent:
    """Ask an agent about a hunk; its answer comes as one more proposal, and is never applied.

    Attributes:
        agent: The name of an agent or adapter; empty for the one whose change it is.
        words: What the reviewer says beside the three texts and both prompts.
    """

    path: str
    hunk: str | int
    agent: str = ""
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class FinishResolving:
    """Everything is decided: go on with exactly the tree that the decisions make.

    Attributes:
        is_despite_check: Land it even though the check of that tree failed, or was not run.
        seen: The tree that was on screen. Where the decisions make another one by now, because the
            target has moved, nothing goes on and the merge made again is shown.
    """

    is_despite_check: bool = False
    seen: str | None = None


ResolutionAction = (
    ChooseHunk
    | WriteHunk
    | PickLines
    | ChooseRest
    | ChooseWhole
    | ChooseMode
    | ChoosePlace
    | SetFile
    | EditFile
    | Reopen
    | UndoChoice
    | RedoChoice
    | ForgetAnswer
    | ConfirmAnswer
    | AskAgent
    | FinishResolving
)
"""What can be done about the conflicts of a merge."""
