"""Draw what stands round a diff: its subject, the files at the left, the map at the right edge."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff
from engine.messages.results import StepView, WorkerView
from tui.ink import (
    BOLD,
    KEY,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    clickable,
    fit,
    grounded,
    spread,
    words,
)
from tui.kit.meters import heading
from tui.screens.diff.layout import Shape, file_sign, left_out_of, seen_of
from tui.screens.diff.pane import DiffPane
from tui.words.clean import clean
from tui.words.comments import Comment
from tui.words.cutting import cut_apart, cut_end, cut_path, wrap
from tui.words.figures import MINUS
from tui.words.looks import glyph, look_of
from tui.words.said import change_text, check_text
from tui.words.standing import name_of
from tui.words.unshown import unshown_of

SPLIT_FROM = 140
_SEEN_BAR = 10


def diff_subject(
    worker: WorkerView, step: StepView, diff: ChangeDiff | None, *, seen: set[str], cells: int
) -> Row:
    """Row 1: whose change, against what, what the check says, how much was seen."""
    left = [Span(" "), glyph(look_of(worker)), Span(" "), *name_of(worker, step)]
    if diff is None:
        return fit(left, cells)
    counts = [seen_of(diff, index, seen) for index in range(len(diff.files))]
    known, whole = (sum(count) for count in zip(*counts, strict=True)) if counts else (0, 0)
    live = (Span(" live", Ink(Role.RUNNING)),) if diff.is_live else ()
    left += words(
        f" → {diff.against}",
        *live,
        "   ",
        *change_text(worker, is_shown=True),
        "   ",
        *_check_words(worker, diff),
    )
    full = round(known / whole * _SEEN_BAR) if whole else 0
    out = len(worker.left_out)
    unshown = unshown_of(diff).words()
    right = words(
        *((Span(f"{unshown}   ", Ink(Role.WAITING, bold=True)),) if unshown else ()),
        *((Span(f"✗ {out} left out   ", Ink(Role.REMOVED, bold=True)),) if out else ()),
        Span(f"{known}", BOLD),
        f" of {whole} seen ",
        Span("━" * full, Ink(Role.ACCENT)),
        Span("─" * (_SEEN_BAR - full), Ink(Role.LINE)),
        " ",
    )
    return spread(left, right, cells)


def _check_words(worker: WorkerView, diff: ChangeDiff) -> Row:
    """Return what the check says: of the result that is on screen, where it is one."""
    check = worker.check
    if not diff.result or check is None or check.tree == diff.result:
        return check_text(worker)
    return words(Span("· ", Ink(Role.WAITING)), Span("check not run on this result", TEXT))


class Beside(NamedTuple):
    """The diff that a list of files is of, how it is laid out, and how wide the list is."""

    diff: ChangeDiff
    shape: Shape
    cells: int


def file_strip(
    diff: ChangeDiff, shape: Shape, worker: WorkerView, *, here: int, cells: int
) -> tuple[list[Row], list[int]]:
    """The files above their hunks, where there is no room beside them; a row for each."""
    clashing = {path for clash in worker.clashes for path in clash.paths}
    room = (cells - 21) // (2 if shape.risks else 1)
    names = cut_apart([file.path for file in diff.files], room)
    places = {index: at for at, index in enumerate(shape.order(diff))}
    rows = [
        clickable(
            _file_row(
                Beside(diff, shape, cells),
                index,
                name=names[index],
                is_here=index == here,
                is_clash=diff.files[index].path in clashing,
                why="; ".join(_reasons(diff, shape, index)),
            ),
            f"file:{index}",
        )
        for index in places
    ]
    return rows, [places[index] for index in range(len(rows))]


def _reasons(diff: ChangeDiff, shape: Shape, index: int) -> Sequence[str]:
    """Return why a file deserves a look, while files stand by risk."""
    if not shape.risks:
        return ()
    known = shape.risks.get(diff.paths[index])
    return [clean(reason) for reason in known.reasons] if known else []


def file_pane(
    beside: Beside, worker: WorkerView, *, here: int, send_key: str
) -> tuple[list[Row], list[int]]:
    """The files by folder or by risk, the comments, the clashes; and each file's row."""
    diff, shape, cells = beside
    note = "by risk" if shape.risks else ""
    rows: list[Row] = [heading("FILES", cells, figure=str(len(diff.files)), note=note)]
    places: dict[int, int] = {}
    folder = None
    paths = [file.path for file in diff.files]
    named = paths if shape.risks else [path.rpartition("/")[2] for path in paths]
    names = cut_apart(named, cells - 21)
    clashing = {path for clash in worker.clashes for path in clash.paths}
    for index in shape.order(diff):
        parent = paths[index].rpartition("/")[0] or "./"
        if parent != folder and not shape.risks:
            folder = parent
            rows.append(words(f" {cut_path(parent, cells - 2)}"))
        places[index] = len(rows)
        row = _file_row(
            beside,
            index,
            name=names[index],
            is_here=index == here,
            is_clash=paths[index] in clashing,
        )
        told = (line for one in _reasons(diff, shape, index) for line in wrap(one, cells - 6, 2))
        why = [(Span("     "), Span(line, MUTED)) for line in told]
        rows += [clickable(one, f"file:{index}") for one in (row, *why)]
    rows += _comment_rows([c for c in shape.comments if shape.is_about(c)], send_key, cells)
    if worker.clashes:
        rows += [(), heading("CLASH", cells, Role.CLASH, figure=f"≈ {len(worker.clashes)}")]
        rows += [
            words(
                " ",
                Span(clash.other, TEXT),
                f" in {cut_path(clash.paths[0], 18)}" if clash.paths else "",
            )
            for clash in worker.clashes
        ]
    return rows, [places[index] for index in range(len(paths))]


