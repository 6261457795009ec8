"""Draw a conflict's page: its subject, what is said of it, and the conflict in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.messages.results import Verdict
from engine.phases import Phase
from tui.ink import (
    BOLD,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    fit,
    spread,
    words,
)
from tui.kit.meters import heading
from tui.screens.review.left import who_rows
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import What
from tui.screens.review.own import writes
from tui.screens.review.pieces import file_page
from tui.screens.review.rows import side_head, side_rows, since
from tui.words.cutting import cut_path, wrap
from tui.words.figures import some

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.api import ConflictView
    from engine.messages.results import RunView, StepView, WorkerView
    from tui.keys import Keymap

_BAR = 10
_ROOMY = 100


def review_subject(pane: ReviewPane, cells: int) -> Row:
    """Row 1: whose change into what, what is open, the check, how many files are done."""
    view = pane.shown
    if view is None:
        return ()
    done = sum(file.is_resolved for file in view.files)
    remembered = sum(
        any(offer.remembered for offer in hunk.proposals) and hunk.choice is None
        for file in view.files
        for hunk in file.hunks
    )
    left = words(
        Span(" ≠ ", Ink(Role.CLASH, bold=True)),
        Span(view.incoming, BOLD),
        f" → {view.target}   ",
        Span(
            f"{pane.open_count} open", Ink(Role.CLASH if pane.open_count else Role.DONE, bold=True)
        ),
        f"   {view.clean} merged by git" if view.clean and cells >= _ROOMY else "",
        f"   {remembered} remembered" if remembered and cells >= _ROOMY else "",
        "   ",
        *check_words(pane, view),
    )
    if view.moved and cells >= _ROOMY:
        left = (*left, *words("   ", Span("▲ target moved, merged again", Ink(Role.LIMIT))))
    full = round(done / len(view.files) * _BAR) if view.files else _BAR
    right = words(
        Span(f"{done}", BOLD),
        f" of {some(len(view.files), 'file')} done ",
        Span("━" * full if cells >= _ROOMY else "", Ink(Role.ACCENT)),
        Span("─" * (_BAR - full) if cells >= _ROOMY else "", Ink(Role.LINE)),
        " ",
    )
    return spread(left, right, cells)


def no_conflicts(worker: WorkerView, target: str | None) -> str:
    """Return why there is nothing to decide about a worker."""
    if worker.phase is Phase.LANDED:
        return f"{worker.worker} has landed{f' on {target}' if target else ''}"
    phase = worker.phase.lower().replace("_", " ")
    return f"{worker.worker} has no conflicts; it is {phase}"


def check_words(pane: ReviewPane, view: ConflictView) -> Row:
    """Return what the check says of exactly this result."""
    if view.problem:
        return (Span("▲ ", Ink(Role.LIMIT, bold=True)), Span(view.problem, Ink(Role.LIMIT)))
    if view.doing:
        return ()
    if view.check is None and pane.was_checked:
        return words(Span("· check stale", Ink(Role.WAITING)))
    if view.check is None:
        return words("· check not run")
    if view.check.passed:
        return words(Span("✓ ", Ink(Role.DONE)), Span(str(Verdict.PROVED), TEXT))
    return words(Span("✗ ", Ink(Role.FAILED)), Span("check failed", TEXT))


def whole_page(
    pane: ReviewPane, run: RunView, cells: int, *, now: float, context: int
) -> list[Row]:
    """The conflict in full: every line of both sides and of the base, who and why, the prompts."""
    view, file, hunk, matter = pane.shown, pane.file, pane.hunk, pane.matter
    if view is None or file is None or matter is None:
        return []
    rows: list[Row] = [words(Span(file.path, BOLD), f"  {file.kind}"), ()]
    if matter.what is What.HUNK and hunk is not None:
        for at, (name, lines) in enumerate(
            ((view.target, hunk.target), (view.incoming, hunk.incoming))
        ):
            rows.append(
                side_head(
                    "ti"[at],
                    name,
                    since(pane, is_target=not at, cells=cells - len(name) - 6),
                    cells,
                    is_target=not at,
                )
            )
            rows += [*side_rows(file.path, lines, cells, picked={}), ()]
        rows.append(heading("BASE", cells, note="as it was before both"))
        rows += [fit((Span("     "), Span(line, TEXT)), cells) for line in hunk.base]
        rows.append(())
    for offer in pane.offers:
        if offer.note:
            rows += [
                words(Span(f"  {offer.label}", TEXT)),
                *((Span("    "), Span(text, MUTED)) for text in wrap(offer.note, cells - 6)),
            ]
    rows += [(), heading("WHO AND WHY", cells), *who_rows(view, run, cells, now=now, lines=None)]
    return [*rows, *file_page(pane, cells, context=context)]


def step_command(step: StepView | None) -> str:
    """The check of the worker's step."""
    return (step.check or "") if step else ""


