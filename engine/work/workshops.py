"""Which workshop a run works in: plain folders, or git."""

from collections.abc import Container, Sequence

from engine.clock import Clock
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.ids import WorkerId
from engine.messages.diffs import ChangeDiff
from engine.messages.results import CheckResult
from engine.plan.model import IsolationStrategy, Plan
from engine.review.comparing import Wanted
from engine.review.desk import MergeDesk
from engine.review.landing_results import (
    Checker,
    Conflicted,
    Moved,
    ReadyToLand,
    Refusal,
    TryAgain,
    Undone,
)
from engine.site.place import Place
from engine.site.seeds import Seeds
from engine.site.shelter import GitPlaces, Shelter
from engine.store.layout import Layout
from engine.work.folders import FolderWorkshop
from engine.work.git_workshop import GitWorkshop
from engine.work.workshop import BaseClash, Kept, Made, Workshop


class Workshops:
    """Hands every effect to the workshop that its run's plan names."""

    def __init__(
        self, place: Place, *, layout: Layout, shelter: Shelter, clock: Clock, seeds: Seeds
    ) -> None:
        self._folders = FolderWorkshop(project=place.project, root=place.workspaces, layout=layout)
        self._git = (
            GitWorkshop(
                place.repo,
                root=place.workspaces,
                layout=layout,
                shelter=shelter,
                clock=clock,
                seeds=seeds,
            )
            if place.repo is not None
            else None
        )

    def _for(self, plan: Plan) -> Workshop:
        if plan.runtime.isolation is IsolationStrategy.DIRECTORY:
            return self._folders
        if self._git is None:
            raise WorkspaceError(
                f"{plan.runtime.isolation} needs a git repository, and there is none here",
                hint="Run `git init`, or set `runtime.isolation_strategy: directory`.",
            )
        return self._git

    async def begin(self, plan: Plan) -> Plan:
        """The plan with everything pinned that must not move while it runs."""
        return await self._for(plan).begin(plan)

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make and fill the workspace of an attempt."""
        return await self._for(state.plan).prepare(state, effect)

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Keep everything the attempt left."""
        return await self._for(state.plan).collect(state, effect)

    async def prepare_landing(
        self, state: RunState, effect: e.Land, check: Checker | None
    ) -> ReadyToLand | Conflicted | Refusal | CheckResult:
        """Merge in memory and check the exact tree."""
        return await self._for(state.plan).prepare_landing(state, effect, check)

    async def is_in_the_way(self, state: RunState, effect: e.Land, paths: Sequence[str]) -> bool:
        """Whether edits of the user's in these files still keep a landing from its target."""
        return await self._for(state.plan).is_in_the_way(state, effect, paths)

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """The check once more, on the exact tree that would land or on the worker's own."""
        return await self._for(state.plan).check_again(state, w, check, is_own=is_own)

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """The check on a commit's files, in a tree that is warm from the checks before."""
        return await self._for(state.plan).check_commit(state, commit, tree, check)

    async def land(self, effect: e.Land, ready: ReadyToLand) -> Moved | TryAgain:
        """Move the target, or roll a prepared move forward."""
        return await (self._git or self._folders).land(effect, ready)

    async def undo(self, prepared: str, *, message: str) -> Undone | Refusal:
        """Take a landing back, or say why it stays."""
        return await (self._git or self._folders).undo(prepared, message=message)

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Give back what is provably not needed any more."""
        await self._for(state.plan).release(state, effect)

    async def abandon(self, state: RunState, effect: e.EntryEffect) -> None:
        """Take away what was made of a workspace in which nothing has worked yet."""
        await self._for(state.plan).abandon(state, effect)

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Why a workspace has to stay; nothing where it may go."""
        return await self._for(state.plan).examine(state, effect)

    async def put_away(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Give it back although its work still waits for a human."""
        await self._for(state.plan).put_away(state, effect)

    async def drop_branch(
        self, state: RunState, w: Worker, *, going: Container[str] | None = None
    ) -> str | None:
        """Delete a worker's branch if its work is kept elsewhere; why it stays, or nothing."""
        return await self._for(state.plan).drop_branch(state, w, going=going)

    async def diff(self, state: RunState, w: Worker, wanted: Wanted) -> ChangeDiff:
        """What an attempt has changed; of one that runs, so far."""
        return await self._for(state.plan).diff(state, w, wanted)

    def merging(self, state: RunState) -> MergeDesk:
        """Where humans decide about merges."""
        return self._for(state.plan).merging(state)

    def git_places(self, state: RunState, worker: WorkerId) -> GitPlaces | None:
        """Where the newest attempt's private repository lies, if it has one."""
        return self._for(state.plan).git_places(state, worker)

    async def find_places(self, state: RunState, w: Worker) -> GitPlaces | None:
        """The same, looked up for a worker of which this engine has seen nothing yet."""
        return await self._for(state.plan).find_places(state, w)
