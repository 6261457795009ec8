"""An answer of the engine comes in the end, however fast a worker changes, and after a refusal."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from engine.messages.diffs import ChangeDiff, FileDiff
from engine.messages.logs import LogChunk, LogKind, LogLine, LogLines
from engine.messages.results import Change, WorkerView
from tests.support.world import NOW, csvlite
from tui.kit.screen import Board
from tui.screens.diff.answers import Answering
from tui.screens.diff.pane import DiffPane
from tui.screens.worker.files import Files
from tui.words.comments import Comment

pytestmark = pytest.mark.anyio
_WORKER = next(one for one in csvlite().runs[0].workers if one.worker == "implement/worker_1")


class _Screen:
    """A screen whose work is done only when a test asks for it."""

    run_id = "2f1c"

    def __init__(self, bridge: object, **more: object) -> None:
        self.session = SimpleNamespace(bridge=bridge, **more)
        self.begun: list[Callable[[], Coroutine[None, None, object]]] = []
        self.drawn: Callable[[], None] = lambda: None

    def begin(self, work: Callable[[], Coroutine[None, None, object]], **_: Any) -> None:
        self.begun.append(work)

    def draw(self) -> None:
        self.drawn()

    async def work(self) -> None:
        """Do what was begun so far."""
        begun, self.begun = self.begun, []
        async with anyio.create_task_group() as group:
            for one in begun:
                group.start_soon(one)


def _with_files(count: int) -> WorkerView:
    return replace(_WORKER, so_far=Change(files=count, insertions=count, deletions=0))


def _diff(count: int) -> ChangeDiff:
    return ChangeDiff(against="base", files=tuple(FileDiff(path=f"{n}.py") for n in range(count)))


async def test_the_list_of_files_comes_though_the_change_grows_faster_than_it_is_read():
    answers: list[ChangeDiff | str] = [_diff(1), _diff(3)]

    async def diff(*_: object) -> ChangeDiff | str:
        return answers.pop(0)

    screen = _Screen(SimpleNamespace(diff=diff))
    files = Files(cast("Board", screen))
    views = [_with_files(count) for count in (1, 2, 3)]
    screen.drawn = lambda: files.look(views[-1])
    for view in views:
        files.look(view)
    assert len(screen.begun) == 1  # the first is not thrown away for the second
    await screen.work()
    assert len(files.rows(40, 9)) == 1
    await screen.work()  # the screen was drawn, and asked for what is true by now
    assert len(files.rows(40, 9)) == 3
    files.look(views[-1])
    assert not screen.begun


async def test_a_list_of_files_that_was_refused_is_asked_for_again_at_news_of_the_worker():
    answers: list[ChangeDiff | str] = ["the engine is busy", _diff(2)]

    async def diff(*_: object) -> ChangeDiff | str:
        return answers.pop(0)

    screen = _Screen(SimpleNamespace(diff=diff))
    files = Files(cast("Board", screen))
    view = _with_files(2)
    files.look(view)
    await screen.work()
    files.look(view)
    assert not screen.begun  # no news, no question
    files.look(_with_files(2))
    await screen.work()
    assert len(files.rows(40, 9)) == 2


async def test_the_files_of_one_worker_are_never_shown_for_another():
    async def diff(*_: object) -> ChangeDiff:
        return _diff(2)

    screen = _Screen(SimpleNamespace(diff=diff))
    files = Files(cast("Board", screen))
    files.look(_with_files(2))
    other = replace(_with_files(2), worker="implement/worker_3")
    screen.drawn = lambda: files.look(other)
    files.look(other)
    await screen.work()
    assert files.rows(40, 9) == []
    await screen.work()
    assert len(files.rows(40, 9)) == 2


async def test_answers_to_comments_are_heard_after_a_refusal_and_above_a_burst():
    said = [LogLine(at=NOW + 1, kind=LogKind.SAYS, text="[1] Because.")]
    noise = [LogLine(at=NOW + 2, kind=LogKind.OUTPUT, text="…")] * 5000
    lines = [*noise[:10]]
    asked: list[int] = []

    async def log(_: str, __: str, after: int, *, most: int) -> LogChunk | str:
        asked.append(after)
        if len(asked) == 2:
            return "the engine is gone"
        first = max(after, len(lines) - most)
        return LogChunk(lines=LogLines.of(lines[first:]), first=first, next_offset=len(lines))

    comment = Comment("a.py", "k", 3, 88, "x = 1", "why?", is_sent=True, id=1, sent_at=NOW)
    comment = comment._replace(about="2f1c/implement/worker_1")
    here = replace(_WORKER, last_output_at=NOW)
    more = {"worker_view": here, "about": comment.about, "comments": [comment]}
    screen = _Screen(SimpleNamespace(log=log), **more)
    answering = Answering(cast("Board", screen))
    pane = cast("DiffPane", SimpleNamespace(lay_out=lambda: None))
    answering.look(pane)
    await screen.work()
    lines += [*said, *noise]
    screen.session.worker_view = replace(here, last_output_at=NOW + 2)
    for _ in range(2):  # the first is refused; nothing new has been said since
        answering.look(pane)
        await screen.work()
    assert asked == [0, 10, 10]
    assert screen.session.comments[0].answers == ("Because.",)
