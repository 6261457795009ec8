"""The card of a worker that needs a human: why, the evidence, and the keys that answer it."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from engine.limits import Dimension
from engine.messages.results import Badge, StepView, WorkerView
from engine.phases import Phase, StopCause
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
    row_width,
    words,
)
from tui.kit.bars import Hint
from tui.kit.frames import framed, title_room
from tui.kit.meters import meter
from tui.words.asking import choices_of, raw_of, who_asks_alike, why_not_kept
from tui.words.cutting import cut_path, wrap, wrap_whole
from tui.words.doable import why_not
from tui.words.figures import some
from tui.words.looks import ASKS, MARK, chip, fill_of, glyph, look_of
from tui.words.said import (
    change_text,
    check_text,
    clash_row,
    edits_text,
    hit_figure,
    level_of,
    limit_name,
    telling,
    undone_text,
    wall_level,
    why_failed,
)
from tui.words.scene import Scene
from tui.words.standing import clock_of, name_of

HEIGHT, TALL_HEIGHT = 9, 11
_BAR = 12


def card(
    worker: WorkerView, step: StepView, scene: Scene, size: tuple[int, int], *, is_focused: bool
) -> list[Row]:
    """A worker's card of exactly this size."""
    cells, height = size
    inner = cells - 4
    reason, evidence = _content(worker, step, inner, height - 6)
    reason = (*reason, *_alike(worker, scene))
    keys = _key_row(hints_of(worker, step, scene), inner, worker.worker, is_focused=is_focused)
    room = height - 6
    evidence = [*evidence[:room], *[()] * (room - len(evidence))]
    rows = [reason, (), *evidence, (), keys]
    ending = words(clock_of(worker, scene.now))
    marks = (MARK, Span(" ")) if worker.worker in scene.marks else ()
    lead = (*marks, glyph(look_of(worker)), Span(" "))
    title = (
        *lead,
        *cut_middle(name_of(worker, step), title_room(size[0], ending) - row_width(lead)),
    )
    ground = Role.PANEL if worker.worker in scene.risen else None
    return framed(rows, size, title=title, ending=ending, is_focused=is_focused, ground=ground)


def _alike(worker: WorkerView, scene: Scene) -> Row:
    """Say how many others ask the same, if any."""
    others = len(who_asks_alike(scene.run.workers if scene.run else (), worker)) - 1
    if others < 1:
        return ()
    ask = "another worker asks" if others == 1 else f"{others} other workers ask"
    return words(Span(f", and {ask} the same", TEXT))


def card_height(worker: WorkerView, cells: int, most: int) -> int:
    """Return how high a card of what a worker asks is, so that it says all where it may."""
    return max(min(len(_asked(worker, cells - 4)) + 6, most), HEIGHT)


def question_fits(worker: WorkerView, cells: int, rows: int) -> bool:
    """The whole question stands on a card of that size: only then may it be allowed there."""
    return worker.questions == () or len(_asked(worker, cells)) <= rows


def _asked(worker: WorkerView, cells: int) -> list[Row]:
    """A question's text, its first line bold, and its numbered answers."""
    first, rest = question_pieces(worker.questions[0].text, cells)
    rows: list[Row] = [(Span(piece, BOLD),) for piece in first]
    rows += [(Span(piece, MUTED),) for piece in rest]
    return [*rows, *numbered_rows(worker, cells)]


