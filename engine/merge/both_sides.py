"""Both sides of every conflict, with the lines that they share written once: git's `--union`.

Knows the aligned texts only. Inside a conflict the two sides are compared with each other; what
still differs is written target first. As in git, differing places with no more than three lines
between them, or with nothing but punctuation between them, are taken together.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from engine.merge.linediff import LineDiff, diff
from engine.merge.text import ConflictHunk, Lines, TextMerge, join
from engine.merge.threeway import Origin, Part

_CLOSE = 3
_SAYS_SOMETHING = re.compile(rb"[0-9A-Za-z]")


class _Spot(NamedTuple):
    """Lines of both sides that differ; or, `settled`, a place that is decided already."""

    target: int
    target_end: int
    incoming: int
    incoming_end: int
    settled: bool = False


def union(text: TextMerge, *, differ: LineDiff = diff) -> bytes:
    """The whole text with both sides of each conflict in it."""
    spots: list[_Spot] = []
    for part in text.parts:
        if part.origin is Origin.CONFLICT:
            spots.extend(_refined(text, part, differ))
        elif part.origin in (Origin.TARGET, Origin.INCOMING):
            spots.append(_spot(part, settled=True))
    places = _taken_together(text.target, spots)
    by_start = {(part.target, part.incoming): part for part in text.parts}
    out: list[bytes] = []
    at = 0
    for spot in places:
        out.extend(text.target[at : spot.target])
        out.append(_written(text, spot, by_start.get((spot.target, spot.incoming))))
        at = spot.target_end
    out.extend(text.target[at:])
    return b"".join(out)


def union_of_hunk(hunk: ConflictHunk, *, differ: LineDiff = diff) -> bytes:
    """Both sides of one hunk, shared lines once."""
    out: list[bytes] = []
    at = 0
    for change in differ(hunk.target, hunk.incoming):
        out.extend(hunk.target[at : change.before])
        target = b"".join(hunk.target[change.before : change.before_end])
        incoming = b"".join(hunk.incoming[change.after : change.after_end])
        out.append(join(target, incoming, hunk.ending))
        at = change.before_end
    return b"".join((*out, *hunk.target[at:]))


def _spot(part: Part, *, settled: bool = False) -> _Spot:
    return _Spot(part.target, part.target_end, part.incoming, part.incoming_end, settled)


def _refined(text: TextMerge, part: Part, differ: LineDiff) -> Iterator[_Spot]:
    """Yield the parts in which the two sides of a conflict differ from each other."""
    whole = _spot(part)
    target = text.target[part.target : part.target_end]
    incoming = text.incoming[part.incoming : part.incoming_end]
    if not target or not incoming:
        yield whole
        return
    changes = differ(target, incoming)
    if not changes:
        # Both wrote the same, by other ways: decided, and nothing is taken together across it.
        yield whole._replace(settled=True)
    for change in changes:
        yield _Spot(
            part.target + change.before,
            part.target + change.before_end,
            part.incoming + change.after,
            part.incoming + change.after_end,
        )


def _taken_together(target: Lines, spots: list[_Spot]) -> list[_Spot]:
    """The spots, neighbors in one where too little stands between them."""
    joined: list[_Spot] = []
    for spot in spots:
        last = joined[-1] if joined else None
        if (
            last
            and not (last.settled or spot.settled)
            and _says_little(target[last.target_end : spot.target])
        ):
            joined[-1] = last._replace(target_end=spot.target_end, incoming_end=spot.incoming_end)
        else:
            joined.append(spot)
    return joined


def _says_little(between: Lines) -> bool:
    return len(between) <= _CLOSE or not any(map(_SAYS_SOMETHING.search, between))


def _written(text: TextMerge, spot: _Spot, part: Part | None) -> bytes:
    """Return the text that replaces a spot."""
    target = b"".join(text.target[spot.target : spot.target_end])
    incoming = b"".join(text.incoming[spot.incoming : spot.incoming_end])
    if not spot.settled:
        place = Part(Origin.CONFLICT, 0, 0, *spot[:4])
        return _ended(target, text.line_end(place)) + incoming
    return incoming if part and part.origin is Origin.INCOMING else target


def _ended(text: bytes, ending: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + ending
