"""Both histories keep these promises; PostgreSQL is a real server."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from engine.errors import StoreError
from engine.history.postgres import MIGRATIONS, PostgresHistory
from engine.history.seam import (
    AttemptRecord,
    HistoryDatabase,
    JournalPiece,
    Query,
    RunRecord,
)
from engine.history.sql import VERSION
from engine.history.sqlite import SCHEMA, SqliteHistory
from engine.messages.statistics import Axis
from engine.store.sqlite.database import Database
from engine.store.store import JournalEntry
from tests.support.needs import need
from tests.support.postgres import Postgres, started

RUN = RunRecord(
    uid="u1",
    run="a1b2c3",
    name="fix",
    repository="example.org/parser",
    person="Ada",
    host="here",
    began=100.0,
)
TRY = AttemptRecord(
    worker="implement/worker_1",
    attempt=1,
    step="implement",
    agent="claude",
    model="large",
    week="2026-W01",
    began=101.0,
    prompt="Fix the Überlauf in src/parser.py\nand foo_bar.",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    need("postgresql")
    with started() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HistoryDatabase]:
    found: HistoryDatabase
    if request.param == "sqlite":
        found = SqliteHistory(tmp_path / "history.db")
    else:
        found = PostgresHistory(request.getfixturevalue("server").database())
    found.up()
    yield found
    found.close()


def entries(first: int, last: int) -> list[JournalEntry]:
    return [
        JournalEntry(seq, 100.0 + seq, "Said", '{"text":"\\u0000 \\udcff"}')
        for seq in range(first, last + 1)
    ]


def piece(first: int, last: int, *attempts: AttemptRecord, run: RunRecord = RUN) -> JournalPiece:
    return JournalPiece(run=replace(run, seq=last), events=entries(first, last), attempts=attempts)


def test_a_piece_is_kept_whole_and_once(history: HistoryDatabase):
    assert history.seqs(["u1"]) == {}
    assert history.push(piece(1, 3, TRY)) == 3
    assert history.push(piece(1, 3, TRY)) == 3
    assert history.push(piece(2, 5, replace(TRY, outcome="success"))) == 5
    assert history.events("u1") == entries(1, 5)
    assert history.events("u1", after=4) == entries(5, 5)
    assert history.seqs(["u1", "u2"]) == {"u1": 5}
    [hit] = history.search(Query())
    assert hit.run == replace(RUN, seq=5)
    assert hit.attempt == replace(TRY, outcome="success")


def test_a_gap_is_refused_and_leaves_nothing(history: HistoryDatabase):
    history.push(piece(1, 2))
    with pytest.raises(StoreError, match="missing after number 2"):
        history.push(piece(4, 5, TRY))
    assert history.seqs(["u1"]) == {"u1": 2}
    assert history.search(Query()) == []


def test_an_older_piece_changes_nothing(history: HistoryDatabase):
    history.push(piece(1, 5, replace(TRY, outcome="success")))
    assert history.push(piece(1, 3, replace(TRY, outcome="pending"))) == 5
    assert history.search(Query())[0].attempt.outcome == "success"


def test_attempts_change_without_new_events(history: HistoryDatabase):
    history.push(piece(1, 5, TRY))
    history.push(JournalPiece(run=replace(RUN, seq=5), attempts=[replace(TRY, usd=0.5)]))
    assert history.search(Query())[0].attempt.usd == 0.5


def test_a_repository_that_moved_takes_its_runs_along(history: HistoryDatabase):
    history.push(piece(1, 2, TRY))
    history.push(piece(1, 2, TRY, run=replace(RUN, repository="example.org/moved")))
    assert history.search(Query(repository="example.org/parser")) == []
    [hit] = history.search(Query(repository="example.org/moved"))
    assert hit.run.repository == "example.org/moved"


def test_runs_of_one_name_in_two_repositories_are_two(history: HistoryDatabase):
    history.push(piece(1, 2, TRY))
    history.push(piece(1, 4, TRY, run=replace(RUN, uid="u2", repository="example.org/other")))
    assert history.seqs(["u1", "u2"]) == {"u1": 2, "u2": 4}
    assert len(history.search(Query())) == 2
    [hit] = history.search(Query(repository="example.org/other"))
    assert hit.run.uid == "u2"


def test_many_who_push_the_same_at_once_keep_it_once(history: HistoryDatabase):
    history.push(piece(1, 1))

    def push(last: int) -> None:
        history.push(piece(2, last, TRY))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(push, [10, 20, 30, 40] * 5))
    assert history.events("u1") == entries(1, 40)


@pytest.mark.parametrize(
    ("words", "is_found"),
    [
        ("überlauf", True),
        ("ÜBERL", True),
        ("parser fix", True),
        ("src/parser.py", True),
        ("foo_bar", True),
        ("claude worker_1", True),
        ("ada", True),
        ("uberlauf", False),
        ("lauf", False),
        ("parser missing", False),
        ('O\'Hara & "x" | (y) :* \\', False),
        ("a1b2c3", True),
        ("' & | ! \"", True),
    ],
)
def test_words_are_found_by_how_they_begin(history: HistoryDatabase, *, words: str, is_found: bool):
    history.push(piece(1, 1, TRY))
    assert bool(history.search(Query(words=words))) is is_found


def test_words_that_an_attempt_lost_find_it_no_more(history: HistoryDatabase):
    history.push(piece(1, 1, replace(TRY, error="timeout")))
    assert history.search(Query(words="timeout"))
    history.push(piece(2, 2, replace(TRY, error="")))
    assert not history.search(Query(words="timeout"))


def test_a_search_is_narrowed_by_each_property_and_the_newest_come_first(
    history: HistoryDatabase,
):
    second = replace(TRY, worker="review/worker_1", step="review", agent="codex", began=200.0)
    history.push(piece(1, 1, TRY, replace(second, outcome="failed", model="small")))
    assert [hit.attempt.step for hit in history.search(Query())] == ["review", "implement"]
    assert [hit.attempt.step for hit in history.search(Query(most=1))] == ["review"]
    for query in (
        Query(step="review"),
        Query(agent="codex"),
        Query(model="small"),
        Query(outcome="failed"),
        Query(since=150.0),
        Query(words="codex", person="Ada"),
    ):
        assert [hit.attempt.step for hit in history.search(query)] == ["review"], query
    assert [hit.attempt.step for hit in history.search(Query(until=150.0))] == ["implement"]
    assert history.search(Query(person="Bob")) == []


def test_figures_are_added_up_by_any_property(history: HistoryDatabase):
    good = replace(
        TRY,
        outcome="success",
        check_passed=True,
        landed="c0ffee",
        usd=0.25,
        tokens=10,
        review_s=60.0,
        hunks=5,
        kept=3,
    )
    bad = replace(TRY, worker="implement/worker_2", outcome="failed", check_passed=False, usd=0.5)
    again = replace(
        good, worker="implement/worker_2", attempt=2, landed=None, conflicts=2, usd=None, kept=0
    )
    other = replace(TRY, worker="implement/worker_3", agent="codex", left_out=3, hunks=9)
    history.push(piece(1, 1, good, bad, again, other))
    claude, codex = history.figures(Axis.AGENT, Query())
    assert (claude.name, claude.runs, claude.attempts, claude.success) == ("claude", 1, 3, 2)
    assert (claude.first_checks, claude.first_passed) == (2, 1)
    assert (claude.conflicts, claude.landed, claude.usd, claude.tokens) == (1, 1, 0.75, 20)
    assert (claude.usd_per_landed, claude.review_s) == (0.75, 120.0)
    assert (claude.proposed, claude.kept, codex.proposed, codex.kept) == (10, 3, 0, 0)
    assert (codex.attempts, codex.left_out, codex.usd, codex.usd_per_landed) == (1, 3, None, None)
    for axis, name in (
        (Axis.MODEL, "large"),
        (Axis.STEP, "implement"),
        (Axis.PERSON, "Ada"),
        (Axis.REPOSITORY, "example.org/parser"),
        (Axis.WEEK, "2026-W01"),
    ):
        [figures] = history.figures(axis, Query())
        assert (figures.name, figures.attempts) == (name, 4)
    assert history.figures(Axis.STEP, Query(agent="codex"))[0].attempts == 1
    assert history.figures(Axis.STEP, Query(words="nowhere")) == []
    [week] = history.figures(Axis.WEEK, Query(of=Axis.AGENT, name="codex"))
    assert (week.name, week.attempts) == ("2026-W01", 1)
    assert history.figures(Axis.WEEK, Query(of=Axis.AGENT, name="")) == []


def test_odd_text_is_kept_as_far_as_a_database_takes_it(history: HistoryDatabase):
    history.push(piece(1, 1, replace(TRY, prompt="a\0b\udcff" + "x" * 100_000, label="\0")))
    [hit] = history.search(Query(words="xxx"))
    assert hit.attempt.prompt.startswith("a�b?x")
    assert hit.attempt.label == "�"


def test_odd_text_that_is_looked_for_is_not_found_and_no_error(history: HistoryDatabase):
    history.push(piece(1, 1, TRY))
    odd = "Ada\0\udcff'; DROP TABLE attempt; --"
    for query in (
        Query(words=odd),
        Query(person=odd),
        Query(repository=odd),
        Query(of=Axis.PERSON, name=odd),
    ):
        assert history.search(query) == []
        assert history.figures(Axis.AGENT, query) == []
    assert len(history.search(Query())) == 1


def test_what_is_pruned_does_not_come_back(history: HistoryDatabase):
    history.push(piece(1, 5, TRY))
    history.push(piece(1, 5, TRY, run=replace(RUN, uid="u2", began=500.0)))
    assert history.prune(before=300.0) == 1
    assert history.prune(before=300.0) == 0
    assert history.seqs(["u1"]) == {"u1": 5}
    history.push(piece(1, 6, TRY))
    assert history.events("u1") == []
    assert [hit.run.uid for hit in history.search(Query(words="fix"))] == ["u2"]
    extent = history.extent()
    assert (extent.runs, extent.attempts, extent.events, extent.newest) == (2, 1, 5, 500.0)


def test_up_may_be_repeated_and_tells_the_versions(history: HistoryDatabase):
    history.push(piece(1, 2))
    assert history.up() == (VERSION, VERSION)
    assert history.seqs(["u1"]) == {"u1": 2}


def test_it_goes_on_after_it_was_closed(history: HistoryDatabase):
    history.push(piece(1, 2))
    history.close()
    history.push(piece(3, 4))
    assert history.seqs(["u1"]) == {"u1": 4}


# PostgreSQL alone.


def test_many_bring_the_tables_up_at_once(server: Postgres):
    url = server.database()

    def up(_: int) -> int:
        with closing(PostgresHistory(url)) as history:
            return history.up()[0]

    with ThreadPoolExecutor(6) as pool:
        befores = list(pool.map(up, range(6)))
    assert sorted(befores) == [0, *[VERSION] * 5]


FIRST = (
    "INSERT INTO run VALUES ('u1', 'a1b2c3', 'fix', 'r', 'Ada', 'h', 1, NULL, 'success', 0, 0)",
    (
        "INSERT INTO attempt (uid, run, repository, person, worker, attempt, step, agent, model,"
        " label, week, began, outcome, cause, conflicts, left_out, review_s, files, insertions,"
        " deletions, reviewer, target, error, prompt) VALUES ('u1', 'a1b2c3', 'r', 'Ada',"
        " 'a/worker_1', 1, 'a', 'claude', '', '', '2026-W01', 1, 'success', '', 0, 0, 0, 1, 1, 1,"
        " '', '', '', 'p')"
    ),
)
"""The rows of the first version of the tables."""


def first_of_sqlite(path: Path) -> SqliteHistory:
    schema = replace(SCHEMA, migrations=SCHEMA.migrations[:1])

    def fill(connection: sqlite3.Connection) -> None:
        for statement in FIRST:
            connection.execute(statement)

    Database.create(path, schema, fill).close()
    return SqliteHistory(path)


def first_of_postgres(server: Postgres) -> PostgresHistory:
    url = server.database()
    statements = ("CREATE SCHEMA plait", "SET search_path = plait", *MIGRATIONS[0], *FIRST)
    version = "CREATE TABLE version AS SELECT 1 AS version"
    server.execute(";".join((*statements, version)), url)
    return PostgresHistory(url)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_history_of_the_first_version_keeps_what_it_has(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
):
    found: HistoryDatabase
    if kind == "sqlite":
        found = first_of_sqlite(tmp_path / "history.db")
    else:
        found = first_of_postgres(request.getfixturevalue("server"))
    with closing(found) as history:
        if kind == "postgres":
            with pytest.raises(StoreError, match="version 1, before this plait's"):
                history.push(piece(1, 2, TRY))
        assert history.up()[1] == VERSION
        history.push(piece(1, 2, replace(TRY, hunks=3, kept=2), run=replace(RUN, uid="u2")))
        [old] = history.search(Query(repository="r"))
        assert (old.attempt.agent, old.attempt.hunks, old.attempt.kept) == ("claude", None, None)
        [figures] = history.figures(Axis.AGENT, Query())
        assert (figures.attempts, figures.proposed, figures.kept) == (2, 3, 2)


def test_tables_of_another_version_are_not_touched(server: Postgres):
    url = server.database()
    history = PostgresHistory(url)
    with pytest.raises(StoreError, match="version 0") as old:
        history.push(piece(1, 1))
    assert "plait db up" in old.value.hint
    history.up()
    server.execute("UPDATE plait.version SET version = 99", url)
    for act in (history.up, lambda: history.push(piece(1, 1))):
        with pytest.raises(StoreError, match="version 99"):
            act()
    history.close()


@pytest.mark.parametrize(
    "url", ["postgresql://me:hush@/x?nonsense=1", "hush", "postgresql://me:hush@localhost:1/x"]
)
def test_no_address_is_told(url: str):
    with pytest.raises(StoreError) as told:
        PostgresHistory(url).up()
    assert "hush" not in f"{told.value} {told.value.hint}"


def test_an_address_that_is_partly_in_the_environment_names_what_it_leads_to(
    monkeypatch: pytest.MonkeyPatch,
):
    names = set()
    for host in ("one", "two"):
        monkeypatch.setenv("PGHOST", host)
        names |= {
            PostgresHistory(url).name for url in ("postgresql:///x", f"postgresql://{host}/x")
        }
    assert len(names) == 2


def test_the_environment_does_not_say_how_text_is_sent(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with closing(PostgresHistory(server.database())) as history:
        history.up()
        history.push(piece(1, 1, replace(TRY, prompt="→ 日本")))
        assert history.search(Query(words="日本"))[0].attempt.prompt == "→ 日本"


def test_a_database_that_cannot_keep_all_text_is_refused_at_once(server: Postgres):
    server.execute("CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0")
    with (
        closing(PostgresHistory(server.url("narrow"))) as history,
        pytest.raises(StoreError, match="stores text as LATIN1"),
    ):
        history.up()


def test_a_name_for_files_holds_no_password():
    one, two = (PostgresHistory(f"postgresql://me:{word}@h/x").name for word in ("a", "b"))
    assert one == two != PostgresHistory("postgresql://me:a@h/y").name


def test_a_password_that_is_wrong_is_not_told(server: Postgres):
    with pytest.raises(psycopg.Error):
        psycopg.connect(server.url("nowhere"))
    with pytest.raises(StoreError, match="nowhere"):
        PostgresHistory(server.url("nowhere")).up()


def test_the_roles_of_the_manual_may_do_what_it_says_and_no_more(server: Postgres):
    page = (Path(__file__).parents[2] / "docs/history.md").read_text()
    url = server.database()
    with closing(PostgresHistory(url)) as owner:
        owner.up()
    server.execute(page.partition("```sql\n")[2].partition("```")[0], url)
    writer, reader = (
        PostgresHistory(url.replace("owner@", f"plait_{name}@")) for name in ("writer", "reader")
    )
    with closing(writer), closing(reader):
        assert writer.push(piece(1, 3, TRY)) == 3
        assert writer.push(piece(4, 5, replace(TRY, usd=1.0))) == 5
        assert [hit.attempt.usd for hit in reader.search(Query(words="fix"))] == [1.0]
        assert reader.figures(Axis.AGENT, Query())[0].attempts == 1
        assert reader.extent().events == 5
        for act in (
            lambda: reader.push(piece(6, 6)),
            lambda: writer.prune(before=1e12),
            reader.up,
        ):
            with pytest.raises(StoreError, match="permission denied"):
                act()


def test_ones_own_history_is_for_its_owner_alone(tmp_path: Path):
    with closing(SqliteHistory(tmp_path / "history.db")) as history:
        history.push(piece(1, 1, TRY))
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}, modes
