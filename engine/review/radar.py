"""Predict which workers will conflict, while they still run.

It merges trees as they are now in pairs and with the target: those of running workers, of finished
changes, of the user's own checkout. Merges are in memory, their objects in the radar's own folder.
No pair of trees is merged twice, and looking takes at most a tenth of the time. The files of a
running worker are kept as they were, so another attempt can begin from there. The run hears how
much of them differs from the worker's base.
"""

import shutil
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from anyio import CancelScope, to_thread

from engine.clock import Clock
from engine.core.facts import About, Fact, TreeSeen
from engine.core.state import RunState, Worker
from engine.errors import EngineError, WorkspaceError
from engine.git.base import stage_worktree
from engine.git.diff import changed_files, merge_base
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.objects import resolve, tree_of
from engine.git.radar import Snapshot
from engine.git.runner import Repo, Where
from engine.ids import WorkerId
from engine.merge import SideNames
from engine.messages.events import ClashPredicted, LatestWins
from engine.messages.results import Change, Clash, Moment, WorkerView
from engine.phases import Phase
from engine.private import private_folder
from engine.review.change import in_figures
from engine.review.conflicts import conflict_paths, read_conflicts
from engine.review.moments import Moments

YOU = "you"
"""The name of the user's own checkout among the workers."""

EVERY_S = 3.0
_AT_LEAST_EVERY_S = 15.0
_SHARE = 10
_MOST_READ = 12
_MOST_IN_PAIRS = 40
"""Of more workers than this, only those that run, and then the newest, are held against each other;
the target and the user's edits are held against all."""
_MOST_AT_ONCE = 200
_FINISHED = frozenset({Phase.CHECKING, Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING})

Snap = Callable[[RunState, WorkerId, Path], Coroutine[Any, Any, Snapshot | None]]
"""Takes a picture of a running worker's tree, from inside its sandbox."""


class Watched(Protocol):
    """The radar's view of a run."""

    @property
    def state(self) -> RunState:
        """Return the run's state."""

    def feed(self, fact: Fact) -> None:
        """Tell the core what happened."""

    def mention(self, event: LatestWins) -> None:
        """Publish an event to observers."""

    def spoke_at(self, worker: WorkerId) -> float | None:
        """Return when a worker was last heard of."""


@dataclass(frozen=True, kw_only=True)
class _Blip:
    """Somebody's tree as it is now; `base` is the commit that it is a change of."""

    name: str
    tree: str
    base: str
    worker: Worker | None = None


class _Picture(NamedTuple):
    """A running worker's tree as it was when it was looked at."""

    attempt: int
    spoke: float | None
    taken: float
    commit: str
    tree: str

    @property
    def seen(self) -> tuple[int, str]:
        """Return the files that it shows, and whose attempt they are of."""
        return self.attempt, self.tree


