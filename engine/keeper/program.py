"""The keeper program: from a connection that carries the request to the end of the attempt.

It is run in a child of the zygote, or cold by itself. It changes nothing in the world before it
holds the lock of the attempt's folder: so starting an attempt twice is harmless.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import traceback

from engine.keeper import files, kernel, spawn, wire
from engine.keeper.attempt import Attempt
from engine.keeper.cgroups import Cgroups
from engine.keeper.control import Control
from engine.keeper.loop import Loop, signals_as_descriptor
from engine.keeper.request import Request
from engine.keeper.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "plait-keeper"
_RECONNECT_S = 1.0
_WAKING = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP)


class Refused(Exception):
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
        link = socket.socket(fileno=control_fd)
        received = _receive(link)
        if received is not None:
            _keep(link, received, wake_fd, tether_fd)
        code = 0
    except BaseException:  # noqa: BLE001 - the last thing it does is to say so and to leave nobody
        traceback.print_exc()
        if wake_fd >= 0:
            Tree(Cgroups([])).sweep(wake_fd)
    finally:
        os._exit(code)


def _receive(link: socket.socket) -> tuple[Request, wire.Inbox, list[dict[str, Any]]] | None:
    """The request, which is the first message; None when the asker went away."""
    inbox = wire.Inbox()
    while True:
        data = link.recv(1 << 18)
        if not data:
            return None
        messages = inbox.feed(data)
        if messages:
            return Request(messages[0]), inbox, messages[1:]


def _keep(
    link: socket.socket,
    received: tuple[Request, wire.Inbox, list[dict[str, Any]]],
    wake_fd: int,
    tether_fd: int,
) -> None:
    request, inbox, early = received
    loop = Loop()
    try:
        folder = _claim(request, wake_fd)
        control = Control(loop, folder.fd)
        attempt = Attempt(loop, request, folder, control)
    except (Refused, OSError) as why:
        kind, text = why.args if isinstance(why, Refused) else ("failed", str(why))
        with contextlib.suppress(OSError):
            link.sendall(wire.encode({"say": "refused", "why": kind, "text": text}))
        return
    control.greeting = attempt.hello
    control.on_command = attempt.command
    loop.watch(wake_fd, select.POLLIN, lambda _: _woken(wake_fd, attempt))
    if request.is_tethered:
        folder.tether_fd = tether_fd
        _tether(loop, folder, attempt, control)
    if not request.is_held:
        attempt.go()
    # Greeted only now: a word wakes the engine, which might take the processor from the start.
    control.adopt(link, inbox)
    attempt.farewell()
    for message in early:
        attempt.command(message)
    while not folder.is_settled:
        loop.turn()
    control.close()


def _claim(request: Request, wake_fd: int) -> files.Folder:
    """Become the keeper of this attempt, or be refused."""
    fd = files.open_directory(request.directory)
    if not files.lock(fd):
        raise Refused("held", "another keeper holds it")
    if files.exists(fd, files.EXIT):
        raise Refused("ended", "it has ended")
    if files.exists(fd, files.KEEPER):
        raise Refused("lost", "its keeper was killed")
    files.clear_unborn(fd)
    content = {"attempt": request.attempt, "mark": request.mark, "argv": request.argv}
    cgroups = [[each.version, each.path] for each in request.cgroups]
    return files.Folder(fd, wake_fd, {**content, "cgroups": cgroups})


def _woken(wake_fd: int, attempt: Attempt) -> None:
    heard = b""
    with contextlib.suppress(BlockingIOError):
        heard = os.read(wake_fd, 4096)
    if signal.SIGTERM in heard or signal.SIGHUP in heard:
        attempt.command({"do": "stop", "cause": "SHUTDOWN", "grace_s": None})
    attempt.reap()


def _tether(loop: Loop, folder: files.Folder, attempt: Attempt, control: Control) -> None:
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