def _file_row(
    beside: Beside, index: int, *, name: str, is_here: bool, is_clash: bool, why: str = ""
) -> Row:
    diff, shape, cells = beside
    file = diff.files[index]
    seen, whole = seen_of(diff, index, shape.seen)
    is_done = seen == whole
    count = "✓" if is_done and whole else f"{seen}/{whole}" if whole else ""
    is_out = left_out_of(diff, index, shape.left_out) > 0
    out = Span(" ✗" if is_out else "", Ink(Role.REMOVED, bold=True))
    ink = MUTED if is_done else BOLD if is_here else TEXT
    left = words(
        " ",
        f"{file_sign(file)} ",
        Span(name, ink),
        Span(" ≈" if is_clash else "", Ink(Role.CLASH)),
        out,
        f"  {why}" if why else "",
    )
    added = Span(f"+{file.added}".rjust(5) if file.added else " " * 5, Ink(Role.ADDED))
    removed = Span(
        f"{MINUS}{file.removed}".rjust(5) if file.removed else " " * 5, Ink(Role.REMOVED)
    )
    row = spread(left, (added, removed, Span(count.rjust(5), MUTED if is_done else TEXT)), cells)
    return grounded((Span("▌", MUTED), *row[1:]), Role.PANEL) if is_here else row


def _comment_rows(comments: Sequence[Comment], send_key: str, cells: int) -> list[Row]:
    pending = [comment for comment in comments if not comment.is_sent]
    if not pending:
        return []
    rows: list[Row] = [
        (),
        heading("COMMENTS", cells, Role.ACCENT, figure=f"{len(pending)} to send"),
    ]
    for comment in pending[:6]:
        place = f"{comment.path.rpartition('/')[2]}:{comment.number}"
        said = cut_end(comment.text.replace("\n", " "), cells - len(place) - 4)
        rows.append(words(Span(" “", Ink(Role.ACCENT)), Span(place, TEXT), f" {said}"))
    return [*rows, (), words(" ", Span(send_key, KEY), " sends them to the worker")]


def edge_map(pane: DiffPane, height: int, seen: tuple[int, int]) -> list[Span]:
    """Return the right edge: the new hunks in the whole, and which part of it is on screen."""
    marks: list[Role | None] = [None] * height
    count = max(len(pane.places), 1)
    for index in pane.heads:
        is_seen = pane.is_seen(pane.places[index])
        at = index * height // count
        marks[at] = Role.LINE if is_seen and marks[at] is not Role.TEXT else Role.TEXT
    top, bottom = (pane.place_at(row) * height // count for row in seen)
    return [_edge(mark, is_seen=top <= y <= bottom) for y, mark in enumerate(marks)]


def _edge(mark: Role | None, *, is_seen: bool) -> Span:
    if is_seen:
        return Span("█" if mark is Role.TEXT else "┃", Ink(Role.FOCUS))
    return Span("▌", Ink(mark)) if mark else Span("│", Ink(Role.LINE))
