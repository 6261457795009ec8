"""A plan as a graph of boxes in columns, joined by lines; each step stands after what it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.messages.results import RunView, StepView
from tui.ink import LINE, MUTED, TEXT, Ink, Role, Row, Span, clickable, overlaid, spread, words
from tui.kit.frames import framed
from tui.kit.rail import step_note
from tui.words.figures import cost_of, lasting
from tui.words.looks import glyph, look_of
from tui.words.standing import Band, band_of

_BOX_HEIGHT = 5
_GAP = 6
_LEAST_BOX, _MOST_BOX = 22, 34
_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_JOINTS = {
    _LEFT | _RIGHT: "─",
    _UP | _DOWN: "│",
    _LEFT: "─",
    _RIGHT: "─",
    _UP: "│",
    _DOWN: "│",
    _LEFT | _DOWN: "╮",
    _LEFT | _UP: "╯",
    _RIGHT | _DOWN: "╭",
    _RIGHT | _UP: "╰",
    _LEFT | _UP | _DOWN: "┤",
    _RIGHT | _UP | _DOWN: "├",
    _LEFT | _RIGHT | _DOWN: "┬",
    _LEFT | _RIGHT | _UP: "┴",
    _LEFT | _RIGHT | _UP | _DOWN: "┼",
}


class Box(NamedTuple):
    """Hold where a step's box stands."""

    step: str
    x: int
    y: int
    width: int


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The plan drawn, and where each box stands."""

    rows: tuple[Row, ...]
    boxes: tuple[Box, ...]
    width: int


def ranks(steps: Sequence[StepView]) -> dict[str, int]:
    """In which column each step stands: one after the last of its dependencies."""
    found: dict[str, int] = {}
    for step in steps:  # steps stand in an order their dependencies allow
        found[step.name] = max((found.get(name, -1) + 1 for name in step.dependencies), default=0)
    return found


def draw_graph(run: RunView, focused: str, cells: int, now: float) -> Graph:
    """The plan's graph; it may be wider than the screen, whose part is then shown."""
    columns: dict[int, list[StepView]] = {}
    placed = ranks(run.steps)
    for step in run.steps:
        columns.setdefault(placed[step.name], []).append(step)
    fair = (cells - 2 - _GAP * (len(columns) - 1)) // max(len(columns), 1)
    width = min(max(fair, _LEAST_BOX), _MOST_BOX)
    height = max((len(column) for column in columns.values()), default=0) * (_BOX_HEIGHT + 1) - 1
    boxes: dict[str, Box] = {}
    for rank, column in columns.items():
        top = (height - (len(column) * (_BOX_HEIGHT + 1) - 1)) // 2
        for index, step in enumerate(column):
            x, y = 1 + rank * (width + _GAP), top + index * (_BOX_HEIGHT + 1)
            boxes[step.name] = Box(step.name, x, y, width)
    whole = 2 + len(columns) * width + (len(columns) - 1) * _GAP
    rows = _lines(run.steps, boxes, max(whole, 1), max(height, 0))
    for step in run.steps:
        box = boxes[step.name]
        drawn = [
            clickable(row, f"step:{step.name}")
            for row in _box(step, now, width, is_focused=step.name == focused)
        ]
        rows = overlaid(rows, drawn, box.x, box.y)
    return Graph(rows=tuple(rows), boxes=tuple(boxes.values()), width=whole)


def _box(step: StepView, now: float, width: int, *, is_focused: bool) -> list[Row]:
    marks = [span for worker in step.workers[:6] for span in (glyph(look_of(worker)), Span(" "))]
    if len(step.workers) > 6:  # noqa: PLR2004 - as many as are drawn
        marks.append(Span(f"+{len(step.workers) - 6}", MUTED))
    inner = width - 4
    longest = max((worker.worked_s for worker in step.workers), default=0.0)
    live = [w.attempt_since for w in step.workers if w.is_live and w.attempt_since]
    ran = max(longest, now - min(live) if live else 0.0)
    policy = words(f"policy {step.policy}" if len(step.workers) > 1 else step.command or "")
    rows = [
        spread(marks, words(step_note(step)), inner),
        spread(
            (Span(lasting(ran) if ran else "", TEXT),), (Span(cost_of(step.workers), TEXT),), inner
        ),
        policy,
    ]
    title = (Span(step.name, Ink(bold=True)),)
    return framed(
        rows, (width, _BOX_HEIGHT), title=title, ending=_ending(step), is_focused=is_focused
    )


def _ending(step: StepView) -> Row:
    bands = [band_of(worker, step) for worker in step.workers]
    if Band.NEEDS_YOU in bands:
        return (Span("? NEEDS YOU", Ink(Role.WAITING, bold=True)),)
    if Band.WORKING in bands:
        return (Span("● WORKING", Ink(Role.RUNNING, bold=True)),)
    if bands and all(band is Band.SETTLED for band in bands):
        role = Role.DONE if step.outcome == "success" else Role.MUTED
        return (Span(step.outcome.upper(), Ink(role, bold=True)),)
    return (Span("WAITING", MUTED),)


def _lines(
    steps: Sequence[StepView], boxes: Mapping[str, Box], width: int, height: int
) -> list[Row]:
    """The lines between boxes: right out of one, down or up in the gap, right into the next."""
    grid: dict[tuple[int, int], int] = {}
    heads: set[tuple[int, int]] = set()

    def join(x: int, y: int, ways: int) -> None:
        grid[x, y] = grid.get((x, y), 0) | ways

    for step in steps:
        end = boxes[step.name]
        end_y = end.y + _BOX_HEIGHT // 2
        for name in step.dependencies:
            if name not in boxes:
                continue
            start = boxes[name]
            start_y = start.y + _BOX_HEIGHT // 2
            turn = end.x - _GAP // 2 - 1
            for x in range(start.x + start.width, turn):
                join(x, start_y, _LEFT | _RIGHT)
            join(turn, start_y, _LEFT | _way(start_y, end_y))
            for y in range(min(start_y, end_y) + 1, max(start_y, end_y)):
                join(turn, y, _UP | _DOWN)
            join(turn, end_y, _RIGHT | _way(end_y, start_y))
            for x in range(turn + 1, end.x - 1):
                join(x, end_y, _LEFT | _RIGHT)
            heads.add((end.x - 1, end_y))
    return [
        (
            Span(
                "".join(
                    "►" if (x, y) in heads else _JOINTS.get(grid.get((x, y), 0), " ")
                    for x in range(width)
                ),
                LINE,
            ),
        )
        for y in range(height)
    ]


def _way(from_y: int, to_y: int) -> int:
    """Return which way a line leaves a turn: up, down, or straight on."""
    if to_y == from_y:
        return _LEFT | _RIGHT
    return _DOWN if to_y > from_y else _UP
