"""Inbox: everything that waits for a human, and the thing under the cursor in full."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from engine.messages.events import Answered
from engine.messages.results import StepView, WorkerView
from engine.phases import Phase
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
    cut_middle,
    fit,
    grounded,
    row_width,
    spread,
    words,
)
from tui.kit.cards import hints_of, numbered_rows, question_pieces
from tui.kit.deeds import line_ink
from tui.kit.lists import cursor_row
from tui.kit.meters import heading
from tui.words.cutting import cut_end, wrap
from tui.words.figures import clock, lasting, some
from tui.words.looks import LEVELS, WALLS, chip, glyph, look_of
from tui.words.said import (
    change_text,
    check_text,
    edits_text,
    hit_figure,
    now_text,
    present_change,
    telling,
    undone_text,
    why_failed,
    widest_value,
)
from tui.words.scene import Scene
from tui.words.standing import name_of, step_of, waits_since

_LEAST_SAID = 20
"""So many cells of a row stay for what is wanted, however long the name is."""


@dataclass(frozen=True, kw_only=True)
class Detail:
    """Draw the waiting item in full.

    Attributes:
        question_rows: How many of the rows are the question itself.
    """

    rows: tuple[Row, ...]
    question_rows: int = 0


def inbox_subject(items: Sequence[WorkerView], scene: Scene, cells: int) -> Row:
    """Row 1: how many wait, how long the oldest has waited, how many hold a slot."""
    if not items:
        return words(" nothing waits for you")
    oldest = min(waits_since(worker) for worker in items)
    holding = sum(worker.phase.holds_slot for worker in items)
    left = words(
        Span(f" {len(items)}", Ink(Role.WAITING, bold=True)),
        " wait for you   oldest ",
        Span(lasting(scene.now - oldest), TEXT),
        f"   {holding} {'holds' if holding == 1 else 'hold'} a slot" if holding else "",
    )
    answered = sum(isinstance(told.event, Answered) for told in scene.told)
    return spread(left, words(f"{answered} answered " if answered else ""), cells)


class Listed(NamedTuple):
    """A row of the list: the worker it is about, and what draws it in so many cells."""

    worker: str
    draw: Callable[[int], Row]


def item_list(
    items: Sequence[WorkerView],
    scene: Scene,
    focused: str,
    *,
    snoozed: frozenset[str],
    is_tight: bool = False,
) -> list[Listed]:
    """Return the rows of the list; `is_tight`: one row an item."""
    now = [worker for worker in items if worker.worker not in snoozed]
    later = [worker for worker in items if worker.worker in snoozed]
    parts = (_item_row,) if is_tight else (_first_row, _second_row)
    blank = Listed("", lambda _: ())
    rows: list[Listed] = []
    for title, role, group in (("NOW", Role.WAITING, now), ("LATER", Role.MUTED, later)):
        if not group:
            continue
        count = str(len(group))
        rows.append(Listed("", partial(heading, title, role=role, figure=count)))
        for worker in group:
            is_focused = worker.worker == focused
            rows += [
                Listed(worker.worker, partial(part, worker, scene, is_focused=is_focused))
                for part in parts
            ]
            rows += [] if is_tight else [blank]
    answered = _answered_rows(scene)
    return [*rows, *([blank] if is_tight and answered else []), *answered]


def _title(worker: WorkerView, scene: Scene, cells: int, *, is_focused: bool) -> tuple[Row, Row]:
    """Return who waits, and for how long."""
    age = Span(lasting(scene.now - waits_since(worker)), BOLD if is_focused else MUTED)
    mark = Span("■", Ink(Role.ACCENT)) if worker.worker in scene.marks else Span(" ")
    name = cut_middle(name_of(worker, _step(scene, worker)), cells - row_width((age,)) - 6)
    return (mark, glyph(look_of(worker)), Span(" "), *name), (age, Span(" "))


def _item_row(worker: WorkerView, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    """Draw who, what and how long in one row; what is wanted is cut first."""
    who, age = _title(worker, scene, cells - _LEAST_SAID, is_focused=is_focused)
    room = max(cells - 1 - row_width(who) - row_width(age) - 4, 0)
    said = cut_end(now_text(worker, _step(scene, worker), scene.now, room), room)
    ink = TEXT if is_focused else MUTED
    return cursor_row(
        spread((*who, Span(f"  {said}", ink)), age, cells - 1), cells, is_focused=is_focused
    )


def _first_row(worker: WorkerView, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    row = spread(*_title(worker, scene, cells, is_focused=is_focused), cells - 1)
    return cursor_row(row, cells, is_focused=is_focused)


def _second_row(worker: WorkerView, scene: Scene, cells: int, *, is_focused: bool) -> Row:
    said = cut_end(now_text(worker, _step(scene, worker), scene.now, cells - 6), cells - 6)
    row = (Span("   "), Span(said, TEXT if is_focused else MUTED))
    return cursor_row(row, cells, is_focused=is_focused)


def _answered_rows(scene: Scene) -> list[Listed]:
    """Return what was answered last, newest first."""
    answered = [(told.at, told.event) for told in scene.told if isinstance(told.event, Answered)]
    if not answered:
        return []
    rows = [Listed("", partial(heading, "ANSWERED", figure=str(len(answered))))]
    for when, event in reversed(answered[-6:]):
        mark = Span("✓ ", Ink(Role.DONE))
        if event.answer.startswith("deny"):
            mark = Span("✗ ", Ink(Role.FAILED))
        at = f"  {clock(when, scene.now)[:5]} "
        row = words(at, mark, cut_end(event.answer, 14), f"  {event.worker}")
        rows.append(Listed("", partial(fit, row)))
    return rows


def _step(scene: Scene, worker: WorkerView) -> StepView:
    if scene.run is None:
        raise LookupError("a worker without a run")
    return step_of(scene.run, worker)


def nothing_waits(scene: Scene) -> list[Row]:
    """Say what is true, what goes on meanwhile, and the key that leads on."""
    rows: list[Row] = [(), words(Span("  Nothing waits for you.", BOLD))]
    if scene.run:
        live = sum(worker.is_live for worker in scene.run.workers)
        settled = sum(worker.phase.is_settled for worker in scene.run.workers)
        counts = words(
            Span("  ● ", Ink(Role.RUNNING)),
            Span(f"{live} working", TEXT),
            Span("   ✓ ", Ink(Role.DONE)),
            Span(f"{settled} settled", TEXT),
        )
        rows.append(counts)
    rows.append(words("  ", Span(scene.key("go_fleet"), KEY), " goes back to Fleet."))
    return rows


def detail(worker: WorkerView, scene: Scene, cells: int) -> Detail:
    """Everything a human needs to answer: the thing itself, its fences, what came before."""
    step = _step(scene, worker)
    what = _what(worker, step)
    age = Span(lasting(scene.now - waits_since(worker)), BOLD)
    lead = (chip(look_of(worker)), Span(" "))
    room = cells - row_width((*lead, age)) - len(what) - 4
    danger = worker.questions[0].danger if worker.questions else ""
    ink = Ink(Role.FAILED, bold=True) if danger else MUTED
    head = spread(
        (*lead, *cut_middle(name_of(worker, step), room), Span(f" {what}", ink)),
        (age,),
        cells,
    )
    rows: list[Row] = [head, ()]
    if worker.questions and not worker.phase.is_settled:
        rows += _question_rows(worker, cells)
    else:
        rows += _evidence_rows(worker, cells)
    asked = len(rows)
    rows.append(heading("ANSWER", cells, Role.TEXT))
    for idea, row in _answer_rows(worker, step, scene):
        rows.append(clickable(fit(row, cells), f"do:{idea}"))
    rows.append(())
    rows += _before_rows(worker, cells)
    rows += _touch_rows(worker, cells) if worker.questions else []
    question_rows = asked if worker.questions else 0
    return Detail(rows=tuple(rows), question_rows=question_rows)


def _what(worker: WorkerView, step: StepView) -> str:
    if worker.questions and not worker.phase.is_settled:
        more = f", and {len(worker.questions) - 1} more" if len(worker.questions) > 1 else ""
        asked = worker.questions[0]
        kind = "for permission" if asked.is_permission else "a question"
        return (asked.danger or kind) + more
    if worker.phase is Phase.FAILED:
        return why_failed(worker, step)
    return f"attempt {worker.attempt} of {worker.attempts_allowed}"


def _question_rows(worker: WorkerView, cells: int) -> list[Row]:
    """The question in full, on a ground of its own."""
    first, rest = question_pieces(worker.questions[0].text, max(cells - 4, 1))
    shown: list[Row] = [(), *((Span("  "), Span(piece, BOLD)) for piece in first)]
    shown += [(Span("  "), Span(piece, TEXT)) for piece in rest]
    shown += [(Span("  "), *row) for row in numbered_rows(worker, cells - 4)]
    shown.append(())
    return [*(grounded(fit(row, cells), Role.SURFACE) for row in shown), ()]


def _evidence_rows(worker: WorkerView, cells: int) -> list[Row]:
    rows: list[Row] = []
    if worker.limit_hit:
        rows.append(words("limit   ", Span(hit_figure(worker), Ink(Role.LIMIT, bold=True))))
    if present_change(worker):
        rows.append(words("change  ", *change_text(worker)))
    rows.append(words("check   ", *check_text(worker)))
    rows += [words("in      ", Span(path, TEXT)) for path in worker.conflicts[:12]]
    if len(worker.conflicts) > 12:  # noqa: PLR2004 - the same dozen
        rows.append(words(f"        and {some(len(worker.conflicts) - 12, 'file')} more"))
    if worker.in_the_way:
        said = f"your edits in {edits_text(worker)} are in the way"
        rows.append(words("landing ", Span(said, Ink(Role.LIMIT, bold=True))))
    error = "" if worker.undone else worker.error
    if undone := undone_text(worker):
        rows.append(words("landing ", Span(undone, TEXT)))
    for index, line in enumerate(wrap(telling(error), cells - 8, 6) if error else ()):
        rows.append(words("said    " if index == 0 else "        ", Span(line, TEXT)))
    return [*rows, ()]


def _touch_rows(worker: WorkerView, cells: int) -> list[Row]:
    """Say how it is fenced in: what a yes could reach at most."""
    rows: list[Row] = [heading("WHAT IT COULD TOUCH", cells)]
    wide = widest_value(worker) + 2
    for held in worker.enforcement:
        wall = Span(WALLS[held.level], TEXT)
        rows.append(
            words(
                f"  {held.dimension:<10} ",
                wall,
                " ",
                Span(f"{held.value or held.mechanism:<{wide}}", TEXT),
                LEVELS[held.level][0],
            )
        )
    if not worker.enforcement:
        rows.append(words("  plait knows of nothing that blocks it"))
    return [*rows, ()]


def _before_rows(worker: WorkerView, cells: int) -> list[Row]:
    if not worker.last_lines:
        return []
    rows: list[Row] = [heading("JUST BEFORE", cells)]
    rows += [
        (Span("  "), Span(cut_end(line, cells - 2), line_ink(line)))
        for line in worker.last_lines[-4:]
    ]
    return [*rows, ()]


def _answer_rows(worker: WorkerView, step: StepView, scene: Scene) -> Iterator[tuple[str, Row]]:
    """Yield each idea that answers, and its row."""
    for hint in hints_of(worker, step, scene):
        yield hint.idea, words("  ", Span(f"{hint.key:<3}", KEY), Span(hint.label, TEXT))
    if worker.questions and "steer" not in scene.forbidden:
        say = Span(f"{scene.key('steer'):<3}", KEY)
        yield "steer", words("  ", say, Span("send a message instead", TEXT))
    if "pause" not in scene.forbidden:
        later = Span(f"{scene.key('pause'):<3}", KEY)
        yield "pause", words("  ", later, Span("later", TEXT), "  it keeps waiting")
