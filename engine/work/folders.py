"""Make workspaces of plain folders: no git, only includes going in and artifacts coming out."""

from collections.abc import Container, Sequence
from contextlib import AbstractAsyncContextManager

from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.checktree import CheckTree
from engine.git.settings import Signature
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.merging import MergedResult
from engine.messages.results import Change, CheckResult
from engine.plan.model import Plan, RetryMode
from engine.review.comparing import DiffWanted
from engine.review.desk import MergeDesk
from engine.review.landing_results import (
    Checker,
    CleanChecker,
    LandingConflicts,
    Moved,
    ReadyToLand,
    Refusal,
    TryAgain,
    Undone,
)
from engine.site.artifacts import refusal
from engine.site.seam import Collecting, Filling, Site
from engine.site.shelter import GitPlaces
from engine.work.workplace import address_of, new_workplace, terms_of, workplace
from engine.work.workshop import BaseClash, Kept, Made

_NOBODY = Signature("", "", 0)
"""Nothing is signed where there are no commits."""


class NoLandings:
    """Refuses every landing: plain folders have no target."""

    async def prepare(
        self, state: RunState, effect: e.PerformLanding, check: Checker | None
    ) -> ReadyToLand | LandingConflicts | Refusal | CheckResult:
        """Refuse: plain folders have nothing to land."""
        del state, check
        return Refusal(reason=f"{effect.worker} works in a plain folder: there is nothing to land")

    async def is_in_the_way(
        self, state: RunState, effect: e.PerformLanding, paths: Sequence[str]
    ) -> bool:
        """Return False: nothing lands here, so nothing is in the way."""
        del state, effect, paths
        return False

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """Refuse: plain folders have no commit whose files could be checked."""
        del state, check, is_own
        return Refusal(reason=f"{w.id} works in a plain folder, so there is no tree to check again")

    async def result(self, state: RunState, w: Worker) -> MergedResult | Refusal:
        """Refuse: plain folders have no target to merge with."""
        del state
        return Refusal(reason=f"{w.id} works in a plain folder: nothing is merged there")

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """Refuse: plain folders have no commits."""
        del state, tree, check
        return Refusal(reason=f"{commit} cannot be checked: there is no repository here")

    def laid_out(
        self, state: RunState, commit: str, check: Checker
    ) -> AbstractAsyncContextManager[tuple[CleanChecker, str, GitPlaces]]:
        """Refuse: plain folders have no commits."""
        del state, check
        raise WorkspaceError(f"plait cannot make a copy of {commit}: there is no repository here")

    async def lay_out(self, state: RunState, place: CheckTree, commit: str) -> tuple[str, ...]:
        """Refuse: plain folders have no commits."""
        del state, place
        raise WorkspaceError(f"plait cannot make a copy of {commit}: there is no repository here")

    async def land(self, effect: e.PerformLanding, ready: ReadyToLand) -> Moved | TryAgain:
        """Refuse: nothing is ever ready, so nobody calls this."""
        del ready
        return TryAgain(why=f"{effect.worker} works in a plain folder")

    async def undo(self, prepared: str, *, message: str) -> Undone | Refusal:
        """Refuse: nothing ever lands here, so nobody calls this."""
        del prepared, message
        return Refusal(reason="nothing lands from a plain folder")


class FolderWorkshop:
    """Workspaces that are folders with what the manifest includes and upstream steps made."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.landings = NoLandings()

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Have the folder made and filled; `continue` copies the last one, `resume` uses it."""
        spaces = self._site.spaces(terms_of(state.plan))
        last = address_of(state, state.workers[effect.worker])
        if effect.mode is RetryMode.RESUME and await self._site.is_there(last):
            return Made(address=last)
        previous = last if effect.mode is RetryMode.CONTINUE and last.path else None
        at = new_workplace(state, effect.worker, effect.attempt)
        filled = await spaces.prepare(at, Filling(givers=effect.bases, previous=previous))
        return Made(address=filled.address, notes=filled.notes)

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Have the artifacts that the step names copied to where no agent reaches them."""
        at = workplace(state, effect.worker, number=effect.attempt)
        if not await self._site.is_there(at.address):
            return Kept(error=f"the workspace {at.address.path or None} is gone")
        wanted = Collecting(author=_NOBODY, artifacts=state.plan.step(effect.worker.step).artifacts)
        found = (await self._site.spaces(at.terms).collect(at, wanted)).artifacts
        aside = tuple(map(refusal, found.refused))
        return Kept(change=Change(files=len(found.found), artifacts=found.found, set_aside=aside))

    async def begin(self, plan: Plan) -> Plan:
        """Return the plan as it is: plain folders need nothing pinned."""
        return plan

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove the folder only if it is empty: nothing else is provably not needed."""
        if state.plan.runtime.cleanup_on_complete:
            await self.release_unsettled(state, effect)

    async def abandon(self, state: RunState, effect: e.EntryEffect) -> None:
        """Remove a half-filled folder: it holds copies and nothing else."""
        at = new_workplace(state, effect.worker, effect.attempt)
        await self._site.spaces(at.terms).abandon(at, with_branch=False)

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Return why the folder stays; only an empty one is provably not needed."""
        at = workplace(state, effect.worker)
        if not at.address.path:
            return ()
        return await self._site.spaces(at.terms).examine(at, Collecting(author=_NOBODY))

    async def release_unsettled(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove the folder only if it is empty."""
        at = workplace(state, effect.worker)
        if at.address.path:
            await self._site.spaces(at.terms).release(at, Collecting(author=_NOBODY))

    async def drop_branch(
        self, state: RunState, w: Worker, *, going: Container[str] | None = None
    ) -> str | None:
        """Return no reason: plain folders have no branches."""
        del state, w, going
        return None

    async def diff(self, state: RunState, w: Worker, wanted: DiffWanted) -> ChangeDiff:
        """Refuse: plain folders have nothing to compare with."""
        del state, wanted
        raise _nothing_beside(w)

    async def sides(self, state: RunState, w: Worker, wanted: DiffWanted) -> tuple[FileSides, ...]:
        """Refuse: plain folders have nothing to compare with."""
        del state, wanted
        raise _nothing_beside(w)

    def merging(self, state: RunState) -> MergeDesk:
        """Refuse: plain folders are never merged."""
        raise WorkspaceError(f"{state.run} works in plain folders: nothing is merged there")


def _nothing_beside(w: Worker) -> WorkspaceError:
    return WorkspaceError(
        f"{w.id} works in a plain folder: there is no base to compare with",
        hint=f"Look in {w.begun.workspace}.",
    )
