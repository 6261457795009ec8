"""Tell who gave the current command: a client of the socket, or this process."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from engine.keeper import proc
from engine.messages.roles import Role, Speaker

_SPEAKER: ContextVar[Speaker | None] = ContextVar("speaker", default=None)


def speaker() -> Speaker:
    """Return who speaks in the current task."""
    return _SPEAKER.get() or this_process()


@cache
def this_process() -> Speaker:
    """Return this process as a speaker; read /proc once, so call it first from a thread."""
    return speaker_of(os.getpid(), os.getuid(), Role.OWNER)


@contextmanager
def speaking(who: Speaker) -> Iterator[None]:
    """Let everything in this task, and in the tasks it starts, be said by a speaker."""
    before = _SPEAKER.set(who)
    try:
        yield
    finally:
        _SPEAKER.reset(before)


def speaker_of(pid: int, uid: int, role: Role) -> Speaker:
    """Return a process as a speaker, as far as /proc tells."""
    process = proc.look(pid)
    return Speaker(
        role=role, pid=pid, user=_user_name(uid), terminal=process.terminal if process else ""
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
