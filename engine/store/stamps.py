"""Tell by the kernel's own times if a journal was written since somebody looked at it."""

from __future__ import annotations

import os


def stamp_of(folder: str) -> tuple[int, ...] | None:
    """Return what every commit to the journal of a run changes; None where there is no journal.

    Of each of its files: the inode, the size, and the time of the last change in nanoseconds.
    """
    journal = f"{folder}/run.db"
    try:
        seen = os.stat(journal)
    except OSError:
        return None
    stamp = (seen.st_ino, seen.st_size, seen.st_ctime_ns)
    try:
        seen = os.stat(f"{journal}-wal")
    except FileNotFoundError:
        return stamp
    except OSError:
        return None
    return (*stamp, seen.st_ino, seen.st_size, seen.st_ctime_ns) if seen.st_size else stamp
