"""Measure what a whole prompt and a whole command cost, beside a bare Python: `python -m` this.

Read ratios and bounds, not milliseconds: the machine is whatever it is. CPU is that of the engine,
its keepers, their agents and all gits together, as the kernel counts it for a process of their own
that this one waits for; what begins and ends an engine is measured alone and taken off.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from engine import Agent
from engine.api import Engine
from engine.messages.events import WorkerMoved
from engine.phases import Phase
from tests.bench.bench_engine import (
    AT_ONCE,
    NAP_S,
    NAPS,
    bare_delay_ms,
    manifest,
    percentile,
    shell_cost,
)
from tests.support.measuring import Row, cpu_seconds

FILES, PROMPTS, ROUNDS = 4_000, 20, 3
FOLDER = os.environ.get("BENCH_DIR")  # else on a disk: released worktrees are not reused in memory
COMMAND = ["sh", "-c", "true", "{prompt}"]
PLAIT = Path(sys.executable).with_name("plait")
AGAIN = """
import os, sys
from tui.cli import main
from tests.support.measuring import children_and_self
words, out = sys.argv[1:], os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
main(words)
before = children_and_self()
main(words)
os.write(out, f"{(children_and_self() - before) * 1000}\\n".encode())
"""


@contextmanager
def repository() -> Iterator[Path]:
    """A repository of many small files, a finished run in it, and a state of its own."""
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="plait-bench-") as folder:
        os.environ |= {"PLAIT_STATE_HOME": f"{folder}/state", "HOME": folder}
        place = Path(folder, "repo")
        for number in range(FILES):
            file = place / f"d{number // 100}" / f"f{number}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"line {number}\n" * 20)
        me = "-c user.name=me -c user.email=me@localhost"
        script = f"git init -q && git add -A && git {me} commit -qm x && git branch other"
        subprocess.run(["sh", "-c", script], cwd=place, check=True)
        yield place


async def prompts(place: str, count: int) -> None:
    """Prompt so often in worktrees: in a process of its own, for its CPU."""
    async with Agent(command=COMMAND, repo=place, isolation="worktree") as agent:
        for _ in range(count + 1):  # the first one finds everything cold
            await agent.prompt("go")


def asked(place: Path, count: int) -> list[str]:
    return [sys.executable, "-m", "tests.bench.bench_whole", "--prompts", str(place), str(count)]


def cpu_ms(argv: list[str]) -> float:
    return shell_cost(" ".join(argv)).cpu_s * 1000


def a_prompt(place: Path) -> list[Row]:
    each = []
    for _ in range(ROUNDS):
        none = cpu_ms(asked(place, 0))
        each.append((cpu_ms(asked(place, PROMPTS)) - none) / PROMPTS)
    own = statistics.median(cpu_ms(["sh", "-c", "true"]) for _ in range(ROUNDS))
    what = f"prompt in a worktree of {FILES:,} files"
    rows = [Row(f"{what}, CPU", statistics.median(each) - own, 90, "ms")]
    if shutil.which("strace"):
        count = (gits(place, PROMPTS) - gits(place, 0)) / PROMPTS
        rows.append(Row(f"{what}, gits", count, 15, "processes"))
    return rows


def gits(place: Path, count: int) -> int:
    """Count the gits that are started, inside and outside of sandboxes."""
    found = place.parent / "traced"
    # Only starts of programs are stopped at: whatever else goes on is as quick as without.
    words = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=execve", "-o", str(found)]
    subprocess.run([*words, *asked(place, count)], check=True)
    started = (line for line in found.read_text(errors="replace").splitlines() if "= 0" in line)
    return sum('/git", ["' in line for line in started)


async def queued(place: str, count: int, at_once: int, nap_s: float) -> None:
    """Let workers nap in worktrees, so many at once; print the wall time and each delay in ms.

    A delay is the time from a slot to the agent's own first look at the clock, of those who had to
    wait for a slot.
    """
    command = f"exec bash -c 'echo $EPOCHREALTIME; exec sleep {nap_s}'"
    plan = manifest(command, count, at_once)
    plan["runtime"]["isolation_strategy"] = "worktree"
    async with Engine.open(place) as opened:
        began = time.perf_counter()
        run = await opened.start(plan)
        results = (await run.wait()).steps["a"].worker_results
        wall_s, given = time.perf_counter() - began, dict[str, float]()
        async for told in opened.events(run=run.id):
            event = told.event
            if isinstance(event, WorkerMoved) and event.after is Phase.PREPARING:
                given[event.worker] = told.at
            if len(given) == count:
                break
    later = results[at_once:]
    delays = [(float(one.output.split()[0]) - given[one.worker]) * 1000 for one in later]
    print(json.dumps([wall_s, delays]))


def a_queue(place: Path) -> list[Row]:
    """Measure the workers who wait for a slot: what each costs beyond its nap."""
    crowd = [_asked_queue(place, NAPS, AT_ONCE, NAP_S)[0] for _ in range(ROUNDS)]
    ideal = NAPS / AT_ONCE * NAP_S
    what = f"{NAPS} x {NAP_S:g} s at {AT_ONCE} in worktrees of {FILES:,} files, share of ideal"
    bare = statistics.median(bare_delay_ms() for _ in range(40))
    rows = [Row(what, ideal / statistics.median(crowd), 0.1, "", is_least=True)]
    alone = [delay for _ in range(ROUNDS) for delay in _asked_queue(place, 12, 1, 1.0)[1]]
    what = "slot to running in a worktree, over bare spawn"
    found = {share: percentile(alone, share) - bare for share in (0.5, 0.95)}
    rows += [
        Row(f"{what}, p{share * 100:.0f}", ms, {0.5: 60, 0.95: 120}[share], "ms")
        for share, ms in found.items()
    ]
    return rows


def _asked_queue(place: Path, *words: float) -> tuple[float, list[float]]:
    argv = [sys.executable, "-m", "tests.bench.bench_whole", "--queue", str(place)]
    wall_s, delays = json.loads(output_of([*argv, *map(str, words)]))
    return wall_s, delays


def commands(place: Path) -> list[Row]:
    """Measure commands as shells ask them: what they cost beyond their work."""
    bare = statistics.median(cpu_ms([sys.executable, "-c", "0"]) for _ in range(ROUNDS * 5))
    worker = json.loads(said_by(place, "status", "--json"))["steps"][0]["workers"][0]["worker"]
    rows = [a_command(["--help"], bare)]
    for name in ("status", "runs"):
        words = [name, "-C", str(place)]
        rows += [a_first_look(words, bare, place / ".git/plait/said"), a_command(words, bare)]
    looks = [["status"], ["runs"], ["logs", worker], ["diff", worker], ["preview", "HEAD", "other"]]
    with served(place) as engine:
        for words in looks:
            rows.append(an_answer([*words, "-C", str(place)], bare, engine))
    return rows


def a_command(words: list[str], bare: float) -> Row:
    """Measure a command in a process of its own, without what it costs there a second time."""
    whole = statistics.median(cpu_ms([str(PLAIT), *words]) for _ in range(9))
    again = float(output_of([sys.executable, "-c", AGAIN, *words]).splitlines()[-1])
    note = f"{whole:.0f} ms, of which {again:.0f} ms are its work"
    return Row(f"plait {words[0]} ÷ python -c pass, CPU", (whole - again) / bare, 4, "x", note=note)


def a_first_look(words: list[str], bare: float, said: Path) -> Row:
    """Measure a command whose answer nobody has kept; its work counts, too."""
    each = []
    for _ in range(9):
        shutil.rmtree(said, ignore_errors=True)
        each.append(cpu_ms([str(PLAIT), *words]))
    what = f"plait {words[0]}, after a change ÷ python -c pass, CPU"
    return Row(what, statistics.median(each) / bare, 4, "x")


def an_answer(words: list[str], bare: float, engine: int) -> Row:
    """Measure a command that the engine runs: the shell's half beside a bare Python."""
    argv = [str(PLAIT), *words]
    output_of(argv)  # the first one of its kind loads it into the engine
    before = cpu_seconds(engine)
    each = [cpu_ms(argv) for _ in range(9)]
    own = (cpu_seconds(engine) - before) / len(each) * 1000
    note = f"the engine spends {own:.0f} ms on it"
    what = f"plait {words[0]}, engine lives ÷ python -c pass, CPU"
    return Row(what, statistics.median(each) / bare, 4, "x", note=note)


@contextmanager
def served(place: Path) -> Iterator[int]:
    """An engine of the repository; its process id."""
    process = subprocess.Popen([str(PLAIT), "serve", "-C", str(place)])
    note = place / ".git/plait/engine.json"
    try:
        while not note.exists():
            process.poll()
            assert process.returncode is None
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def output_of(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def said_by(place: Path, *words: str) -> str:
    return output_of([str(PLAIT), *words, "-C", str(place)])


def main() -> None:
    """Print the table; ends with 1 when a bound was missed."""
    if sys.argv[1:2] == ["--prompts"]:
        anyio.run(prompts, sys.argv[2], int(sys.argv[3]))
        return
    if sys.argv[1:2] == ["--queue"]:
        place, count, at_once, nap_s = sys.argv[2:]
        anyio.run(queued, place, int(count), int(at_once), float(nap_s))
        return
    with repository() as repo:
        rows = [*a_prompt(repo), *a_queue(repo), *commands(repo)]
    for row in rows:
        print(row, flush=True)
    sys.exit(not all(row.is_kept for row in rows))


if __name__ == "__main__":
    main()
