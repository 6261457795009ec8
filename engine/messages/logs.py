"""A worker's log as it is handed on: stretches of text, taken apart only where they are looked at.

A flood is millions of lines of which a console shows some dozens, so nothing here is done for each.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Self, overload

from engine.values import dataclass

KEPT_LINES = 10_000
"""So many of the newest lines an engine has at hand; those before are in the recording."""


class LogKind(StrEnum):
    """The kind of a log line."""

    SAYS = "says"
    THOUGHT = "thought"
    TOOL = "tool"
    TOOL_END = "tool_end"
    OUTPUT = "output"
    ERROR = "error"
    NOTE = "note"
    YOU = "you"


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One line of a worker's log; `at` is wall-clock seconds."""

    at: float
    kind: LogKind
    text: str


@dataclass(frozen=True)
class LogPiece:
    """Lines of one moment and one kind, as one text with line ends between them."""

    at: float
    kind: LogKind
    text: str

    @property
    def count(self) -> int:
        """Return the number of lines."""
        return self.text.count("\n") + 1

    def __iter__(self) -> Iterator[LogLine]:
        """Yield each line; skip its constructor, which would take twice the time."""
        at, kind, new = self.at, self.kind, object.__new__
        for text in self.text.split("\n"):
            line = new(LogLine)
            fields = line.__dict__
            fields["at"], fields["kind"], fields["text"] = at, kind, text
            yield line


@dataclasses.dataclass(frozen=True, eq=False)
class LogLines(Sequence[LogLine]):
    """Lines of a log, each made when it is looked at; `pieces` are what they are made from."""

    pieces: tuple[LogPiece, ...] = ()

    @classmethod
    def of(cls, lines: Iterable[LogLine]) -> Self:
        """Return these lines as pieces."""
        moments = groupby(lines, key=attrgetter("at", "kind"))
        return cls(
            tuple(
                LogPiece(at, kind, "\n".join(line.text for line in several))
                for (at, kind), several in moments
            )
        )

    @cached_property
    def _count(self) -> int:
        return sum(piece.count for piece in self.pieces)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[LogLine]:
        for piece in self.pieces:
            yield from piece

    @overload
    def __getitem__(self, index: int) -> LogLine: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> "LogLine | Self":
        lines = list(self)
        return self.of(lines[index]) if isinstance(index, slice) else lines[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogLines) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, kw_only=True)
class LogChunk:
    """A part of a worker's log; `is_end` says that its attempt has ended and nothing follows.

    Attributes:
        first: The number of its first line: so many lines were written before it.
        next_offset: The number of the line that is written next.
    """

    lines: LogLines = field(default_factory=LogLines)
    first: int = 0
    next_offset: int = 0
    is_end: bool = False


def newest(lines: Sequence[LogLine], after: int, most: int | None) -> LogChunk:
    """Return the lines that are asked for: from a number on, or the newest few of them."""
    count = len(lines)
    first = min(after if most is None else max(after, count - most), count)
    return LogChunk(lines=LogLines.of(lines[first:]), first=first, next_offset=count)
