"""A path that could not be merged: its kind, its three versions, and what is open about it.

Knows versions as they stand in trees. What may be done about a conflict is `engine.merge.whole`.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from engine.merge.kinds import STYLE_KINDS, ConflictKind, kind_by_modes, kind_by_style
from engine.merge.linediff import LineDiff, diff
from engine.merge.terms import Merge
from engine.merge.text import ConflictHunk, TextMerge, is_binary, merge_texts

REGULAR, EXECUTABLE = "100644", "100755"

WHOLE_KINDS = frozenset(
    {
        ConflictKind.BINARY,
        ConflictKind.MODIFY_DELETE,
        ConflictKind.RENAME_DELETE,
        ConflictKind.DIRECTORY_FILE,
        ConflictKind.SYMLINK,
        ConflictKind.DISTINCT_TYPES,
        ConflictKind.SUBMODULE,
    }
)
"""Only whole versions can be chosen; lines are not what the sides disagree about."""

_MADE = re.compile(rb"^<{7,} Temporary merge branch 1(:.*)?\r?$", re.MULTILINE)
"""The marker that git puts into a base that it makes of several conflicting ancestors."""

PLACED_KINDS = frozenset({ConflictKind.RENAME_RENAME, ConflictKind.DIRECTORY_RENAME})
"""The kinds in which the file's path must be chosen as well as its content."""


@dataclass(frozen=True, kw_only=True)
class FileSide:
    """A file as one tree has it. `content` is None where nobody read it: a submodule, say."""

    path: bytes
    mode: str
    blob: str
    content: bytes | None = field(default=None, repr=False)

    @property
    def is_file(self) -> bool:
        """A regular file, executable or not."""
        return self.mode in (REGULAR, EXECUTABLE)


class SideNames(NamedTuple):
    """The names of the two sides on screen: branches or workers."""

    target: str = "target"
    incoming: str = "incoming"


class OpenDecisions(NamedTuple):
    """The decisions still open: the whole file, its mode, its place, or these hunks."""

    whole: bool
    mode: bool
    place: bool
    hunks: tuple[ConflictHunk, ...]


@dataclass(frozen=True, kw_only=True)
class FileConflict:
    """One conflict of a merge; a side is None where that tree has no such file.

    `path` names the conflict and stays the same however the files are called; it is never one of
    the names that git invents to keep colliding files apart. `held` are names of this file at which
    the merge has another one, or a folder, which no choice may take away. `below` are the files of
    the folder that collides with a file. `moved_to` is where most of a deleted file's text is to
    be found on the side that deleted it. `free_path` is one that no tree uses, for keeping both
    versions. Whoever has git at hand fills these; without them the choices that need them are not
    offered.
    """

    path: bytes
    kind: ConflictKind
    base: FileSide | None
    target: FileSide | None
    incoming: FileSide | None
    names: SideNames = SideNames("target", "incoming")  # noqa: RUF009 - a tuple cannot be changed
    held: tuple[bytes, ...] = ()
    below: tuple[bytes, ...] = ()
    moved_to: FileSide | None = None
    free_path: bytes | None = None
    differ: LineDiff = field(default=diff, repr=False, compare=False)

    def told_exactly(self) -> "FileConflict":
        """The same conflict with the most exact kind that its versions show."""
        if self.target is None or self.incoming is None:
            return self
        base, target, incoming = self.base, self.target, self.incoming
        kind = kind_by_modes(self.kind, (base.mode if base else None, target.mode, incoming.mode))
        same = target.blob == incoming.blob
        if same and target.is_file and incoming.is_file and kind not in PLACED_KINDS:
            kind = ConflictKind.MODE if target.mode != incoming.mode else kind
        elif target.is_file and target.content is not None and incoming.content is not None:
            kind = kind_by_style(
                kind, base.content if base else None, target.content, incoming.content
            )
        if kind is ConflictKind.CONTENTS and _any_binary(base, target, incoming):
            kind = ConflictKind.BINARY
        return replace(self, kind=kind)

    @property
    def is_complaint(self) -> bool:
        """Git complains and has no version to choose: it left every file where it was."""
        return not (self.base or self.target or self.incoming or self.below)

    @cached_property
    def is_base_made(self) -> bool:
        """Git made the base of several ancestors that conflict: nobody ever had this text."""
        content = self.base.content if self.base else None
        return content is not None and _MADE.search(content) is not None

    def home_of(self, side: FileSide) -> bytes:
        """Return the path of a side's version: its own, unless the merge has another file there."""
        return self.path if side.path in self.held else side.path

    @cached_property
    def text(self) -> TextMerge | None:
        """The three texts aligned, where lines can be compared."""
        if self.kind in WHOLE_KINDS or self.target is None or self.incoming is None:
            return None
        if not (self.target.is_file and self.incoming.is_file):
            return None
        target, incoming = self.target.content, self.incoming.content
        base = self.base.content if self.base else b""
        if base is None or target is None or incoming is None:
            return None
        if any(map(is_binary, (base, target, incoming))):
            return None
        return merge_texts(base, target, incoming, differ=self.differ)

    @property
    def hunks(self) -> tuple[ConflictHunk, ...]:
        """The places in the text where both sides differ; none where lines cannot be compared."""
        return self.text.hunks if self.text else ()

    @property
    def mode(self) -> Merge[str | None]:
        """The mode of the merged file, resolved where only one side changed it."""
        return Merge.three(
            base=self.base.mode if self.base else None,
            target=self.target.mode if self.target else None,
            incoming=self.incoming.mode if self.incoming else None,
        ).settle()

    @property
    def blob(self) -> Merge[str | None]:
        """The content of the merged file by its id, resolved where only one side changed it."""
        return Merge.three(
            base=self.base.blob if self.base else None,
            target=self.target.blob if self.target else None,
            incoming=self.incoming.blob if self.incoming else None,
        ).settle()

    @cached_property
    def open(self) -> OpenDecisions:
        """The decisions that this path waits for before it can be landed.

        A conflict that git sees and the aligned lines do not (git aligned them otherwise) is not
        passed over: the whole file then waits to be confirmed.
        """
        unread = self.text is None and not self.blob.is_resolved
        if self.kind in WHOLE_KINDS or unread or self.is_complaint:
            return OpenDecisions(whole=True, mode=False, place=False, hunks=())
        place = self.kind in PLACED_KINDS
        mode = not self.mode.is_resolved
        unseen = not (self.hunks or place or mode)
        whole = self.kind in STYLE_KINDS or unseen
        return OpenDecisions(whole=whole, mode=mode, place=place, hunks=() if whole else self.hunks)

    @property
    def fingerprint(self) -> str:
        """Names what the sides have here; a decision for the whole file holds while it is equal."""
        sides = (self.base, self.target, self.incoming)
        shown = (f"{side.path.hex()}:{side.mode}:{side.blob}" if side else "none" for side in sides)
        return f"{self.kind} {' '.join(shown)}"


def _any_binary(*sides: FileSide | None) -> bool:
    return any(is_binary(side.content) for side in sides if side and side.content is not None)
