"""One worker in full: its head, its tabs, and the side with limits, change, clash and check."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.limits import KINDS, Dimension, Enforcement, Level, LimitKind
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
from tui.kit.lists import cursor_row
from tui.kit.meters import heading, is_nearly, meter, strip
from tui.words.asking import asked_of
from tui.words.cutting import cut_end, cut_path, wrap
from tui.words.figures import UNKNOWN, clock, cost, lasting, memory, some, tokens
from tui.words.looks import LEVELS, WALLS, chip, glyph, look_of
from tui.words.said import (
    change_text,
    check_text,
    how_heard,
    left_row,
    mind_text,
    present_change,
    telling,
    undone_text,
    widest_value,
)
from tui.words.scene import Scene
from tui.words.standing import candidate_of, clock_of, name_of

SIDE = 38
SIDE_FROM = 100
_BAR = 11


def worker_subject(worker: WorkerView, step: StepView, scene: Scene, cells: int) -> Row:
    """Row 1: who it is, where it stands, and what it has cost."""
    letter = candidate_of(worker, step)
    stands = (chip(look_of(worker)), Span(f" {clock_of(worker, scene.now)}", BOLD))
    candidate = words("candidate ", Span(letter, TEXT)) if letter else ()
    usage = worker.usage
    spent = usage.tokens
    right = words(f"{tokens(spent)} tok   " if spent else "", Span(cost(usage.usd), BOLD), " ")
    name = cut_middle(name_of(worker, step), cells - row_width((*stands, *right)) - 8)
    left = [Span(" "), glyph(look_of(worker)), Span(" "), *name, Span("   "), *stands]
    attempt = f"attempt {worker.attempt} of {worker.attempts_allowed}"
    parts: tuple[Row, ...] = (candidate, words(Span(f"{worker.agent}   ", TEXT), attempt))
    if cells < SIDE_FROM:  # what stands beside the log elsewhere
        parts = (left_row(worker), change_text(worker), candidate)
    for part in parts:
        room = cells - row_width(left) - row_width(right) - 3
        left += (Span("   "), *part) if part and row_width(part) < room else ()
    return spread(left, right, cells)


def tab_row(tabs: Mapping[str, str], current: str, cells: int, endings: Sequence[Row]) -> Row:
    """The tabs, the current one underlined; at the right as much as fits of what the pane says."""
    row: list[Span] = []
    for tab, title in tabs.items():
        row.append(Span("  " if row else " "))
        ink = Ink(bold=True, underline=True) if tab == current else MUTED
        row.append(Span(title, ink._replace(does=f"tab:{tab}")))
    room = cells - row_width(row) - 2
    ending = next((known for known in endings if row_width(known) <= room), ())
    return spread(row, ending, cells)


def prompt_rows(worker: WorkerView, cells: int, most: int) -> list[Row]:
    """Return the beginning of its prompt, for above its log; a click shows all of it."""
    if not worker.prompt or most < 1:
        return []
    label = "prompt "
    seen = worker.prompt[: cells * (most + 1) * 4]  # the rest is on no row, and costs as much
    said = "  ".join(line.strip() for line in seen.splitlines() if line.strip())
    pieces = wrap(said, max(cells - len(label) - 2, 1), most)
    heads = [label, *[" " * len(label)] * (len(pieces) - 1)]
    return [
        clickable((Span(f" {head}", MUTED), Span(piece, TEXT)), "tab:prompt")
        for head, piece in zip(heads, pieces, strict=True)
    ]


def speak_row(worker: WorkerView, scene: Scene, cells: int) -> Row:
    """Return the line under the log that is clicked to speak to its agent; empty where none can."""
    if worker.phase is Phase.FAILED:
        key, said, does = "retry_with", "say what to do better, and retry", "do:retry_with"
    elif asked_of(worker):
        key, said, does = "steer", "answer in words", "do:steer"
    elif worker.phase is Phase.RUNNING:
        key, said, does = "steer", f"say something to it: {how_heard([worker])}", "do:steer"
    else:
        return ()
    row = words(" ", Span(scene.key(key), KEY), Span(" ▏", Ink(Role.ACCENT)), said)
    return grounded(fit(clickable(row, does), cells), Role.SURFACE)


def side(worker: WorkerView, scene: Scene, cells: int, files: Sequence[Row] = ()) -> list[Row]:
    """Limits, cpu, change, clashes and check, one under the other."""
    rows = [heading("LIMITS", cells), *_limit_rows(worker, scene)]
    samples = scene.cpu.get(worker.worker, ())
    if samples:
        full = float(worker.limits.cpu_percent or 100)
        rows += [(), heading("CPU", cells, figure=f"{samples[-1]:.0f}%")]
        rows.append(strip(samples, cells - 1, full))
    if change := present_change(worker):
        so_far = "so far" if change is worker.so_far else ""
        rows += [(), heading("CHANGE", cells, note=so_far)]
        rows += [clickable(words(*change_text(worker)), "do:diff"), *files]
        rows += [
            words("set aside: ", Span(cut_path(text, cells - 11), TEXT))
            for text in change.set_aside
        ]
    if worker.checkpoint_at and worker.phase is Phase.RUNNING:
        at = clock(worker.checkpoint_at, scene.now)
        rows += [(), heading("CHECKPOINT", cells), words("kept as it was at ", Span(at, TEXT))]
    if worker.clashes:
        rows += [(), heading("PREDICTED CLASH", cells, Role.CLASH, figure=str(len(worker.clashes)))]
        for clash in worker.clashes:
            other = words(Span("≈ ", Ink(Role.CLASH)), Span(clash.other, TEXT))
            rows.append(clickable(other, f"to:{clash.other}"))
            where = cut_path(clash.paths[0], cells - 14) if clash.paths else ""
            rows.append(words(f"  {where}, {some(clash.hunks, 'hunk')}"))
    rows += [(), heading("CHECK", cells, _check_role(worker)), *_wrapped(check_text(worker), cells)]
    if undone := undone_text(worker):
        rows += [(), heading("LANDING", cells)]
        rows += [(Span(line, TEXT),) for line in wrap(undone, cells, 6)]
    elif worker.error:
        rows += [(), heading("ERROR", cells, Role.FAILED)]
        rows += [(Span(line, TEXT),) for line in wrap(telling(worker.error), cells, 6)]
    return rows


def _wrapped(row: Row, cells: int) -> list[Row]:
    return [fit(row, cells)]


def _check_role(worker: WorkerView) -> Role:
    return Role.FAILED if worker.check and not worker.check.passed else Role.MUTED


_SHOWN = sorted((kind for kind in KINDS.values() if kind.title), key=lambda kind: kind.row)
_FIGURES: dict[str, Callable[[Any], str]] = {
    "MB": memory,
    "%": lambda percent: UNKNOWN if percent is None else f"{percent:.0f}%",
    "s": lasting,
    "USD": cost,
    "tokens": tokens,
}


def _limit_rows(worker: WorkerView, scene: Scene) -> list[Row]:
    rows = [left] if (left := left_row(worker)) else []
    for kind in _SHOWN:
        used, cap = _used(kind, worker, scene), getattr(worker.limits, kind.name)
        figure = _FIGURES.get(kind.unit, _plainly)
        level = _level(worker, kind)
        share = used / cap if used is not None and cap else None
        ink = Ink(Role.LIMIT, bold=True) if is_nearly(share) else TEXT
        of = f" of {figure(cap)}" if cap else ""
        weak = f" {level}" if cap and level in {Level.SAMPLED, Level.ADVISORY} else ""
        bar = meter(share, _BAR, level if cap else Level.NONE)
        row = words(f"{kind.title:<7}", *bar, " ", Span(figure(used), ink), of)
        rows.append((*row, Span(weak, MUTED)) if row_width(row) + len(weak) <= SIDE else row)
    mind = mind_text(worker)
    return [*rows, *_fence_rows(worker), *([words(mind)] if mind else [])]


def _used(kind: LimitKind, worker: WorkerView, scene: Scene) -> float | None:
    if kind.used:
        known: float | None = getattr(worker.own_usage, kind.used)
        return known
    samples = scene.cpu.get(worker.worker, ())
    return samples[-1] if samples and kind.dimension is Dimension.CPU else None


def _plainly(amount: float | None) -> str:
    return UNKNOWN if amount is None else str(amount)


def _level(worker: WorkerView, kind: LimitKind) -> Level:
    if kind.held is not None and kind.held.is_by_engine:
        return kind.held.level
    return next((h.level for h in worker.enforcement if h.dimension is kind.dimension), Level.NONE)


def _fence_rows(worker: WorkerView) -> list[Row]:
    """Return the rows of what is fenced in without a figure: files, git and the network."""
    fences = {Dimension.FILES: "files", Dimension.GIT: "git", Dimension.NETWORK: "net"}
    return [
        words(
            f"{fences[held.dimension]:<7}",
            " " * _BAR,
            Span(WALLS[held.level], TEXT),
            " ",
            Span(cut_end(held.value or held.mechanism, SIDE - _BAR - 10), TEXT),
        )
        for held in worker.enforcement
        if held.dimension in fences
    ]


def limits_tab(worker: WorkerView, cells: int) -> list[Row]:
    """Return how each dimension holds, by what, and why no better."""
    if not worker.enforcement:
        return [(), words(" It has not started, so plait does not know yet which limits hold.")]
    wide = widest_value(worker) + 2
    rows: list[Row] = [(), fit(words(f" {'DIMENSION':<11}{'LEVEL':<14}{'VALUE':<{wide}}BY"), cells)]
    for held in worker.enforcement:
        rows += _held_rows(held, cells, wide)
    return [*rows, *_settings_rows(worker, cells)]


def _settings_rows(worker: WorkerView, cells: int) -> list[Row]:
    """Return which settings of the user's own reach its agent, and which stay behind."""
    rows: list[Row] = []
    for line in worker.settings:
        head, _, told = line.partition(": ")
        rows += [(), words(f" {head.upper()}")]
        rows += [
            (Span(f" {piece}", TEXT),) for one in told.split("; ") for piece in wrap(one, cells - 2)
        ]
    return rows


