"""Every store keeps these promises: derive from `StoreContract` and give it a store."""

import json
from pathlib import Path

import pytest

from engine.errors import NoSuchRun, StoreError
from engine.ids import RunId, WorkerId
from engine.messages.events import RunFinished, RunStarted, RunWaiting, WorkerMoved
from engine.messages.questions import Standing
from engine.messages.results import Outcome, RunReport
from engine.phases import Phase
from engine.store.codec import to_json
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore, open_copy
from engine.store.store import AgentLog, AgentRow, RunJournal, Store, Table

RUN, OTHER = RunId("a1b2"), RunId("c3d4")
WORKER = WorkerId("implement", 2)
AT = 100.5


def create(store: Store, run: RunId = RUN) -> RunJournal:
    return store.create(run, plan_json='{"p":1}', core_version=7, meta={"name": "fix"})


def pairs(kind: str, *numbers: int) -> list[tuple[str, str]]:
    return [(kind, json.dumps(number)) for number in numbers]


def said(offset: int | None, text: str = "1", table: Table = Table.EVENTS) -> AgentRow:
    return AgentRow(table=table, at=1.5, kind="Said", json=text, offset=offset)


def tell(journal: RunJournal, *events: object, at: float = AT) -> None:
    for step, event in enumerate(events):
        journal.append([], [(type(event).__name__, to_json(event))], at=at + step)


STARTED = RunStarted(name="fix", steps=("a",), workers=("a/worker_1",), cap=1)
MOVED = WorkerMoved(worker="a/worker_1", attempt=1, before=Phase.WAITING, after=Phase.QUEUED)
WAITING = RunWaiting(report=RunReport(run="r", name="fix", outcome=Outcome.PENDING, steps={}))
FINISHED = RunFinished(report=RunReport(run="r", name="fix", outcome=Outcome.SUCCESS, steps={}))


