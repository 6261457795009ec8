"""Summaries of runs that are kept: never another answer than that of the journals themselves."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from engine.ids import RunId
from engine.messages.events import RunFinished, RunStarted, WorkerMoved
from engine.messages.questions import RunSummary, Standing
from engine.messages.results import Outcome, RunReport
from engine.phases import Phase
from engine.store.codec import to_json
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore, summaries

MOVED = WorkerMoved(worker="a/worker_1", attempt=1, before=Phase.WAITING, after=Phase.QUEUED)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.make()
    return made


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the runs whose journals were opened for a summary."""
    found: list[str] = []
    read = SqliteStore.__init__.__globals__["_summary"]

    def noted(folder: Path) -> RunSummary:
        found.append(folder.name)
        return read(folder)

    monkeypatch.setitem(SqliteStore.__init__.__globals__, "_summary", noted)
    return found


def make(layout: Layout, name: str, *, title: str = "fix") -> RunId:
    """Make a run that has begun."""
    run = RunId(name)
    with SqliteStore(layout).create(run, plan_json="{}", core_version=1, meta={}) as journal:
        started = RunStarted(name=title, steps=("a",), workers=("a/worker_1",), cap=1)
        journal.append([], [("RunStarted", to_json(started))], at=time.time())
    return run


def go_on(layout: Layout, run: RunId, event: object) -> None:
    with SqliteStore(layout).run(run) as journal:
        journal.append([], [(type(event).__name__, to_json(event))], at=time.time())


def finished(run: RunId, outcome: Outcome = Outcome.SUCCESS) -> RunFinished:
    return RunFinished(report=RunReport(run=run, name="fix", outcome=outcome, steps={}))


def settle(monkeypatch: pytest.MonkeyPatch, settled_ns: int = -(1 << 60)) -> None:
    """Let all that was written count as written long ago."""
    monkeypatch.setattr(summaries, "_SETTLED_NS", settled_ns)


def truth(layout: Layout) -> list[RunSummary]:
    """Return what the journals themselves say."""
    folders = [layout.run(run) for run in SqliteStore(layout).names()]
    fresh = [SqliteStore.__init__.__globals__["_summary"](folder) for folder in folders]
    return sorted(fresh, key=lambda run: (run.started, run.id), reverse=True)


def test_what_is_kept_is_read_by_the_next_process(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, opened: list[str]
):
    settle(monkeypatch)
    runs = {make(layout, name) for name in ("aa", "bb", "cc")}
    go_on(layout, RunId("bb"), finished(RunId("bb")))
    store = SqliteStore(layout)
    store.keep_summaries()
    assert set(opened) == runs
    opened.clear()
    assert SqliteStore(layout).runs() == store.runs()
    assert opened == []
    assert {run.standing for run in store.runs()} == {Standing.FINISHED, Standing.UNFINISHED}
    assert layout.summaries_json.stat().st_mode & 0o077 == 0


def test_a_run_that_goes_on_is_read_again_and_no_other(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, opened: list[str]
):
    settle(monkeypatch)
    for name in ("aa", "bb"):
        make(layout, name)
    store = SqliteStore(layout)
    store.keep_summaries()
    go_on(layout, RunId("aa"), finished(RunId("aa")))
    opened.clear()
    for one in (store, SqliteStore(layout)):
        (found,) = [run for run in one.runs() if run.id == "aa"]
        assert found.standing is Standing.FINISHED
    assert set(opened) == {"aa"}


def test_what_was_just_written_is_not_kept(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, opened: list[str]
):
    """A commit in the same tick of the clock could leave size and time as they were."""
    settle(monkeypatch, 3600 * 10**9)  # however slow this machine is
    make(layout, "aa")
    store = SqliteStore(layout)
    store.keep_summaries()
    assert not layout.summaries_json.exists()
    opened.clear()
    store.runs()
    assert opened == ["aa"]


