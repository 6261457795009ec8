"""The keeper program: from a connection that carries the request to the end of the attempt.

It is run in a child of the zygote, or cold by itself. It changes nothing in the world before it
holds the lock of the attempt's folder: so starting an attempt twice is harmless.

A keeper whose attempt came to a plain end may be asked for another one over the same connection:
most of what a short command costs is the birth and the burial of its keeper. It keeps one attempt
at a time, and goes when nobody asks soon, or when the last one left anything behind.
"""

# ruff: noqa: PTH208
# A keeper must not load pathlib: 2 MB in each of many.

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import traceback

from engine.keeper import files, kernel, spawn, wire
from engine.keeper.attempt import KeptAttempt
from engine.keeper.cgroups import Cgroups
from engine.keeper.control import Control
from engine.keeper.loop import Loop, signals_as_descriptor
from engine.keeper.request import Request
from engine.keeper.tree import Tree
from engine.system import OWN_DESCRIPTORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "plait-keeper"
_RECONNECT_S = 1.0
_FREE_MS = 1000
_READ = 1 << 16
_MOST_ATTEMPTS = 32  # each leaves some garbage, which nobody collects
_WAKING = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)


class AttemptRefused(Exception):
    """This keeper is not the one to run the attempt: `held`, `ended`, `lost` or `failed`."""


def main() -> None:
    """The cold way: `CONTROL_FD [TETHER_FD]` in the arguments."""
    numbers = [int(word) for word in sys.argv[1:]]
    for fd in numbers:
        spawn.close_on_exec(fd)
    run(numbers[0], numbers[1] if len(numbers) > 1 else -1)


def run(control_fd: int, tether_fd: int) -> None:
    """Keep one attempt; never returns."""
    code = 70
    wake_fd = -1
    try:
        os.setsid()
        kernel.set_name(NAME)
        kernel.become_subreaper()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        wake_fd = signals_as_descriptor(_WAKING)
        Service(socket.socket(fileno=control_fd), wake_fd, tether_fd).serve()
        code = 0
    except BaseException:  # noqa: BLE001 - the last thing it does is to say so and to leave nobody
        traceback.print_exc()
        if wake_fd >= 0:
            Tree(Cgroups([])).sweep(wake_fd)
    finally:
        os._exit(code)


class Service:
    """One keeper's work: an attempt, and others after it as long as they are wanted soon."""

    def __init__(self, link: socket.socket, wake_fd: int, tether_fd: int) -> None:
        self._link, self._wake_fd, self._tether_fd = link, wake_fd, tether_fd
        self._inbox = wire.Inbox()

    def serve(self) -> None:
        """Keep one attempt after the other; returns when it has to go."""
        wait_ms, before = None, _open_descriptors()
        for left in reversed(range(_MOST_ATTEMPTS)):
            received = self._receive(wait_ms)
            if received is None or not self._keep(*received, may_go_on=left > 0):
                return
            os.chdir("/")
            if _open_descriptors() != before:
                return
            wait_ms = _FREE_MS

    def _receive(self, wait_ms: int | None) -> tuple[Request, list[dict[str, Any]]] | None:
        """The next request and what follows it; None when nobody has any.

        What else comes before it was meant for an attempt that has ended.
        """
        while self._wait(wait_ms):
            data = self._link.recv(_READ)
            if not data:
                return None
            messages = self._inbox.feed(data)
            for n, message in enumerate(messages):
                if "attempt" in message:
                    return Request(message), messages[n + 1 :]
        return None

    def _wait(self, wait_ms: int | None) -> bool:
        """Wait until somebody says something; return False when it is time to go."""
        waiting = select.poll()
        for fd in (self._link.fileno(), self._wake_fd, self._tether_fd):
            if fd >= 0:
                waiting.register(fd, select.POLLIN)
        while ready := {fd for fd, _ in waiting.poll(wait_ms)}:
            has_to_go = self._wake_fd in ready and _is_told_to_end(self._wake_fd)
            if has_to_go or self._tether_fd in ready:
                return False
            if self._link.fileno() in ready:
                return True
        return False

    def _keep(self, request: Request, early: list[dict[str, Any]], *, may_go_on: bool) -> bool:
        """Keep one attempt to its end; whether another may follow."""
        loop = Loop()
        try:
            folder = _claim(request, self._wake_fd)
            control = Control(loop, folder.fd)
            attempt = KeptAttempt(loop, request, folder, control)
        except (AttemptRefused, OSError) as why:
            kind, text = why.args if isinstance(why, AttemptRefused) else ("failed", str(why))
            with contextlib.suppress(OSError):
                self._link.sendall(wire.encode({"say": "refused", "why": kind, "text": text}))
            return False
        attempt.may_go_on = may_go_on
        control.greeting = attempt.hello
        control.on_command = attempt.command
        loop.watch(self._wake_fd, select.POLLIN, lambda _: _woken(self._wake_fd, attempt))
        if request.is_tethered:
            folder.tether_fd = self._tether_fd
            _tether(loop, folder, attempt, control)
        if not request.is_held:
            attempt.go()
        # Greeted only now: a word wakes the engine, which might take the processor from the start.
        control.adopt(self._link, self._inbox)
        attempt.farewell()
        for message in early:
            attempt.command(message)
        while not folder.is_settled:
            loop.turn()
        is_whole = control.close(spared=self._link)
        folder.close()
        return is_whole and attempt.is_free


def _open_descriptors() -> set[str]:
    return set(os.listdir(OWN_DESCRIPTORS))


def _claim(request: Request, wake_fd: int) -> files.Folder:
    """Become the keeper of this attempt, or be refused."""
    os.makedirs(request.directory, 0o700, exist_ok=True)  # noqa: PTH103 - no pathlib here: memory
    fd = files.open_directory(request.directory)
    if not files.lock(fd):
        raise AttemptRefused("held", "another keeper holds it")
    if files.exists(fd, files.EXIT):
        raise AttemptRefused("ended", "it has ended")
    if files.exists(fd, files.KEEPER):
        raise AttemptRefused("lost", "its keeper was killed")
    files.clear_unborn(fd)
    content = {"attempt": request.attempt, "mark": request.mark, "argv": request.argv}
    cgroups = [[each.version, each.path] for each in request.cgroups]
    return files.Folder(fd, wake_fd, {**content, "cgroups": cgroups})


def _woken(wake_fd: int, attempt: KeptAttempt) -> None:
    if _is_told_to_end(wake_fd):
        attempt.command({"do": "stop", "cause": "SHUTDOWN", "grace_s": None})
    attempt.reap()


def _is_told_to_end(wake_fd: int) -> bool:
    heard = b""
    with contextlib.suppress(BlockingIOError):
        heard = os.read(wake_fd, 4096)
    return signal.SIGTERM in heard or signal.SIGHUP in heard


def _tether(loop: Loop, folder: files.Folder, attempt: KeptAttempt, control: Control) -> None:
    """End with the engine.

    Its end is seen at once by its pidfd, which no forked copy can hold open; the closed connection
    is the other sign, for an engine that has become another program.
    """
    folder.is_tethered = True

    def stop() -> None:
        if folder.is_tethered:
            attempt.command({"do": "stop", "cause": "SHUTDOWN", "grace_s": None})

    def ended(_: int) -> None:
        loop.unwatch(folder.tether_fd)
        stop()

    def alone() -> None:
        loop.after("alone", _RECONNECT_S, lambda: stop() if control.is_alone else None)

    if folder.tether_fd >= 0:
        loop.watch(folder.tether_fd, select.POLLIN, ended)
    control.on_alone = alone
