"""Measure proposals on collected merges: `measure.py FILE.jsonl.gz …`.

For each hunk the text that people put in its place is known where the lines around it are still
those of the merge. Hunks are decided in order, so the answers before one are known. The figures:
how many hunks take one key, how many take no typing, how often the first offer is likely and right,
and the share of hits of each rule.
"""

import argparse
import base64
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from engine.merge import (
    ConflictHunk,
    ConflictKind,
    FileConflict,
    FileSide,
    Lessons,
    Pick,
    Proposal,
    Refusals,
    habit_after,
    pick_of,
    propose,
    with_lessons,
)
from engine.merge.choices import text_of
from engine.merge.documents import reads_still
from engine.merge.linediff import diff
from engine.merge.text import TextMerge, split_lines

KEYS = tuple(Pick)
OFFERS_WITH_A_KEY = 3


class Asked(NamedTuple):
    """A hunk, its offers, the text that people put there, and what they did before it."""

    conflict: FileConflict
    hunk: ConflictHunk
    human: bytes
    offers: tuple[Proposal, ...]
    learned: Lessons


def merges_of(files: Iterable[Path]) -> Iterator[list[dict[str, str]]]:
    """Yield the texts of each merge."""
    for file in files:
        with gzip.open(file, "rt") as stream:
            rows = map(json.loads, stream)
            yield from (list(group) for _, group in groupby(rows, key=lambda row: row["merge"]))


def conflict_of(row: dict[str, str]) -> tuple[FileConflict, bytes]:
    """Return a text as a conflict, and the file that people made of it."""
    path = row["path"].encode(errors="surrogateescape")
    texts = [base64.b64decode(row[name]) for name in ("base", "target", "incoming", "human")]
    base, target, incoming = (
        FileSide(path=path, mode="100644", blob=str(hash(text)), content=text) for text in texts[:3]
    )
    kind = ConflictKind.CONTENTS if texts[0] else ConflictKind.ADD_ADD
    sides = {"base": base if texts[0] else None, "target": target, "incoming": incoming}
    return FileConflict(path=path, kind=kind, **sides), texts[3]


def answers(text: TextMerge, human: bytes) -> dict[str, bytes]:
    """Return the text that people put instead of each hunk, where that is known."""
    lines: list[bytes] = []
    places: dict[int, str] = {}
    for piece in text.pieces:
        if piece.hunk:
            places[len(lines)] = piece.hunk.key
            lines.append(b"\0" + piece.hunk.key.encode())
        else:
            lines.extend(piece.lines)
    made = split_lines(human)
    found: dict[str, bytes] = {}
    for change in diff(tuple(lines), made):
        if change.before_end - change.before == 1 and change.before in places:
            found[places[change.before]] = b"".join(made[change.after : change.after_end])
    return found


def asked(rows: Iterable[dict[str, str]]) -> Iterator[Asked | None]:
    """Yield the hunks of one merge in order; None for one whose answer is not known."""
    before: list[Pick | None] = []
    refusals = Refusals()
    for row in rows:
        in_file: list[Pick | None] = []
        conflict, human = conflict_of(row)
        text = conflict.text
        if text is None or b"<<<<<<< " in human:
            continue
        known, accepts = answers(text, human), reads_still(conflict)
        for hunk in text.hunks:
            answer = known.get(hunk.key)
            if answer is None:
                yield None
                continue
            offers = propose(hunk, accepts=accepts)
            learned = Lessons(habit_after(in_file, before), refusals.rules)
            yield Asked(conflict, hunk, answer, offers, learned)
            in_file.append(pick_of(hunk, answer))
            refusals.add(offers, answer)
        before += in_file


def is_picked(hunk: ConflictHunk, text: bytes) -> bool:
    """Say if the console's picker makes this text, without typing.

    It takes each line of either side once, each base line that a side removed, and as many empty
    lines as you like. A line without an end gets one where another follows.
    """
    removed = {
        place
        for side in (hunk.target, hunk.incoming)
        for change in diff(hunk.base, side)
        for place in range(change.before, change.before_end)
    }
    lines = (*hunk.target, *hunk.incoming, *(hunk.base[place] for place in removed))
    *wanted, last = split_lines(text) or (b"",)
    inner = Counter(line if line.endswith(b"\n") else line + hunk.ending for line in lines)
    needed = Counter(line for line in (*wanted, last) if line not in (hunk.ending, b""))
    if last and not last.endswith(b"\n"):
        needed[last] -= 1
        needed[last + hunk.ending] += 1
        return last in lines and not needed - inner
    return not needed - inner


