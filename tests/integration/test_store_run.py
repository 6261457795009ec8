import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StoreError
from engine.store.sqlite.database import Database, Schema
from engine.store.sqlite.run_store import RunStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a folder?#%" / "run.db"


@pytest.fixture
def store(path: Path) -> Iterator[RunStore]:
    path.parent.mkdir()
    with create(path) as made:
        yield made


def create(path: Path) -> RunStore:
    return RunStore.create(path, plan_json='{"p":1}', core_version=7, meta={"name": "fix"})


def pairs(kind: str, *numbers: int) -> list[tuple[str, str]]:
    return [(kind, json.dumps(number)) for number in numbers]


def kept(store: RunStore) -> tuple[list[str], list[str]]:
    return [fact.json for fact in store.facts()], [event.json for event in store.events()]


def test_what_is_appended_is_there_when_it_is_opened_again(store: RunStore, path: Path):
    assert store.append(pairs("Fact", 1, 2), pairs("Event", 10), at=1.5) == [1]
    assert store.append([], pairs("Event", 20, 30), at=2.5, durable=True) == [2, 3]
    assert store.append(pairs("Fact", 3), [], at=3.5) == []
    store.close()
    with RunStore.open(path) as again:
        assert (again.plan_json, again.core_version, again.meta) == ('{"p":1}', 7, {"name": "fix"})
        assert list(again.facts()) == [
            (1, 1.5, "Fact", "1"),
            (2, 1.5, "Fact", "2"),
            (3, 3.5, "Fact", "3"),
        ]
        assert [tuple(event) for event in again.events(after=1)] == [
            (2, 2.5, "Event", "20"),
            (3, 2.5, "Event", "30"),
        ]
        assert again.append([], pairs("Event", 40), at=4.5) == [4]


def test_a_batch_goes_in_whole_or_not_at_all(store: RunStore):
    store.append(pairs("Fact", 1), pairs("Event", 1), at=1)
    bad: Any = [("Event", "2"), ("Event", None)]
    with pytest.raises(StoreError, match="NOT NULL"):
        store.append(pairs("Fact", 2), bad, at=2)
    assert kept(store) == (["1"], ["1"])
    assert store.append(pairs("Fact", 3), pairs("Event", 3), at=3) == [2]


def test_entries_may_be_read_while_others_are_written(store: RunStore):
    for start in range(0, 3_000, 500):
        store.append([], pairs("Event", *range(start, start + 500)), at=0)
    reading = store.events()
    assert next(reading).seq == 1
    store.append([], pairs("Event", 3_000), at=0)
    assert [event.seq for event in reading] == list(range(2, 3_002))


def test_a_reader_sees_what_the_writer_commits(store: RunStore, path: Path):
    with RunStore.open(path, read_only=True) as reader:
        assert kept(reader) == ([], [])
        store.append(pairs("Fact", 1), pairs("Event", 1), at=1)
        assert kept(reader) == (["1"], ["1"])
        with pytest.raises(StoreError) as caught:
            reader.append(pairs("Fact", 2), [], at=2)
        assert "is read-only here" in caught.value.hint
    assert kept(store) == (["1"], ["1"])


def test_a_closed_journal_can_be_read_in_a_folder_that_may_not_be_written(
    store: RunStore, path: Path
):
    store.append(pairs("Fact", 1), [], at=1)
    store.close()
    script = (
        "import os, sys; from pathlib import Path\n"
        "from engine.store.sqlite.run_store import RunStore\n"
        "os.geteuid() or os.setuid(65534)\n"
        "store = RunStore.open(Path(sys.argv[1]), read_only=True)\n"
        "print([fact.json for fact in store.facts()])\n"
    )
    readable = Path("/tmp") / f"plait-store-{os.getpid()}"  # noqa: S108 - others cannot enter tmp_path
    readable.mkdir(mode=0o755)
    try:
        shutil.copy(path, readable / "run.db")
        (readable / "run.db").chmod(0o444)
        readable.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", script, readable / "run.db"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        readable.chmod(0o755)
        shutil.rmtree(readable)
    assert done.stdout == "['1']\n", done.stderr


def test_threads_may_share_a_journal(store: RunStore):
    with ThreadPoolExecutor(8) as threads:
        seqs = threads.map(
            lambda n: store.append(pairs("Fact", n), pairs("Event", n, n), at=n), range(200)
        )
        assert sorted(seq for pair in seqs for seq in pair) == list(range(1, 401))
    assert len(kept(store)[0]) == 200


