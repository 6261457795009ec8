"""`plait shell`: a shell, or any program, inside a worker's sandbox.

It gets a terminal of its own, whose text is passed on: on the user's terminal itself, whatever
runs inside could type into the shell that plait was started from.
"""

import argparse
import fcntl
import os
import pty
import signal
import sys
import termios
from collections.abc import Sequence
from functools import partial

from engine.api import reach
from engine.messages.questions import EnterSandbox
from engine.messages.results import Entrance
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, say
from tui.terminals.shell import shell_words

_OF_THE_TERMINAL = ("TERM", "COLORTERM", "NO_COLOR")
_READ = 65_536


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose sandbox, and which program."""
    add_repo(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument(
        "worker", metavar="WORKER", help="[RUN/]STEP/worker_I, or the end of that name"
    )
    parser.add_argument(
        "program",
        nargs="*",
        metavar="PROGRAM",
        help="run this program instead of a shell; put `--` before its options",
    )


def run(args: argparse.Namespace) -> int:
    """Go in; the exit code is the program's."""
    if not args.program and not sys.stdin.isatty():
        say("a shell needs a terminal; without one, name a program: plait shell WORKER PROGRAM")
        return EXIT_USAGE
    found: list[Entrance] = []
    code = in_loop(partial(_find, args, found))
    return enter(found[0], args.program or shell_words()) if found else code


async def _find(args: argparse.Namespace, found: list[Entrance]) -> int:
    async with reach(args.repo) as (port, _):
        found.append(await port.ask(EnterSandbox(args.run, args.worker)))
    return EXIT_OK


def enter(entrance: Entrance, program: Sequence[str]) -> int:
    """Run a program in there, on a terminal of its own if there is one here."""
    if entrance.note:
        say(entrance.note)
    kept = {name: os.environ[name] for name in _OF_THE_TERMINAL if name in os.environ}
    words = [*entrance.argv, *program]
    os.chdir(entrance.folder)
    os.environ.clear()
    os.environ.update({**entrance.env, **kept})
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        os.execvp(words[0], words)  # noqa: S606  words made by the engine, and no shell
    return os.waitstatus_to_exitcode(pty.spawn(words, _Passing().read)) % 256


class _Passing:
    """Passes the program's text on, and the size of the user's terminal to the program's."""

    def __init__(self) -> None:
        self._master = -1

    def read(self, master: int) -> bytes:
        if self._master < 0:
            self._master = master
            signal.signal(signal.SIGWINCH, self._resize)
            self._resize()
        return os.read(master, _READ)

    def _resize(self, *_: object) -> None:
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
