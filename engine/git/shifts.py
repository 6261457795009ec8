"""Single paths of a working tree as they stand: read, kept aside byte for byte, and put.

It knows files, links, folders and absence; git's view of them, filters and the index are for
others. Putting again from any point gives the same end, and no file is ever half written.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.errors import WorkspaceError
from engine.legible import legible_name

_PIECE = 1 << 20
_MOST = 20_000


class Kind(StrEnum):
    """The kinds of what can stand at a path."""

    NOTHING = "nothing"
    FILE = "file"
    LINK = "link"
    FOLDER = "folder"
    EMPTIED = "emptied"
    """A folder that goes with the last file in it, as git removes folders."""


@dataclass(frozen=True, slots=True)
class Stand:
    """One path as it stands: its kind, its mode, and a digest of its bytes or a link's wording."""

    kind: Kind
    mode: int = 0
    digest: str = ""
    leads_to: bytes = b""

    @property
    def is_leaf(self) -> bool:
        """Say if bytes of somebody's stand there."""
        return self.kind in {Kind.FILE, Kind.LINK}

    @property
    def git_mode(self) -> str:
        """Return the mode that git has for such a file or link."""
        if self.kind is Kind.LINK:
            return "120000"
        return "100755" if self.mode & stat.S_IXUSR else "100644"


NOTHING = Stand(Kind.NOTHING)


@dataclass(frozen=True, slots=True)
class Shift:
    """One path before a try and after it.

    Attributes:
        kept: The name under which the file before was kept aside.
    """

    path: bytes
    before: Stand
    after: Stand
    kept: str = ""


def full(root: str | Path, path: bytes) -> Path:
    """Return where a path of a working tree is."""
    return Path(root, os.fsdecode(path))


def parents(path: bytes) -> list[bytes]:
    """Return the folders that a path lies in, the outermost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def stand_of(root: str | Path, path: bytes) -> Stand:
    """Look at one path; what lies behind a link is not there.

    Raises:
        WorkspaceError: It is neither a file, nor a link, nor a folder.
        OSError: It cannot be read.
    """
    place = full(root, path)
    try:
        if not all(stat.S_ISDIR(full(root, one).lstat().st_mode) for one in parents(path)):
            return NOTHING
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    if stat.S_ISLNK(found.st_mode):
        return Stand(Kind.LINK, leads_to=os.fsencode(os.readlink(place)))  # noqa: PTH115 (its bytes)
    if stat.S_ISDIR(found.st_mode):
        return Stand(Kind.FOLDER, stat.S_IMODE(found.st_mode))
    if not stat.S_ISREG(found.st_mode):
        raise WorkspaceError(
            f"{legible_name(os.fsdecode(path))} is neither a file, nor a link, nor a folder",
            hint="It is in the way. Move it away.",
        )
    return Stand(Kind.FILE, stat.S_IMODE(found.st_mode), _digest(place))


def _digest(place: Path) -> str:
    found = hashlib.sha256()
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def plan_shifts(root: str, made: str, moves: Iterable[tuple[bytes, bool]]) -> list[Shift]:
    """Plan what brings a working tree to files that lie in another folder.

    Args:
        root: The working tree.
        made: The folder with the files to be.
        moves: Each path with whether it will be there.

    Raises:
        WorkspaceError: Something is in the way that cannot be put aside.
        OSError: Something cannot be read.
    """
    plan = _Planning(root, made)
    ordered = sorted(moves, key=lambda move: not move[1])
    for path, is_there in ordered:
        plan.fill(path) if is_there else plan.clear(path)
    found = (plan.found[path] for path in sorted(plan.found))
    # A file that is as it will be is not touched, and stays whose it is.
    return [one for one in found if not (one.before.is_leaf and one.before == one.after)]


class _Planning:
    """The shifts found so far: first those that are filled, then those that are cleared."""

    def __init__(self, root: str, made: str) -> None:
        self.root, self.made = root, made
        self.found: dict[bytes, Shift] = {}

    def fill(self, path: bytes) -> None:
        """Plan a file or a link, in folders."""
        for parent in parents(path):
            if parent not in self.found:
                before = stand_of(self.root, parent)
                after = before if before.kind is Kind.FOLDER else stand_of(self.made, parent)
                self.found[parent] = Shift(parent, before, after)
        before, after = stand_of(self.root, path), stand_of(self.made, path)
        if before.kind is Kind.FOLDER:
            self._empty(path)
        is_same = before.is_leaf and _is_alike(before, after)
        self.found[path] = Shift(path, before, before if is_same else after)

    def clear(self, path: bytes) -> None:
        """Plan the absence of a file or a link; a folder in its place is somebody's own."""
        before = stand_of(self.root, path)
        if path in self.found or not before.is_leaf:
            return
        for parent in parents(path):
            if parent not in self.found:
                stand = stand_of(self.root, parent)
                self.found[parent] = Shift(parent, stand, Stand(Kind.EMPTIED))
        self.found[path] = Shift(path, before, NOTHING)

    def _empty(self, folder: bytes) -> None:
        """Plan the absence of all that lies in a folder which gives way to a file."""
        for inner, folders, names in os.walk(full(self.root, folder)):
            if ".git" in (*folders, *names):
                raise WorkspaceError(
                    f"the repository {legible_name(inner)} is in the way of a file of the result",
                    hint="Move it away.",
                )
            for name in (*folders, *names):
                path = os.fsencode(Path(inner, name).relative_to(self.root))
                self.found[path] = Shift(path, stand_of(self.root, path), NOTHING)
            if len(self.found) > _MOST:
                raise WorkspaceError(
                    f"the folder {legible_name(os.fsdecode(folder))} is in the way of a file of "
                    "the result, and contains too much to move",
                    hint="Move it away.",
                )


