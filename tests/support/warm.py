"""The program loaded once: it forks itself for every command that a test types.

Most of what a short command costs is its imports. What it does after them is the same in a fork: a
process of its own, with its own folder, environment, files, arguments and exit code. It ends as
Python does, but takes no module apart: that costs four times what a short command does.
"""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

_SERVER = """
import atexit, gc, importlib, json, os, pkgutil, socket, sys, threading
import tui.cli, tui.commands
for found in pkgutil.iter_modules(tui.commands.__path__, "tui.commands."):
    importlib.import_module(found.name)
import engine.api.engine, engine.run.coordinator, engine.port.client
gc.freeze()
asked = socket.socket(fileno=int(sys.argv[1]))
while True:
    words, files, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    if not words:
        break
    child = os.fork()
    if not child:
        asked.close()
        for standard, file in enumerate(files):
            os.dup2(file, standard)
            os.close(file)
        given = json.loads(words)
        os.chdir(given["cwd"])
        os.environ.clear()
        os.environ.update(given["env"])
        if encoding := os.environ.get("PYTHONIOENCODING"):
            for stream in (sys.stdout, sys.stderr):
                stream.reconfigure(encoding=encoding, errors="strict")
        sys.argv = [tui.cli.__file__, *given["words"]]
        try:
            sys.exit(tui.cli.main())
        except SystemExit as ended:
            threading._shutdown()
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            if ended.code is None or isinstance(ended.code, int):
                os._exit(ended.code or 0)
            raise
    asked.send(b"%d\\n" % child)
    for file in files:
        os.close(file)
    asked.send(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Warm:
    """Runs one command at a time, as `python -m tui.cli` would."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ours, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        argv = [sys.executable, "-c", _SERVER, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd="/", env=kept)
        atexit.register(self._end)

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], files: Sequence[IO[Any]], *, timeout_s: float, **given: Any
    ) -> int:
        """Return a command's exit code; `files` are its standard ones, `given` is `cwd`, `env`."""
        message = json.dumps({"words": words, **given}).encode()
        with self._turn, self._ours.dup() as line, line.makefile("rb") as told:
            socket.send_fds(line, [message], [file.fileno() for file in files])
            child = int(told.readline())
            watch = threading.Timer(timeout_s, os.kill, (child, signal.SIGKILL))
            watch.start()
            try:
                return int(told.readline())
            except BaseException:
                _warm.cache_clear()  # else the next command would be told how this one ended
                raise
            finally:
                watch.cancel()
                watch.join()


@functools.cache
def _warm(_: int) -> Warm:
    return Warm()


def run_warm(
    words: Sequence[str],
    files: Sequence[IO[Any]],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
) -> int:
    """The exit code of a command of the program."""
    warm = _warm(os.getpid())
    return warm.run(words, files, timeout_s=timeout_s, cwd=str(cwd), env=dict(env))
