"""Count how often proposals match what humans made of fixes that they put into two release lines.

A project that maintains two lines puts the same fix into both by hand. The base is the older line
before a fix. One side is the older line after it, the other the newer line before it. This merge
meets the conflicts that the maintainers met, and the newer line after the fix is their answer.

`python -m tests.bench.replay_releases FOLDER…`: a folder of one project's wheels each, as
`pip download --no-deps` leaves them. Which step of the newer line answers which of the older is
found by the files that merge cleanly to what the newer line has. A conflict counts where its
surroundings are found again in the answer and either side's change has left a trace there; version
numbers are left out. Nothing is tuned to these figures.
"""

import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

from engine.merge import (
    ConflictHunk,
    LineChange,
    TextMerge,
    best,
    merge_texts,
    propose,
    split_lines,
    text_of,
)
from engine.merge.choices import Pick
from engine.merge.linediff import diff

_WHEEL = re.compile(r"-(\d+(?:\.\d+)*)-")
_VERSION_FILE = re.compile(r"(?:^|[/_])(?:release|version|__init__|__about__)\.py$|dist-info/")
_TEXT = (".py", ".html", ".txt", ".js", ".css", ".yml", ".yaml", ".rst", ".md", ".cfg", ".ps1")
_SURE = 3
_KEYS = (Pick.TARGET, Pick.INCOMING, Pick.BOTH, Pick.BOTH_REVERSED, Pick.BASE, Pick.NEITHER)
Files = Mapping[str, bytes]
Version = tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """One release line: its versions in order, and where each lies."""

    name: Version
    wheels: tuple[tuple[Version, Path], ...]

    @property
    def steps(self) -> list[tuple[Path, Path]]:
        """Each release with the one after it."""
        return [(before[1], after[1]) for before, after in pairwise(self.wheels)]


def lines_of(folder: Path) -> list[Line]:
    """The release lines of a project, oldest first; the first part names one, or the first two."""
    found: dict[Version, list[tuple[Version, Path]]] = {}
    wheels = [(name[1], path) for path in folder.iterdir() if (name := _WHEEL.search(path.name))]
    versions = [(tuple(map(int, word.split("."))), path) for word, path in wheels]
    width = 1 if len({v[0] for v, _ in versions}) > len(versions) // 15 + 1 else 2
    for version, path in sorted(versions):
        found.setdefault(version[:width], []).append((version, path))
    return [Line(name, tuple(wheels)) for name, wheels in sorted(found.items())]


@cache
def files_of(wheel: Path) -> Files:
    """The texts of a release."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if name.endswith(_TEXT) and not _VERSION_FILE.search(name)
        }


@dataclass(frozen=True)
class Replayed:
    """A conflict, and what its humans made of it."""

    hunk: ConflictHunk
    answer: bytes
    name: str


@dataclass(frozen=True)
class Step:
    """The releases before and after a fix, in both lines."""

    base: Path
    incoming: Path
    target: Path
    result: Path

    @cached_property
    def changed(self) -> list[str]:
        """The texts that the fix changed."""
        before, after = files_of(self.base), files_of(self.incoming)
        return [path for path in before if path in after and before[path] != after[path]]

    @cached_property
    def both(self) -> list[tuple[str, bytes, TextMerge]]:
        """Of those the ones that the newer line changed too: its text, and the merge."""
        found = []
        for path in self.changed:
            target, result = files_of(self.target).get(path), files_of(self.result).get(path)
            if target is not None and result is not None and target != result:
                base, incoming = files_of(self.base)[path], files_of(self.incoming)[path]
                found.append((path, result, merge_texts(base, target, incoming)))
        return found

    @cached_property
    def sure(self) -> list[str]:
        """The texts where the fix merges cleanly, and to what the newer line has."""
        return [
            path
            for path, result, merged in self.both
            if not merged.hunks and merged.render(lambda _: b"") == result
        ]

    def conflicts(self) -> Iterator[Replayed]:
        """Every conflict whose answer can be read off the newer line."""
        for path, result, merged in self.both:
            changes = diff(merged.target, new := split_lines(result)) if merged.hunks else []
            for hunk in merged.hunks:
                answer = _answer(hunk, changes, new)
                is_untouched = answer == b"".join(hunk.target)
                if answer is not None and not (is_untouched and _is_elsewhere(hunk, new)):
                    yield Replayed(hunk, answer, path)


def _answer(
    hunk: ConflictHunk, changes: Sequence[LineChange], result: Sequence[bytes]
) -> bytes | None:
    """Return what stands in a hunk's place; None where what is around it has changed as well."""
    start, end = hunk.target_line, hunk.target_line + len(hunk.target)
    for change in changes:
        is_above = change.before < start and change.before_end > start - 2
        is_below = change.before < end + 2 and change.before_end > end
        if is_above or is_below or change.before == change.before_end in {start - 1, end + 1}:
            return None
    first = sum(c.grown for c in changes if c.before_end <= start and c.before < start)
    last = sum(c.grown for c in changes if c.before_end <= end)
    return b"".join(result[start + first : end + last])


def _is_elsewhere(hunk: ConflictHunk, result: Sequence[bytes]) -> bool:
    """The fix went to another place of the file: this place says nothing about it."""
    own = set(hunk.incoming) - set(hunk.base) - set(hunk.target)
    said = {line for line in own if len(line.strip()) > 1}
    return bool(said) and said <= set(result)


def answers(older: Line, newer: Line) -> Iterator[Step]:
    """Steps of the older line with the step of the newer one that holds the same fixes."""
    for before, after in older.steps:
        steps = [Step(before, after, *step) for step in newer.steps]
        most = max(steps, key=lambda step: len(step.sure), default=None)
        if most and len(most.sure) >= min(_SURE, max(1, len(most.changed) // 2)):
            yield most


def report(title: str, found: Sequence[Replayed]) -> None:
    """Return how often the answer is one key away, a text on offer, or what is under the cursor."""
    if not found:
        print(f"{title:<34} no conflicts")
        return
    count: Counter[str] = Counter()
    for one in found:
        offers = propose(one.hunk)
        texts = {text_of(one.hunk, pick) for pick in _KEYS}
        top = best(offers)
        first = offers[0].text if offers else None
        count["key"] += one.answer in texts or one.answer == first
        count["untyped"] += (
            one.answer in texts or one.answer in {o.text for o in offers} or _made_of_lines(one)
        )
        count["offered"] += top is not None
        count["right"] += top is not None and top.text == one.answer
    total = len(found)
    share = {name: f"{number / total:4.0%}" for name, number in count.items()}
    right = f"{count['right'] / count['offered']:4.0%}" if count["offered"] else "none"
    print(
        f"{title:<34}{total:5} conflicts: one key {share['key']}, without typing "
        f"{share['untyped']}, under the cursor {share['offered']}, right there {right}"
    )


def _made_of_lines(one: Replayed) -> bool:
    """Every line of the answer is a line of one of the versions: single lines make it."""
    known = {*one.hunk.base, *one.hunk.target, *one.hunk.incoming}
    return all(line in known for line in split_lines(one.answer))


def main(folders: Sequence[str]) -> int:
    """Replay every project."""
    every: list[Replayed] = []
    for folder in map(Path, folders):
        found: list[Replayed] = []
        steps = 0
        for older, newer in pairwise(lines_of(folder)):
            for step in answers(older, newer):
                steps += 1
                found += step.conflicts()
            files_of.cache_clear()
        unique = {(one.hunk.key, one.answer): one for one in found}
        report(f"{folder.name} ({steps} steps)", list(unique.values()))
        every += unique.values()
    report("all", every)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
