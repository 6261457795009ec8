"""Read a run's journal into the rows of a history: one for the run, one for each attempt.

It follows kinds and JSON texts and not the rules of the core, so it also reads journals that an
older plait wrote. What it does not know it passes over.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from heapq import merge
from operator import itemgetter
from typing import Any

from engine.history.seam import AttemptRecord, JournalPiece, RunOrigin, RunRecord
from engine.ids import RunId
from engine.store.store import JournalEntry
from engine.values import dataclass

_WAITS = frozenset({"REVIEWING", "CONFLICTED"})
_MOST_TOKENS = 10**12  # an agent may report anything, and a database adds these up
_AGAIN = frozenset({"QUEUED", "BACKING_OFF"})
_DECIDES = frozenset({"Land", "Approve", "Choose", "Reject"})
_Key = tuple[str, int]
_Take = Callable[[float, Mapping[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """The agent that a worker was planned with."""

    agent: str = ""
    model: str = ""
    label: str = ""


def uid_of(run: RunId, plan_json: str, meta: Mapping[str, str]) -> str:
    """Return a run's name in all the world; a copy of its journal has the same."""
    said = (run, meta.get("project", ""), meta.get("started", ""), plan_json)
    return hashlib.sha256("\0".join(said).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Tally:
    """The rows of one run, as far as its journal has been read.

    Attributes:
        fact: The number of the last fact that was read.
    """

    def __init__(
        self, run: RunId, plan_json: str, meta: Mapping[str, str], origin: RunOrigin
    ) -> None:
        plan: dict[str, Any] = json.loads(plan_json)
        self.fact = 0
        self._record = RunRecord(
            uid=uid_of(run, plan_json, meta),
            run=run,
            name=str(plan.get("name", "")),
            repository=origin.repository,
            person=origin.person,
            host=origin.host,
            began=_number(meta.get("started")),
        )
        self._attempts: dict[_Key, AttemptRecord] = {}
        self._changed: set[_Key] = set()
        self._waits_since: dict[_Key, float] = {}
        self._remaining: dict[_Key, int | None] = {}
        """Count the hunks that would land now."""
        self._planned: dict[str, _Planned] = {}
        self._facts: dict[str, _Take] = {
            "StepAdded": self._step_added,
            "WorkerAdded": self._worker_added,
            "RetryRequested": self._retried,
            "WorkspaceReady": self._prepared,
            "AttemptEnded": self._agent_ended,
            "Collected": self._collected,
            "HunksLeftOut": self._left_out,
        }
        self._events: dict[str, _Take] = {
            "RunStarted": self._began,
            "RunWaiting": self._waits,
            "RunFinished": self._ended,
            "WorkerMoved": self._moved,
            "CheckFinished": self._checked,
            "ConflictsFound": self._conflicted,
            "Landed": self._landed,
            "LandingUndone": self._undone,
            "WorkerSettled": self._settled,
            "Commanded": self._commanded,
        }
        for step in plan.get("steps", ()):
            self._plan_step(step)

    @property
    def uid(self) -> str:
        """Return the run's name in all the world."""
        return self._record.uid

    @property
    def seq(self) -> int:
        """Return the number of the last event that was read."""
        return self._record.seq

    @property
    def is_ended(self) -> bool:
        """Return whether the run has ended."""
        return self._record.ended is not None

    @property
    def record(self) -> RunRecord:
        """Return the run's row."""
        return self._record

    @property
    def attempts(self) -> tuple[AttemptRecord, ...]:
        """Return the rows of all attempts."""
        return tuple(self._attempts.values())

    def take(self, facts: Iterable[JournalEntry], events: Iterable[JournalEntry]) -> None:
        """Take in facts and events behind those that were read, in the order of their times."""
        told = merge(
            _in_turn(facts, self._facts), _in_turn(events, self._events), key=itemgetter(0)
        )
        for _, entry, kinds in told:
            if take := kinds.get(entry.kind):
                take(entry.at, json.loads(entry.json))
            if kinds is self._facts:
                self.fact = entry.seq
            else:
                self._record = replace(self._record, seq=entry.seq)

    def piece(self, events: Sequence[JournalEntry]) -> JournalPiece:
        """Return what is to be kept, with every attempt that changed since `is_kept`."""
        changed = tuple(self._attempts[key] for key in sorted(self._changed))
        return JournalPiece(run=self._record, events=events, attempts=changed)

    def is_kept(self) -> None:
        """Take note that the piece has been kept."""
        self._changed.clear()

    # What is known of the plan.

    def _plan_step(self, step: Mapping[str, Any]) -> None:
        for worker in step.get("workers", ()):
            self._plan_worker(worker)

    def _plan_worker(self, worker: Mapping[str, Any]) -> None:
        agent = worker.get("agent") or {}
        self._planned[str(worker.get("id"))] = _Planned(
            agent=str(agent.get("name") or ""),
            model=str(agent.get("model") or ""),
            label=str(worker.get("label") or ""),
        )

    def _step_added(self, _at: float, fact: Mapping[str, Any]) -> None:
        self._plan_step(fact.get("step") or {})

    def _worker_added(self, _at: float, fact: Mapping[str, Any]) -> None:
        self._plan_worker(fact.get("planned") or {})

    def _retried(self, _at: float, fact: Mapping[str, Any]) -> None:
        if agent := fact.get("agent"):
            name = str(fact["worker"])
            known = self._planned.get(name, _Planned())
            model = str(agent.get("model") or "")
            self._planned[name] = replace(known, agent=str(agent.get("name") or ""), model=model)

    # What happened to an attempt.

    def _set(self, at: float, told: Mapping[str, Any], **changes: Any) -> None:
        key = _key(told)
        if key[1] < 1:  # it has not begun
            return
        self._attempts[key] = replace(self._attempt(at, key), **changes)
        self._changed.add(key)

    def _attempt(self, at: float, key: _Key) -> AttemptRecord:
        if (known := self._attempts.get(key)) is not None:
            return known
        worker, number = key
        planned = self._planned.get(worker, _Planned())
        year, week, _ = datetime.fromtimestamp(at, UTC).isocalendar()
        return AttemptRecord(
            worker=worker,
            attempt=number,
            step=worker.partition("/")[0],
            agent=planned.agent,
            model=planned.model,
            label=planned.label,
            week=f"{year}-W{week:02}",
            began=at,
        )

    def _of(self, at: float, told: Mapping[str, Any]) -> AttemptRecord:
        return self._attempt(at, _key(told))

    def _prepared(self, at: float, fact: Mapping[str, Any]) -> None:
        self._set(at, fact, prompt=fact.get("prompt") or "")

    def _agent_ended(self, at: float, fact: Mapping[str, Any]) -> None:
        used = fact.get("usage") or {}
        told = [used.get(name) for name in ("input_tokens", "output_tokens")]
        known = [number for number in told if number is not None]
        self._set(
            at,
            fact,
            ended=at,
            usd=used.get("usd"),
            tokens=min(sum(known), _MOST_TOKENS) if known else None,
            **_reasons(self._of(at, fact), fact),
        )

    def _collected(self, at: float, fact: Mapping[str, Any]) -> None:
        change = fact.get("change") or {}
        counts = {name: change.get(name) or 0 for name in ("files", "insertions", "deletions")}
        hunks = change.get("hunks")
        self._remaining[_key(fact)] = hunks
        self._set(at, fact, hunks=hunks, **counts)

    def _left_out(self, at: float, fact: Mapping[str, Any]) -> None:
        self._remaining[_key(fact)] = (fact.get("change") or {}).get("hunks")
        self._set(at, fact, left_out=len(fact.get("hunks") or ()))

    def _moved(self, at: float, event: Mapping[str, Any]) -> None:
        key = _key(event)
        known, after = self._of(at, event), event["after"]
        changes: dict[str, Any] = {}
        if after == "PREPARING":
            changes["began"] = at
        if (since := self._waits_since.pop(key, None)) is not None:
            changes["review_s"] = known.review_s + max(at - since, 0.0)  # a clock may be set back
        if after in _WAITS:
            self._waits_since[key] = at
        if known.outcome == "pending" and after == "REVIEWING":
            changes["outcome"] = "success"
        elif known.outcome == "pending" and after in _AGAIN and event["before"] != "WAITING":
            changes["outcome"] = "failed"
        self._set(at, event, **changes)

    def _checked(self, at: float, event: Mapping[str, Any]) -> None:
        if self._of(at, event).check_passed is None:
            self._set(at, event, check_passed=bool(event["check"]["passed"]))

    def _conflicted(self, at: float, event: Mapping[str, Any]) -> None:
        count = len(event.get("paths") or ())
        self._set(at, event, conflicts=self._of(at, event).conflicts + count)

    def _landed(self, at: float, event: Mapping[str, Any]) -> None:
        kept = self._remaining.get(_key(event))
        self._set(at, event, landed=event["new"], target=event["target"], kept=kept)

    def _undone(self, at: float, event: Mapping[str, Any]) -> None:
        self._set(at, event, landed=None, kept=None)

    def _settled(self, at: float, event: Mapping[str, Any]) -> None:
        known = self._of(at, event)
        kept = 0 if event.get("phase") == "DISCARDED" and known.hunks is not None else known.kept
        self._set(at, event, outcome=event["outcome"], kept=kept, **_reasons(known, event))

    def _commanded(self, at: float, event: Mapping[str, Any]) -> None:
        worker = str(event.get("worker") or "")
        numbers = [number for name, number in self._attempts if name == worker]
        if numbers and event["command"] in _DECIDES:
            told = {"worker": worker, "attempt": max(numbers)}
            self._set(at, told, reviewer=(event.get("by") or {}).get("user") or "")

    # What happened to the run.

    def _began(self, at: float, event: Mapping[str, Any]) -> None:
        self._record = replace(self._record, began=at, name=event.get("name") or "")

    def _waits(self, _at: float, event: Mapping[str, Any]) -> None:
        self._record = replace(self._record, outcome=event["report"]["outcome"], ended=None)

    def _ended(self, at: float, event: Mapping[str, Any]) -> None:
        self._record = replace(self._record, outcome=event["report"]["outcome"], ended=at)


def _in_turn(
    entries: Iterable[JournalEntry], kinds: Mapping[str, _Take]
) -> Iterator[tuple[float, JournalEntry, Mapping[str, _Take]]]:
    """Yield entries with the latest time so far: a clock that is set back changes no order."""
    latest = -math.inf
    for entry in entries:
        latest = max(latest, entry.at)
        yield latest, entry, kinds


def _key(told: Mapping[str, Any]) -> _Key:
    return str(told["worker"]), int(told["attempt"])


def _reasons(known: AttemptRecord, told: Mapping[str, Any]) -> dict[str, str]:
    """Return why an attempt ended, as far as this or something before tells it."""
    return {name: told.get(name) or getattr(known, name) for name in ("error", "cause")}


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
