"""Tell where CPU time goes now: plait's own, and that of each worker, between two looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.messages.results import EngineView, WorkerView
from engine.messages.timing import EngineCosts
from tui.words.cutting import cut_end
from tui.words.figures import UNKNOWN, lasting, memory, some

_LEAST_S = 0.05
"""Over a shorter time, ticks of the kernel's clock are no figures."""


@dataclass(frozen=True)
class Look:
    """The answers of an engine at one moment: of its workers, and of itself."""

    view: EngineView
    costs: EngineCosts

    @property
    def workers(self) -> dict[tuple[str, str], WorkerView]:
        """Return the workers of all runs of the engine."""
        return {(run.run, one.worker): one for run in self.view.runs for one in run.workers}


@dataclass(frozen=True, kw_only=True)
class WorkerCost:
    """The use of one worker.

    Attributes:
        here: The seconds since it came into its phase.
        share: Of one processor, since the look before; None where that is unknown.
    """

    run: str
    worker: str
    phase: str
    here: float
    cpu: float | None
    share: float | None
    memory_mb: float | None


def worker_costs(before: Look, now: Look) -> list[WorkerCost]:
    """Return what the workers use that live, most first."""
    earlier = before.workers
    found = [
        WorkerCost(
            run=run,
            worker=name,
            phase=str(one.phase),
            here=max(now.view.at - one.phase_since, 0.0),
            cpu=one.usage.cpu_seconds,
            share=_share(before, now, _cpu(earlier.get((run, name))), one.usage.cpu_seconds),
            memory_mb=one.usage.memory_mb,
        )
        for (run, name), one in now.workers.items()
        if one.is_live
    ]
    return sorted(found, key=lambda one: (-(one.share or 0.0), -(one.cpu or 0.0), one.worker))


def _cpu(worker: WorkerView | None) -> float | None:
    return worker.usage.cpu_seconds if worker else None


def _share(before: Look, now: Look, then: float | None, cpu: float | None) -> float | None:
    passed = now.costs.at - before.costs.at
    if cpu is None or then is None or passed < _LEAST_S:
        return None
    return max(cpu - then, 0.0) / passed


def costs_text(before: Look, now: Look, width: int, height: int) -> list[str]:
    """Return a screen of what is used now: plait itself, then its workers."""
    rows = [_own(before, now), ""]
    rows.append(f"{'worker':<30}{'phase':<12}{'here':>8}{'CPU now':>9}{'CPU':>10}{'memory':>9}")
    costs = worker_costs(before, now)
    room = max(height - len(rows) - 1, 1)
    rows += [_row(one) for one in costs[:room]]
    if len(costs) > room:
        rows.append(f"and {some(len(costs) - room, 'worker')} more")
    elif not costs:
        rows.append("no worker is at work")
    return [cut_end(row, width) for row in rows]


def _own(before: Look, now: Look) -> str:
    """Return what plait itself uses, in one line."""
    was, own = before.costs, now.costs
    mine = _share(before, now, was.engine, own.engine)
    programs = _share(before, now, was.programs, own.programs)
    return (
        f"engine {own.pid} {_percent(mine)} {own.engine:.1f}s {memory(own.memory_mb)}"
        f"  git {_percent(programs)} {own.programs:.1f}s"
        f"  {some(own.attempts, 'keeper')} {own.keepers:.1f}s  up {lasting(own.up)}"
    )


def _row(one: WorkerCost) -> str:
    cpu = UNKNOWN if one.cpu is None else f"{one.cpu:.1f}s"
    figures = f"{lasting(one.here):>8}{_percent(one.share):>9}{cpu:>10}{memory(one.memory_mb):>9}"
    return f"{cut_end(one.worker, 29):<30}{one.phase:<12}{figures}"


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"


def costs_json(before: Look, now: Look) -> dict[str, Any]:
    """Return the same as plain data; `share` is that of one processor."""
    own = now.costs
    return {
        "at": own.at,
        "engine": {
            "pid": own.pid,
            "up_s": own.up,
            "cpu_s": own.engine,
            "share": _share(before, now, before.costs.engine, own.engine),
            "memory_mb": own.memory_mb,
        },
        "programs": {
            "cpu_s": own.programs,
            "share": _share(before, now, before.costs.programs, own.programs),
        },
        "keepers": {"cpu_s": own.keepers, "attempts": own.attempts},
        "workers": _plain(worker_costs(before, now)),
    }


def _plain(costs: Sequence[WorkerCost]) -> list[dict[str, Any]]:
    return [
        {
            "run": one.run,
            "worker": one.worker,
            "phase": one.phase,
            "here_s": one.here,
            "cpu_s": one.cpu,
            "share": one.share,
            "memory_mb": one.memory_mb,
        }
        for one in costs
    ]
