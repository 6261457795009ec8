"""A console that gets patches shows what the engine shows, and seldom asks for everything."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.api import Engine
from engine.messages.commands import Accepted, Command, Reply, SetCap
from engine.messages.events import Told
from engine.messages.patches import Show, ViewPatch
from engine.messages.questions import Ask, ReadEngine
from engine.messages.results import RunView
from engine.port.client import RemoteEngine, living_engine
from engine.port.port import EnginePort
from tests.support.engine_runs import Place, manifest, scripted
from tui.bridge import Bridge
from tui.words.clean import clean_tree

pytestmark = pytest.mark.anyio

TALKS = manifest(
    {"name": "a", "agent": scripted({"say": "one"}, {"flood": 3_000}, {"result": "done"})},
    {"name": "b", "run": "echo first; sleep 0.3; echo last", "concurrency": 3},
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Counting:
    """A port that counts questions and patches, and may lose patches on the way."""

    def __init__(self, port: EnginePort, lost: frozenset[int] = frozenset()) -> None:
        self.port = port
        self.lost = lost
        self.wholes = 0
        self.patches: list[ViewPatch] = []

    async def command(self, command: Command) -> Reply:
        return await self.port.command(command)

    async def ask(self, question: Ask[Any]) -> Any:
        self.wholes += isinstance(question, ReadEngine)
        return await self.port.ask(question)

    def events(self, after_seq: int = 0, *, show: Show) -> AsyncIterator[Told]:
        def keep(patch: ViewPatch) -> None:
            self.patches.append(patch)
            if patch.number not in self.lost:
                show(patch)

        return self.port.events(after_seq, show=keep)


@asynccontextmanager
async def console(
    engine: Engine, lost: frozenset[int] = frozenset()
) -> AsyncIterator[tuple[Bridge, Counting]]:
    """The bridge of a console, as if it were in another process."""
    address = await living_engine(engine._place.layout)
    assert address is not None
    async with RemoteEngine.connect(address) as remote, anyio.create_task_group() as tasks:
        port = Counting(remote, lost)
        bridge = Bridge(port, lambda _: None, time.time)  # type: ignore[arg-type]
        tasks.start_soon(bridge.run)
        yield bridge, port
        tasks.cancel_scope.cancel()
    await anyio.sleep(0.02)


async def alike(bridge: Bridge, engine: Engine) -> tuple[RunView, ...]:
    """Return the runs, as soon as the console has them as the engine has them."""
    with anyio.fail_after(60):
        while True:
            there = clean_tree((await engine.snapshot()).runs)
            if bridge.view is not None and bridge.view.runs == there:
                return there
            await anyio.sleep(0.01)


async def test_a_console_shows_what_the_engine_shows_and_asks_for_it_once(place: Place):
    async with place.engine() as engine, console(engine) as (bridge, port):
        assert await alike(bridge, engine) == ()
        began, wholes = time.monotonic(), port.wholes
        first = await engine.start(TALKS)
        second = await engine.start(TALKS)
        await first.wait()
        await second.wait()
        runs = await alike(bridge, engine)
        assert [run.run for run in runs] == [first.id, second.id]
        assert runs[0].worker("a/worker_1").last_lines
        assert port.wholes - wholes <= 1 + (time.monotonic() - began) / 3.0
        await engine._coordinator.runs.unload(runs[0].run)  # type: ignore[arg-type]
        assert [run.run for run in await alike(bridge, engine)] == [second.id]


async def test_patches_that_were_lost_are_healed_by_asking_for_it_all(place: Place):
    async with place.engine() as engine:
        run = await engine.start(TALKS)
        async with console(engine, frozenset({0, 2, 5})) as (bridge, port):
            await run.wait()
            # Whatever was lost, one that comes is seen to be another than the next.
            while max((patch.number for patch in port.patches), default=-1) < 6:
                await engine.command(SetCap(cap=2 + len(port.patches)))
                await anyio.sleep(0.1)
            await alike(bridge, engine)
            assert port.wholes >= 3


async def test_a_flood_of_output_sends_few_patches_and_a_command_is_seen_at_once(place: Place):
    flood = scripted(*({"flood": 200} for _ in range(400)), {"result": "done"})
    async with place.engine() as engine, console(engine) as (bridge, port):
        run = await engine.start(manifest({"name": "a", "agent": flood}))
        reply = await bridge.command(SetCap(cap=7))
        assert isinstance(reply, Accepted)
        assert bridge.view is not None
        assert bridge.view.runs[0].cap == 7
        await run.wait()
        await alike(bridge, engine)
        times = [patch.at for patch in port.patches]  # when each was made, not when it came
        span = times[-1] - times[0]
        assert len(times) <= 2 + 16 * span, (len(times), span)


async def test_who_asks_for_events_alone_gets_no_patch(place: Place):
    async with place.engine() as engine:
        run = await engine.start(TALKS)
        await run.wait()
        address = await living_engine(engine._place.layout)
        assert address is not None
        async with RemoteEngine.connect(address) as remote:
            async for told in remote.events(run=run.id):
                assert isinstance(told, Told)
                if told.seq == engine.port.runs.living[run.id].seq:  # type: ignore[index]
                    break
        await anyio.sleep(0.02)
