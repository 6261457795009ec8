"""Make workspaces of worktrees: prepare from a pinned base, collect onto refs."""

from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from engine.beneath import remove_file, remove_tree
from engine.clock import Clock
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.git.arrivals import MOST_REFS
from engine.git.base import resolve_base
from engine.git.collection import CollectRefused, CollectRequest, collect, lead_inside
from engine.git.composition import LandingStyle
from engine.git.inside import Wrap
from engine.git.merge3 import Merger
from engine.git.names import RefNames, check_prefix
from engine.git.nested import quiet_repositories
from engine.git.objects import set_refs, write_commit
from engine.git.radar import Snapshot, snapshot
from engine.git.removal import RemovalVerdict, examine, forget, remove_branch
from engine.git.runner import Repo
from engine.git.stacking import StackConflict, stack_base
from engine.git.staging import MOST_NEW
from engine.git.workspace import Strategy, Workspace, WorkspaceRequest, check_space, prepare
from engine.ids import AttemptId, RunId, WorkerId
from engine.messages.diffs import ChangeDiff
from engine.phases import Phase
from engine.plan.model import Plan, RetryMode
from engine.private import private_folder
from engine.review.change import History, left_out_note, measured
from engine.review.comparing import Comparisons, DiffWanted
from engine.review.conflicts import conflict_paths
from engine.review.desk import MergeDesk
from engine.review.landing import GitLandings
from engine.review.names import short
from engine.review.questions import beneath
from engine.review.target import target_of
from engine.site.artifacts import artifacts_folder, give_all, keep_artifacts
from engine.site.seeds import Seeds
from engine.site.shelter import GitPlaces, Job, Shelter
from engine.site.trash import discard
from engine.store.layout import Layout, workspace
from engine.work.workshop import BaseClash, Kept, Made

_DISK_FLOOR = 256 << 20
"""What stays free on the disk of the workspaces once all of a run's are filled."""
_RELEASED = frozenset({Phase.LANDED, Phase.FINISHED, Phase.DISCARDED, Phase.CANCELLED})
"""Failed worktrees stay for whoever wants to look; `plait clean` removes them."""


@dataclass(frozen=True, kw_only=True)
class _Start:
    """The start of an attempt: its worktree's commit, and the base its change counts from."""

    commit: str
    base: str


