"""Copy trees: regular files, links as links, and folders; sparse files stay sparse.

What stands in the target stays. What is no file, folder or link is refused, as is all that lies
beyond the bounds. Source and target may both be changed while the copy runs: whatever is swapped,
nothing is read or written outside the two roots.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.beneath.opening import (
    Name,
    PathRefused,
    RefusedError,
    Why,
    folder_beneath,
    open_file,
    parts_of,
    refusal,
    root_folder,
)
from engine.beneath.walking import Bounds
from engine.beneath.writing import file_over, new_file

_FICLONE = 0x40049409
"""The ioctl that shares a file's blocks where the file system can (Btrfs, XFS, bcachefs)."""
_PIECE = 1 << 20
_MODES = 0o777
"""The bits of a mode that are copied: nothing becomes set-user-id by being copied."""
_UNSHARED = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF})
_Parts = tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True)
class Copied:
    """The outcome of a copy.

    Attributes:
        files: The files and links that were copied, by their paths in the target.
        refused: What was left out, by its path in the source.
        size: Bytes that were copied; the gaps of sparse files count nothing.
    """

    files: tuple[bytes, ...] = ()
    refused: tuple[PathRefused, ...] = ()
    size: int = 0


def copy_tree(
    source: Name,
    names: Iterable[Name],
    target: Name,
    *,
    bounds: Bounds | None = None,
    is_closed: bool = False,
    is_over: bool = False,
) -> Copied:
    """Copy what the names stand for from beneath one root to the same names beneath another.

    The empty name stands for everything. With `is_closed`, links that lead out of the source by
    their wording are refused. With `is_over`, files that stand in the target are written anew.

    Raises:
        OSError: The target's disk is full.
    """
    how = _Manner(bounds or Bounds(), is_closed=is_closed, is_over=is_over)
    return _copied(source, ((name, name) for name in names), target, how)


def copy_as(
    source: Name, name: Name, target: Name, new_name: Name, *, bounds: Bounds | None = None
) -> Copied:
    """Copy one file, link or folder to another name beneath another root.

    Raises:
        OSError: The target's disk is full.
    """
    return _copied(source, [(name, new_name)], target, _Manner(bounds or Bounds()))


@dataclass(frozen=True, slots=True)
class _Manner:
    """The bounds of a copy, and what it does about links out of the source and files in the way."""

    bounds: Bounds
    is_closed: bool = False
    is_over: bool = False


