"""Ask a history in SQL: the statements that SQLite and PostgreSQL share.

A database says by `Dialect` how it is written and read, and how it finds words. Values stand as
`?` in the statements. Yes and no are 1 and 0, so that both databases can add them up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from operator import attrgetter
from typing import Any, Protocol

from engine.history.seam import (
    AttemptRecord,
    Extent,
    Hit,
    JournalPiece,
    PieceRefused,
    Query,
    RunRecord,
)
from engine.messages.statistics import Axis, Figures
from engine.store.store import JournalEntry

VERSION = 2
"""The version of the tables that this program reads and writes."""
MOST_WORDS, LONGEST_WORD, LONGEST_TEXT = 2_000, 64, 20_000
"""Longer texts are cut off; the whole is in the journal."""

_OF_RUN = ("uid", "run", "repository", "person")
_ATTEMPT = tuple(part.name for part in fields(AttemptRecord))
_RUN = tuple(part.name for part in fields(RunRecord))
_run_values = attrgetter(*_OF_RUN)
_record_values = attrgetter(*_RUN)
_attempt_values = attrgetter(*_ATTEMPT)
_WORD = re.compile(r"[^\W_]+")


class Transaction(Protocol):
    """A database within one transaction."""

    def ask(self, statement: str, *values: object) -> list[Any]:
        """Run a statement; return its rows."""
        ...

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        ...


class Dialect(Protocol):
    """One kind of database.

    Attributes:
        lock: What ends a query whose rows are about to be written.
    """

    lock: str

    def reading(self) -> AbstractContextManager[Transaction]:
        """Open the database to read; its tables have this program's version.

        Raises:
            StoreError: It cannot be reached, or its tables are of another version.
        """
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """Open the database for one transaction: all of it is kept, or nothing.

        Raises:
            StoreError: Likewise, or nothing can be written.
        """
        ...

    def index(self, transaction: Transaction, attempt: int, words: Sequence[str]) -> None:
        """Let an attempt be found by these words, and by no others."""
        ...

    def matches(self, words: Sequence[str]) -> tuple[str, str]:
        """Return a condition on an attempt, `a`, and its value: each word begins one of its own."""
        ...

    def forget(self, transaction: Transaction, before: float) -> None:
        """Let the attempts of runs from before a moment be found no more."""
        ...


def tables(key: str, words: str) -> tuple[str, ...]:
    """Return the statements that make the tables of version 1.

    An attempt has some of its run's columns too: questions then need one table alone.

    Args:
        key: The type of a number that the database counts by itself.
        words: A column of `attempt` for its words; empty where they are kept elsewhere.
    """
    return (
        """CREATE TABLE run (
             uid TEXT PRIMARY KEY, run TEXT NOT NULL, name TEXT NOT NULL,
             repository TEXT NOT NULL, person TEXT NOT NULL, host TEXT NOT NULL,
             began DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, outcome TEXT NOT NULL,
             seq BIGINT NOT NULL, is_pruned SMALLINT NOT NULL DEFAULT 0)""",
        """CREATE TABLE event (
             uid TEXT NOT NULL REFERENCES run, seq BIGINT NOT NULL,
             at DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, json TEXT NOT NULL,
             PRIMARY KEY (uid, seq))""",
        f"""CREATE TABLE attempt (
             id {key}, uid TEXT NOT NULL REFERENCES run, run TEXT NOT NULL,
             repository TEXT NOT NULL, person TEXT NOT NULL, worker TEXT NOT NULL,
             attempt BIGINT NOT NULL, step TEXT NOT NULL, agent TEXT NOT NULL,
             model TEXT NOT NULL, label TEXT NOT NULL, week TEXT NOT NULL,
             began DOUBLE PRECISION NOT NULL, ended DOUBLE PRECISION, outcome TEXT NOT NULL,
             cause TEXT NOT NULL, check_passed SMALLINT, conflicts BIGINT NOT NULL,
             left_out BIGINT NOT NULL, review_s DOUBLE PRECISION NOT NULL,
             usd DOUBLE PRECISION, tokens BIGINT, files BIGINT NOT NULL,
             insertions BIGINT NOT NULL, deletions BIGINT NOT NULL, reviewer TEXT NOT NULL,
             target TEXT NOT NULL, landed TEXT, error TEXT NOT NULL, prompt TEXT NOT NULL,
             {words} UNIQUE (uid, worker, attempt))""",
        "CREATE INDEX attempt_began ON attempt (began)",
        "CREATE INDEX run_began ON run (began)",
    )


HUNKS = (
    "ALTER TABLE attempt ADD COLUMN hunks BIGINT",
    "ALTER TABLE attempt ADD COLUMN kept BIGINT",
)
"""The statements that lead to version 2, in every dialect."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, each once: letters and digits in lower case, in any language."""
    found = dict.fromkeys(word[:LONGEST_WORD] for word in _WORD.findall(text.lower()))
    return list(found)[:MOST_WORDS]


