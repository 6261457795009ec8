"""A journal becomes rows, whole or piece by piece."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from engine.history.seam import RunOrigin
from engine.history.tally import Tally, uid_of
from engine.ids import RunId
from engine.store.store import JournalEntry

RUN = RunId("a1b2c3")
ORIGIN = RunOrigin(repository="r", person="Ada", host="h")
PLAN = {
    "name": "fix",
    "steps": [
        {"workers": [{"id": "write/worker_1", "agent": {"name": "claude", "model": "large"}}]}
    ],
}
W = {"worker": "write/worker_1", "attempt": 1}
SECOND = {**W, "attempt": 2}
CHANGE = {"files": 2, "insertions": 9, "deletions": 1, "hunks": 7}


def numbered(*told: tuple[float, str, dict[str, Any]]) -> list[JournalEntry]:
    return [
        JournalEntry(n, at, kind, json.dumps(body)) for n, (at, kind, body) in enumerate(told, 1)
    ]


def moved(
    at: float, who: dict[str, Any], before: str, after: str
) -> tuple[float, str, dict[str, Any]]:
    return at, "WorkerMoved", {**who, "before": before, "after": after}


FACTS = numbered(
    (2.0, "WorkspaceReady", {**W, "prompt": "do it"}),
    (3.0, "AttemptEnded", {**W, "error": "gone", "usage": {"usd": 0.5, "input_tokens": 3}}),
    (5.0, "RetryRequested", {**W, "agent": {"name": "codex", "model": None}}),
    (6.0, "WorkspaceReady", {**SECOND, "prompt": "again"}),
    (7.0, "AttemptEnded", {**SECOND, "usage": None}),
    (7.5, "Collected", {**SECOND, "change": CHANGE}),
    (9.0, "HunksLeftOut", {**SECOND, "hunks": ["a", "b"], "change": {"hunks": 5}}),
    (9.1, "SomethingNew", {"x": 1}),
)
EVENTS = numbered(
    (1.0, "RunStarted", {"name": "fix", "workers": ["write/worker_1"]}),
    moved(1.0, {**W, "attempt": 0}, "WAITING", "QUEUED"),
    moved(1.5, W, "QUEUED", "PREPARING"),
    moved(3.0, W, "RUNNING", "COLLECTING"),
    moved(3.5, W, "COLLECTING", "BACKING_OFF"),
    moved(5.5, SECOND, "QUEUED", "PREPARING"),
    (7.6, "CheckFinished", {**SECOND, "check": {"passed": False}}),
    moved(8.0, SECOND, "CHECKING", "REVIEWING"),
    (8.5, "CheckFinished", {**SECOND, "check": {"passed": True}}),
    (9.5, "Commanded", {"command": "Land", "worker": W["worker"], "by": {"user": "ada"}}),
    moved(10.0, SECOND, "REVIEWING", "LANDING"),
    (10.5, "ConflictsFound", {**SECOND, "paths": ["x", "y"]}),
    moved(10.5, SECOND, "LANDING", "CONFLICTED"),
    moved(12.0, SECOND, "CONFLICTED", "LANDING"),
    (12.5, "Landed", {**SECOND, "target": "main", "old": "0", "new": "c0ffee"}),
    (12.5, "WorkerSettled", {**SECOND, "phase": "LANDED", "outcome": "success", "error": None}),
    (13.0, "RunFinished", {"report": {"outcome": "success"}}),
    (14.0, "SomethingNew", {}),
)


def tally() -> Tally:
    return Tally(RUN, json.dumps(PLAN), {"started": "0.5"}, ORIGIN)


def test_attempts_are_told_by_what_happened_to_them():
    read = tally()
    read.take(FACTS, EVENTS)
    first, second = read.attempts
    assert (first.agent, first.model, first.prompt, first.outcome) == (
        *("claude", "large", "do it"),
        "failed",
    )
    assert (first.usd, first.tokens, first.error, first.began, first.ended) == (
        *(0.5, 3, "gone"),
        *(1.5, 3.0),
    )
    assert (second.agent, second.prompt, second.outcome) == ("codex", "again", "success")
    assert (second.usd, second.tokens, second.check_passed) == (None, None, False)
    assert (second.files, second.insertions, second.left_out, second.conflicts) == (2, 9, 2, 2)
    assert (second.hunks, second.kept, first.hunks, first.kept) == (7, 5, None, None)
    assert second.review_s == pytest.approx(2.0 + 1.5)
    assert (second.reviewer, second.target, second.landed) == ("ada", "main", "c0ffee")
    assert (read.record.outcome, read.record.ended, read.seq) == ("success", 13.0, len(EVENTS))
    assert read.is_ended


def test_a_landing_that_was_taken_back_is_none():
    read = tally()
    undone = json.dumps({**SECOND, "target": "main"})
    read.take(FACTS, [*EVENTS, JournalEntry(len(EVENTS) + 1, 15.0, "LandingUndone", undone)])
    assert (read.attempts[1].landed, read.attempts[1].hunks, read.attempts[1].kept) == (
        *(None, 7),
        None,
    )


DISCARDED = {**SECOND, "phase": "DISCARDED", "outcome": "success", "error": None}


def test_of_a_change_that_was_given_up_no_hunk_is_kept():
    read = tally()
    told = (1.5, "WorkerSettled", DISCARDED)
    read.take(numbered((1.0, "Collected", {**SECOND, "change": CHANGE})), numbered(told))
    assert (read.attempts[0].hunks, read.attempts[0].kept) == (7, 0)


def test_hunks_that_nobody_counted_are_neither_kept_nor_given_up():
    read, counted = tally(), {**CHANGE, "hunks": None}
    read.take(
        numbered((1.0, "Collected", {**SECOND, "change": counted})),
        numbered((1.5, "WorkerSettled", DISCARDED)),
    )
    assert (read.attempts[0].hunks, read.attempts[0].kept) == (None, None)


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_jumps_changes_no_order_and_takes_no_time_back(jump: float):
    """It jumps between the change and its landing."""
    straight, jumped = tally(), tally()
    straight.take(FACTS, EVENTS)
    facts, events = (
        [entry._replace(at=entry.at + (jump if entry.at > 8.2 else 0)) for entry in entries]
        for entries in (FACTS, EVENTS)
    )
    jumped.take(facts, events)
    for one, other in zip(jumped.attempts, straight.attempts, strict=True):
        assert one.review_s >= 0
        times = {"began": 0.0, "ended": None, "week": "", "review_s": 0.0}
        assert replace(one, **times) == replace(other, **times)


@pytest.mark.parametrize("seed", range(20))
def test_a_journal_read_in_pieces_comes_to_the_same(seed: int):
    whole, pieces = tally(), tally()
    whole.take(FACTS, EVENTS)
    random, at = Random(seed), 0.0
    while at < 15:
        before, at = at, at + random.random() * 3
        pieces.take(
            [fact for fact in FACTS if before <= fact.at < at],
            [event for event in EVENTS if before <= event.at < at],
        )
    assert pieces.attempts == whole.attempts
    assert pieces.record == whole.record


def test_a_name_in_all_the_world_is_that_of_the_journal():
    assert uid_of(RUN, "{}", {}) == uid_of(RUN, "{}", {"other": "x"})
    others = {
        uid_of(RunId("ffffff"), "{}", {}),
        uid_of(RUN, "[]", {}),
        uid_of(RUN, "{}", {"project": "p"}),
        uid_of(RUN, "{}", {"started": "1"}),
    }
    assert len(others | {uid_of(RUN, "{}", {})}) == 5
