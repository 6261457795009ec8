"""All processes of one attempt: asked to end, ended, frozen, counted.

They are found below the keeper, which is a sub-reaper: whoever loses its parent becomes the
keeper's own child. So the proof that all are dead is that nobody is left to wait for.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from engine.keeper import proc
from engine.keeper.cgroups import Cgroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GIVE_UP_S = 5.0
_ROUND_MS = 5


class Tree:
    """The processes below this keeper."""

    def __init__(self, cgroups: Cgroups) -> None:
        self.cgroups = cgroups
        self.leader = 0
        self.status: int | None = None  # the leader's, as waitpid tells it, once it has ended
        self.wrapper: tuple[int, ...] = ()  # those of the sandbox: they are not the agent's
        self.init = 0  # pid 1 of the sandbox: its end is everybody's
        self.is_empty = False
        self.rounds = 0
        self.cpu_s = 0.0  # of everybody who has ended, with those whom they waited for
        self.peak_kb = 0  # the most memory that one of them held
        self._stopped: dict[int, int] = {}  # pid and start of those whom a freeze has stopped
        self._frozen_by: set[str] = set()

    def reap(self) -> bool:
        """Take in everybody who has ended; True if the leader is among them."""
        is_leader = False
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_empty = True
                return is_leader
            if pid == 0:
                self.is_empty = False
                return is_leader
            self.cpu_s += used.ru_utime + used.ru_stime
            self.peak_kb = max(self.peak_kb, used.ru_maxrss)
            if pid == self.leader:
                self.status, is_leader = status, True

    def members(self) -> list[int]:
        """Everybody alive, the sandbox's own processes left out."""
        return [pid for pid in self._everybody() if pid not in self.wrapper]

    def names(self, at_most: int = 20) -> list[str]:
        """Return the names of those still alive, without our own helpers."""
        return [each.name for each in _strangers(self.members())][:at_most]

    def interrupt(self) -> None:
        """SIGINT to the agent itself."""
        inside = proc.children(self.init) if self.init else []
        signal_all([inside[0] if inside else self.leader], signal.SIGINT)

    def terminate(self) -> bool:
        """Ask everybody to end, once: a second time would kill what a clean-up has just started.

        Returns:
            Whether there was anybody: a sandbox that is only being put up hears nothing, and would
            let the agent begin afterwards.
        """
        self.thaw_all()
        members = self.members()
        members += [pid for pid in self.members() if pid not in members]
        # Looked at before they hear it: a quick one is gone afterwards, and its exit not yet told.
        is_anybody = any(_strangers(members))
        signal_all(members, signal.SIGTERM)
        signal_all(members, signal.SIGCONT)  # a stopped process would not act on it
        return is_anybody

    def sweep(self, wake_fd: int) -> list[int]:
        """End everybody; returns those who could not be ended."""
        self.reap()
        if self.is_empty:
            return []
        # Where we may: among thousands that want to run an ordinary process hardly gets a turn.
        with contextlib.suppress(PermissionError, AttributeError):  # not every system has it
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        deadline = time.monotonic() + _GIVE_UP_S
        waker = select.poll()
        waker.register(wake_fd, select.POLLIN)
        while True:
            self._kill_round()
            self.reap()
            if self.is_empty:
                return []
            if time.monotonic() > deadline:
                return self._everybody()
            waker.poll(_ROUND_MS)
            with contextlib.suppress(BlockingIOError):
                os.read(wake_fd, 4096)
            self.reap()
            if self.is_empty:
                return []

    def freeze(self, why: str) -> None:
        """Stop everybody where they stand."""
        self._frozen_by.add(why)
        if self.cgroups.freeze(is_frozen=True):
            return
        known: set[int] = set(self._stopped)
        while new := [pid for pid in self.members() if pid not in known]:
            known.update(new)
            for process in filter(None, map(proc.look, new)):
                if process.state != "T":  # whom the agent stopped itself stays stopped later
                    self._stopped[process.pid] = process.start
                    signal_all([process.pid], signal.SIGSTOP)

    def thaw(self, why: str) -> None:
        """Let everybody go on whom a freeze stopped, unless somebody else wants them frozen."""
        self._frozen_by.discard(why)
        if self._frozen_by:
            return
        self.cgroups.freeze(is_frozen=False)
        # Children first: a shell that sees its stopped command believes it was suspended by a user.
        for pid, start in reversed(self._stopped.items()):
            if proc.is_alive(pid, start):
                signal_all([pid], signal.SIGCONT)
        self._stopped.clear()

    def thaw_all(self) -> None:
        """Let everybody go on, whoever wanted them frozen."""
        self._frozen_by.clear()
        self.thaw("")

    def _kill_round(self) -> None:
        self.rounds += 1
        if self.init:
            signal_all([self.init], signal.SIGKILL)
        self.cgroups.kill()
        signal_all(catch(proc.children(os.getpid())), signal.SIGKILL)
        self.cgroups.freeze(is_frozen=False)  # in version 1 the frozen do not die

    def _everybody(self) -> list[int]:
        return proc.descendants(os.getpid())


def end_strays(pids: list[int]) -> None:
    """End these and all below them."""
    signal_all(catch(pids), signal.SIGKILL)


def catch(roots: Iterable[int]) -> set[int]:
    """Stop these and everybody below them, until nobody new is found; returns all of them.

    Each is stopped before its children are listed, so that the list is final: whoever forks faster
    than others are killed would never be caught otherwise. Its whole process group is stopped with
    it, because the kernel does that in one step which no fork can slip through.
    """
    caught: set[int] = set()
    groups = {os.getpgrp()}
    is_quiet = False
    while not is_quiet:
        is_quiet = True
        waiting = list(roots)
        walked = set(waiting)
        for pid in waiting:  # grows while it is walked
            if pid not in caught:
                is_quiet = False
                caught.add(pid)
                _stop(pid, groups)
            below = [child for child in proc.children(pid) if child not in walked]
            walked.update(below)
            waiting += below
    return caught


def _stop(pid: int, groups: set[int]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)
        group = os.getpgid(pid)
        if group not in groups:
            groups.add(group)
            os.killpg(group, signal.SIGSTOP)


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to each that is still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _strangers(pids: Iterable[int]) -> Iterator[proc.Process]:
    """Those who are alive and no helpers of ours."""
    for process in filter(None, map(proc.look, pids)):
        is_ours = process.name.startswith("plait-") or _is_starting_helper(process.pid)
        if not process.is_dead and not is_ours:
            yield process


def _is_starting_helper(pid: int) -> bool:
    """A proxy of ours that has not had the time yet to call itself one."""
    return b"/keeper/egress.py\0" in proc.command(pid)
