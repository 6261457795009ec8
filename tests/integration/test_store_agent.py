from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.store.sqlite.agent_store import SCHEMA, AgentStore
from engine.store.sqlite.database import Database
from engine.store.store import AgentRow, Table


@pytest.fixture
def store(tmp_path: Path) -> AgentStore:
    return AgentStore(tmp_path / "agent.db")


def said(offset: int | None, text: str = "1", table: Table = Table.EVENTS) -> AgentRow:
    return AgentRow(table=table, at=1.5, kind="Said", json=text, offset=offset)


def test_a_first_record_is_laid_down_whole_and_a_later_one_finds_a_log(
    store: AgentStore, tmp_path: Path
):
    path = tmp_path / "agent.db"
    for _ in range(2):
        store.record(1, 30, [said(0), said(10)])
    store.record(2, 5, [said(None)])
    with closing(Database.open(path, SCHEMA)) as kept:
        assert [(row.attempt, row.offset) for row in store.rows(Table.EVENTS)] == [
            *((1, 0), (1, 10), (2, None))
        ]
        assert path.with_name("agent.db-wal").exists()
        AgentStore(path.with_name("other.db")).record(1, 0, [])
        store.record(2, 9, [])
        assert kept.rows("SELECT offset FROM parsed ORDER BY attempt") == [(30,), (9,)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.db", "other.db"]
    with pytest.raises(StoreError, match="cannot be written"):
        AgentStore(tmp_path / "missing" / "agent.db").record(1, 0, [])


def test_samples_are_a_ring(tmp_path: Path):
    store = AgentStore(tmp_path / "agent.db", samples_kept=3)
    for number in range(10):
        store.record(1, 0, [said(None, str(number), Table.SAMPLES)])
    store.record(1, 0, [said(None)] * 5)
    assert [(row.id, row.json) for row in store.rows(Table.SAMPLES)] == [
        *((8, "7"), (9, "8"), (10, "9"))
    ]
    assert len(store.rows(Table.EVENTS)) == 5


def test_a_missing_or_cut_off_database_is_made_but_not_to_read(store: AgentStore, tmp_path: Path):
    path = tmp_path / "agent.db"
    with pytest.raises(StoreError, match="there is no worker's database"):
        store.rows(Table.EVENTS)
    path.touch()
    store.record(1, 0, [])
    assert store.rows(Table.EVENTS) == []


def test_a_run_is_no_workers_database(store: AgentStore, tmp_path: Path):
    (tmp_path / "agent.db").write_bytes(b"something else" * 999)
    with pytest.raises(StoreError, match="not a database"):
        store.record(1, 0, [])
    with pytest.raises(StoreError, match="not a database"):
        store.rows(Table.EVENTS)