class Radar:
    """Looks again and again at one run.

    Attributes:
        clashes: What is predicted, by worker.
        behind: How many commits each worker's base lacks of the target.
        share: The part of the time that the last look took, and the pause before it.
    """

    def __init__(
        self, repo: Repo, run: Watched, *, moments: Moments, clock: Clock, snap: Snap
    ) -> None:
        self._repo = repo
        self._run = run
        self._moments = moments
        self._clock = clock
        self._snap = snap
        self._folder = moments.folder / "merged"
        self._merger = Merger(repo, objects=self._folder)
        self._merged: dict[Sides, Clash | None] = {}
        self._bases: dict[tuple[str, str], str | None] = {}
        self._pictures: dict[WorkerId, _Picture] = {}
        self._kept: dict[str, Moment] = {}
        self._is_behind = False
        self.clashes: Mapping[str, tuple[Clash, ...]] = {}
        self.behind: Mapping[str, int] = {}
        self.share = 0.0

    async def watch(self, is_over: Callable[[], bool]) -> None:
        """Look whenever something has changed, until the run is over; retry what fails."""
        seen: object = None
        looked_at = self._clock.now()
        pause = EVERY_S
        try:
            while not is_over():
                await self._clock.sleep(pause)
                now, pause = self._clock.now(), EVERY_S
                signs = self._signs()
                is_stale = self._is_running() and now - looked_at > _AT_LEAST_EVERY_S
                is_wanted = signs != seen or is_stale or self._is_behind
                if is_over() or not is_wanted:
                    continue
                with suppress(EngineError, OSError):
                    # Trees may vanish while it looks: the next look tries again.
                    await self.look()
                before, seen, looked_at = looked_at, signs, self._clock.now()
                self.share = (looked_at - now) / max(looked_at - before, EVERY_S)
                pause = max(EVERY_S, _SHARE * (looked_at - now))
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(partial(shutil.rmtree, self._folder, ignore_errors=True))
                workers = self._run.state.workers.values()
                await self._moments.keep([w.id for w in workers if w.phase is not Phase.LANDED])

    def _signs(self) -> object:
        """Return a value that changes when a tree may have changed."""
        workers = self._run.state.workers.values()
        return [(w.id, w.phase, w.attempt.number, self._run.spoke_at(w.id)) for w in workers]

    def _is_running(self) -> bool:
        return any(w.phase is Phase.RUNNING for w in self._run.state.workers.values())

    def predicted(self, worker: str) -> tuple[tuple[Clash, ...], int, bool, Moment | None]:
        """Return the clashes of a worker, the commits it is behind, and if it was looked at.

        The last is its newest checkpoint.
        """
        behind = self.behind.get(worker)
        clashes = self.clashes.get(worker, ())
        return clashes, behind or 0, behind is not None, self._kept.get(worker)

    def shown(self, worker: WorkerView) -> WorkerView:
        """Return a worker's view with what is predicted for it."""
        if worker.phase.is_settled:
            return worker
        clashes, behind, is_seen, kept = self.predicted(worker.worker)
        at = kept.at if kept and kept.attempt == worker.attempt else None
        return replace(
            worker, clashes=clashes, behind=behind, is_radar_seen=is_seen, checkpoint_at=at
        )

    async def look(self) -> None:
        """Take snapshots, merge them in pairs, and publish what has changed in the predictions.

        Raises:
            EngineError: Something could not be looked at.
        """
        state = self._run.state
        await to_thread.run_sync(_make_room, self._folder, self._moments.objects)
        blips = [blip for w in state.workers.values() if (blip := await self._blip(state, w))]
        # The user's checkout and the target matter only where a worker's tree can meet them.
        others = [*await self._you(), *await self._target(state)] if blips else []
        newest = sorted(blips, key=_urgency)[:_MOST_IN_PAIRS]
        pairs = [pair for pair in combinations(newest, 2) if _may_meet(state, *pair)]
        pairs += [(other, blip) for blip in blips for other in others]
        found = await self._met(pairs) if blips else {}
        self.behind = await self._count_behind(blips, others)
        self._tell(found)

    async def _blip(self, state: RunState, w: Worker) -> _Blip | None:
        """Return a worker's tree: live while it runs, its change once that is collected."""
        if w.phase in _FINISHED and w.change and w.change.tree and w.change.base:
            return _Blip(name=str(w.id), tree=w.change.tree, base=w.change.base, worker=w)
        if w.phase is not Phase.RUNNING or w.begun.base is None:
            return None
        picture = await self._picture(state, w)
        if picture is None or picture.attempt != w.attempt.number:
            return None
        return _Blip(name=str(w.id), tree=picture.tree, base=w.begun.base, worker=w)

    async def _picture(self, state: RunState, w: Worker) -> _Picture | None:
        """Return a running worker's tree; take it anew after news of it, or at intervals."""
        spoke, now = self._run.spoke_at(w.id), self._clock.now()
        known = self._pictures.get(w.id)
        # An agent that says nothing may write all the same.
        is_new = known is not None and now - known.taken < _AT_LEAST_EVERY_S
        if known and is_new and (known.attempt, known.spoke) == (w.attempt.number, spoke):
            return known
        with suppress(EngineError, OSError):  # it may end, and its tree go, at any moment
            await self._taken(state, w)
        return self._pictures.get(w.id)

    async def _taken(self, state: RunState, w: Worker) -> Moment | None:
        """Take a running worker's tree as it is now; note it where it is new.

        Raises:
            EngineError: It cannot be reached, or written down.
        """
        spoke, began = self._run.spoke_at(w.id), self._clock.now()
        taken = await self._snap(state, w.id, self._moments.objects)
        if taken is None or w.begun.base is None:
            return None
        number, known = w.attempt.number, self._pictures.get(w.id)
        picture = _Picture(number, spoke, began, taken.commit, taken.tree)
        at = self._clock.now()
        moment = Moment(attempt=number, at=at, commit=taken.commit, base=w.begun.base)
        if known is None or (known.attempt, known.commit) != (number, taken.commit):
            # Written down first: a picture that counts as known is not noted again.
            await self._moments.note(w.id, moment)
            self._kept[str(w.id)] = moment
        self._pictures[w.id] = picture
        if known is None or known.seen != picture.seen:
            await self._measure(w, w.begun.base, taken.tree)
        return moment

    async def checkpoint(self, worker: WorkerId) -> Moment:
        """Keep a running worker's files as they are now, and return them as a moment.

        Raises:
            WorkspaceError: It does not run, or its files cannot be read.
            EngineError: It cannot be reached.
        """
        state = self._run.state
        w = state.workers[worker]
        if w.phase is not Phase.RUNNING:
            said = w.phase.lower().replace("_", " ")
            raise WorkspaceError(
                f"{worker} is {said}: plait saves files only while an agent runs",
                hint="What it made is kept as its change.",
            )
        moment = await self._taken(state, w)
        if moment is None:
            raise WorkspaceError(f"the files of {worker} cannot be read now")
        self._kept[str(worker)] = moment
        return moment

    async def _measure(self, w: Worker, base: str, tree: str) -> None:
        """Tell the run how much of a tree differs from what its worker began with."""
        where = Where(objects=str(self._moments.objects))
        files = await changed_files(self._repo, base, tree, where)
        change = replace(in_figures(Change(), files, None), is_cut=False)
        about = About(worker=w.id, attempt=w.attempt.number, at=self._clock.now())
        self._run.feed(TreeSeen(**about, change=change))

    async def _you(self) -> list[_Blip]:
        """Return the user's own edits, if any."""
        head = await resolve(self._repo, "HEAD")
        if self._repo.worktree is None or head is None:
            return []
        staged = await stage_worktree(self._repo, head, objects=str(self._folder))
        if staged.tree == await tree_of(self._repo, head):
            return []
        return [_Blip(name=YOU, tree=staged.tree, base=head)]

    async def _target(self, state: RunState) -> list[_Blip]:
        branch = state.plan.runtime.target
        at = await resolve(self._repo, f"refs/heads/{branch}") if branch else None
        if branch is None or at is None:
            return []
        return [_Blip(name=branch, tree=await tree_of(self._repo, at), base=at)]

    async def _met(self, pairs: Sequence[tuple[_Blip, _Blip]]) -> dict[str, list[Clash]]:
        """Return the clashes of every worker; merge only trees that never met before."""
        asked: list[tuple[Sides, _Blip, _Blip]] = []
        for one, other in pairs:
            base = await self._base(one, other)
            if base is not None:
                asked.append((Sides(base, one.tree, other.tree), one, other))
        new = list(dict.fromkeys(sides for sides, *_ in asked if sides not in self._merged))
        self._is_behind, new = len(new) > _MOST_AT_ONCE, new[:_MOST_AT_ONCE]
        answers = await self._merger.preview(new) if new else []
        fresh = {
            sides: await self._clash(sides, answer) if isinstance(answer, MergedTrees) else None
            for sides, answer in zip(new, answers, strict=True)
        }
        known = {**self._merged, **fresh}
        # Forget pairs that no longer exist: otherwise memory grows with every edit.
        self._merged = {sides: known[sides] for sides, *_ in asked if sides in known}
        found: dict[str, list[Clash]] = {}
        for sides, one, other in asked:
            clash = self._merged.get(sides)
            if clash is not None:
                for me, whom in ((one, other), (other, one)):
                    found.setdefault(me.name, []).append(replace(clash, other=whom.name))
        return found

    async def _base(self, one: _Blip, other: _Blip) -> str | None:
        """Return the base of a worker's change where it meets another tree.

        The target and the user's own edits are met as by a landing: from the recorded base. Two
        workers that began at different commits meet from what these have in common.
        """
        if one.worker is None or one.base == other.base:
            return other.base
        key = (one.base, other.base)
        if key not in self._bases:
            self._bases[key] = await merge_base(self._repo, *key)
        return self._bases[key]

    async def _clash(self, sides: Sides, merged: MergedTrees) -> Clash | None:
        """Return how badly two trees conflict; of very many files only the names are read."""
        if merged.is_clean:
            return None
        paths = conflict_paths(merged)
        if len(merged.conflicts) > _MOST_READ:
            return Clash(other="", paths=paths, hunks=len(paths))
        where = self._merger.where
        conflicts = await read_conflicts(self._repo, merged, sides, SideNames(), where=where)
        hunks = sum(max(1, len(one.open.hunks)) for one in conflicts.files)
        return Clash(other="", paths=paths, hunks=hunks)

    async def _count_behind(
        self, blips: Sequence[_Blip], others: Sequence[_Blip]
    ) -> dict[str, int]:
        """Count the commits of the target that each worker did not begin from."""
        target = next((other.base for other in others if other.name != YOU), None)
        counts: dict[str, int] = {}
        for base in {blip.base for blip in blips} if target else ():
            words = ("rev-list", "--count", str(target), f"^{base}", "--")
            counts[base] = int(await self._repo.line(*words))
        return {blip.name: counts[blip.base] for blip in blips if blip.base in counts}

    def _tell(self, found: Mapping[str, list[Clash]]) -> None:
        """Publish the clashes of every worker for which they have changed."""
        workers = {str(worker) for worker in self._run.state.workers}
        now = {name: tuple(clashes) for name, clashes in found.items() if name in workers}
        before, self.clashes = self.clashes, now
        for name in dict.fromkeys([*before, *now]):
            if before.get(name, ()) != now.get(name, ()):
                self._run.mention(ClashPredicted(worker=name, clashes=now.get(name, ())))


def _make_room(merged: Path, objects: Path) -> None:
    """Make the folder for merges, from which git also finds the snapshots."""
    private_folder(objects)
    private_folder(merged / "info")
    (merged / "info/alternates").write_text(f"../{objects.name}\n", encoding="utf-8")


def _urgency(blip: _Blip) -> tuple[bool, float]:
    """Return a sort key: running workers first, then those that moved last."""
    w = blip.worker
    return (w is None or w.phase is not Phase.RUNNING, -w.phase_since if w else 0.0)


def _may_meet(state: RunState, one: _Blip, other: _Blip) -> bool:
    """Return whether both may land: neither is an alternative to the other or built on it."""
    a, b = one.worker, other.worker
    if a is None or b is None:
        return True
    if a.id.step == b.id.step and state.plan.step(a.id.step).has_candidates:
        return False
    return a.id not in {w for w, _ in b.attempt.bases} and b.id not in {
        w for w, _ in a.attempt.bases
    }
