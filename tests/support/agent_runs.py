"""Agents launched as real processes and pumped by hand, without keeper or sandbox."""

import os
import subprocess
import threading
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine.agents.agent_events import AgentEvent, AgentOutcome, ProtocolReply, TurnEnded
from engine.agents.contract import AgentAdapter, AgentLaunch, Ending, LaunchRequest

_Kind = TypeVar("_Kind")
DEADLINE_S = 240.0


def launch_request(folder: Path, **more: Any) -> LaunchRequest:
    """A request whose HOME and workspace are folders of this one."""
    for name in ("home", "work"):
        (folder / name).mkdir(exist_ok=True)
    given = {
        "prompt": "Fix the parser",
        "workspace": str(folder / "work"),
        "home": str(folder / "home"),
    }
    return LaunchRequest(**{**given, **more})


class RunningAgent:
    """A launched agent and its parser."""

    def __init__(self, adapter: AgentAdapter, asked: LaunchRequest) -> None:
        self.launch: AgentLaunch = adapter.launch(asked)
        self.parser = adapter.parser(asked)
        self.events: list[AgentEvent] = []
        self.keeps_open = False
        for file in self.launch.files:
            path = Path(asked.home, file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        self.process = subprocess.Popen(
            self.launch.argv,
            cwd=asked.workspace,
            env={"PATH": os.environ["PATH"], "HOME": asked.home, **self.launch.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdin, self.stdout, self.stderr = (
            self.process.stdin,
            self.process.stdout,
            self.process.stderr,
        )
        # Reading waits without an end of its own, so a hung agent is ended here.
        self._deadline = threading.Timer(DEADLINE_S, self.process.kill)
        self._deadline.start()
        self.write(self.launch.first_input)
        if not self.launch.keeps_stdin:
            self.stdin.close()

    def write(self, data: bytes | None) -> None:
        assert data is not None, "this agent cannot be told that"
        self.stdin.write(data)
        self.stdin.flush()
        self.parser.feed("in", data)

    def until(self, kind: type[_Kind]) -> _Kind:
        """Read on until there is an event of that kind."""
        while data := os.read(self.stdout.fileno(), 65536):
            for event in self.take(data):
                if isinstance(event, kind):
                    return event
        pytest.fail(f"ended without {kind.__name__}: {self.events}")

    def take(self, data: bytes) -> list[AgentEvent]:
        told = self.parser.feed("out", data)
        self.events += told
        for event in told:
            if isinstance(event, ProtocolReply):
                self.write(event.data)
            elif isinstance(event, TurnEnded) and not (self.keeps_open or self.stdin.closed):
                self.stdin.close()
        return told

    def end(self) -> AgentOutcome:
        """Read to the end, and hear the verdict."""
        while data := os.read(self.stdout.fileno(), 65536):
            self.take(data)
        self.events += self.parser.feed("err", self.stderr.read())
        code = self.process.wait(timeout=30)
        self._deadline.cancel()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()
        ending = Ending(exit_code=code) if code >= 0 else Ending(signal=-code)
        return self.parser.finish(ending)

    def told(self, kind: type[_Kind]) -> list[_Kind]:
        return [event for event in self.events if isinstance(event, kind)]