def sentence(pane: ReviewPane, keys: Mapping[str, str]) -> Row:
    """Return what is true of the conflict and what happens next."""
    view = pane.shown
    if view is None:
        return ()
    if pane.picking:
        said = (
            f"{keys.get('mark', '')} marks a line, {keys.get('undo', '')} unmarks the last, "
            f"{keys.get('select', '')} takes the marked lines"
        )
        return words(Span(f"{said}, ", TEXT), f"{keys.get('leave', '')} clears the marks.")
    return _changed_since(view) or _asked(pane) or onward(view, keys)


def _changed_since(view: ConflictView) -> Row:
    """Return what somebody else did meanwhile."""
    mark = Span("▲ ", Ink(Role.LIMIT, bold=True))
    moved = f"{view.target} moved, so plait merged again. " if view.moved else ""
    if view.opened:
        name = cut_path(view.opened[0], 30)
        said = f"{moved}{name} is open again: its sides have changed. "
        return words(mark, Span(said, TEXT), "All other choices are kept.")
    if view.to_look_at:
        name = cut_path(view.to_look_at[0], 30)
        said = f"{moved}You edited {name} before its sides changed: look at it again."
        return words(mark, Span(said, TEXT))
    if moved:
        return words(mark, Span(moved, TEXT), "All choices are kept.")
    return words(mark, Span(view.caveat, TEXT)) if view.caveat else ()


def _asked(pane: ReviewPane) -> Row:
    """Say who is being asked about this conflict, or why nobody answered."""
    hunk = pane.hunk
    if hunk is not None and hunk.asked:
        return words(Span(f"Asking {hunk.asked}. ", TEXT), "Its answer will be one more proposal.")
    if hunk is not None and hunk.ask_problem:
        return words(Span(f"No answer came: {hunk.ask_problem}", Ink(Role.FAILED)))
    return ()


def onward(view: ConflictView, keys: Mapping[str, str]) -> Row:
    """Return what is to be done next, and what was written so far."""
    land, check = keys.get("land", ""), keys.get("check", "")
    if view.is_resolved and view.doing:
        return words(Span(f"Everything is resolved. {land} {writes(view)}.", TEXT))
    if view.is_resolved and view.is_of_base:
        said = f"Everything is resolved. {land} lets the worker continue."
        return words(Span(said, TEXT))
    if view.is_resolved:
        shows = keys.get("diff", "")
        said = f"Everything is resolved. {shows} shows the whole result, {check} checks it"
        return words(Span(f"{said}, {land} lands it. ", TEXT))
    undo = f"You can undo every choice with {keys.get('undo', '')}, even after a restart."
    if view.doing:
        return words(Span(f"Nothing is written until you press {land}. ", TEXT), undo)
    onto = "the worker's base" if view.is_of_base else view.target
    return words(Span(f"Nothing is written to {onto} until you land. ", TEXT), undo)


def keys_of(keymap: Keymap) -> dict[str, str]:
    """Return the keys of this screen's ideas, as they are written on it."""
    return {
        action_id.rpartition(".")[2]: keymap.shown(action_id)
        for action_id in keymap.keys
        if action_id.startswith(("everywhere.", "review."))
    }
