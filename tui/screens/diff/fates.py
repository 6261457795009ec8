"""Say what became of functions: moved, renamed, or only set in another way."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from tui.screens.diff.units import Unit

_LEAST_LINES = 3
"""Shorter functions are like each other by chance: none of these is called renamed."""


class Versions(NamedTuple):
    """The units of a file of a change, before and after; nothing where it was not, or is not."""

    path: str
    old_path: str
    old: Sequence[Unit]
    new: Sequence[Unit]


class Fate(NamedTuple):
    """Tell what became of a unit, where it stands now or where it stood.

    `lines` are its first and last ones, before and after, where nothing but how it is set changed.
    """

    name: str
    line: int
    said: str
    lines: tuple[int, int, int, int] | None = None


REFORMATTED = "reformatted only"
_MOST_ROWS = 12
_MOST_ALONE = 3
"""So many functions that are only reformatted have a row each; more of them share one."""


def rows_of(fates: Sequence[Fate]) -> list[tuple[str, str]]:
    """Return the rows that say it, each with its names first."""
    anew = [fate for fate in fates if fate.said == REFORMATTED]
    rows = [
        (fate.name, f"line {fate.line}  {fate.said}")
        for fate in fates
        if fate.said != REFORMATTED or len(anew) <= _MOST_ALONE
    ]
    if len(anew) > _MOST_ALONE:
        rows.append((f"{len(anew)} functions", REFORMATTED))
    if len(rows) > _MOST_ROWS:
        rows[_MOST_ROWS - 1 :] = [(f"and {len(rows) - _MOST_ROWS + 1} more", "")]
    return rows


class _At(NamedTuple):
    """A unit and the file that it is in."""

    file: int
    path: str
    unit: Unit

    def told(self, beside: "_At") -> str:
        """Return where it is, for somebody who looks at another place."""
        same = self.file == beside.file
        return f"line {self.unit.first}" if same else f"{self.path}:{self.unit.first}"


class _Reach(NamedTuple):
    """Tell how far down units reach that begin at a line or before: `owner` does, all others not.

    `other` is the end of the unit that reaches furthest among those others.
    """

    first: int
    last: int
    owner: Unit
    other: int


class _Within:
    """Tell which units stand inside one of many others, without a look at each of them."""

    def __init__(self, others: Iterable[_At]) -> None:
        self._reaches: dict[int, list[_Reach]] = defaultdict(list)
        for file, _, unit in sorted(others, key=lambda at: at.unit.first):
            known = self._reaches[file]
            before = known[-1] if known else _Reach(0, 0, unit, 0)
            if unit.last > before.last:
                known.append(_Reach(unit.first, unit.last, unit, before.last))
            else:
                known.append(before._replace(first=unit.first, other=max(before.other, unit.last)))

    def __contains__(self, at: _At) -> bool:
        known = self._reaches.get(at.file, [])
        place = bisect_right(known, at.unit.first, key=attrgetter("first"))
        if not place:
            return False
        reach = known[place - 1]
        return (reach.other if reach.owner is at.unit else reach.last) >= at.unit.last


def fates_of(files: Sequence[Versions]) -> Mapping[int, Sequence[Fate]]:
    """Return what can be said of the units of each file, by the place of the file."""
    found: dict[int, list[Fate]] = defaultdict(list)
    gone: list[_At] = []
    come: list[_At] = []
    for number, file in enumerate(files):
        old = {unit.path: unit for unit in file.old}
        new = {unit.path: unit for unit in file.new}
        found[number] += _set_anew(old, new)
        found[number] += _reordered(old, new)
        gone += [_At(number, file.old_path or file.path, u) for p, u in old.items() if p not in new]
        come += [_At(number, file.path, u) for p, u in new.items() if p not in old]
    moved = _matched(gone, come, lambda unit: (unit.name, unit.meaning))
    renamed = [
        pair
        for pair in _matched(gone, come, lambda unit: unit.body)
        if pair[1].unit.last - pair[1].unit.first + 1 >= _LEAST_LINES
    ]
    ends = _Within(two for _, two in (*moved, *renamed))
    for one, two in moved:
        if two not in ends:
            is_set = "" if one.unit.text == two.unit.text else ", and reformatted"
            _tell(found, one, two, ("moved from {}" + is_set, "moved to {}"))
    for one, two in renamed:
        if two not in ends:
            was, now = one.unit.called, two.unit.called
            _tell(found, one, two, (f"renamed, was {was}, {{}}", f"renamed to {now}, {{}}"))
    return {number: sorted(fates, key=lambda fate: fate.line) for number, fates in found.items()}


def _tell(found: Mapping[int, list[Fate]], one: _At, two: _At, said: tuple[str, str]) -> None:
    """Say it where the unit stands now, and in the file where it stood if that is another one."""
    now, was = said[0].format(one.told(two)), said[1].format(two.told(one))
    found[two.file].append(Fate(two.unit.called, two.unit.first, now))
    if one.file != two.file:
        found[one.file].append(Fate(one.unit.called, one.unit.first, was))


_Units = Mapping[tuple[str, ...], Unit]


def _set_anew(old: _Units, new: _Units) -> Iterator[Fate]:
    """Yield the units that say what they said before, in another layout; not those inside them."""
    reach = 0  # units come in order, each before those inside it
    for path, unit in new.items():
        before = old.get(path)
        if before is None or before.text == unit.text or unit.last <= reach:
            continue
        if before.beside == unit.beside and before.meaning == unit.meaning:
            reach = unit.last
            lines = (before.first, before.last, unit.first, unit.last)
            yield Fate(unit.called, unit.first, REFORMATTED, lines=lines)


def _reordered(old: _Units, new: _Units) -> Iterator[Fate]:
    """Yield the units that others of the same class or file stand before now, and did not."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for path in new:
        if path in old:
            groups[path[:-1]].append(path)
    places = {path: place for place, path in enumerate(old)}
    for paths in groups.values():
        kept = _longest_rising([places[path] for path in paths])
        for path in paths:
            before, unit = old[path], new[path]
            if places[path] not in kept and before.meaning == unit.meaning:
                yield Fate(unit.called, unit.first, f"moved from line {before.first}")


