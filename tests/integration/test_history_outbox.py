"""A journal that nobody can read is named, and keeps no other from being delivered."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from engine.history.outbox import Outbox
from engine.history.seam import Query, RunOrigin
from engine.history.sqlite import SqliteHistory
from engine.ids import RunId
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore

ORIGIN = RunOrigin(repository="r", person="p", host="h")
MOVED = '{"worker": "a/worker_1", "attempt": 1, "before": "QUEUED", "after": "PREPARING"}'
DEEP = "[" * 100_000 + "]" * 100_000
ODD = {
    "01dd01": "{",
    "01dd02": "[]",
    "01dd03": MOVED.replace(": 1,", ': "x",'),
    "01dd04": DEEP,
}
"""Moves of workers that no plait has written."""


def make(store: SqliteStore, run: str, moved: str, at: float = 5.0) -> None:
    made = store.create(RunId(run), plan_json="{}", core_version=1, meta={"started": "1"})
    with made as journal:
        journal.append([], [("WorkerMoved", moved)], at=at)


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    layout = Layout(tmp_path)
    layout.make()
    history = SqliteHistory(tmp_path / "history.db")
    return Outbox(SqliteStore(layout), history, ORIGIN, layout, lambda _: True)


def test_journals_that_cannot_be_read_are_named_and_the_others_delivered(outbox: Outbox):
    store = outbox.store
    assert isinstance(store, SqliteStore)
    make(store, "0a0a01", MOVED)
    for run, moved in ODD.items():
        make(store, run, moved)
    make(store, "01dd05", MOVED, at=1e300)
    make(store, "ffff01", MOVED)
    outbox.layout.make(outbox.layout.run(RunId("70a401")))
    outbox.layout.run_db(RunId("70a401")).write_bytes(os.urandom(10_000))
    with closing(outbox.history):
        for _ in range(2):
            delivered = outbox.deliver_all()
            named = sorted(problem.partition(":")[0] for problem in delivered.unread)
            assert named == sorted([*ODD, "01dd05", "70a401"])
            assert not delivered.refused
        found = {hit.run.run for hit in outbox.history.search(Query())}
    assert {"0a0a01", "ffff01"} == found
