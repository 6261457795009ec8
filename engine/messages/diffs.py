"""A change as a diff of plain data: files, hunks, lines, and the key that a hunk is known by."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from engine.values import dataclass


class Sign(StrEnum):
    """The fate of a line: kept, added or removed."""

    KEPT = " "
    ADDED = "+"
    REMOVED = "-"


class FileKind(StrEnum):
    """The fate of a file."""

    MODIFIED = "modified"
    ADDED = "added"
    DELETED = "deleted"
    RENAMED = "renamed"
    MODE = "mode"
    BINARY = "binary"
    LINK = "link"
    SUBMODULE = "submodule"


@dataclasses.dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a hunk and its numbers on both sides; only a file's last may lack its end.

    Bytes that are no UTF-8 are in its text as `os.fsdecode` has them in names.
    """

    sign: Sign
    text: str
    old: int | None = None
    new: int | None = None
    has_newline: bool = True


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """Changed lines with some context; `where` is the function or heading they stand in."""

    lines: tuple[DiffLine, ...]
    where: str = ""

    @cached_property
    def added(self) -> int:
        """Return how many lines the hunk adds."""
        return sum(line.sign is Sign.ADDED for line in self.lines)

    @cached_property
    def removed(self) -> int:
        """Return how many lines the hunk removes."""
        return sum(line.sign is Sign.REMOVED for line in self.lines)

    @cached_property
    def is_blank_only(self) -> bool:
        """Return whether the hunk changes nothing but white space."""
        sides = [
            "".join("".join(line.text.split()) for line in self.lines if line.sign is sign)
            for sign in (Sign.REMOVED, Sign.ADDED)
        ]
        return sides[0] == sides[1]


@dataclass(frozen=True, kw_only=True)
class FileDiff:
    """One file of a change. `note` says what a diff cannot show: a size, a mode, a target.

    Attributes:
        is_binary: Its content is no text: no line of it is here.
        is_picture: It is, or was, a picture; `note` says of what size.
        is_cut: It changes more than is here.
        added_in_all: The lines it adds where not all of them are here; None where they are.
        removed_in_all: Likewise.
    """

    HUGE: ClassVar[int] = 10_000
    """More changed lines than this are shown only to whoever asks for them."""

    path: str
    kind: FileKind = FileKind.MODIFIED
    old_path: str = ""
    hunks: tuple[Hunk, ...] = ()
    is_generated: bool = False
    is_binary: bool = False
    is_picture: bool = False
    is_cut: bool = False
    note: str = ""
    added_in_all: int | None = None
    removed_in_all: int | None = None

    @property
    def is_huge(self) -> bool:
        """Return whether the file has too many lines to read one by one."""
        return self.added + self.removed > self.HUGE

    @cached_property
    def added(self) -> int:
        """Return how many lines it adds, shown or not."""
        here = sum(hunk.added for hunk in self.hunks)
        return here if self.added_in_all is None else self.added_in_all

    @cached_property
    def removed(self) -> int:
        """Return how many lines it removes, shown or not."""
        here = sum(hunk.removed for hunk in self.hunks)
        return here if self.removed_in_all is None else self.removed_in_all


@dataclass(frozen=True, kw_only=True)
class FileSides:
    """A file of a change, whole: as it was and as it is; None where it was not or is not there.

    Attributes:
        is_cut: It is too large to be here, on one side or both.
    """

    path: str
    old: bytes | None = None
    new: bytes | None = None
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True)
class ChangeDiff:
    """A change as a diff against something else.

    Attributes:
        against: What that is, in words.
        is_live: It is what a worker that still runs has written so far.
        head: The commit or tree that it leads to: what a later look can be compared with.
        context: So many lines round every change are there, as far as the file has them.
        result: The tree that landing it would make, where it is held against its target.
    """

    against: str
    files: tuple[FileDiff, ...] = ()
    is_live: bool = False
    head: str = ""
    context: int = 3
    result: str = ""

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Return the key of every hunk, per file."""
        return tuple(
            _told_apart([hunk_key(file, hunk) for hunk in file.hunks]) for file in self.files
        )

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Return the name of every file as it is, also where `files` are cleaned for a screen."""
        return tuple(file.path for file in self.files)

    @property
    def hunks(self) -> int:
        """Return how many hunks there are."""
        return sum(len(file.hunks) for file in self.files)


def _told_apart(keys: Sequence[str]) -> tuple[str, ...]:
    """Number equal keys: the same change in two places is two hunks, each to be seen."""
    times: Counter[str] = Counter()
    apart = []
    for key in keys:
        apart.append(f"{key}#{times[key]}" if times[key] else key)
        times[key] += 1
    return tuple(apart)


def keys_of(diff: ChangeDiff, index: int) -> tuple[str, ...]:
    """Return the keys that a file of a change is seen by: its hunks', or its own without any."""
    return diff.keys[index] or (file_key(diff.files[index]),)


def file_key(file: FileDiff) -> str:
    """Return a key for a file of a change that has no hunks to name."""
    from hashlib import blake2b  # noqa: PLC0415  OpenSSL costs 3 ms

    return blake2b(f"{file.path}\0".encode(errors="surrogatepass"), digest_size=12).hexdigest()


def hunk_key(file: FileDiff, hunk: Hunk) -> str:
    """Return a hunk's key: its path and what it changes, wherever it stands in the file.

    A live edit elsewhere moves a hunk and leaves it seen; an edit inside makes it new again.
    """
    from hashlib import blake2b  # noqa: PLC0415  OpenSSL costs 3 ms

    digest = blake2b(file.path.encode(errors="surrogatepass"), digest_size=12)
    for line in hunk.lines:
        if line.sign is not Sign.KEPT:
            digest.update(f"\0{line.sign}{line.text}".encode(errors="surrogatepass"))
    return digest.hexdigest()
