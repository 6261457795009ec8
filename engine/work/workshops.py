"""Pin what attempts begin from, have their workspaces made, and judge what comes out of them.

It works in the user's repository alone: what lies where a worker lives is asked of its site.
"""

from collections.abc import Callable, Container
from dataclasses import replace
from pathlib import Path

import anyio

from engine.clock import Clock
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import SiteGone, WorkspaceError
from engine.git.arrivals import MOST_REFS
from engine.git.base import resolve_base
from engine.git.collection import CollectedChange, CollectRefused
from engine.git.composition import LandingStyle
from engine.git.cone import cone_of
from engine.git.merge3 import Merger
from engine.git.names import RefNames, check_prefix
from engine.git.objects import set_refs, tree_of, write_commit
from engine.git.parcel import bring_home
from engine.git.radar import Snapshot
from engine.git.removal import remove_branch
from engine.git.runner import Repo
from engine.git.sparse import check_folders, held
from engine.git.stacking import StackConflict, stack_base
from engine.git.staging import MOST_NEW
from engine.git.workspace import check_space
from engine.ids import AttemptId, RunId, WorkerId
from engine.legible import legible_line
from engine.messages.diffs import ChangeDiff, FileSides
from engine.messages.results import Holding
from engine.phases import Phase
from engine.plan.model import IsolationStrategy, Plan, RetryMode
from engine.review.change import HistoryWanted, left_out_note, measured
from engine.review.comparing import Comparisons, DiffWanted
from engine.review.conflicts import conflict_paths
from engine.review.desk import MergeDesk
from engine.review.landing import GitLandings
from engine.review.moments import clock_time
from engine.review.names import short
from engine.review.questions import beneath
from engine.review.target import target_of
from engine.site.artifacts import Artifacts
from engine.site.place import Place
from engine.site.seam import Brought, Collecting, Filling
from engine.site.seeds import Seeds
from engine.site.sites import Sites
from engine.site.spaces import GitSpaces
from engine.store.layout import Layout
from engine.values import dataclass
from engine.work.folders import FolderWorkshop
from engine.work.workplace import address_of, new_workplace, terms_of, workplace
from engine.work.workshop import BaseClash, Kept, Made, Workshop

_DISK_FLOOR = 256 << 20
"""The space that stays free on the disk of the workspaces once all of a run's are filled."""
_RELEASED = frozenset({Phase.LANDED, Phase.FINISHED, Phase.DISCARDED, Phase.CANCELLED})
"""Failed worktrees stay for whoever wants to look; `plait clean` removes them."""


@dataclass(frozen=True, kw_only=True)
class _Start:
    """The start of an attempt: its worktree's commit, and the base its change counts from."""

    commit: str
    base: str


