"""Watch files that keepers write once: find attempts written to after they were over.

Attempts are reported as they begin, so that a look costs no walk over all that ever ran; those of
other
engines are found by one walk. Not for what an attempt leaves in its tree.
"""

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

_END = "exit.json"
_FILES = (_END, "recording")


class Rewritten(NamedTuple):
    """A file of an attempt that was over: the place of that attempt in their order, and when."""

    place: int
    changed_ns: int
    path: str


class _Written(NamedTuple):
    """One file of an attempt that is over, and when it was written last."""

    changed_ns: int
    path: str


class EndedAttempts:
    """One run's attempts that are over, in the order in which that was seen.

    The order is kept in a file, so that how many were over at a moment says which, to whichever
    engine asks: a list of them with every attempt would grow with their square.
    """

    def __init__(self, run: Path) -> None:
        self.file = run / "ended.txt"  # no step can be called that
        self._prefix = f"{run}/"
        self._looking = Lock()
        self._files: list[_Written] = []  # those of one attempt behind those of another
        with suppress(FileNotFoundError, ValueError):  # cut off, or altered: then some are missing
            for line in self.file.read_text().splitlines():
                changed_ns, path = line.split(" ", 1)
                self._files.append(_Written(int(changed_ns), f"{run}/{path}"))
        over = {path.rpartition("/")[0] for _, path in self._files}
        self._going_on = set(map(str, run.glob("*/*/attempt_*"))) - over

    def add(self, attempt: Path) -> None:
        """Note that this attempt begins."""
        with self._looking:
            self._going_on.add(str(attempt))

    def count(self) -> int:
        """Return how many attempts are over now."""
        with self._looking:
            over = [folder for folder in self._going_on if os.path.lexists(f"{folder}/{_END}")]
            if over:
                paths = [f"{folder}/{name}" for folder in sorted(over) for name in _FILES]
                files = [_Written(_changed_ns(path), path) for path in paths]
                with self.file.open("a") as file:
                    file.writelines(
                        f"{changed_ns} {path.removeprefix(self._prefix)}\n"
                        for changed_ns, path in files
                    )
                self._going_on.difference_update(over)
                self._files += files
            return self.known

    @property
    def known(self) -> int:
        """Return how many are known to be over; fewer than were counted if the file was altered."""
        return len(self._files) // len(_FILES)

    def rewritten(self, count: int, since_ns: int) -> list[Rewritten]:
        """Return files written after a moment, of the first `count` attempts that were over."""
        found = []
        for place, (last_ns, path) in enumerate(self._files[: count * len(_FILES)]):
            changed_ns = _changed_ns(path)
            # Its own last words may be of that moment too: the clock of files is a coarse one.
            if changed_ns > since_ns and changed_ns != last_ns:
                found.append(Rewritten(place // len(_FILES), changed_ns, path))
        return found


def _changed_ns(path: str) -> int:
    """Return a file's last change as only the kernel tells it; 0 if it was removed."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0
