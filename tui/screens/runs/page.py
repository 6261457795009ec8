"""Runs: the history, newest first."""

from collections.abc import Sequence

from engine.messages.results import RunView
from tui.bridge import PastRun
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, blank, fit, grounded, words
from tui.kit.lists import cursor_row, edge_mark
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


_WIDTHS = {"RUN": 12, "NAME": 14, "BEGAN": 10, "LASTED": 10, "WORKERS": 17}
"""The cells of the columns before the last, those of a name at least."""
_LAST, _NAME_MOST, _GAP = 14, 44, 2


def columns_of(scene: Scene, cells: int) -> dict[str, int]:
    """Return the cells of each column on a screen this wide, or what it was dragged to."""
    spare = max(cells - sum(_WIDTHS.values()) - _LAST, 0)
    name = min(_WIDTHS["NAME"] + spare, _NAME_MOST)
    return {
        head: max(scene.widths.get(_edge(head), own), len(head) + _GAP)
        for head, own in {**_WIDTHS, "NAME": name}.items()
    }


def _edge(head: str) -> str:
    """Return the name of the width of a column."""
    return f"runs.{head.lower()}"


def past_row(past: PastRun, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    """A run that is not open: when it was and how it came out."""
    glyph, role = _OUTCOMES.get(past.verdict, ("·", Role.MUTED))
    lasted = lasting(past.ended_at - past.started_at) if past.ended_at else ""
    began = clock(past.started_at, scene.now)
    named = Span(past.run, Ink(Role.MUTED, bold=True))
    known = (named, Span(past.name, MUTED), Span(began, MUTED), Span(lasted, MUTED))
    mark, said = Span(glyph, Ink(role, bold=True)), Span(past.problem or past.standing, MUTED)
    row = (mark, Span(" "), *_cells_of(known, scene, cells), said)
    return cursor_row(row, cells, is_focused=is_focused)


def _cells_of(known: Sequence[Span], scene: Scene, cells: int) -> Row:
    """Return what is known of a run, each in its column, a blank behind it."""
    widths = columns_of(scene, cells).values()
    columns = [
        (*fit((one,), width - 1), blank(1)) for one, width in zip(known, widths, strict=False)
    ]
    return tuple(span for column in columns for span in column)


def ordered(scene: Scene) -> list[RunView]:
    """All runs, newest first."""
    return sorted(scene.view.runs, key=lambda run: run.started_at, reverse=True)


def run_head(scene: Scene, cells: int) -> Row:
    """The heads of the columns."""
    row = [Span("   ", MUTED)]
    for head, width in columns_of(scene, cells).items():
        row += [Span(f"{head:<{width - 1}}", MUTED), edge_mark(_edge(head), 1, width)]
    return grounded(fit((*row, Span("COST", MUTED)), cells), Role.SURFACE)


def run_row(run: RunView, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    """A run that the engine has open."""
    glyph, role = ("?", Role.WAITING) if run.is_waiting else _OUTCOMES[run.outcome]
    ended = run.ended_at or scene.now
    settled = sum(worker.phase.is_settled for worker in run.workers)
    known = (
        Span(run.run, BOLD),
        Span(run.name, TEXT),
        Span(clock(run.started_at, scene.now), MUTED),
        Span(lasting(ended - run.started_at), TEXT),
        Span(f"{settled} of {len(run.workers)} settled", MUTED),
    )
    mark = Span(glyph, Ink(role, bold=True))
    spent = Span(cost_of(run.workers), TEXT)
    row = (mark, Span(" "), *_cells_of(known, scene, cells), spent)
    return cursor_row(row, cells, is_focused=is_focused)


def no_run(said: str) -> list[Row]:
    """Say what is true of a repository without runs, and what begins one."""
    begins = words("  ", Span('plait run "Fix the bug"', KEY), " in a terminal starts one.")
    return [words(Span(f"  {said}", BOLD)), begins]
