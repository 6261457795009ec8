"""Deliver to a history what it lacks of the local journals: in order, each event once.

The journals are the outbox. The history knows how far it has each run, and a memo beside the
journals says which of them need not even be looked at; it may be lost, wrong or old.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from engine.errors import NoSuchRun, StoreError
from engine.history.seam import HistoryDatabase, PieceRefused, RunOrigin
from engine.history.tally import Tally
from engine.ids import RunId
from engine.store.files import write_atomically
from engine.store.layout import Layout
from engine.store.store import JournalEntry, RunJournal, Store

PAGE = 500
"""Events that are delivered in one transaction."""


class Unreadable(StoreError):
    """A journal that cannot be read; the others can."""


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """The result of a delivery.

    Attributes:
        events: How many were delivered.
        refused: Runs that the history cannot keep, and why.
        unread: Runs whose journal cannot be read, and why.
    """

    events: int = 0
    refused: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass
class Outbox:
    """Everything of one repository that one history is to have.

    Attributes:
        is_meant: Says by its plan, as JSON values, if a run is to be delivered at all.
    """

    store: Store
    history: HistoryDatabase
    origin: RunOrigin
    layout: Layout
    is_meant: Callable[[dict[str, Any]], bool]
    _tallies: dict[RunId, Tally] = field(default_factory=dict)
    _memo: dict[str, Any] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def deliver_all(self) -> Delivered:
        """Deliver all that is lacking of every run, the oldest first.

        Raises:
            StoreError: The history cannot be reached or written; what was delivered stays.
        """
        count, refused, unread = 0, [], []
        with self._lock:
            try:
                for run in self.behind():
                    try:
                        count += self._deliver(run)
                    except Unreadable as error:
                        unread.append(f"{run}: {error}")
                    except PieceRefused as error:
                        refused.append(f"{run}: {error}")
            finally:
                self._write_memo()
        return Delivered(events=count, refused=tuple(refused), unread=tuple(unread))

    def behind(self) -> list[RunId]:
        """Return the runs that may have something to deliver."""
        known = self._known()
        return sorted(run for run in self.store.names() if known.get(run) != self._stamp(run))

    def deliver(self, run: RunId) -> int:
        """Deliver all that is lacking of one run; return how many events that were.

        Raises:
            StoreError: The history cannot be reached or written; what was delivered stays.
                PieceRefused where it cannot keep this run, Unreadable where nobody can read it.
        """
        with self._lock:
            return self._deliver(run)

    def _deliver(self, run: RunId) -> int:
        stamp = self._stamp(run)
        if stamp is None or self._known().get(run) == stamp:
            return 0
        with _readable():
            journal = self.store.run(run, read_only=True)
        with journal:
            count = self._deliver_from(run, journal)
        self._known()[run] = stamp
        return count

    def _deliver_from(self, run: RunId, journal: RunJournal) -> int:
        # Half of what a tally has read may not be kept when the history fails, and a history that
        # was restored lacks what it had: then it is made anew from the journal.
        tally = self._tallies.pop(run, None) or self._tally(run, journal)
        if tally is None:
            return 0
        kept = self.history.seqs([tally.uid]).get(tally.uid, 0)
        if kept < tally.seq:
            tally = Tally(run, journal.plan_json, journal.meta, self.origin)
        count = 0
        for page in _pages(tally, journal):
            if page and page[-1].seq < kept:
                continue
            fresh = [event for event in page if event.seq > kept]
            self.history.push(tally.piece(fresh))
            tally.is_kept()
            count += len(fresh)
        if not tally.is_ended:
            self._tallies[run] = tally
        return count

    def _tally(self, run: RunId, journal: RunJournal) -> Tally | None:
        """Begin to read a journal; None where it is not to be delivered."""
        with _readable():
            if not self.is_meant(json.loads(journal.plan_json)):
                return None
            return Tally(run, journal.plan_json, journal.meta, self.origin)

    def _stamp(self, run: RunId) -> Any:
        """Return a journal's stamp as JSON gives it back; None where there is no journal."""
        try:
            return json.loads(json.dumps(self.store.stamp(run)))
        except (NoSuchRun, OSError):
            return None

    def _known(self) -> dict[str, Any]:
        if self._memo is None:
            try:
                found = json.loads(self._memo_path.read_bytes())
            except (OSError, ValueError):
                found = {}
            self._memo = found if isinstance(found, dict) else {}
        return self._memo

    def close(self) -> None:
        """Write the memo and release the history."""
        self._write_memo()
        self.history.close()

    def forget(self) -> None:
        """Look at every run again, whatever the memo says."""
        self._memo = {}

    def _write_memo(self) -> None:
        """Write the memo whole or not at all; without it, all journals are looked at again."""
        with suppress(StoreError):
            write_atomically(self._memo_path, json.dumps(self._known()).encode())

    @property
    def _memo_path(self) -> Path:
        return self.layout.delivered(self.history.name)


def _pages(tally: Tally, journal: RunJournal) -> Iterator[list[JournalEntry]]:
    """Let a tally read what is new in a journal, and yield the events page by page."""
    with _readable():
        events = journal.events(tally.seq)
        page = list(islice(events, PAGE))
        facts = deque(journal.facts(tally.fact))
    latest = 0.0
    while True:
        with _readable():
            following = list(islice(events, PAGE))
            early = []
            latest = max([latest, *(event.at for event in page)])
            while facts and (not following or facts[0].at <= latest):
                early.append(facts.popleft())
            tally.take(early, page)
        yield page
        if not following:
            return
        page = following


_ODD = (
    *(ArithmeticError, AttributeError, LookupError, OSError),
    *(RecursionError, TypeError, ValueError),
)
"""The errors that a journal leads to in which something else stands than was written."""


@contextmanager
def _readable() -> Iterator[None]:
    """Say by one error that a journal cannot be read, whatever is wrong with it."""
    try:
        yield
    except (StoreError, *_ODD) as error:
        raise Unreadable(str(error)) from error
