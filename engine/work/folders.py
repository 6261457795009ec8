"""Make workspaces of plain folders: no git, only includes going in and artifacts coming out."""

import os
from collections.abc import Container, Sequence
from pathlib import Path

import anyio.to_thread

from engine.beneath import EntryKind, PathRefused, copy_tree, list_tree, remove_tree
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.ids import AttemptId, WorkerId
from engine.messages.diffs import ChangeDiff
from engine.messages.results import Change, CheckResult
from engine.plan.model import Plan, RetryMode
from engine.private import private_folder
from engine.review.comparing import DiffWanted
from engine.review.desk import MergeDesk
from engine.review.landing_results import (
    Checker,
    LandingConflicts,
    Moved,
    ReadyToLand,
    Refusal,
    TryAgain,
    Undone,
)
from engine.site.artifacts import artifacts_folder, give_all, keep_artifacts
from engine.site.shelter import GitPlaces
from engine.store.layout import Layout, workspace
from engine.work.workshop import BaseClash, Kept, Made


class NoLandings:
    """Refuses every landing: plain folders have no target."""

    async def prepare(
        self, state: RunState, effect: e.Land, check: Checker | None
    ) -> ReadyToLand | LandingConflicts | Refusal | CheckResult:
        """Refuse: plain folders have nothing to land."""
        del state, check
        return Refusal(reason=f"{effect.worker} works in a plain folder: there is nothing to land")

    async def is_in_the_way(self, state: RunState, effect: e.Land, paths: Sequence[str]) -> bool:
        """Return False: nothing lands here, so nothing is in the way."""
        del state, effect, paths
        return False

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """Refuse: plain folders have no commit whose files could be checked."""
        del state, check, is_own
        return Refusal(reason=f"{w.id} works in a plain folder: there is no tree to check again")

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """Refuse: plain folders have no commits."""
        del state, tree, check
        return Refusal(reason=f"{commit} cannot be checked: there is no repository here")

    async def land(self, effect: e.Land, ready: ReadyToLand) -> Moved | TryAgain:
        """Refuse: nothing is ever ready, so nobody calls this."""
        del ready
        return TryAgain(why=f"{effect.worker} works in a plain folder")

    async def undo(self, prepared: str, *, message: str) -> Undone | Refusal:
        """Refuse: nothing ever lands here, so nobody calls this."""
        del prepared, message
        return Refusal(reason="nothing lands from a plain folder")


class FolderWorkshop:
    """Workspaces that are folders with what the manifest includes and upstream steps made."""

    def __init__(self, *, project: Path, root: Path, layout: Layout) -> None:
        self._project = project
        self._root = root
        self._layout = layout
        self.landings = NoLandings()

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make and fill the folder; `continue` copies the last one, `resume` uses it."""
        notes: list[str] = []
        path = await anyio.to_thread.run_sync(self._fill, state, effect, notes)
        return Made(path=str(path), notes=tuple(notes))

    def _fill(self, state: RunState, effect: e.PrepareWorkspace, notes: list[str]) -> Path:
        previous = state.workers[effect.worker].begun.workspace
        if effect.mode is RetryMode.RESUME and previous and Path(previous).is_dir():
            return Path(previous)
        attempt = AttemptId(state.run, effect.worker, effect.attempt)
        target = workspace(self._root, attempt)
        if target.exists():
            return target
        draft = target.with_name(f".{target.name}.making")
        remove_tree(draft)
        private_folder(draft)
        if effect.mode is RetryMode.CONTINUE and previous and Path(previous).is_dir():
            notes += [_note(one) for one in copy_tree(previous, [b""], draft).refused]
        else:
            notes += self._include(state.plan.workspace.include, draft)
        notes += give_all(self._layout, state.run, effect.bases, draft)
        draft.rename(target)
        return target

    def _include(self, patterns: Sequence[str], target: Path) -> list[str]:
        project = self._project.resolve()
        names: list[Path] = []
        for pattern in patterns:
            for source in sorted(project.glob(pattern)):
                if not source.resolve().is_relative_to(project):
                    raise WorkspaceError(
                        f"workspace.include: {pattern} leads out of {self._project}",
                        hint="Include files that lie inside the project.",
                    )
                names.append(source.relative_to(project))
        return [_note(one) for one in copy_tree(project, names, target).refused]

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Copy the artifacts that the step names to where no agent reaches them."""
        return await anyio.to_thread.run_sync(self._keep, state, effect.worker, effect.attempt)

    def _keep(self, state: RunState, worker: WorkerId, number: int) -> Kept:
        folder = state.workers[worker].begun.workspace
        if folder is None or not Path(folder).is_dir():
            return Kept(error=f"the workspace {folder} is gone")
        kept = artifacts_folder(self._layout, AttemptId(state.run, worker, number))
        patterns = state.plan.step(worker.step).artifacts
        found = keep_artifacts(Path(folder), patterns, kept)
        aside = tuple(map(_note, found.refused))
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
        target = workspace(self._root, AttemptId(state.run, effect.worker, effect.attempt))
        draft = target.with_name(f".{target.name}.making")
        for folder in (target, draft):
            await anyio.to_thread.run_sync(remove_tree, folder)

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Return why the folder stays; only an empty one is provably not needed."""
        folder = state.workers[effect.worker].begun.workspace
        if folder is None:
            return ()
        held = await anyio.to_thread.run_sync(_count, Path(folder))
        files = "1 file in it is" if held == 1 else f"{held} files in it are"
        return (f"{files} kept nowhere else",) if held else ()

    async def release_unsettled(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove the folder only if it is empty."""
        folder = state.workers[effect.worker].begun.workspace
        if folder is not None:
            await anyio.to_thread.run_sync(_remove_if_empty, Path(folder))

    async def drop_branch(
        self, state: RunState, w: Worker, *, going: Container[str] | None = None
    ) -> str | None:
        """Return no reason: plain folders have no branches."""
        del state, w, going
        return None

    async def diff(self, state: RunState, w: Worker, wanted: DiffWanted) -> ChangeDiff:
        """Refuse: plain folders have nothing to compare with."""
        del state, wanted
        raise WorkspaceError(
            f"{w.id} works in a plain folder: there is no base to compare with",
            hint=f"Look into {w.begun.workspace}.",
        )

    def merging(self, state: RunState) -> MergeDesk:
        """Refuse: plain folders are never merged."""
        raise WorkspaceError(f"{state.run} works in plain folders: nothing is merged there")

    def git_places(self, state: RunState, worker: WorkerId) -> GitPlaces | None:
        """Return None: plain folders have no repository."""
        del state, worker
        return None

    async def find_places(self, state: RunState, w: Worker) -> GitPlaces | None:
        """Return None: plain folders have no repository."""
        del state, w
        return None


def _note(one: PathRefused) -> str:
    return f"{os.fsdecode(one.path)}: {one.reason}"


def _count(folder: Path) -> int:
    """Count what is no folder; what cannot be read counts too."""
    entries = list_tree(folder)
    return sum(isinstance(one, PathRefused) or one.kind is not EntryKind.FOLDER for one in entries)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
