import os
from pathlib import Path

import pytest

from engine.ids import RunId
from engine.messages.events import RunStarted
from engine.messages.questions import RunSummary, Standing
from engine.store.codec import to_json
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore
from engine.store.sqlite.run_store import SCHEMA, STANDING, RunStore


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.make()
    return layout


def list_runs(layout: Layout) -> list[RunSummary]:
    return SqliteStore(layout).runs()


def make(layout: Layout, name: str, *events: object, at: float) -> None:
    path = layout.run_db(RunId(name))
    layout.make(path.parent)
    with RunStore.create(path, plan_json="{}", core_version=1, meta={}) as store:
        for step, event in enumerate(events):
            store.append([], [(type(event).__name__, to_json(event))], at=at + step)


def began() -> RunStarted:
    return RunStarted(name="fix", steps=("a",), workers=("a/worker_1",), cap=1)


def test_a_run_that_cannot_be_read_hides_no_other(layout: Layout):
    make(layout, "good", began(), at=100)
    make(layout, "odd", at=100)
    layout.make(layout.run(RunId("empty")))
    layout.make(layout.run(RunId("torn")))
    layout.run_db(RunId("torn")).write_bytes(os.urandom(10_000))
    (layout.runs / "stray-file").touch()
    make(layout, "mangled", began(), at=100)
    with RunStore.open(layout.run_db(RunId("mangled"))) as store:
        store.append([], [("RunFinished", "{")], at=1)
    standings = {run.id: run.standing for run in list_runs(layout)}
    assert standings == {
        "good": Standing.UNFINISHED,
        "odd": Standing.UNFINISHED,
        "empty": Standing.UNREADABLE,
        "torn": Standing.UNREADABLE,
        "mangled": Standing.UNREADABLE,
    }
    problems = {run.id: run.problem for run in list_runs(layout) if run.problem}
    assert "there is no run" in problems["empty"]
    assert "malformed JSON" in problems["mangled"]


def test_no_runs_are_no_problem(tmp_path: Path):
    assert list_runs(Layout(tmp_path)) == []


def test_a_long_run_is_summed_up_from_the_index(layout: Layout):
    make(layout, "long", began(), at=1)
    with RunStore.open(layout.run_db(RunId("long"))) as store:
        plan = store._database.rows(
            f"EXPLAIN QUERY PLAN SELECT seq FROM event WHERE {STANDING} ORDER BY seq DESC LIMIT 1"  # noqa: S608
        )
    assert "event_standing" in plan[0][-1]
    assert SCHEMA.version == 1