class Figures:
    """The counts of a corpus."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rules: dict[str, Counter[str]] = defaultdict(Counter)
        self.missed: list[tuple[Asked, str]] = []

    def add(self, one: Asked) -> None:
        """Count one hunk."""
        alone = one.offers
        offers = with_lessons(alone, one.hunk, one.learned)
        picks = {text_of(one.hunk, pick) for pick in KEYS}
        first = offers[0] if offers and offers[0].likely else None
        with_key = {offer.text for offer in offers[:OFFERS_WITH_A_KEY]}
        self.counts["hunks"] += 1
        self.counts["one key"] += one.human in picks | with_key
        woven = is_picked(one.hunk, one.human)
        said = {_bare(text) for text in {*picks, *with_key} - {None}}
        self.counts["but for whitespace"] += _bare(one.human) in said
        untyped = woven or one.human in picks | {offer.text for offer in offers}
        self.counts["no typing"] += untyped
        lone = alone[0] if alone and alone[0].likely else None
        self.counts["lone covered"] += lone is not None
        self.counts["lone exact"] += lone is not None and lone.text == one.human
        self.counts["covered"] += first is not None
        self.counts["exact"] += first is not None and first.text == one.human
        for place, offer in enumerate(offers):
            told = self.rules[offer.rule]
            told["offered"] += 1
            told["hit"] += offer.text == one.human
            told["likely"] += place == 0 and offer.likely
            told["likely hit"] += place == 0 and offer.likely and offer.text == one.human
        if one.human not in picks | with_key:
            self.missed.append((one, "woven" if woven else "typed"))

    def rows(self) -> Iterator[str]:
        """Yield the lines that tell the figures."""
        n, covered = self.counts["hunks"] or 1, self.counts["covered"] or 1
        yield f"{n} hunks, {self.counts['untold']} whose answer cannot be told"
        yield f"one key    {self.counts['one key'] / n:.1%}"
        yield f"  but for whitespace {self.counts['but for whitespace'] / n:.1%}"
        yield f"no typing  {self.counts['no typing'] / n:.1%}"
        yield f"first offer covers {covered / n:.1%}, exact {self.counts['exact'] / covered:.1%}"
        lone = self.counts["lone covered"] or 1
        exact = self.counts["lone exact"] / lone
        yield f"  by the texts of the hunk alone {lone / n:.1%}, exact {exact:.1%}"
        for rule, told in sorted(self.rules.items()):
            share = told["hit"] / told["offered"]
            likely = f", first {told['likely hit']} of {told['likely']}" if told["likely"] else ""
            yield f"  {rule:12} {told['hit']:4} of {told['offered']:4} {share:4.0%}{likely}"


def _bare(text: bytes | None) -> bytes:
    return b"".join((text or b"").split())


def told(one: Asked, how: str) -> Iterator[str]:
    """Yield a hunk for people to read."""
    yield f"=== {how} {one.conflict.path!r}"
    versions = (one.hunk.base, one.hunk.target, one.hunk.incoming, (one.human,))
    for name, lines in zip(("base", "target", "incoming", "human"), versions, strict=True):
        yield f"--- {name}\n{b''.join(lines).decode(errors='replace')}"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--missed", type=int, default=0, help="show so many that take more keys")
    args = parser.parse_args()
    figures = Figures()
    for rows in merges_of(args.files):
        figures.counts["merges"] += 1
        for one in asked(rows):
            if one is None:
                figures.counts["untold"] += 1
            else:
                figures.add(one)
    lines = [f"{figures.counts['merges']} merges, ", *figures.rows()]
    shown = figures.missed[:: len(figures.missed) // args.missed or 1] if args.missed else []
    lines += [row for one, how in shown for row in told(one, how)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
