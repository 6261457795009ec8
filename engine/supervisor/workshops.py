"""Which workshop a run works in: plain folders, or git."""

from engine.core import effects as e
from engine.core.state import RunState
from engine.errors import WorkspaceError
from engine.ids import WorkerId
from engine.plan.model import IsolationStrategy
from engine.results import CheckResult
from engine.supervisor.folders import FolderWorkshop
from engine.supervisor.place import Place
from engine.supervisor.shelter import GitPlaces
from engine.supervisor.workshop import (
    BaseClash,
    Checker,
    Conflicted,
    Kept,
    Made,
    ReadyToLand,
    Refusal,
    Workshop,
)


class Workshops:
    """Hands every effect to the workshop that its run's plan names."""

    def __init__(self, place: Place) -> None:
        self._folders = FolderWorkshop(
            project=place.project, root=place.workspaces, layout=place.layout
        )

    def _for(self, state: RunState) -> Workshop:
        if state.plan.runtime.isolation is IsolationStrategy.DIRECTORY:
            return self._folders
        raise WorkspaceError(
            f"{state.plan.runtime.isolation} needs a git repository, and there is none here",
            hint="Run `git init`, or set `runtime.isolation_strategy: directory`.",
        )

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make and fill the workspace of an attempt."""
        return await self._for(state).prepare(state, effect)

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Keep everything the attempt left."""
        return await self._for(state).collect(state, effect)

    async def prepare_landing(
        self, state: RunState, effect: e.Land, check: Checker | None
    ) -> ReadyToLand | Conflicted | Refusal | CheckResult:
        """Merge in memory and check the exact tree."""
        return await self._for(state).prepare_landing(state, effect, check)

    async def land(self, state: RunState, effect: e.Land, ready: ReadyToLand) -> None:
        """Move the target, or roll a prepared move forward."""
        await self._for(state).land(state, effect, ready)

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Give back what is provably not needed any more."""
        await self._for(state).release(state, effect)

    def git_places(self, state: RunState, worker: WorkerId) -> GitPlaces | None:
        """Where the newest attempt's private repository lies, if it has one."""
        return self._for(state).git_places(state, worker)
