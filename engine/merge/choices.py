"""The choices for one hunk, and the text that each choice makes.

Knows one hunk. Every choice is plain data, so that it can be kept in a journal and made again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from engine.merge.packing import pack, unpack
from engine.merge.text import ConflictHunk, Lines, join, join_all
from engine.merge.words import combine


class Pick(StrEnum):
    """A choice that needs no text: a side, both, neither, or their combination."""

    TARGET = "target"
    INCOMING = "incoming"
    BOTH = "both"
    BOTH_REVERSED = "both_reversed"
    BASE = "base"
    NEITHER = "neither"
    COMBINED = "combined"


class LineOf(StrEnum):
    """The version that a single line is taken from."""

    TARGET = "target"
    INCOMING = "incoming"
    BASE = "base"


class LinePick(NamedTuple):
    """One line of one version of a hunk, counted from 0."""

    side: LineOf
    at: int


@dataclass(frozen=True, slots=True)
class SingleLines:
    """Single lines of both sides, in the order of `lines`."""

    lines: tuple[LinePick, ...]


@dataclass(frozen=True, slots=True)
class OwnText:
    """Your own text; `source` names the proposal that it came from, if any."""

    text: bytes
    source: str = ""


Choice = Pick | SingleLines | OwnText
"""The resolution of one hunk."""


def choice_of(value: "str | bytes | Choice") -> Choice:
    """The choice behind a word such as `both_reversed`, behind bytes, or behind a choice."""
    if isinstance(value, bytes):
        return OwnText(value)
    return Pick(value) if isinstance(value, str) else value


def text_of(hunk: ConflictHunk, choice: Choice) -> bytes | None:
    """Return the text of the hunk; None where the choice cannot be carried out on it."""
    if isinstance(choice, OwnText):
        return choice.text
    if isinstance(choice, SingleLines):
        return _single(hunk, choice.lines)
    return _PICKED[choice](hunk)


_PICKED: Mapping[Pick, Callable[[ConflictHunk], bytes | None]] = {
    Pick.TARGET: lambda hunk: b"".join(hunk.target),
    Pick.INCOMING: lambda hunk: b"".join(hunk.incoming),
    Pick.BOTH: lambda hunk: join(b"".join(hunk.target), b"".join(hunk.incoming), hunk.ending),
    Pick.BOTH_REVERSED: lambda hunk: join(
        b"".join(hunk.incoming), b"".join(hunk.target), hunk.ending
    ),
    Pick.BASE: lambda hunk: b"".join(hunk.base),
    Pick.NEITHER: lambda _: b"",
    Pick.COMBINED: lambda hunk: combine(*map(b"".join, (hunk.base, hunk.target, hunk.incoming))),
}


def lines_from(hunk: ConflictHunk, side: LineOf) -> Lines:
    """The lines that single lines of `side` are counted in."""
    match side:
        case LineOf.TARGET:
            return hunk.target
        case LineOf.INCOMING:
            return hunk.incoming
        case LineOf.BASE:
            return hunk.base


def _single(hunk: ConflictHunk, picks: tuple[LinePick, ...]) -> bytes | None:
    found: list[bytes] = []
    for side, at in picks:
        lines = lines_from(hunk, side)
        if not 0 <= at < len(lines):
            return None
        found.append(lines[at])
    return join_all(found, hunk.ending)


def choice_to_json(choice: Choice) -> dict[str, object]:
    """The choice as plain data for `json`."""
    match choice:
        case OwnText():
            return {"own": pack(choice.text), "source": choice.source}
        case SingleLines():
            return {"lines": [[str(side), at] for side, at in choice.lines]}
        case _:
            return {"pick": str(choice)}


def choice_from_json(data: Mapping[str, object]) -> Choice:
    """The choice that `choice_to_json` wrote."""
    if "own" in data:
        return OwnText(unpack(data["own"]), str(data["source"]))
    lines = data.get("lines")
    if isinstance(lines, list):
        return SingleLines(tuple(LinePick(LineOf(side), int(at)) for side, at in lines))
    return Pick(str(data["pick"]))
