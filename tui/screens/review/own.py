"""Words for a merge of the user's own: what its result is written to, and what is left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tui.words.clean import clean, clean_name
from tui.words.figures import some

if TYPE_CHECKING:
    from engine.api import ConflictView

_MOST_NAMED = 6


class _Purpose(NamedTuple):
    """Say what becomes of the result: as a verb's object, and as what was done."""

    writes: str
    written: str


_FILES = _Purpose("writes it to your files and stages it", "written to your files and staged")
_PURPOSES = {
    "mergetool": _Purpose("writes the result where git expects it", "written where git expects it"),
    "preview": _Purpose("writes a git tree, on no branch", "written as a git tree, on no branch"),
}


def writes(view: ConflictView) -> str:
    """Return what landing does, as a verb and its object."""
    return _PURPOSES.get(view.doing, _FILES).writes


def ended(view: ConflictView) -> list[str]:
    """Return what a shell shows at the end: what was written, and what is left to do."""
    if not view.is_finished:
        waiting = [file.path for file in view.files if not file.is_resolved]
        left = f"still open: {_named(waiting)}" if waiting else "everything is resolved"
        kept = " Your choices are kept: run the same command to continue."
        return [f"Nothing was written; {left}.{kept if view.decisions else ''}"]
    names = _named([file.path for file in view.files])
    said = [f"{names}: {_PURPOSES.get(view.doing, _FILES).written}."]
    return [*said, f"Next: {clean(view.next_step)}"] if view.next_step else said


def _named(paths: list[str]) -> str:
    named = [clean_name(path) for path in paths[:_MOST_NAMED]]
    more = len(paths) - len(named)
    return ", ".join([*named, f"{some(more, 'file')} more"] if more else named)
