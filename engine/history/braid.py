"""Tell how the strands of a run were woven: each worker's attempts, conflicts and landings."""

import json
from collections.abc import Mapping
from enum import StrEnum

from engine.history.seam import AttemptRecord, RunOrigin, RunRecord
from engine.history.tally import Tally
from engine.ids import RunId
from engine.store.store import JournalEntry, RunJournal
from engine.values import dataclass


class TurnKind(StrEnum):
    """The kinds of turns that a strand takes."""

    BEGAN = "began"
    CONFLICTED = "conflicted"
    LANDED = "landed"
    UNDONE = "undone"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class StrandTurn:
    """One turn of one worker's strand."""

    at: float
    kind: TurnKind
    worker: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Braid:
    """A run as strands: what happened in order, and what each attempt came to."""

    run: RunRecord
    turns: tuple[StrandTurn, ...]
    attempts: Mapping[tuple[str, int], AttemptRecord]


def braid_of(run: RunId, journal: RunJournal, origin: RunOrigin) -> Braid:
    """Return the braid of a journal."""
    tally = Tally(run, journal.plan_json, journal.meta, origin)
    events = list(journal.events())
    tally.take(journal.facts(), events)
    return Braid(
        run=tally.record,
        turns=tuple(turn for entry in events if (turn := _turn(entry)) is not None),
        attempts={(one.worker, one.attempt): one for one in tally.attempts},
    )


def _turn(entry: JournalEntry) -> StrandTurn | None:
    event = json.loads(entry.json)
    kind = _KINDS.get(entry.kind)
    if entry.kind == "WorkerMoved" and event["after"] == "PREPARING":
        kind = TurnKind.BEGAN
    elif entry.kind == "WorkerSettled" and event["phase"] == "LANDED":
        kind = None
    if kind is None:
        return None
    return StrandTurn(at=entry.at, kind=kind, worker=event["worker"], attempt=event["attempt"])


_KINDS = {
    "ConflictsFound": TurnKind.CONFLICTED,
    "Landed": TurnKind.LANDED,
    "LandingUndone": TurnKind.UNDONE,
    "WorkerSettled": TurnKind.ENDED,
}
