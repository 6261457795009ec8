"""Serve a repository's merging to the port: show conflicts, take decisions, go on."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.clock import Clock
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.feed import RunFeed
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.merge3 import Merger
from engine.git.names import RefNames
from engine.git.objects import Wording, resolve, write_commit
from engine.git.runner import Repo
from engine.ids import RunId, WorkerId
from engine.merge import Formatted, HunkKey, OutsideAnswer
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff
from engine.messages.events import ConflictsDecided
from engine.messages.merging import ConflictView, FileText
from engine.messages.results import Change, CheckResult
from engine.phases import Phase
from engine.plan.model import PlannedStep
from engine.review.assisting import Assisted, Spent
from engine.review.diffs import change_diff
from engine.review.in_hand import edited, in_review, trimmed
from engine.review.inquiry import Inquiry
from engine.review.moments import Moments
from engine.review.questions import sides_of
from engine.review.radar import Radar, Snap, Watched
from engine.review.review import Regeneration, Unformatted
from engine.review.sessions import Resolutions
from engine.review.sight import require_seen
from engine.review.weaving import Woven, keep, woven_attempt
from engine.store.layout import Layout


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

    async def regeneration(self, state: RunState, worker: WorkerId, path: str) -> Regeneration:
        """Return what a generated file is made anew from.

        Raises:
            WorkspaceError: Nothing makes it, or another decision comes first.
        """
        async with self.resolutions.lock(state.run, worker):
            return await self.resolutions.regeneration(state, conflicted(state, worker), path)

    async def regenerated(
        self, run: RunFeed, worker: WorkerId, wanted: Regeneration, content: bytes
    ) -> ConflictView:
        """Decide a file by what its command made; tell all consoles.

        Raises:
            WorkspaceError: It was made from another result, or is no text; nothing was changed.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = conflicted(run.state, worker)
            view = await self.resolutions.regenerated(run.state, w, wanted, content)
        run.mention(decided_event(view))
        return view

    async def unformatted(
        self, state: RunState, worker: WorkerId
    ) -> tuple[str, tuple[Unformatted, ...]]:
        """Return a commit of the target's, and the files that a formatter has not seen yet.

        Raises:
            WorkspaceError: It has no conflicts that wait.
        """
        async with self.resolutions.lock(state.run, worker):
            return await self.resolutions.unformatted(state, conflicted(state, worker))

    async def formatted(
        self, run: RunFeed, worker: WorkerId, found: Mapping[bytes, Formatted | None]
    ) -> None:
        """Propose what formatted files come to; tell all consoles.

        Raises:
            WorkspaceError: It has no conflicts that wait.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = conflicted(run.state, worker)
            view = await self.resolutions.formatted(run.state, w, found)
        run.mention(decided_event(view))

    async def unsure(self, state: RunState, worker: WorkerId) -> tuple[c.AskAgent | None, Assisted]:
        """Return the next question to ask ahead, and the account of those before.

        Raises:
            WorkspaceError: It has no conflicts that wait.
        """
        while True:  # whoever looks at these conflicts meanwhile gets the lock in between
            async with self.resolutions.lock(state.run, worker):
                found = await self.resolutions.unsure(state, conflicted(state, worker))
            question, is_cut, so_far = found
            if not is_cut:
                return question, so_far

    async def ask(
        self,
        run: RunFeed,
        worker: WorkerId,
        action: c.AskAgent,
        *,
        by: str,
        is_ahead: bool = False,
    ) -> tuple[Inquiry, ConflictView]:
        """Note that an agent is being asked; return its inquiry and the view that shows it.

        Raises:
            WorkspaceError: There is no such hunk.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = conflicted(run.state, worker)
            told = await self.resolutions.asked(run.state, w, action, by=by, is_ahead=is_ahead)
            view = await self.resolutions.view(run.state, w)
        run.mention(decided_event(view))
        return told, view

    async def answered(
        self,
        run: RunFeed,
        worker: WorkerId,
        key: HunkKey,
        answer: OutsideAnswer | str,
        *,
        spent: Spent | None = None,
    ) -> None:
        """Offer an agent's answer, or show in words why there is none; tell all consoles.

        Raises:
            StoreError: It is offered, but cannot be written down.
        """
        async with self.resolutions.lock(run.state.run, worker):
            with suppress(WorkspaceError):  # a human may have decided without it
                w = conflicted(run.state, worker)
                view = await self.resolutions.answered(run.state, w, key, answer, spent=spent)
                run.mention(decided_event(view))
                await self.resolutions.keep(run.state, w)

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
        wording = Wording(message="A batch to check\n", author=author)
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
            raise WorkspaceError(f"{which.id} has no change to compare")
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
            w = in_review(run.state, worker)
            require_seen(w, seen)
            change = await trimmed(self.repo, run.state, w, keys)
            w = in_review(run.state, worker, attempt=w.attempt.number)
            left_out = tuple(dict.fromkeys(keys))
            at = self._clock.now()
            run.feed(f.HunksLeftOut(**w.about(at), change=change, hunks=left_out))
        return change

    async def edit(
        self, run: RunFeed, worker: WorkerId, file: FileText, *, seen: c.Seen | None = None
    ) -> Change:
        """Let a change that waits for review have another text in one of its files.

        Raises:
            ChangeMoved: The change is not the one that was seen.
            WorkspaceError: It cannot be done, and why; nothing was changed.
        """
        async with self.resolutions.lock(run.state.run, worker):
            w = in_review(run.state, worker)
            require_seen(w, seen)
            found = await edited(self.repo, run.state, w, file)
            w = in_review(run.state, worker, attempt=w.attempt.number)
            run.feed(
                f.HunksLeftOut(
                    **w.about(self._clock.now()),
                    change=found.change,
                    whole=found.whole,
                    hunks=found.left_out,
                    edited=found.paths,
                )
            )
        return found.change

    async def merged_text(self, state: RunState, worker: WorkerId, path: str) -> FileText:
        """Return a file of a merge as it is decided so far, for an editor.

        Raises:
            WorkspaceError: There is no such file, or it is no text.
        """
        found = (await self.conflicts(state, worker, path)).looked_at
        if found is None or found.text is None or "\0" in found.text:
            raise WorkspaceError(f"{path} is not text, so an editor cannot keep it intact")
        return FileText(path=path, text=found.text, mode=found.mode or "100644")

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
            rf.CompositeWoven(
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
        raise WorkspaceError(f"{w.id} is {w.phase}: it has no conflicts to resolve")
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
