"""Seen hunks and comments are there again when the console is opened the next time."""

import os
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


async def test_a_thread_survives_a_restart_with_its_answers(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        console.screen.session.worker = _WORKER
        await console.do("diff")
        await console.shows("_closing_quote()")
        await console.do("comment")
        await console.type("why this?\n")
        await console.do("send")
        await console.shows(" sent ")
        (comment,) = console.screen.session.comments
        console.screen.session.comments[:] = [comment._replace(answers=("because",))]
    async with opened(port=_port(), options=_options(memory)) as console:
        console.screen.session.worker = _WORKER
        await console.do("diff")
        await console.shows("why this?", "because", "answered")
        (comment,) = console.screen.session.comments
        assert (comment.id, comment.answers) == (1, ("because",))


async def test_filters_survive_a_restart(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.type("phase:failed\n")
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.press("up")
        await console.shows("/phase:failed   1 of 8")


async def test_filters_keep_their_names_over_a_restart(tmp_path: Path):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.type("red=phase:failed\n")
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.type("=red\n")
        await console.shows("/phase:failed   1 of 8")


@pytest.mark.parametrize("left", ["", "{", "[]", '{"seen": 3}', '{"seen": [], "comments": [{}]}'])
async def test_a_memory_that_cannot_be_read_is_begun_anew(tmp_path: Path, left: str):
    memory = tmp_path / "console.json"
    memory.write_text(left)
    async with opened(port=_port(), options=_options(memory)) as console:
        assert console.screen.session.seen == set()


@pytest.mark.parametrize(("ago", "is_told"), [(3600, True), (-3600, False)])
async def test_what_has_happened_since_the_last_look_is_told_once(
    tmp_path: Path,
    ago: int,
    is_told: bool,  # noqa: FBT001 - a case
):
    memory = tmp_path / "console.json"
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.do("search")
        await console.type("phase:failed\n")
    os.utime(memory, (NOW - ago, NOW - ago))
    async with opened(port=_port(), options=_options(memory)) as console:
        await console.shows("since you left (1 h ago)" if is_told else "Fleet")
        assert ("since you left" in console.text) is is_told
        assert ("failed port/worker_2" in console.text) is is_told
        await console.press("j")
        assert "since you left" not in console.text
        if is_told:
            await console.do("since_left")
            await console.shows("Since you left, 1 h ago", "enter goes there")
            assert "ago ago" not in console.text


async def test_leaving_is_remembered_where_nothing_else_is_new(tmp_path: Path):
    memory = tmp_path / "console.json"
    memory.write_text('{"seen": [], "comments": []}')
    os.utime(memory, (1, 1))
    async with opened(port=_port(), options=_options(memory)):
        pass
    assert memory.stat().st_mtime > 1
