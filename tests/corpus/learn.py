"""Count how often texts of each case were right: `learn.py FILE.jsonl.gz …`.

Writes the table of `engine/merge/shares.py`. Judge by merges of other repositories than those
learned from.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from engine.merge.choices import text_of
from engine.merge.habits import cases_of_habit
from engine.merge.ideas import ideas
from engine.merge.proposals import by_text, cases_of
from tests.corpus.measure import asked, merges_of

FEWEST = 12
DOUBT = 4.0
MOST_OF_A_MERGE = 20
"""More examples of one case in one merge count as so many: else one merge would teach the table."""
Shares = dict[str, float]
TABLE = Path(__file__).parents[2] / "engine" / "merge" / "shares.py"


def counted(files: Iterable[Path]) -> tuple[Shares, Shares]:
    """Return how often texts of each case were offered, and how often people wrote them."""
    offered: defaultdict[str, float] = defaultdict(float)
    right: defaultdict[str, float] = defaultdict(float)
    for rows in merges_of(files):
        here, good = counted_in(rows)
        for name, count in here.items():
            weight = min(1.0, MOST_OF_A_MERGE / count)
            offered[name] += count * weight
            right[name] += good[name] * weight
    return offered, right


def counted_in(rows: Iterable[dict[str, str]]) -> tuple[Counter[str], Counter[str]]:
    """Return the same of one merge."""
    offered: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for one in asked(rows):
        if one is None:
            continue
        for text, (found, pick) in by_text(one.hunk, ideas(one.hunk)).items():
            cases = {name for idea in found for name in cases_of(idea, found, one.hunk, pick)}
            offered.update(cases)
            right.update(cases if text == one.human else ())
        habit = one.learned.habit
        if habit and (made := text_of(one.hunk, habit.pick) or b"").strip():
            cases = set(cases_of_habit(habit, one.hunk, one.offers))
            offered.update(cases)
            right.update(cases if made == one.human else ())
    return offered, right


def smoothed(name: str, offered: Shares, right: Shares) -> float:
    """Return the share of a case; few examples are drawn toward the share of the wider case."""
    wider = name.rpartition(", ")[0]
    before = smoothed(wider, offered, right) if wider in offered else 0.0
    doubt = DOUBT if wider in offered else 0.0
    return (right[name] + doubt * before) / (offered[name] + doubt)


def main() -> None:
    """Learn, and put the table into the engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    offered, right = counted(parser.parse_args().files)
    rows = ""
    for name, count in sorted(offered.items()):
        if count >= FEWEST:
            rows += f'    "{name}": {smoothed(name, offered, right):.2f},\n'
    head, _, _ = TABLE.read_text().partition("SHARES: Mapping")
    TABLE.write_text(f"{head}SHARES: Mapping[str, float] = {{\n{rows}}}\n")
    sys.stdout.write(f"{sum(offered.values()):.0f} cases\n")


if __name__ == "__main__":
    main()
