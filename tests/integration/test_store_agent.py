from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.store.agent_store import AgentRow, AgentStore, Table, write_down


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    with AgentStore.open(tmp_path / "agent.db") as opened:
        yield opened


def said(offset: int | None, text: str = "1", table: Table = Table.EVENTS) -> AgentRow:
    return AgentRow(table=table, at=1.5, kind="Said", json=text, offset=offset)


def test_rows_are_kept_with_how_far_was_read(store: AgentStore, tmp_path: Path):
    assert store.parsed_offset(1) == 0
    assert store.record(1, 30, [said(0, "a"), said(10, "b"), said(10, "c", Table.USAGE)]) == 3
    store.close()
    with AgentStore.open(tmp_path / "agent.db", read_only=True) as again:
        assert again.parsed_offset(1) == 30
        assert list(again.rows(Table.EVENTS)) == [
            (1, 1, 0, 1.5, "Said", "a"),
            (2, 1, 10, 1.5, "Said", "b"),
        ]
        assert again.latest(Table.USAGE, attempt=1) == (1, 1, 10, 1.5, "Said", "c")
        assert again.latest(Table.USAGE, attempt=2) is None


def test_what_is_written_down_at_once_is_as_if_it_had_been_recorded(tmp_path: Path):
    path = tmp_path / "agent.db"
    for _ in range(2):
        write_down(path, 1, 30, [said(0), said(10)])
    write_down(path, 2, 5, [said(None)])
    with AgentStore.open(path) as kept:
        assert [(row.attempt, row.offset) for row in kept.rows(Table.EVENTS)] == [
            *((1, 0), (1, 10), (2, None))
        ]
        assert path.with_name("agent.db-wal").exists()
        write_down(path.with_name("other.db"), 1, 0, [])
        kept.record(2, 9, [])
        assert (kept.parsed_offset(1), kept.parsed_offset(2)) == (30, 9)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.db", "other.db"]
    with pytest.raises(StoreError, match="cannot be written"):
        write_down(tmp_path / "missing" / "agent.db", 1, 0, [])


def test_a_replay_counts_no_line_twice(store: AgentStore):
    store.record(1, 30, [said(0), said(10)])
    assert store.record(1, 30, [said(0), said(10)]) == 0
    assert store.record(1, 50, [said(10), said(30)]) == 1
    assert store.record(1, 20, []) == 0
    assert store.parsed_offset(1) == 50
    assert [row.offset for row in store.rows(Table.EVENTS)] == [0, 10, 30]


def test_what_comes_from_no_recording_is_always_new(store: AgentStore):
    store.record(1, 30, [])
    assert store.record(1, 0, [said(None, table=Table.NOTES)]) == 1
    assert store.parsed_offset(1) == 30


def test_attempts_are_kept_apart(store: AgentStore):
    store.record(1, 30, [said(0, "a")])
    store.record(2, 10, [said(0, "b")])
    store.record(1, 40, [said(30, "c")])
    assert (store.parsed_offset(1), store.parsed_offset(2)) == (40, 10)
    assert [row.json for row in store.rows(Table.EVENTS, attempt=1)] == ["a", "c"]
    assert [row.json for row in store.rows(Table.EVENTS, after=1)] == ["b", "c"]


def test_a_long_table_is_read_page_by_page(store: AgentStore):
    store.record(1, 5_000, [said(offset, str(offset)) for offset in range(2_500)])
    assert [int(row.json) for row in store.rows(Table.EVENTS, attempt=1, after=1)] == list(
        range(1, 2_500)
    )


def test_samples_are_a_ring(tmp_path: Path):
    with AgentStore.open(tmp_path / "agent.db", samples_kept=3) as store:
        for number in range(10):
            store.record(1, 0, [said(None, str(number), Table.SAMPLES)])
        store.record(1, 0, [said(None)] * 5)
        assert [row.json for row in store.rows(Table.SAMPLES)] == ["7", "8", "9"]
        assert len(list(store.rows(Table.EVENTS))) == 5
        store.prune_samples(1)
        assert [(row.id, row.json) for row in store.rows(Table.SAMPLES)] == [(10, "9")]
        with pytest.raises(ValueError, match="keep must be at least 1"):
            store.prune_samples(0)


def test_rows_and_offset_go_in_together_or_not_at_all(store: AgentStore):
    bad = AgentRow(at=1.0, kind="Said", json=None, offset=40)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="NOT NULL"):
        store.record(1, 50, [said(0), bad])
    assert store.parsed_offset(1) == 0
    assert list(store.rows(Table.EVENTS)) == []


def test_a_missing_or_cut_off_database_is_made_but_not_to_read(tmp_path: Path):
    path = tmp_path / "agent.db"
    with pytest.raises(StoreError, match="there is no worker's database"):
        AgentStore.open(path, read_only=True)
    path.touch()
    AgentStore.open(path).close()
    AgentStore.open(path, read_only=True).close()


def test_a_run_is_no_workers_database(tmp_path: Path):
    path = tmp_path / "agent.db"
    path.write_bytes(b"something else" * 999)
    with pytest.raises(StoreError, match="not a database"):
        AgentStore.open(path)
