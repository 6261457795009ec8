"""An engine seen from a second process: its socket, its lock, and who may harm it (nobody)."""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from anyio.abc import SocketStream

from engine.api import Engine, Run, plan_from, reach
from engine.errors import EngineError, LockHeld
from engine.messages import commands as c
from engine.messages.events import RunFinished, WorkerMoved
from engine.messages.questions import ListRuns, ReadEngine, ReadLog, ReadRun, StartPlan, WaitIdle
from engine.messages.results import Outcome, RunView
from engine.messages.roles import Role
from engine.phases import Phase
from engine.port import capability
from engine.port.capability import VERSION
from engine.port.client import (
    Address,
    EngineGone,
    EngineSilent,
    RemoteEngine,
    living_engine,
)
from engine.port.protocol import ProtocolError
from engine.port.spawn import _is_hopeless, spawn_engine
from engine.run.answers import ANSWERS
from engine.site.place import find_place
from tests.support.engine_runs import Place, manifest, phases, scripted, wait_worker

pytestmark = pytest.mark.anyio

A = "a/worker_1"
ASKS = manifest({"name": "a", "agent": scripted({"say": "here"}, {"ask": "Well?"})})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def address_of(engine: Engine) -> Address:
    found = await living_engine(engine._place.layout)
    assert found is not None
    return found


async def socket_of(engine: Engine) -> str:
    return (await address_of(engine)).socket


async def asking(engine: Engine) -> Run:
    run = await engine.start(ASKS)
    await run.wait()
    return run


async def test_a_second_engine_on_the_same_folder_is_refused_by_name(place: Place):
    async with place.engine() as engine:
        with pytest.raises(LockHeld) as refused:
            async with place.engine():
                pass
        assert refused.value.socket == await socket_of(engine)
        assert str(refused.value.pid) in str(refused.value)
    async with place.engine():
        pass


def test_of_two_engines_started_at_once_the_loser_waits_for_the_winner(tmp_path: Path):
    """The winner holds the lock before it listens: for a moment there is nothing else to see."""
    lock = tmp_path / "engine.lock"
    lock.write_text(json.dumps({"pid": os.getpid(), "socket": "s"}))
    loser = os.posix_spawn("/bin/true", ["true"], {})
    os.waitid(os.P_PID, loser, os.WEXITED | os.WNOWAIT)
    assert not _is_hopeless(loser, lock)
    lock.write_text(json.dumps({"pid": loser, "socket": "s"}))
    assert _is_hopeless(loser, lock)  # who is named there is dead, as after kill -9
    lock.write_text("")
    assert _is_hopeless(loser, lock)


async def test_who_reaches_a_dying_engine_hears_that_it_is_gone(tmp_path: Path):
    listener = await anyio.create_unix_listener(tmp_path / "s")

    async def die(stream: SocketStream) -> None:
        await stream.aclose()

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, die)
        with pytest.raises(ConnectionResetError):
            async with RemoteEngine.connect(Address(str(tmp_path / "s"), tmp_path / "key")):
                pass
        tasks.cancel_scope.cancel()


async def seen_alike(remote: RemoteEngine, engine: Engine) -> RunView:
    """The run as both show it: what is sampled may change between the two looks."""
    with anyio.fail_after(30):
        while True:
            there, here = await remote.ask(ReadEngine()), await engine.snapshot()
            if there.runs == here.runs and await remote.ask(ReadRun()) == here.runs[0]:
                return there.runs[0]


