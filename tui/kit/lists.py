"""A worker as one row: in the bands that have no tiles, in the table, in the emergency list."""

from typing import NamedTuple

from engine.messages.results import StepView, WorkerView
from engine.phases import Phase
from tui.ink import (
    BOLD,
    LINE,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    blank,
    cut_middle,
    fit,
    grounded,
    row_width,
    words,
)
from tui.kit.meters import is_nearly
from tui.kit.panes import Edge
from tui.kit.tiles import memory_share
from tui.words.cutting import cut_end
from tui.words.figures import UNKNOWN, cost, lasting, memory
from tui.words.looks import MARK, chip, fill_of, glyph, look_of
from tui.words.said import change_text, line_counts, now_text, present_change
from tui.words.scene import Scene
from tui.words.standing import Band, band_of, clock_of, name_of

_PHASE = 11
_LEAST_NOW, _LEAST_BESIDE_MEMORY = 18, 28
_LEAST_NAME, _GAP, _MEMORY = 10, 2, 4
_HEADS = ("TIME", "CHANGE", "MEM", "COST")
_MISSED_LEAST = (0, 3, 1, 2)
"""The order in which the columns of figures get their room, as places in the row of heads."""


def cursor_row(row: Row, cells: int, *, is_focused: bool) -> Row:
    """A list's row: under the cursor a bar and a ground, else a blank in its place."""
    if not is_focused:
        return fit((Span(" "), *row), cells)
    return grounded(fit((Span("▌", Ink(Role.FOCUS)), *row), cells), Role.SELECTION)


