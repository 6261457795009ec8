"""A shell for end-to-end stories: the installed program, in a folder and a state of its own.

A command that is waited for comes from a process that has the program loaded already; one that goes
on while others are typed is started as a user starts it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import psutil

from tests.support.warm import run_warm

PATIENCE_S = 60.0


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@dataclass
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Shell:
    """Types commands and reads what they say.

    `before` are words that lead every command elsewhere, as into another network.
    """

    folder: Path
    state: Path
    env: dict[str, str] = field(default_factory=dict)
    patience_s: float = PATIENCE_S
    before: tuple[str, ...] = ()

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PLAIT_STATE_HOME": str(self.state), **self.env}

    def _argv(self, words: tuple[str, ...]) -> list[str]:
        return [*self.before, sys.executable, "-m", "tui.cli", *words]

    def plait(self, *words: str, stdin: str = "") -> Done:
        if self.before:
            done = subprocess.run(
                self._argv(words),
                cwd=self.folder,
                env=self._environment(),
                input=stdin,
                capture_output=True,
                text=True,
                timeout=self.patience_s,
                check=False,
            )
            return Done(done.returncode, done.stdout, done.stderr)
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            code = run_warm(
                words,
                (given, out, err),
                cwd=self.folder,
                env=self._environment(),
                timeout_s=self.patience_s,
            )
            return Done(code, *map(_text_of, (out, err)))

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on while others are typed; ended with the block."""
        process = subprocess.Popen(
            self._argv(words),
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b", *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


def engine_named_in(file: Path) -> psutil.Process | None:
    """The engine that a file says is there; None where it has ended, which it may at any moment."""
    with suppress(FileNotFoundError, psutil.NoSuchProcess):
        return psutil.Process(json.loads(file.read_text())["pid"])
    return None


def engine_of(shell: Shell) -> psutil.Process | None:
    """The engine of a shell's repository, if there is one."""
    return engine_named_in(shell.folder / ".git" / "plait" / "engine.json")


def end(engine: psutil.Process) -> None:
    """End an engine that may be about to end by itself."""
    with suppress(psutil.NoSuchProcess):
        engine.terminate()
    psutil.wait_procs([engine], timeout=30)


def end_engine(shell: Shell) -> None:
    """End the detached engine, if there is one, and the agents it would leave alive."""
    if engine := engine_of(shell):
        shell.plait("cancel", "--all", "--kill")
        end(engine)


def wait_event(process: subprocess.Popen[str], wanted: str, **fields: Any) -> dict[str, Any]:
    """The next event of a kind on a run's NDJSON output, with these fields."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == wanted and all(event.get(k) == v for k, v in fields.items()):
            return event
    said = process.stderr.read() if process.stderr else ""
    raise AssertionError(f"the run ended before {wanted} {fields}: {said}")


def rest_of(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Every further event, until the command ends."""
    assert process.stdout is not None
    return [json.loads(line) for line in process.stdout]