async def test_a_second_shell_sees_and_steers_the_engine(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        async with client(engine) as remote:
            view = await seen_alike(remote, engine)
            assert view.worker(A).questions[0].text == "Well?"
            assert await remote.ask(ReadLog(run.id, A)) == await engine.log(run.id, A)
            assert [one.id for one in await remote.ask(ListRuns())] == [run.id]
            refused = await remote.command(c.Land(worker=A))
            assert isinstance(refused, c.Refused)
            assert "nothing to land" in refused.reason
            reply = await remote.command(c.Answer(worker=A, answer="go"))
            assert isinstance(reply, c.Accepted)
            await remote.ask(WaitIdle())
        assert phases(await run.wait()) == {A: "FINISHED"}


async def test_events_come_in_order_without_gaps_from_wherever_one_asks(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        async with client(engine) as remote:
            await remote.command(c.Answer(worker=A, answer="go"))
            seen = []
            async for told in remote.events(run=run.id):
                if told.seq is not None:
                    seen.append(told)
                if isinstance(told.event, RunFinished):
                    break
            assert [told.seq for told in seen] == list(range(1, len(seen) + 1))
            moves = [told.event.after for told in seen if isinstance(told.event, WorkerMoved)]
            assert moves[-1] is Phase.FINISHED
            async for told in remote.events(after_seq=seen[-2].seq or 0, run=run.id):
                if told.seq is not None:
                    assert told == seen[-1]
                    break


async def test_a_run_can_be_started_from_another_process(place: Place):
    plan = plan_from(manifest({"name": "a", "run": "true"}), folder=place.project)
    async with place.engine() as engine:
        async with client(engine) as remote:
            name = await remote.ask(StartPlan(plan))
            await remote.ask(WaitIdle())
        view = await engine.view(name)
    assert view.outcome is Outcome.SUCCESS


@asynccontextmanager
async def client(engine: Engine) -> AsyncIterator[RemoteEngine]:
    """A client of it; afterwards the engine has seen it leave.

    A reader that is cancelled in the very moment in which it becomes ready is an error of asyncio's
    own, which only happens where both ends share a loop.
    """
    async with RemoteEngine.connect(await address_of(engine)) as remote:
        yield remote
    await anyio.sleep(0.02)


@asynccontextmanager
async def raw(engine: Engine) -> AsyncIterator[SocketStream]:
    """A bare connection that has proved to be allowed, likewise."""
    address = await address_of(engine)
    async with await anyio.connect_unix(address.socket) as stream:
        hello = json.loads(await stream.receive())
        key = await to_thread.run_sync(capability.read_key, address.key)
        said = capability.proof(key, Role.OWNER, capability.CLIENT, (hello["nonce"], "n"))
        greeting = {"v": VERSION, "role": "owner", "nonce": "n", "proof": said}
        await stream.send(json.dumps(greeting).encode() + b"\n")
        assert json.loads(await stream.receive())["role"] == "owner"
        yield stream
    await anyio.sleep(0.02)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense\n",
        b"[]\n",
        b'{"id": 1, "do": "events", "after": 0}\n',
        b'{"id": 1, "do": "events", "after": "x"}\n',
        b'{"id": 1, "do": "snapshot"}\n' * 50,
        b'{"id": 1, "do": "no such thing"}\n{"id": 2, "do": "command", "command": 7}\n',
        b'{"id": 1, "do": "log", "run": "..", "worker": "../..", "after": -5}\n',
        b'{"id": 1, "do": "view", "run": "../../etc"}\n',
        b'{"id": [1], "do": ["x"]}\n{"do": {}}\n',
        b'{"id": 1, "do": "start", "plan": {}}\n',
        b'{"id": 1',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
    ],
    ids=range(14),
)
async def test_a_client_that_dies_mid_stream_or_talks_nonsense_harms_nothing(
    place: Place, data: bytes
):
    async with place.engine() as engine:
        run = await asking(engine)
        for _ in range(3):
            async with raw(engine) as stream:
                if data:
                    await stream.send(data)
                await anyio.sleep(0.02)
        async with client(engine) as remote:
            assert (await remote.ask(ReadEngine())).runs[0].worker(A).questions
            await remote.command(c.Answer(worker=A, answer="go"))
        assert phases(await run.wait()) == {A: "FINISHED"}


async def test_a_client_that_asks_for_nonsense_is_told_so_and_may_go_on(place: Place):
    async with place.engine() as engine:
        await asking(engine)
        text = b""
        async with raw(engine) as stream:
            await stream.send(b'{"id": 7, "do": "dance"}\n')
            await stream.send(b'{"id": 8, "do": "ask", "question": {"type": "ListRuns"}}\n')
            while text.count(b"\n") < 2:
                text += await stream.receive()
        replies = {reply["id"]: reply for reply in map(json.loads, text.splitlines())}
        assert "dance" in replies[7]["error"]
        assert len(replies[8]["ok"]) == 1


async def test_what_goes_wrong_in_answering_is_told_and_ends_nobody(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.Path("/nowhere").read_bytes)

    async with place.engine() as engine:
        await asking(engine)
        monkeypatch.setitem(ANSWERS, ListRuns, fail)  # type: ignore[arg-type]
        async with client(engine) as remote:
            with pytest.raises(EngineError, match="No such file"):
                await remote.ask(ListRuns())
            assert (await remote.ask(ReadEngine())).runs


