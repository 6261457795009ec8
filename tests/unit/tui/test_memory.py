"""Seen hunks and unsent comments are there again when the console is opened the next time."""

from pathlib import Path

import pytest

from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import opened
from tests.support.world import NOW, FakePort, csvlite
from tui.app import Options

pytestmark = pytest.mark.anyio
_WORKER = "port/worker_1"


def _options(path: Path) -> Options:
    return Options(clock=lambda: NOW, is_plain=False, has_truecolor=True, memory=path)


def _port() -> FakePort:
    return FakePort(csvlite(), diffs={_WORKER: diff_of_reader()})


async def test_marks_and_unsent_comments_survive_a_restart(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        console.screen.session.worker = _WORKER
        await console.do("diff")
        await console.shows("_closing_quote()")
        assert console.screen.session.seen == set()
        await console.do("mark", "comment")
        await console.type("why this?\n")
    async with opened(port=_port(), options=_options(memory)) as console:
        console.screen.session.worker = _WORKER
        await console.do("diff")
        await console.shows("why this?")
        assert len(console.screen.session.seen) == 1


async def test_filters_survive_a_restart(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.type("phase:failed\n")
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.press("up")
        await console.shows("/phase:failed   1 of 8")


@pytest.mark.parametrize("left", ["", "{", "[]", '{"seen": 3}', '{"seen": [], "comments": [{}]}'])
async def test_a_memory_that_cannot_be_read_is_begun_anew(tmp_path: Path, left: str):
    memory = tmp_path / "console.json"
    memory.write_text(left)
    async with opened(port=_port(), options=_options(memory)) as console:
        assert console.screen.session.seen == set()
