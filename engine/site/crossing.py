"""Carry a folder to the other side of a pipe: listed once, then its bytes in pieces.

Both sides use the same functions. Sparse files stay sparse. The folder that something arrives in
is a new one of ours: links are made last, so that nothing is ever written through one.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from engine.beneath import Bounds, EntryKind, PathRefused, kind_of, list_tree, remove_tree
from engine.beneath.opening import RefusedError, parts_of
from engine.errors import WorkspaceError
from engine.private import private_folder
from engine.values import dataclass

_PIECE = 4 << 20
"""About how many bytes cross at once."""
_MODES = 0o777
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OVER = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True)
class CrossingEntry:
    """One file, folder or link of a folder that crosses.

    Attributes:
        link: Where a link leads, by its wording.
        data: Start and length of each part of a file that is no gap.
    """

    path: bytes
    kind: EntryKind
    mode: int
    mtime_ns: int
    size: int = 0
    link: bytes = b""
    data: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """A part of one file."""

    path: bytes
    at: int
    length: int


def listed(
    root: Path, *, bounds: Bounds | None = None, names: Collection[bytes] = ()
) -> tuple[CrossingEntry, ...]:
    """Return what a folder holds, each folder before what it contains; nothing if it is not there.

    With `names`, only these files at its top.

    Raises:
        OSError: It holds more than the bounds allow, or something that cannot be read.
    """
    if not root.is_dir():
        return ()
    if names:
        return tuple(_entry(root, name) for name in names if os.path.lexists(_at(root, name)))
    return tuple(_entry(root, path) for path in _paths(root, bounds))


def _paths(root: Path, bounds: Bounds | None) -> Iterator[bytes]:
    for one in list_tree(root, bounds=bounds):
        if isinstance(one, PathRefused):
            raise OSError(errno.EFBIG, one.reason, os.fsdecode(one.path))
        if one.kind is not EntryKind.OTHER:
            yield one.path


def _at(root: Path, name: bytes) -> bytes:
    return os.path.join(os.fsencode(root), *parts_of(name))  # noqa: PTH118  bytes in


def _entry(root: Path, name: bytes) -> CrossingEntry:
    path = _at(root, name)
    found = os.lstat(path)
    kind = kind_of(found.st_mode)
    is_file = kind is EntryKind.FILE
    return CrossingEntry(
        path=name,
        kind=kind,
        mode=stat.S_IMODE(found.st_mode) & _MODES,
        mtime_ns=found.st_mtime_ns,
        size=found.st_size if is_file else 0,
        link=os.readlink(path) if kind is EntryKind.LINK else b"",  # noqa: PTH115  bytes out
        data=tuple(_data(path, found.st_size)) if is_file else (),
    )


def _data(path: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Yield start and length of each part of a file that is no gap."""
    end = 0
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        while end < size:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = min(os.lseek(file, start, os.SEEK_HOLE), size)
            yield start, end - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # no more data: a hole at the end
            raise
    finally:
        os.close(file)


def pieces(entries: Iterable[CrossingEntry]) -> Iterator[tuple[Stretch, ...]]:
    """Yield what has to cross, about as much at once as is good for a pipe."""
    batch: list[Stretch] = []
    room = _PIECE
    for entry in entries:
        for start, length in entry.data:
            left = length
            while left:
                taken = min(room, left)
                batch.append(Stretch(path=entry.path, at=start + length - left, length=taken))
                left -= taken
                room -= taken
                if not room:
                    yield tuple(batch)
                    batch, room = [], _PIECE
    if batch:
        yield tuple(batch)


def read_pieces(root: Path, wanted: Sequence[Stretch]) -> bytes:
    """Return the bytes of pieces, one after the other.

    Raises:
        OSError: A file is not what it was.
    """
    return b"".join(_read(root, piece) for piece in wanted)


def _read(root: Path, piece: Stretch) -> bytes:
    file = os.open(_at(root, piece.path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        data = os.pread(file, piece.length, piece.at)
    finally:
        os.close(file)
    if len(data) != piece.length:
        raise OSError(errno.EIO, "the file became shorter meanwhile", os.fsdecode(piece.path))
    return data


def arriving_at(target: Path) -> Path:
    """Return the folder in which something arrives before it is put to its place."""
    return target.with_name(f".{target.name}.arriving")


def begin(root: Path, entries: Iterable[CrossingEntry]) -> None:
    """Make a folder anew with the folders and files that are to arrive, the files without data.

    Raises:
        WorkspaceError: A name leads out of the folder.
    """
    remove_tree(root)
    private_folder(root)
    for entry in entries:
        path = _inside(root, entry.path)
        is_folder = entry.kind is EntryKind.FOLDER
        folder = path if is_folder else os.path.dirname(path)  # noqa: PTH120  bytes in
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        if entry.kind is EntryKind.FILE:
            file = os.open(path, _NEW, 0o600)
            try:
                os.ftruncate(file, entry.size)
            finally:
                os.close(file)


def _inside(root: Path, name: bytes) -> bytes:
    try:
        return _at(root, name)
    except RefusedError as error:
        raise WorkspaceError(
            f"{os.fsdecode(name)!r} points outside the transferred files"
        ) from error


def write_pieces(root: Path, arriving: Sequence[Stretch], data: bytes) -> None:
    """Write the bytes of pieces to where they belong; writing them again is harmless."""
    start = 0
    for piece in arriving:
        file = os.open(_inside(root, piece.path), _OVER)
        try:
            os.pwrite(file, memoryview(data)[start : start + piece.length], piece.at)
        finally:
            os.close(file)
        start += piece.length


def settle(root: Path, entries: Sequence[CrossingEntry], target: Path) -> None:
    """Make the links, give all their modes and times, and put the folder to its place.

    What stands where a link should be stays.
    """
    for entry in entries:
        if entry.kind is EntryKind.LINK:
            with suppress(FileExistsError):  # made before this side died
                os.symlink(entry.link, _inside(root, entry.path))  # noqa: PTH211  bytes in
    for entry in reversed(entries):  # a folder may be closed only after what it holds
        path, times = _inside(root, entry.path), (entry.mtime_ns, entry.mtime_ns)
        if entry.kind is not EntryKind.LINK:
            os.chmod(path, entry.mode & _MODES)  # noqa: PTH101  bytes in
        os.utime(path, ns=times, follow_symlinks=False)
    if target.exists():
        remove_tree(target)
    private_folder(target.parent)
    root.rename(target)
