"""What keepers write once: which attempts of a run are over, and whether one was written to again.

Attempts are told as they begin, so that a look costs no walk over all that ever ran; those of other
engines are found by one walk. Not for what an attempt leaves in its tree.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock

_END = "exit.json"
_FILES = (_END, "recording")


class EndedAttempts:
    """The folders of one run's attempts that are over, and so will never be written to again."""

    def __init__(self, run: Path) -> None:
        self._going_on = set(map(str, run.glob("*/*/attempt_*")))
        self._ended: dict[str, None] = {}  # in the order in which they were seen to be over
        self._looking = Lock()

    def add(self, attempt: Path) -> None:
        """This attempt begins."""
        with self._looking:
            self._going_on.add(str(attempt))

    def folders(self) -> tuple[str, ...]:
        """Those that are over now."""
        with self._looking:
            ended = {folder for folder in self._going_on if os.path.lexists(f"{folder}/{_END}")}
            self._going_on -= ended
            self._ended |= dict.fromkeys(sorted(ended))
            return tuple(self._ended)


def rewritten(folders: Iterable[str], since_ns: int) -> Iterator[str]:
    """What was written to after a moment, in the folders of attempts that were over by then."""
    for folder in folders:
        for name in _FILES:
            file = f"{folder}/{name}"
            try:
                changed_ns = os.lstat(file).st_ctime_ns
            except OSError:  # cleaned away
                continue
            if changed_ns > since_ns:
                yield file
