"""Engines and their shared history die at any moment, and come to the same in the end.

The whole form has ten engines of twenty workers each, which are killed at two hundred moments.
"""

import itertools
import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from operator import attrgetter
from pathlib import Path
from random import Random

import anyio
import pytest
from anyio import to_thread

from engine.history import feeder, postgres
from engine.history.postgres import PostgresHistory
from engine.history.seam import AttemptRecord, Query
from engine.messages.results import Outcome
from engine.site.place import find_place
from engine.store.store import Store
from tests.support.engine_runs import Place, manifest, wait_view
from tests.support.needs import why_not
from tests.support.postgres import Postgres, started
from tests.support.shared_history import (
    Line,
    asked,
    fill,
    journal_of,
    lived_for,
    on_small_disk,
    rows_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgresql"), pytest.mark.long]

IS_THOROUGH = bool(os.environ.get("PLAIT_THOROUGH"))
ENGINES, WORKERS, MOMENTS = (10, 20, 200) if IS_THOROUGH else (3, 4, 9)
LIVES_PER_RUN = 4
name_of = attrgetter("worker", "attempt")


class Troubles:
    """The troubles of a history: each begins and ends after another engine was killed."""

    def __init__(self, server: Postgres, line: Line, filler: Path | None) -> None:
        self.met: Counter[str] = Counter()
        self._server = server
        self._line = line
        self._filler = filler
        self._killed = anyio.Event()

    @property
    def kinds(self) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
        """Return how each begins, and how it ends."""
        kinds: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "crash": (partial(self._server.stop, signal.SIGQUIT), self._server.start),
            "cut off": (self._line.is_silent.set, self._line.mend),
            "read-only": (partial(self._only_read, "on"), partial(self._only_read, "off")),
        }
        if self._filler is not None:
            kinds["full"] = (partial(fill, self._filler), self._filler.unlink)
        return kinds

    def _only_read(self, word: str) -> None:
        self._server.execute(f"ALTER SYSTEM SET default_transaction_read_only = {word}")
        self._server.execute("SELECT pg_reload_conf()")

    def engine_was_killed(self) -> None:
        self._killed.set()
        self._killed = anyio.Event()

    async def befall(self) -> None:
        """One after the other, until cancelled; what has begun ends in any case."""
        for kind in itertools.cycle(self.kinds):
            begin, end = self.kinds[kind]
            await to_thread.run_sync(begin)
            try:
                self.met[kind] += 1
                await self._killed.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(end)
            await self._killed.wait()


@pytest.fixture
def history_in_trouble() -> Iterator[tuple[str, Troubles]]:
    """The address of a history, and its troubles."""
    is_bare = any(map(why_not, ("root", "unshare", "small disk")))
    with bare() if is_bare else on_small_disk("96m") as (server, filler):
        url = server.url("small")
        with closing(PostgresHistory(url)) as history:
            history.up()
        with closing(Line(server)) as line:
            yield url, Troubles(server, line, filler)


@contextmanager
def bare() -> Iterator[tuple[Postgres, None]]:
    with started() as server:
        server.execute("CREATE DATABASE small")
        yield server, None


@pytest.fixture
def places(tmp_path: Path) -> list[Place]:
    """One folder for each engine."""
    made = []
    for number in range(ENGINES):
        (tmp_path / str(number)).mkdir()
        made.append(Place(tmp_path / str(number)))
    return made


async def store_of(place: Place) -> Store:
    return (await find_place(place.project, place.environment)).store


async def killed_again_and_again(place: Place, seed: int, after_each: Callable[[], None]) -> None:
    """Let engines of one place live for a moment each."""
    step = {"name": "a", "run": "sleep 0.02", "concurrency": WORKERS}
    database = {"strategy": "shared"}
    text = json.dumps(manifest(step, database=database, max_concurrent_workers=WORKERS))
    store, random = await store_of(place), Random(seed)
    for moment in range(MOMENTS // ENGINES):
        live = partial(lived_for, seen=random.randrange(2 * WORKERS))
        words = "" if moment % LIVES_PER_RUN else text
        await to_thread.run_sync(live, place, store, words)
        after_each()


async def brought_to_an_end(place: Place) -> list[str]:
    """Let one engine more end all runs of a place, and deliver them; return their names."""
    store = await store_of(place)
    runs = [str(run) for run in await to_thread.run_sync(store.names)]
    async with place.engine(within_s=300) as last:
        for run in runs:
            resumed = await last.resume(run)
            assert (await resumed.wait()).outcome is Outcome.SUCCESS
            await wait_view(last, resumed, lambda view: view.history is None)
    return runs


@pytest.mark.timeout(7200 if IS_THOROUGH else 300)
async def test_engines_and_their_history_die_at_any_moment_and_come_to_the_same(
    places: list[Place], history_in_trouble: tuple[str, Troubles], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(feeder, "PACE_S", 0.05)
    monkeypatch.setattr(postgres, "ANSWER_S", 5.0)
    began, (url, troubles) = time.monotonic(), history_in_trouble
    for place in places:
        place.environment["PLAIT_DATABASE_URL"] = f"{url}&port=5499"
    async with anyio.create_task_group() as befalling:
        befalling.start_soon(troubles.befall)
        async with anyio.create_task_group() as engines:
            for seed, place in enumerate(places):
                one = partial(killed_again_and_again, after_each=troubles.engine_was_killed)
                engines.start_soon(one, place, seed)
        befalling.cancel_scope.cancel()
    assert set(troubles.met) == set(troubles.kinds)
    hits: dict[str, list[AttemptRecord]] = defaultdict(list)
    counts = Counter[str]()
    runs = {place: await brought_to_an_end(place) for place in places}
    for hit in await asked(url, lambda history: history.search(Query(most=10**6))):
        hits[hit.run.uid].append(hit.attempt)
    for place in places:
        store = await store_of(place)
        for run in runs[place]:
            uid, events = await to_thread.run_sync(journal_of, store, run)
            assert await asked(url, lambda history, uid=uid: history.events(uid)) == events
            attempts = await to_thread.run_sync(rows_of, store, run)
            assert sorted(hits[uid], key=name_of) == sorted(attempts, key=name_of)
            counts.update(runs=1, events=len(events), attempts=len(attempts))
    extent = await asked(url, PostgresHistory.extent)
    assert counts == {"runs": extent.runs, "events": extent.events, "attempts": extent.attempts}
    assert counts["attempts"] >= WORKERS * counts["runs"]
    told = f"{MOMENTS} kills, {dict(troubles.met)}, {dict(counts)}"
    sys.stdout.write(f"{told}, {time.monotonic() - began:.0f} s\n")
