"""The results of a landing: prepared, conflicted, refused or undone; and who checks its tree."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.git.checktree import CheckTree
from engine.messages.merging import MergedResult
from engine.messages.results import CheckResult
from engine.site.shelter import GitPlaces


@dataclass(frozen=True, kw_only=True)
class LandingConflicts:
    """The change and the target cannot be merged without a human; `reason` says what is new."""

    paths: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The landing cannot go on, and why; nothing was moved.

    Attributes:
        in_the_way: Files with edits of the user's, if it is for them.
        is_carry_refused: These edits conflict with the change, so it cannot land under them.
    """

    reason: str
    in_the_way: tuple[str, ...] = ()
    is_carry_refused: bool = False


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
        """Make the tree ready as workspaces are; return None, or why it could not be done."""

    async def check(self, folder: str, tree: str, git: GitPlaces) -> CheckResult:
        """Run the step's check on this tree."""

    async def make(self, command: str, folder: str, git: GitPlaces) -> str | None:
        """Run a command that writes files of the tree; return None, or why it failed."""


class Checker(Protocol):
    """Gives a clean environment for one check."""

    def alone(self) -> AbstractAsyncContextManager[CleanChecker]:
        """Enter a clean environment: nothing from before lives there, and nothing stays behind."""


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


class Landings(Protocol):
    """Moves changes onto their targets, one way for each kind of workspace."""

    async def prepare(
        self, state: RunState, effect: e.PerformLanding, check: Checker | None
    ) -> ReadyToLand | LandingConflicts | Refusal | CheckResult:
        """Merge in memory and check the exact tree; a CheckResult is one that failed."""

    async def is_in_the_way(
        self, state: RunState, effect: e.PerformLanding, paths: Sequence[str]
    ) -> bool:
        """Return whether the user's edits in these files still keep a landing from its target."""

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """Run the check once more, on the exact tree that would land or on the worker's own."""

    async def result(self, state: RunState, w: Worker) -> MergedResult | Refusal:
        """Return what landing a worker now would give."""

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """Run the check on a commit's files, in a tree that is warm from the checks before."""

    def laid_out(
        self, state: RunState, commit: str, check: Checker
    ) -> AbstractAsyncContextManager[tuple[CleanChecker, str, GitPlaces]]:
        """Enter a clean environment with a folder of exactly a commit's files, and its repository.

        Raises:
            WorkspaceError: There are no commits here.
        """

    async def lay_out(self, state: RunState, place: CheckTree, commit: str) -> tuple[str, ...]:
        """Lay out exactly a commit's files; return the object folders that they borrow from.

        Raises:
            WorkspaceError: There are no commits here.
        """

    async def land(self, effect: e.PerformLanding, ready: ReadyToLand) -> Moved | TryAgain:
        """Move the target, or roll a prepared move forward."""

    async def undo(self, prepared: str, *, message: str) -> Undone | Refusal:
        """Take a landing back, or say why it stays."""