def _is_alike(one: Stand, other: Stand) -> bool:
    """Say if git sees no difference between two files or links."""
    found = [(stand.git_mode, stand.digest, stand.leads_to) for stand in (one, other)]
    return found[0] == found[1]


def keep(root: str, shifts: Sequence[Shift], folder: Path) -> list[Shift]:
    """Copy every file that stands before into a folder, durably; the shifts with their names.

    Raises:
        WorkspaceError: A file has become another meanwhile.
        OSError: It cannot be copied.
    """
    done: list[Shift] = []
    for number, shift in enumerate(shifts):
        if shift.before.kind is not Kind.FILE:
            done.append(shift)
            continue
        copy = folder / str(number)
        _copy(full(root, shift.path), copy, shift.before.mode)
        if _digest(copy) != shift.before.digest:
            raise WorkspaceError(f"{_name(shift)} has just changed", hint="Try again.")
        done.append(Shift(shift.path, shift.before, shift.after, copy.name))
    _sync(folder)
    return done


def _copy(source: Path, target: Path, mode: int) -> None:
    """Copy a file durably, attributes such as access lists included; no link is followed."""
    read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(read, "rb") as old, target.open("wb") as new:
        shutil.copyfileobj(old, new, _PIECE)
        new.flush()
        os.fchmod(new.fileno(), mode)
        _copy_attributes(old.fileno(), new.fileno())
        os.fsync(new.fileno())


def _copy_attributes(old: int, new: int) -> None:
    with suppress(OSError, AttributeError):  # the file system, or the system, has none
        for name in os.listxattr(old):
            with suppress(OSError):  # one that the kernel alone may give
                os.setxattr(new, name, os.getxattr(old, name))


def _sync(folder: Path) -> None:
    """Return when the names in a folder are on disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@dataclass(frozen=True, slots=True)
class Goal:
    """One path as it is to stand; the bytes of a file are in `source`."""

    path: bytes
    stand: Stand
    source: Path | None = None


def put(root: str, wanted: Sequence[Goal], draft: Path) -> None:
    """Bring paths to how they are to stand; a folder that holds something else stays.

    Args:
        root: The working tree.
        wanted: The paths.
        draft: A name of ours, on the same file system if possible, for files on their way.

    Raises:
        OSError: Something there cannot be written or taken away.
    """
    ordered = sorted(wanted, key=lambda one: one.path)
    for one in reversed(ordered):
        _take_away(root, one)
    for one in ordered:
        _set(root, one, draft)
    for one in reversed(ordered):
        if one.stand.kind is Kind.EMPTIED:
            _remove_folder(full(root, one.path))


def _take_away(root: str, one: Goal) -> None:
    """Make room: what is of another kind goes; one file gives way to another in a single step."""
    now, kind = stand_of(root, one.path), one.stand.kind
    place = full(root, one.path)
    if now.kind is Kind.FOLDER and kind in {Kind.FILE, Kind.LINK}:
        place.rmdir()
    elif now.kind is Kind.FOLDER and kind is Kind.NOTHING:
        _remove_folder(place)
    elif now.is_leaf and kind in {Kind.NOTHING, Kind.FOLDER}:
        place.unlink()


def _remove_folder(place: Path) -> None:
    with suppress(OSError):  # it holds files of somebody's, or is gone
        place.rmdir()


def _set(root: str, one: Goal, draft: Path) -> None:
    kind, place = one.stand.kind, full(root, one.path)
    if kind in {Kind.NOTHING, Kind.EMPTIED}:
        return
    if kind is Kind.FOLDER:
        if not place.is_dir():
            place.mkdir()
        if stat.S_IMODE(place.lstat().st_mode) != one.stand.mode:
            place.chmod(one.stand.mode)
        return
    if stand_of(root, one.path) == one.stand:
        return
    draft.unlink(missing_ok=True)
    _make(one, draft)
    try:
        draft.replace(place)
    except OSError:  # it lies on another file system
        near = place.with_name(draft.name)
        near.unlink(missing_ok=True)
        _make(one, near)
        near.replace(place)
        draft.unlink(missing_ok=True)


def _make(one: Goal, draft: Path) -> None:
    if one.source is None:
        draft.symlink_to(os.fsdecode(one.stand.leads_to))
    else:
        _copy(one.source, draft, one.stand.mode)


def remove_drafts(root: str, shifts: Iterable[Shift], draft: Path) -> None:
    """Take away files that a killed process left on their way."""
    folders = {full(root, shift.path).parent for shift in shifts}
    for folder in (draft.parent, *folders):
        with suppress(OSError):
            (folder / draft.name).unlink()


def _name(shift: Shift) -> str:
    return legible_name(os.fsdecode(shift.path))
