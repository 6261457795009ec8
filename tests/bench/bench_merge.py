"""Measure how long the merge room takes, beside git on the same texts in the same run.

`python -m tests.bench.bench_merge` prints figures and says which are over their budget.
"""

import ast
import gc
import inspect
import random
import sys
import tempfile
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.merge import ConflictHunk, best, changed_words, merge_texts, propose
from tests.support.merge_corpus import cases
from tests.support.merge_oracle import MergeFile

LINES, EDITS, MODEL_BUDGET_S, HUNK_BUDGET_S = 20_000, 3_400, 0.150, 0.005
Texts = tuple[bytes, bytes, bytes]

_SHAPES = (
    "def function_{n}(first, second={n}):",
    "    value_{n} = compute(first, {n})",
    "    if value_{n} > {n}:",
    "        return None",
    "",
    "    # remark {n}",
)


def texts(seed: int = 5) -> Texts:
    """A file of code-like lines, edited all over on both sides; about 400 places conflict."""
    dice = random.Random(seed)
    base = [dice.choice(_SHAPES).format(n=dice.randrange(10**6)) for _ in range(LINES)]
    target, incoming = list(base), list(base)
    for edit in range(EDITS):
        place = dice.randrange(LINES)
        side = dice.random()
        if side < 0.52:
            target[place] += f"  # target {edit}"
        if side > 0.48:
            incoming[place] += f"  # incoming {edit}"
    return _joined(base), _joined(target), _joined(incoming)


def _joined(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def long_hunks(count: int = 40, longest: int = 60) -> list[ConflictHunk]:
    """Hunks far longer than most: up to sixty lines a side."""
    dice = random.Random(9)
    found: list[ConflictHunk] = []
    while len(found) < count:
        size = dice.randrange(1, longest)
        lines = [dice.choice(_SHAPES).format(n=dice.randrange(99)) for _ in range(size)]
        sides = [list(lines) for _ in range(2)]
        for side, mark in zip(sides, ("t", "i"), strict=True):
            side[0] += f" # {mark}"
            side[-1] += f" # {mark}"
            for place in range(1, size - 1):
                side[place] += f" # {mark}{place}"
        found.extend(merge_texts(*(_joined(text) for text in (lines, *sides))).hunks)
    return found


def best_of(times: int, work: Callable[[], object]) -> float:
    """Seconds of CPU time of the quickest run."""
    best = float("inf")
    for _ in range(times):
        gc.collect()
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def quickest_git(times: int, three: Texts) -> float:
    """Wall seconds of `git merge-file --diff3` on the same texts."""
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        files = MergeFile(Path(folder), *three)
        for _ in range(times):
            start = time.perf_counter()
            files.conflicts()
            best = min(best, time.perf_counter() - start)
    return best


def report(name: str, seconds: float, budget: float) -> bool:
    """One line; True if the figure is within its budget."""
    within = seconds <= budget
    verdict = "ok" if within else "OVER"
    print(f"{name:<44} {seconds * 1000:9.2f} ms   budget {budget * 1000:7.2f} ms   {verdict}")
    return within


def offered(most: int = 400) -> None:
    """Return how often the rules come to the text that has both of two independent edits."""
    made = list(cases((ast, inspect, textwrap, zipfile), most=most))
    offers = [propose(case.hunk) for case in made]
    pairs = list(zip(made, offers, strict=True))
    listed = sum(case.answer in [offer.text for offer in found] for case, found in pairs)
    tops = [(case, top) for case, found in pairs if (top := best(found))]
    right = sum(top.text == case.answer for case, top in tops)
    print(f"{most} made conflicts: both edits among the offers {listed / most:.0%}, ", end="")
    print(f"one under the cursor {len(tops) / most:.0%}, and right there {right / len(tops):.0%}")


def main() -> int:
    """Measure everything once; 1 where a budget is broken."""
    three = texts()
    model = best_of(5, lambda: merge_texts(*three).hunks)
    git = quickest_git(5, three)
    hunks = merge_texts(*three).hunks
    short = [best_of(3, lambda hunk=hunk: propose(hunk)) for hunk in hunks[:100]]  # type: ignore[misc]
    long = [best_of(2, lambda hunk=hunk: propose(hunk)) for hunk in long_hunks()]  # type: ignore[misc]
    pairs = [(hunk.base[0], hunk.target[0]) for hunk in hunks if hunk.base and hunk.target]
    words = best_of(3, lambda: [changed_words(*pair) for pair in pairs]) / len(pairs)
    print(f"{LINES:,} lines, {len(hunks)} conflicts; git merge-file {git * 1000:.1f} ms, ", end="")
    print(f"so the model takes {model / git:.1f} times as long")
    verdicts = [
        report("model of the file", model, MODEL_BUDGET_S),
        report("proposals for a hunk, median", sorted(short)[len(short) // 2], HUNK_BUDGET_S),
        report("proposals for a hunk, slowest", max(short), HUNK_BUDGET_S),
        report("proposals for a long hunk, slowest", max(long), HUNK_BUDGET_S),
        report("changed words of a line", words, HUNK_BUDGET_S / 10),
    ]
    offered()
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