class SqlHistory:
    """A history in one database."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def seqs(self, uids: Sequence[str]) -> Mapping[str, int]:
        """Return up to which event it has each of these runs; those it lacks are left out."""
        with self._dialect.reading() as transaction:
            asked = "SELECT uid, seq FROM run WHERE uid = ?"
            found = (row for uid in uids for row in transaction.ask(asked, uid))
            return {uid: int(seq) for uid, seq in found}

    def push(self, piece: JournalPiece) -> int:
        """Keep a piece of a journal; return up to which event the history now has the run.

        Raises:
            PieceRefused: Events before these are missing, or it cannot keep such a piece at all.
            StoreError: Nothing can be written.
        """
        run = piece.run
        with self._dialect.writing() as transaction:
            marks = ", ".join("?" for _ in _RUN)
            transaction.ask(
                f"INSERT INTO run ({', '.join(_RUN)}) VALUES ({marks})"  # noqa: S608 - own names
                " ON CONFLICT (uid) DO NOTHING",
                *_texts((*_record_values(run)[:-1], 0)),
            )
            asked = "SELECT seq, is_pruned FROM run WHERE uid = ?"
            [(seq, is_pruned)] = transaction.ask(f"{asked}{self._dialect.lock}", run.uid)
            if is_pruned or run.seq < seq:
                return int(seq)
            fresh = [event for event in piece.events if event.seq > seq]
            if (fresh and fresh[0].seq != seq + 1) or (not fresh and run.seq != seq):
                raise PieceRefused(f"events of the run {run.run} are missing after number {seq}")
            transaction.many(
                "INSERT INTO event VALUES (?, ?, ?, ?, ?)", [(run.uid, *event) for event in fresh]
            )
            for attempt in piece.attempts:
                self._keep(transaction, run, attempt)
            changed = ("repository", "name", "began", "ended", "outcome", "seq")
            transaction.ask(
                f"UPDATE run SET {', '.join(f'{name} = ?' for name in changed)} WHERE uid = ?",  # noqa: S608 - own names
                *_texts(attrgetter(*changed, "uid")(run)),
            )
        return run.seq

    def _keep(self, transaction: Transaction, run: RunRecord, attempt: AttemptRecord) -> None:
        names = (*_OF_RUN, *_ATTEMPT)
        changed = ", ".join(f"{name} = excluded.{name}" for name in ("repository", *_ATTEMPT))
        values = [
            int(value) if isinstance(value, bool) else value
            for value in (*_run_values(run), *_attempt_values(attempt))
        ]
        [(key,)] = transaction.ask(
            f"INSERT INTO attempt ({', '.join(names)})"  # noqa: S608 - own names
            f" VALUES ({', '.join('?' for _ in names)})"
            f" ON CONFLICT (uid, worker, attempt) DO UPDATE SET {changed} RETURNING id",
            *_texts(values),
        )
        said = (
            *(attempt.prompt[:LONGEST_TEXT], attempt.error, attempt.agent, attempt.model),
            *(attempt.label, attempt.worker, attempt.outcome, attempt.cause, attempt.reviewer),
            *(attempt.target, run.run, run.name, run.repository, run.person, run.host),
        )
        self._dialect.index(transaction, int(key), words_of(" ".join(_texts(said))))

    def search(self, query: Query) -> list[Hit]:
        """Return the attempts that match, the newest first."""
        where, values = self._where(query)
        columns = ", ".join((*(f"r.{name}" for name in _RUN), *(f"a.{name}" for name in _ATTEMPT)))
        newest = "ORDER BY a.began DESC, a.id DESC"
        with self._dialect.reading() as transaction:
            # Sorted by number first: whole rows take four times as long to sort.
            rows = transaction.ask(
                f"SELECT {columns} FROM attempt a JOIN run r ON r.uid = a.uid"  # noqa: S608 - own names
                f" WHERE a.id IN (SELECT a.id FROM attempt a{where} {newest} LIMIT ?) {newest}",
                *values,
                query.most,
            )
        return [_hit(row) for row in rows]

    def figures(self, axis: Axis, query: Query) -> list[Figures]:
        """Return the figures of those that match, those with most attempts first."""
        where, values = self._where(query)
        first = "sum(CASE WHEN a.attempt = 1 AND a.check_passed"
        with self._dialect.reading() as transaction:
            rows = transaction.ask(
                f"SELECT a.{axis}, count(DISTINCT a.uid), count(*),"  # noqa: S608 - own names
                " sum(CASE WHEN a.outcome = 'success' THEN 1 ELSE 0 END),"
                f" {first} IS NOT NULL THEN 1 ELSE 0 END), {first} = 1 THEN 1 ELSE 0 END),"
                " sum(CASE WHEN a.conflicts > 0 THEN 1 ELSE 0 END),"
                " sum(CASE WHEN a.kept IS NULL THEN 0 ELSE a.hunks END),"
                " coalesce(sum(a.kept), 0), sum(a.left_out), sum(a.review_s),"
                " sum(CASE WHEN a.landed IS NULL THEN 0 ELSE 1 END), sum(a.usd), sum(a.tokens)"
                f" FROM attempt a{where} GROUP BY 1 ORDER BY 3 DESC, 1",
                *values,
            )
        return [_figures(row) for row in rows]

    def _where(self, query: Query) -> tuple[str, list[object]]:
        asked: list[tuple[str, object]] = [
            (f"{column} = ?", value)
            for column, value in (
                ("a.run", query.run),
                ("a.repository", query.repository),
                ("a.person", query.person),
                ("a.agent", query.agent),
                ("a.model", query.model),
                ("a.step", query.step),
                ("a.outcome", query.outcome),
            )
            if value
        ]
        if query.of is not None:
            asked.append((f"a.{query.of} = ?", query.name))
        if query.since is not None:
            asked.append(("a.began >= ?", query.since))
        if query.until is not None:
            asked.append(("a.began < ?", query.until))
        if words := words_of(query.words):
            asked.append(self._dialect.matches(words))
        conditions = " AND ".join(condition for condition, _ in asked)
        values = list(_texts([value for _, value in asked]))
        return f" WHERE {conditions}" if asked else "", values

    def events(self, uid: str, after: int = 0) -> list[JournalEntry]:
        """Return the events of a run behind a number, in order."""
        with self._dialect.reading() as transaction:
            rows = transaction.ask(
                "SELECT seq, at, kind, json FROM event WHERE uid = ? AND seq > ? ORDER BY seq",
                uid,
                after,
            )
        return list(map(JournalEntry._make, rows))

    def extent(self) -> Extent:
        """Return how much it holds."""
        with self._dialect.reading() as transaction:
            [(runs, newest)] = transaction.ask("SELECT count(*), max(began) FROM run")
            [(attempts,)] = transaction.ask("SELECT count(*) FROM attempt")
            [(events,)] = transaction.ask("SELECT count(*) FROM event")
        return Extent(version=VERSION, runs=runs, attempts=attempts, events=events, newest=newest)

    def prune(self, before: float) -> int:
        """Remove the events and attempts of runs that began before a moment; return how many."""
        old = "(SELECT uid FROM run WHERE began < ?)"
        with self._dialect.writing() as transaction:
            [(count,)] = transaction.ask(
                "SELECT count(*) FROM run WHERE began < ? AND is_pruned = 0", before
            )
            self._dialect.forget(transaction, before)
            transaction.ask(f"DELETE FROM event WHERE uid IN {old}", before)  # noqa: S608 - as above
            transaction.ask(f"DELETE FROM attempt WHERE uid IN {old}", before)  # noqa: S608
            transaction.ask("UPDATE run SET is_pruned = 1 WHERE began < ?", before)
        return int(count)


def _texts(values: Sequence[Any]) -> Iterator[Any]:
    """Yield values as both databases take them: no NUL, nothing that is no Unicode, no end."""
    for value in values:
        if isinstance(value, str):
            plain = value[:LONGEST_TEXT].encode("utf-8", "replace").decode()
            yield plain.replace("\0", "\N{REPLACEMENT CHARACTER}")
        else:
            yield value


def _hit(row: Sequence[Any]) -> Hit:
    run = dict(zip(_RUN, row, strict=False))
    attempt = dict(zip(_ATTEMPT, row[len(_RUN) :], strict=True))
    if attempt["check_passed"] is not None:
        attempt["check_passed"] = bool(attempt["check_passed"])
    return Hit(run=RunRecord(**run), attempt=AttemptRecord(**attempt))


def _figures(row: Sequence[Any]) -> Figures:
    name, *counts, review_s, landed, usd, tokens = row
    runs, attempts, success, checks, passed, conflicts, proposed, kept, left_out = map(int, counts)
    return Figures(
        name=name,
        runs=runs,
        attempts=attempts,
        success=success,
        first_checks=checks,
        first_passed=passed,
        conflicts=conflicts,
        proposed=proposed,
        kept=kept,
        left_out=left_out,
        review_s=float(review_s),
        landed=int(landed),
        usd=None if usd is None else float(usd),
        tokens=None if tokens is None else int(tokens),
    )
