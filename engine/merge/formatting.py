"""Texts for hunks by the project's own formatter: the three versions formatted, then merged.

Where one side only reformatted a file, nothing is left of its change then, and the other side's is
the answer. Knows texts that somebody formatted; runs nothing itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from engine.merge.conflict import FileConflict
from engine.merge.ideas import Idea, Rule
from engine.merge.linediff import LineChange
from engine.merge.text import ConflictHunk, HunkKey, Lines, merge_texts, split_lines


class Formatted(NamedTuple):
    """The three versions of a file as a command writes them."""

    by: str
    base: bytes
    target: bytes
    incoming: bytes


def formatted_ideas(conflict: FileConflict, found: Formatted) -> Mapping[HunkKey, Idea]:
    """Return an idea for each hunk that is none between the formatted versions.

    A hunk has one only where the lines around it are those of the formatted result too.
    """
    text = conflict.text
    if text is None:
        return {}
    merged = merge_texts(found.base, found.target, found.incoming, differ=conflict.differ)
    with_places = split_lines(text.render(_place))
    result = split_lines(merged.render(_place))
    left = {_place(hunk) for hunk in merged.hunks}
    reason = _reason(found)
    changes = conflict.differ(with_places, result)
    places = {_place(hunk): hunk for hunk in text.hunks}
    return {
        places[with_places[change.before]].key: Idea(Rule.FORMATTED, made, reason, "formatted")
        for change in changes
        if (made := _instead(change, with_places, result)) is not None
        and with_places[change.before] in places
        and not left.intersection(split_lines(made))
    }


def _instead(change: LineChange, before: Lines, after: Lines) -> bytes | None:
    """Return what stands where one line stood; None where more than one was changed."""
    if change.before_end != change.before + 1 or change.before >= len(before):
        return None
    return b"".join(after[change.after : change.after_end])


def _place(hunk: ConflictHunk) -> bytes:
    """Return a line that no text has, to stand for a hunk."""
    return b"\0%s\n" % hunk.key.encode()


def _reason(found: Formatted) -> str:
    names = {"incoming": found.target, "target": found.incoming}
    other = next((side for side, text in names.items() if text == found.base), None)
    if other is None:
        return f"no conflict remains after formatting with `{found.by}`; a guess"
    only = "target" if other == "incoming" else "incoming"
    return f"the {only} side only reformatted; the {other} side, formatted by `{found.by}`; a guess"
