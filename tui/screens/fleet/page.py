"""Lay Fleet out: three bands of cards, tiles and rows; or a table; or, on a tiny screen, a list.

A table that leaves room shows its focused worker below, as large as a tile or card would. A page
is made of pieces, each with its place; a piece is drawn when it is seen.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from math import ceil
from typing import NamedTuple

from engine.messages.results import RunView, WorkerView
from tui.ink import Ink, Role, Row, Span, fit
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
from tui.words.clean import clean
from tui.words.scene import Scene
from tui.words.standing import Band, Held, band_of, bands_of, step_of

_TINY_WIDTH, _TINY_HEIGHT = 40, 10
_TABLE_BELOW, _TABLE_ABOVE_LIVE = 100, 12
_FOUR_COLUMNS_FROM = 220
_TALL_SCREEN = 38
_TILE_LEAST = 8
_NARROWEST_TILE = 30
_AROUND_NAME = 18
"""Frame, glyph and clock beside a name: names are never cut, so columns give way."""
_FEW = 4
MORE = "more "
"""The piece that stands for the workers that are folded away; no worker's name has a blank."""


class Form(StrEnum):
    """In which form Fleet stands."""

    TILES = "tiles"
    TABLE = "table"
    EMERGENCY = "emergency"


class Piece(NamedTuple):
    """A part of the page: its name, its place, and what draws its rows.

    The name is that of a worker, or of a heading.
    """

    name: str
    x: int
    y: int
    width: int
    height: int
    draw: Callable[[], list[Row]]
    is_worker: bool = True

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Return where it stands."""
        return self[1:5]


@dataclass(frozen=True, kw_only=True)
class FleetPage:
    """Fleet laid out: the pieces that scroll, perhaps more than fit.

    Attributes:
        head: The row that stays above the pieces of a table or list.
        close_up: The focused worker a second time, larger than its row in a table.
        held: Keeps everybody where it stands when the next page is laid out with it.
    """

    form: Form
    pieces: tuple[Piece, ...] = ()
    head: Row = ()
    close_up: Piece | None = None
    held: Held = field(default_factory=dict)

    @property
    def places(self) -> tuple[Piece, ...]:
        """The pieces that are workers."""
        return tuple(piece for piece in self.pieces if piece.is_worker)

    def place(self, worker: str) -> Piece | None:
        """Return the piece of a worker, if it has one."""
        return next((piece for piece in self.places if piece.name == worker), None)


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


def columns_of(scene: Scene, cells: int, bands: Mapping[Band, Sized], detail: int) -> int:
    """Return how many columns of tiles there are, the user's wish included."""
    wished = (4 if cells >= _FOUR_COLUMNS_FROM else 3) - detail
    most = max(len(bands[Band.NEEDS_YOU]), len(bands[Band.WORKING]), 1)
    fitting = (cells - 2) // (widest_name(scene) + _AROUND_NAME + 1)
    return max(min(wished, cells // _NARROWEST_TILE, most, fitting), 1)


def look_at(scene: Scene, size: tuple[int, int], detail: int) -> tuple[Form, int]:
    """Return in which form, and in how many columns, Fleet would stand at a size."""
    if scene.run is None:
        return Form.TABLE, 0
    form = form_of(scene.run, *size, detail)
    columns = columns_of(scene, size[0], bands_of(scene.run), detail) if form is Form.TILES else 0
    return form, columns


class Order(StrEnum):
    """The orders of workers, by what is said of each; the last two show as a table."""

    NEED = "workers that need you come first"
    PLAN = "in plan order, as a table"
    NODE = "by node, as a table"


def orders_of(run: RunView | None) -> tuple[Order, ...]:
    """Return the orders that tell something of a run: places do where there is more than one."""
    has_places = run is not None and any(worker.site for worker in run.workers)
    return tuple(Order) if has_places else (Order.NEED, Order.PLAN)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Hold the wishes for Fleet: larger or smaller, an order, standing still, in part.

    `shown` names the workers that are to be seen; None stands for all.
    """

    detail: int = 0
    order: Order = Order.NEED
    held: Held | None = None
    shown: frozenset[str] | None = None

    def shows(self, workers: Sequence[WorkerView]) -> list[WorkerView]:
        """Return those that are to be seen."""
        return [w for w in workers if self.shown is None or w.worker in self.shown]


def lay_out(
    scene: Scene, size: tuple[int, int], focused: str, wish: Wish | None = None
) -> FleetPage:
    """Return Fleet for a run, at this size."""
    wish, run = wish or Wish(), scene.run
    if run is None:
        return FleetPage(form=Form.TABLE)
    cells, height = size
    form = form_of(run, cells, height, wish.detail)
    if wish.order is Order.NODE and form is Form.TILES:
        form = Form.TABLE
    bands = {band: wish.shows(ws) for band, ws in bands_of(run, wish.held).items()}
    workers = [worker for band in Band for worker in bands[band]]
    if form is Form.TILES:
        columns = columns_of(scene, cells, bands, wish.detail)
        page = _Tiles(scene, run, bands, cells, height, focused, columns).page()
    elif form is Form.EMERGENCY:
        page = _emergency(scene, run, bands, cells=cells, focused=focused)
    else:
        listed = wish.shows(run.workers) if wish.order is Order.PLAN else workers
        if wish.order is Order.NODE:
            listed = sorted(listed, key=lambda worker: worker.site)
        page = _table(scene, run, listed, cells=cells, focused=focused)
        if wish.order is Order.NODE:
            page = replace(page, pieces=_by_node(page.pieces, listed, cells))
        here = next((worker for worker in listed if worker.worker == focused), None)
        page = _with_close_up(page, scene, here, size) if here else page
    stood = {w.worker: band for band in Band for w in bands[band]}
    held = {worker.worker: (stood[worker.worker], at) for at, worker in enumerate(workers)}
    return replace(page, held=held)


def _table(
    scene: Scene, run: RunView, workers: Sequence[WorkerView], *, cells: int, focused: str
) -> FleetPage:
    columns = table_columns(scene, cells)

    def draw(worker: WorkerView) -> list[Row]:
        is_focused = worker.worker == focused
        return [table_row(worker, step_of(run, worker), scene, columns, is_focused=is_focused)]

    rows = _listed(workers, cells, draw)
    return FleetPage(form=Form.TABLE, pieces=rows, head=table_head(columns))


def _listed(
    workers: Sequence[WorkerView], cells: int, draw: Callable[[WorkerView], list[Row]]
) -> tuple[Piece, ...]:
    return tuple(
        Piece(worker.worker, 0, y, cells, 1, partial(draw, worker))
        for y, worker in enumerate(workers)
    )


def _by_node(
    pieces: Sequence[Piece], workers: Sequence[WorkerView], cells: int
) -> tuple[Piece, ...]:
    """Return the rows of workers with a heading before those of each place."""
    found: list[Piece] = []
    counts = Counter(worker.site for worker in workers)
    for piece, worker in zip(pieces, workers, strict=True):
        if counts[worker.site]:
            name, figure = clean(worker.site) or "this machine", str(counts.pop(worker.site))
            draw = partial(_one_row, partial(heading, name, figure=figure, cells=cells))
            found.append(Piece(f"{name} ", 0, len(found), cells, 1, draw, is_worker=False))
        found.append(piece._replace(y=len(found)))
    return tuple(found)


def _with_close_up(
    page: FleetPage, scene: Scene, worker: WorkerView, size: tuple[int, int]
) -> FleetPage:
    """Return the table, and below it what its focused worker does or asks, where there is room."""
    cells, height = size
    room = height - len(page.pieces) - 2
    if room < HEIGHT or scene.run is None:
        return page
    step = step_of(scene.run, worker)
    is_needy = band_of(worker, step) is Band.NEEDS_YOU
    drawer = card if is_needy else tile
    draw = partial(drawer, worker, step, scene, (cells - 2, room), is_focused=False)
    place = Piece(worker.worker, 1, len(page.pieces) + 2, cells - 2, room, draw)
    return replace(page, close_up=place)


def _emergency(
    scene: Scene,
    run: RunView,
    bands: dict[Band, list[WorkerView]],
    *,
    cells: int,
    focused: str,
) -> FleetPage:

    def draw(worker: WorkerView) -> list[Row]:
        is_focused = worker.worker == focused
        return [emergency_row(worker, step_of(run, worker), scene, cells, is_focused=is_focused)]

    rows = _listed((*bands[Band.NEEDS_YOU], *bands[Band.WORKING]), cells, draw)
    return FleetPage(form=Form.EMERGENCY, pieces=rows, head=emergency_head(scene, bands, cells))


class _Shares(NamedTuple):
    """Share the height out: rows of cards and tiles, and how high each is."""

    card_rows: int
    card_height: int
    tile_rows: int
    tile_height: int


@dataclass
class _Tiles:
    """Fleet as tiles being laid out, band after band."""

    scene: Scene
    run: RunView
    bands: dict[Band, list[WorkerView]]
    cells: int
    height: int
    focused: str
    columns: int
    pieces: list[Piece] = field(default_factory=list)
    end: int = 0

    def page(self) -> FleetPage:
        bands = self.bands
        needs, working = bands[Band.NEEDS_YOU], bands[Band.WORKING]
        rest = bands[Band.WAITING] + bands[Band.SETTLED]
        shares = self._shares(len(needs), len(working), len(rest))
        if needs:
            head = partial(heading, "NEEDS YOU", role=Role.WAITING, figure=str(len(needs)))
            self._head("NEEDS YOU", head)
            self._grid(needs, shares.card_rows, shares.card_height, is_card=True)
        if working:
            figure, note = str(len(working)), _working_note(working)
            head = partial(heading, "WORKING", role=Role.RUNNING, figure=figure, note=note)
            self._head("WORKING", head)
            self._grid(working, shares.tile_rows, shares.tile_height, is_card=False)
        self._rest(bands)
        return FleetPage(form=Form.TILES, pieces=tuple(self.pieces))

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
        high = max(space // rows, _TILE_LEAST) if rows else 0
        return _Shares(cards, card, rows, high)

    def _head(self, name: str, head: Callable[..., Row]) -> None:
        """Put a heading, a blank row above it."""
        y = self.end + bool(self.pieces)
        draw = partial(_one_row, partial(head, cells=self.cells - 2))
        self._put(Piece(f"{name} ", 1, y, self.cells - 2, 1, draw, is_worker=False))

    def _put(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.end = piece.y + piece.height

    def _grid(
        self, workers: Sequence[WorkerView], rows: int, height: int, *, is_card: bool
    ) -> None:
        """So many rows of cards or tiles; the workers that are left over get a line each.

        Cards keep to the columns; tiles share the whole width, so that one of them fills it.
        """
        in_grid = min(rows * self.columns, len(workers))
        columns = self.columns if is_card or not rows else ceil(in_grid / rows)
        widths = _widths(self.cells - 2, columns)
        for start in range(0, in_grid, columns):
            x, y = 1, self.end
            for worker, width in zip(workers[start : start + columns], widths, strict=False):
                step = step_of(self.run, worker)
                is_needy = is_card and band_of(worker, step) is Band.NEEDS_YOU
                draw = partial(
                    card if is_needy else tile,
                    worker,
                    step,
                    self.scene,
                    (width, height),
                    is_focused=worker.worker == self.focused,
                )
                self._put(Piece(worker.worker, x, y, width, height, draw))
                x += width + 1
        self._lines(workers[in_grid:])

    def _lines(self, workers: Sequence[WorkerView]) -> None:
        for worker in workers:
            draw = partial(
                line_of,
                worker,
                step_of(self.run, worker),
                self.scene,
                self.cells,
                is_focused=worker.worker == self.focused,
            )
            line = partial(_one_row, draw)
            self._put(Piece(worker.worker, 0, self.end, self.cells, 1, line))

    def _rest(self, bands: dict[Band, list[WorkerView]]) -> None:
        """WAITING and SETTLED: a few rows; the focused worker is always among them."""
        waiting, settled = bands[Band.WAITING], bands[Band.SETTLED]
        if not waiting and not settled:
            return
        names = [f"{n} {len(w)}" for n, w in (("WAITING", waiting), ("SETTLED", settled)) if w]
        self._head("REST", partial(heading, "  ".join(names)))
        rest = [*waiting, *reversed(settled)]
        room = max(self.height - self.end, 1)
        few = min(room, _FEW) - 1
        is_inside = any(worker.worker == self.focused for worker in rest[few:])
        if len(rest) <= few + 1 or is_inside:
            self._lines(rest)
            return
        self._lines(rest[:few])
        row = fit((Span(f"  ► {len(rest) - few} more", Ink(Role.MUTED)),), self.cells)
        draw = partial(_one_row, lambda: row)
        self._put(Piece(MORE, 0, self.end, self.cells, 1, draw, is_worker=False))


def _one_row(draw: Callable[[], Row]) -> list[Row]:
    return [draw()]


def _working_note(workers: Sequence[WorkerView]) -> str:
    held = sum(worker.phase.holds_slot for worker in workers)
    waits = len(workers) - held
    return f"{held} running, {waits} waiting" if waits else ""


def _widths(cells: int, columns: int) -> list[int]:
    """Equal widths with one blank between; the first ones get what is left over."""
    share, over = divmod(cells - (columns - 1), columns)
    return [share + (1 if index < over else 0) for index in range(columns)]


def move(places: Sequence[Piece], focused: str, direction: str) -> str:
    """The worker next to the focused one in a direction: up, down, left or right."""
    here = next((place for place in places if place.name == focused), None)
    if here is None:
        return places[0].name if places else focused
    candidates = [place for place in places if _lies(place, here, direction)]
    if not candidates:
        return focused
    return min(candidates, key=lambda place: _distance(place, here, direction)).name


def _lies(place: Piece, here: Piece, direction: str) -> bool:
    match direction:
        case "up":
            return place.y + place.height <= here.y
        case "down":
            return place.y >= here.y + here.height
        case "left":
            return place.y == here.y and place.x < here.x
        case _:
            return place.y == here.y and place.x > here.x


def _distance(place: Piece, here: Piece, direction: str) -> tuple[int, int]:
    if direction in {"up", "down"}:
        return abs(place.y - here.y), abs(place.x - here.x)
    return abs(place.x - here.x), 0
