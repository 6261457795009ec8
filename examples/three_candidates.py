"""Three candidates for one task: run side by side, checked, the smallest that passes is landed.

python examples/three_candidates.py                         # a sample repository, scripted agents
python examples/three_candidates.py REPO claude codex aider # your own
"""

import os
import sys
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio

from engine import Agent, Engine, Landed, Reply, Success, settled
from engine.api import make_repository

TASK = "Split a line at its commas, but keep quoted fields together. The function is split(line)."
CHECK = 'python3 -c \'from split import split; assert split("a,\\"b,c\\"") == ["a", "b,c"]\''
GOOD = "import csv\n\n\ndef split(line):\n    return next(csv.reader([line]))\n"
ANSWERS = {
    "hasty": "def split(line):\n    return line.split(',')\n",
    "wordy": f'"""Splits lines."""\n\n{GOOD}\n\n# Quoted fields are kept together.\n',
    "plain": GOOD,
}


def scripted(answer: str) -> dict[str, object]:
    """An agent that writes this answer."""
    steps = [{"say": "I will write split.py"}, {"write": {"path": "split.py", "text": answer}}]
    return {"script": {"steps": steps}}


def size(reply: Reply) -> int:
    """How many lines it changed."""
    change = reply.change
    return change.insertions + change.deletions if change else 0


async def main(repo: Path, names: list[str]) -> int:
    """Run, check, choose, land; 0 if it landed."""
    async with Engine.open(repo) as engine, AsyncExitStack() as stack:
        agents = [Agent(name, engine=engine, check=CHECK) for name in names]
        if not names:
            make = partial(Agent, "scripted", engine=engine, check=CHECK)
            agents = [make(options=scripted(answer)) for answer in ANSWERS.values()]
        for agent in agents:
            stack.push_async_callback(agent.aclose)  # its workspace goes, its work stays
        results = await settled([partial(agent.prompt, TASK) for agent in agents])
        passed = [result.value for result in results if isinstance(result, Success)]
        for name, result in zip(names or ANSWERS, results, strict=True):
            if isinstance(result, Success):
                print(f"{name}: {size(result.value)} lines")
            else:
                print(f"{name}: {result.error}")
        if not passed:
            return 1
        landed = await engine.land(min(passed, key=size).worker)
        print(landed)
        return 0 if isinstance(landed, Landed) else 1


async def sample(folder: Path) -> int:
    """The same in a repository made for the occasion."""
    (folder / "README.md").write_text("# A sample\n")
    await make_repository(folder, dict(os.environ), message="Begin")
    return await main(folder, [])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(anyio.run(main, Path(sys.argv[1]), sys.argv[2:]))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(anyio.run(sample, Path(made)))
