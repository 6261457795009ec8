"""Hunks of several candidates over one base: which are the same, and which go together.

Knows the files that candidates changed. Choosing among hunks is the human's; this says what a
choice would make, or why it makes nothing.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from engine.merge.conflict import EXECUTABLE, REGULAR
from engine.merge.linediff import LineDiff, diff
from engine.merge.text import HunkKey, Lines, is_binary, join_all, split_lines


class Version(NamedTuple):
    """A file as a tree has it."""

    content: bytes
    mode: str = REGULAR


Tree = Mapping[bytes, Version | None]
"""The files that matter by path; None where the file is not there."""


class CandidateHunk(NamedTuple):
    """One change that one or more candidates made.

    Lines `start:end` of the base give way to `lines`. Where `whole` is set the change is the whole
    file instead (created, deleted, not text, or of another type), and `version` is what it
    becomes; where `mode` is set it is the file's mode alone. `candidates` made exactly this
    change, `alike` the same but for blanks at line ends (they are among them).
    """

    key: HunkKey
    path: bytes
    start: int
    end: int
    lines: Lines
    candidates: tuple[str, ...]
    alike: tuple[str, ...]
    whole: bool = False
    version: Version | None = None
    mode: str | None = None


class Spot(NamedTuple):
    """Hunks of a path that lie in the same place: alternatives, or one that all agree on."""

    path: bytes
    start: int
    end: int
    hunks: tuple[CandidateHunk, ...]


class Composite(NamedTuple):
    """The result of the chosen hunks: files that differ from the base, and how much is whose."""

    files: Tree
    taken: Mapping[str, int]


class WeavingRefused(NamedTuple):
    """Hunks that cannot stand in one file together, in pairs."""

    clashes: tuple[tuple[CandidateHunk, CandidateHunk], ...]

    @property
    def reason(self) -> str:
        """One sentence for the message line."""
        first, second = self.clashes[0]
        path = first.path.decode(errors="replace")
        more = f", and {len(self.clashes) - 1} more" if len(self.clashes) > 1 else ""
        who = f"{first.candidates[0]} and {second.candidates[0]}"
        return f"{who} change the same lines of {path}, at line {first.start + 1}{more}"


@dataclass(frozen=True)
class Weaving:
    """Every hunk of every candidate, in order of path and place."""

    base: Tree
    names: tuple[str, ...]
    hunks: tuple[CandidateHunk, ...]

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The hunks put together where they overlap or touch."""
        spots: list[Spot] = []
        for hunk in self.hunks:
            last = spots[-1] if spots else None
            if last and last.path == hunk.path and hunk.start <= last.end:
                end = max(last.end, hunk.end)
                spots[-1] = last._replace(end=end, hunks=(*last.hunks, hunk))
            else:
                spots.append(Spot(hunk.path, hunk.start, hunk.end, (hunk,)))
        return tuple(spots)

    def of(self, name: str) -> tuple[CandidateHunk, ...]:
        """The hunks of one candidate; together they make its tree."""
        return tuple(hunk for hunk in self.hunks if name in hunk.candidates)

    def agreed(self, at_least: int) -> tuple[CandidateHunk, ...]:
        """The hunks that so many candidates made alike."""
        return tuple(hunk for hunk in self.hunks if len(hunk.alike) >= at_least)

    def compose(self, keys: Iterable[HunkKey]) -> Composite | WeavingRefused:
        """Put these hunks together; KeyError for a key that is not here."""
        known = {hunk.key: hunk for hunk in self.hunks}
        chosen = sorted((known[key] for key in set(keys)), key=_place)
        by_path: dict[bytes, list[CandidateHunk]] = {}
        for hunk in chosen:
            by_path.setdefault(hunk.path, []).append(hunk)
        clashes = tuple(
            pair for hunks in by_path.values() for pair in combinations(hunks, 2) if _clash(*pair)
        )
        if clashes:
            return WeavingRefused(clashes)
        files = {path: _applied(self.base.get(path), hunks) for path, hunks in by_path.items()}
        taken = {name: sum(name in hunk.candidates for hunk in chosen) for name in self.names}
        return Composite(files, taken)


def weave(base: Tree, candidates: Mapping[str, Tree], *, differ: LineDiff = diff) -> Weaving:
    """The hunks of all candidates; each names every path that it changed, and only those count."""
    found: dict[_Shape, list[str]] = {}
    for name, tree in candidates.items():
        for path, version in tree.items():
            for shape in _shapes(path, base.get(path), version, differ):
                found.setdefault(shape, []).append(name)
    loosely: dict[object, list[str]] = {}
    for shape, names in found.items():
        loosely.setdefault(_loose(shape), []).extend(names)
    hunks = [
        CandidateHunk(
            _key(shape),
            *shape[:4],
            tuple(names),
            tuple(name for name in candidates if name in loosely[_loose(shape)]),
            *shape[4:],
        )
        for shape, names in found.items()
    ]
    return Weaving(base, tuple(candidates), tuple(sorted(hunks, key=_place)))


class _Shape(NamedTuple):
    """A hunk without the names of those who made it."""

    path: bytes
    start: int
    end: int
    lines: Lines
    whole: bool = False
    version: Version | None = None
    mode: str | None = None


def _shapes(
    path: bytes, before: Version | None, after: Version | None, differ: LineDiff
) -> Iterator[_Shape]:
    """The changes from one version to another."""
    if before == after:
        return
    if before is None or after is None or not (_is_text(before) and _is_text(after)):
        lines = split_lines(before.content) if before and _is_text(before) else ()
        yield _Shape(path, 0, len(lines), (), whole=True, version=after)
        return
    if before.mode != after.mode:
        yield _Shape(path, 0, 0, (), mode=after.mode)
    old, new = split_lines(before.content), split_lines(after.content)
    for change in differ(old, new):
        lines = new[change.after : change.after_end]
        yield _Shape(path, change.before, change.before_end, lines)


def _is_text(version: Version) -> bool:
    return version.mode in (REGULAR, EXECUTABLE) and not is_binary(version.content)


def _loose(shape: _Shape) -> object:
    return shape._replace(lines=tuple(line.rstrip() for line in shape.lines))


def _key(shape: _Shape) -> HunkKey:
    return HunkKey(hashlib.blake2b(repr(tuple(shape)).encode(), digest_size=10).hexdigest())


def _place(hunk: CandidateHunk) -> tuple[bytes, int, int, HunkKey]:
    return hunk.path, hunk.start, hunk.end, hunk.key


def _clash(first: CandidateHunk, second: CandidateHunk) -> bool:
    """Two hunks of a path, in order of place, of which the file can have only one."""
    if first.whole or second.whole:
        return True
    if first.mode or second.mode:
        return bool(first.mode and second.mode)
    same_gap = first.start == first.end == second.start == second.end
    return same_gap or second.start < first.end


def _applied(before: Version | None, hunks: Sequence[CandidateHunk]) -> Version | None:
    """The version that hunks in order of place, of which none clash, make of a file."""
    whole = next((hunk for hunk in hunks if hunk.whole), None)
    if whole or before is None:
        return whole.version if whole else None
    old = split_lines(before.content)
    mode = next((hunk.mode for hunk in hunks if hunk.mode), before.mode)
    stretches: list[bytes] = []
    at = 0
    for hunk in (hunk for hunk in hunks if not hunk.mode):
        stretches.append(b"".join(old[at : hunk.start]))
        stretches.append(b"".join(hunk.lines))
        at = hunk.end
    return Version(join_all((*stretches, b"".join(old[at:])), b"\n"), mode)
