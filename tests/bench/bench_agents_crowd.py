"""Four real agents at once, run by plait and by a bare shell: their speed-ups beside each other.

A speed-up is the time for four in a row over the time for four at once; plait's must be at least
nine tenths of the shell's. Rounds are added until both agree that far, three at most. The model is
scripted, on loopback, and thinks for a while. Ends with 1 where the bound is missed; agents that
`make clients` has not installed are left out.
Run it by itself: `python -m tests.bench.bench_agents_crowd`.
"""

import os
import shlex
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from time import perf_counter

from engine.agents.contract import LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice
from engine.site.shelter import place
from tests.agents.clients import KEY, PATH, WORK_ROOT
from tests.agents.model_server import ModelServer, Turn
from tests.agents.real_runs import RealRun, agents_for

CROWD = 4
ROUNDS = 3
LEAST = 0.9
THINKS_S = 2.0
WORK = [
    Turn(text="I will write.", runs="echo hello > hello.txt", takes_s=THINKS_S),
    Turn(text="Written.", takes_s=THINKS_S),
]


def in_shell(folder: Path, agent: str, server: ModelServer, places: int) -> float:
    """Return how long the same four take that plait would start, started by a shell."""
    shutil.rmtree(folder, ignore_errors=True)
    lines = [line_for(folder / str(number), agent, server) for number in range(CROWD)]
    script = "\n".join(f"{line} &\nwait" if places == 1 else f"{line} &" for line in lines)
    began = perf_counter()
    subprocess.run(["sh", "-c", f"{script}\nwait"], check=True)
    took = perf_counter() - began
    assert all((folder / str(n) / "work/hello.txt").is_file() for n in range(CROWD))
    return took


def line_for(folder: Path, agent: str, server: ModelServer) -> str:
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    told = agents_for(server)[agent]
    choice = AgentChoice(
        name=agent, adapter=agent, model=told.get("model"), options=told.get("options", {})
    )
    environment = {
        "PATH": PATH,
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": KEY,
        "K": KEY,
    }
    request = LaunchRequest(
        choice=choice,
        prompt="Fix the parser",
        workspace=str(work),
        home=str(home),
        environment=environment,
        is_confined=True,
    )
    launch = adapter_named(agent).launch(request)
    place(str(home), launch.files)
    (folder / "input").write_bytes(launch.first_input)
    env = {**environment, "HOME": str(home), **launch.env}
    words = shlex.join(
        ["env", "-C", str(work), *(f"{k}={v}" for k, v in env.items()), *launch.argv]
    )
    return f"{words} <{folder}/input >{folder}/out 2>&1"


def in_plait(folder: Path, agent: str, server: ModelServer, places: int) -> float:
    """Return how long a run of four workers takes, of which so many work at once: to the kept work.

    From its first event to its last: what an interpreter takes to start is not looked at here.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    real = RealRun(folder, agent, server)
    cells = {"matrix": {"items": [str(n) for n in range(CROWD)]}}
    real.plan(strategy=cells, policy="settled", runtime={"max_concurrent_workers": places})
    done = real.shell.plait(*real.words)
    assert done.out, done.err
    events = done.events
    report = events[-1]["report"]
    began, ended = (datetime.fromisoformat(event["at"]) for event in (events[0], events[-1]))
    assert report["steps"]["work"]["success_count"] == CROWD, report
    return (ended - began).total_seconds()


def measure(agent: str) -> bool:
    """One row; whether the bound is kept."""
    server = ModelServer(WORK, is_by_conversation=True)
    folder = WORK_ROOT / f"bench-{os.getpid()}"
    ways = (in_shell, in_plait)
    best = {(way, places): float("inf") for way in ways for places in (1, CROWD)}
    share = 0.0
    try:
        for _ in range(ROUNDS):
            # Taken by turns, and the best of each: others use this machine too.
            for (way, places), least in best.items():
                took = way(folder / way.__name__, agent, server, places)
                best[way, places] = min(least, took)
            shell, plait = (best[way, 1] / best[way, CROWD] for way in ways)
            share = plait / shell
            if LEAST <= share <= 1 / LEAST:
                break  # far more than the shell's is noise too
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)
    for way in ways:
        row, crowd = best[way, 1], best[way, CROWD]
        name = way.__name__.removeprefix("in_")
        sys.stdout.write(
            f"{agent:8} {name:6} {row:5.1f} s in a row, {crowd:5.1f} s at once:"
            f" {row / crowd:.2f} x\n"
        )
    sys.stdout.write(f"{agent:8} plait has {share:.2f} of the shell's speed-up, wanted {LEAST}\n")
    sys.stdout.flush()
    return share >= LEAST


def main() -> None:
    """Measure those that are there."""
    missed = False
    for agent in ("claude", "codex"):
        if shutil.which(agent, path=PATH) is None:
            sys.stdout.write(f"{agent:8} left out: not installed, `make clients` does it\n")
        else:
            missed |= not measure(agent)
    sys.exit(missed)


if __name__ == "__main__":
    main()
