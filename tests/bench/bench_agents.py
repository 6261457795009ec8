"""Measure the time to read a record of a real agent, beside `json.loads` of the same line.

Run it by itself: `python -m tests.bench.bench_agents`. It prints a table and judges nothing.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from engine.agents.contract import LaunchRequest
from engine.agents.reading import LineSplitter
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice

TRANSCRIPTS = Path(__file__).parents[1] / "fixtures" / "transcripts"
AGENTS = ("claude", "codex", "gemini", "opencode", "copilot", "qwen", "pi", "cline")
ROUNDS = 25


def best(*works: Callable[[], object]) -> list[float]:
    """The least CPU time of each, taken by turns: others use this machine too."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, found in zip(works, times, strict=True):
            start = time.thread_time()
            work()
            found.append(time.thread_time() - start)
    return [min(found) for found in times]


def measure(agent: str) -> tuple[float, float, float]:
    """Microseconds a record: the parser, json.loads alone, and bytes a record."""
    data = b"".join(
        path.read_bytes()
        for path in sorted((TRANSCRIPTS / agent).glob("*.ndjson"))
        if not path.stem.startswith("control")
    )
    data *= max(1, 4_000_000 // len(data))
    lines = data.splitlines()
    choice = AgentChoice(name=agent, adapter=agent)
    request = LaunchRequest(choice=choice, prompt="", workspace="/repo", home="/home")

    def parse() -> None:
        parser = adapter_named(agent).parser(request)
        for start in range(0, len(data), 65536):
            parser.feed("out", data[start : start + 65536])

    def load() -> None:
        for line in lines:
            json.loads(line)

    each = 1e6 / len(lines)
    parsing, loading = best(parse, load)
    return parsing * each, loading * each, len(data) / len(lines)


def main() -> None:
    print(f"{'agent':10} {'parse µs':>9} {'json.loads µs':>14} {'ratio':>6} {'bytes':>7}")
    for agent in AGENTS:
        parse, load, size = measure(agent)
        print(f"{agent:10} {parse:9.2f} {load:14.2f} {parse / load:6.2f} {size:7.0f}")
    data = b"a line of output as it comes\n" * 400_000

    def split() -> None:
        splitter = LineSplitter()
        for start in range(0, len(data), 65536):
            splitter.feed(data[start : start + 65536])

    print(f"split: {400_000 / best(split)[0] / 1e6:.1f} million lines a second")


if __name__ == "__main__":
    main()
