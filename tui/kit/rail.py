"""The rail beside Fleet on a wide screen: plan, predicted clashes, machine, nodes, cost, latest."""

from collections import Counter

from engine.limits import Level
from engine.messages.results import Machine, RunView, StepView
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, clickable, fit, spread, words
from tui.kit.meters import heading, meter
from tui.words.clean import clean
from tui.words.cutting import cut_end, cut_path
from tui.words.figures import clock, cost_of, memory, some
from tui.words.happened import event_text
from tui.words.looks import glyph, look_of
from tui.words.scene import Scene

CELLS = 47
_BAR = 16
_MOST_STEPS = 12


def rail(scene: Scene, height: int, cells: int = CELLS) -> list[Row]:
    """As much of the rail as fits; what is least needed stands at the bottom."""
    run = scene.run
    if run is None:
        return []
    machine = _machine(run, scene.view.machine, cells)
    rows = [*_plan(run, cells), *_clashes(run, cells), *machine, *_nodes(run, cells)]
    rows += _cost(run, cells)
    return [*rows, *_latest(scene, height - len(rows), cells)][:height]


def _plan(run: RunView, cells: int) -> list[Row]:
    rows: list[Row] = [heading("PLAN", cells)]
    for step in run.steps[:_MOST_STEPS]:
        marks = [
            span for worker in step.workers[:8] for span in (glyph(look_of(worker)), Span(" "))
        ]
        left = (Span(f"{cut_end(step.name, 18):<19}", TEXT), *marks)
        row = spread(left, words(step_note(step)), cells)
        rows.append(clickable(row, f"to:{step.workers[0].worker}") if step.workers else row)
    if len(run.steps) > _MOST_STEPS:
        rows.append(words(f"► {len(run.steps) - _MOST_STEPS} more"))
    return [*rows, ()]


def step_note(step: StepView) -> str:
    """Return what a step does or waits for, in a few words."""
    if step.is_choice_due:
        return f"choose 1 of {len(step.workers)}"
    if step.chosen:
        return f"{step.chosen.rpartition('/')[2]} chosen"
    if step.outcome != "pending":
        return some(len(step.workers), "worker")
    if len(step.workers) > 1:
        wanted = "choose 1" if step.merge == "choose" else step.merge
        return f"{wanted} of {len(step.workers)}"
    return f"after {', '.join(step.dependencies)}" if step.dependencies else ""


def _clashes(run: RunView, cells: int) -> list[Row]:
    seen: set[frozenset[str]] = set()
    rows: list[Row] = []
    for worker in run.workers:
        for clash in worker.clashes:
            pair = frozenset({worker.worker, clash.other})
            if pair in seen:
                continue
            seen.add(pair)
            mark = Span("≈ ", Ink(Role.CLASH))
            one, other = (
                clickable((Span(name, TEXT),), f"to:{name}")
                for name in (worker.worker, clash.other)
            )
            rows.append(
                (*clickable((mark,), f"to:{worker.worker}"), *one, *words(" with "), *other)
            )
            path = cut_path(clash.paths[0], cells - 12) if clash.paths else ""
            rows.append(words(f"  {path}  {some(clash.hunks, 'hunk')}"))
    if not rows:
        return []
    head = heading("PREDICTED CLASHES", cells, Role.CLASH, figure=str(len(seen)))
    return [head, *rows[:8], ()]


def _radar(run: RunView) -> list[Row]:
    """Return what looking for clashes costs, once somebody has looked."""
    if not run.radar_share:
        return []
    said = Span(f"{run.radar_share:.1%}", TEXT)
    return [words("radar ", " " * (_BAR + 2), said, " of the time")]


def _machine(run: RunView, machine: Machine, cells: int) -> list[Row]:
    used = machine.memory_mb - machine.memory_available_mb
    caps = sum(w.limits.memory_mb or 0 for w in run.workers if w.phase.holds_slot)
    slots = sum(worker.phase.holds_slot for worker in run.workers)
    rows: list[Row] = [heading("MACHINE", cells)]
    for title, have, whole, said, level in (
        (
            "cpu",
            machine.cpu_used,
            machine.cores,
            f"{machine.cpu_used:.1f} of {machine.cores} cores",
            Level.ENFORCED,
        ),
        (
            "mem",
            used,
            machine.memory_mb,
            f"{memory(used)} of {memory(machine.memory_mb)}",
            Level.ENFORCED,
        ),
        ("caps", caps, machine.memory_mb, f"{memory(caps)} promised", Level.NONE),
        ("slots", slots, run.cap, f"{slots} of {run.cap}", Level.ENFORCED),
    ):
        bar = meter(have / whole if whole else None, _BAR, level)
        rows.append(words(f"{title:<6}", *bar, " ", Span(said, TEXT)))
    rows.append(
        words("disk  ", " " * (_BAR + 2), Span(memory(machine.disk_free_mb), TEXT), " free")
    )
    return [*rows, *_radar(run), ()]


def _nodes(run: RunView, cells: int) -> list[Row]:
    """Return the places that are not this machine, with how many work there."""
    there = Counter(worker.site for worker in run.workers if worker.site)
    working = Counter(worker.site for worker in run.workers if worker.is_live)
    rows: list[Row] = [heading("NODES", cells)] if there else []
    for site, count in sorted(there.items())[:_MOST_STEPS]:
        left = (Span(cut_end(clean(site), 24), TEXT),)
        rows.append(spread(left, words(f"{working[site]} of {count} busy"), cells))
    if len(there) > _MOST_STEPS:
        rows.append(words(f"► {len(there) - _MOST_STEPS} more"))
    return [*rows, ()] if rows else []


def _cost(run: RunView, cells: int) -> list[Row]:
    sums = [(step, sum(w.usage.usd or 0.0 for w in step.workers)) for step in run.steps]
    most = max((spent for _, spent in sums), default=0.0)
    if not most:
        return []
    rows: list[Row] = [heading("COST", cells, figure=cost_of(run.workers))]
    for step, spent in sums[:_MOST_STEPS]:
        bar = Span("━" * round(spent / most * _BAR), Ink(Role.METER))
        figure = (Span(cost_of(step.workers), TEXT),)
        rows.append(spread(words(f"{cut_end(step.name, 12):<13}", bar), figure, cells))
    return [*rows, ()]


def _latest(scene: Scene, room: int, cells: int) -> list[Row]:
    if room < 4 or not scene.told:  # noqa: PLR2004 - a heading and one event need three rows
        return []
    rows: list[Row] = [heading("LATEST", cells)]
    for told in reversed(scene.told):
        if len(rows) + 2 > room:
            break
        worker = getattr(told.event, "worker", "")
        name = worker or getattr(told.event, "step", scene.run.run if scene.run else "")
        does = f"to:{worker}" if worker else ""
        mark, *said = event_text(told.event)
        when = Span(f"{clock(told.at, scene.now):>8} ", MUTED)
        rows.append(clickable(fit((when, mark, Span(name, TEXT)), cells), does))
        rows.append(clickable(fit((Span(" " * 11), *said), cells), does))
    return rows
