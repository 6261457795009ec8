"""Define the seam between a run and each way of making a workspace."""

from collections.abc import Container
from typing import Protocol

from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.results import Change, Holding
from engine.plan.model import Plan
from engine.review.comparing import DiffWanted
from engine.review.desk import MergeDesk
from engine.review.landing_results import Landings
from engine.site.seam import SpaceAddress
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Made:
    """A workspace that is there and filled, but not yet set up.

    `is_users` where every file of it is the user's: their commit, and what they let be copied.
    `holds` are its folders, where it does not hold the whole repository.
    """

    address: SpaceAddress
    branch: str | None = None
    base: str | None = None
    notes: tuple[str, ...] = ()
    is_users: bool = False
    holds: Holding | None = None


@dataclass(frozen=True, kw_only=True)
class BaseClash:
    """The changes to build on conflict with each other."""

    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An attempt's work, kept; or why it could not be imported, and where it still lies."""

    change: Change | None = None
    error: str | None = None


class Workshop(Protocol):
    """One way of making workspaces and keeping what is done in them."""

    @property
    def landings(self) -> Landings:
        """Return what moves changes from here onto their target."""

    async def begin(self, plan: Plan) -> Plan:
        """Return the plan with everything pinned that must not move while it runs.

        Raises:
            WorkspaceError: It cannot run here.
        """

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make and fill the workspace of an attempt; making it again is harmless."""

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Keep everything the attempt left; keeping it again gives the same."""

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove what nobody needs any more, as far as that is provable."""

    async def abandon(self, state: RunState, effect: e.EntryEffect) -> None:
        """Remove a half-made workspace in which nothing has worked yet."""

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Return why a workspace has to stay; nothing where it may go."""

    async def release_unsettled(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove a workspace whose work still waits for a human; keep what is unproved."""

    async def drop_branch(
        self, state: RunState, w: Worker, *, going: Container[str] | None = None
    ) -> str | None:
        """Delete a worker's branch if its work is kept elsewhere, or say why it stays."""

    async def diff(self, state: RunState, w: Worker, wanted: DiffWanted) -> ChangeDiff:
        """Return what an attempt has changed; of one that runs, so far."""

    async def sides(self, state: RunState, w: Worker, wanted: DiffWanted) -> tuple[FileSides, ...]:
        """Return files of the same comparison whole, as they were and as they are."""

    def merging(self, state: RunState) -> MergeDesk:
        """Return the part where humans decide about merges.

        Raises:
            WorkspaceError: Nothing is merged here.
        """
