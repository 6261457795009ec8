"""The conflicts of one text, made from its three versions and never from conflict markers.

Knows bytes and lines. A line ends with a line feed and nothing else; carriage returns, form feeds
and the separators of Unicode are content, and so is the lack of a last line feed.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import NamedTuple, NewType

from engine.merge.linediff import LineDiff, diff
from engine.merge.terms import Merge
from engine.merge.threeway import Origin, Part, align

HunkKey = NewType("HunkKey", str)
"""Names a hunk by its texts, so that a choice still finds it after the file has changed elsewhere.

Twenty hexadecimal digits of the hash of its three texts; further hunks of the same file with the
same texts are told apart by `#2`, `#3` and so on.
"""

Lines = tuple[bytes, ...]
_CONTEXT = 3
_NUL_IS_SOUGHT_IN = 8000  # git's own rule for what is binary


class ConflictHunk(NamedTuple):
    """One place where both sides changed the same lines, differently.

    `base_line` and its like are where the texts begin in their files, counted from 0. `before` and
    `after` are up to three lines of the target around the place. `ending` is the line end to be
    put where a text without one is followed by another.
    """

    key: HunkKey
    base: Lines
    target: Lines
    incoming: Lines
    base_line: int
    target_line: int
    incoming_line: int
    before: Lines
    after: Lines
    ending: bytes

    @property
    def merge(self) -> Merge[bytes]:
        """The three texts as a value."""
        return Merge.three(
            base=b"".join(self.base), target=b"".join(self.target), incoming=b"".join(self.incoming)
        )


class Piece(NamedTuple):
    """A stretch of the merged text: who it comes from, its lines, and the hunk if it is one."""

    origin: Origin
    lines: Lines
    hunk: ConflictHunk | None = None


@dataclass(frozen=True)
class TextMerge:
    """Three versions of one text, aligned."""

    base: Lines
    target: Lines
    incoming: Lines
    parts: tuple[Part, ...]

    @cached_property
    def hunks(self) -> tuple[ConflictHunk, ...]:
        """The conflicts, in order."""
        return tuple(piece.hunk for piece in self.pieces if piece.hunk)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The whole text in order; a hunk's own lines are those of the base."""
        seen: Counter[str] = Counter()
        pieces: list[Piece] = []
        for part in self.parts:
            if part.origin is Origin.CONFLICT:
                hunk = self._hunk(part, seen)
                pieces.append(Piece(part.origin, hunk.base, hunk))
            elif part.origin is Origin.INCOMING:
                pieces.append(Piece(part.origin, self.incoming[part.incoming : part.incoming_end]))
            else:
                pieces.append(Piece(part.origin, self.target[part.target : part.target_end]))
        return tuple(pieces)

    def render(self, decide: Callable[[ConflictHunk], bytes]) -> bytes:
        """The merged text, each hunk as `decide` says.

        What was decided gets a line end where it lacks one and more text follows.
        """
        texts: list[bytes] = []
        unended = b""
        for piece in self.pieces:
            text = decide(piece.hunk) if piece.hunk else b"".join(piece.lines)
            if unended and text:
                texts.append(unended)
            texts.append(text)
            if text:
                ending = piece.hunk.ending if piece.hunk else b"\n"
                unended = b"" if text.endswith(b"\n") else ending
        return b"".join(texts)

    def _hunk(self, part: Part, seen: Counter[str]) -> ConflictHunk:
        base = self.base[part.base : part.base_end]
        target = self.target[part.target : part.target_end]
        incoming = self.incoming[part.incoming : part.incoming_end]
        digest = _digest(base, target, incoming)
        seen[digest] += 1
        again = f"#{seen[digest]}" if seen[digest] > 1 else ""
        return ConflictHunk(
            key=HunkKey(digest + again),
            base=base,
            target=target,
            incoming=incoming,
            base_line=part.base,
            target_line=part.target,
            incoming_line=part.incoming,
            before=self.target[max(part.target - _CONTEXT, 0) : part.target],
            after=self.target[part.target_end : part.target_end + _CONTEXT],
            ending=self.line_end(part),
        )

    def line_end(self, part: Part) -> bytes:
        """CR LF where both sides use it around `part`, else LF; git's rule for joining texts."""
        styles = (
            _has_crlf(self.target, max(part.target - 1, 0)),
            _has_crlf(self.incoming, max(part.incoming - 1, 0)),
            _has_crlf(self.base, 0),
        )
        for style in styles:
            if style is False:
                return b"\n"
        return b"\r\n" if styles[-1] else b"\n"


def merge_texts(
    base: bytes, target: bytes, incoming: bytes, *, differ: LineDiff = diff
) -> TextMerge:
    """The three-way merge of three texts; `differ` may be git's own line diff."""
    lines = split_lines(base), split_lines(target), split_lines(incoming)
    return TextMerge(*lines, tuple(align(*lines, differ=differ)))


def split_lines(text: bytes) -> Lines:
    """The lines of a text with their line feeds; the last may have none."""
    return tuple(BytesIO(text))


def is_binary(content: bytes) -> bool:
    """There is a NUL where git looks for one."""
    return b"\0" in content[:_NUL_IS_SOUGHT_IN]


def join_all(texts: Iterable[bytes], ending: bytes) -> bytes:
    """The texts one after the other, with a line end wherever one lacks it before the next."""
    out: list[bytes] = []
    for text in texts:
        if text:
            if out and not out[-1].endswith(b"\n"):
                out.append(ending)
            out.append(text)
    return b"".join(out)


def join(first: bytes, second: bytes, ending: bytes) -> bytes:
    """One text after the other, with a line end between them if the first lacks it."""
    return join_all((first, second), ending)


def _has_crlf(lines: Sequence[bytes], index: int) -> bool | None:
    """Say if this line ends in CR LF; the line before decides for a line without an end."""
    if not lines:
        return None
    line = lines[index]
    if not line.endswith(b"\n"):
        if index == 0:
            return None
        line = lines[index - 1]
    return line.endswith(b"\r\n")


def _digest(*texts: Lines) -> str:
    name = hashlib.blake2b(digest_size=10)
    for lines in texts:
        name.update(b"%d;" % len(lines))
        for line in lines:
            name.update(b"%d:" % len(line))
            name.update(line)
    return name.hexdigest()
