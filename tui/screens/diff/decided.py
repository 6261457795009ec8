"""Tell who decided what of a merge: for each file, and for each place that was in conflict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tui.words.clean import clean_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.api import ConflictFileView, ConflictView

_SIDES = {"target": "the target's side", "incoming": "the incoming side", "own": "your own text"}


def who_decided(view: ConflictView) -> Mapping[str, str]:
    """Return, for each file of a merge, who decided what of it."""
    told = {clean_name(file.path): _decided(file) for file in view.files}
    for merged in view.merged:
        both = ", changed on both sides" if merged.by == "both" else ""
        told.setdefault(clean_name(merged.path), f"merged by git{both}")
    return told


def _decided(file: ConflictFileView) -> str:
    if not file.is_resolved:
        return "still in conflict"
    if file.is_edited:
        return "you edited it"
    if file.whole is not None:
        return f"you took {_SIDES.get(file.whole, file.whole)}"
    ways = Counter(hunk.source or hunk.choice or "" for hunk in file.hunks)
    if len(ways) == 1:
        (way,) = ways
        return f"you took {_SIDES.get(way, way)}" if way in _SIDES else f"you took {way}"
    return f"you took {', '.join(f'{way} {count}' for way, count in ways.items() if way)}"


def decided_places(view: ConflictView) -> Mapping[str, Sequence[tuple[int, str]]]:
    """Return, for each file, where the target's text was in conflict, and what was chosen there."""
    return {
        clean_name(file.path): [
            (hunk.line, hunk.source or _SIDES.get(hunk.choice or "", hunk.choice or "still open"))
            for hunk in file.hunks
        ]
        for file in view.files
    }
