"""Serve a repository's merging to the port: show conflicts, take decisions, go on.

Hunks may be left out of a change before it lands. They are known by the keys that the diff of the
whole change has. What is left is a commit of its own on the change's base, so that nothing left out
comes into the target's history; the whole stays on the attempt's refs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.clock import Clock
from engine.core import facts as f
from engine.core.feed import RunFeed
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.diff import FileChange, FileHunk, changed_files, file_patches
from engine.git.merge3 import MergedTrees, Merger
from engine.git.names import RefNames
from engine.git.objects import Wording, read_blobs, resolve, set_refs, tree_of, write_commit
from engine.git.runner import Repo
from engine.ids import AttemptId, RunId, WorkerId
from engine.merge import FileResult, HunkKey, OutsideAnswer, split_lines
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff, file_key
from engine.messages.events import ConflictsDecided
from engine.messages.merging import ConflictView
from engine.messages.results import Change, CheckResult
from engine.phases import Phase
from engine.plan.model import PlannedStep
from engine.review.conflicts import Conflicts
from engine.review.diffs import change_diff
from engine.review.inquiry import Inquiry
from engine.review.moments import Moments
from engine.review.questions import sides_of
from engine.review.radar import Radar, Snap, Watched
from engine.review.results import result_tree
from engine.review.sessions import Resolutions
from engine.review.sight import require_seen
from engine.review.weaving import Woven, change_of, keep, woven_attempt
from engine.store.layout import Layout

_NOT_FINISHED = "it has no finished change to leave hunks out of"
_WHY_NOT = {
    Phase.LANDED: "all of it is on the target; undo the landing first",
    Phase.LANDING: "it is about to land",
    Phase.CONFLICTED: "decide its conflicts in Review instead",
}


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The result of each landing of a batch, as trees, and the last one as a commit."""

    trees: Mapping[WorkerId, str] = field(default_factory=dict)
    commit: str = ""
    tree: str = ""


