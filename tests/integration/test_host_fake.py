"""The fake of a host says of each attempt what the real one says."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from engine.errors import HostLost
from engine.host.local import LocalHost
from engine.host.seam import Host, Stream
from engine.phases import StopCause
from engine.testing.fake_site import FakeHost
from tests.support.processes import attempt, output, read_all, wait_output

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["real", "fake"])
async def host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Host]:
    with anyio.fail_after(60):
        if request.param == "real":
            async with LocalHost(tmp_path) as real:
                yield real
            return
        async with anyio.create_task_group() as tasks, FakeHost(tmp_path, tasks) as fake:
            yield fake


async def test_messages_arrive_in_order_and_a_repeated_one_once(host: Host, tmp_path: Path) -> None:
    spec = attempt(tmp_path, "cat", first_input=b"first\n", keeps_stdin=True)
    await host.start(spec)
    await host.start(spec)
    for n, text in ((1, b"one\n"), (2, b"two\n"), (1, b"one\n"), (2, b"two\n"), (3, b"three\n")):
        await host.send(spec.attempt, n, text)
    await host.send(spec.attempt, 4, None)
    frames, end = await read_all(host, spec.attempt)
    assert (output(frames), end.exit_code) == (b"first\none\ntwo\nthree\n", 0)
    assert b"".join(one.data for one in frames if one.stream is Stream.IN) == output(frames)


@pytest.mark.parametrize("argv", [("sh", "-c", "exit 3"), ("sh", "-c", "kill -9 $$"), ("/none",)])
async def test_the_end_is_told_the_same(host: Host, tmp_path: Path, argv: tuple[str, ...]) -> None:
    spec = attempt(tmp_path, *argv)
    await host.start(spec)
    _, end = await read_all(host, spec.attempt)
    assert (end.exit_code, end.signal, bool(end.not_started), end.cause) == {
        "exit 3": (3, None, False, None),
        "kill -9 $$": (None, 9, False, None),
        "/none": (None, None, True, None),
    }[argv[-1]]
    await host.forget(spec.attempt)
    with pytest.raises(HostLost):
        await host.read(spec.attempt, 0)
    assert await host.attempts([spec.directory]) == (spec.attempt,)
    assert (await read_all(host, spec.attempt))[1] == end


async def test_what_ignores_a_polite_stop_and_its_children_are_killed(
    host: Host, tmp_path: Path
) -> None:
    deaf = "trap '' TERM; sleep 1000 & echo ready; wait; wait"
    spec = replace(attempt(tmp_path, "sh", "-c", deaf), grace_s=0.05)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"ready")
    await host.freeze(spec.attempt)
    await host.thaw(spec.attempt)
    await host.cancel(spec.attempt, StopCause.USER)
    await host.cancel(spec.attempt, StopCause.SHUTDOWN)
    _, end = await read_all(host, spec.attempt)
    assert end.cause is StopCause.USER


async def test_an_interrupt_reaches_the_leader(host: Host, tmp_path: Path) -> None:
    told = "trap 'echo told; exit 0' INT; echo ready; while :; do sleep 0.01; done"
    spec = attempt(tmp_path, "sh", "-c", told)
    await host.start(spec)
    await wait_output(host, spec.attempt, b"ready")
    await host.interrupt(spec.attempt)
    frames, end = await read_all(host, spec.attempt)
    assert (b"told" in output(frames), end.exit_code) == (True, 0)


async def test_all_that_lives_is_ended_where_everything_is_cancelled_at_once(
    tmp_path: Path,
) -> None:
    spec = replace(attempt(tmp_path, "sh", "-c", "echo ready; yes"), grace_s=0.05)
    with anyio.fail_after(30), anyio.CancelScope() as all_of_it:
        async with anyio.create_task_group() as tasks, FakeHost(tmp_path, tasks) as fake:
            await fake.start(spec)
            await wait_output(fake, spec.attempt, b"ready")
            all_of_it.cancel()
            await anyio.sleep_forever()
    async with LocalHost(tmp_path) as real:
        assert await real.attempts([spec.directory]) == (spec.attempt,)
        _, end = await read_all(real, spec.attempt)
    assert end.cause is StopCause.SHUTDOWN