async def test_questions_are_answered_while_a_stream_of_events_is_not_read(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        bus = engine._coordinator.runs.tools.bus
        bus._kept = 10_000  # what is told here is in no journal
        bus.tell([replace(bus.journaled[-1], seq=1000 + n) for n in range(6000)])
        async with client(engine) as remote:
            seqs = []
            async for told in remote.events(run=run.id):
                if not seqs:
                    with anyio.fail_after(30):
                        (stream,) = remote._waiting.values()
                        while stream.statistics().current_buffer_used < 4096:  # noqa: ASYNC110 - sets no event
                            await anyio.sleep(0.01)  # they come as fast as they can
                        assert (await remote.ask(ListRuns()))[0].id == run.id
                seqs.append(told.seq)
                if told.seq == 6999:
                    break
    assert seqs[-6000:] == list(range(1000, 7000))


async def test_a_client_that_never_reads_holds_nobody_up(place: Place):
    flood = manifest({"name": "a", "agent": scripted({"flood": 20_000}, {"result": "done"})})
    async with place.engine() as engine, raw(engine) as stream:
        await stream.send(b'{"id": 1, "do": "events", "after": 0}\n')
        run = await engine.start(flood)
        assert (await run.wait()).outcome is Outcome.SUCCESS


async def test_a_client_that_asks_and_never_reads_is_not_read_any_more(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        async with raw(engine) as stream:
            with anyio.move_on_after(3):
                while True:  # until the engine takes no more
                    await stream.send(b'{"id": 1, "do": "report"}\n' * 1000)
            async with client(engine) as remote:
                with anyio.fail_after(60):
                    assert (await remote.ask(ReadRun())).run == run.id


async def test_another_version_at_the_other_end_is_refused(tmp_path: Path):
    path = tmp_path / "s"

    async def talk(stream: Any) -> None:
        async with stream:
            await stream.send(b'{"v": 999, "plait": "engine", "pid": 1}\n')

    async with await anyio.create_unix_listener(path) as door, anyio.create_task_group() as tasks:
        tasks.start_soon(door.serve, talk)
        with pytest.raises(ProtocolError, match="and this plait speaks version"):
            async with RemoteEngine.connect(Address(str(path), tmp_path / "key")):
                pass
        tasks.cancel_scope.cancel()


async def test_an_engine_that_is_only_busy_is_waited_for_and_named(place: Place):
    layout = (await find_place(place.project, place.environment)).layout
    address = await spawn_engine(place.project, layout, place.environment)
    assert address.pid is not None
    os.kill(address.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineSilent, match=rf"\(pid {address.pid}\) has not answered for"):
            async with RemoteEngine.connect(address, patience_s=0.2):
                pass
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_continue, address.pid)
            async with RemoteEngine.connect(address) as remote:
                assert remote.pid == address.pid
    finally:
        os.kill(address.pid, signal.SIGKILL)
        await to_thread.run_sync(os.waitpid, address.pid, 0)


async def _continue(pid: int) -> None:
    await anyio.sleep(0.5)
    os.kill(pid, signal.SIGCONT)


async def test_an_engine_that_ends_is_missed_by_its_clients(place: Place):
    address, connected, ended = Address("", Path()), anyio.Event(), anyio.Event()

    async def watch() -> None:
        async with RemoteEngine.connect(address) as remote:
            connected.set()
            await ended.wait()
            with pytest.raises(EngineGone):
                await remote.ask(ReadEngine())

    async with anyio.create_task_group() as tasks:
        async with place.engine() as engine:
            address = await address_of(engine)
            tasks.start_soon(watch)
            await connected.wait()
        ended.set()
    assert not await anyio.Path(address.socket).exists()


async def test_whoever_reaches_for_an_engine_finds_the_living_one_or_opens_one(place: Place):
    async with reach(place.project, environment=place.environment) as (_, lived):
        assert not lived
    async with place.engine() as engine:
        run = await asking(engine)
        async with reach(place.project, environment=place.environment) as (port, lived):
            assert lived
            assert (await port.ask(ReadRun())).run == run.id
        await anyio.sleep(0.02)


async def test_a_run_is_taken_up_once_however_many_ask_for_it(place: Place):
    async with place.engine(detach=True) as engine:
        run = await asking(engine)
    async with place.engine() as engine:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(engine.resume, run.id)
        again = await engine.resume(run.id)
        await wait_worker(engine, again, A, lambda w: w.questions)
        await engine.command(c.Answer(worker=A, answer="go"))
        assert phases(await again.wait()) == {A: "FINISHED"}
        assert (await engine.view(run.id)).worker(A).attempt == 1
    assert not await place.survivors()
