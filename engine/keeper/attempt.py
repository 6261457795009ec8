"""One attempt from its birth to its exit.json: the states a keeper goes through.

    READY ── go ──▶ RUNNING ── leader ended ──▶ LEAVING ─┐
      │                └── stop, limit, tether ──▶ STOPPING ─┴─▶ sweep, drain, exit.json

In LEAVING and STOPPING everybody has been asked once to end; it lasts until nobody is left, or the
grace is over. The first cause of a stop is the one that is kept.
"""

from __future__ import annotations

import os
import select
import time

from engine.keeper import files, spawn, wire
from engine.keeper.cgroups import Cgroups
from engine.keeper.limits import LimitWatch
from engine.keeper.pump import Pump
from engine.keeper.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from engine.keeper.control import Control
    from engine.keeper.loop import Loop
    from engine.keeper.request import Request
    from engine.keeper.sampler import Excess

READY, RUNNING, LEAVING, STOPPING, SETTLED = "READY", "RUNNING", "LEAVING", "STOPPING", "SETTLED"
_LEFT_OVER_GRACE_S = 1.0
_MOST_NAMED = 100  # an exit.json has its place reserved, and no more
_FOREIGN_HOLDER_S = 0.5


class KeptAttempt:
    """The attempt this keeper exists for.

    Attributes:
        may_go_on: Its keeper may keep another one after it.
        is_free: It ended so that its keeper will, if it is asked soon.
    """

    def __init__(
        self, loop: Loop, request: Request, folder: files.Folder, control: Control
    ) -> None:
        self._loop, self._request, self._folder, self._control = loop, request, folder, control
        self.state = READY
        self.may_go_on = False
        self.is_free = False
        self.cause: str | None = None
        self._excess: Excess | None = None
        self._not_started: str | None = None
        self._leader_end = 0
        self._exit_code: int | None = None  # as the sandbox tells it
        self._left_over: list[str] = []
        self._grace_end = 0.0
        self._ended_as: dict[str, Any] | None = None
        self._stdin_n = 0
        self._early: list[dict[str, Any]] = []
        self._status = b""
        self._tree = Tree(Cgroups(request.cgroups))
        self._has_status = any("{status_fd}" in word for word in request.wrapper)
        self._stdio = spawn.Stdio(request.terminal, has_status=self._has_status)
        self._launch = spawn.Spawn(request, self._stdio, folder.fd)
        self._pump = Pump(loop, self._stdio, folder.recorder)
        self._watch = LimitWatch(loop, self._tree, self._pump, request)
        self._connect()

    def hello(self) -> dict[str, Any]:
        """Return the greeting of a new client."""
        return {
            "say": "hello",
            "v": wire.VERSION,
            "pid": os.getpid(),
            "state": self.state,
            "n": self._folder.recorder.size,
        }

    def farewell(self) -> None:
        """Tell everybody how it ended, if it has."""
        if self._ended_as is not None:
            said = {"say": "exited", "exit": self._ended_as, "is_free": self.is_free}
            self._control.say(said)

    def go(self) -> None:
        """Let the agent begin; again changes nothing."""
        if self.state != READY:
            return
        self.state = RUNNING
        try:
            self._tree.leader = self._launch.go()
        except spawn.NotStarted as why:
            self._not_started = str(why)
        finally:
            self._stdio.close_theirs()
        if self._not_started is not None:
            self.finish()
            return
        self._tree.wrapper = (self._tree.leader,) if self._has_status else ()
        self._folder.keeper.add(agent=files.describe(self._tree.leader))
        self._watch.begin()
        if self._watch.clock.is_held_by("pause"):
            self._tree.freeze("pause")
        if self._request.first_input:
            self._pump.send(0, self._request.first_input)
        if not self._request.keeps_stdin:
            self._pump.end_input()
        for message in self._early:
            self.command(message)

    def stop(self, cause: str, grace_s: float) -> None:
        """End everybody, gracefully or at once."""
        if self.state == RUNNING:
            self.reap()  # on a busy machine a command may be heard before the leader's end is
        if self.state == SETTLED:
            return
        if self.state != LEAVING:  # there it has already ended by itself
            self.cause = self.cause or cause
        if grace_s <= 0 or self.state == READY:
            self.finish()
        elif self.state == RUNNING:
            self.state = STOPPING
            self._tell_all_to_end(grace_s)
        elif time.monotonic() + grace_s < self._grace_end:  # never longer than was said first
            self._loop.after("grace", grace_s, self.finish)

    def exceed(self, excess: Excess) -> None:
        """End everybody because a limit was passed."""
        is_at_once = self._request.kinds[excess.kind]["ends_at_once"]
        if self.state == RUNNING:
            self.stop(self._blame(excess), 0 if is_at_once else self._request.grace_s)
        elif is_at_once:  # not even what is left of its grace
            self.finish()

    def _tell_all_to_end(self, grace_s: float) -> None:
        self._watch.relax()
        self._watch.clock.release("pause")
        self._grace_end = time.monotonic() + grace_s
        self._loop.at("grace", self._grace_end, self.finish)
        self._read_status()
        # A sandbox that has not yet told of its first process has not begun with the agent.
        is_up = self._tree.init > 0 or not self._request.has_pid_namespace
        if not self._tree.terminate() or not is_up:
            self._loop.after("grace", 0, self.finish)

    def _blame(self, excess: Excess) -> str:
        if self.cause is None:
            cause: str = self._request.kinds[excess.kind]["cause"]
            self.cause, self._excess = cause, excess
        return self.cause

    def reap(self) -> None:
        """Somebody below has ended."""
        has_leader_ended = self._tree.reap()
        if has_leader_ended:
            self._leader_ended()
        if self._tree.is_empty and self.state in (LEAVING, STOPPING):
            self.finish()

    def finish(self) -> None:
        """Sweep, drain and write down how it ended."""
        if self.state == SETTLED:
            return
        has_begun = self.state != READY
        self.state = SETTLED
        self._watch.end()
        unkillable = self._tree.sweep(self._folder.wake_fd)
        if has_begun and not self._not_started and not self._leader_end:
            self._pump.drain()
            self._leader_end = self._folder.recorder.size
        oom = self._watch.oom()
        if oom is not None:
            self._blame(oom)
        self._read_status()
        is_whole = self._pump.drain_to_end(_FOREIGN_HOLDER_S if has_begun else 0)
        self._pump.close()
        self._folder.recorder.retry()
        self._folder.recorder.sync()
        # Only after an end like most: nothing was forced, nobody foreign holds on to anything.
        is_plain = self.cause is None and self._tree.status is not None and is_whole
        self.is_free = self.may_go_on and is_plain and not self._tree.rounds
        self._settle(self._exit(unkillable, is_whole=is_whole))

    def command(self, message: dict[str, Any]) -> None:
        """Do what a client asks; what is unknown, or too late, is ignored."""
        act = getattr(self, f"_do_{message.get('do')}", None)
        if act is not None and self.state != SETTLED:
            act(message)

    def _do_go(self, _: dict[str, Any]) -> None:
        self.go()

    def _do_stop(self, message: dict[str, Any]) -> None:
        grace_s = message["grace_s"]
        self.stop(message["cause"], self._request.grace_s if grace_s is None else grace_s)

    def _do_interrupt(self, _: dict[str, Any]) -> None:
        if self.state == RUNNING:
            self._tree.interrupt()

    def _do_pause(self, _: dict[str, Any]) -> None:
        if self.state in (READY, RUNNING):
            self._watch.clock.hold("pause")
            self._watch.clock_changed()
        if self.state == RUNNING:  # before that there is nobody to freeze: see `go`
            self._tree.freeze("pause")

    def _do_resume(self, _: dict[str, Any]) -> None:
        self._tree.thaw("pause")
        self._watch.clock.release("pause")
        self._watch.clock_changed()

    def _do_hold(self, message: dict[str, Any]) -> None:
        self._watch.hold_for_human(is_held=message["held"])

    def _do_stdin(self, message: dict[str, Any]) -> None:
        if self.state == READY:  # the first input comes first
            self._early.append(message)
            return
        n, data = message["n"], message["data"]
        if n <= self._stdin_n:
            self._pump.send(n, b"")  # acknowledged again, once what is queued has gone
            return
        self._stdin_n = n
        if data is None:
            self._pump.end_input()
        self._pump.send(n, wire.as_bytes(data or ""))

    def _do_winsize(self, message: dict[str, Any]) -> None:
        self._pump.resize(message["rows"], message["columns"])

    def _do_limits(self, message: dict[str, Any]) -> None:
        self._watch.change(message["limits"])

    def _do_ping(self, message: dict[str, Any]) -> None:
        self._control.say({"say": "pong", "n": message["n"]})

    def _do_untether(self, _: dict[str, Any]) -> None:
        self._folder.is_tethered = False

    def _connect(self) -> None:
        pump, control, recorder = self._pump, self._control, self._folder.recorder
        pump.on_output = lambda: control.post("out", {"say": "out", "n": recorder.size})
        pump.on_sent = lambda n: control.say({"say": "sent", "n": n})
        pump.on_clog = lambda on: control.post("clogged", {"say": "clogged", "on": on})
        self._watch.on_excess = self.exceed
        self._watch.on_usage = lambda used: control.post("usage", {"say": "usage", "usage": used})
        self._watch.on_orphans = self._note_orphans
        if self._has_status:
            self._loop.watch(self._stdio.status, select.POLLIN, lambda _: self._read_status())

    def _note_orphans(self, pids: list[int]) -> None:
        """If this keeper is killed, nobody can tell them from other processes."""
        self._folder.keeper.say_last(orphans=[files.describe(pid) for pid in pids[-_MOST_NAMED:]])

    def _leader_ended(self) -> None:
        self._pump.drain()
        self._leader_end = self._folder.recorder.size
        if self.state != RUNNING:
            return
        self.state = LEAVING
        if not self._tree.is_empty:
            self._left_over = self._tree.names()
            self._tell_all_to_end(min(self._request.grace_s, _LEFT_OVER_GRACE_S))

    def _read_status(self) -> None:
        """The sandbox says who its first process is, and later how the agent ended."""
        while self._stdio.status >= 0:
            try:
                data = os.read(self._stdio.status, 4096)
            except BlockingIOError:
                return
            if not data:
                self._loop.unwatch(self._stdio.status)
                os.close(self._stdio.status)
                self._stdio.status = -1
            *lines, self._status = (self._status + data).split(b"\n")
            for line in lines:
                self._learn(wire.decode(line))

    def _learn(self, report: dict[str, int]) -> None:
        if "child-pid" in report and self._request.has_pid_namespace:
            self._tree.init = report["child-pid"]
            self._tree.wrapper = (self._tree.leader, self._tree.init)
            self._folder.keeper.add(init=files.describe(self._tree.init))
        if "exit-code" in report:
            self._exit_code = report["exit-code"]

    def _ended(self) -> dict[str, Any]:
        """The leader's own end, or why it never began."""
        not_started = self._not_started
        code, signal_number = self._exit_code, None
        status = self._tree.status
        if status is not None and code is None:
            number = os.waitstatus_to_exitcode(status)
            code, signal_number = (number, None) if number >= 0 else (None, -number)
            if self._has_status and number > 0 and self.cause is None:
                said = self._pump.last_error.decode(errors="replace").strip()
                not_started, code = said or f"the sandbox ended with exit code {number}", None
        elif status is None and not_started is None:
            not_started = f"stopped before it began: {self.cause}"
        return {"exit_code": code, "signal": signal_number, "not_started": not_started}

    def _exit(self, unkillable: list[int], *, is_whole: bool) -> dict[str, Any]:
        excess = self._excess
        return {
            "v": wire.VERSION,
            "attempt": self._request.attempt,
            "cause": self.cause,
            **self._ended(),
            "limit": self._passed(excess) if excess else None,
            "usage": self._watch.usage(is_final=True),
            "wall_s": self._watch.clock.wall_s,
            "paused_s": self._watch.clock.held_s,
            "leader_end": self._leader_end,
            "end": self._folder.recorder.size,
            "eof": is_whole,
            "is_truncated": self._pump.is_truncated or self._folder.recorder.is_clogged,
            "lost_output": self._pump.lost_bytes,
            "left_over": self._left_over,
            "unkillable": unkillable[:_MOST_NAMED],
            "sweep_rounds": self._tree.rounds,
            "ended_at": time.time(),
        }

    def _passed(self, excess: Excess) -> dict[str, Any]:
        kind = self._request.kinds[excess.kind]
        return {
            "dimension": kind["dimension"],
            "allowed": excess.allowed,
            "seen": round(excess.seen, 3),
            "unit": kind["unit"],
        }

    def _settle(self, content: dict[str, Any]) -> None:
        self._folder.exit.write(content)  # or not, when the folder is gone: then it is only told
        self._folder.is_settled = True
        self._ended_as = content
        self.farewell()
