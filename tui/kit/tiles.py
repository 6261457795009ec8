"""The tile of a live worker: what it does, what it did last, its limits, in the rows there are."""

from engine.limits import Dimension, Level
from engine.messages.results import Change, StepView, WorkerView
from engine.phases import Phase
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, cut_middle, fit, row_width, spread, words
from tui.kit.deeds import deed_rows, newest_height
from tui.kit.frames import framed, title_room
from tui.kit.meters import is_nearly, meter, strip
from tui.words.cutting import cut_command
from tui.words.figures import UNKNOWN, cost, lasting, memory, some, tokens
from tui.words.looks import MARK, WALLS, chip, glyph, look_of
from tui.words.said import (
    badge_row,
    change_text,
    left_row,
    level_of,
    mind_text,
    passed_text,
    present_change,
    tool_text,
    wall_level,
)
from tui.words.scene import Scene
from tui.words.standing import candidate_of, clock_of, is_in_plain_folder, name_of

_BAR = 12
_NARROW, _NARROWER = 36, 34
_LEAST = {
    "change": 6,
    "memory": 7,
    "output": 8,
    "candidate": 9,
    "cpu": 10,
    "left": 11,
    "blanks": 12,
}
"""From which height of the whole tile on a row is there."""
_LOOKED_AT = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})
_WEAKER = frozenset({Level.SAMPLED, Level.ADVISORY})


def tile(
    worker: WorkerView, step: StepView, scene: Scene, size: tuple[int, int], *, is_focused: bool
) -> list[Row]:
    """A worker's tile of exactly this size."""
    rows = _inside(worker, step, scene, size)
    ending = words(clock_of(worker, scene.now))
    marks = (MARK, Span(" ")) if worker.worker in scene.marks else ()
    lead = (*marks, _dot(worker, scene), Span(" "))
    title = (
        *lead,
        *cut_middle(name_of(worker, step), title_room(size[0], ending) - row_width(lead)),
    )
    return framed(rows, size, title=title, ending=ending, is_focused=is_focused)


def _dot(worker: WorkerView, scene: Scene) -> Span:
    """The glyph; it brightens for a moment when output has just arrived."""
    look = look_of(worker)
    if worker.worker in scene.fresh and worker.phase is Phase.RUNNING:
        return Span(look.glyph, Ink(Role.FOCUS, bold=True))
    return glyph(look)


def _inside(worker: WorkerView, step: StepView, scene: Scene, size: tuple[int, int]) -> list[Row]:
    cells, height = size[0] - 4, size[1]
    above = [_phase_row(worker, step, scene.now, cells)]
    if height >= _LEAST["candidate"]:
        above.append(_who(worker, step, cells))
    below = _figures(worker, scene, cells, height)
    room = height - 2 - len(above) - len(below)
    lack = newest_height(worker, scene.now, cells) - room
    if lack > 0:  # figures give way to its words
        below = _figures(worker, scene, cells, max(height - lack, _LEAST["output"]))
        room = height - 2 - len(above) - len(below)
    if height < _LEAST["output"] or room <= 0:
        return [*above, *below][: height - 2]
    did = deed_rows(worker, scene.now, cells, room)
    if height >= _LEAST["blanks"] and not did[-1]:
        did = [(), *did[:-1]]
    return [*above, *did, *below]


def _phase_row(worker: WorkerView, step: StepView, now: float, cells: int) -> Row:
    """The phase word, then the tool that runs now, or how it ended."""
    word = chip(look_of(worker))
    room = cells - row_width((word,)) - 2
    if worker.phase is Phase.BACKING_OFF:
        doing = f"attempt {worker.attempt + 1} of {worker.attempts_allowed}"
    elif worker.phase is Phase.STOPPING:
        doing = "asked to stop"
    else:
        came_to = worker.ending or passed_text(worker, step)
        doing = cut_command(came_to or tool_text(worker, now), room)
    return (word, Span("  "), Span(doing, TEXT))


def _who(worker: WorkerView, step: StepView, cells: int) -> Row:
    """Candidate, agent and attempt."""
    letter = candidate_of(worker, step)
    row: list[Span] = [Span(f"candidate {letter}  ", MUTED)] if letter else []
    if cells + 4 >= _NARROWER:
        agent = worker.agent or ("command" if step.command else "")
        attempt = f"attempt {worker.attempt} of {worker.attempts_allowed}" if worker.attempt else ""
        told = (agent, worker.model, attempt, mind_text(worker))
        row.append(Span("  ".join(part for part in told if part), MUTED))
    return fit(row, cells)