def _copied(source: Name, pairs: Iterable[tuple[Name, Name]], target: Name, how: _Manner) -> Copied:
    try:
        with root_folder(source) as here, root_folder(target) as there:
            copy = _Copy(here, there, how)
            for name, new_name in pairs:
                copy.take(name, new_name)
            return copy.finished()
    except RefusedError as error:  # one of the roots is not there, or no folder
        return Copied(refused=(error.refused,))


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that is still to be copied."""

    source: _Parts
    target: _Parts


@dataclass(slots=True)
class _Copy:
    """One copy under way, with what it came to so far."""

    here: int
    there: int
    how: _Manner
    files: list[bytes] = field(default_factory=list)
    refused: list[PathRefused] = field(default_factory=list)
    entries: int = 0
    size: int = 0
    made: list[tuple[_Parts, os.stat_result]] = field(default_factory=list)

    def take(self, name: Name, new_name: Name) -> None:
        """Copy one thing with all that lies beneath it."""
        try:
            source, target = parts_of(name), parts_of(new_name)
            if source:
                found = self._copy_named(source, target)
                waiting = [_Folder(source, target)] if found else []
            else:
                waiting = [_Folder((), target)]
        except RefusedError as error:
            self.refused.append(error.refused)
            return
        while waiting:
            waiting += self._copy_inside(waiting.pop())

    def finished(self) -> Copied:
        """Give folders their modes and times, the innermost first, and say what was copied."""
        for parts, found in reversed(self.made):
            try:
                with folder_beneath(self.there, parts) as folder:
                    os.utime(folder, ns=(found.st_atime_ns, found.st_mtime_ns))
                    os.fchmod(folder, stat.S_IMODE(found.st_mode) & _MODES)
            except (RefusedError, OSError):
                continue  # somebody else has changed it: it is theirs now
        return Copied(files=tuple(self.files), refused=tuple(self.refused), size=self.size)

    def _copy_named(self, source: _Parts, target: _Parts) -> bool:
        """Copy what one name stands for; tell if it is a folder whose contents are to follow."""
        with (
            folder_beneath(self.here, source[:-1]) as here,
            folder_beneath(self.there, target[:-1], is_made=True) as there,
        ):
            return self._copy_entry((here, source), (there, target))

    def _copy_inside(self, waiting: _Folder) -> list[_Folder]:
        """Copy what lies in a folder; return the folders in it."""
        if len(waiting.source) >= self.how.bounds.depth:
            self.refused.append(PathRefused(b"/".join(waiting.source), Why.TOO_DEEP))
            return []
        inner: list[_Folder] = []
        try:
            with (
                folder_beneath(self.here, waiting.source) as here,
                folder_beneath(self.there, waiting.target, is_made=True) as there,
                os.scandir(here) as entries,
            ):
                for entry in entries:
                    name = os.fsencode(entry.name)
                    below = _Folder((*waiting.source, name), (*waiting.target, name))
                    if self._copy_entry((here, below.source), (there, below.target)):
                        inner.append(below)
                    if self.entries > self.how.bounds.entries:
                        break
        except RefusedError as error:
            self.refused.append(error.refused)
        return inner

    def _copy_entry(self, source: tuple[int, _Parts], target: tuple[int, _Parts]) -> bool:
        """Copy one entry of an opened folder; tell if it is a folder that is to be entered."""
        here, parts = source
        self.entries += 1
        if self.entries > self.how.bounds.entries:
            if self.entries == self.how.bounds.entries + 1:
                self._refuse(parts, Why.TOO_MANY)
            return False
        try:
            found = os.stat(parts[-1], dir_fd=here, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                self._make_folder(target, found)
                return True
            self._copy_one(source, target, found.st_mode)
        except RefusedError as error:
            self.refused.append(error.refused)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise
            self.refused.append(refusal([b"/".join(parts)], error))
        else:
            self.files.append(b"/".join(target[1]))
        return False

    def _copy_one(self, source: tuple[int, _Parts], target: tuple[int, _Parts], mode: int) -> None:
        (here, parts), (there, goal) = source, target
        if stat.S_ISLNK(mode):
            to = os.readlink(parts[-1], dir_fd=here)
            if self.how.is_closed and leads_out(parts, to):
                raise RefusedError(PathRefused(b"/".join(parts), Why.LEADS_OUT))
            os.symlink(to, goal[-1], dir_fd=there)
        elif stat.S_ISREG(mode):
            self._copy_file(source, target)
        else:
            raise RefusedError(PathRefused(b"/".join(parts), Why.NOT_A_FILE))

    def _make_folder(self, target: tuple[int, _Parts], found: os.stat_result) -> None:
        there, parts = target
        try:
            os.mkdir(parts[-1], 0o700, dir_fd=there)
        except FileExistsError:
            kind = os.stat(parts[-1], dir_fd=there, follow_symlinks=False).st_mode
            if not stat.S_ISDIR(kind):
                raise RefusedError(PathRefused(b"/".join(parts), Why.BEHIND_LINK)) from None
        else:
            self.made.append((parts, found))

    def _copy_file(self, source: tuple[int, _Parts], target: tuple[int, _Parts]) -> None:
        (here, parts), (there, goal) = source, target
        descriptor = open_file(parts[-1], here)
        try:
            found = os.fstat(descriptor)
            if self.size + found.st_blocks * 512 > self.how.bounds.size:
                raise RefusedError(PathRefused(b"/".join(parts), Why.TOO_BIG))
            opened = file_over if self.how.is_over else new_file
            with opened(there, goal[-1], 0o600) as copy:
                self.size += _copy_bytes(descriptor, copy, found.st_size)
                os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
                os.fchmod(copy, stat.S_IMODE(found.st_mode) & _MODES)
        finally:
            os.close(descriptor)

    def _refuse(self, parts: _Parts, why: Why) -> None:
        self.refused.append(PathRefused(b"/".join(parts), why))


def leads_out(parts: Sequence[bytes], to: bytes) -> bool:
    """Tell if a link leads out of the tree by its wording, wherever its way may lie."""
    if to.startswith(b"/"):
        return True
    depth = len(parts) - 1
    for step in to.split(b"/"):
        depth += {b"": 0, b".": 0, b"..": -1}.get(step, 1)
        if depth < 0:
            return True
    return False


def _copy_bytes(source: int, target: int, size: int) -> int:
    """Copy the data and leave the gaps; return how many bytes of data there were."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        pass
    else:
        return os.fstat(target).st_blocks * 512
    copied = 0
    pieces = list(_data(source, size))
    if pieces != [(0, size)]:
        os.ftruncate(target, 0)  # where the source has a hole, nothing of a file before may stay
    for begin, end in pieces:
        _copy_range(source, target, begin, end)
        copied += end - begin
    if os.fstat(target).st_size != size:  # truncating makes some file systems write at once
        os.ftruncate(target, size)
    return copied


def _data(source: int, size: int) -> Iterable[tuple[int, int]]:
    """Tell where a file has data, as far as the size it had when it was opened."""
    begin = 0
    while begin < size:
        try:
            begin = os.lseek(source, begin, os.SEEK_DATA)
            end = min(os.lseek(source, begin, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            end = size  # the file system does not tell
        if begin >= end:
            return
        yield begin, end
        begin = end


def _copy_range(source: int, target: int, begin: int, end: int) -> None:
    while begin < end:
        try:
            done = os.copy_file_range(source, target, end - begin, begin, begin)
        except OSError as error:
            if error.errno not in _UNSHARED:
                raise
            done = _copy_piece(source, target, begin, end)
        if not done:
            return  # it has become shorter meanwhile
        begin += done


def _copy_piece(source: int, target: int, begin: int, end: int) -> int:
    data = os.pread(source, min(_PIECE, end - begin), begin)
    written = 0
    while written < len(data):
        written += os.pwrite(target, data[written:], begin + written)
    return written
