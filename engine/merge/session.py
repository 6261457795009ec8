"""A review in progress: the conflicts, everything decided so far, and the way back.

A session is a value. Each decision makes the next session; nothing is ever overwritten, so undo is
exact, and what is written to disk is the journal and nothing else. Knows no disk itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from engine.errors import WorkspaceError
from engine.merge.adopting import has_markers
from engine.merge.choices import Choice, Pick, choice_of, text_of
from engine.merge.conflict import EXECUTABLE, REGULAR, FileConflict
from engine.merge.editing import check_markers, keys_marked, written
from engine.merge.journal import (
    Entry,
    FileOpened,
    FileSet,
    HunkAt,
    HunksChosen,
    HunksOpened,
    HunksWritten,
    ModeChosen,
    PlaceChosen,
    WholeChosen,
    entry_from_json,
    entry_to_json,
)
from engine.merge.resolution import Resolution, edit_text, is_resolved, open_hunks, results
from engine.merge.text import ConflictHunk, HunkKey, Piece, split_lines
from engine.merge.threeway import Origin
from engine.merge.whole import FilePlace, FileResult, Whole, option, options, shown

_VERSION = 1
_LINK = "120000"


class Carried(NamedTuple):
    """The fate of decisions when the merge was made again.

    `kept` still stand. `opened` are to be decided anew, because what they were decided about is no
    longer there as it was. `to_look_at` are files that a human wrote where the merge has no
    conflict: they are kept, but nobody has compared them with the new merge.
    """

    kept: tuple[HunkAt | bytes, ...]
    opened: tuple[HunkAt | bytes, ...]
    to_look_at: tuple[bytes, ...]


@dataclass(frozen=True)
class ResolutionSession:
    """The conflicts of one merge and the decisions about them.

    `journal` is what was decided, oldest first; `undone` what was taken back, the next to be made
    again last. A new decision forgets `undone`. A decision that cannot be carried out raises
    ValueError or KeyError and changes nothing.
    """

    conflicts: tuple[FileConflict, ...]
    journal: tuple[Entry, ...] = ()
    undone: tuple[Entry, ...] = field(default=(), repr=False)

    @cached_property
    def _by_path(self) -> Mapping[bytes, FileConflict]:
        return {conflict.path: conflict for conflict in self.conflicts}

    @cached_property
    def resolutions(self) -> Mapping[bytes, Resolution]:
        """The decisions by path; a path without any is not there."""
        found: dict[bytes, Resolution] = {}
        for entry in self.journal:
            for path in _paths(entry):
                found[path] = found.get(path, Resolution()).after(path, entry)
        return found

    def conflict(self, path: bytes) -> FileConflict:
        """The conflict of this path; KeyError where there is none."""
        return self._by_path[path]

    # Deciding

    def choose(
        self, path: bytes, key: HunkKey | int, choice: Choice | str | bytes
    ) -> "ResolutionSession":
        """Decide one hunk, named by its key or counted from 0."""
        hunk = self._hunk(path, key)
        return self._choose([(path, hunk)], choice_of(choice))

    def choose_rest(
        self, choice: Choice | str, paths: Iterable[bytes] | None = None
    ) -> "ResolutionSession":
        """Decide whatever is still open in these files, or in all, and can be decided so.

        Hunks that are decided already stay as they are, and so do those that the choice does not
        fit: words are combined where no word was changed by both.
        """
        made = choice_of(choice)
        wanted = [
            (path, hunk)
            for path in (self._by_path if paths is None else paths)
            for hunk in self.open_hunks(path)
            if text_of(hunk, made) is not None and not self._is_of_made_base(path, made)
        ]
        return self._choose(wanted, made) if wanted else self

    def reopen(self, path: bytes, key: HunkKey | int | None = None) -> "ResolutionSession":
        """Take back what is decided for one hunk, or for the whole path."""
        if key is None:
            return self._with(FileOpened(path))
        return self._with(HunksOpened((HunkAt(path, self._hunk(path, key).key),)))

    def choose_whole(self, path: bytes, choice: Whole | str) -> "ResolutionSession":
        """Decide a whole path."""
        conflict, whole = self.conflict(path), Whole(choice)
        if option(conflict, whole) is None:
            raise ValueError(f"{whole!r} is not a choice for a conflict of {conflict.kind}")
        return self._with(WholeChosen(path, conflict.fingerprint, whole))

    def choose_mode(self, path: bytes, mode: str) -> "ResolutionSession":
        """Decide the mode of a file: 100644 or 100755."""
        if mode not in (REGULAR, EXECUTABLE):
            raise ValueError(f"not a mode of a regular file: {mode!r}")
        return self._with(ModeChosen(path, self.conflict(path).fingerprint, mode))

    def choose_place(self, path: bytes, place: FilePlace | str) -> "ResolutionSession":
        """Decide where a file that both sides moved is to lie."""
        conflict = self.conflict(path)
        if not conflict.open.place:
            raise ValueError(f"a conflict of {conflict.kind} has only one place")
        return self._with(PlaceChosen(path, conflict.fingerprint, FilePlace(place)))

    def set_file(
        self, path: bytes, content: bytes | None, *, mode: str = REGULAR
    ) -> "ResolutionSession":
        """Put this content at a path, conflicted or not; None deletes it.

        Hunks that stand in it between the markers of `edit_text` are open.
        """
        if mode not in (REGULAR, EXECUTABLE, _LINK):
            raise ValueError(f"not a mode of a file: {mode!r}")
        self._check_markers(path, content or b"")
        return self._with(FileSet(path, self._fingerprint(path), content, mode))

    def made(
        self, path: bytes, content: bytes, *, by: str, basis: str, mode: str = REGULAR
    ) -> "ResolutionSession":
        """Put what a command made at a path; `basis` names what it made it from.

        The mode is the one that is decided, or else the one that the merge gave; `mode` counts
        where the file is in no conflict.
        """
        if has_markers(content):
            raise ValueError("it has conflict markers")
        conflict = self._by_path.get(path)
        if conflict is not None:
            target = conflict.target.mode if conflict.target else REGULAR
            mode = self._decided(path).mode or conflict.mode.resolved or target
        if mode not in (REGULAR, EXECUTABLE):
            mode = REGULAR
        return self._with(FileSet(path, self._fingerprint(path), content, mode, by, basis))

    def edited(self, path: bytes, text: bytes) -> "ResolutionSession":
        """Take over what an editor made of `edit_text`.

        Where only open hunks were written, they are decided and everything else stays as it was;
        else the file is what the editor made it. Markers left are hunks left open, and a marker
        left alone is refused.
        """
        before = self.edit_text(path)
        if text == before:
            return self
        self._check_markers(path, text)
        decided = self._decided(path)
        plain = before is not None and not (decided.own or decided.whole)
        texts = written(before, text) if before is not None and plain else None
        if texts:
            return self._with(HunksWritten(path, tuple(texts.items())))
        return self.set_file(path, text, mode=self.conflict(path).mode.resolved or REGULAR)

    def undo(self) -> "ResolutionSession":
        """Take back the last decision; the same session where there is none."""
        if not self.journal:
            return self
        return ResolutionSession(
            self.conflicts, self.journal[:-1], (*self.undone, self.journal[-1])
        )

    def redo(self) -> "ResolutionSession":
        """Make the decision again that was taken back last."""
        if not self.undone:
            return self
        return ResolutionSession(self.conflicts, (*self.journal, self.undone[-1]), self.undone[:-1])

    # Looking

    @property
    def is_resolved(self) -> bool:
        """Nothing is open, in no file."""
        return all(self.is_file_resolved(path) for path in self._by_path)

    def is_file_resolved(self, path: bytes) -> bool:
        """Nothing is open in this file."""
        return is_resolved(self.conflict(path), self._decided(path))

    def open_hunks(self, path: bytes) -> tuple[ConflictHunk, ...]:
        """The hunks of this file that are still to be decided."""
        return open_hunks(self.conflict(path), self._decided(path))

    def chosen(self, path: bytes, key: HunkKey | int) -> Choice | None:
        """Return the decision for one hunk."""
        return self._decided(path).hunks.get(self._hunk(path, key).key)

    def file_results(self, path: bytes) -> tuple[FileResult, ...] | None:
        """Return the tree's entries at every path of this conflict; None while it is open."""
        return results(self.conflict(path), self._decided(path))

    def results(self) -> tuple[FileResult, ...] | None:
        """Return the tree's entries where git could not decide; None while anything is open.

        In order of path, each path once; files set by hand come last and so win.

        Raises:
            WorkspaceError: Two conflicts want different files at one path.
        """
        found: dict[bytes, FileResult] = {}
        for path in self._by_path:
            for result in self.file_results(path) or ():
                found[result.path] = _stronger(found.get(result.path), result)
        if not self.is_resolved:
            return None
        for path, decided in self.resolutions.items():
            if decided.own and path not in self._by_path:
                own = decided.own
                gone = own.content is None
                found[path] = FileResult(path, None if gone else own.mode, own.content)
        return tuple(found[path] for path in sorted(found))

    def edit_text(self, path: bytes) -> bytes | None:
        """The file as it stands, for an editor, open hunks between markers; None if no text."""
        return edit_text(self.conflict(path), self._decided(path))

    def preview(self, path: bytes) -> tuple[Piece, ...]:
        """The text of a file as it stands, in pieces; an open hunk shows its base.

        A whole version or an own file is one piece, with markers around what is open in it.
        """
        conflict, decided = self.conflict(path), self._decided(path)
        if decided.own or decided.whole:
            return (Piece(Origin.OWN, split_lines(self.edit_text(path) or b"")),)
        if conflict.text is None:
            return ()
        return tuple(_previewed(piece, decided) for piece in conflict.text.pieces)

    # Keeping

    def to_json(self) -> dict[str, object]:
        """The decisions as plain data for `json`; the conflicts are made again from git."""
        return {
            "version": _VERSION,
            "journal": [entry_to_json(entry) for entry in self.journal],
            "undone": [entry_to_json(entry) for entry in self.undone],
        }

    @classmethod
    def from_json(
        cls, data: Mapping[str, object], conflicts: Sequence[FileConflict]
    ) -> tuple["ResolutionSession", Carried]:
        """The session that was written, over the conflicts as they are now."""
        if data.get("version") != _VERSION:
            raise ValueError(f"a merge journal of version {data.get('version')!r}")
        journal, undone = data.get("journal"), data.get("undone")
        if not isinstance(journal, list) or not isinstance(undone, list):
            raise ValueError("a merge journal without its entries")  # noqa: TRY004 - it is data
        session = cls(
            tuple(conflicts),
            tuple(map(entry_from_json, journal)),
            tuple(map(entry_from_json, undone)),
        )
        return session.carried_to(conflicts)

    def carried_to(self, conflicts: Sequence[FileConflict]) -> tuple["ResolutionSession", Carried]:
        """These decisions over the conflicts of a merge made again, and what became of them."""
        fresh = ResolutionSession(tuple(conflicts))
        journal = tuple(kept for entry in self.journal if (kept := fresh._kept(entry)))
        undone = tuple(kept for entry in self.undone if (kept := fresh._kept(entry)))
        session = replace(fresh, journal=journal, undone=undone)
        before, after = set(_standing(self)), set(_standing(session))
        looked = {
            path
            for path, decided in session.resolutions.items()
            if decided.own and not decided.own.fingerprint
        }
        opened = sorted(before - after, key=repr)
        return session, Carried(
            tuple(sorted(after, key=repr)), tuple(opened), tuple(sorted(looked))
        )

    # Within

    def _decided(self, path: bytes) -> Resolution:
        return self.resolutions.get(path, Resolution())

    def _with(self, entry: Entry) -> "ResolutionSession":
        for path in _paths(entry):
            if path not in self._by_path and not isinstance(entry, FileSet | FileOpened):
                raise KeyError(path)
        return ResolutionSession(self.conflicts, (*self.journal, entry))

    def _choose(
        self, hunks: Sequence[tuple[bytes, ConflictHunk]], choice: Choice
    ) -> "ResolutionSession":
        if any(text_of(hunk, choice) is None for _, hunk in hunks):
            raise ValueError(f"{choice!r} does not fit this hunk")
        if any(self._is_of_made_base(path, choice) for path, _ in hunks):
            raise ValueError("this base has conflict markers: git merged it from several bases")
        return self._with(
            HunksChosen(tuple(HunkAt(path, hunk.key) for path, hunk in hunks), choice)
        )

    def _is_of_made_base(self, path: bytes, choice: Choice) -> bool:
        """Tell if this would put the markers of a base into the result that nobody wrote."""
        return choice is Pick.BASE and self.conflict(path).is_base_made

    def _fingerprint(self, path: bytes) -> str:
        conflict = self._by_path.get(path)
        return conflict.fingerprint if conflict else ""

    def _check_markers(self, path: bytes, text: bytes) -> None:
        check_markers(text)
        conflict = self._by_path.get(path)
        known = {hunk.key for hunk in conflict.open.hunks} if conflict else set()
        if not keys_marked(text) <= known:
            raise ValueError("the text has conflict markers that do not belong to this file")

    def _hunk(self, path: bytes, key: HunkKey | int) -> ConflictHunk:
        conflict = self.conflict(path)
        for place, hunk in enumerate(conflict.open.hunks):
            if key in (place, hunk.key):
                return hunk
        if not conflict.open.hunks:
            words = ", ".join(found.choice for found in options(conflict))
            raise ValueError(f"{shown(path)} has no hunks; choose a whole version: {words}")
        raise KeyError(key)

    def _kept(self, entry: Entry) -> Entry | None:
        """The entry as far as it speaks of what this session has."""
        match entry:
            case HunksChosen() | HunksOpened():
                at = tuple(hunk for hunk in entry.at if self._has(hunk))
                return replace(entry, at=at) if at else None
            case HunksWritten():
                texts = tuple(
                    (key, text) for key, text in entry.texts if self._has(HunkAt(entry.path, key))
                )
                return replace(entry, texts=texts) if texts else None
            case FileOpened():
                return entry
            case _:
                return entry if self._is_about_the_same(entry) else None

    def _is_about_the_same(self, entry: WholeChosen | ModeChosen | PlaceChosen | FileSet) -> bool:
        conflict = self._by_path.get(entry.path)
        if conflict is None or conflict.fingerprint != entry.fingerprint:
            return conflict is None and not entry.fingerprint
        return not isinstance(entry, WholeChosen) or option(conflict, entry.choice) is not None

    def _has(self, at: HunkAt) -> bool:
        conflict = self._by_path.get(at.path)
        return conflict is not None and any(h.key == at.key for h in conflict.open.hunks)


def _paths(entry: Entry) -> tuple[bytes, ...]:
    """The paths that an entry speaks of, each once."""
    if isinstance(entry, HunksChosen | HunksOpened):
        return tuple(dict.fromkeys(at.path for at in entry.at))
    return (entry.path,)


def _standing(session: ResolutionSession) -> Iterator[HunkAt | bytes]:
    """Every hunk that is decided, and every path that is decided as a whole."""
    for path, decided in session.resolutions.items():
        if decided.whole or decided.own or decided.mode or decided.place:
            yield path
        yield from (HunkAt(path, key) for key in decided.hunks)


def _stronger(first: FileResult | None, second: FileResult) -> FileResult:
    """Return that of two results for a path which has a file there."""
    if first is None or first.mode is None:
        return second
    if second.mode is None or first == second:
        return first
    raise WorkspaceError(
        f"two choices put different files at {shown(second.path)}",
        hint="Choose another place for one of them.",
    )


def _previewed(piece: Piece, decided: Resolution) -> Piece:
    """A piece with the text that was decided for it."""
    hunk = piece.hunk
    choice = decided.hunks.get(hunk.key) if hunk else None
    text = text_of(hunk, choice) if hunk and choice else None
    return piece if text is None else piece._replace(lines=split_lines(text))
