"""The zygote: has everything a keeper needs in memory, and forks one for each request.

A request is one packet with two descriptors: the connection on which the keeper will find what it
is to run, and the engine's pidfd. So the zygote never reads a request, and none can be half sent.
It is a sub-reaper too: whom a killed keeper leaves behind becomes its child, and is ended here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import traceback

from engine.keeper import kernel, proc, program, spawn, wire
from engine.keeper.loop import signals_as_descriptor
from engine.keeper.tree import end_strays

NAME = "plait-zygote"


def main() -> None:
    """`REQUESTS_FD [ENGINE_PIDFD]` in the arguments; ends with the engine, its keepers do not."""
    fds = [int(word) for word in sys.argv[1:3]]
    for fd in fds:
        spawn.close_on_exec(fd)
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.set_name(NAME)
    kernel.become_subreaper()
    gc.disable()
    gc.freeze()
    Zygote(socket.socket(fileno=fds[0]), fds[1:]).serve()


class Zygote:
    """Forks keepers until its engine is gone."""

    def __init__(self, requests: socket.socket, engine_fds: list[int]) -> None:
        self._requests, self._engine_fds = requests, engine_fds
        self._wake_fd = signals_as_descriptor([signal.SIGCHLD])
        self._keepers: set[int] = set()

    def serve(self) -> None:
        """Answer requests; returns when nobody can send any more."""
        waiting = select.poll()
        for fd in (self._requests.fileno(), *self._engine_fds, self._wake_fd):
            waiting.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in waiting.poll()}
            if self._wake_fd in ready:
                self._reap()
            if ready & set(self._engine_fds):
                return
            if self._requests.fileno() in ready and not self._answer():
                return

    def _answer(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._requests, 1, 2)
        for fd in fds:
            spawn.close_on_exec(fd)
        if not data:
            return False
        try:
            pid = os.fork()
        except OSError as refused:
            why = {"say": "refused", "why": "failed", "text": str(refused)}
            os.write(fds[0], wire.encode(why))
        else:
            if pid == 0:
                self._become_keeper(fds)
            self._keepers.add(pid)
        for fd in fds:
            os.close(fd)
        return True

    def _become_keeper(self, fds: list[int]) -> None:
        """In the child; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            self._requests.close()
            for fd in (*self._engine_fds, self._wake_fd):
                os.close(fd)
            program.run(fds[0], fds[1] if len(fds) > 1 else -1)
        except BaseException:  # noqa: BLE001 - a child must never fall back into the zygote's loop
            traceback.print_exc()
        finally:
            os._exit(70)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_fd, 4096)
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                self._keepers.discard(pid)
        strays = [pid for pid in proc.children(os.getpid()) if pid not in self._keepers]
        if strays:
            end_strays(strays)