@lru_cache(maxsize=32)
def question_pieces(text: str, cells: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return the first line of what is asked and all others, whole, in pieces of so many cells."""
    first, *others = (wrap_whole(line, cells) for line in text.split("\n"))
    return tuple(first), tuple(piece for line in others for piece in line)


def numbered_rows(worker: WorkerView, cells: int) -> list[Row]:
    """Return the answers that a digit gives, beside each other as far as they fit."""
    parts = [
        clickable((Span(str(n), KEY), Span(f" {piece}", TEXT)), f"choice:{n}:{worker.worker}")
        for n, choice in enumerate(choices_of(worker), 1)
        for piece in (choice.replace("\n", " "),)
    ]
    rows: list[Row] = []
    is_wrapped = True
    for part in parts:
        beside = () if is_wrapped else (*rows[-1], Span("   "), *part)
        if beside and row_width(beside) <= cells:
            rows[-1] = beside
        else:
            hanging = _hanging(part, cells)
            rows, is_wrapped = rows + hanging, len(hanging) > 1
    return rows


def _hanging(part: Row, cells: int) -> list[Row]:
    """Wrap a numbered answer behind its number."""
    number, text = part
    pieces = wrap(text.text.strip(), max(cells - 2, 1))
    rest = [(Span(f"  {piece}", text.ink),) for piece in pieces[1:]]
    return [(number, Span(f" {pieces[0]}", text.ink)), *rest]


def _content(worker: WorkerView, step: StepView, cells: int, rows: int) -> tuple[Row, list[Row]]:
    if worker.questions and not worker.phase.is_settled:
        return _asking(worker, cells, rows)
    if Badge.NEEDS_LOGIN in worker.badges and not worker.phase.is_settled:
        said = words(Span(" LOGIN ", fill_of(Role.WAITING)), "  its login has expired")
        return said, [(Span(line, TEXT),) for line in wrap(worker.error or "", cells, rows)]
    return _BY_PHASE[worker.phase](worker, step, cells, rows)


def _asking(worker: WorkerView, cells: int, rows: int) -> tuple[Row, list[Row]]:
    question = worker.questions[0]
    what = "for permission" if question.is_permission else "a question"
    reason = words(chip(ASKS), Span(f" {what}", TEXT))
    if question.danger:  # it says more than that it asks for permission, which its keys say too
        reason = words(chip(ASKS), Span(f" {question.danger}", Ink(Role.FAILED, bold=True)))
    if len(worker.questions) > 1:
        reason = words(*reason, f", and {len(worker.questions) - 1} more")
    evidence = _asked(worker, cells)
    if len(evidence) > rows:
        evidence = [*evidence[: rows - 1], words("► more: open it to read it all")]
    return reason, evidence


def _failed(worker: WorkerView, step: StepView, cells: int, rows: int) -> tuple[Row, list[Row]]:
    limit = limit_name(worker.cause)
    why = words(Span(" at its ", TEXT), Span(limit, Ink(Role.LIMIT, bold=True)))
    reason = words(
        chip(look_of(worker)), *(why if limit else words(" ", Span(why_failed(worker, step), TEXT)))
    )
    evidence: list[Row] = []
    if worker.cause is StopCause.MEMORY:
        evidence.append(_hit_row(worker))
    elif worker.limit_hit:
        evidence.append(words(Span(hit_figure(worker), Ink(Role.LIMIT, bold=True)), " allowed"))
    if worker.check and not worker.check.passed and worker.cause is not StopCause.CHECK:
        evidence.append(check_text(worker))
    said = telling(worker.error or (worker.last_lines[-1] if worker.last_lines else ""))
    left = max(rows - len(evidence) - 1, 0)
    evidence += [(Span(line, TEXT),) for line in wrap(said, cells, left) if line]
    kept = ", work kept" if worker.change or worker.branch else ""
    evidence.append(words(f"attempt {worker.attempt} of {worker.attempts_allowed}{kept}"))
    return reason, evidence


def _hit_row(worker: WorkerView) -> Row:
    held = level_of(worker, Dimension.MEMORY)
    bar = meter(1.0, _BAR, wall_level(worker, Dimension.MEMORY))
    level = f" {held.level}" if held else ""
    return words("mem ", *bar, " ", Span(hit_figure(worker), Ink(Role.LIMIT, bold=True)), level)


def _conflicted(worker: WorkerView, _: StepView, cells: int, rows: int) -> tuple[Row, list[Row]]:
    many = some(len(worker.conflicts), "file")
    reason = words(chip(look_of(worker)), Span(f" in {many}", TEXT))
    shown = worker.conflicts[: rows if len(worker.conflicts) <= rows else rows - 1]
    evidence: list[Row] = [(Span(cut_path(path, cells), TEXT),) for path in shown]
    if len(shown) < len(worker.conflicts):
        evidence.append(words(f"► {len(worker.conflicts) - len(shown)} more"))
    return reason, evidence


def _reviewing(worker: WorkerView, step: StepView, cells: int, rows: int) -> tuple[Row, list[Row]]:
    del cells, rows
    if Badge.APPROVED in worker.badges:
        then = "land it; it is approved"
    elif step.is_choice_due:
        then = f"choose 1 of {len(step.workers)}"
    else:
        then = "read, approve, land"
    reason = words(chip(look_of(worker)), Span(f"  {then}", TEXT))
    evidence = [check_text(worker), change_text(worker) or words("no change")]
    if undone := undone_text(worker):
        evidence.append((Span(undone, TEXT),))
    elif Badge.LAND_REFUSED in worker.badges and worker.error:
        said = f"your edits in {edits_text(worker)} are in the way" if worker.in_the_way else ""
        evidence.append((Span(said or worker.error or "", Ink(Role.FAILED)),))
    evidence.append(clash_row(worker) or words(_standing(worker)))
    return reason, evidence


def _standing(worker: WorkerView) -> str:
    """Return how a change stands to its target, as far as somebody has looked."""
    if worker.behind:
        return f"{worker.behind} behind the target"
    return "no conflict expected" if worker.is_radar_seen else "not yet checked for conflicts"


_BY_PHASE: dict[Phase, Callable[[WorkerView, StepView, int, int], tuple[Row, list[Row]]]] = {
    Phase.FAILED: _failed,
    Phase.CONFLICTED: _conflicted,
    Phase.REVIEWING: _reviewing,
}


def hints_of(worker: WorkerView, step: StepView, scene: Scene) -> list[Hint]:
    """Return the keys that answer what a card asks, without opening it: those that work now."""
    alike = who_asks_alike(scene.run.workers if scene.run else (), worker)
    answers = _to_question(worker, len(alike)) if alike else _answers(worker, step)
    is_opened = worker.worker in scene.opened
    return [
        Hint(scene.key(idea), label, idea)
        for idea, label in answers
        if idea not in scene.forbidden and not why_not(idea, worker, step, is_opened=is_opened)
    ]


def _to_question(worker: WorkerView, alike: int) -> list[tuple[str, str]]:
    """Return what answers a question that so many workers ask."""
    asked = worker.questions[0]
    if asked.is_permission:
        wide = [] if why_not_kept(asked) else [("yes_wide", "for the run")]
        edits = [("edit", "edit it")] if asked.is_editable and not raw_of(asked).is_hiding else []
        return [("yes", "allow once"), *wide, ("no", "deny"), *edits]
    all_of_them = [("yes_wide", f"answer all {alike}")] if alike > 1 else []
    choose = [("yes", "choose")] if asked.choices else []
    words_said = ("steer", "in words" if asked.choices else "answer")
    return [*choose, *all_of_them, words_said, ("open", "open it")]


def _answers(worker: WorkerView, step: StepView) -> list[tuple[str, str]]:
    if Badge.NEEDS_LOGIN in worker.badges:
        return [("retry", "retry, once you are logged in"), ("diff", "diff")]
    match worker.phase:
        case Phase.FAILED:
            return [("retry", "retry"), ("retry_with", "with feedback"), ("diff", "diff")]
        case Phase.CONFLICTED:
            return [("merge", "review"), ("diff", "diff"), ("retry", "retry")]
        case Phase.REVIEWING | Phase.LANDING if worker.in_the_way:
            return [("merge", "how to land"), ("diff", "diff")]
        case _ if step.is_choice_due:
            compares = ("go_compare", "compare")
            return [("diff", "diff"), compares, ("yes", "choose"), ("no", "reject")]
        case _ if Badge.APPROVED in worker.badges:
            return [("land", "land"), ("diff", "diff")]
        case _:
            return [("diff", "diff"), ("yes", "approve"), ("land", "land")]


def _key_row(hints: list[Hint], cells: int, worker: str, *, is_focused: bool) -> Row:
    """The keys, in `text` on the focused card, muted on others; what does not fit is left out."""
    row: list[Span] = []
    for hint in hints:
        lead = [Span("  ")] if row else []
        named = (Span(hint.key, KEY), Span(f" {hint.label}", TEXT if is_focused else MUTED))
        piece = [*lead, *clickable(named, f"{hint.idea}:{worker}")]
        if row_width([*row, *piece]) <= cells:
            row += piece
    return tuple(row)
