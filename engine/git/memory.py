"""What git answered to questions whose answers cannot change, so that nobody asks twice.

It knows nothing of the questions: a key names one completely, be it by the ids of objects or by the
stamps of the files that the answer was read from.
"""

from collections.abc import Awaitable, Callable, Hashable, Sized
from pathlib import Path
from typing import TypeVar, cast

_KEPT = 64
_LARGEST = 4096
"""A longer answer is not kept: it is rare, and asking again costs less than its room."""

T = TypeVar("T", bound=Sized)


class Memory:
    """The latest answers of one repository."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Sized] = {}

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer that is known, or the one that asking gives."""
        if key in self._known:
            return cast("T", self._known[key])
        found = await ask()
        if len(found) <= _LARGEST:
            self._known[key] = found
        self._forget()
        return found

    def learn_tree(self, commit: str, tree: str) -> None:
        """A commit, by its id, has this tree."""
        self._known["tree", commit] = tree
        self._forget()

    def tree(self, commit: str) -> str | None:
        """The tree of a commit, by its id, where it is known."""
        return cast("str | None", self._known.get(("tree", commit)))

    def _forget(self) -> None:
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


def stamp(file: Path) -> Hashable:
    """Says which version of a file is there, for files that git replaces and never rewrites."""
    try:
        seen = file.lstat()
    except OSError:
        return None
    return seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
