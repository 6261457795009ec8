"""Test that a dialog is one piece: nothing in it lies on the ground of the screen behind it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.color import Color

from tests.support.consoles import Console, opened, strips_on
from tests.support.starting import Here
from tui.ink import Role
from tui.kit.ahead import TypeAhead
from tui.kit.dialogs import Choice, Dialog, LeaveDialog, Picker
from tui.kit.inked import Inked

pytestmark = pytest.mark.anyio


def _leaving(ahead: TypeAhead) -> Dialog:
    return LeaveDialog(2, ahead, can_stop=True)


def _picker(ahead: TypeAhead) -> Dialog:
    return Picker("Pick one", [Choice("a", "one"), Choice("b", "another")], ahead)


_DIALOGS = {"leave": "q", "help": "question_mark", "palette": "colon", "start": "S"}


async def bare_cells(console: Console) -> int:
    """Return how many cells of the dialog on screen have the ground of a screen."""
    box = console.app.screen.query_one(".box").region
    ground = Color.parse(console.app.palette.theme.colors[Role.BACKGROUND]).triplet
    strips = strips_on(console.app)[box.y : box.bottom]
    return sum(
        len(text)
        for strip in strips
        for text, style, _ in strip.crop(box.x, box.right)
        if style and style.bgcolor and style.bgcolor.triplet == ground
    )


@pytest.mark.parametrize("theme", ["loom", "linen"])
@pytest.mark.parametrize("key", _DIALOGS.values(), ids=list(_DIALOGS))
@pytest.mark.parametrize("size", [(80, 24), (120, 35)])
async def test_a_dialog_has_one_ground(key: str, theme: str, size: tuple[int, int]):
    async with opened(size=size, theme=theme, starter=Here(Path("/nowhere"))) as console:
        await console.press(key)
        await console.until(lambda: console.app.screen.is_modal)
        await console.pilot.pause()
        assert await bare_cells(console) == 0


async def test_the_ground_of_a_dialog_is_seen_to_be_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Inked, "_ground", None)
    async with opened(starter=Here(Path("/nowhere"))) as console:
        await console.press("question_mark")
        await console.until(lambda: console.app.screen.is_modal)
        await console.pilot.pause()
        assert await bare_cells(console) > 1000


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 35), (200, 50)])
async def test_no_line_of_the_help_is_cut(size: tuple[int, int]):
    async with opened(size=size) as console:
        await console.press("question_mark")
        await console.until(lambda: console.app.screen.is_modal)
        await console.pilot.pause()
        groups = console.app.screen.query_one("#groups", Inked)
        assert "…" not in groups.text
        assert max(map(len, groups.text.split("\n"))) <= groups.content_size.width


@pytest.mark.parametrize("opens", [_leaving, _picker])
async def test_a_dialog_that_opens_ends_one_wait_of_the_keys(opens: Callable[[TypeAhead], Dialog]):
    async with opened() as console:
        ahead = TypeAhead()
        ahead.hold()  # for the dialog
        ahead.hold()  # for something else
        await console.app.push_screen(opens(ahead))
        await console.pilot.pause()
        assert not ahead.is_idle
        ahead.release()
        assert ahead.is_idle
