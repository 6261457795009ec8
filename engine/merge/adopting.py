"""A conflicted file that its user has begun to mend by hand, taken over as it stands.

Git's own markers say nothing of which conflict they stand for, and git splits a conflict where its
sides agree in between. What git wrote is therefore laid beside our hunks once; then the user's
edits of it are edits of hunks.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from engine.merge.conflict import FileConflict
from engine.merge.editing import marked
from engine.merge.linediff import LineChange, diff
from engine.merge.text import ConflictHunk, Lines, TextMerge, split_lines

_BEGINS = re.compile(rb"<{7,}(?: |\r?\n|\Z)")
_BASE, _MIDDLE, _ENDS = b"|||||||", b"=======", b">>>>>>>"


class _WrittenBlock(NamedTuple):
    """A conflict as git wrote it: its lines in the file, and where it lies in the target's text."""

    start: int
    end: int
    at: int
    at_end: int


class _HunkPlace(NamedTuple):
    """The lines that git wrote for one hunk."""

    hunk: ConflictHunk
    start: int
    end: int


def has_markers(content: bytes) -> bool:
    """Something in it looks like a conflict that git wrote and nobody decided."""
    lines = split_lines(content)
    return any(map(_BEGINS.match, lines)) and any(line.startswith(_ENDS) for line in lines)


def adopted(conflict: FileConflict, wrote: bytes, now: bytes) -> bytes | None:
    """The file as it is now, its open conflicts between our markers, fit for `session.edited`.

    None where it cannot be known which conflicts are still open in it.

    Args:
        conflict: What is to be decided about the file.
        wrote: What git put there, markers and all.
        now: What the user has made of it.
    """
    if not has_markers(now):
        return now
    text = conflict.text
    places = _places(text, split_lines(wrote)) if text is not None else None
    if places is None:
        return None
    old, new = split_lines(wrote), split_lines(now)
    changes = diff(old, new)
    found: list[bytes] = []
    done = 0
    for place in places:
        start, end = _moved(changes, place.start), _end(changes, place.end)
        if new[start:end] == old[place.start : place.end]:
            found += [*new[done:start], marked(place.hunk, conflict.names)]
        elif _is_split(changes, place) or has_markers(b"".join(new[start:end])):
            return None
        else:
            found += new[done:end]
        done = end
    made = b"".join((*found, *new[done:]))
    return None if has_markers(b"".join(_between(places, changes, new))) else made


def _between(
    places: Sequence[_HunkPlace], changes: Sequence[LineChange], new: Lines
) -> list[bytes]:
    """Return the text outside of every conflict."""
    found: list[bytes] = []
    done = 0
    for place in places:
        found += new[done : _moved(changes, place.start)]
        done = _end(changes, place.end)
    return [*found, *new[done:]]


def _moved(changes: Sequence[LineChange], at: int) -> int:
    """Return the place of an old line in the new text; insertions at that point come after it."""
    return at + sum(change.grown for change in changes if change.before_end <= at)


def _end(changes: Sequence[LineChange], at: int) -> int:
    """The same for the end of a stretch: what was put in right behind it is not of it."""
    return at + sum(c.grown for c in changes if c.before_end <= at and c.before < at)


def _is_split(changes: Sequence[LineChange], place: _HunkPlace) -> bool:
    """A change reaches from a conflict into what is around it."""
    return any(
        change.before < at < change.before_end
        for change in changes
        for at in (place.start, place.end)
    )


def _places(text: TextMerge, wrote: Lines) -> list[_HunkPlace] | None:
    """Return the lines that git wrote for each hunk; None where they are not of this merge."""
    found = _blocks(wrote)
    if found is None:
        return None
    blocks, target = found
    if target != split_lines(text.render(lambda hunk: b"".join(hunk.target))):
        return None
    places: list[_HunkPlace] = []
    at = used = 0
    for piece in text.pieces:
        lines = piece.hunk.target if piece.hunk else piece.lines
        if piece.hunk:
            inside = [b for b in blocks if at <= b.at and b.at_end <= at + len(lines)]
            if not inside:
                return None
            start = inside[0].start - (inside[0].at - at)
            end = inside[-1].end + (at + len(lines) - inside[-1].at_end)
            places.append(_HunkPlace(piece.hunk, start, end))
            used += len(inside)
        at += len(lines)
    return places if used == len(blocks) else None


def _blocks(lines: Lines) -> tuple[list[_WrittenBlock], Lines] | None:
    """The conflicts in a file of git's, and the file as it is with the target's side of each."""
    blocks: list[_WrittenBlock] = []
    target: list[bytes] = []
    start: int | None = None
    at, is_target = 0, True
    for number, line in enumerate(lines):
        if start is None and _BEGINS.match(line):
            start, at, is_target = number, len(target), True
        elif start is not None and line.startswith(_ENDS):
            blocks.append(_WrittenBlock(start, number + 1, at, len(target)))
            start, is_target = None, True
        elif start is not None and is_target and line.startswith((_BASE, _MIDDLE)):
            is_target = False
        elif is_target:
            target.append(line)
    return None if start is not None else (blocks, tuple(target))
