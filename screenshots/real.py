"""Do real work for pictures: the sample of `plait demo`, and six weeks in a repository.

Engine, git, landings and conflicts are real, and so are all figures. The agents play scripts. In
the six weeks, the hands of the engine's clock are turned between the runs and while a change waits
for a human.
"""

import os
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from engine.api import Braid, Engine, Run, plan_from, read_braid
from engine.clock import SystemClock
from engine.messages import commands as c
from engine.messages import merging as m
from engine.messages.questions import ReadDiff
from engine.phases import Phase
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, land, settled
from tui.commands.demo import make_sample

_BETTER_FROM = 4
_WEEK_S = 7 * 86_400.0
_FILES = ("reader.py", "writer.py", "dialect.py", "README.md")
_LINES = "".join(f"line {n}: 0\n" for n in range(1, 41))
_MODELS = {"careful": "large", "quick": "small"}
_SPENT = {"careful": (0.42, 38_000, 2_900), "quick": (0.07, 21_000, 1_400)}


class TurnedClock(SystemClock):
    """The machine's clock, with hands that can be turned."""

    by_s = 0.0

    def now(self) -> float:
        """Return wall-clock seconds."""
        return super().now() + TurnedClock.by_s


class Work(NamedTuple):
    """One worker: what it is to do, who does it, and what becomes of that.

    Attributes:
        lines: The lines of its file that it changes.
        fails: How many attempts fail before one works.
        fate: `land`, `reject`, or `trim`: all but the first hunk lands.
        waits_s: How long its change waits for a human.
    """

    step: str
    prompt: str
    file: str
    lines: Sequence[int] = (3,)
    agent: str = "careful"
    fails: int = 0
    check: str = "true"
    fate: str = "land"
    waits_s: float = 300.0


def _agents(works: Sequence[Work], number: int) -> dict[str, Any]:
    """Return the agents of a run: each plays its part in each step."""
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for work in works:
        usd, read, wrote = _SPENT[work.agent]
        usage = {"usage": {"usd": usd, "input_tokens": read + 997 * number, "output_tokens": wrote}}
        ids = "|".join(map(str, work.lines))
        edit = f"sed -i -E 's/^(line ({ids}):).*/\\1 {number} {work.step}/' {work.file}"
        fails = [usage, {"fail": "it went in circles"}]
        attempts: dict[str, Any] = {str(n): fails for n in range(1, work.fails + 1)}
        attempts[str(work.fails + 1)] = [{"shell": {"command": edit, "must": True}}, usage]
        parts[work.agent][work.step] = {"attempts": attempts}
    return {
        agent: {**scripted({"result": "done"}, workers=played), "model": _MODELS[agent]}
        for agent, played in parts.items()
    }


def _manifest(name: str, works: Sequence[Work], number: int) -> dict[str, Any]:
    steps = [
        {
            "name": work.step,
            "agent": work.agent,
            "prompt": work.prompt,
            "check": work.check,
            "retry": {"attempts": work.fails + 1, "delay_seconds": 0.01},
        }
        for work in works
    ]
    return {
        "runtime": {"isolation_strategy": "worktree", "max_concurrent_workers": 4},
        "agents": _agents(works, number),
        "pipelines": [{"name": name, "steps": steps}],
    }


async def _decide(engine: Engine, run: Run, work: Work) -> None:
    """Do with a change what a human would."""
    worker = f"{work.step}/worker_1"
    view = await wait_worker(engine, run, worker, lambda w: w.phase.is_settled or w.change)
    if view.phase.is_settled:
        return
    TurnedClock.by_s += work.waits_s
    if work.fate == "reject":
        await engine.command(c.Reject(worker=worker, run=run.id))
        return
    if work.fate == "trim":
        diff = await engine.ask(ReadDiff(run.id, worker))
        await engine.ask(m.LeaveOutHunks(run.id, worker, diff.keys[0][:1]))
    if await land(engine, run, worker) is Phase.CONFLICTED:
        TurnedClock.by_s += work.waits_s
        await engine.ask(m.DecideConflict(run.id, worker, c.ChooseRest(choice="incoming")))
        await engine.ask(m.DecideConflict(run.id, worker, c.FinishResolving()))
        await settled(engine, run, worker)


def _weeks() -> list[list[list[Work]]]:
    """Return what is worked on in each week but the last: more and more, and better and better."""
    weeks: list[list[list[Work]]] = []
    for week in range(5):
        runs = []
        for at in range(1 + week // 2):
            steps = [
                Work(
                    step,
                    prompt,
                    _FILES[(week + n) % len(_FILES)],
                    lines=(2 + n, 14 + n, 30 + n)[: 1 + (week + n) % 3],
                    agent="quick" if (n + at) % 2 else "careful",
                    fails=int(n == 1 and week < _BETTER_FROM),
                    check="false" if (n, week % 2) == (2, 0) else "true",
                    fate=("land", "trim", "reject", "land")[(n + week + at) % 4],
                    waits_s=900.0 / (week + 1) + 60 * n,
                )
                for n, (step, prompt) in enumerate(_STEPS)
            ]
            runs.append(steps)
        weeks.append(runs)
    return weeks


_STEPS = (
    ("implement", "Read quoted fields that hold commas and line breaks"),
    ("test", "Test the dialects that spreadsheets write"),
    ("document", "Say in the README which dialects are known"),
)
BRAIDED = (
    Work("reader", "Read quoted fields that hold line breaks", "reader.py", (3, 17)),
    Work("faster", "Make the reader twice as fast", "reader.py", (3, 30), agent="quick"),
    Work("dialect", "Guess the dialect from the first lines", "dialect.py", fails=1),
    Work("readme", "Say in the README which dialects are known", "README.md", agent="quick"),
    Work("writer", "Quote only what needs it", "writer.py", agent="quick", fate="reject"),
)
"""The run that is drawn as a braid, and the newest one on the screen."""


@asynccontextmanager
async def demonstrated(folder: Path) -> AsyncIterator[Engine]:
    """Yield an engine that has just begun the run of `plait demo`."""
    sample = folder / "tally"
    env = {**os.environ, "PLAIT_STATE_HOME": str(folder / "state")}
    with patch.dict(os.environ, env):
        await make_sample(sample, env)
        async with Engine.open(sample) as engine:
            await engine.start(plan_from(sample / "plait.yaml", folder=sample))
            yield engine


@asynccontextmanager
async def worked(folder: Path) -> AsyncIterator[tuple[Engine, Braid]]:
    """Yield an engine on a repository in which people worked for six weeks, and its last braid."""
    project = folder / "csvlite"
    project.mkdir()
    place = MergingPlace(folder, dict.fromkeys(_FILES, _LINES))
    weeks = [*_weeks(), [list(BRAIDED)]]
    with patch("engine.api.engine.SystemClock", TurnedClock):
        number = 0
        for at, runs in enumerate(weeks):
            for n, works in enumerate(runs):
                number += 1
                TurnedClock.by_s = _WEEK_S * (at + 1 - len(weeks)) - 3600.0 * (len(runs) - n)
                async with place.engine() as engine:
                    run = await engine.start(_manifest("csvlite", works, number))
                    await run.wait()
                    for work in works:
                        await _decide(engine, run, work)
        TurnedClock.by_s = 0.0
        async with place.engine() as engine:
            await engine.resume(run.id)
            yield engine, await read_braid(place.project, run.id)
