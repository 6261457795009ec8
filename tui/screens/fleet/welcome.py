"""Before the first run: the plait, the ways to begin, and what is known of this machine."""

from __future__ import annotations

from math import sin, tau
from typing import TYPE_CHECKING

from tui.ink import BOLD, KEY, TEXT, Ink, Role, Row, Span, fit, words
from tui.kit.meters import heading
from tui.words.figures import memory, some
from tui.words.scene import Scene
from tui.words.starting import agents_rows, held_rows

if TYPE_CHECKING:  # a type alone: the front door imports much
    from engine.api import Beginnings

_STRANDS = (Role.ACCENT, Role.FOCUS, Role.ACCENT_DEEP)
_PERIOD = 21.0
_PIXELS = 8
_WIDEST = 63
_THICK = 1.25
_WAYS = (
    ("plait demo", "a sample repository, no key needed"),
    ("plait init", "writes a first plait.yaml"),
)


def plait(cells: int) -> list[Row]:
    """Three strands woven into one, two pixels to a cell."""
    grid = [[_strand(x, y) for x in range(cells)] for y in range(_PIXELS)]
    return [
        tuple(_half_block(grid[y][x], grid[y + 1][x]) for x in range(cells))
        for y in range(0, _PIXELS, 2)
    ]


def _strand(x: int, y: int) -> Role | None:
    """Return the strand in front at a pixel, if any: they change places, each over the next."""
    best: tuple[float, Role] | None = None
    for place, role in enumerate(_STRANDS):
        turn = tau * (x / _PERIOD + place / len(_STRANDS))
        middle = (_PIXELS - 1) / 2 + sin(turn) * (_PIXELS / 2 - _THICK)
        depth = sin(2 * turn)
        if abs(y - middle) <= _THICK and (best is None or depth > best[0]):
            best = (depth, role)
    return best[1] if best else None


def _half_block(upper: Role | None, lower: Role | None) -> Span:
    if upper and lower:
        return Span("▀", Ink(upper, lower))
    if upper:
        return Span("▀", Ink(upper))
    return Span("▄", Ink(lower)) if lower else Span(" ")


def welcome(scene: Scene, found: Beginnings | None, size: tuple[int, int]) -> list[Row]:
    """The page that a repository without runs shows; it says less where there is less room."""
    cells, height = size
    width = min(_WIDEST, cells - 6)
    lead = Span(" " * ((cells - width) // 2))
    rows: list[Row] = [
        words(Span("No run yet in this repository. ", BOLD), "Start one of these ways:"),
        (),
        *(_way(scene.key("start"), "write a prompt, choose an agent, and start") if found else ()),
        *(row for command, note in _WAYS for row in _way(command, note)),
    ]
    if found:
        rows += [(), heading("AGENTS", width), *agents_rows(found.agents, width)]
        if not any(agent.is_installed for agent in found.agents):
            rows.append(words(Span("plait agents", KEY), " says how to get each"))
    rows += [(), heading("THIS MACHINE", width), *_machine(scene)]
    rows += held_rows(found.machine, width) if found else []
    doctor = (
        " says more, and how to enforce more" if found else " says what this machine can enforce"
    )
    rows.append(words(Span("plait doctor", KEY), doctor))
    art = [] if scene.is_plain or height < len(rows) + _PIXELS // 2 + 2 else [*plait(width), ()]
    return [(lead, *row) for row in ((), *art, *rows)]


def _way(command: str, note: str) -> list[Row]:
    return [words(*fit((Span(f"  {command}", KEY),), 18), note)]


def _machine(scene: Scene) -> list[Row]:
    machine = scene.view.machine
    cores = some(machine.cores, "core")
    size = f"{cores}, {memory(machine.memory_mb)}" if machine.memory_mb else cores
    return [words(Span("✓ ", Ink(Role.DONE)), Span(size, TEXT))]
