"""Find out from a run's journal where the time of each attempt went."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.core.facts import AttemptEnded, Fact
from engine.ids import AttemptId, RunId, WorkerId
from engine.keeper.recording import ERR, OUT, began_at, parse
from engine.messages.events import MustArrive, Told, WorkerMoved
from engine.messages.timing import AttemptTimes
from engine.phases import Phase
from engine.store.codec import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.store.layout import Layout
    from engine.store.store import Store

_BEGINNING = 1 << 20
"""The bytes of a recording in which its first output is looked for, behind a prompt."""
_STAGES = {
    Phase.QUEUED: "queued",
    Phase.PREPARING: "prepared",
    Phase.RUNNING: "worked",
    Phase.STOPPING: "worked",
    Phase.COLLECTING: "collected",
    Phase.CHECKING: "checked",
}
"""The stage that a phase belongs to; in all others an attempt waits for others, or is over."""


def attempt_times(told: Iterable[Told]) -> list[AttemptTimes]:
    """Return the times of all attempts that a run's events tell of, in the order they began."""
    since: dict[str, float] = {}
    found: dict[tuple[str, int], dict[str, float]] = {}
    for one in told:
        moved = one.event
        if not isinstance(moved, WorkerMoved):
            continue
        begun, since[moved.worker] = since.get(moved.worker, one.at), one.at
        # It leaves the queue under the number of the attempt that begins then.
        stages = found.setdefault((moved.worker, moved.attempt), {}) if moved.attempt else {}
        if stage := _STAGES.get(moved.before):
            stages.setdefault("began", begun)
            stages[stage] = stages.get(stage, 0.0) + one.at - begun
    return [
        AttemptTimes(worker=worker, attempt=attempt, **{"began": 0.0, **stages})
        for (worker, attempt), stages in found.items()
    ]


def read_times(store: Store, layout: Layout, run: RunId) -> tuple[AttemptTimes, ...]:
    """Return where the time of each attempt of a run went.

    Raises:
        NoSuchRun: There is no run of that name.
        StoreError: Its journal cannot be read.
    """
    with store.run(run, read_only=True) as kept:
        events = [
            Told(run=run, at=entry.at, event=from_json(MustArrive, entry.json), seq=entry.seq)
            for entry in kept.events()
            if entry.kind == WorkerMoved.__name__
        ]
        ended = [
            from_json(Fact, entry.json)
            for entry in kept.facts()
            if entry.kind == AttemptEnded.__name__
        ]
    cpu = {
        (str(fact.worker), fact.attempt): fact.usage.cpu_seconds
        for fact in ended
        if isinstance(fact, AttemptEnded) and fact.usage
    }
    return tuple(
        replace(
            times,
            cpu=cpu.get((times.worker, times.attempt)),
            **_begun(layout.recording(_attempt(run, times)), times),
        )
        for times in attempt_times(events)
    )


def _attempt(run: RunId, times: AttemptTimes) -> AttemptId:
    return AttemptId(run, WorkerId.parse(times.worker), times.attempt)


def _begun(recording: Path, times: AttemptTimes) -> dict[str, Any]:
    """Return from a recording when its agent was started, and when it first spoke."""
    if times.prepared is None:
        return {}
    try:
        with recording.open("rb") as file:
            frames, _ = parse(file.read(_BEGINNING))
    except OSError:  # it was cleaned away, or lies elsewhere
        return {}
    began = began_at(frames[0][2]) if frames else None
    if began is None:
        return {}
    ready = times.began + (times.queued or 0.0) + times.prepared
    spoke = next((at for at, stream, _ in frames if stream in {OUT, ERR}), None)
    return {"started": max(began - ready, 0.0)} | ({} if spoke is None else {"first_output": spoke})