def _figures(worker: WorkerView, scene: Scene, cells: int, height: int) -> list[Row]:
    """Use of cpu and memory, then what was changed, then a badge or clash."""
    rows: list[Row] = []
    if worker.phase is Phase.BACKING_OFF:
        rows += _wait_rows(worker, scene.now)
    else:
        if height >= _LEAST["cpu"]:
            rows.append(cpu_row(worker, scene))
        if height >= _LEAST["memory"] or is_nearly(memory_share(worker)):
            rows.append(memory_row(worker, cells))
        left = left_row(worker)
        if left and (height >= _LEAST["left"] or any(span.ink.role is Role.LIMIT for span in left)):
            rows.append(left)
    if height >= _LEAST["change"]:
        rows.append(change_row(worker, cells))
    badge = badge_row(worker, scene.now)
    return [*rows, badge] if badge else rows


def _wait_rows(worker: WorkerView, now: float) -> list[Row]:
    if worker.retry_at is None:
        return []
    whole = max(worker.retry_at - worker.phase_since, 1.0)
    gone = min(max(now - worker.phase_since, 0.0), whole)
    bar = meter(gone / whole, _BAR, level=Level.NONE, role=Role.LIMIT)
    left = lasting(worker.retry_at - now)
    return [words("wait ", *bar, Span(f" {left}", TEXT), f" of {lasting(whole)}")]


def memory_share(worker: WorkerView) -> float | None:
    """Return the share of its memory limit that is used."""
    used, cap = worker.usage.memory_mb, worker.limits.memory_mb
    return used / cap if used is not None and cap else None


def memory_row(worker: WorkerView, cells: int) -> Row:
    """`mem ━━━──┃ 410M of 1.0G`, its wall showing how the cap holds."""
    share = memory_share(worker)
    held = level_of(worker, Dimension.MEMORY)
    bar = meter(share, _BAR, wall_level(worker, Dimension.MEMORY))
    hot = Ink(Role.LIMIT, bold=True) if is_nearly(share) else TEXT
    figure = Span(memory(worker.usage.memory_mb), hot)
    cap = f" of {memory(worker.limits.memory_mb)}" if worker.limits.memory_mb else ""
    row = words("mem ", *bar, " ", figure, cap)
    level = f"  {held.level}" if held and held.level in _WEAKER and cells + 4 >= _NARROW else ""
    if row_width(row) + len(level) > cells:
        row, level = words("mem ", *bar, " ", figure, cap.replace(" of ", "/")), level[1:]
    whole = words(*row, level)
    return whole if row_width(whole) <= cells else row


def cpu_row(worker: WorkerView, scene: Scene) -> Row:
    """The strip of its latest cpu use, and the figure now."""
    samples = scene.cpu.get(worker.worker, ())
    full = float(worker.limits.cpu_percent or 100)
    wall = Span(WALLS[wall_level(worker, Dimension.CPU)], TEXT)
    figure = f" {samples[-1]:.0f}%" if samples else f" {UNKNOWN}"
    return words("cpu ", *strip(samples, _BAR, full), wall, Span(figure, TEXT))


def change_row(worker: WorkerView, cells: int) -> Row:
    """Return what was changed on the left, tokens and cost on the right."""
    spent: list[str | Span] = []
    usage = worker.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        if cells + 4 >= _NARROW:
            total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
            spent += [tokens(total), "  "]
        spent.append(Span(cost(usage.usd), TEXT))
    return spread(_changed(worker), words(*spent), cells)


def _changed(worker: WorkerView) -> Row:
    """Return its change; say what is known where there is none to be seen."""
    change = present_change(worker)
    if is_in_plain_folder(worker):
        kept = len(change.artifacts) if change else 0
        return words(Span(some(kept, "artifact"), TEXT) if kept else "a plain folder has no diff")
    if change is None and worker.phase in _LOOKED_AT:
        return words("change is not known yet")
    return (
        change_text(worker)
        if change and change != Change()
        else words("no change yet" if not worker.phase.is_settled else "no change")
    )
