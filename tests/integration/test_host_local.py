"""The local host as its callers see it: start, read, tell, end; real keepers, real processes."""

from pathlib import Path

import pytest

from engine.host.local import LocalHost
from engine.host.seam import Stream
from tests.support.processes import attempt, read_all

pytestmark = pytest.mark.anyio


async def test_an_attempt_is_read_to_its_end(tmp_path: Path) -> None:
    async with LocalHost(tmp_path) as host:
        spec = attempt(tmp_path, "echo", "hello")
        await host.start(spec)
        frames, end = await read_all(host, spec.attempt)
    assert [frame.data for frame in frames if frame.stream is Stream.OUT] == [b"hello\n"]
    assert (end.exit_code, end.signal, end.cause, end.not_started) == (0, None, None, None)