def test_a_writer_beside_us_is_seen(layout: Layout, monkeypatch: pytest.MonkeyPatch):
    run, store = make(layout, "aa"), SqliteStore(layout)
    settle(monkeypatch)
    with SqliteStore(layout).run(run) as journal:
        for event in (MOVED, finished(run), MOVED, finished(run, Outcome.FAILED)):
            journal.append([], [(type(event).__name__, to_json(event))], at=time.time())
            assert store.runs() == truth(layout)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[]",
        b'{"form": 1}',
        b'{"form": 1, "runs": []}',
        b'{"form": 1, "runs": {"aa": []}}',
        b'{"form": 1, "runs": {"aa": [[1], 1.0, "odd", null, "", null]}}',
        b'{"form": 1, "runs": {"aa": [[1], "x", "finished", null, "", null]}}',
        b'{"form": 0, "runs": {"aa": [[1], 1.0, "finished", null, "", null]}}',
    ],
)
def test_a_note_that_is_damaged_or_of_another_form_is_no_note(layout: Layout, said: bytes):
    make(layout, "aa")
    layout.summaries_json.write_bytes(said)
    assert SqliteStore(layout).runs() == truth(layout)


def test_a_note_is_believed_only_with_the_stamp_of_the_journal(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
):
    settle(monkeypatch)
    make(layout, "aa", title="true")
    SqliteStore(layout).keep_summaries()
    note = json.loads(layout.summaries_json.read_bytes())
    note["runs"]["aa"][4] = "false"
    layout.summaries_json.write_text(json.dumps(note))
    assert [run.name for run in SqliteStore(layout).runs()] == ["false"]  # so the note is read
    os.utime(layout.run_db(RunId("aa")), (1, 1))  # in one tick now may be what it was
    assert [run.name for run in SqliteStore(layout).runs()] == ["true"]
    note["runs"]["aa"][0][0] += 1
    layout.summaries_json.write_text(json.dumps(note))
    assert [run.name for run in SqliteStore(layout).runs()] == ["true"]


def test_what_cannot_be_read_is_read_again_each_time(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
):
    settle(monkeypatch)
    run, store = make(layout, "aa"), SqliteStore(layout)
    whole = layout.run_db(run).read_bytes()
    layout.run_db(run).write_bytes(b"rubbish" * 100)
    assert [one.standing for one in store.runs()] == [Standing.UNREADABLE]
    store.keep_summaries()
    layout.run_db(run).write_bytes(whole)
    assert store.runs() == SqliteStore(layout).runs() == truth(layout)


def test_a_folder_that_takes_no_note_is_no_failure(layout: Layout, monkeypatch: pytest.MonkeyPatch):
    settle(monkeypatch)
    make(layout, "aa")
    layout.summaries_json.mkdir()
    SqliteStore(layout).keep_summaries()
    assert SqliteStore(layout).runs() == truth(layout)


def test_only_so_many_new_ones_are_read_at_the_end(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, opened: list[str]
):
    settle(monkeypatch)
    monkeypatch.setattr(summaries, "_MOST_NEW", 2)
    names = [f"a{number}" for number in range(5)]
    for name in names:
        make(layout, name)
    for expected in (2, 4, 5, 5):
        SqliteStore(layout).keep_summaries()
        assert len(json.loads(layout.summaries_json.read_bytes())["runs"]) == expected
    assert sorted(opened) == names


@pytest.mark.parametrize("seed", range(6))
def test_stores_that_come_and_go_say_what_the_journals_say(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, seed: int
):
    dice, names = random.Random(seed), ["aa", "bb", "cc", "dd"]
    settle(monkeypatch)
    store = SqliteStore(layout)
    for _ in range(40):
        name = dice.choice(names)
        run, is_there = RunId(name), name in SqliteStore(layout).names()
        match dice.randrange(6):
            case 0 if is_there:
                layout.run(run).rename(layout.trash / f"{name}{time.time_ns()}")
            case 1:
                store = SqliteStore(layout)
            case 2:
                dice.choice([store, SqliteStore(layout)]).keep_summaries()
            case _ if not is_there:
                make(layout, name, title=str(dice.random()))
            case _:
                go_on(layout, run, dice.choice([MOVED, finished(run)]))
        if dice.random() < 0.7:
            assert store.runs() == truth(layout)
    assert store.runs() == SqliteStore(layout).runs() == truth(layout)
