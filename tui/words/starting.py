"""Say what a run would be before it begins: its plan, its agents, what this machine enforces."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING

from engine.limits import KINDS, Level, LimitKind
from tui.ink import BOLD, MUTED, TEXT, Ink, Role, Row, Span, blank, fit, width_of, words
from tui.words.clean import clean
from tui.words.cutting import wrap
from tui.words.figures import cost, lasting, memory, some
from tui.words.looks import LEVELS

if TYPE_CHECKING:  # a console that starts nothing needs none of what the front door imports
    from collections.abc import Iterable, Sequence

    from engine.api import OfferedAgent, Plan, PlannedStep
    from engine.limits import Enforcement, Limits

LEAD = 13
"""So many columns stand before what is said of a part."""
_MOST_STEPS, _MOST_OFFERED = 3, 5
_MODES = {
    "auto": "they act freely inside the sandbox, and ask to leave it",
    "ask": "you are asked before they act",
    "rules": "your rules answer first, then you",
}
PERMISSIONS = {"": "as in plait.yaml (default: auto)", **_MODES}
"""The words of `--permissions`: who answers agents that ask."""


def files_like(part: str, files: Iterable[str]) -> list[str]:
    """Return the files that a part of a path may mean, the likeliest first; none unreadable."""
    wanted = part.casefold()
    ranked = []
    for path in files:
        name = path.casefold()
        if wanted in name and clean(path) == path and " " not in path:
            is_named = name.rpartition("/")[2].startswith(wanted)
            ranked.append((not name.startswith(wanted), not is_named, len(path), path))
    return [path for *_, path in nsmallest(_MOST_OFFERED, ranked)]


def agent_row(agent: OfferedAgent) -> Row:
    """Return if an agent can work here: its version and its login."""
    if not agent.is_installed:
        return words(Span("✗ ", Ink(Role.FAILED)), Span("not installed", Ink(Role.FAILED)))
    by = agent.adapter if agent.adapter != agent.name else ""
    parts = [" ".join(clean(part) for part in (by, agent.model, agent.version) if part)]
    if agent.login is None:
        mark, ink = Span("● ", Ink(Role.WAITING)), Ink(Role.WAITING)
        parts.append("no login found")
    else:
        mark, ink = Span("✓ ", Ink(Role.DONE)), MUTED
        parts.append("" if agent.login == "needs none" else f"logged in {clean(agent.login)}")
    return mark, Span("  ".join(filter(None, parts)), ink)


def agents_rows(agents: Sequence[OfferedAgent], cells: int) -> list[Row]:
    """Return those that are here, a row for each, then the names of the others."""
    here = [agent for agent in agents if agent.is_installed]
    wide = max([LEAD - 2, *(width_of(clean(agent.name)) + 2 for agent in here)])
    rows: list[Row] = []
    for agent in here:
        mark, said = agent_row(agent)
        first, *more = wrap(said.text, max(cells - wide - width_of(mark.text), 1))
        rows.append((mark, *fit((Span(clean(agent.name), BOLD),), wide), said._replace(text=first)))
        rows += [(blank(wide + width_of(mark.text)), said._replace(text=part)) for part in more]
    missing = [agent.name for agent in agents if not agent.is_installed]
    if missing:
        rows += told("not here", _first_of(missing, cells - LEAD), cells)
    return rows


def _first_of(names: Sequence[str], cells: int) -> str:
    """Return as many names as one row holds, and how many more there are."""
    for count in range(len(names), 0, -1):
        left = len(names) - count
        said = ", ".join(names[:count]) + (f" and {left} more" if left else "")
        if width_of(said) <= cells:
            return said
    return some(len(names), "agent")


def held_rows(machine: Iterable[Enforcement], cells: int) -> list[Row]:
    """Return the dimensions by how they hold for a run here, a name and a list for each level."""
    return [
        row
        for level, held in by_level(machine).items()
        for row in told(LEVELS[level][0], held, cells, Ink(LEVELS[level][1]))
    ]


def by_level(machine: Iterable[Enforcement]) -> dict[Level, str]:
    """Return the names of the dimensions that hold at each level, without levels of none."""
    known = list(machine)
    names = {
        level: ", ".join(str(row.dimension) for row in known if row.level is level)
        for level in LEVELS
    }
    return {level: held for level, held in names.items() if held}


def told(name: str, said: str, cells: int, ink: Ink = MUTED) -> list[Row]:
    """Return a name and what is said of it, over as many rows as it takes."""
    parts = wrap(said, max(cells - LEAD, 1)) or [""]
    return [
        (Span(f"{name if not at else '':<{LEAD}}", ink), Span(part, TEXT))
        for at, part in enumerate(parts)
    ]


def plan_rows(plan: Plan, cells: int) -> list[Row]:
    """Return a plan in few rows: who works, what becomes of it, within which limits."""
    rows: list[Row] = []
    for step in plan.steps[:_MOST_STEPS]:
        rows += told("will run" if not rows else "", _of_step(step, plan), cells)
    if len(plan.steps) > _MOST_STEPS:
        rows += told(
            "", f"and {some(len(plan.steps) - _MOST_STEPS, 'more step', 'more steps')}", cells
        )
    for clamp in plan.clamps:
        rows += told("", f"{clamp.where}: {clamp.given}, not {clamp.asked}: {clamp.reason}", cells)
    if plan.runtime.auto_merge:
        rows += told("lands", "without a review, if its step succeeds", cells)
    limits = {_limits_of(step.limits) for step in plan.steps if not step.run}
    rows += [row for text in sorted(limits) for row in told("each", text, cells)]
    return rows


def _of_step(step: PlannedStep, plan: Plan) -> str:
    lead = f"{step.name}: " if len(plan.steps) > 1 else ""
    if step.run:
        return f"{lead}$ {clean(step.run)}"
    agents = dict.fromkeys(clean(worker.agent.name) for worker in step.workers if worker.agent)
    mode = step.workers[0].permissions.mode
    said = f"{lead}{some(len(step.workers), 'worker')} of {', '.join(agents)}, permissions {mode}"
    said += "; you choose one" if step.has_candidates else ""
    return said + (f"; check: {clean(step.check)}" if step.check else "; nothing is checked")


def _limits_of(limits: Limits) -> str:
    held = [
        f"{kind.title} {_figure(kind, value)}"
        for name, kind in KINDS.items()
        if kind.title and (value := getattr(limits, name)) is not None
    ]
    return ", ".join(held) or "no limits"


def _figure(kind: LimitKind, value: float) -> str:
    match kind.unit:
        case "s":
            return lasting(value)
        case "MB":
            return memory(value)
        case "USD" | "$":
            return cost(value)
        case "%":
            return f"{value:g}%"
        case _:
            return f"{value:g}"
