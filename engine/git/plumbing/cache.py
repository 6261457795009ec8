"""Answers of git that cannot change, kept so that nobody asks twice.

It knows nothing of the questions: a key names one completely, be it by the ids of objects or by the
stamps of the files that the answer was read from.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence, Sized
from pathlib import Path
from typing import TypeVar, cast

_KEPT = 64
_COMMITS = 4096
_LARGEST = 4096
"""A longer answer is not kept: it is rare, and asking again costs less than its room."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Sized)


class AnswerCache:
    """The latest answers of one repository.

    Attributes:
        trees: The tree of each commit, by its id, as far as they are known.
        parents: The parents of each commit, by its id, likewise.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Sized] = {}
        self.trees: dict[str, str] = {}
        self.parents: dict[str, tuple[str, ...]] = {}

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer that is known, or the one that asking gives."""
        if key in self._known:
            return cast("T", self._known[key])
        found = await ask()
        self.put(key, found)
        return found

    def known(self, key: Hashable) -> Sized | None:
        """The answer, where it is known."""
        return self._known.get(key)

    def put(self, key: Hashable, answer: Sized) -> None:
        """An answer that is known without asking."""
        self._known.pop(key, None)  # what is told again is forgotten last
        if len(answer) <= _LARGEST:
            self._known[key] = answer
        _shorten(self._known, _KEPT)

    def learn_commit(self, commit: str, tree: str, parents: Sequence[str]) -> None:
        """A commit, by its id, has this tree and these parents."""
        self.learn_tree(commit, tree)
        self.parents[commit] = tuple(parents)
        _shorten(self.parents, _COMMITS)

    def learn_tree(self, commit: str, tree: str) -> None:
        """A commit, by its id, has this tree."""
        self.trees[commit] = tree
        _shorten(self.trees, _COMMITS)


def _shorten(known: dict[K, T], most: int) -> None:
    """Forget what was learned first."""
    while len(known) > most:
        del known[next(iter(known))]


def stamp(file: Path) -> Hashable:
    """Says which version of a file is there, for files that git replaces and never rewrites."""
    try:
        seen = file.lstat()
    except OSError:
        return None
    return seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