class GitWorkshop:
    """Worktrees of one repository."""

    def __init__(
        self,
        repo: Repo,
        *,
        root: Path,
        layout: Layout,
        shelter: Shelter,
        clock: Clock,
        seeds: Seeds,
    ) -> None:
        self._repo = repo
        self._root = root
        self._layout = layout
        self._shelter = shelter
        self._clock = clock
        self._merger = Merger(repo)
        self._comparisons = Comparisons(repo, self.snapshot)
        self._snapping: dict[WorkerId, anyio.Lock] = {}
        self._desk = MergeDesk(repo, layout=layout, clock=clock, snap=self.snapshot)
        self.landings = GitLandings(
            repo,
            root=root,
            layout=layout,
            clock=clock,
            resolutions=self._desk.resolutions,
            seeds=seeds,
        )
        self._bases: dict[RunId, str] = {}
        self._users: dict[str, bool] = {}
        self._pinning = anyio.Lock()
        self._spaces: dict[AttemptId, Workspace] = {}

    async def begin(self, plan: Plan) -> Plan:
        """Return the plan with its target named, and its base as a commit.

        Raises:
            WorkspaceError: HEAD is detached and no target is named, or the base names nothing.
            BranchTaken: A branch of the user's is where those of the workers would go.
        """
        await check_prefix(self._repo, plan.runtime.branch_prefix)
        target = await target_of(self._repo, plan)
        signature = self._repo.settings.sign(int(self._clock.now()))
        base = await resolve_base(self._repo, plan.runtime.base or "HEAD", signature)
        at_once = min(plan.runtime.max_concurrent_workers, sum(len(s.workers) for s in plan.steps))
        await check_space(
            self._repo, base.commit, root=self._root, count=at_once, floor=_DISK_FLOOR
        )
        runtime = replace(plan.runtime, target=target, base=base.commit)
        return replace(plan, runtime=runtime, notes=(*plan.notes, *left_out_note(base)))

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Make a worktree and fill it from its base; `resume` reuses the last one."""
        w = state.workers[effect.worker]
        attempt = AttemptId(state.run, effect.worker, effect.attempt)
        if effect.mode is RetryMode.RESUME and await _is_there(w):
            space = await self._space_of(state, w)
            await anyio.to_thread.run_sync(_unlock, space.git_dir)
            await anyio.to_thread.run_sync(lead_inside, space)
            return Made(path=space.path, branch=short(space.branch), base=w.begun.base)
        start = await self._start(state, effect)
        if isinstance(start, BaseClash):
            return start
        space = await prepare(
            self._repo,
            WorkspaceRequest(
                attempt=attempt,
                base=start.commit,
                path=workspace(self._root, attempt),
                directory=self._layout.attempt(attempt),
                strategy=Strategy(state.plan.runtime.isolation),
                branch_prefix=state.plan.runtime.branch_prefix,
                includes=state.plan.workspace.include,
                is_mounted=self._shelter.mounts,
            ),
        )
        self._spaces[attempt] = space
        notes = await anyio.to_thread.run_sync(
            give_all, self._layout, state.run, effect.bases, Path(space.path)
        )
        return Made(
            path=space.path,
            branch=short(space.branch),
            base=start.base,
            notes=notes,
            is_users=await self._is_users(state, effect, start.commit),
        )

    async def _is_users(self, state: RunState, effect: e.PrepareWorkspace, commit: str) -> bool:
        """Return whether setup can read nothing here that an agent wrote.

        The workspace begins with the run's base, that is in the user's history (a worker's branch
        may be named as base), and nobody has worked in the HOME or writes where all can.
        """
        # A seed made from an agent's files would reach every later tree, and its checks.
        holes = state.plan.runtime.holes
        is_open = holes.has_docker or any(path.endswith(":rw") for path in holes.paths)
        is_first = effect.attempt == 1 and not effect.bases
        if state.plan.workspace.setup is None or is_open or not is_first:
            return False
        if commit != await self._base_of(state):
            return False
        if commit not in self._users:
            listing = await self._repo.read(
                *("for-each-ref", "--contains", commit, "--format=%(refname)"),
                *("refs/heads", "refs/tags", "refs/remotes"),
            )
            # A worker's branch proves nothing: only a ref of the user's makes a commit theirs.
            ours = f"refs/heads/{state.plan.runtime.branch_prefix}/".encode()
            self._users[commit] = any(not ref.startswith(ours) for ref in listing.splitlines())
        return self._users[commit]

    async def _start(self, state: RunState, effect: e.PrepareWorkspace) -> _Start | BaseClash:
        base = await self._base_of(state)
        if effect.start is not None:
            await self._desk.moments(state.run).take(effect.start)
            return _Start(commit=effect.start.commit, base=effect.start.base)
        w = state.workers[effect.worker]
        below = await beneath(self._repo, state, w)
        heads = list(below.heads.values())
        if effect.resolved_base is not None:
            parents = heads or [base]
            commit = await write_commit(self._repo, effect.resolved_base, parents, below.wording)
            return _Start(commit=commit, base=commit)
        record = replace(below.record, root=base)
        found = await stack_base(self._repo, self._merger, record, heads, wording=below.wording)
        if isinstance(found, StackConflict):
            return BaseClash(paths=conflict_paths(found.merged))
        last = w.change
        if effect.mode is not RetryMode.FRESH and last is not None and last.head is not None:
            return _Start(commit=last.head, base=last.base or found.commit)
        start = state.plan.runtime.start
        return _Start(commit=start if start and not heads else found.commit, base=found.commit)

    async def _base_of(self, state: RunState) -> str:
        """Return the run's base, pinned so that no cleanup of the user's removes it."""
        async with self._pinning:
            if state.run not in self._bases:
                base = state.plan.runtime.base or "HEAD"
                ref = f"refs/plait/{state.run}/@base"
                await set_refs(self._repo, [(ref, base)], say="plait: base of a run")
                self._bases[state.run] = base
            return self._bases[state.run]

    async def _space_of(self, state: RunState, w: Worker) -> Workspace:
        """Return the workspace of a worker's newest attempt, under that attempt's name."""
        path = Path(w.begun.workspace or "")
        made = AttemptId(state.run, w.id, int(path.name.removeprefix("attempt_") or 0))
        if made not in self._spaces:
            directory = self._layout.attempt(made)
            strategy = Strategy(state.plan.runtime.isolation)
            request = WorkspaceRequest(
                attempt=made, base="", path=path, directory=directory, strategy=strategy
            )
            self._spaces[made] = await prepare(self._repo, request)
        return replace(self._spaces[made], attempt=AttemptId(state.run, w.id, w.attempt.number))

    async def diff(self, state: RunState, w: Worker, wanted: DiffWanted) -> ChangeDiff:
        """Return what an attempt has changed; of one that runs, so far."""
        return await self._comparisons.diff(state, w, wanted, self._pictures(state, w.id))

    def _pictures(self, state: RunState, worker: WorkerId) -> Path:
        """Return the folder of the snapshots that were shown while the worker ran."""
        return self._layout.worker(state.run, worker) / "looked_at"

    def merging(self, state: RunState) -> MergeDesk:
        """Return the desk where humans decide about merges."""
        del state
        return self._desk

    def git_places(self, state: RunState, worker: WorkerId) -> GitPlaces | None:
        """Return the private repository of the newest attempt."""
        w = state.workers[worker]
        number = w.attempt.number
        if w.begun.workspace:
            number = int(Path(w.begun.workspace).name.removeprefix("attempt_"))
        space = self._spaces.get(AttemptId(state.run, worker, number))
        return None if space is None else _places(space)

    async def find_places(self, state: RunState, w: Worker) -> GitPlaces | None:
        """Look up the repository of a worker that this engine has not handled yet."""
        return _places(await self._space_of(state, w))

    @asynccontextmanager
    async def _inside(
        self, state: RunState, space: Workspace, *, role: str = "git"
    ) -> AsyncIterator[Wrap]:
        """Yield a wrapper that runs our git commands in a worker's own view of the machine."""
        folder = Path(space.collect_dir)
        await anyio.to_thread.run_sync(private_folder, folder)
        job = Job(
            attempt=replace(space.attempt, role=role),
            workspace=space.path,
            # Our own git must not fail by limits that are meant for the agent.
            limits=replace(state.limits_of(space.attempt.worker), memory_mb=None, pids=None),
            git=_places(space),
        )
        async with self._shelter.looking(state, job, writable=(folder,)) as words:
            yield lambda argv: [*words, *argv]

    async def snapshot(self, state: RunState, worker: WorkerId, objects: Path) -> Snapshot | None:
        """Take a running worker's tree as it is now, inside its sandbox, one at a time."""
        w = state.workers[worker]
        space = await self._space_of(state, w)
        # `_tidy` empties the same folder: a snapshot must not lose its files half-way.
        lock = self._snapping.setdefault(worker, anyio.Lock())
        async with lock, self._inside(state, space, role="radar") as wrap:
            request = replace(self._request(state, w), wrap=wrap)
            return await snapshot(self._repo, space, request, objects=objects)

    def _request(self, state: RunState, w: Worker) -> CollectRequest:
        limits = state.limits_of(w.id)
        return CollectRequest(
            author=self._repo.settings.sign(int(w.begun.at or state.started_at or 0)),
            message=_left_over(w),
            most_new=limits.files or MOST_NEW,
            most_refs=limits.refs or MOST_REFS,
        )

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Import everything that the attempt left onto its refs."""
        w = state.workers[effect.worker]
        space = await self._space_of(state, w)
        step = state.plan.step(effect.worker.step)
        kept = artifacts_folder(self._layout, space.attempt)
        take = partial(keep_artifacts, Path(space.path), step.artifacts, kept)
        artifacts = await anyio.to_thread.run_sync(take)
        request = self._request(state, w)
        try:
            async with self._inside(state, space) as wrap:
                found = await collect(self._repo, space, replace(request, wrap=wrap))
        finally:  # whatever came of it, the user may go there and type `git status`
            with anyio.CancelScope(shield=True):
                quieted = await quiet_repositories(
                    self._repo, space.path, admin=space.admin, private=space.git_dir
                )
        if isinstance(found, CollectRefused):
            why = f"its work was not accepted: {found.reason}; it still lies in {found.workspace}"
            return Kept(error=why)
        await self._tidy(space)
        change = await measured(
            self._repo,
            replace(found, notes=(*found.notes, *quieted)),
            w.begun.base or found.base,
            meant=state.plan.workspace.paths,
            artifacts=artifacts,
            history=_history_of(state),
        )
        return Kept(change=change)

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove the worktree of a worker that has settled for good."""
        is_settled = state.workers[effect.worker].phase in _RELEASED
        if is_settled:
            await self._comparisons.forget(self._pictures(state, effect.worker))
        if state.plan.runtime.cleanup_on_complete and is_settled:
            await self.release_unsettled(state, effect)

    async def abandon(self, state: RunState, effect: e.EntryEffect) -> None:
        """Remove a half-made worktree."""
        attempt = AttemptId(state.run, effect.worker, effect.attempt)
        names = RefNames(attempt, state.plan.runtime.branch_prefix)
        self._spaces.pop(attempt, None)
        space = Workspace(
            attempt=attempt,
            strategy=Strategy(state.plan.runtime.isolation),
            path=str(workspace(self._root, attempt)),
            directory=str(self._layout.attempt(attempt)),
            base=names.base,
            branch_prefix=names.prefix,
        )
        if await anyio.Path(space.path).is_dir():
            await discard(self._repo, self._layout, RemovalVerdict(workspace=space))
        await forget(
            self._repo, space, with_branch=state.workers[effect.worker].begun.branch is None
        )

    async def release_unsettled(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove a worktree whose every byte is proved to be kept elsewhere."""
        verdict = await self._verdict(state, effect)
        if verdict is not None and verdict.is_safe:
            await discard(self._repo, self._layout, verdict)
            await self._comparisons.forget(self._pictures(state, effect.worker))

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Return why a worktree has to stay; nothing if it may go."""
        verdict = await self._verdict(state, effect)
        return () if verdict is None else verdict.reasons

    async def _verdict(self, state: RunState, effect: e.ReleaseWorkspace) -> RemovalVerdict | None:
        w = state.workers[effect.worker]
        if not await _is_there(w):
            return None
        space = await self._space_of(state, w)
        async with self._inside(state, space) as wrap:
            request = replace(self._request(state, w), wrap=wrap)
            verdict = await examine(self._repo, space, request)
        if verdict.is_safe:
            await self._tidy(space)
        return verdict

    async def drop_branch(
        self, state: RunState, w: Worker, *, going: Container[str] | None = None
    ) -> str | None:
        """Delete a worker's branch if its work is in the target and pinned, or say why not."""
        target = state.plan.runtime.target
        attempt = AttemptId(state.run, w.id, w.attempt.number)
        names = RefNames(attempt, state.plan.runtime.branch_prefix)
        targets = [f"refs/heads/{target}"] if target else []
        has_landed = w.phase is Phase.LANDED and w.review.whole is None
        landed = w.landing.landed if has_landed else None
        return await remove_branch(
            self._repo, self._merger, names, targets=targets, landed=landed, going=going
        )

    async def _tidy(self, space: Workspace) -> None:
        """Remove what reading a workspace wrote beside it: all of it has been imported."""
        lock = self._snapping.setdefault(space.attempt.worker, anyio.Lock())
        async with lock:
            await anyio.to_thread.run_sync(_empty, Path(space.collect_dir))


def _empty(folder: Path) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        remove_tree(entry)


async def _is_there(w: Worker) -> bool:
    return w.begun.workspace is not None and await anyio.Path(w.begun.workspace).is_dir()


def _places(space: Workspace) -> GitPlaces | None:
    if space.git_dir is None:
        return None
    return GitPlaces(
        private=Path(space.git_dir),
        git_file=Path(space.gitfile) if space.gitfile else None,
        objects=tuple(map(Path, space.objects)),
    )


def _history_of(state: RunState) -> History | None:
    """Return where the commits of workers become history; None if they are squashed."""
    runtime = state.plan.runtime
    if runtime.land_style == LandingStyle.SQUASH:
        return None
    return History(
        target=f"refs/heads/{runtime.target or ''}",
        prefix=runtime.branch_prefix,
        is_as_it_is=runtime.land_style == LandingStyle.MERGE,
    )


def _left_over(w: Worker) -> str:
    return f"Work of {w.id}, attempt {w.attempt.number}, left uncommitted\n"


def _unlock(git_dir: str | None) -> None:
    """Remove the locks of a killed git: nobody works there now, and they would block all."""
    for name in ("index.lock", "HEAD.lock", "config.lock") if git_dir else ():
        remove_file(git_dir or "", name)