class StoreContract:
    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def log(self, store: Store) -> AgentLog:
        create(store).close()
        return store.agent(RUN, WORKER)

    def test_a_journal_is_read_as_it_was_written(self, store: Store):
        with create(store) as journal:
            assert journal.append(pairs("Fact", 1, 2), pairs("Event", 10), at=1.5) == [1]
            assert journal.append([], pairs("Event", 20, 30), at=2.5, durable=True) == [2, 3]
            assert journal.append(pairs("Fact", 3), [], at=3.5) == []
        for is_read_only in (True, False):
            with store.run(RUN, read_only=is_read_only) as again:
                assert (again.plan_json, again.core_version) == ('{"p":1}', 7)
                assert again.meta == {"name": "fix"}
                assert list(again.facts()) == [
                    (1, 1.5, "Fact", "1"),
                    (2, 1.5, "Fact", "2"),
                    (3, 3.5, "Fact", "3"),
                ]
                assert list(again.events(after=1)) == [
                    (2, 2.5, "Event", "20"),
                    (3, 2.5, "Event", "30"),
                ]

    def test_a_journal_goes_on_where_it_ended(self, store: Store):
        with create(store) as journal:
            journal.append(pairs("Fact", 1), pairs("Event", 1, 2), at=1)
        with store.run(RUN) as journal:
            assert journal.append(pairs("Fact", 2), pairs("Event", 3), at=2) == [3]
            assert [fact.seq for fact in journal.facts()] == [1, 2]

    def test_facts_and_events_go_in_together_or_not_at_all(self, store: Store):
        with create(store) as journal:
            bad: list[tuple[str, str]] = [("Event", "1"), ("Event", None)]  # type: ignore[list-item]
            with pytest.raises(StoreError):
                journal.append(pairs("Fact", 1), bad, at=1)
            assert (list(journal.facts()), list(journal.events())) == ([], [])
            assert journal.append(pairs("Fact", 2), pairs("Event", 2), at=2) == [1]

    def test_a_reader_sees_what_the_writer_commits_and_writes_nothing(self, store: Store):
        with create(store) as journal, store.run(RUN, read_only=True) as reader:
            journal.append(pairs("Fact", 1), pairs("Event", 1), at=1)
            assert [fact.json for fact in reader.facts()] == ["1"]
            with pytest.raises(StoreError):
                reader.append(pairs("Fact", 2), [], at=2)
            assert [fact.json for fact in journal.facts()] == ["1"]

    def test_entries_may_be_read_while_others_are_written(self, store: Store):
        with create(store) as journal:
            journal.append([], pairs("Event", *range(2_500)), at=0)
            reading = journal.events()
            assert next(reading).seq == 1
            journal.append([], pairs("Event", 2_500), at=0)
            assert [event.seq for event in reading] == list(range(2, 2_502))

    def test_a_run_is_never_created_over(self, store: Store):
        with create(store) as journal:
            journal.append(pairs("Fact", 1), [], at=1)
            with pytest.raises(StoreError):
                create(store)
            assert [fact.json for fact in journal.facts()] == ["1"]

    @pytest.mark.parametrize("name", ["a1b2", "", "..", "a/b"])
    def test_a_run_that_is_not_there_is_no_such_run(self, store: Store, name: str):
        create(store, OTHER).close()
        for opening in (store.run, store.stamp):
            with pytest.raises(NoSuchRun):
                opening(RunId(name))

    def test_a_stamp_changes_with_every_append_and_with_nothing_else(self, store: Store):
        with create(store) as journal:
            seen = [store.stamp(RUN)]
            for number in range(3):
                journal.append(pairs("Fact", number), [], at=1)
                seen.append(store.stamp(RUN))
                with store.run(RUN, read_only=True) as reader:
                    assert len(list(reader.facts())) == number + 1
                assert store.stamp(RUN) == seen[-1]
        assert len(set(seen)) == len(seen)

    def test_a_copy_can_be_carried_away(self, store: Store, tmp_path: Path):
        path = tmp_path / "copy.db"
        with create(store) as journal:
            journal.append(pairs("Fact", 1), pairs("Event", 1, 2), at=1.5)
            journal.copy(path, {"log/a": "\x00é", "run": RUN})
            assert not tmp_path.joinpath("copy.db-wal").exists()
            with open_copy(path) as copy:
                assert copy.kept() == {"log/a": "\x00é", "run": RUN}
                assert (copy.plan_json, copy.core_version) == ('{"p":1}', 7)
                assert copy.meta == {"name": "fix"}
                assert list(copy.facts()) == list(journal.facts())
                assert list(copy.events()) == list(journal.events())

    def test_runs_are_listed_newest_first_with_how_they_stand(self, store: Store):
        assert store.runs() == []
        for name, at, events in (
            ("done", 100, (STARTED, MOVED, WAITING, MOVED, FINISHED)),
            ("waits", 200, (STARTED, MOVED, WAITING)),
            ("goes-on", 300, (STARTED, WAITING, MOVED)),
            ("retried", 400, (STARTED, FINISHED, MOVED)),
            ("new", 500, (STARTED,)),
        ):
            with create(store, RunId(name)) as journal:
                tell(journal, *events, at=at)
        runs = store.runs()
        assert [(run.id, run.started, run.standing, run.verdict) for run in runs] == [
            ("new", 500, Standing.UNFINISHED, None),
            ("retried", 400, Standing.UNFINISHED, "success"),
            ("goes-on", 300, Standing.UNFINISHED, "pending"),
            ("waits", 200, Standing.WAITING, "pending"),
            ("done", 100, Standing.FINISHED, "success"),
        ]
        assert {run.name for run in runs} == {"fix"}
        assert runs[-1].last == 104

    def test_a_living_run_is_listed_too(self, store: Store):
        with create(store) as journal:
            tell(journal, STARTED)
            (run,) = store.runs()
        assert (run.id, run.started, run.name) == (RUN, AT, "fix")

    def test_a_run_that_cannot_be_read_hides_no_other(self, store: Store):
        with create(store) as journal:
            tell(journal, STARTED)
        with create(store, OTHER) as journal:
            tell(journal, STARTED)
            journal.append([], [("RunFinished", "{")], at=AT)
        standings = {run.id: run.standing for run in store.runs()}
        assert standings == {RUN: Standing.UNFINISHED, OTHER: Standing.UNREADABLE}

    def test_rows_are_kept_with_how_far_was_read(self, store: Store, log: AgentLog):
        log.record(1, 30, [said(0, "a"), said(10, "b"), said(10, "c", Table.USAGE)])
        again = store.agent(RUN, WORKER)
        assert again.parsed_offset(1) == 30
        assert again.rows(Table.EVENTS) == [
            (1, 1, 0, 1.5, "Said", "a"),
            (2, 1, 10, 1.5, "Said", "b"),
        ]
        assert again.rows(Table.USAGE) == [(1, 1, 10, 1.5, "Said", "c")]

    def test_a_replay_counts_no_line_twice(self, log: AgentLog):
        log.record(1, 30, [said(0), said(10)])
        log.record(1, 30, [said(0), said(10)])
        assert [row.offset for row in log.rows(Table.EVENTS)] == [0, 10]
        log.record(1, 50, [said(10), said(30)])
        log.record(1, 20, [])
        assert log.parsed_offset(1) == 50
        assert [row.offset for row in log.rows(Table.EVENTS)] == [0, 10, 30]

    def test_what_comes_from_no_recording_is_always_new(self, log: AgentLog):
        log.record(1, 30, [])
        log.record(1, 0, [said(None, table=Table.NOTES)])
        assert len(log.rows(Table.NOTES)) == 1
        assert log.parsed_offset(1) == 30

    def test_attempts_and_workers_are_kept_apart(self, store: Store, log: AgentLog):
        log.record(1, 30, [said(0, "a")])
        log.record(2, 10, [said(0, "b")])
        log.record(1, 40, [said(30, "c")])
        store.agent(RUN, WorkerId("implement", 1)).record(1, 7, [said(0, "d")])
        assert (log.parsed_offset(1), log.parsed_offset(2), log.parsed_offset(3)) == (40, 10, 0)
        assert [row.json for row in log.rows(Table.EVENTS, attempt=1)] == ["a", "c"]
        assert [row.json for row in log.rows(Table.EVENTS)] == ["a", "b", "c"]

    def test_rows_and_offset_go_in_together_or_not_at_all(self, log: AgentLog):
        log.record(1, 10, [])
        bad = AgentRow(at=1.0, kind="Said", json=None, offset=40)  # type: ignore[arg-type]
        with pytest.raises(StoreError):
            log.record(1, 50, [said(10), bad])
        assert log.parsed_offset(1) == 10
        assert log.rows(Table.EVENTS) == []

    def test_a_long_log_is_read_whole(self, log: AgentLog):
        log.record(1, 5_000, [said(offset, str(offset)) for offset in range(2_500)])
        assert [int(row.json) for row in log.rows(Table.EVENTS, attempt=1)] == list(range(2_500))

    def test_a_worker_of_which_nothing_was_recorded_cannot_be_read(self, log: AgentLog):
        with pytest.raises(StoreError):
            log.rows(Table.EVENTS)
        with pytest.raises(StoreError):
            log.parsed_offset(1)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def layout(self, tmp_path: Path) -> Layout:
        layout = Layout(tmp_path)
        layout.make()
        return layout

    @pytest.fixture
    def store(self, layout: Layout) -> Store:
        return SqliteStore(layout)

    @pytest.fixture
    def log(self, store: Store, layout: Layout) -> AgentLog:
        create(store).close()
        for number in (1, 2):  # an attempt's folder is there before its first row
            layout.make(layout.worker(RUN, WorkerId("implement", number)))
        return store.agent(RUN, WORKER)
