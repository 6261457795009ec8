"""Draw the column left of a conflict: files, what git merged, who and why, queue, check."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from engine.messages.results import verdict_of
from tui.ink import BOLD, MUTED, TEXT, Ink, Role, Row, Span, clickable, grounded, spread, words
from tui.kit.meters import heading
from tui.screens.review.rows import side_head
from tui.words.asked_ahead import answers, stopped
from tui.words.clean import clean
from tui.words.cutting import cut_apart, cut_end, names_apart, wrap
from tui.words.figures import age, some
from tui.words.looks import glyph, look_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import (
        CommitView,
        ConflictFileView,
        ConflictView,
        MergedFileView,
        PlannedLanding,
    )
    from engine.messages.results import RunView, WorkerView
    from tui.screens.review.model import ReviewPane

_BOTH = "both"
_LANDED = "LANDED"
_MOST_MERGED = 8
_MOST_COMMITS = 3
_MOST_QUEUED = 6


class Beside(NamedTuple):
    """Hold what is known beside the conflicts themselves."""

    run: RunView
    command: str
    queue: Sequence[PlannedLanding]
    now: float
    cells: int


def left_pane(pane: ReviewPane, beside: Beside) -> tuple[list[Row], list[int]]:
    """All of it; and at which row each file stands, merged ones behind conflicted ones."""
    view, cells = pane.shown, beside.cells
    if view is None:
        return [], []
    rows: list[Row] = [heading("CONFLICTS", cells, Role.CLASH, figure=str(len(view.files)))]
    places = []
    left = Counter(matter.file for matter in pane.matters if matter.is_open)
    told = [_state_of(file, left[index]) for index, file in enumerate(view.files)]
    longest = max((len(state) for _, state in told), default=0)
    names = names_apart([file.path for file in view.files], cells - longest - 6)
    for index, file in enumerate(view.files):
        places.append(len(rows))
        is_here = bool(pane.matter and pane.matter.file == index)
        row = _file_row(file, names[index], told[index], cells, is_here=is_here)
        rows.append(clickable(row, f"file:{index}"))
    merged, where = _merged_rows(pane, view, cells)
    places += [len(rows) + at for at in where]
    rows += [*merged, *_risk_rows(pane, cells), (), heading("WHO AND WHY", cells)]
    rows += who_rows(view, beside.run, cells, now=beside.now, lines=3)
    rows += _queue_rows(beside, view.worker)
    rows += _assist_rows(view, cells)
    return [*rows, (), *_check_rows(pane, view, beside)], places


def _state_of(file: ConflictFileView, left: int) -> tuple[Span, str]:
    """Return the mark of a file, and how far it is decided."""
    kind = file.kind if file.needs_whole or file.whole or file.is_edited else ""
    remembered = any(offer.remembered for hunk in file.hunks for offer in hunk.proposals)
    mark, state = Span("≠ ", Ink(Role.CLASH, bold=True)), kind or f"{left} open"
    if file.is_resolved:
        mark, state = Span("✓ ", MUTED), f"done{f', {kind}' if kind else ''}"
    elif file.is_stale:
        mark, state = Span("▲ ", Ink(Role.LIMIT, bold=True)), "stale"
    elif remembered and not kind:
        mark, state = Span("? ", Ink(Role.WAITING, bold=True)), "remembered"
    return mark, state


def _file_row(
    file: ConflictFileView, name: str, told: tuple[Span, str], cells: int, *, is_here: bool
) -> Row:
    mark, state = told
    ink = BOLD if is_here else MUTED if file.is_resolved else TEXT
    row = spread((Span(" "), mark, Span(name, ink)), (Span(f"{state} ", MUTED),), cells)
    return _here(row) if is_here else row


def _here(row: Row) -> Row:
    return grounded((Span("▌", MUTED), *row[1:]), Role.PANEL)


def _merged_rows(pane: ReviewPane, view: ConflictView, cells: int) -> tuple[list[Row], list[int]]:
    """List what git merged by itself: one row, or the list round the one that is looked at."""
    count = len(view.merged) or view.clean
    if not count:
        return [], []
    near = sum(bool(file.near) for file in view.merged)
    at = pane.matter.file - len(view.files) if pane.merged and pane.matter else -1
    note = Span(f"≈ {near} near ", Ink(Role.WAITING)) if near else Span("")
    sign = "▼" if at >= 0 else "►"
    head = spread((Span(f" {sign} {some(count, 'file')} merged by git", MUTED),), (note,), cells)
    if at < 0:
        return [clickable(head, f"file:{len(view.files)}")], [0] * len(view.merged)
    top = max(min(at - _MOST_MERGED // 2, len(view.merged) - _MOST_MERGED), 0)
    shown = view.merged[top : top + _MOST_MERGED]
    names = names_apart([file.path for file in view.merged], cells - len(_BOTH) - 8)
    rows = [
        clickable(
            _merged_row(file, names[n], cells, is_here=n == at), f"file:{len(view.files) + n}"
        )
        for n, file in enumerate(shown, top)
    ]
    places = [min(max(n - top + 1, 0), len(rows)) for n in range(len(view.merged))]
    return [head, *rows], places


def _merged_row(file: MergedFileView, name: str, cells: int, *, is_here: bool) -> Row:
    state = _BOTH if file.by == _BOTH else ""
    mark = Span("≈ ", Ink(Role.WAITING, bold=True)) if file.near else Span("✓ ", MUTED)
    ink = BOLD if is_here else MUTED
    row = spread((Span("   "), mark, Span(name, ink)), (Span(f"{state} ", MUTED),), cells)
    return _here(row) if is_here else row


def who_rows(
    view: ConflictView, run: RunView, cells: int, *, now: float, lines: int | None
) -> list[Row]:
    """Both sides: whose they are, what they were asked for, since when they stand there."""
    by_name = {worker.worker: worker for worker in run.workers}
    rows: list[Row] = []
    for at, name in enumerate((view.target, view.incoming)):
        if rows:
            rows.append(())
        rows.append(side_head("ti"[at], name, "", cells, is_target=not at))
        said = [worker for part in name.split(" + ") if (worker := by_name.get(part))]
        for worker in said:
            rows += _worker_rows(worker, cells, lines)
        if not said:
            commits = view.incoming_commits if at else view.target_commits
            rows += _branch_rows(run, name, cells, commits, now=now)
    return rows


def _worker_rows(worker: WorkerView, cells: int, lines: int | None) -> list[Row]:
    who = f"{worker.agent}, attempt {worker.attempt}" if worker.agent else "no agent"
    asked = wrap(f"“{worker.prompt}”", cells - 6, lines) if worker.prompt else []
    return [
        (Span("     "), Span(cut_end(who, cells - 6), TEXT)),
        *((Span("     "), Span(text, MUTED)) for text in asked),
    ]


def _branch_rows(
    run: RunView, name: str, cells: int, commits: Sequence[CommitView], *, now: float
) -> list[Row]:
    """List what of this run stands on a branch already; else what was committed there since."""
    landed = [w for w in run.workers if str(w.phase) == _LANDED and run.target == name]
    rows: list[Row] = []
    for worker in landed[-4:]:
        said = f"{worker.worker}, landed {age(now - worker.phase_since)}"
        rows.append((Span("     "), Span(cut_end(said, cells - 6), TEXT)))
        if worker.prompt:
            first = worker.prompt.split("\n")[0]
            rows.append((Span("     "), Span(cut_end(f"“{first}”", cells - 6), MUTED)))
    if rows:
        return rows
    for commit in commits[:_MOST_COMMITS]:
        rows.append((Span("     "), Span(cut_end(commit.subject, cells - 6), TEXT)))
        by = f"{commit.author}, {age(max(now - commit.at, 0))}"
        rows.append((Span("     "), Span(cut_end(by, cells - 6), MUTED)))
    more = len(commits) - _MOST_COMMITS
    if more > 0:
        rows.append(words(f"     and {some(more, 'earlier commit')}"))
    return rows or [words("     nothing of this run has landed on it")]


def _queue_rows(beside: Beside, here: str) -> list[Row]:
    """The order in which what is finished would land, and what each is expected to meet."""
    run, queue, cells = beside.run, beside.queue, beside.cells
    if len(queue) < 2:  # noqa: PLR2004 - one alone is no queue
        return []
    by_name = {worker.worker: worker for worker in run.workers}
    landed = sum(str(worker.phase) == _LANDED for worker in run.workers)
    note = f"{landed} landed" if landed else ""
    rows: list[Row] = [(), heading("LAND QUEUE", cells, figure=str(len(queue)), note=note)]
    names = cut_apart([planned.worker for planned in queue], cells - len("99 conflicts") - 9)
    for place, planned in enumerate(queue[:_MOST_QUEUED], 1):
        worker = by_name.get(planned.worker)
        is_here = planned.worker == here
        state = some(planned.hunks, "conflict") if planned.hunks else "clean"
        state = "this" if is_here else state
        sign = glyph(look_of(worker)) if worker else Span("·")
        left = (
            Span(f" {place} ", MUTED),
            sign,
            Span(" "),
            Span(names[place - 1], BOLD if is_here else TEXT),
        )
        rows.append(spread(left, (Span(f"{state} ", MUTED),), cells))
    if len(queue) > _MOST_QUEUED:
        rows.append(words(f"   and {len(queue) - _MOST_QUEUED} more"))
    return rows


def _risk_rows(pane: ReviewPane, cells: int) -> list[Row]:
    """Return why the file that is looked at deserves it, while files stand by risk."""
    if not pane.risks:
        return []
    is_known = pane.raw_path in pane.risks
    told = pane.reasons or ("nothing stands out in it" if is_known else "its risk is not known",)
    said = [row for reason in told for row in wrap(f"- {clean(reason)}", cells - 3, 2)]
    return [(), heading("RISK", cells), *((Span("  "), Span(text, TEXT)) for text in said)]


def _assist_rows(view: ConflictView, cells: int) -> list[Row]:
    """Return who is asked ahead, how often it answered, and what that cost."""
    if view.assist is None:
        return []
    rows: list[Row] = [(), heading("ASKED AHEAD", cells, note=view.assist.by)]
    told = filter(None, (answers(view.assist), stopped(view.assist)))
    lines = [line for said in told for line in wrap(said, cells - 3, 2)]
    return [*rows, *((Span("  "), Span(line, TEXT)) for line in lines)]


def _check_rows(pane: ReviewPane, view: ConflictView, beside: Beside) -> list[Row]:
    if view.doing:
        return []  # only steps of a run have a check
    command, cells = beside.command, beside.cells
    role, state = Role.MUTED, "not run"
    if view.check is not None:
        verdict = verdict_of(view.check, is_stale=False, has_claimed=False)
        role, state = (Role.DONE, str(verdict)) if verdict else (Role.FAILED, "failed")
    elif pane.was_checked:
        role, state = Role.WAITING, "stale"
    rows: list[Row] = [heading("CHECK", cells, role, note=state)]
    rows.append((Span("  "), Span(cut_end(command or "this step has no check", cells - 3), TEXT)))
    rows.append(words("  on exactly the tree that would land" if command else ""))
    if view.check is not None and not view.check.passed:
        rows += [
            (Span("  "), Span(cut_end(text, cells - 3), Ink(Role.FAILED)))
            for text in view.check.summary.split("\n")[:6]
        ]
    return rows