class MergeDesk:
    """The human side of merging in one repository."""

    def __init__(self, repo: Repo, *, layout: Layout, clock: Clock, snap: Snap) -> None:
        self.repo = repo
        self._snap = snap
        self._layout = layout
        self._clock = clock
        self.resolutions = Resolutions(repo, layout)

    def radar(self, run: Watched) -> Radar:
        """Return a radar that watches a run while it goes on."""
        moments = self.moments(run.state.run)
        return Radar(self.repo, run, moments=moments, clock=self._clock, snap=self._snap)

    def moments(self, run: RunId) -> Moments:
        """Return the recorded moments of a run's workers."""
        return Moments(self.repo, self._layout.radar(run))

    async def conflicts(self, state: RunState, worker: WorkerId, path: str = "") -> ConflictView:
        """Return the conflicts of a worker; with the text of one file if it is named.

        Raises:
            WorkspaceError: It has none.
        """
        w = conflicted(state, worker)
        async with self.resolutions.lock(state.run, worker):
            return await self.resolutions.view(state, w, path=path)

    async def resolve(
        self, run: RunFeed, worker: WorkerId, action: c.ResolutionAction
    ) -> ConflictView:
        """Decide something about a worker's conflicts, or go on when all is decided.

        Raises:
            WorkspaceError: It cannot be done, and why; nothing was changed.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = conflicted(run.state, worker)
            if isinstance(action, c.FinishResolving):
                return await self._finish(run, w, action)
            view = await self.resolutions.act(run.state, w, action)
        run.mention(decided_event(view))
        return view

    async def ask(
        self, run: RunFeed, worker: WorkerId, action: c.AskAgent, *, by: str
    ) -> tuple[Inquiry, ConflictView]:
        """Note that an agent is being asked; return its inquiry and the view that shows it.

        Raises:
            WorkspaceError: There is no such hunk.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = conflicted(run.state, worker)
            told = await self.resolutions.asked(run.state, w, action, by=by)
            view = await self.resolutions.view(run.state, w)
        run.mention(decided_event(view))
        return told, view

    async def answered(
        self, run: RunFeed, worker: WorkerId, key: HunkKey, answer: OutsideAnswer | str
    ) -> None:
        """Offer an agent's answer, or show in words why there is none; tell all consoles."""
        async with self.resolutions.lock(run.state.run, worker):
            with suppress(WorkspaceError):  # a human may have decided without it
                w = conflicted(run.state, worker)
                view = await self.resolutions.answered(run.state, w, key, answer)
                run.mention(decided_event(view))

    async def batch(self, state: RunState, workers: Sequence[WorkerId]) -> Batch:
        """Merge these changes onto the target in this order; leave out those that conflict.

        Raises:
            WorkspaceError: There is no such branch, or one of them has nothing to land.
        """
        target = state.plan.runtime.target or ""
        old = await resolve(self.repo, f"refs/heads/{target}")
        if old is None:
            raise WorkspaceError(f"there is no branch {target!r} to land on")
        merger, tree = Merger(self.repo), old
        trees: dict[WorkerId, str] = {}
        for worker in workers:
            sides = sides_of(state.workers[worker], onto=tree)
            merged = await merger.merge(sides)
            if merged.is_clean:
                trees[worker] = tree = merged.tree
        if not trees:
            return Batch()
        author = self.repo.settings.sign(int(state.started_at or 0))
        wording = Wording(message="A batch to be checked\n", author=author)
        commit = await write_commit(self.repo, tree, [old], wording)
        return Batch(trees=trees, commit=commit, tree=tree)

    async def compare(self, one: Worker, other: Worker) -> ChangeDiff:
        """Return the differences between two workers' changes, from the first to the second.

        Raises:
            WorkspaceError: One of them has no change.
        """
        heads = [w.change.head if w.change else None for w in (one, other)]
        if heads[0] is None or heads[1] is None:
            which = one if heads[0] is None else other
            raise WorkspaceError(f"{which.id} has no change that could be compared")
        return await change_diff(self.repo, heads[0], heads[1], against=str(one.id))

    async def leave_out(
        self, run: RunFeed, worker: WorkerId, keys: Sequence[str], *, seen: c.Seen | None = None
    ) -> Change:
        """Leave exactly these hunks behind when a change lands; with none, all of it lands.

        Raises:
            ChangeMoved: The change is not the one that was seen.
            WorkspaceError: It cannot be done, and why; nothing was changed.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = may_be_trimmed(run.state, worker)
            require_seen(w, seen)
            change = await trimmed(self.repo, run.state, w, keys)
            w = may_be_trimmed(run.state, worker, attempt=w.attempt.number)
            left_out = tuple(dict.fromkeys(keys))
            at = self._clock.now()
            run.feed(f.HunksLeftOut(**w.about(at), change=change, hunks=left_out))
        return change

    async def weave_in(
        self, run: RunFeed, step: PlannedStep, woven: Woven, check: CheckResult | None
    ) -> WorkerId:
        """Add a composite to the candidates.

        Raises:
            WorkspaceError: There can be none any more.
        """
        attempt = woven_attempt(run.state, step)
        change = await keep(self.repo, run.state, woven, attempt)
        attempt = woven_attempt(run.state, run.state.plan.step(step.name))
        first = step.workers[0]
        run.feed(
            f.CompositeWoven(
                planned=replace(first, id=attempt.worker, label="woven"),
                attempt=attempt.number,
                change=change,
                check=check,
                branch=RefNames(attempt, run.state.plan.runtime.branch_prefix).branch,
                bases=run.state.workers[first.id].attempt.bases,
                at=self._clock.now(),
            )
        )
        return attempt.worker

    async def _finish(self, run: RunFeed, w: Worker, action: c.FinishResolving) -> ConflictView:
        if action.seen is not None:
            view = await self.resolutions.view(run.state, w)
            if view.tree != action.seen:
                return view
        finished = await self.resolutions.finish(run.state, w)
        view = await self.resolutions.view(run.state, w)
        if finished is None:
            return view
        w = conflicted(run.state, w.id)  # a human may have stopped it while trees were written
        run.feed(
            f.Resolved(
                **w.about(self._clock.now()),
                tree=finished.tree,
                onto=finished.onto,
                is_despite_check=action.is_despite_check,
                is_seen=action.seen == finished.tree,
            )
        )
        return replace(view, tree=finished.tree, is_finished=True)


def conflicted(state: RunState, worker: WorkerId) -> Worker:
    """Return the worker if its conflicts wait for a human.

    Raises:
        WorkspaceError: It has no conflicts that wait.
    """
    w = state.workers[worker]
    if w.phase is not Phase.CONFLICTED:
        raise WorkspaceError(f"{w.id} is {w.phase}: it has no conflicts to decide")
    return w


def decided_event(view: ConflictView) -> ConflictsDecided:
    """Return the event that tells other consoles of a decision."""
    return ConflictsDecided(
        worker=view.worker,
        attempt=view.attempt,
        open_files=view.open_count,
        open_hunks=sum(file.open_hunks for file in view.files),
        is_resolved=view.is_resolved,
    )


def may_be_trimmed(state: RunState, worker: WorkerId, *, attempt: int | None = None) -> Worker:
    """Return the worker if its change may lose hunks now.

    Raises:
        WorkspaceError: It is not finished, it has landed, or others build on it.
    """
    w = state.workers[worker]
    if w.phase is not Phase.REVIEWING or w.change is None or w.change.head is None:
        raise WorkspaceError(f"{w.id} is {w.phase}: {_WHY_NOT.get(w.phase, _NOT_FINISHED)}")
    if attempt not in {None, w.attempt.number}:
        raise WorkspaceError(f"{w.id} is at attempt {w.attempt.number} by now")
    above = [
        str(other.id)
        for other in state.workers.values()
        if (w.id, w.attempt.number) in other.attempt.bases and other.phase is not Phase.DISCARDED
    ]
    if above:
        raise WorkspaceError(
            f"{', '.join(above)} builds on it as it is",
            hint="Retry this one with a comment instead.",
        )
    return w


async def trimmed(repo: Repo, state: RunState, w: Worker, keys: Sequence[str]) -> Change:
    """Return the change without these hunks, kept on a ref of its own.

    Raises:
        WorkspaceError: There is no such hunk, or nothing would be left.
    """
    # Always cut from the whole change: a hunk left out before can come back.
    whole = w.review.whole or w.change
    if whole is None or whole.head is None or whole.base is None:
        raise WorkspaceError(f"{w.id} has no change")
    if not keys:
        return whole
    results = await _reverted(repo, (whole.base, whole.head), frozenset(keys))
    merged = MergedTrees(tree=await tree_of(repo, whole.head))
    tree = await result_tree(repo, merged, Conflicts(()), results)
    if tree == await tree_of(repo, whole.base):
        raise WorkspaceError(f"nothing would be left of {w.id}", hint="Give it up instead.")
    author = repo.settings.sign(int(w.begun.at or state.started_at or 0))
    wording = Wording(message=f"{w.id}, with {len(keys)} left out\n", author=author)
    head = await write_commit(repo, tree, [whole.base], wording)
    names = RefNames(AttemptId(state.run, w.id, w.attempt.number), state.plan.runtime.branch_prefix)
    await set_refs(repo, [(names.trimmed, head)], say="plait: hunks left out")
    left = await change_of(repo, base=whole.base, head=head, tree=tree)
    return replace(left, artifacts=whole.artifacts, set_aside=whole.set_aside)


async def _reverted(repo: Repo, sides: tuple[str, str], keys: frozenset[str]) -> list[FileResult]:
    """Return every file that loses something, as it is without it."""
    diff = await change_diff(repo, *sides, against="")
    _refuse_unknown(diff, keys)
    files = await changed_files(repo, *sides)
    patches = await file_patches(repo, files, sides)
    found: list[FileResult] = []
    for n, (file, patch) in enumerate(zip(files, patches, strict=True)):
        named = [key in keys for key in diff.keys[n]]
        # A file whose type changed is two files: there is nothing in between.
        is_whole = (all(named) and not patch.is_cut) or (any(named) and file.kind == "T")
        if file_key(diff.files[n]) in keys or (named and is_whole):
            found += _as_before(file)
        elif any(named):
            (content,) = await read_blobs(repo, [file.new_oid])
            gone = [hunk for hunk, is_gone in zip(patch.hunks, named, strict=True) if is_gone]
            found.append(FileResult(file.path, file.new_mode, without(content, gone)))
    return found


def _refuse_unknown(diff: ChangeDiff, keys: frozenset[str]) -> None:
    known = {key for of_file in diff.keys for key in of_file} | set(map(file_key, diff.files))
    if keys - known:
        raise WorkspaceError(
            f"the change has no hunk {min(keys - known)}",
            hint="Look at its diff again: it may have been retried.",
        )


def _as_before(file: FileChange) -> Iterator[FileResult]:
    """Yield a file as if it had never been touched."""
    if file.kind in "AR":
        yield FileResult(file.path)
    if file.kind != "A":
        yield FileResult(file.old_path or file.path, file.old_mode, None, file.old_oid)


def without(content: bytes, hunks: Sequence[FileHunk]) -> bytes:
    """Return a file's new content with these of its hunks taken back, in their order."""
    lines = list(split_lines(content))
    # From the end, so that the line numbers of earlier hunks stay right.
    for hunk in reversed(hunks):
        first, count = hunk.new
        start = first - 1 if count else first
        lines[start : start + count] = [
            line.text + b"\n" * line.has_newline for line in hunk.lines if line.mark != "+"
        ]
    return b"".join(lines)
