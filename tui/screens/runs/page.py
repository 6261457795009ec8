"""Runs: the history, newest first."""

from engine.messages.results import RunView
from tui.bridge import PastRun
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, fit, grounded, words
from tui.kit.lists import cursor_row
from tui.words.figures import clock, cost_of, lasting
from tui.words.scene import Scene

_OUTCOMES = {
    "success": ("✓", Role.DONE),
    "unchanged": ("≡", Role.MUTED),
    "failed": ("✗", Role.FAILED),
    "cancelled": ("■", Role.MUTED),
    "skipped": ("»", Role.MUTED),
    "pending": ("●", Role.RUNNING),
}


_OTHERS, _NAME_LEAST, _NAME_MOST = 63, 14, 44
"""The cells of the other columns, and those of a name at least and at most."""


def _name_cells(cells: int) -> int:
    return min(max(cells - _OTHERS, _NAME_LEAST), _NAME_MOST)


def past_row(past: PastRun, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    """A run that is not open: when it was and how it came out."""
    glyph, role = _OUTCOMES.get(past.verdict, ("·", Role.MUTED))
    lasted = lasting(past.ended_at - past.started_at) if past.ended_at else ""
    row = words(
        Span(glyph, Ink(role, bold=True)),
        " ",
        *fit((Span(past.run, Ink(Role.MUTED, bold=True)),), 12),
        *fit((Span(past.name, MUTED),), _name_cells(cells)),
        *fit((Span(clock(past.started_at, scene.now), MUTED),), 10),
        *fit((Span(lasted, MUTED),), 10),
        past.problem or past.standing,
    )
    return cursor_row(row, cells, is_focused=is_focused)


def ordered(scene: Scene) -> list[RunView]:
    """All runs, newest first."""
    return sorted(scene.view.runs, key=lambda run: run.started_at, reverse=True)


def run_head(cells: int) -> Row:
    """The heads of the columns."""
    name = f"{'NAME':<{_name_cells(cells)}}"
    head = words(f"   RUN         {name}BEGAN     LASTED    WORKERS          COST")
    return grounded(fit(head, cells), Role.SURFACE)


def run_row(run: RunView, scene: Scene, cells: int, *, is_focused: bool, is_marked: bool) -> Row:
    """A run that the engine has open."""
    glyph, role = ("?", Role.WAITING) if run.is_waiting else _OUTCOMES[run.outcome]
    ended = run.ended_at or scene.now
    settled = sum(worker.phase.is_settled for worker in run.workers)
    row = words(
        Span("■" if is_marked else glyph, Ink(role, bold=True)),
        " ",
        *fit((Span(run.run, Ink(bold=True)),), 12),
        *fit((Span(run.name, TEXT),), _name_cells(cells)),
        *fit((Span(clock(run.started_at, scene.now), MUTED),), 10),
        *fit((Span(lasting(ended - run.started_at), TEXT),), 10),
        *fit((Span(f"{settled} of {len(run.workers)} settled", MUTED),), 17),
        Span(cost_of(run.workers), TEXT),
    )
    return cursor_row(row, cells, is_focused=is_focused)


def no_run(said: str) -> list[Row]:
    """Say what is true of a repository without runs, and what begins one."""
    begins = words("  ", Span('plait run "Fix the bug"', KEY), " in a terminal begins one.")
    return [words(Span(f"  {said}", BOLD)), begins]
