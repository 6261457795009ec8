"""Ways to put both sides of a hunk together that a human often takes.

Each rule looks at one hunk and gives a text with the reason for it, or nothing. A rule never
decides; how far it is to be trusted is `engine.merge.proposals`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from engine.merge.linediff import LineChange
from engine.merge.linediff import diff as exact_diff
from engine.merge.text import ConflictHunk, Lines
from engine.merge.threeway import merged
from engine.merge.words import tokens

Tokens = Sequence[bytes]
diff = partial(exact_diff, patience=24)
"""Texts that differ in more than this are not put together well by any rule, only slowly."""

_FAR_MORE = 3
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]")
_NAME = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_NUMBER = re.compile(rb"\d+(?:\.\d+)*(?:[.-]?(?:dev|alpha|beta|rc|a|b)\.?\d*)?")
_PRERELEASE = re.compile(rb"[.-]?(?:dev|alpha|beta|rc|a|b)")


class Edit(NamedTuple):
    """Items `start:end` of the base give way to `items`."""

    start: int
    end: int
    items: Sequence[bytes]


class TokenSide(NamedTuple):
    """One side of a hunk in tokens, and what it changed of the base's."""

    name: str
    tokens: list[bytes]
    changes: list[LineChange]

    @property
    def added(self) -> int:
        """The number of tokens that the side put in."""
        return sum(change.after_end - change.after for change in self.changes)

    @property
    def edits(self) -> list[Edit]:
        """The changes with what they put in."""
        return [
            Edit(change.before, change.before_end, self.tokens[change.after : change.after_end])
            for change in self.changes
        ]


class Three(NamedTuple):
    """A hunk in tokens, compared once for all rules."""

    base: list[bytes]
    target: TokenSide
    incoming: TokenSide

    @classmethod
    def of(cls, hunk: ConflictHunk, *, most: int) -> "Three | None":
        """The tokens of the three texts, if they are not more than `most`."""
        texts = (b"".join(lines) for lines in (hunk.base, hunk.target, hunk.incoming))
        base, target, incoming = map(tokens, texts)
        if len(base) + len(target) + len(incoming) > most:
            return None
        return cls(
            base,
            TokenSide("target", target, diff(base, target)),
            TokenSide("incoming", incoming, diff(base, incoming)),
        )

    @property
    def ways(self) -> tuple[tuple[TokenSide, TokenSide], tuple[TokenSide, TokenSide]]:
        """The sides in both orders."""
        return (self.target, self.incoming), (self.incoming, self.target)

    def combined(self) -> bytes | None:
        """Both edits, if no token was touched by both."""
        sides = ((side.tokens, side.changes) for side in (self.target, self.incoming))
        stretches = merged(self.base, *sides)
        return None if stretches is None else b"".join(chain.from_iterable(stretches))

    def combined_without_blanks(self) -> bytes | None:
        """Both edits, but of the incoming one only what is more than other blanks.

        Who lines up what follows a changed name changes blanks that the target may have changed
        its mind about. None where the incoming side changed no blanks.
        """
        said = [edit for edit in self.incoming.edits if not self._is_blank(edit)]
        if len(said) == len(self.incoming.edits) or not said:
            return None
        return both_edits(self.base, self.target.edits, said)

    def _is_blank(self, edit: Edit) -> bool:
        return not b"".join((*self.base[edit.start : edit.end], *edit.items)).strip()


def edits(base: Sequence[bytes], side: Sequence[bytes]) -> list[Edit]:
    """Return the edits that a side made to the base."""
    return [
        Edit(change.before, change.before_end, side[change.after : change.after_end])
        for change in diff(base, side)
    ]


def both_edits(
    base: Sequence[bytes], first: Sequence[Edit], second: Sequence[Edit], *, share: bool = False
) -> bytes | None:
    """The base with the edits of both, where none overlaps; what touches is laid side by side.

    With `share`, both may have put something into the same place; the first one's goes first.
    """
    marked = sorted(
        [(edit.start, edit.end, 0, edit.items) for edit in first]
        + [(edit.start, edit.end, 1, edit.items) for edit in second],
        key=lambda edit: edit[:3],
    )
    out: list[bytes] = []
    at, last = 0, (-1, -1)
    for start, end, _, items in marked:
        if start < at or (start == end and (start, end) == last and not share):
            return None
        out.extend(base[at:start])
        out.extend(items)
        at, last = end, (start, end)
    return b"".join((*out, *base[at:]))


def favoring(base: Sequence[bytes], first: Sequence[Edit], second: Sequence[Edit]) -> bytes:
    """The base with the edits of both; where they overlap, with those of the first alone."""
    mine, theirs = [*_apart(first)], [*_apart(second)]
    taken = [(edit.start, edit.end) for edit in mine]
    free = [
        edit
        for edit in theirs
        if not any(_overlap((edit.start, edit.end), other) for other in taken)
    ]
    both = both_edits(base, mine, free, share=True)
    return b"".join(base) if both is None else both


def _apart(whole: Sequence[Edit]) -> Iterator[Edit]:
    """The edits, one for each item where as many came as went."""
    for edit in whole:
        if len(edit.items) == edit.end - edit.start:
            for place, item in enumerate(edit.items, edit.start):
                yield Edit(place, place + 1, (item,))
        else:
            yield edit


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """They have an item in common, or put something into the same place."""
    return one == other or max(one[0], other[0]) < min(one[1], other[1]) or _within(one, other)


