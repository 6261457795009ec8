"""Fleet: three bands of cards, tiles and rows; or a table; or, on a tiny screen, a list.

A table that leaves room shows its focused worker below, as large as a tile or card would.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from engine.messages.results import RunView, WorkerView
from tui.ink import Ink, Page, Role, Row, Span, Zone, beside, fit
from tui.kit.cards import HEIGHT, TALL_HEIGHT, card
from tui.kit.lists import (
    emergency_head,
    emergency_row,
    line_of,
    table_columns,
    table_head,
    table_row,
    widest_name,
)
from tui.kit.meters import heading
from tui.kit.tiles import tile
from tui.words.scene import Scene
from tui.words.standing import Band, Held, band_of, bands_of, step_of

_TINY_WIDTH, _TINY_HEIGHT = 40, 10
_TABLE_BELOW, _TABLE_ABOVE_LIVE = 100, 12
_FOUR_COLUMNS_FROM = 220
RAIL_FROM = 160
_TALL_SCREEN = 38
_TILE_LEAST, _TILE_MOST = 8, 25
_CLOSE_UP_MOST = 14
_NARROWEST_TILE = 30
_AROUND_NAME = 18
"""Frame, glyph and clock beside a name: names are never cut, so columns give way."""
_FEW = 4


class Form(StrEnum):
    """In which form Fleet stands."""

    TILES = "tiles"
    TABLE = "table"
    EMERGENCY = "emergency"


class Place(NamedTuple):
    """Where a worker stands on the page, for moving between them and for clicks."""

    worker: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class FleetPage:
    """Fleet drawn: all its rows (perhaps more than fit), and every worker's place on them.

    `held` is what keeps everybody where it stands when the next page is drawn with it; `close_up`
    is where the focused worker stands a second time, larger than its row in a table.
    """

    form: Form
    rows: tuple[Row, ...]
    places: tuple[Place, ...]
    close_up: Place | None = None
    held: Held = field(default_factory=dict)

    def place(self, worker: str) -> Place | None:
        """The place of a worker, if it has one."""
        return next((place for place in self.places if place.worker == worker), None)


def form_of(run: RunView, cells: int, height: int, detail: int) -> Form:
    """Tiles, table or list, by the room there is; `detail` is what `+` and `-` asked for."""
    if cells < _TINY_WIDTH or height < _TINY_HEIGHT - 3:
        return Form.EMERGENCY
    if detail <= -_FEW:
        return Form.TABLE
    if detail:
        return Form.TILES
    bands = bands_of(run)
    live = len(bands[Band.NEEDS_YOU]) + len(bands[Band.WORKING])
    return Form.TABLE if cells < _TABLE_BELOW or live > _TABLE_ABOVE_LIVE else Form.TILES


def columns_of(cells: int, detail: int) -> int:
    """How many columns of tiles, the user's wish included."""
    most = max(cells // _NARROWEST_TILE, 1)
    wished = (4 if cells >= _FOUR_COLUMNS_FROM else 3) - detail
    return min(max(wished, 1), most)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How the user wants to see Fleet: larger or smaller, in plan order, standing still."""

    detail: int = 0
    is_plan_order: bool = False
    held: Held | None = None


def draw_fleet(
    scene: Scene, size: tuple[int, int], focused: str, wish: Wish | None = None
) -> FleetPage:
    """Fleet for a run, at this size."""
    wish, run = wish or Wish(), scene.run
    if run is None:
        return FleetPage(form=Form.TABLE, rows=(), places=())
    cells, height = size
    form = form_of(run, cells, height, wish.detail)
    bands = bands_of(run, wish.held)
    workers = [worker for band in Band for worker in bands[band]]
    if form is Form.TILES:
        most = max(len(bands[Band.NEEDS_YOU]), len(bands[Band.WORKING]), 1)
        fitting = (cells - 2) // (widest_name(scene) + _AROUND_NAME + 1)
        columns = max(min(columns_of(cells, wish.detail), most, fitting), 1)
        page = _Tiles(scene, run, bands, cells, height, focused, columns).draw()
    elif form is Form.EMERGENCY:
        page = _emergency(scene, run, cells, focused)
    else:
        listed = list(run.workers) if wish.is_plan_order else workers
        page = _table(scene, run, listed, cells=cells, focused=focused)
        here = next((worker for worker in listed if worker.worker == focused), None)
        page = _with_close_up(page, scene, here, size) if here else page
    stood = {w.worker: band for band in Band for w in bands[band]}
    held = {worker.worker: (stood[worker.worker], at) for at, worker in enumerate(workers)}
    return replace(page, held=held)


def _table(
    scene: Scene, run: RunView, workers: Sequence[WorkerView], *, cells: int, focused: str
) -> FleetPage:
    columns = table_columns(scene, cells)
    rows = [table_head(columns)]
    places = []
    for worker in workers:
        places.append(Place(worker.worker, 0, len(rows), cells, 1))
        is_focused = worker.worker == focused
        step = step_of(run, worker)
        rows.append(table_row(worker, step, scene, columns, is_focused=is_focused))
    return FleetPage(form=Form.TABLE, rows=tuple(rows), places=tuple(places))


def _with_close_up(
    page: FleetPage, scene: Scene, worker: WorkerView, size: tuple[int, int]
) -> FleetPage:
    """The table, and below it what its focused worker does or asks, where that has room."""
    cells, height = size
    room = min(height - len(page.rows) - 1, _CLOSE_UP_MOST)
    if room < HEIGHT or scene.run is None:
        return page
    step = step_of(scene.run, worker)
    drawer = card if band_of(worker, step) is Band.NEEDS_YOU else tile
    rows = drawer(worker, step, scene, (cells - 2, room), is_focused=False)
    place = Place(worker.worker, 1, len(page.rows) + 1, cells - 2, room)
    shifted = [(Span(" "), *row) for row in rows]
    return replace(page, rows=(*page.rows, (), *shifted), close_up=place)


def _emergency(scene: Scene, run: RunView, cells: int, focused: str) -> FleetPage:
    bands = bands_of(run)
    rows = [emergency_head(scene, bands, cells)]
    places = []
    for worker in (*bands[Band.NEEDS_YOU], *bands[Band.WORKING]):
        places.append(Place(worker.worker, 0, len(rows), cells, 1))
        is_focused = worker.worker == focused
        rows.append(
            emergency_row(worker, step_of(run, worker), scene, cells, is_focused=is_focused)
        )
    return FleetPage(form=Form.EMERGENCY, rows=tuple(rows), places=tuple(places))


class _Shares(NamedTuple):
    """How the height is shared out: rows of cards and tiles, and how high each is."""

    card_rows: int
    card_height: int
    tile_rows: int
    tile_height: int


@dataclass
class _Tiles:
    """Fleet as tiles being drawn, band after band."""

    scene: Scene
    run: RunView
    bands: dict[Band, list[WorkerView]]
    cells: int
    height: int
    focused: str
    columns: int
    rows: list[Row] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def draw(self) -> FleetPage:
        bands = self.bands
        needs, working = bands[Band.NEEDS_YOU], bands[Band.WORKING]
        rest = bands[Band.WAITING] + bands[Band.SETTLED]
        shares = self._shares(len(needs), len(working), len(rest))
        if needs:
            self._head("NEEDS YOU", Role.WAITING, len(needs))
            self._grid(needs, shares.card_rows, shares.card_height, is_card=True)
        if working:
            self._head("WORKING", Role.RUNNING, len(working), _working_note(working))
            self._grid(working, shares.tile_rows, shares.tile_height, is_card=False)
        self._rest(bands)
        return FleetPage(form=Form.TILES, rows=tuple(self.rows), places=tuple(self.places))

    def _shares(self, needs: int, working: int, rest: int) -> _Shares:
        """Cards first; then tiles get what is left; what does not fit becomes rows."""
        card = TALL_HEIGHT if self.height >= _TALL_SCREEN else HEIGHT
        space = self.height - (min(rest, _FEW) + 1 if rest else 0)
        space -= 2 * bool(needs) + 2 * bool(working)
        wanted = ceil(needs / self.columns)
        kept = _TILE_LEAST if working else 0
        cards = min(wanted, max((space - kept) // card, 1)) if needs else 0
        space -= cards * card + max(needs - cards * self.columns, 0)
        rows = ceil(working / self.columns)
        while rows > 1 and rows * _TILE_LEAST + max(working - rows * self.columns, 0) > space:
            rows -= 1
        space -= max(working - rows * self.columns, 0)
        high = min(max(space // rows, _TILE_LEAST), _TILE_MOST) if rows else 0
        return _Shares(cards, card, rows, high)

    def _head(self, title: str, role: Role, count: int, note: str = "") -> None:
        if self.rows:
            self.rows.append(())
        row = heading(title, self.cells - 2, role, figure=str(count), note=note)
        self.rows.append((Span(" "), *row))

    def _grid(
        self, workers: Sequence[WorkerView], rows: int, height: int, *, is_card: bool
    ) -> None:
        """So many rows of cards or tiles; the workers that are left over get a line each."""
        in_grid = rows * self.columns
        widths = _widths(self.cells - 2, self.columns)
        for start in range(0, min(in_grid, len(workers)), self.columns):
            blocks: list[tuple[list[Row], int]] = []
            x = 1
            for worker, width in zip(workers[start : start + self.columns], widths, strict=False):
                self.places.append(Place(worker.worker, x, len(self.rows), width, height))
                step = step_of(self.run, worker)
                is_focused = worker.worker == self.focused
                size = (width, height)
                is_needy = is_card and band_of(worker, step) is Band.NEEDS_YOU
                drawer = card if is_needy else tile
                blocks.append(
                    (drawer(worker, step, self.scene, size, is_focused=is_focused), width)
                )
                x += width + 1
            self.rows += [(Span(" "), *row) for row in beside(blocks, (Span(" "),))]
        self._lines(workers[in_grid:])

    def _lines(self, workers: Sequence[WorkerView]) -> None:
        for worker in workers:
            self.places.append(Place(worker.worker, 0, len(self.rows), self.cells, 1))
            step = step_of(self.run, worker)
            is_focused = worker.worker == self.focused
            self.rows.append(line_of(worker, step, self.scene, self.cells, is_focused=is_focused))

    def _rest(self, bands: dict[Band, list[WorkerView]]) -> None:
        """WAITING and SETTLED: a few rows; the focused worker is always among them."""
        waiting, settled = bands[Band.WAITING], bands[Band.SETTLED]
        if not waiting and not settled:
            return
        if self.rows:
            self.rows.append(())
        names = [f"{n} {len(w)}" for n, w in (("WAITING", waiting), ("SETTLED", settled)) if w]
        self.rows.append((Span(" "), *heading("  ".join(names), self.cells - 2)))
        rest = [*waiting, *reversed(settled)]
        room = max(self.height - len(self.rows), 1)
        few = min(room, _FEW) - 1
        is_inside = any(worker.worker == self.focused for worker in rest[few:])
        if len(rest) <= few + 1 or is_inside:
            self._lines(rest)
            return
        self._lines(rest[:few])
        left = len(rest) - few
        self.rows.append(fit((Span(f"  ► {left} more", Ink(Role.MUTED)),), self.cells))


def _working_note(workers: Sequence[WorkerView]) -> str:
    held = sum(worker.phase.holds_slot for worker in workers)
    waits = len(workers) - held
    return f"{held} run, {waits} wait" if waits else ""


def _widths(cells: int, columns: int) -> list[int]:
    """Equal widths with one blank between; the first ones get what is left over."""
    share, over = divmod(cells - (columns - 1), columns)
    return [share + (1 if index < over else 0) for index in range(columns)]


def move(places: Sequence[Place], focused: str, direction: str) -> str:
    """The worker next to the focused one in a direction: up, down, left or right."""
    here = next((place for place in places if place.worker == focused), None)
    if here is None:
        return places[0].worker if places else focused
    candidates = [place for place in places if _lies(place, here, direction)]
    if not candidates:
        return focused
    return min(candidates, key=lambda place: _distance(place, here, direction)).worker


def _lies(place: Place, here: Place, direction: str) -> bool:
    match direction:
        case "up":
            return place.y + place.height <= here.y
        case "down":
            return place.y >= here.y + here.height
        case "left":
            return place.y == here.y and place.x < here.x
        case _:
            return place.y == here.y and place.x > here.x


def _distance(place: Place, here: Place, direction: str) -> tuple[int, int]:
    if direction in {"up", "down"}:
        return abs(place.y - here.y), abs(place.x - here.x)
    return abs(place.x - here.x), 0


def visible(page: FleetPage, focused: str, top: int, size: tuple[int, int]) -> tuple[int, Page]:
    """The part of Fleet that is on screen: scrolled so that the focused worker is seen whole."""
    cells, height = size
    place = page.place(focused)
    is_headed = page.form is not Form.TILES
    if place is not None:
        lead = 1 if is_headed else 0
        top = min(top, max(place.y - lead - (0 if is_headed else 1), 0))
        top = max(top, place.y + place.height - height)
    top = max(min(top, len(page.rows) - height), 0)
    rows = list(page.rows[top : top + height])
    if is_headed and top and rows:
        rows[0] = page.rows[0]
    rows += [()] * (height - len(rows))
    zones = tuple(
        Zone(at.x, at.y - top, at.width, at.height, f"worker:{at.worker}")
        for at in (*page.places, *filter(None, (page.close_up,)))
        if 0 <= at.y - top < height
    )
    return top, Page(tuple(fit(row, cells) for row in rows), zones)
