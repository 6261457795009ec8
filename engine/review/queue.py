"""Land several changes one after another: find an order, and report each result.

One that cannot land is set aside and the rest go on; each is merged into the target as the ones
before it left that.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from engine.core.outcome import must_land_first
from engine.core.state import RunState, Worker
from engine.errors import GitFailed, WorkspaceError
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.objects import resolve
from engine.git.runner import Repo
from engine.merge import SideNames
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.events import Told
from engine.messages.merging import CheckTogether, LandingOrder, PlannedLanding
from engine.messages.questions import A, Ask, ReadRun
from engine.phases import Phase
from engine.review.conflicts import conflict_paths, read_conflicts
from engine.review.questions import sides_of


@dataclass(frozen=True, kw_only=True)
class LandingEnd:
    """The result of one landing.

    Attributes:
        commit: Where the target is now; None where nothing landed.
        conflicts: The paths that a human has to decide.
        reason: Why it was set aside.
        is_changed: It is not the change that was seen.
        note: What there is to say of one that landed.
        lost_at: The event after which nothing was heard any more, because the engine ended.
    """

    worker: str
    target: str | None = None
    commit: str | None = None
    conflicts: tuple[str, ...] = ()
    reason: str = ""
    is_changed: bool = False
    note: str = ""
    lost_at: int | None = None

    @property
    def is_landed(self) -> bool:
        """Return whether the change is on the target."""
        return self.commit is not None


class LandingPort(Protocol):
    """The part of an engine that a queue needs."""

    async def command(self, command: c.Command) -> c.Reply:
        """Send a command."""

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """Yield the events behind a number, then each new one."""

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to a question."""


async def landing_order(
    repo: Repo, state: RunState, workers: Sequence[Worker], *, target: str, by: LandingOrder
) -> tuple[PlannedLanding, ...]:
    """Return the workers in landing order, with the conflicts expected of each.

    Every change is merged in memory into what those before it will have made of the target.

    Raises:
        WorkspaceError: There is no such branch.
    """
    old = await resolve(repo, f"refs/heads/{target}")
    if old is None:
        raise WorkspaceError(f"there is no branch {target!r} to land on")
    places = list(state.workers)
    left = sorted(workers, key=lambda w: places.index(w.id))
    tree, found, merger = old, list[PlannedLanding](), Merger(repo)
    while left:
        names = {w.id for w in left}
        free = [w for w in left if not names.intersection(must_land_first(state, w.id))] or left
        ready = free if by is LandingOrder.FEWEST_CONFLICTS else free[:1]
        sides = [sides_of(w, onto=tree) for w in ready]
        merged = await merger.preview(sides)
        best = min(range(len(ready)), key=lambda n: (_weight(merged[n]), n))
        w, made = ready[best], merged[best]
        found.append(await _planned(repo, w, made, sides=sides[best], target=target))
        if isinstance(made, MergedTrees) and made.is_clean:
            tree = made.tree
        left.remove(w)
    return tuple(found)


def _weight(merged: MergedTrees | GitFailed) -> int:
    if isinstance(merged, GitFailed):
        return 1 << 30
    return 0 if merged.is_clean else max(1, len(merged.conflicts))


async def _planned(
    repo: Repo, w: Worker, made: MergedTrees | GitFailed, *, sides: Sides, target: str
) -> PlannedLanding:
    planned = PlannedLanding(worker=str(w.id))
    if isinstance(made, GitFailed) or made.is_clean:
        return planned
    conflicts = await read_conflicts(repo, made, sides, SideNames(target, str(w.id)))
    hunks = sum(max(1, len(one.open.hunks)) for one in conflicts.files)
    return replace(planned, paths=conflict_paths(made), hunks=hunks)


async def land_queue(port: LandingPort, landings: Sequence[c.Land]) -> AsyncIterator[LandingEnd]:
    """Land one after another, whatever becomes of each, and tell what did."""
    for command in landings:
        yield await land_one(port, command)


async def land_batch(port: LandingPort, landings: Sequence[c.Land]) -> AsyncIterator[LandingEnd]:
    """Land several by as few checks as can be: one for all, and halves where that one fails.

    The one that fails alone is set aside, and the rest go on.
    """
    groups = [list(landings)]
    while groups:
        group = groups.pop(0)
        together = await port.ask(CheckTogether(group[0].run, [one.worker for one in group]))
        has_failed = together.check is not None and not together.check.passed
        if has_failed and len(together.fits) > 1:
            fits = [one for one in group if one.worker in together.fits]
            half = len(fits) // 2
            aside = [one for one in group if one.worker not in together.fits]
            groups[:0] = [half_ for half_ in (fits[:half], fits[half:], aside) if half_]
            continue
        for command in group:
            if has_failed and command.worker in together.fits:
                yield LandingEnd(worker=command.worker, reason="its check failed")
            else:
                yield await land_one(port, command)


async def land_one(port: LandingPort, command: c.Land) -> LandingEnd:
    """Land one change and say what became of it."""
    # Asked before the command: its `seq` is a point from which no event can be missed.
    view = await port.ask(ReadRun(command.run))
    reply = await port.command(command)
    if isinstance(reply, c.Refused):
        reason = f"{reply.reason}. {reply.hint}".strip().removesuffix(".")
        is_changed = reply.kind is c.RefusalKind.CHANGED
        return LandingEnd(worker=command.worker, reason=reason, is_changed=is_changed)
    return await landing_end(port, view.run, command.worker, after_seq=view.seq)


async def landing_end(port: LandingPort, run: str, worker: str, *, after_seq: int) -> LandingEnd:
    """Return the result of a landing under way, from the events after a number."""
    stream = port.events(after_seq, run=run)
    try:
        async for told in stream:
            end = _end(told.event, worker)
            if end is not None:
                return await _with_reason(port, run, end)
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
    reason = "the engine ended before it reported the result; the next engine continues"
    return LandingEnd(worker=worker, reason=reason, lost_at=after_seq)


def _end(event: ev.Event, worker: str) -> LandingEnd | None:
    if getattr(event, "worker", None) != worker:
        return None
    match event:
        case ev.Landed():
            return LandingEnd(worker=worker, target=event.target, commit=event.new, note=event.note)
        case ev.ConflictsFound():
            return LandingEnd(worker=worker, conflicts=event.paths, reason="it has conflicts")
        case ev.WorkerMoved(before=Phase.LANDING):
            return LandingEnd(worker=worker) if event.after is Phase.REVIEWING else None
        case _:
            return None


async def _with_reason(port: LandingPort, run: str, end: LandingEnd) -> LandingEnd:
    """Add why a landing led back to its review."""
    if end.is_landed or end.conflicts:
        return end
    seen = (await port.ask(ReadRun(run))).worker(end.worker)
    return replace(end, reason=seen.error or "it was stopped")
