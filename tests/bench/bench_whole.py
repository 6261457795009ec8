"""Measure what a whole prompt and a whole command cost, beside a bare Python: `python -m` this.

Read ratios and bounds, not milliseconds: the machine is whatever it is. CPU is that of the engine,
its keepers, their agents and all gits together, as the kernel counts it for a process of their own
that this one waits for; what begins and ends an engine is measured alone and taken off.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from engine import Agent
from tests.bench.bench_engine import FOLDER, shell_cost
from tests.support.measuring import Row

FILES, PROMPTS, ROUNDS = 4_000, 20, 3
COMMAND = ["sh", "-c", "true", "{prompt}"]


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
        script = f"git init -q && git add -A && git {me} commit -qm x"
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


def a_command(place: Path) -> list[Row]:
    plait = Path(sys.executable).with_name("plait")
    argv = {"status": [str(plait), "status", "-C", str(place)], "bare": [sys.executable, "-c", "0"]}
    found = {name: [cpu_ms(words) for _ in range(9)] for name, words in argv.items()}
    ratio = statistics.median(found["status"]) / statistics.median(found["bare"])
    note = "finding the repository and reading the run's journal is in it"
    return [Row("plait status ÷ python -c pass, CPU", ratio, 4, "x", note=note)]


def main() -> None:
    """Print the table; ends with 1 when a bound was missed."""
    if sys.argv[1:2] == ["--prompts"]:
        anyio.run(prompts, sys.argv[2], int(sys.argv[3]))
        return
    with repository() as place:
        rows = [*a_prompt(place), *a_command(place)]
    for row in rows:
        print(row, flush=True)
    sys.exit(not all(row.is_kept for row in rows))


if __name__ == "__main__":
    main()