def _longest_rising(places: Sequence[int]) -> frozenset[int]:
    """Return the most places that stand in order: the fewest others have moved."""
    ends: list[int] = []  # the lowest end of those of each length
    before: dict[int, int | None] = {}
    for place in places:
        length = bisect_left(ends, place)
        before[place] = ends[length - 1] if length else None
        ends[length : length + 1] = [place]
    kept = set()
    at = ends[-1] if ends else None
    while at is not None:
        kept.add(at)
        at = before[at]
    return frozenset(kept)


def _matched(
    gone: list[_At], come: list[_At], told: Callable[[Unit], Hashable]
) -> list[tuple[_At, _At]]:
    """Return which units that are gone have come elsewhere, and take them and theirs out of both.

    What more than one could be is none: nobody can say which of them it was.
    """
    sides = tuple(_by_meaning(side, told) for side in (gone, come))
    pairs = [
        (sides[0][key][0], sides[1][key][0])
        for key in sides[0].keys() & sides[1].keys()
        if len(sides[0][key]) == len(sides[1][key]) == 1
    ]
    for side, taken in ((gone, [p[0] for p in pairs]), (come, [p[1] for p in pairs])):
        known, within = {id(at) for at in taken}, _Within(taken)
        side[:] = [at for at in side if id(at) not in known and at not in within]
    return pairs


def _by_meaning(side: Sequence[_At], told: Callable[[Unit], Hashable]) -> dict[Hashable, list[_At]]:
    found: dict[Hashable, list[_At]] = defaultdict(list)
    for at in side:
        found[told(at.unit)].append(at)
    return found
