"""Describe what keeps a run from going on: what is wrong, since when, and what helps.

Storage cannot be written, or a site does not answer. Such trouble passes, so nothing fails because
of it: what could not be done is tried again until it can be. Trouble with storage is known by what
the error says. Git may have been able to say nothing, as its words go to the same full disk: then a
look at the disk decides.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from engine.errors import EngineError, GitFailed, OutOfRoom, SiteSilent, StoreError, UnstorableValue
from engine.messages.results import Trouble
from engine.storage import FULL, LITTLE_FOR_GIT, WORDS, Disk

_LITTLE = 1 << 20
_OF_SQLITE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
}
_HELP = {
    errno.ENOSPC: "Free some space there.",
    errno.EDQUOT: "Free some space there, or have the quota raised.",
    errno.EROFS: "Make it writable again.",
    errno.EIO: "Check the disk: the kernel's log says more.",
}
_KEPT = "Nothing is lost: plait writes the rest as soon as it can."


def silence_trouble(error: SiteSilent, *, at: float) -> Trouble:
    """Return the trouble that a site does not answer."""
    help_ = f"{error.hint} Agents there keep running until their lease ends; none is lost yet."
    return Trouble(what=str(error), help=help_.strip(), since=at)


def storage_trouble(error: BaseException, folders: Sequence[Path], *, at: float) -> Trouble | None:
    """Return the storage's trouble if an error comes from that.

    It asks the file systems, so it belongs in a thread.
    """
    if isinstance(error, UnstorableValue):
        return None  # no room helps, and the value that it quotes may sound like a full disk
    number = next(filter(None, map(_number_in, _chain(error))), None)
    disks = [disk for disk in map(Disk.of, folders) if disk is not None]
    if number is None:
        number = _number_seen(error, disks)
    if number is None:
        return None
    return Trouble(what=_what(number, disks, error), help=f"{_HELP[number]} {_KEPT}", since=at)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that led to it, each once: errors can be each other's context."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        before = one.__cause__ or one.__context__
        waiting += [before] if before is not None else []
        if isinstance(one, BaseExceptionGroup):
            waiting += reversed(one.exceptions)


def _number_in(error: BaseException) -> int | None:
    """Return the number of the kernel's error that an error carries or quotes."""
    if isinstance(error, OSError) and error.errno in WORDS:
        return error.errno
    if isinstance(error, sqlite3.Error):
        return _OF_SQLITE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if isinstance(error, EngineError):
        said = str(error)
        return next((number for number, words in WORDS.items() if words in said), None)
    return None


def _number_seen(error: BaseException, disks: Sequence[Disk]) -> int | None:
    """Return why an error that does not say so came from the disk, as far as one look tells."""
    if isinstance(error, OutOfRoom):
        return errno.ENOSPC
    if not isinstance(error, GitFailed | StoreError | OSError):
        return None
    is_silent = isinstance(error, GitFailed) and not error.stderr.strip()
    wanted = LITTLE_FOR_GIT if is_silent else _LITTLE
    if any(disk.is_full_for(wanted) for disk in disks):
        return errno.ENOSPC
    return errno.EROFS if any(disk.is_read_only for disk in disks) else None


def _what(number: int, disks: Sequence[Disk], error: BaseException) -> str:
    tightest = min(disks, key=lambda disk: (not disk.is_read_only, disk.free), default=None)
    fullest = min(disks, key=lambda disk: 0 if disk.inodes == 0 else disk.free, default=None)
    if number in FULL and fullest is not None and fullest.is_full_for(LITTLE_FOR_GIT):
        left = (
            "has no room for more files" if fullest.inodes == 0 else f"{_bytes(fullest.free)} free"
        )
        why = "its quota is used up" if number == errno.EDQUOT else "is full"
        return f"{fullest.mount} {why}: {left}"
    if number == errno.EROFS and tightest is not None and tightest.is_read_only:
        return f"{tightest.mount} is read-only"
    said = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
    return said if WORDS[number] in said else f"{WORDS[number]}: {said}"


def _bytes(count: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.0f} {unit}"
    return f"{count} bytes"


class Troubles:
    """The reasons why one run stands still: who met each, until it has passed.

    Attributes:
        told: The one that observers heard of last.
    """

    def __init__(self, tell: Callable[[Trouble | None], None]) -> None:
        self._tell = tell
        self._met: dict[object, Trouble] = {}
        self.told: Trouble | None = None

    def met(self, who: object, trouble: Trouble) -> None:
        """Note that an activity cannot go on; a known trouble keeps its time.

        Activities run side by side, so one that failed a moment earlier may be noted a moment
        later. It then counts from the latest known one: what was reported never moves back.
        """
        before = self._met.pop(who, None)
        latest = max((known.since for known in self._met.values()), default=trouble.since)
        since = before.since if before is not None else max(trouble.since, latest)
        self._met[who] = Trouble(what=trouble.what, help=trouble.help, since=since)
        self._changed()

    def passed(self, who: object) -> None:
        """Note that an activity goes on."""
        if self._met.pop(who, None) is not None:
            self._changed()

    def _changed(self) -> None:
        first = min((trouble.since for trouble in self._met.values()), default=0.0)
        newest = next(reversed(self._met.values()), None)
        now = Trouble(what=newest.what, help=newest.help, since=first) if newest else None
        if now != self.told:
            self.told = now
            self._tell(now)
