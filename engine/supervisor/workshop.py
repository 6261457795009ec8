"""Where a worker works: the seam between the supervisor and each way of making a workspace."""

from dataclasses import dataclass
from typing import Protocol

from engine.core import effects as e
from engine.core.state import RunState
from engine.ids import WorkerId
from engine.results import Change, CheckResult
from engine.supervisor.shelter import GitPlaces


@dataclass(frozen=True, kw_only=True)
class Made:
    """A workspace that is there and filled, but not yet set up."""

    path: str
    branch: str | None = None
    base: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BaseClash:
    """The changes to build on conflict with each other."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What an attempt left, kept; or why it could not be imported, and where it still lies."""

    change: Change | None = None
    error: str | None = None
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Conflicted:
    """The change and the target cannot be merged without a human."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The landing cannot go on, and why; nothing was moved."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class ReadyToLand:
    """All is prepared; `detail` is what a recovery needs to roll forward."""

    target: str
    old: str
    new: str
    tree: str
    detail: str


class Checker(Protocol):
    """Runs the step's check in a folder and says what it said."""

    async def __call__(self, folder: str, *, tree: str | None, role: str) -> CheckResult:
        """The result, bound to the tree."""


class Workshop(Protocol):
    """One way of making workspaces and keeping what is done in them."""

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make and fill the workspace of an attempt; making it again is harmless."""

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Keep everything the attempt left; keeping it again gives the same."""

    async def prepare_landing(
        self, state: RunState, effect: e.Land, check: Checker | None
    ) -> ReadyToLand | Conflicted | Refusal | CheckResult:
        """Merge in memory and check the exact tree; a CheckResult is one that failed."""

    async def land(self, state: RunState, effect: e.Land, ready: ReadyToLand) -> None:
        """Move the target, or roll a prepared move forward."""

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Give back what is provably not needed any more."""

    def git_places(self, state: RunState, worker: WorkerId) -> GitPlaces | None:
        """Where the newest attempt's private repository lies, if it has one."""
