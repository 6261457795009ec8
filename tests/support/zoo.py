"""A program that keeps eight kinds of processes which are hard to end: `zoo.py FOLDER [leave]`.

Each writes FOLDER/<kind>.pid when it is ready, and FOLDER/<kind>.term when it ends on request. Run
with `python -I -S`; with `leave` the leader ends by itself once the others are ready.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

KINDS = ("leader", "plain", "ignorer", "setsid", "daemon", "scrubbed", "stopped", "blocked")
DEAF = "ignorer"
OUT_OF_GROUP = {"setsid", "daemon", "scrubbed"}


def _note(folder: str, kind: str, what: str) -> None:
    draft = Path(folder, f"{kind}.{what}.new")
    draft.write_text(str(os.getpid()))
    draft.rename(Path(folder, f"{kind}.{what}"))


def _live(folder: str, kind: str) -> None:
    def told(*_: object) -> None:
        _note(folder, kind, "term")
        os._exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if kind == DEAF else told)
    _note(folder, kind, "pid")
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    _, unread = os.pipe()
    while kind == "blocked":
        os.write(unread, b"x" * 65536)
    while True:
        signal.pause()


def _child(life: Callable[[], None]) -> None:
    if os.fork() == 0:
        try:
            life()
        finally:
            os._exit(0)


def _start(folder: str, kind: str) -> None:
    def life() -> None:
        if kind in OUT_OF_GROUP:
            os.setsid()
        if kind == "daemon":
            _child(lambda: _live(folder, kind))
        elif kind == "scrubbed":
            words = [sys.executable, "-I", "-S", __file__, folder, "scrubbed"]
            _child(lambda: os.execve(sys.executable, words, {}))  # noqa: S606 - an empty environment is the point
        else:
            _live(folder, kind)

    _child(life)


def main() -> None:
    """Become one of them, or the leader of all."""
    folder, role = sys.argv[1], "".join(sys.argv[2:])
    if role == "scrubbed":
        _live(folder, role)
    for kind in KINDS[1:]:
        _start(folder, kind)
    if role == "leave":
        while len(list(Path(folder).glob("*.pid"))) < len(KINDS) - 1:
            os.sched_yield()
        _note(folder, "leader", "pid")
        return
    _live(folder, "leader")


if __name__ == "__main__":
    main()
