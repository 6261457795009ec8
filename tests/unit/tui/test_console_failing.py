"""An error of ours in one pane is said and kept, and the console goes on."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from engine.phases import Phase
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.app import Options
from tui.kit.working import keep_trace
from tui.screens.fleet.pane import WorkerTile

pytestmark = pytest.mark.anyio
_TUI = Path(__file__).parents[3] / "tui"


class SeldomBroken(FakePort):
    """A port that fails at each question, as no port does, while it is broken."""

    is_broken = False

    async def ask(self, question: object) -> object:
        """Answer, or raise what no port raises."""
        if self.is_broken:
            raise RecursionError("so deep")
        return await super().ask(question)  # type: ignore[arg-type]


def failures(console: Console) -> list[str]:
    """Take what failed: else it fails the test."""
    found = [repr(error) for error in console.app.failures]
    console.app.failures.clear()
    return found


async def test_work_that_raises_is_said_and_the_console_goes_on(tmp_path: Path):
    async def broken() -> None:
        raise ValueError("\x1b]0;x\x07no such thing\nat all")

    options = Options(clock=lambda: NOW, is_plain=False, memory=tmp_path / "console.json")
    async with opened(options=options) as console:
        console.screen.begin(broken)
        await console.shows("internal error in plait: ValueError: no such thing")
        assert failures(console) == ["ValueError('\\x1b]0;x\\x07no such thing\\nat all')"]
        log = tmp_path / "console.log"
        assert "in broken" in log.read_text()
        assert log.stat().st_mode & 0o077 == 0
        await console.do("go_inbox")
        assert console.screen.kind == "inbox"


async def test_a_group_of_one_is_said_as_what_is_in_it():
    async def broken() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(also_broken)

    async def also_broken() -> None:
        raise KeyError("gone")

    async with opened() as console:
        console.screen.begin(broken)
        await console.shows("internal error in plait: KeyError: 'gone'")
        assert failures(console) == ["KeyError('gone')"]


async def test_work_of_a_group_still_takes_the_place_of_earlier_work():
    ends: list[str] = []

    begun = anyio.Event()

    async def waiting() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ends.append("cancelled")

    async def done() -> None:
        ends.append("done")

    async with opened() as console:
        console.screen.begin(waiting, group="one", exclusive=True)
        await begun.wait()
        console.screen.begin(done, group="one", exclusive=True)
        await console.until(lambda: len(ends) == 2)
        assert sorted(ends) == ["cancelled", "done"]


async def test_the_console_listens_again_after_an_error_of_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tui.app._LISTENS_AGAIN_S", 0.01)
    port = SeldomBroken(csvlite())
    async with opened(port=port) as console:
        port.is_broken = True
        console.app.session.bridge._is_whole_due = True
        console.app.session.bridge.nudge()
        await console.until(lambda: bool(console.app.failures))
        port.is_broken = False
        assert "RecursionError('so deep')" in failures(console)
        await console.until(lambda: console.app.session.bridge.view is not None)
        view = replace(changed(csvlite(), "tests/worker_1", phase=Phase.FAILED), at=NOW + 5)
        await console.tell(view)
        await console.until(lambda: console.app.session.view.at == view.at)
        failures(console)


class Breaks:
    """A part of the console that fails as long as it is broken."""

    def __init__(self, works: Callable[..., object]) -> None:
        self.works = works
        self.is_broken = True

    def __call__(self, *given: object) -> object:
        if self.is_broken:
            raise ZeroDivisionError("at\x1b[2J once")
        return self.works(*given)


SAID = "internal error in plait: ZeroDivisionError: at once"
BROKEN = "ZeroDivisionError('at\\x1b[2J once')"
PLACES = {
    "a key": lambda console: (console.screen, "do_more", partial(console.do, "more")),
    "a drawing": lambda console: (console.screen, "draw_panes", partial(console.do, "down")),
    "a sentence": lambda console: (console.screen, "subject", partial(console.do, "down")),
    "a timer": lambda console: (console.app.session, "rest", console.pilot.pause),
    "a message": lambda console: (console.app, "_call_attention", partial(console.tell, LATER)),
    "a widget": lambda console: (WorkerTile, "draw", partial(console.tell, LATER)),
}
LATER = changed(csvlite(at=NOW + 5), "tests/worker_1", phase=Phase.FAILED, tool="later")


@pytest.mark.parametrize("place", PLACES)
async def test_an_error_anywhere_is_said_once_and_the_console_goes_on(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if place == "a timer":
        monkeypatch.setattr("tui.app._TICK_S", 0.05)
    options = Options(clock=lambda: NOW, is_plain=False, memory=tmp_path / "console.json")
    async with opened(options=options) as console:
        owner, name, cause = PLACES[place](console)
        breaks = Breaks(getattr(owner, name))

        def part(*given: object) -> object:
            return breaks(*given)

        monkeypatch.setattr(owner, name, part)
        await cause()
        await console.until(lambda: bool(console.app.failures))
        await console.shows(SAID)
        breaks.is_broken = False
        await console.do("go_inbox")
        assert console.screen.kind == "inbox"
        await console.do("go_fleet")
        await console.shows("implement")
        assert failures(console) == [BROKEN]
        log = (tmp_path / "console.log").read_text()
        assert log.count("ZeroDivisionError: at") == 1


def test_a_trace_never_grows_without_end_and_follows_no_link(tmp_path: Path):
    log = tmp_path / "console.log"
    log.write_bytes(b"x" * (2 << 20))
    assert keep_trace(log, ValueError("new"))
    assert log.stat().st_size < 1000
    log.unlink()
    log.symlink_to(tmp_path / "other")
    assert not keep_trace(log, ValueError("new"))
    assert not (tmp_path / "other").exists()


def _starts(tree: ast.AST) -> Iterator[str]:
    """Yield each way of Textual to begin a worker that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "run_worker":
            yield node.attr
        if isinstance(node, ast.ImportFrom) and node.module in {"textual", "textual.worker"}:
            yield from (one.name for one in node.names if one.name in {"work", "Worker"})


def test_every_worker_of_ours_begins_where_its_errors_are_heard():
    found = {
        str(path.relative_to(_TUI)): names
        for path in sorted(_TUI.rglob("*.py"))
        if (names := list(_starts(ast.parse(path.read_text()))))
    }
    assert found == {"kit/working.py": ["run_worker"]}