def test_two_writers_number_without_gaps(store: RunStore, path: Path):
    with RunStore.open(path) as other:
        for number in range(20):
            (store, other)[number % 2].append([], pairs("Event", number), at=0)
        assert [event.seq for event in other.events()] == list(range(1, 21))


def test_a_writer_that_is_kept_waiting_says_why(
    store: RunStore, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("engine.store.sqlite.database.BUSY_SECONDS", 0.05)
    with RunStore.open(path) as other:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked") as caught:
            other.append(pairs("Fact", 1), [], at=1)
        assert "Another process" in caught.value.hint
        holder.execute("ROLLBACK")
        holder.close()
        other.append(pairs("Fact", 1), [], at=1)
    assert kept(store) == (["1"], [])


def test_an_existing_journal_is_never_created_over(store: RunStore, path: Path):
    store.append(pairs("Fact", 1), [], at=1)
    with pytest.raises(StoreError, match="already exists"):
        create(path)
    assert kept(store) == (["1"], [])


@pytest.mark.parametrize("left", ["nothing", "empty file", "header"])
def test_a_creation_that_was_cut_off_is_refused_by_open_and_completed_by_create(
    tmp_path: Path, left: str
):
    path = tmp_path / "run.db"
    if left == "empty file":
        path.touch()
    elif left == "header":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.close()
        assert path.stat().st_size > 0
    for read_only in (True, False):
        with pytest.raises(StoreError):
            RunStore.open(path, read_only=read_only)
    create(path).close()
    RunStore.open(path).close()


def test_a_foreign_file_is_refused_and_untouched(tmp_path: Path):
    text = tmp_path / "text.db"
    text.write_bytes(b"not a database at all" * 200)
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for path in (text, foreign):
        before = path.read_bytes()
        for opening in (create, RunStore.open, lambda p: RunStore.open(p, read_only=True)):
            with pytest.raises(StoreError):
                opening(path)
        assert path.read_bytes() == before


def test_a_damaged_file_is_refused_with_a_hint(store: RunStore, path: Path):
    for _ in range(50):
        store.append(pairs("Fact", *range(100)), [], at=0)
    store.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 8192 * 4096)  # a page that opening alone would not read
        file.write(os.urandom(4096))
    with pytest.raises(StoreError) as caught:
        RunStore.open(path)
    assert "recordings" in caught.value.hint


def test_a_newer_file_is_refused_with_a_hint(store: RunStore, path: Path):
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match="has version 99, this plait knows 1") as caught:
            RunStore.open(path, read_only=read_only)
        assert "newer plait" in caught.value.hint


def test_a_durable_append_is_synced_and_others_are_not(store: RunStore):
    said: list[str] = []
    connection = store._database._connection
    connection.set_trace_callback(said.append)
    store.append(pairs("Fact", 1), [], at=0, durable=True)
    assert said[:2] == ["PRAGMA synchronous=FULL", "BEGIN IMMEDIATE"]
    assert said[-2:] == ["COMMIT", "PRAGMA synchronous=NORMAL"]
    said.clear()
    store.append(pairs("Fact", 1), [], at=0)
    assert not any("synchronous" in each for each in said)
    assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


FIRST = Schema(what="thing", application_id=77, migrations=(("CREATE TABLE a (x)",),))
SECOND = Schema(
    what="thing",
    application_id=77,
    migrations=(*FIRST.migrations, ("ALTER TABLE a ADD COLUMN y", "UPDATE a SET y = x + 1")),
)
BROKEN = Schema(
    what="thing",
    application_id=77,
    migrations=(*FIRST.migrations, ("ALTER TABLE a ADD COLUMN y", "UPDATE nowhere SET y = 1")),
)


def test_an_older_file_is_brought_up_to_date_step_by_step(tmp_path: Path):
    path = tmp_path / "thing.db"
    Database.create(path, FIRST, lambda c: c.execute("INSERT INTO a VALUES (1)")).close()
    with pytest.raises(StoreError, match="version 1, before this plait's 2"):
        Database.open(path, SECOND, read_only=True)
    for _ in range(2):
        opened = Database.open(path, SECOND)
        assert opened.rows("SELECT x, y FROM a") == [(1, 2)]
        assert opened.rows("PRAGMA user_version") == [(2,)]
        opened.close()


def test_a_migration_that_fails_leaves_the_older_file(tmp_path: Path):
    path = tmp_path / "thing.db"
    Database.create(path, FIRST, lambda c: c.execute("INSERT INTO a VALUES (1)")).close()
    with pytest.raises(StoreError, match="nowhere"):
        Database.open(path, BROKEN)
    opened = Database.open(path, FIRST)
    assert opened.rows("SELECT * FROM a") == [(1,)]
    opened.close()
