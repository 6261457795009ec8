"""What stands round a conflict: its subject, the files at the left, who and why, the check."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tui.present.cutting import cut_end, cut_path, wrap
from tui.present.figures import age, some
from tui.present.ink import (
    BOLD,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    fit,
    grounded,
    spread,
    words,
)
from tui.present.meters import heading
from tui.present.review_model import ReviewPane
from tui.present.review_offers import What
from tui.present.review_rows import side_head, side_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.api import ConflictFileView, ConflictView
    from engine.results import CheckResult, RunView, StepView, WorkerView

LEFT = 36
_BAR = 10
_ROOMY = 100
_LANDED = "LANDED"


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
        *check_words(view),
    )
    full = round(done / len(view.files) * _BAR) if view.files else _BAR
    right = words(
        Span(f"{done}", BOLD),
        f" of {some(len(view.files), 'file')} done ",
        Span("━" * full if cells >= _ROOMY else "", Ink(Role.ACCENT)),
        Span("─" * (_BAR - full) if cells >= _ROOMY else "", Ink(Role.LINE)),
        " ",
    )
    return spread(left, right, cells)


def check_words(view: ConflictView) -> Row:
    """What the check says of exactly this result."""
    if view.problem:
        return (Span("▲ ", Ink(Role.LIMIT, bold=True)), Span(view.problem, Ink(Role.LIMIT)))
    if view.check is None:
        return words("· check not run")
    if view.check.passed:
        return words(Span("✓ ", Ink(Role.DONE)), Span("check passed", TEXT))
    return words(Span("✗ ", Ink(Role.FAILED)), Span("check failed", TEXT))


def left_pane(
    pane: ReviewPane, run: RunView, check: CheckResult | None, command: str, *, now: float
) -> tuple[list[Row], list[int]]:
    """The files and how they stand, who and why, the check; and at which row each file stands."""
    view = pane.shown
    if view is None:
        return [], []
    rows: list[Row] = [heading("CONFLICTS", LEFT, Role.CLASH, figure=str(len(view.files)))]
    places = []
    left = Counter(matter.file for matter in pane.matters if matter.is_open)
    for index, file in enumerate(view.files):
        places.append(len(rows))
        is_here = bool(pane.matter and pane.matter.file == index)
        rows.append(_file_row(file, left[index], is_here=is_here))
    if view.clean:
        rows.append(words(f"   {some(view.clean, 'file')} merged by git"))
    rows += [(), heading("WHO AND WHY", LEFT), *who_rows(view, run, LEFT, now=now, lines=3)]
    return [*rows, (), *_check_rows(view, check, command)], places


def _file_row(file: ConflictFileView, left: int, *, is_here: bool) -> Row:
    kind = file.kind if file.needs_whole or file.whole or file.is_edited else ""
    remembered = any(offer.remembered for hunk in file.hunks for offer in hunk.proposals)
    mark, state = Span("≠ ", Ink(Role.CLASH, bold=True)), kind or f"{left} open"
    if file.is_resolved:
        mark, state = Span("✓ ", MUTED), f"done{f', {kind}' if kind else ''}"
    elif remembered and not kind:
        mark, state = Span("? ", Ink(Role.WAITING, bold=True)), "remembered"
    ink = BOLD if is_here else MUTED if file.is_resolved else TEXT
    name = cut_path(file.path.rpartition("/")[2], LEFT - len(state) - 6)
    row = spread((Span(" "), mark, Span(name, ink)), (Span(f"{state} ", MUTED),), LEFT)
    return grounded((Span("▌", Ink(Role.LINE)), *row[1:]), Role.PANEL) if is_here else row


def who_rows(
    view: ConflictView, run: RunView, cells: int, *, now: float, lines: int | None
) -> list[Row]:
    """Both sides: whose they are, what they were asked for, since when they stand there."""
    by_name = {worker.worker: worker for worker in run.workers}
    rows: list[Row] = []
    for at, name in enumerate((view.target, view.incoming)):
        head = side_head("ti"[at], name, "", cells, is_target=not at)
        if rows:
            rows.append(())
        rows.append(head)
        said = [worker for part in name.split(" + ") if (worker := by_name.get(part))]
        for worker in said:
            rows += _worker_rows(worker, cells, lines)
        if not said:
            rows += _branch_rows(run, name, cells, now=now)
    return rows


def _worker_rows(worker: WorkerView, cells: int, lines: int | None) -> list[Row]:
    who = f"{worker.agent}, attempt {worker.attempt}" if worker.agent else "no agent"
    asked = wrap(f"“{worker.prompt}”", cells - 6, lines) if worker.prompt else []
    return [
        (Span("     "), Span(cut_end(who, cells - 6), TEXT)),
        *((Span("     "), Span(text, MUTED)) for text in asked),
    ]


def _branch_rows(run: RunView, name: str, cells: int, *, now: float) -> list[Row]:
    """What of this run stands on a branch already."""
    landed = [w for w in run.workers if str(w.phase) == _LANDED and run.target == name]
    if not landed:
        return [words("     nothing of this run landed on it")]
    rows: list[Row] = []
    for worker in landed[-4:]:
        said = f"{worker.worker}, landed {age(now - worker.phase_since)}"
        rows.append((Span("     "), Span(cut_end(said, cells - 6), TEXT)))
        if worker.prompt:
            first = worker.prompt.split("\n")[0]
            rows.append((Span("     "), Span(cut_end(f"“{first}”", cells - 6), MUTED)))
    return rows


def _check_rows(view: ConflictView, check: CheckResult | None, command: str) -> list[Row]:
    stale = check is not None and view.check is None
    role, state = Role.MUTED, "not run"
    if view.check is not None:
        role, state = (Role.DONE, "passed") if view.check.passed else (Role.FAILED, "failed")
    elif stale:
        role, state = Role.WAITING, "stale"
    rows: list[Row] = [heading("CHECK", LEFT, role, note=state)]
    rows.append((Span("  "), Span(cut_end(command or "this step has no check", LEFT - 3), TEXT)))
    rows.append(words("  on exactly the tree to be landed" if command else ""))
    if view.check is not None and not view.check.passed:
        rows += [
            (Span("  "), Span(cut_end(text, LEFT - 3), Ink(Role.FAILED)))
            for text in view.check.summary.split("\n")[:6]
        ]
    return rows


def whole_page(pane: ReviewPane, run: RunView, cells: int, *, now: float) -> list[Row]:
    """The conflict in full: every line of both sides and of the base, who and why, the prompts."""
    view, file, hunk, matter = pane.shown, pane.file, pane.hunk, pane.matter
    if view is None or file is None or matter is None:
        return []
    rows: list[Row] = [words(Span(file.path, BOLD), f"  {file.kind}"), ()]
    if matter.what is What.HUNK and hunk is not None:
        for at, (name, lines) in enumerate(
            ((view.target, hunk.target), (view.incoming, hunk.incoming))
        ):
            rows.append(side_head("ti"[at], name, "since base", cells, is_target=not at))
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
    return rows


def step_command(step: StepView | None) -> str:
    """The check of the worker's step."""
    return (step.check or "") if step else ""


def sentence(pane: ReviewPane, keys: Mapping[str, str]) -> Row:
    """What is true of the conflict and what happens next."""
    view = pane.shown
    if view is None:
        return ()
    onto = "the worker's base" if view.is_of_base else view.target
    if pane.picking:
        said = (
            f"{keys.get('mark', '')} picks a line, {keys.get('select', '')} takes the picked ones"
        )
        return words(Span(f"{said}, ", TEXT), "esc leaves them.")
    if view.opened:
        return words(
            Span(f"{cut_path(view.opened[0], 30)} is open again: its sides have changed. ", TEXT),
            "Every other choice was kept.",
        )
    if view.is_resolved and view.is_of_base:
        said = f"Everything is decided. {keys.get('land', '')} lets the worker go on from it."
        return words(Span(said, TEXT))
    if view.is_resolved:
        said = f"Everything is decided. {keys.get('check', '')} checks exactly this"
        return words(Span(f"{said}, {keys.get('land', '')} lands it. ", TEXT))
    return words(
        Span(f"Nothing is written to {onto} before you land. ", TEXT),
        f"Every choice can be undone with {keys.get('undo', '')}, also after a restart.",
    )
