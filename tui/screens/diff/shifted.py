"""Find code that a change moved: lines taken away in one place that stand in another, unchanged."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, Sign

_LEAST = 3
"""So many lines in a row make a move; fewer are like each other by chance."""
_LEAST_SIGNS = 20
"""A move has at least so many letters and digits: brackets alone are found everywhere."""


class Spot(NamedTuple):
    """A line of a diff, by the places of its file, its hunk and itself."""

    file: int
    hunk: int
    line: int


class _Run(NamedTuple):
    """Lines of one sign that follow each other in a hunk, without the blanks at their ends."""

    spots: list[Spot]
    texts: list[str]


def moved_lines(diff: ChangeDiff) -> Mapping[Spot, Spot]:
    """Return where each line that was moved comes from, or went to."""
    removed = list(_runs(diff, Sign.REMOVED))
    begins: dict[tuple[str, ...], tuple[int, int]] = {}
    for number, run in enumerate(removed):
        for at in range(len(run.texts) - _LEAST + 1):
            begins.setdefault(tuple(run.texts[at : at + _LEAST]), (number, at))
    found: dict[Spot, Spot] = {}
    for run in _runs(diff, Sign.ADDED) if begins else ():
        at = 0
        while at + _LEAST <= len(run.texts):
            begin = begins.get(tuple(run.texts[at : at + _LEAST]))
            count = _alike(removed[begin[0]], begin[1], run, at) if begin else 0
            if begin and _says_enough(run.texts[at : at + count]):
                old = removed[begin[0]].spots[begin[1] : begin[1] + count]
                new = run.spots[at : at + count]
                found.update(zip(new, old, strict=True))
                found.update(zip(old, new, strict=True))
            at += max(count, 1)
    return found


def _runs(diff: ChangeDiff, sign: Sign) -> Iterator[_Run]:
    for file, changed in enumerate(diff.files):
        for number, hunk in enumerate(changed.hunks):
            run = _Run([], [])
            for at, line in enumerate(hunk.lines):
                if line.sign is sign:
                    run.spots.append(Spot(file, number, at))
                    run.texts.append(line.text.strip())
                elif line.sign is Sign.KEPT and run.spots:
                    yield run
                    run = _Run([], [])
            if run.spots:
                yield run


def _alike(old: _Run, begin: int, new: _Run, at: int) -> int:
    """Return how many lines of both runs are the same from these places on."""
    pairs = zip(old.texts[begin:], new.texts[at:], strict=False)
    return next(
        (count for count, (one, two) in enumerate(pairs) if one != two),
        min(len(old.texts) - begin, len(new.texts) - at),
    )


def _says_enough(texts: list[str]) -> bool:
    return sum(char.isalnum() for text in texts for char in text) >= _LEAST_SIGNS
