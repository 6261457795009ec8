"""A site that does not answer is asked again, and counts as gone only when its lease is over."""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from engine.errors import SiteGone, SiteSilent
from engine.host.local import LocalHost
from engine.site import line as lines
from engine.site.far import Far, Opening
from engine.site.line import Line, Start

pytestmark = pytest.mark.anyio
SILENT = """
import anyio, os, socket, sys
from engine.errors import SiteSilent
from engine.site import far, gate
from engine.site.wire import Pipe
if os.path.exists("{there}"):
    far.main()
else:
    anyio.run(gate.refuse, Pipe(socket.socket(fileno=os.dup(0))), SiteSilent("nobody is at home"))
"""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The file that says that somebody answers."""
    return tmp_path / "there"


@pytest.fixture
async def line(tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setattr(lines, "_SILENT_S", 0.1)
    opening = Opening(
        home=tmp_path / "home", project=tmp_path, object_format="sha1", environment=os.environ
    )
    start = Start(words=[sys.executable, "-c", SILENT.format(there=there)])
    async with anyio.create_task_group() as tasks:
        line = Line(opening, tasks, start)
        yield line
        await line.close()
        tasks.cancel_scope.cancel()


async def test_who_insists_waits_until_somebody_answers(line: Line, there: Path) -> None:
    heard: list[str] = []
    line.patience, line.heard_silence = lambda: 60.0, lambda why: heard.append(str(why))
    with pytest.raises(SiteSilent, match="nobody is at home"):
        await line.call(LocalHost.capacity)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.insist, partial(line.call, LocalHost.capacity))
        while len(heard) < 3:  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.01)
        await anyio.Path(there).touch()
    assert (heard[0], heard[-1]) == ("nobody is at home", "None")
    assert line.births == 1


async def test_what_is_silent_for_longer_than_its_lease_is_gone(line: Line) -> None:
    line.patience = lambda: 0.2
    with anyio.fail_after(30), pytest.raises(SiteGone, match="the lease of its agents has ended"):
        await line.insist(partial(line.call, Far.tips, b""))
