"""What is decided about one path, and what it leaves in the tree.

Knows one conflict and the decisions for it. How they came about is `engine.merge.session`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.merge.choices import Choice, text_of
from engine.merge.conflict import FileConflict, Side
from engine.merge.journal import (
    Entry,
    FileOpened,
    FileSet,
    HunksChosen,
    HunksOpened,
    ModeChosen,
    PlaceChosen,
    WholeChosen,
)
from engine.merge.text import Hunk, HunkKey
from engine.merge.whole import FileResult, Place, Whole, gone, option


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """The decisions for one path. A whole version or an own file stands above the hunks."""

    hunks: Mapping[HunkKey, Choice] = field(default_factory=dict)
    whole: Whole | None = None
    mode: str | None = None
    place: Place | None = None
    own: FileSet | None = None

    def after(self, path: bytes, entry: Entry) -> "Resolution":
        """The decisions for `path` when this entry, which names it, has been made."""
        match entry:
            case HunksChosen():
                chosen = {at.key: entry.choice for at in entry.at if at.path == path}
                return replace(self, hunks={**self.hunks, **chosen}, whole=None, own=None)
            case HunksOpened():
                opened = {at.key for at in entry.at if at.path == path}
                left = {key: made for key, made in self.hunks.items() if key not in opened}
                return replace(self, hunks=left, whole=None, own=None)
            case WholeChosen():
                return replace(self, whole=entry.choice, own=None)
            case ModeChosen():
                return replace(self, mode=entry.mode, own=None)
            case PlaceChosen():
                return replace(self, place=entry.place, own=None)
            case FileSet():
                return replace(self, own=entry)
            case FileOpened():
                return Resolution()


def open_hunks(conflict: FileConflict, decided: Resolution) -> tuple[Hunk, ...]:
    """The hunks that are still to be decided."""
    if decided.own or decided.whole:
        return ()
    return tuple(hunk for hunk in conflict.open.hunks if hunk.key not in decided.hunks)


def is_resolved(conflict: FileConflict, decided: Resolution) -> bool:
    """Nothing about this path is open."""
    if decided.own or decided.whole:
        return True
    needs = conflict.open
    return not (
        needs.whole
        or (needs.mode and decided.mode is None)
        or (needs.place and decided.place is None)
        or open_hunks(conflict, decided)
    )


def results(conflict: FileConflict, decided: Resolution) -> tuple[FileResult, ...] | None:
    """What the tree has at every path of this conflict, or None while something is open."""
    if not is_resolved(conflict, decided):
        return None
    if decided.own:
        return _own(conflict, decided.own)
    if decided.whole:
        chosen = option(conflict, decided.whole)
        return chosen.results if chosen else None
    return _merged(conflict, decided)


def _own(conflict: FileConflict, own: FileSet) -> tuple[FileResult, ...]:
    if own.content is None:
        return gone(conflict)
    return (FileResult(own.path, own.mode, own.content), *gone(conflict, own.path))


def _merged(conflict: FileConflict, decided: Resolution) -> tuple[FileResult, ...]:
    """The merged text, or the one content both agree on, at the place that was decided."""
    content, blob = _content(conflict, decided)
    mode = decided.mode or conflict.mode.resolved
    paths = _paths(conflict, decided.place)
    placed = tuple(FileResult(path, mode, content, blob) for path in paths)
    return (*placed, *gone(conflict, *paths))


def _content(conflict: FileConflict, decided: Resolution) -> tuple[bytes | None, str | None]:
    text = conflict.text
    if text is not None:
        return text.render(lambda hunk: text_of(hunk, decided.hunks[hunk.key]) or b""), None
    blob = conflict.blob.resolved
    sides = (conflict.base, conflict.target, conflict.incoming)
    same = next((side for side in sides if side and side.blob == blob), None)
    return (same.content if same else None), blob


def _paths(conflict: FileConflict, place: Place | None) -> tuple[bytes, ...]:
    target = _path(conflict, conflict.target)
    incoming = _path(conflict, conflict.incoming)
    match place:
        case None:
            return (conflict.path,)
        case Place.TARGET:
            return (target,)
        case Place.INCOMING:
            return (incoming,)
        case Place.BOTH:
            return tuple(dict.fromkeys((target, incoming)))


def _path(conflict: FileConflict, side: Side | None) -> bytes:
    return side.path if side else conflict.path
