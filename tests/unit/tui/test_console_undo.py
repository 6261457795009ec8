"""The undo key takes back only what still can be: nothing that ended, or was undone elsewhere."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from engine.messages.commands import Accepted, Command, Land, Pause, Reply, Resume
from engine.messages.results import Badge, EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite

pytestmark = pytest.mark.anyio
RUNNING, REVIEW = "implement/worker_1", "port/worker_1"
Step = Callable[[Console], Awaitable[None]]
NOTHING = "there is nothing to undo"


def later(console: Console) -> EngineView:
    shown = console.port.shown
    return replace(shown, at=shown.at + 1)


async def pauses(console: Console) -> None:
    console.app.session.worker = RUNNING
    await console.do("pause")
    assert isinstance(console.port.commands[-1], Pause)


async def ends(console: Console) -> None:
    await console.tell(changed(later(console), RUNNING, phase=Phase.COLLECTING))


async def pauses_run(console: Console) -> None:
    await console.do("pause_run")


async def ends_run(console: Console) -> None:
    view = later(console)
    await console.tell(replace(view, runs=(replace(view.runs[0], ended_at=NOW),)))


async def lands(console: Console) -> None:
    console.app.session.worker = REVIEW
    await console.do("land")
    if "could not be shown" in console.text:
        await console.press("y")
    await console.until(lambda: any(isinstance(one, Land) for one in console.port.commands))
    await console.tell(changed(later(console), REVIEW, phase=Phase.LANDED, landed="abc"))
    await console.shows("landed as abc")


async def undoes_elsewhere(console: Console) -> None:
    await console.tell(changed(later(console), REVIEW, phase=Phase.REVIEWING, landed=None))


async def marks(console: Console) -> None:
    console.app.session.worker = RUNNING
    await console.do("mark")


async def forgets(console: Console) -> None:
    await console.press("escape")
    assert not console.app.session.marks


async def drops(console: Console) -> None:
    console.app.session.worker = REVIEW
    await console.do("diff")
    await console.shows("_parse_quoted()")
    await console.do("first", "right", "no")
    await console.shows("✗ left out")


async def retries(console: Console) -> None:
    await console.do("go_fleet")
    await console.tell(changed(later(console), REVIEW, attempt=2))


async def comments(console: Console) -> None:
    console.app.session.worker = REVIEW
    await console.do("diff")
    await console.shows("_parse_quoted()")
    await console.do("next", "down", "comment")
    await console.type("why?\n")
    await console.shows("not sent yet")


async def sends(console: Console) -> None:
    session = console.app.session
    session.comments[:] = [one._replace(id=1) for one in session.comments]


STORIES = {
    "a pause of what has ended": (pauses, ends),
    "a pause of a run that has ended": (pauses_run, ends_run),
    "a landing that was undone elsewhere": (lands, undoes_elsewhere),
    "a mark that is gone": (marks, forgets),
    "a hunk of an earlier attempt": (drops, retries),
    "a comment that was sent": (comments, sends),
}


def port() -> FakePort:
    def answer(command: Command) -> Reply:
        if isinstance(command, Land):
            later = replace(made.shown, at=made.shown.at + 1)
            made.shown = changed(later, REVIEW, phase=Phase.LANDING)
        return Accepted()

    view = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}))
    made = FakePort(view, diffs={REVIEW: diff_of_reader(is_live=False)}, answer=answer)
    return made


@pytest.mark.parametrize(("deed", "end"), STORIES.values(), ids=STORIES)
async def test_what_is_over_is_not_taken_back(deed: Step, end: Step):
    async with opened(port=port()) as console:
        await deed(console)
        assert console.app.session.last_done is not None
        await end(console)
        sent = len(console.port.commands)
        await console.do("undo")
        await console.shows(NOTHING)
        assert len(console.port.commands) == sent


async def test_what_is_over_does_not_hide_what_was_done_before():
    async with opened(port=port()) as console:
        await pauses_run(console)
        await pauses(console)
        await ends(console)
        await console.do("undo")
        await console.until(lambda: console.port.commands[-1] == Resume(run="2f1c"))


async def test_hunks_of_a_landed_change_wait_until_the_landing_is_undone():
    async with opened(port=port()) as console:
        await drops(console)
        await console.do("go_fleet")
        await lands(console)
        await console.do("undo")
        await console.shows(f"Undo the landing of {REVIEW}?")
