"""Rows that are painted past Textual's style cache look as if it had painted them; keys paint."""

from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tests.support.consoles import opened
from tests.support.world import NOW, csvlite
from tui.app import Options
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.inked import Inked
from tui.kit.palette import Palette
from tui.kit.private import paint_now
from tui.screens.fleet.pane import WorkerTile
from tui.theming import DEFAULT, load_all

pytestmark = pytest.mark.anyio
_WIDE = Options(clock=lambda: NOW, is_plain=False, has_truecolor=True)


def _cells(strips: list[Strip]) -> list[list[tuple[str, object]]]:
    return [
        [
            (char, (style.color, style.bgcolor, style.bold))
            for text, style, _ in strip
            for char in text
        ]
        for strip in strips
    ]


def _both_ways(inked: Inked) -> tuple[object, object]:
    """Return the cells of a widget as it paints itself, and as Textual paints it."""
    crop = inked.outer_size.region
    own = _cells(inked.render_lines(crop))
    return own, _cells(Widget.render_lines(inked, crop))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_rows_are_painted_as_textual_would(size: tuple[int, int]):
    async with opened(csvlite(), options=_WIDE, size=size) as console:
        seen = [one for one in console.screen.query(Inked) if one.display and one.size]
        assert len(seen) > 3
        for inked in seen:
            own, textuals = _both_ways(inked)
            assert own == textuals, inked


async def test_a_part_of_a_row_is_painted_as_textual_would():
    async with opened(csvlite(), options=_WIDE, size=(200, 50)) as console:
        tile = next(one for one in console.screen.query(WorkerTile) if one.size.width > 20)
        crop = tile.size.region.shrink((1, 5, 1, 4))
        own = [strip.text for strip in tile.render_lines(crop)]
        assert own == [strip.text for strip in Widget.render_lines(tile, crop)]


@pytest.mark.parametrize(
    "rule",
    ["border: round red;", "padding: 1;", "tint: red 40%;", "opacity: 50%;", "outline: heavy red;"],
)
async def test_what_a_sheet_of_the_user_lays_over_rows_is_painted(rule: str, tmp_path: Path):
    def painted(console: object) -> object:
        return _cells(console.screen.query_one("#top").render_lines(one.outer_size.region))

    options = Options(clock=lambda: NOW, is_plain=False, has_truecolor=True, config=tmp_path)
    async with opened(csvlite(), options=options) as console:
        one = console.screen.query_one("#top", Inked)
        before = painted(console)
        (tmp_path / "mine.tcss").write_text(f"#top {{ height: 4; {rule} }}\n")
        await console.until(lambda: one.size.height == 4 or one.content_size.height == 2)
        await console.until(lambda: painted(console)[:1] != before[:1])
        own, textuals = _both_ways(one)
        assert own == textuals


class _Page(Screen[None]):
    def compose(self) -> ComposeResult:
        yield Inked()


class _Painting(App[None]):
    """An application that notes what it puts on its terminal."""

    palette = Palette(load_all(None)[0][DEFAULT])
    is_ascii = False

    def __init__(self) -> None:
        super().__init__()
        self.painted: list[str] = []

    def get_default_screen(self) -> Screen[None]:
        return _Page()

    def note(self) -> None:
        """Note from now on what is painted."""
        paint = self._display

        def noted(screen: Screen[None], renderable: object) -> None:
            self.painted.append(self.screen.query_one(Inked).text)
            paint(screen, renderable)

        vars(self)["_display"] = noted


@pytest.mark.parametrize("is_asked", [True, False])
async def test_what_was_drawn_is_painted_at_once_only_where_that_is_asked_for(is_asked: bool):  # noqa: FBT001 - a case
    app = _Painting()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.note()
        app.screen.query_one(Inked).show([(Span("now", Ink(Role.ACCENT)), Span(" seen", TEXT))])
        if is_asked:
            paint_now(app.screen)
        assert app.painted == (["now seen"] if is_asked else [])
        await pilot.pause()
        await pilot.pause()
        assert app.painted == ["now seen"]


async def test_what_was_painted_at_once_is_not_painted_again():
    app = _Painting()
    async with app.run_test() as pilot:
        await pilot.pause()
        app.note()
        app.screen.query_one(Inked).show([(Span("once", TEXT),)])
        paint_now(app.screen)
        await pilot.pause(0.1)
        assert app.painted == ["once"]


async def test_a_message_restyles_its_own_line_alone(monkeypatch: pytest.MonkeyPatch):
    async with opened(csvlite(), options=_WIDE, size=(160, 36)) as console:
        restyled: set[str | None] = set()
        anew = Inked.notify_style_update

        def note(inked: Inked) -> None:
            restyled.add(inked.id)
            anew(inked)

        monkeypatch.setattr(Inked, "notify_style_update", note)
        console.screen.say_refused("a key", "it does nothing here")
        await console.shows("it does nothing here")
        assert restyled == {"say"}
