import json
import os
from pathlib import Path

import pytest

from engine.ids import RunId
from engine.messages.events import RunFinished, RunStarted, RunWaiting, WorkerMoved
from engine.messages.questions import Standing
from engine.messages.results import Outcome, RunReport
from engine.phases import Phase
from engine.store.codec import to_json
from engine.store.history import list_runs
from engine.store.layout import Layout
from engine.store.run_store import SCHEMA, STANDING, RunStore


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.make()
    return layout


def make(layout: Layout, name: str, *events: object, at: float) -> None:
    path = layout.run_db(RunId(name))
    layout.make(path.parent)
    with RunStore.create(path, plan_json="{}", core_version=1, meta={}) as store:
        for step, event in enumerate(events):
            store.append([], [(type(event).__name__, to_json(event))], at=at + step)


def began() -> RunStarted:
    return RunStarted(name="fix", steps=("a",), workers=("a/worker_1",), cap=1)


def moved() -> WorkerMoved:
    return WorkerMoved(worker="a/worker_1", attempt=1, before=Phase.WAITING, after=Phase.QUEUED)


def report(outcome: Outcome) -> RunReport:
    return RunReport(run="r", name="fix", outcome=outcome, steps={})


def test_runs_are_listed_newest_first_with_how_they_stand(layout: Layout):
    done = RunFinished(report=report(Outcome.SUCCESS))
    waits = RunWaiting(report=report(Outcome.PENDING))
    make(layout, "done", began(), moved(), waits, moved(), done, at=100)
    make(layout, "waits", began(), moved(), waits, at=200)
    make(layout, "goes-on", began(), waits, moved(), at=300)
    make(layout, "retried", began(), done, moved(), at=400)
    make(layout, "new", began(), at=500)
    runs = list_runs(layout)
    assert [(run.id, run.started, run.standing, run.verdict) for run in runs] == [
        ("new", 500, Standing.UNFINISHED, None),
        ("retried", 400, Standing.UNFINISHED, "success"),
        ("goes-on", 300, Standing.UNFINISHED, "pending"),
        ("waits", 200, Standing.WAITING, "pending"),
        ("done", 100, Standing.FINISHED, "success"),
    ]
    assert {run.name for run in runs} == {"fix"}
    assert runs[-1].last == 104


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


def test_a_living_run_is_listed_too(layout: Layout):
    path = layout.run_db(RunId("live"))
    layout.make(path.parent)
    with RunStore.create(path, plan_json="{}", core_version=1, meta={}) as store:
        store.append([], [("RunStarted", json.dumps({"name": "x"}))], at=5)
        (run,) = list_runs(layout)
    assert (run.started, run.name, run.standing) == (5, "x", Standing.UNFINISHED)


def test_a_long_run_is_summed_up_from_the_index(layout: Layout):
    make(layout, "long", began(), at=1)
    with RunStore.open(layout.run_db(RunId("long"))) as store:
        plan = store._database.rows(
            f"EXPLAIN QUERY PLAN SELECT seq FROM event WHERE {STANDING} ORDER BY seq DESC LIMIT 1"  # noqa: S608
        )
    assert "event_standing" in plan[0][-1]
    assert SCHEMA.version == 1
