"""Events are printed at their reader's pace, all of them, and following waits for nobody."""

import json
import os
import pty
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest

from engine.bus import Bus
from engine.messages.events import StepSettled, Told
from engine.messages.results import Outcome
from tui.commands import following, outlet
from tui.commands.following import Following, Telling

pytestmark = pytest.mark.anyio

RUN = "r"


class Port:
    """The part of an engine's port that is about events."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.asked = 0

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        self.asked += 1
        return self.bus.subscribe(run, after_seq)


def settled(seq: int) -> Told:
    return Told(run=RUN, at=0.0, event=StepSettled(step="s", outcome=Outcome.SUCCESS), seq=seq)


class Reader:
    """Take what is written, once the reader reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = anyio.Event()
        self.seqs: list[int] = []
        monkeypatch.setattr(following, "write", self.write)

    async def write(self, _: object, text: str) -> None:
        await self.reads.wait()
        self.seqs.append(json.loads(text)["seq"])


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7, 500])
async def test_a_reader_that_stalls_gets_every_event_in_order(
    monkeypatch: pytest.MonkeyPatch, count: int
):
    monkeypatch.setattr(following, "_MOST_UNREAD", 5)
    port, reader = Port(), Reader(monkeypatch)
    telling = Telling(port, RUN, Following(is_json=True))  # type: ignore[arg-type]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(telling.tell)
        await anyio.lowlevel.checkpoint()
        for seq in range(1, count + 1):
            port.bus.tell([settled(seq)])
            telling.offer(settled(seq))
        assert telling._fresh.statistics().current_buffer_used <= 5
        reader.reads.set()
        with anyio.fail_after(30):
            await telling.finish()
        tasks.cancel_scope.cancel()
    assert reader.seqs == list(range(1, count + 1))
    assert port.asked == (count > 5)


async def test_one_that_has_caught_up_before_the_end_ends_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(following, "_MOST_UNREAD", 2)
    port, reader = Port(), Reader(monkeypatch)
    telling = Telling(port, RUN, Following(is_json=True))  # type: ignore[arg-type]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(telling.tell)
        for seq in range(1, 20):
            port.bus.tell([settled(seq)])
            telling.offer(settled(seq))
        reader.reads.set()
        with anyio.fail_after(30):
            while len(reader.seqs) < 19:  # noqa: ASYNC110 - sets no event
                await anyio.sleep(0.001)
            await telling.finish()
        tasks.cancel_scope.cancel()
    assert reader.seqs == list(range(1, 20))


async def test_who_wants_to_leave_does_not_wait_for_a_reader(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(following, "_LAST_WORDS_S", 0.01)
    port = Port()
    Reader(monkeypatch)
    how = Following(is_json=True)
    telling = Telling(port, RUN, how)  # type: ignore[arg-type]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(telling.tell)
        telling.offer(settled(1))
        how.is_interrupted.set()
        with anyio.fail_after(30):
            await telling.finish()
        tasks.cancel_scope.cancel()


async def test_a_full_pipe_holds_up_its_writer_alone():
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        text = "x" * (1 << 20)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outlet.write, stream, text)
            await anyio.sleep(0.05)  # the loop goes on
            got = b""
            while len(got) < len(text):
                got += await anyio.to_thread.run_sync(os.read, reading, 1 << 16)
    os.close(reading)
    assert got.decode() == text


async def test_a_terminal_that_was_closed_is_a_reader_that_has_left():
    master, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream:
        os.close(master)
        with pytest.raises(BrokenPipeError):
            await outlet.write(stream, "nobody reads this\n")
