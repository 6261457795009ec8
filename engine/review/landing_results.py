"""The results of a landing: prepared, conflicted, refused or undone; and who checks its tree."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from engine.messages.results import CheckResult
from engine.site.shelter import GitPlaces


@dataclass(frozen=True, kw_only=True)
class Conflicted:
    """The change and the target cannot be merged without a human; `reason` says what is new."""

    paths: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The landing cannot go on, and why; nothing was moved.

    Attributes:
        in_the_way: Files with edits of the user's, if it is for them.
    """

    reason: str
    in_the_way: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadyToLand:
    """All is prepared; `detail` is what a recovery needs to roll forward.

    Attributes:
        leads_on: It only makes room, and the landing itself is to be prepared after it.
        check: The result on exactly this tree, if a check was run or known.
        note: Why the history is not the one that was asked for, if it is not.
    """

    target: str
    old: str
    new: str
    tree: str
    detail: str
    leads_on: bool = False
    check: CheckResult | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """The target is where the landing wanted it."""


@dataclass(frozen=True, kw_only=True)
class TryAgain:
    """The target stands elsewhere than the landing was prepared for, and was not moved."""

    why: str


class CleanChecker(Protocol):
    """Runs commands in a tree to be proved, in surroundings that no agent had a hand in."""

    async def setup(self, folder: str, git: GitPlaces) -> str | None:
        """Make the tree ready as workspaces are; None, or why it could not be done."""

    async def check(self, folder: str, tree: str, git: GitPlaces) -> CheckResult:
        """Run the step's check on this tree."""


class Checker(Protocol):
    """Gives clean surroundings for one check."""

    def alone(self) -> AbstractAsyncContextManager[CleanChecker]:
        """Enter them; nothing of before lives there, and nothing stays behind."""


@dataclass(frozen=True, kw_only=True)
class Undone:
    """A landing that was taken back.

    Attributes:
        target: The branch.
        at: Where it stands now; None where the landing had made it.
        is_added: A commit was added that does the opposite, because the target had gone on.
    """

    target: str
    at: str | None
    is_added: bool = False
