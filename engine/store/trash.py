"""What was removed: moved aside whole, listed, restored, and only deleted when it is old.

A removal is one rename, so it is done or not done, and costs nothing. Where a rename cannot reach
(another file system) it is refused: a copy could be cut off in the middle, and then both are wrong.
"""

import errno
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StoreError
from engine.store.files import sync_folder, write_atomically
from engine.store.layout import PRIVATE

KEPT_SECONDS = 30 * 86_400.0
_CONTENT = "content"
_LABEL = "entry.json"
_GOING = ".going-"


@dataclass(frozen=True, kw_only=True)
class TrashEntry:
    """One thing that was removed.

    Attributes:
        id: what to call it when it is to come back.
        origin: where it was; None if that can no longer be read.
        at: when it was removed, in wall-clock seconds.
        why: the reason given then.
        content: where it lies now.
    """

    id: str
    origin: Path | None
    at: float
    why: str
    content: Path


class Trash:
    """A folder of removed things; it must be on the file system of what is to be removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def discard(self, path: Path, *, why: str, at: float) -> TrashEntry:
        """Move `path` here, whatever it is; a link is moved, not what it points to.

        Raises:
            StoreError: it cannot be moved, and is where it was.
        """
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(at))
        entry = self._folder / f"{stamp}-{secrets.token_hex(3)}"
        origin = path.parent.resolve() / path.name
        label = {"origin": os.fspath(origin), "at": at, "why": why}
        try:
            self._folder.mkdir(PRIVATE, parents=True, exist_ok=True)
            entry.mkdir(PRIVATE)
            # The label first: what lies here without one would be hard to bring back.
            write_atomically(entry / _LABEL, json.dumps(label).encode())
            _move(origin, entry / _CONTENT)
        except OSError as error:
            shutil.rmtree(entry, ignore_errors=True)  # it holds a label and nothing else
            raise _refusal(path, error) from error
        except StoreError:
            shutil.rmtree(entry, ignore_errors=True)
            raise
        sync_folder(entry)
        return TrashEntry(id=entry.name, origin=origin, at=at, why=why, content=entry / _CONTENT)

    def entries(self) -> list[TrashEntry]:
        """What lies here, the newest first."""
        found = [_read(entry) for entry in self._folders() if _has_content(entry)]
        return sorted(found, key=lambda entry: (entry.at, entry.id), reverse=True)

    def restore(self, entry_id: str, *, to: Path | None = None) -> Path:
        """Put an entry back where it was, or at `to`; never over something that is there.

        Raises:
            StoreError: there is no such entry, something is in its place, or it cannot be moved.
        """
        entry = next((each for each in self.entries() if each.id == entry_id), None)
        if entry is None:
            raise StoreError(f"nothing called {entry_id!r} is in the trash")
        target = to or entry.origin
        if target is None:
            raise StoreError(
                f"where {entry_id} came from is not known", hint="Say where to put it."
            )
        if os.path.lexists(target):
            raise StoreError(
                f"{target} is there already", hint="Move it away, or restore elsewhere."
            )
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(entry.content, target)
        except OSError as error:
            raise _refusal(entry.content, error) from error
        _delete(entry.content.parent)
        return target

    def purge(self, *, now: float, older_than_s: float = KEPT_SECONDS) -> list[TrashEntry]:
        """Delete for good what was removed before that, and what an earlier purge left over."""
        old = [entry for entry in self.entries() if entry.at < now - older_than_s]
        for entry in old:
            # Renamed first: half of it must never look like something that could be restored.
            going = self._folder / f"{_GOING}{entry.id}"
            entry.content.parent.rename(going)
        for folder in self._folders():
            if folder.name.startswith(_GOING):
                _delete(folder)
        return old

    def _folders(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from sorted(self._folder.iterdir())


def _has_content(entry: Path) -> bool:
    return not entry.name.startswith(_GOING) and os.path.lexists(entry / _CONTENT)


def _read(entry: Path) -> TrashEntry:
    content = entry / _CONTENT
    try:
        label = json.loads((entry / _LABEL).read_bytes())
        origin, at, why = Path(label["origin"]), float(label["at"]), str(label["why"])
    except (OSError, ValueError, KeyError, TypeError):
        found = entry.stat().st_mtime
        return TrashEntry(id=entry.name, origin=None, at=found, why="", content=content)
    return TrashEntry(id=entry.name, origin=origin, at=at, why=why, content=content)


def _move(source: Path, target: Path) -> None:
    """Rename, also a folder that its owner may not write: the kernel wants to change its `..`."""
    mode = source.lstat().st_mode
    if not stat.S_ISDIR(mode) or mode & stat.S_IWUSR:
        source.rename(target)
        return
    source.chmod(stat.S_IMODE(mode) | stat.S_IWUSR)
    moved = source
    try:
        moved = source.rename(target)
    finally:
        moved.chmod(stat.S_IMODE(mode))


def _refusal(path: Path, error: OSError) -> StoreError:
    hint = "Look at its permissions, and at those of the folder that holds it."
    if error.errno == errno.EXDEV:
        hint = "The trash is on another file system; move it by hand, or remove it yourself."
    return StoreError(f"{path} cannot be moved: {error.strerror}", hint=hint)


def _delete(folder: Path) -> None:
    """Delete a folder, folders without write permission (module caches have them) included."""
    for each, names, _ in os.walk(folder):
        for name in names:
            inner = Path(each, name)
            mode = inner.lstat().st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                inner.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
    shutil.rmtree(folder)
