"""Draw what the bars say of a run: the top bar's end, the run line with its beads, the banner."""

from collections.abc import Collection, Sequence

from engine.messages.results import RunView
from tui.ink import (
    BOLD,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    blank,
    clickable,
    fit,
    grounded,
    row_width,
    spread,
    words,
    wrapped,
)
from tui.kit.bars import tabs_bar
from tui.words.cutting import cut_end, cut_path
from tui.words.figures import cost_of, lasting, memory
from tui.words.looks import MARK, fill_of, look_of
from tui.words.scene import Banner, Scene
from tui.words.standing import Band, bands_of

_WIDE, _WIDER = 100, 160
_MANY_BEADS = 12
_BAR = 36
_THIRD = 1 / 3


def top_bar(scene: Scene, current: str, cells: int, taken: Collection[str] = ()) -> Row:
    """Row 0: the screens with their keys, but those that are taken; the run and its age."""
    if scene.is_alone:
        place = cut_path(scene.view.repository, cells // 2)
        name = Span(" plait ", Ink(Role.ACCENT, Role.PANEL, bold=True))
        title = Span(f" your {scene.run.name if scene.run else ''} ", Ink(Role.TEXT, bold=True))
        return grounded(spread((name, title), words(place, " "), cells), Role.PANEL)
    ending = _run_name(scene, has_repository=cells >= _WIDER, most=max(cells // 6, 12))
    keys = {idea: "" if key in taken else key for idea, key in scene.keys.items()}
    return tabs_bar(keys, current, cells, ending=ending, count=_inbox_count(scene))


def _inbox_count(scene: Scene) -> Row:
    count = len(bands_of(scene.run)[Band.NEEDS_YOU]) if scene.run else 0
    return (Span(f" ? {count} ", fill_of(Role.WAITING)),) if count else ()


def _run_name(scene: Scene, *, has_repository: bool, most: int) -> Row:
    parts: list[str | Span] = []
    if scene.run is None and not scene.view.repository:
        return ()
    if has_repository or scene.run is None:
        parts += [cut_path(scene.view.repository, 3 * most)]
        if scene.run and scene.run.target:
            parts += [" on ", Span(scene.run.target, TEXT)]
        parts.append("    ")
    if scene.run:
        ended = scene.run.ended_at or scene.now
        name = " ".join(filter(None, (cut_end(scene.run.name, most), scene.run.run)))
        parts += [
            *clickable((Span(name, TEXT),), "go:runs"),
            "  ",
            lasting(ended - scene.run.started_at),
        ]
    return words(*parts, " ")


def run_line(scene: Scene, cells: int) -> Row:
    """Row 1: the beads, how far the run is, and what it uses."""
    if scene.run is None:
        return fit((), cells)
    if cells < _WIDE:
        counts = (*_counts(scene.run), *_marked(scene))
        use = words(*_use(scene, is_wide=False), " ")
        has_room = row_width(counts) + row_width(use) + 2 <= cells
        return spread(counts, use if has_room else (), cells)
    settled = sum(worker.phase.is_settled for worker in scene.run.workers)
    beads = beads_of(scene.run, is_plain=scene.is_plain)
    told = words(Span(f"  {settled}", BOLD), f" of {len(scene.run.workers)} settled")
    held = _held(scene.run)
    return spread(
        words(Span(" "), *beads, *told, *_after(held), *_after(_marked(scene))),
        words(*_use(scene, is_wide=True), " "),
        cells,
    )


def _after(row: Sequence[Span]) -> Row:
    """Return what stands behind others, apart from them; nothing where there is nothing."""
    return (Span("   "), *row) if row else ()


def _marked(scene: Scene) -> Row:
    """`✚ 3 marked`, where any are."""
    marked = len(scene.marks)
    return (MARK, Span(f" {marked} marked", BOLD)) if marked else ()


def banner_rows(banner: Banner, cells: int, most: int) -> list[Row]:
    """Return a filled chip and a sentence on a panel, whole where that takes at most so many."""
    chip = Span(f" ▲ {banner.chip} ", fill_of(banner.role))
    said = wrapped((Span(banner.sentence, TEXT),), cells - row_width((chip,)) - 2, most)
    gap = blank(row_width((chip,)))
    rows = [(gap if at else chip, Span(" "), *piece) for at, piece in enumerate(said)]
    return [grounded(fit(row, cells), Role.PANEL) for row in rows]


def _counts(run: RunView) -> Row:
    bands = bands_of(run)
    parts: list[str | Span] = [" "]
    for band, word, role in (
        (Band.NEEDS_YOU, "need you", Role.WAITING),
        (Band.WORKING, "working", Role.RUNNING),
        (Band.WAITING, "to come", Role.TEXT),
        (Band.SETTLED, "settled", Role.DONE),
    ):
        if count := len(bands[band]):
            said = "needs you" if word == "need you" and count == 1 else word
            does = "go:inbox" if band is Band.NEEDS_YOU else ""
            figure = Span(str(count), Ink(role, bold=True))
            parts += clickable(words(figure, f" {said}  "), does)
    return words(*parts, *_held(run))


def _held(run: RunView) -> list[Span]:
    """Say that the run is paused, and that the team's history has not all of it."""
    held = [Span("‖ PAUSED", Ink(Role.ACCENT, bold=True))] if run.is_paused else []
    if run.history:
        held += [Span("   ")] if held else []
        held += clickable((Span("▲ history delayed", Ink(Role.WAITING)),), "go:stats")
    return held


def _use(scene: Scene, *, is_wide: bool) -> list[str | Span]:
    run = scene.run
    if run is None:
        return []
    spent = sum(worker.usage.usd or 0.0 for worker in run.workers)
    budgets = [worker.limits.budget_usd for worker in run.workers]
    parts: list[str | Span] = []
    if spent:
        parts.append(Span(cost_of(run.workers), BOLD))
        if all(budgets):
            parts.append(f" of ${sum(budget or 0.0 for budget in budgets):.0f}")
        parts.append("   " if is_wide else "  ")
    parts += _machine_use(scene, is_wide=is_wide)
    left = _time_left(run, scene.now)
    if left is not None:
        minutes = max(round(left / 60), 1)
        parts += ["   about " if is_wide else "  ~", Span(f"{minutes} min", TEXT)]
        parts.append(" left" if is_wide else "")
    return parts


def _machine_use(scene: Scene, *, is_wide: bool) -> list[str | Span]:
    machine = scene.view.machine
    held = sum(worker.usage.memory_mb or 0.0 for worker in scene.run.workers) if scene.run else 0.0
    if not is_wide:
        return ["mem ", Span(memory(held), TEXT)]
    parts: list[str | Span] = [
        " cpu ",
        Span(f"{machine.cpu_used:.1f}", TEXT),
        f" of {machine.cores}",
    ]
    parts += ["    mem ", Span(memory(held), TEXT)]
    if machine.memory_mb:
        parts.append(f" of {memory(machine.memory_mb)}")
    return parts


def _time_left(run: RunView, now: float) -> float | None:
    """An estimate from the pace so far; none before a third is done or after the end."""
    total = len(run.workers)
    done = sum(worker.phase.is_settled for worker in run.workers)
    if not total or run.ended_at or run.is_waiting or done == total or done / total < _THIRD:
        return None
    return (now - run.started_at) / done * (total - done)


def beads_of(run: RunView, *, is_plain: bool) -> Row:
    """One bead per worker in plan order; from thirteen workers on, one bar in proportion."""
    if len(run.workers) > _MANY_BEADS:
        return _proportions(run, is_plain=is_plain)
    row: list[Span] = []
    for worker in run.workers:
        look = look_of(worker)
        role = _bead_role(look.role, is_settled=worker.phase.is_settled)
        bead = Span((look.glyph if is_plain else "▄") * 3, Ink(role))
        row += [*clickable((bead,), f"to:{worker.worker}"), Span(" ")]
    return tuple(row)


def _bead_role(role: Role, *, is_settled: bool) -> Role:
    """Return the role of a bead; what is to come is faint."""
    return Role.LINE if role is Role.MUTED and not is_settled else role


def _proportions(run: RunView, *, is_plain: bool) -> Row:
    bands = bands_of(run)
    total = len(run.workers)
    row: list[Span] = []
    at = before = 0
    for band, role, mark in (
        (Band.SETTLED, Role.DONE, "✓"),
        (Band.WORKING, Role.RUNNING, "●"),
        (Band.NEEDS_YOU, Role.WAITING, "?"),
        (Band.WAITING, Role.LINE, "·"),
    ):
        at += len(bands[band])
        until = round(at / total * _BAR)
        row.append(Span((mark if is_plain else "▄") * (until - before), Ink(role)))
        before = until
    return tuple(row)
