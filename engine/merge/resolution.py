"""The decisions about one path, and what they leave in the tree.

Knows one conflict and the decisions for it. How they came about is `engine.merge.session`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from engine.merge.choices import Choice, OwnText, text_of
from engine.merge.conflict import FileConflict, FileSide
from engine.merge.editing import filled, marked
from engine.merge.journal import (
    Entry,
    FileOpened,
    FileSet,
    HunksChosen,
    HunksOpened,
    HunksWritten,
    ModeChosen,
    PlaceChosen,
    WholeChosen,
)
from engine.merge.text import ConflictHunk, HunkKey
from engine.merge.whole import FilePlace, FileResult, Whole, gone, option


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """The decisions for one path. A whole version or an own file stands above the hunks."""

    hunks: Mapping[HunkKey, Choice] = field(default_factory=dict)
    whole: Whole | None = None
    mode: str | None = None
    place: FilePlace | None = None
    own: FileSet | None = None

    def after(self, path: bytes, entry: Entry) -> "Resolution":
        """The decisions for `path` when this entry, which names it, has been made."""
        match entry:
            case HunksChosen() | HunksWritten() | HunksOpened():
                return self._after_hunks(path, entry)
            case WholeChosen():
                return replace(self, whole=entry.choice, own=None)
            case ModeChosen():
                return replace(self, mode=entry.mode, own=None)
            case PlaceChosen():
                return replace(self, place=entry.place, own=None)
            case FileSet():
                left = {key: made for key, made in self.hunks.items() if key not in entry.marked}
                return replace(self, own=entry, hunks=left)
            case FileOpened():
                return Resolution()

    def _after_hunks(
        self, path: bytes, entry: HunksChosen | HunksWritten | HunksOpened
    ) -> "Resolution":
        keys = {at.key for at in entry.at if at.path == path}
        match entry:
            case HunksChosen():
                return self._chosen(dict.fromkeys(keys, entry.choice))
            case HunksWritten():
                return self._chosen({key: OwnText(text) for key, text in entry.texts})
            case HunksOpened():
                left = {key: made for key, made in self.hunks.items() if key not in keys}
                return replace(self._above(keys), hunks=left)

    def _chosen(self, choices: Mapping[HunkKey, Choice]) -> "Resolution":
        return replace(self._above(choices), hunks={**self.hunks, **choices})

    def _above(self, keys: Iterable[HunkKey]) -> "Resolution":
        """Return the rest of a whole version or own file when these hunks are decided anew.

        An own file stays if it has a place for all of them.
        """
        stays = self.own is not None and self.own.marked.issuperset(keys)
        return replace(self, whole=None, own=self.own if stays else None)


def open_hunks(conflict: FileConflict, decided: Resolution) -> tuple[ConflictHunk, ...]:
    """The hunks that are still to be decided."""
    if decided.whole and not decided.own:
        return ()
    return tuple(
        hunk
        for hunk in conflict.open.hunks
        if hunk.key not in decided.hunks and (not decided.own or hunk.key in decided.own.marked)
    )


def is_resolved(conflict: FileConflict, decided: Resolution) -> bool:
    """Nothing about this path is open."""
    if decided.own:
        return not open_hunks(conflict, decided)
    if decided.whole:
        return True
    needs = conflict.open
    return not (
        needs.whole
        or (needs.mode and decided.mode is None)
        or (needs.place and decided.place is None)
        or open_hunks(conflict, decided)
    )


def edit_text(conflict: FileConflict, decided: Resolution) -> bytes | None:
    """The file for an editor, open hunks between markers; None where it is no text."""
    if decided.own:
        return _own_content(conflict, decided, decided.own)
    if decided.whole:
        done = results(conflict, decided) or ()
        return next((result.content for result in done if result.mode), None)
    if conflict.text is None:
        return None
    return conflict.text.render(
        lambda hunk: (
            _text(decided, hunk) if hunk.key in decided.hunks else marked(hunk, conflict.names)
        )
    )


def results(conflict: FileConflict, decided: Resolution) -> tuple[FileResult, ...] | None:
    """Return the tree's entries at every path of this conflict; None while something is open."""
    if not is_resolved(conflict, decided):
        return None
    if decided.own:
        return _own(conflict, decided, decided.own)
    if decided.whole:
        chosen = option(conflict, decided.whole)
        return chosen.results if chosen else None
    return _merged(conflict, decided)


def _own(conflict: FileConflict, decided: Resolution, own: FileSet) -> tuple[FileResult, ...]:
    content = _own_content(conflict, decided, own)
    if content is None:
        return gone(conflict)
    return (FileResult(own.path, own.mode, content), *gone(conflict, own.path))


def _own_content(conflict: FileConflict, decided: Resolution, own: FileSet) -> bytes | None:
    """The own file with what was decided since for hunks that stand open in it."""
    if own.content is None:
        return None
    hunks = {hunk.key: hunk for hunk in conflict.open.hunks if hunk.key in decided.hunks}
    return filled(own.content, {key: _text(decided, hunk) for key, hunk in hunks.items()})


def _text(decided: Resolution, hunk: ConflictHunk) -> bytes:
    return text_of(hunk, decided.hunks[hunk.key]) or b""


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
        return text.render(lambda hunk: _text(decided, hunk)), None
    blob = conflict.blob.resolved
    sides = (conflict.base, conflict.target, conflict.incoming)
    same = next((side for side in sides if side and side.blob == blob), None)
    return (same.content if same else None), blob


def _paths(conflict: FileConflict, place: FilePlace | None) -> tuple[bytes, ...]:
    target = _path(conflict, conflict.target)
    incoming = _path(conflict, conflict.incoming)
    match place:
        case None:
            return (conflict.path,)
        case FilePlace.TARGET:
            return (target,)
        case FilePlace.INCOMING:
            return (incoming,)
        case FilePlace.BOTH:
            return tuple(dict.fromkeys((target, incoming)))


def _path(conflict: FileConflict, side: FileSide | None) -> bytes:
    return conflict.home_of(side) if side else conflict.path