def _held_rows(held: Enforcement, cells: int, wide: int) -> list[Row]:
    role = {Level.ENFORCED: Role.DONE, Level.SAMPLED: Role.LIMIT}.get(held.level, Role.MUTED)
    row = words(
        Span(f" {held.dimension:<11}", TEXT),
        Span(f"{LEVELS[held.level][0]:<14}", Ink(role, bold=True)),
        Span(f"{held.value:<{wide}}", TEXT),
        held.mechanism,
    )
    rows: list[Row] = [fit(row, cells)]
    for label, text in (("because", held.reason), ("better", held.fix)):
        if text:
            rows += [
                words(" " * 12, f"{label}: {line}" if not i else f"         {line}")
                for i, line in enumerate(wrap(text, max(cells - 24, 20)))
            ]
    return rows


def prompt_tab(worker: WorkerView, cells: int) -> list[Row]:
    """The prompt as the agent got it."""
    if not worker.prompt:
        return [(), words(" It has no prompt yet: plait writes it when the worker starts.")]
    return [(), *((Span(f" {line}", TEXT),) for line in wrap(worker.prompt, cells - 2))]


def attempts_tab(worker: WorkerView, scene: Scene, cursor: int, cells: int) -> list[Row]:
    """The attempts so far; enter opens one's log."""
    rows: list[Row] = [()]
    for number in range(1, worker.attempt + 1):
        is_last = number == worker.attempt
        said = (
            words(chip(look_of(worker)), f"  {clock_of(worker, scene.now)}")
            if is_last
            else words("ended")
        )
        row = words(Span(f" attempt {number}  ", BOLD), *said)
        drawn = cursor_row(row, cells, is_focused=number == cursor)
        rows.append(clickable(drawn, f"attempt:{number}"))
    return rows if worker.attempt else [(), words(" It has not started.")]
