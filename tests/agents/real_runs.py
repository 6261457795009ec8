"""Runs of the installed command with real clients, in a real repository and the real sandbox."""

import contextlib
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from engine.keeper import proc
from tests.agents.clients import KEY, codex_config, environment, settings_for, want
from tests.agents.model_server import ModelServer
from tests.support.shells import Done, Shell, wait_event

PROGRAMS = {
    "claude-acp": "claude-agent-acp",
    **{f"{name}-acp": name for name in ("gemini", "opencode", "copilot", "qwen")},
}
"""Programs that are not called like the agent."""
IMPATIENT = {"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2"}
"""mini asks ten times with growing pauses, also where it was refused for good."""
PLAIN = (
    *("opencode", "copilot", "qwen", "cline"),
    *("claude-acp", "opencode-acp", "copilot-acp", "qwen-acp"),
)
"""Agents that are told everything by their environment or their HOME."""


def agents_for(server: ModelServer) -> dict[str, Any]:
    """The agents of a manifest, each of which asks this server."""
    provider = f'{{name="x", base_url="{server.url}/v1", wire_api="responses", env_key="K"}}'
    codex = f"-c 'model_providers.x={provider}' -c model_provider=x"
    return {
        "claude": {"adapter": "claude"},
        "codex": {"adapter": "codex", "model": "gpt-5.5", "options": {"args": codex}},
        "gemini": {"adapter": "gemini", "model": "gemini-2.5-flash"},
        "gemini-acp": {"adapter": "gemini-acp", "model": "gemini-2.5-flash"},
        "pi": {"adapter": "pi", "model": "fake-model", "options": {"args": "--provider fake"}},
        **{name: {"adapter": name} for name in PLAIN},
        "codex-acp": {"adapter": "codex-acp", "env": {"CODEX_CONFIG": codex_config(server)}},
        "aider": {"adapter": "aider", "model": "openai/fake-model"},
        "mini": {"adapter": "mini", "model": "openai/fake-model", "env": IMPATIENT},
    }


class RealRun:
    """A repository, an agent, and shells in which `plait` is typed."""

    def __init__(self, folder: Path, agent: str, server: ModelServer) -> None:
        want(PROGRAMS.get(agent, agent))
        self.agent = agent
        self.server = server
        self.folder = folder / "repository"
        self.folder.mkdir()
        self.env = {
            **environment(server),
            "CLAUDE_CODE_MAX_RETRIES": "3",
            "K": KEY,
        }
        if "claude" not in agent:  # another one would be said to log in by it
            del self.env["ANTHROPIC_API_KEY"]
        self.state = folder / "state"
        self.shell = Shell(self.folder, self.state, self.env, patience_s=240)
        self.shell.git("init", "-q", "-b", "main")
        self.shell.git("config", "user.name", "A")
        self.shell.git("config", "user.email", "a@b")
        (self.folder / "a.txt").write_text("one\ntwo\nthree\n")
        self.shell.git("add", ".")
        self.shell.git("commit", "-qm", "first")

    def plan(self, *, runtime: dict[str, Any] | None = None, **step: Any) -> None:
        """Write a manifest with one step."""
        made = {"name": "work", "agent": self.agent, "prompt": "Fix the parser", **step}
        manifest = {
            "runtime": {"sandbox": {"env": ["K"]}, **(runtime or {})},
            "agents": agents_for(self.server),
            "pipelines": [{"name": "p", "steps": [made]}],
        }
        if files := settings_for(self.agent, self.server):
            manifest["workspace"] = {"setup": "\n".join(map(written, files, files.values()))}
        # Not beside the code: a manifest that is not committed would make the checkout dirty.
        (self.folder.parent / "plait.yaml").write_text(json.dumps(manifest))

    @property
    def words(self) -> tuple[str, ...]:
        return ("run", str(self.folder.parent / "plait.yaml"), "--headless", "--json")

    def run(self, *more: str) -> dict[str, Any]:
        """Run to the end; the one worker's result."""
        return self.result(self.shell.plait(*self.words, *more))

    def result(self, done: Done) -> dict[str, Any]:
        assert done.out, done.err
        report = done.events[-1]["report"]
        found: dict[str, Any] = report["steps"]["work"]["worker_results"][0]
        return found

    @contextlib.contextmanager
    def running(self, *more: str) -> Iterator[subprocess.Popen[str]]:
        """A run that goes on while others are typed."""
        with self.shell.running(*self.words, *more) as process:
            yield process

    def status(self, worker: int = 0) -> dict[str, Any]:
        """One worker as `plait status --json` shows it."""
        told = self.shell.plait("status", "--json").json()
        found: dict[str, Any] = told["steps"][0]["workers"][worker]
        return found

    def committed(self, worker: int = 1) -> str:
        """Return what the worker's branch has beside the base."""
        branch = self.shell.git("branch", "--list", "--format=%(refname)", f"*worker_{worker}")
        return self.shell.git("show", f"{branch.split()[-1]}:hello.txt")

    def files_of_change(self, worker: int = 1) -> list[str]:
        """Return what differs between the base and the worker's branch."""
        branch = self.shell.git("branch", "--list", "--format=%(refname)", f"*worker_{worker}")
        return self.shell.git("diff", "--name-only", "main", branch.split()[-1]).split()

    def wait_status(self, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read the first worker until it is as wanted."""
        worker: dict[str, Any] = {}
        for _ in range(600):
            if is_it(worker := self.status()):
                return worker
            threading.Event().wait(0.1)
        raise AssertionError(f"not so after a minute: {worker}")

    def wait_work(self, name: str) -> Path:
        """A file of the first worker's, as soon as it is there."""
        for _ in range(600):
            workspace = self.status()["workspace"]
            if workspace and (file := Path(workspace, name)).exists():
                return file
            threading.Event().wait(0.1)
        raise AssertionError(f"no {name} after a minute")

    def living(self) -> dict[int, str]:
        """All that was started below this repository and still lives, but for engine and zygote."""
        wanted, found = os.fsencode(self.state), {}
        for pid in proc.everybody():
            process = proc.look(pid)
            if process is None or process.is_dead or pid == os.getpid():
                continue
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{pid}/environ").read_bytes()
                if b"PLAIT_MARK=" in environ and wanted in environ:
                    found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        return found


def written(path: str, text: str) -> str:
    """The shell line that writes a file of the worker's HOME."""
    name = f'"$HOME/{path}"'
    return f'mkdir -p "$(dirname {name})" && echo {shlex.quote(text)} >{name}'


def until_running(process: subprocess.Popen[str]) -> None:
    wait_event(process, "WorkerMoved", after="RUNNING")


def wait_shown(real: RealRun, words: str) -> None:
    """Wait until the newest lines of the worker hold these words."""
    for _ in range(300):
        if words in "\n".join(real.status()["last_lines"]):
            return
        threading.Event().wait(0.1)
    raise AssertionError(f"{words!r} not shown: {real.status()['last_lines']}")
