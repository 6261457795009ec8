"""The stream of events: whole for whoever reads late or slowly, and not all of it in memory."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from engine import bus
from engine.bus import PACE_S, Bus
from engine.core import run_facts as rf
from engine.ids import RunId
from engine.messages.events import OutputAppended, StepSettled, Told
from engine.messages.patches import ViewPatch
from engine.messages.results import Outcome
from engine.run.journal import Journal, read_told
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore
from tests.support.plans import a_plan, a_step

pytestmark = pytest.mark.anyio

KEPT, ALL = 10, 120
RUNS = (RunId("r1"), RunId("r2"))


class Stream:
    """Two runs that tell by turns, their journals, and a bus that keeps few."""

    def __init__(self, root: Path) -> None:
        store = SqliteStore(Layout(root))
        self.journals = []
        for run in RUNS:
            self.journals.append(Journal.create(run, store, a_plan(a_step("a")), {}))
        self.bus = Bus(lambda run, after, until: read_told(store, run, after, until), kept=KEPT)

    def tell(self, count: int) -> None:
        for n in range(count):
            event = StepSettled(step="a", outcome=Outcome.SUCCESS)
            fact = rf.PauseRequested(at=float(n))
            self.bus.tell(self.journals[n % 2].append(fact, [event], at=float(n)))


@pytest.fixture
async def stream(tmp_path: Path) -> AsyncIterator[Stream]:
    made = await to_thread.run_sync(Stream, tmp_path)
    yield made
    for journal in made.journals:
        journal.close()


def numbers(told: list[Told], run: str) -> list[int | None]:
    return [each.seq for each in told if each.run == run]


async def test_a_late_subscriber_gets_every_event_and_few_are_in_memory(stream: Stream):
    stream.tell(ALL)
    stream.bus.close()
    assert len(stream.bus.journaled) == KEPT
    told = [each async for each in stream.bus.subscribe()]
    for run in RUNS:
        assert numbers(told, run) == list(range(1, ALL // 2 + 1))
    one = [each async for each in stream.bus.subscribe(RUNS[1], after_seq=20)]
    assert numbers(one, RUNS[1]) == list(range(21, ALL // 2 + 1))
    assert numbers(one, RUNS[0]) == []


async def test_a_slow_subscriber_that_is_overtaken_misses_nothing(stream: Stream):
    got: list[Told] = []

    async def read() -> None:
        async for each in stream.bus.subscribe():
            got.append(each)
            if len(got) % 7 == 0:
                await anyio.wait_all_tasks_blocked()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        for _ in range(12):
            stream.tell(ALL)
            await anyio.lowlevel.checkpoint()
        stream.bus.close()
    for run in RUNS:
        assert numbers(got, run) == list(range(1, 12 * ALL // 2 + 1))


def patch(number: int) -> ViewPatch:
    return ViewPatch(number=number, at=0.0, order=())


def output(offset: int) -> OutputAppended:
    return OutputAppended(worker="a/worker_1", attempt=1, offset=offset)


async def test_what_an_event_moved_comes_before_it(stream: Stream):
    looks = itertools.count()
    stream.tell(1)
    stream.bus.close()
    news = [each async for each in stream.bus.watch(lambda: patch(next(looks)))]
    assert [type(each) for each in news] == [ViewPatch, Told]


async def test_a_flood_of_output_is_looked_at_no_more_often_than_the_pace(stream: Stream):
    looks: list[float] = []

    def look() -> ViewPatch:
        looks.append(anyio.current_time())
        return patch(len(looks) - 1)

    async def flood() -> None:
        for n in range(300):
            stream.bus.mention("r1", output(n), at=0.0, after=0)
            await anyio.sleep(0.001)
        stream.bus.close()

    async with anyio.create_task_group() as group:
        group.start_soon(flood)
        async for _ in stream.bus.watch(look):
            pass
    assert len(looks) >= 3
    assert all(later - one >= PACE_S for one, later in itertools.pairwise(looks))


async def test_a_slow_reader_gets_the_newest_views_and_none_of_those_between(stream: Stream):
    moves = 0
    watched = stream.bus.watch(lambda: patch(moves))
    seen = []
    for _ in range(3):
        news = await anext(watched)
        assert isinstance(news, ViewPatch)
        seen.append(news.number)
        moves += 100
        await anyio.sleep(PACE_S)
    await watched.aclose()
    assert seen == [0, 100, 200]


async def test_what_no_event_announces_is_found_after_a_while(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bus, "UNTOLD_S", 0.01)
    found = iter([patch(0), None, None])
    watched = stream.bus.watch(lambda: next(found, patch(1)))
    assert await anext(watched) == patch(0)
    with anyio.fail_after(30):
        assert await anext(watched) == patch(1)
    await watched.aclose()