def line_of(
    worker: WorkerView, step: StepView, scene: Scene, cells: int, *, is_focused: bool
) -> Row:
    """A worker that has no tile: glyph, name, phase, what is said of it, time and cost."""
    wide = max(22, min(28, cells // 5))
    name = fit(cut_middle(name_of(worker, step), wide), wide)
    look = look_of(worker)
    word = (*_phase_cell(worker), Span(" "))
    ending = words(clock_of(worker, scene.now), "  ", Span(cost(worker.usage.usd), TEXT), " ")
    mark = MARK if worker.worker in scene.marks else Span(" ")
    room = cells - row_width(name) - _PHASE - 7 - row_width(ending)
    said = now_text(worker, step, scene.now, room)
    change = (
        change_text(worker) if worker.phase is Phase.LANDED else (Span(cut_end(said, room), MUTED),)
    )
    left = (mark, glyph(look), Span(" "), *name, Span(" "), *word, Span(" "), *fit(change, room))
    return cursor_row((*left, *ending), cells, is_focused=is_focused)


class Columns(NamedTuple):
    """The cells of a table and of its columns; those that have no room are left out."""

    whole: int
    name: int
    now: int
    time: int
    change: int
    memory: int
    cost: int


def table_columns(scene: Scene, cells: int) -> Columns:
    """Return the columns of a table this wide; they are counted once for all its rows.

    A column has the width that it was dragged to. What the others leave is for what a worker does.
    Names that are too long for their phases to be seen lose their middles.
    """
    longest = max(cells - 5 - _PHASE - _LEAST_NOW, _LEAST_NAME)
    name = max(scene.widths.get(_edge("WORKER"), min(widest_name(scene) + 1, longest)), _LEAST_NAME)
    left = cells - 5 - name - _PHASE
    shown = [0] * len(_HEADS)
    widest = _widest_figures(scene)
    for place in _MISSED_LEAST:
        head = _HEADS[place]
        width = max(widest[place], len(head)) + _GAP if widest[place] else 0
        if left - width >= (_LEAST_BESIDE_MEMORY if head == "MEM" else _LEAST_NOW):
            wished = max(scene.widths.get(_edge(head), width), width)
            shown[place] = min(wished, left - _LEAST_NOW)
            left -= shown[place]
    return Columns(cells, name, max(left, 0), *shown)


def _edge(head: str) -> str:
    """Return the name of the width of a column."""
    return f"fleet.{head.lower()}"


def widest_name(scene: Scene) -> int:
    """Return the width of the widest worker's name."""
    run = scene.run
    if run is None:
        return 0
    return max(
        (row_width(name_of(worker, step)) for step in run.steps for worker in step.workers),
        default=0,
    )


def table_head(columns: Columns) -> Row:
    """The heads of the table's columns."""
    row = [blank(3, MUTED), *fit((Span("WORKER", MUTED),), columns.name - 1)]
    row += [edge_mark(_edge("WORKER"), 1, columns.name), Span(f"{' PHASE':{_PHASE + 1}}", MUTED)]
    row += fit((Span("NOW", MUTED),), columns.now)
    for title, width in zip(_HEADS, columns[3:], strict=True):
        if width:
            row += [edge_mark(_edge(title), -1, width), Span(title.rjust(width - 1), MUTED)]
    return grounded(fit(row, columns.whole), Role.SURFACE)


def edge_mark(name: str, way: int, cells: int) -> Span:
    """Return the mark in a table's head that drags the edge of a column; see `Edge` and `Head`."""
    return Span("│", LINE._replace(does=Edge(name, way, cells).does))


def table_row(
    worker: WorkerView,
    step: StepView,
    scene: Scene,
    columns: Columns,
    *,
    is_focused: bool,
) -> Row:
    """A worker as a row of the table."""
    now = columns.now
    look = look_of(worker)
    is_over = band_of(worker, step) >= Band.WAITING
    counted = now_text(worker, step, scene.now, now - 1, is_counted=columns.change > 0)
    said = cut_end(counted, now - 1)
    title = cut_middle(name_of(worker, step), columns.name - 1)
    mark = MARK if worker.worker in scene.marks else glyph(look)
    row = [mark, Span(" "), *fit(_quiet(title) if is_over else title, columns.name)]
    row += [*_phase_cell(worker), Span(" ")]
    row += fit((Span(said, MUTED if is_over else TEXT),), now)
    if columns.time:
        row.append(Span(clock_of(worker, scene.now).rjust(columns.time), MUTED))
    if columns.change:
        lines = line_counts(present_change(worker))
        row += [Span(" " * (columns.change - row_width(lines))), *lines]
    if columns.memory:
        hot = worker.phase.holds_slot and is_nearly(memory_share(worker))
        ink = Ink(Role.LIMIT, bold=True) if hot else MUTED
        used = memory(worker.usage.memory_mb) if worker.phase.holds_slot else UNKNOWN
        row.append(Span(used.rjust(columns.memory), ink))
    if columns.cost:
        row.append(Span(cost(worker.usage.usd).rjust(columns.cost), MUTED if is_over else TEXT))
    return cursor_row(tuple(row), columns.whole, is_focused=is_focused)


def _quiet(row: Row) -> Row:
    return tuple(Span(span.text, span.ink._replace(role=Role.MUTED)) for span in row)


def _phase_cell(worker: WorkerView) -> Row:
    look = look_of(worker)
    if look.is_filled:
        return fit((Span(f" {look.word}", fill_of(look.role)),), _PHASE, fill_of(look.role))
    return fit((Span(" "), chip(look)), _PHASE)


def _widest_figures(scene: Scene) -> tuple[int, int, int, int]:
    """Return the cells that each figure takes at most, without drawing every row.

    Changes take none until there is one.
    """
    run = scene.run
    if run is None:
        return 0, 0, 0, 0
    longest = len(lasting(scene.now - run.started_at))  # no worker is older than its run
    most, lines = 0.0, 0
    for worker in run.workers:
        most = max(most, worker.usage.usd or 0.0)
        lines = max(lines, row_width(line_counts(present_change(worker))))
        if worker.phase is Phase.BACKING_OFF:
            longest = max(longest, len(clock_of(worker, scene.now)))
    return longest, lines, _MEMORY, len(cost(most))


def emergency_row(
    worker: WorkerView, step: StepView, scene: Scene, cells: int, *, is_focused: bool
) -> Row:
    """The one line there is room for on a very small screen."""
    short = cut_middle(name_of(worker, step)[1:], cells // 2)
    room = cells - row_width(short) - 5
    said = cut_end(now_text(worker, step, scene.now, room), room)
    row = (glyph(look_of(worker)), Span(" "), *short, Span(" "), Span(said, TEXT))
    return cursor_row(row, cells, is_focused=is_focused)


def emergency_head(scene: Scene, bands: dict[Band, list[WorkerView]], cells: int) -> Row:
    """`? 3 need you   ● 2  ✓ 1`."""
    need = len(bands[Band.NEEDS_YOU])
    left = (
        (Span(f" ? {need} {'needs' if need == 1 else 'need'} you", Ink(Role.WAITING, bold=True)),)
        if need
        else (Span(" plait", BOLD),)
    )
    ended = "✓" if scene.run else ""
    right = f"● {len(bands[Band.WORKING])}  {ended} {len(bands[Band.SETTLED])} "
    gap = cells - row_width(left) - len(right)
    return fit((*left, Span(" " * max(gap, 1)), Span(right, MUTED)), cells)