def _within(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """One of them puts something into the midst of the other."""
    (start, end), (low, high) = sorted((one, other), key=lambda span: span[1] - span[0])
    return start == end and low < start < high


def inserts_share_a_place(first: Sequence[Edit], second: Sequence[Edit]) -> bool:
    """Both put something between the same two items of the base."""
    places = {edit.start for edit in first if edit.start == edit.end}
    return any(edit.start in places for edit in second if edit.start == edit.end)


def contained(three: Three) -> Iterator[tuple[str, bytes]]:
    """A side that has everything that the other changed, and more."""
    for less, more in three.ways:
        added = [token for edit in less.edits for token in edit.items]
        removed = _removed(more)
        if (
            all(removed.issuperset(range(*change[:2])) for change in less.changes)
            and (any(map(_WORD.match, added)) or not (added or more.added))
            and _holds(more.tokens, less.tokens if added else more.tokens)
        ):
            yield more.name, b"".join(more.tokens)


def superseded(three: Three) -> Iterator[tuple[str, bytes]]:
    """A side that took away or rewrote all the words that the other changed a little."""
    words = [place for place, token in enumerate(three.base) if _WORD.match(token)]
    for less, more in three.ways:
        removed = _removed(more)
        small = _FAR_MORE * (less.added + len(_removed(less))) <= more.added + len(removed)
        if less.changes and small and removed.issuperset(_words_at(words, less.changes)):
            yield more.name, b"".join(more.tokens)


def _words_at(words: list[int], changes: Sequence[LineChange]) -> Iterator[int]:
    """The words that were changed, and the nearest on both sides of each change."""
    for change in changes:
        first = bisect_left(words, change.before)
        last = bisect_left(words, change.before_end)
        yield from words[max(first - 1, 0) : last + 1]


def _removed(side: TokenSide) -> set[int]:
    """The places of the base whose tokens a side took away."""
    return {place for change in side.changes for place in range(*change[:2])}


def _holds(more: Tokens, less: Tokens) -> bool:
    """All of `less` is in `more`, in its order."""
    left = iter(more)
    return all(token in left for token in less)


def renamed(three: Three) -> Iterator[tuple[str, bytes]]:
    """One side only gave names new names: the other side with those names."""
    for namer, other in three.ways:
        names = _renames(three.base, namer.tokens)
        if other.changes and names.keys() & set(other.tokens):
            yield namer.name, b"".join(names.get(token, token) for token in other.tokens)


def _renames(base: Tokens, side: Tokens) -> dict[bytes, bytes]:
    """Old names and new, if that is all that happened and it happened everywhere."""
    if len(base) != len(side):
        return {}
    names: dict[bytes, bytes] = {}
    for old, new in zip(base, side, strict=True):
        if names.setdefault(old, new) != new:
            return {}
        if old != new and not (_NAME.fullmatch(old) and _NAME.fullmatch(new)):
            return {}
    return {old: new for old, new in names.items() if old != new}


def newer(hunk: ConflictHunk) -> tuple[str, bytes] | None:
    """Both sides changed only numbers, and one has the higher ones: that side."""
    texts = [b"".join(lines) for lines in (hunk.base, hunk.target, hunk.incoming)]
    shapes = [_NUMBER.sub(b"\0", text) for text in texts]
    if shapes[1] != shapes[2] or (hunk.base and shapes[0] != shapes[1]):
        return None
    mine, theirs = (_NUMBER.findall(text) for text in texts[1:])
    if len(mine) != len(theirs):
        return None
    pairs = [(_rank(a), _rank(b)) for a, b in zip(mine, theirs, strict=True) if a != b]
    if pairs and all(a > b for a, b in pairs):
        return "target", texts[1]
    if pairs and all(b > a for a, b in pairs):
        return "incoming", texts[2]
    return None


def _rank(number: bytes) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """Return a key that orders versions: the release, then whether it is one, then the rest."""
    early = _PRERELEASE.search(number)
    release = number[: early.start()] if early else number
    rest = number[early.start() :] if early else b""
    parts = [int(part) for part in release.split(b".") if part.isdigit()]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts), not early, tuple(int(digits) for digits in re.findall(rb"\d+", rest))


def respaced(hunk: ConflictHunk) -> Iterator[tuple[str, bytes]]:
    """One side changed blanks only: the other side's words, with those blanks where they fit."""
    ways = (("target", hunk.target, hunk.incoming), ("incoming", hunk.incoming, hunk.target))
    for name, spaced, other in ways:
        if spaced != hunk.base and _squeezed(spaced) == _squeezed(hunk.base):
            text = _with_blanks_of(hunk.base, spaced, other)
            yield name, b"".join(other) if text is None else text


def _squeezed(lines: Lines) -> list[bytes]:
    return [words for line in lines if (words := b"".join(line.split()))]


def _with_blanks_of(base: Lines, spaced: Lines, other: Lines) -> bytes | None:
    """`other` with the blanks changed as `spaced` changed them in the base."""
    if len(base) != len(spaced):
        return None
    known: dict[bytes, bytes] = {}
    shifts: set[tuple[bytes, bytes]] = set()
    for old, new in zip(base, spaced, strict=True):
        if b"".join(old.split()) != b"".join(new.split()) or known.setdefault(old, new) != new:
            return None
        if old.strip():
            shifts.add(_shift(old, new))
    if len(shifts) != 1:
        shifts = {(b"", b"")}
    cut, put = shifts.pop()
    return b"".join(known[line] if line in known else _shifted(line, cut, put) for line in other)


def _shift(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return what leaves and what enters at the start of a line."""
    before = old[: len(old) - len(old.lstrip())]
    after = new[: len(new) - len(new.lstrip())]
    if after.endswith(before):
        return b"", after[: len(after) - len(before)]
    if before.endswith(after):
        return before[: len(before) - len(after)], b""
    return before, after


def _shifted(line: bytes, cut: bytes, put: bytes) -> bytes:
    if not line.strip() or not line.startswith(cut):
        return line
    return put + line[len(cut) :]
