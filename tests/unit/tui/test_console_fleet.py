"""Fleet's panes: the mouse works on what it shows, and only what is on screen is drawn."""

import pytest

from engine.phases import Phase
from tests.support.consoles import Console, opened, read
from tests.support.mouse import at, click, drag, wheel
from tests.support.world import NOW, changed, csvlite, many
from tui.screens.fleet.pane import FleetPane, WorkerTile

pytestmark = pytest.mark.anyio
ASKS, RUNNING, FAILED = "implement/worker_2", "implement/worker_1", "port/worker_2"


def tile_of(console: Console, worker: str) -> WorkerTile:
    """Return the tile of a worker."""
    tiles = console.screen.query_one(FleetPane).query(WorkerTile)
    return next(tile for tile in tiles if tile.piece and tile.piece.name == worker)


async def test_tiles_stand_where_the_page_has_them_when_a_worker_changes_its_band():
    async with opened(size=(160, 48)) as console:
        await console.shows("WORKING 3")
        await console.tell(changed(csvlite(at=NOW + 3), RUNNING, phase=Phase.REVIEWING))
        await console.shows("NEEDS YOU 4", "WORKING 2")
        tiles = console.screen.query_one(FleetPane).query(WorkerTile)

        def are_in_place() -> bool:
            places = [(tile.virtual_region, tile.piece) for tile in tiles]
            return all(piece and tuple(region) == piece.place for region, piece in places)

        await console.until(are_in_place)


async def test_a_click_on_a_tile_puts_the_cursor_there_and_a_second_one_opens_it():
    async with opened() as console:
        await click(console, "find() starts on")
        assert console.app.session.worker == RUNNING
        await click(console, "collected 38 items", times=2)
        await console.until(lambda: console.screen.kind == "worker")
        assert console.app.session.worker == "port/worker_3"


async def test_a_key_on_a_card_can_be_clicked_and_means_that_card():
    async with opened(options=read()) as console:
        await click(console, "R with feedback")
        assert console.app.session.worker == FAILED
        await console.until(lambda: console.screen.box.writing is not None)
        await console.press("escape")
        await click(console, "a allow once")
        assert [type(command).__name__ for command in console.port.commands] == ["Answer"]
        assert console.port.commands[0].worker == ASKS


async def test_a_row_of_the_table_can_be_clicked_and_the_key_in_its_close_up():
    async with opened(size=(80, 24)) as console:
        await click(console, "port/cli.py")
        assert console.app.session.worker == FAILED
        await click(console, "R with feedback")
        await console.until(lambda: console.screen.box.writing is not None)


@pytest.mark.parametrize(
    ("count", "size", "columns"),
    [(20, (120, 35), [0, 3, 2, 1]), (6, (120, 35), [0, 3, 2, 1]), (20, (80, 24), [0, 2, 1])],
)
async def test_each_press_makes_tiles_larger_and_back_until_there_is_a_table(
    count: int, size: tuple[int, int], columns: list[int]
):
    def seen() -> int:
        """Return how many columns of tiles there are; none in a table."""
        pane = console.screen.query_one(FleetPane)
        pieces = [tile.piece for tile in pane.query(WorkerTile) if tile.piece]
        high = [piece for piece in pieces if piece.is_worker and piece.height > 1]
        return max((sum(one.y == piece.y for one in high) for piece in high), default=0) * int(
            pane.display
        )

    async with opened(many(count), size=size) as console:
        while seen():
            await console.do("less")
        found = [seen()]
        for _ in range(4):
            await console.do("more")
            found.append(seen())
        assert found == columns + columns[-1:] * (5 - len(columns))
        for wanted in reversed(columns[:-1]):
            await console.do("less")
            assert seen() == wanted


async def test_the_fold_opens_where_it_is_clicked():
    async with opened(many(20), size=(120, 30)) as console:
        await console.do("more")
        pane = console.screen.query_one(FleetPane)
        await console.until(lambda: pane.max_scroll_y > 0)
        await wheel(console, 20)
        await console.until(lambda: pane.scroll_y == pane.max_scroll_y)
        await console.shows("► ")
        await click(console, "► ")
        await console.shows("▌ ◦ port/module_2.py")
        assert "► " not in console.text


async def test_the_wheel_scrolls_and_a_key_comes_back_to_the_cursor():
    async with opened(many(20), size=(120, 30)) as console:
        await console.do("more")
        here = console.app.session.worker
        pane = console.screen.query_one(FleetPane)
        await console.until(lambda: pane.max_scroll_y > 0)
        await wheel(console, 12)
        await console.until(lambda: pane.scroll_y == pane.max_scroll_y)
        assert console.app.session.worker == here
        assert "≠ port/module_7.py" not in console.text
        await console.press("escape")
        await console.shows("≠ port/module_7.py")


async def test_a_scrollbar_stands_where_more_is_than_fits():
    async with opened(many(20), size=(120, 30)) as console:
        pane = console.screen.query_one(FleetPane)
        await console.do("more")
        await console.until(lambda: pane.show_vertical_scrollbar)
        scrollbar = pane.vertical_scrollbar
        await console.until(lambda: 0 < scrollbar.window_size < scrollbar.window_virtual_size)
        bar = scrollbar.region
        await console.pilot.click(offset=(bar.x, bar.bottom - 1))
        await console.until(lambda: pane.scroll_y > 0)


async def test_a_worker_that_changes_its_band_keeps_its_tile_and_the_cursor():
    async with opened() as console:
        console.app.session.worker = RUNNING
        tile = tile_of(console, RUNNING)
        view = changed(csvlite(at=NOW + 9), RUNNING, phase=Phase.FAILED)
        await console.tell(view)
        await console.until(lambda: "FAILED" in tile.text)
        assert tile_of(console, RUNNING) is tile
        assert console.app.session.worker == RUNNING
        assert tile.text.startswith("┏")


async def test_only_tiles_on_screen_are_drawn():
    async with opened(many(40), size=(120, 30)) as console:
        await console.do("more")
        pane = console.screen.query_one(FleetPane)
        await console.until(lambda: pane.max_scroll_y > 0)
        tiles = list(pane.query(WorkerTile))

        def seen() -> set[WorkerTile]:
            return {tile for tile in tiles if tile.region.overlaps(pane.region)}

        await console.until(lambda: {tile for tile in tiles if tile.rows} == seen() != set())
        assert len(seen()) < len(tiles)
        await console.do("last")
        await console.until(lambda: bool(tile_of(console, console.app.session.worker).rows))


async def test_a_question_that_was_scrolled_away_is_not_allowed_unseen():
    async with opened(size=(120, 20)) as console:
        pane = console.screen.query_one(FleetPane)
        await console.until(lambda: pane.max_scroll_y > 0)
        await wheel(console, 12)
        await console.until(lambda: pane.scroll_y > 0)
        await console.do("yes")
        assert console.screen.kind == "inbox"
        assert console.port.commands == []


async def test_text_on_a_tile_is_selected_and_copied_while_the_tile_goes_on():
    async with opened() as console:
        await drag(console, at(console, "find() starts on"), len("find() starts"))
        await console.tell(
            changed(csvlite(at=NOW + 3), RUNNING, lately=(), last_lines=("all other now",))
        )
        await console.shows("all other now")
        await console.do("copy")
        assert console.app.clipboard == "find() starts"
