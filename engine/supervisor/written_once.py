"""What keepers write once: which attempts of a run are over, and whether one was written to again.

Attempts are told as they begin, so that a look costs no walk over all that ever ran; those of other
engines are found by one walk. Not for what an attempt leaves in its tree.
"""

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Self

_END = "exit.json"
_FILES = (_END, "recording")


class Rewritten(NamedTuple):
    """A file of an attempt that was over: the place of that attempt in their order, and when."""

    place: int
    changed_ns: int
    path: str


class _Ended(NamedTuple):
    """One attempt that is over, and when each of its files was written last."""

    folder: str
    written_ns: tuple[int, ...]

    @classmethod
    def at(cls, folder: str) -> Self:
        return cls(folder, tuple(_changed_ns(f"{folder}/{name}") or 0 for name in _FILES))

    @classmethod
    def parse(cls, line: str) -> Self:
        *written_ns, folder = line.split(" ", len(_FILES))
        return cls(folder, tuple(map(int, written_ns)))

    def __str__(self) -> str:
        return " ".join((*map(str, self.written_ns), self.folder))


class EndedAttempts:
    """One run's attempts that are over, in the order in which that was seen.

    The order is kept in a file, so that how many were over at a moment says which, to whichever
    engine asks: a list of them with every attempt would grow with their square.
    """

    def __init__(self, run: Path) -> None:
        self.file = run / "ended.txt"  # no step can be called that
        self._looking = Lock()
        self._ended: list[_Ended] = []
        with suppress(FileNotFoundError, ValueError):  # cut off, or altered: then some are missing
            for line in self.file.read_text().splitlines():
                self._ended.append(_Ended.parse(line))
        over = {each.folder for each in self._ended}
        self._going_on = set(map(str, run.glob("*/*/attempt_*"))) - over

    def add(self, attempt: Path) -> None:
        """This attempt begins."""
        with self._looking:
            self._going_on.add(str(attempt))

    def count(self) -> int:
        """How many are over now."""
        with self._looking:
            over = [folder for folder in self._going_on if os.path.lexists(f"{folder}/{_END}")]
            if over:
                ended = list(map(_Ended.at, sorted(over)))
                with self.file.open("a") as file:
                    file.writelines(f"{each}\n" for each in ended)
                self._going_on.difference_update(over)
                self._ended += ended
            return len(self._ended)

    @property
    def known(self) -> int:
        """How many are known to be over; fewer than once were counted if the file was altered."""
        return len(self._ended)

    def rewritten(self, count: int, since_ns: int) -> list[Rewritten]:
        """What was written to after a moment, of the first `count` that were over."""
        found = []
        for place, (folder, written_ns) in enumerate(self._ended[:count]):
            for name, last_ns in zip(_FILES, written_ns, strict=True):
                path = f"{folder}/{name}"
                changed_ns = _changed_ns(path)
                # Its own last words may be of that moment too: the clock of files is a coarse one.
                if changed_ns is not None and changed_ns != last_ns and changed_ns > since_ns:
                    found.append(Rewritten(place, changed_ns, path))
        return found


def _changed_ns(path: str) -> int | None:
    """When a file was written last, as only the kernel says it; None if it was cleaned away."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return None