class GitWorkshop:
    """Changes of one repository's files, wherever they are made."""

    def __init__(
        self, repo: Repo, *, place: Place, sites: Sites, clock: Clock, seeds: Seeds
    ) -> None:
        self._repo = repo
        self._root = place.workspaces
        self._layout: Layout = place.layout
        self._sites = sites
        self._clock = clock
        self._merger = Merger(repo)
        self._comparisons = Comparisons(repo, self.snapshot)
        self._desk = MergeDesk(repo, layout=place.layout, clock=clock, snap=self.snapshot)
        self.landings = GitLandings(
            repo,
            root=place.workspaces,
            layout=place.layout,
            clock=clock,
            resolutions=self._desk.resolutions,
            seeds=seeds,
        )
        self._bases: dict[RunId, str] = {}
        self._users: dict[str, bool] = {}
        self._pinning = anyio.Lock()

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
        await self._check_space(plan, base.commit)
        runtime = replace(plan.runtime, target=target, base=base.commit)
        return replace(plan, runtime=runtime, notes=(*plan.notes, *left_out_note(base)))

    async def _check_space(self, plan: Plan, base: str) -> None:
        """Make sure that the workspaces of the largest kind fit, with the folders that they name.

        Raises:
            WorkspaceError: They do not, or a folder is not there.
        """
        at_once = min(plan.runtime.max_concurrent_workers, sum(len(s.workers) for s in plan.steps))
        for wanted in {plan.sparse_checkout_of(step.name) for step in plan.steps}:
            await check_folders(self._repo, base, wanted)
            holds = await held(self._repo, base, wanted)
            cone = cone_of(holds.folders if holds else None)
            await check_space(
                self._repo,
                base,
                root=self._root,
                count=at_once,
                floor=_DISK_FLOOR,
                cone=cone,
            )

    async def prepare(self, state: RunState, effect: e.PrepareWorkspace) -> Made | BaseClash:
        """Have a worktree made and filled from its base; `resume` reuses the last one."""
        w = state.workers[effect.worker]
        if effect.mode is RetryMode.RESUME and await self._sites.is_there(
            state, address_of(state, w)
        ):
            at = workplace(state, w.id, number=effect.attempt)
            found = await (await self._sites.place(state, at)).spaces(at.terms).resume(at)
            return Made(
                address=found.address,
                branch=short(found.branch),
                base=w.begun.base,
                holds=w.begun.holds,
            )
        start = await self._start(state, effect)
        if isinstance(start, BaseClash):
            return start
        at = new_workplace(state, w.id, effect.attempt)
        filling = await self._filling(state, effect, start.commit)
        holds = filling.holds
        spaces = (await self._sites.place(state, at)).spaces(at.terms)
        filled = await spaces.prepare(at, filling)
        return Made(
            address=filled.address,
            branch=short(filled.branch),
            base=start.base,
            notes=(*filled.notes, *_holds_note(holds)),
            is_users=holds is None and await self._is_users(state, effect, start.commit),
            holds=holds,
        )

    async def _filling(self, state: RunState, effect: e.PrepareWorkspace, commit: str) -> Filling:
        folders = state.plan.sparse_checkout_of(effect.worker.step)
        holds = await held(self._repo, commit, folders, since=await self._base_of(state))
        return Filling(commit=commit, givers=effect.bases, holds=holds)

    def can_prepare_ahead(self, state: RunState, step: str) -> bool:
        """Return True on this machine's own disk: elsewhere a place is found at the beginning."""
        return self._sites.is_near(state.plan, step)

    async def prepare_ahead(
        self, state: RunState, effect: e.PrepareWorkspace, *, is_wanted: Callable[[], bool]
    ) -> None:
        """Make and fill a worktree before its attempt begins, if the disk has room to spare."""
        start = await self._start(state, effect)
        if isinstance(start, BaseClash):
            return  # it is told when the attempt begins
        filling = await self._filling(state, effect, start.commit)
        await check_space(
            self._repo,
            start.commit,
            root=self._root,
            count=1,
            floor=_DISK_FLOOR,
            cone=cone_of(filling.holds.folders if filling.holds else None),
        )
        at = new_workplace(state, effect.worker, effect.attempt)
        spaces = self._sites.near.spaces(at.terms)
        if isinstance(spaces, GitSpaces):
            await spaces.prepare_ahead(at, filling, is_wanted=is_wanted)

    async def give_back(self, state: RunState, effect: e.PrepareWorkspace) -> None:
        """Remove a worktree that was made ahead, unless its attempt has begun."""
        at = new_workplace(state, effect.worker, effect.attempt)
        spaces = self._sites.near.spaces(at.terms)
        if isinstance(spaces, GitSpaces):
            await spaces.give_back(at)

    async def _is_users(self, state: RunState, effect: e.PrepareWorkspace, commit: str) -> bool:
        """Return whether setup can read nothing here that an agent wrote.

        The workspace begins with the run's base, and that base is in the user's history: a worker's
        branch may be named as base. Nobody has worked in the HOME, or writes where all can.
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

    async def diff(self, state: RunState, w: Worker, wanted: DiffWanted) -> ChangeDiff:
        """Return what an attempt has changed; of one that runs, so far."""
        return await self._comparisons.diff(state, w, wanted, self._pictures(state, w.id))

    async def sides(self, state: RunState, w: Worker, wanted: DiffWanted) -> tuple[FileSides, ...]:
        """Return files of the same comparison whole, as they were and as they are."""
        return await self._comparisons.sides(state, w, wanted, self._pictures(state, w.id))

    def _pictures(self, state: RunState, worker: WorkerId) -> Path:
        """Return the folder of the snapshots that were shown while the worker ran."""
        return self._layout.worker(state.run, worker) / "looked_at"

    def merging(self, state: RunState) -> MergeDesk:
        """Return the part where humans decide about merges."""
        del state
        return self._desk

    async def snapshot(self, state: RunState, worker: WorkerId, objects: Path) -> Snapshot | None:
        """Take a running worker's tree as it is now."""
        spaces = self._sites.of(state, worker).spaces(terms_of(state.plan))
        wanted = self._wanted(state, state.workers[worker])
        return await spaces.look(workplace(state, worker), wanted, objects)

    def _wanted(self, state: RunState, w: Worker) -> Collecting:
        limits = state.limits_of(w.id)
        return Collecting(
            author=self._repo.settings.sign(int(w.begun.at or state.started_at or 0)),
            message=_left_over(w),
            most_new=limits.files or MOST_NEW,
            most_refs=limits.refs or MOST_REFS,
            artifacts=state.plan.step(w.id.step).artifacts,
        )

    async def collect(self, state: RunState, effect: e.Collect) -> Kept:
        """Have everything that the attempt left brought onto its refs, and measure it."""
        w = state.workers[effect.worker]
        spaces = self._sites.of(state, w.id).spaces(terms_of(state.plan))
        try:
            brought = await spaces.collect(workplace(state, w.id), self._wanted(state, w))
        except SiteGone as gone:
            brought = await self._seen_last(state, w, gone)
        found = brought.change
        if isinstance(found, CollectRefused):
            why = (
                f"plait did not accept its work: {found.reason}; the work is still in "
                f"{found.workspace}"
            )
            return Kept(error=why)
        if found is None:
            raise AssertionError  # only folders without git have no commits
        change = await measured(
            self._repo,
            found,
            w.begun.base or found.base,
            meant=state.plan.workspace.paths,
            artifacts=brought.artifacts,
            history=_history_of(state),
        )
        return Kept(change=change)

    async def _seen_last(self, state: RunState, w: Worker, gone: SiteGone) -> Brought:
        """Return the files of a lost attempt as they were looked at last, kept as its work.

        Raises:
            SiteGone: Nobody had looked at them.
        """
        moments = self._desk.moments(state.run)
        found = [one for one in await moments.of(w.id) if one.attempt == w.attempt.number]
        if not found:
            raise gone
        last = found[-1]
        await moments.take(last)
        attempt = AttemptId(state.run, w.id, w.attempt.number)
        names = RefNames(attempt, state.plan.runtime.branch_prefix)
        undone = await bring_home(self._repo, names, {names.head: last.commit}, b"")
        note = f"{gone}; its work is kept as it was {clock_time(last.at)}. {gone.hint}"
        change = CollectedChange(
            base=last.base,
            head=last.commit,
            tree=await tree_of(self._repo, last.commit),
            found_on="lost",
            has_left_over=True,
            notes=tuple(filter(None, (note.strip(), undone))),
        )
        return Brought(change=change, artifacts=Artifacts())

    async def release(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove the worktree of a worker that has settled for good."""
        is_settled = state.workers[effect.worker].phase in _RELEASED
        if is_settled:
            await self._comparisons.forget(self._pictures(state, effect.worker))
        if state.plan.runtime.cleanup_on_complete and is_settled:
            await self.release_unsettled(state, effect)

    async def abandon(self, state: RunState, effect: e.EntryEffect) -> None:
        """Remove a half-made worktree."""
        at = new_workplace(state, effect.worker, effect.attempt)
        is_unknown = state.workers[effect.worker].begun.branch is None
        spaces = self._sites.at(state, at.address).spaces(at.terms)
        await spaces.abandon(at, with_branch=is_unknown)

    async def release_unsettled(self, state: RunState, effect: e.ReleaseWorkspace) -> None:
        """Remove a worktree whose every byte is proved to be kept elsewhere."""
        w = state.workers[effect.worker]
        at = workplace(state, w.id)
        if not await self._sites.is_there(state, address_of(state, w)):
            return
        if await self._sites.of(state, w.id).spaces(at.terms).release(at, self._wanted(state, w)):
            await self._comparisons.forget(self._pictures(state, effect.worker))

    async def examine(self, state: RunState, effect: e.ReleaseWorkspace) -> tuple[str, ...]:
        """Return why a worktree has to stay; nothing if it may go."""
        w = state.workers[effect.worker]
        at = workplace(state, w.id)
        if not await self._sites.is_there(state, address_of(state, w)):
            return ()
        return (
            await self._sites.of(state, w.id).spaces(at.terms).examine(at, self._wanted(state, w))
        )

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


def _history_of(state: RunState) -> HistoryWanted | None:
    """Return where the commits of workers become history; None if they are squashed."""
    runtime = state.plan.runtime
    if runtime.land_style == LandingStyle.SQUASH:
        return None
    return HistoryWanted(
        target=f"refs/heads/{runtime.target or ''}",
        prefix=runtime.branch_prefix,
        is_as_it_is=runtime.land_style == LandingStyle.MERGE,
    )


def _holds_note(holds: Holding | None) -> tuple[str, ...]:
    """Return one sentence on what a worktree holds, if that is not the whole repository."""
    if holds is None:
        return ()
    named = ", ".join(map(legible_line, holds.folders)) or "only files at the top"
    return (f"the worktree holds {holds.held} of {holds.of} folders: {named}",)


def _left_over(w: Worker) -> str:
    subject = f"Changes that {w.id} did not commit"
    return f"{subject}\n\nplait found them in its worktree after attempt {w.attempt.number}.\n"


class Workshops:
    """The workshops of one engine."""

    def __init__(self, place: Place, *, sites: Sites, clock: Clock, seeds: Seeds) -> None:
        self._folders = FolderWorkshop(sites.near)
        self._git = (
            GitWorkshop(place.repo, place=place, sites=sites, clock=clock, seeds=seeds)
            if place.repo is not None
            else None
        )

    def of(self, plan: Plan) -> Workshop:
        """Return the workshop that the plan of a run names.

        Raises:
            WorkspaceError: The plan needs a repository, and there is none.
        """
        if plan.runtime.isolation is IsolationStrategy.DIRECTORY:
            return self._folders
        if (git := self.with_git(plan)) is not None:
            return git
        raise WorkspaceError(
            f"{plan.runtime.isolation} needs a git repository, and this folder is not in one",
            hint="Run `git init`, or set `runtime.isolation_strategy: directory`.",
        )

    def with_git(self, plan: Plan) -> GitWorkshop | None:
        """Return the workshop of a plan whose workers have commits; None if it has none here."""
        return None if plan.runtime.isolation is IsolationStrategy.DIRECTORY else self._git
