"""System calls that Python has no name for: sub-reaper and process name; nothing elsewhere."""

from __future__ import annotations

import ctypes
import os

from engine.system import IS_PORTABLE

_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36

_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """From now on every orphan below this process becomes its child."""
    if not IS_PORTABLE:
        _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def set_name(name: str) -> None:
    """The name under which `ps` shows this process: at most 15 bytes."""
    if not IS_PORTABLE:
        _checked(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
