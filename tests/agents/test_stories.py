"""Every client through every story: whole runs of the installed command, in the real sandbox.

A story that a client cannot do is in `stories.CANNOT` with its reason, and on the page.
"""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.agents.registry import adapter_named
from tests.agents.clients import HINT, Serve, work_for
from tests.agents.model_server import PATIENCE_S, Turn
from tests.agents.real_runs import RealRun, until_running, wait_shown
from tests.agents.stories import (
    ASKS_EARLY,
    BEGINS_ANEW,
    CANNOT,
    CLIENTS,
    FIGURES,
    KEYS,
    SHOWS,
    STORIES,
    TELLS_NETWORK,
    TELLS_NO_TOOL,
    UNTIL,
    WAITS,
    told_of,
)
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

NO_SUCH_MODEL = "model.* (?:unknown|not found)|model .*may not exist"
LONGEST_CANCEL_S = 10.0
WAIT_S = 8
LONGEST_REFUSAL_S = 20.0
CELLS = [(story, agent) for story in STORIES for agent in CLIENTS if (story, agent) not in CANNOT]


def scripted(agent: str, folder: Path, serve: Serve, *turns: Turn, **step: Any) -> RealRun:
    """A run whose model follows this script, by what its conversation has come to."""
    server = serve([*turns])
    server.is_by_conversation = agent != "aider"
    server.wants_tools = agent != "aider"  # it offers its model no tools at all
    real = RealRun(folder, agent, server)
    real.plan(**step)
    return real


def refused(agent: str, folder: Path, serve: Serve, *turns: Turn) -> RealRun:
    """A run whose model refuses before it follows the rest of the script, request by request."""
    real = scripted(agent, folder, serve, *turns)
    real.server.is_by_conversation = False
    real.env.pop("CLAUDE_CODE_MAX_RETRIES", None)  # by itself it asks ten times
    return real


def result_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    found: dict[str, Any] = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    return found


def cancelled(real: RealRun, process: subprocess.Popen[str]) -> None:
    """No process is left ten seconds after the word was given."""
    assert real.living()
    began = time.monotonic()
    assert real.shell.plait("cancel", "work/worker_1").code == 0
    wait_event(process, "WorkerMoved", before="STOPPING")
    assert not real.living()
    assert time.monotonic() - began < LONGEST_CANCEL_S
    rest_of(process)


def creates(agent: str, folder: Path, serve: Serve) -> None:
    real = scripted(agent, folder, serve, *work_for(agent), max_concurrent_agents=3)
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result
    assert real.committed() == "hello\n"
    assert real.files_of_change() == ["hello.txt"]
    assert not (real.folder / "hello.txt").exists()
    assert HINT in str(real.server.requests)
    worker = real.status()
    held = {row["dimension"]: row["level"] for row in worker["enforcement"]}
    assert (held["files"], held["git"]) == ("enforced", "enforced")
    can = adapter_named(agent).capabilities
    told = tuple(worker["usage"][name] is not None for name in ("input_tokens", "usd"))
    assert told == (can.usage, can.cost), worker["usage"]


def asks(agent: str, folder: Path, serve: Serve, answer: str) -> dict[str, Any]:
    turns = work_for(agent)
    if agent == "codex-acp":  # it asks for what its mode does not allow
        wish = {"sandbox_permissions": "require_escalated", "justification": "to write"}
        turns[0] = Turn(uses=("exec_command", {"cmd": "echo hello > hello.txt", **wish}))
    real = scripted(agent, folder, serve, *turns, permissions="ask")
    with real.running() as process:
        asked = wait_event(process, "Asked")["question"]
        assert "echo hello > hello.txt" in asked["text"]
        assert real.shell.plait("answer", "work/worker_1", answer).code == 0
        return result_of(process)


def is_allowed(agent: str, folder: Path, serve: Serve) -> None:
    result = asks(agent, folder, serve, "allow")
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result


def is_denied(agent: str, folder: Path, serve: Serve) -> None:
    result = asks(agent, folder, serve, "deny")
    assert result["outcome"] in {"unchanged", "failed"}, result
    assert result["commit"] is None


def is_steered(agent: str, folder: Path, serve: Serve) -> None:
    looks = Turn(text="I look.", runs="touch begun; until test -e go; do sleep 0.05; done; rm go")
    real = scripted(agent, folder, serve, looks, work_for(agent)[1])
    with real.running() as process:
        until_running(process)
        begun = real.wait_work("begun")
        said = real.shell.plait("steer", "work/worker_1", "Use spaces.")
        assert "the agent has not read it yet" in said.err
        (begun.parent / "go").touch()
        events = rest_of(process)
    assert [e["delivery"] for e in events if e["type"] == "Steered"] == ["queued", "delivered"]
    assert "Use spaces." in str(real.server.requests[-1])


def is_cancelled(agent: str, folder: Path, serve: Serve) -> None:
    turns = work_for(agent, command="echo partial > hello.txt; sleep 600")
    real = scripted(agent, folder, serve, Turn(text="I look.", runs="echo looked"), *turns)
    with real.running() as process:
        until_running(process)
        real.wait_work("hello.txt")
        worker = real.status()
        if agent not in TELLS_NO_TOOL:
            worker = real.wait_status(lambda worker: "sleep 600" in (worker["tool"] or ""))
            assert 0 <= time.time() - worker["tool_since"] < PATIENCE_S
        told = tuple(name for name in FIGURES if worker[name])
        assert told == SHOWS.get(agent, ()), worker
        cancelled(real, process)
    assert real.committed() == "partial\n"


def hangs(agent: str, folder: Path, serve: Serve) -> None:
    real = scripted(agent, folder, serve, Turn(text="And", hangs=True))
    with real.running() as process:
        until_running(process)
        real.server.wait_requests(1)
        cancelled(real, process)


def goes_on(agent: str, folder: Path, serve: Serve) -> None:
    real = scripted(agent, folder, serve, *work_for(agent))
    assert real.run()["outcome"] == "success"
    before = len(real.server.requests)
    _, last = work_for(agent)
    better = Turn(text="Better.", runs="echo better > better.txt")
    if agent == "aider":
        better = Turn(text="Better.\n\nbetter.txt\n```\nbetter\n```\n")
    real.server.follow([better, last])
    said = real.shell.plait("retry", "work/worker_1", "-m", "Say it better.")
    assert said.code == 0, said.err
    assert "continues with its" in said.err
    real.shell.plait("resume", "--headless", "--json")
    worker = real.status()
    assert (worker["phase"], worker["attempt"]) == ("REVIEWING", 2), worker
    assert real.files_of_change() == ["better.txt", "hello.txt"]
    asked = str(real.server.requests[before:])
    assert "Say it better." in asked
    assert ("I will write." in asked) is (agent not in BEGINS_ANEW)


def meets_400(agent: str, folder: Path, serve: Serve) -> None:
    result = refused(agent, folder, serve, Turn(status=400)).run()
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT"), result
    assert result["commit"] is None
    assert "400" in result["error"]


def meets_401(agent: str, folder: Path, serve: Serve) -> None:
    real = refused(agent, folder, serve, Turn(status=401))
    with real.running() as process:
        real.server.wait_login()
        began = time.monotonic()
        events = rest_of(process)
        assert time.monotonic() - began < LONGEST_REFUSAL_S
    assert process.returncode == 3
    (waits,) = events[-1]["report"]["waits_for"]
    assert waits.startswith("log in for work/worker_1")
    assert re.search("401|Authentication", waits)
    if agent in KEYS:
        assert waits.endswith(f"it authenticates with {KEYS[agent]}")
    assert real.status()["badges"] == ["needs_login"]


def meets_404(agent: str, folder: Path, serve: Serve) -> None:
    result = refused(agent, folder, serve, Turn(status=404)).run()
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT"), result
    assert re.search(NO_SUCH_MODEL, result["error"]), result["error"]


def waits_for(status: int, agent: str, folder: Path, serve: Serve) -> None:
    busy = Turn(status=status, headers={"retry-after": str(WAIT_S)})
    first, last = work_for(agent)
    real = refused(agent, folder, serve, busy, first, last)
    named = "busy" if agent == "mini" else str(status)
    with real.running() as process:
        if told_of(agent, status) == UNTIL:
            met = wait_event(process, "RateLimitMet")
            assert met["status"] == named
            worker = real.status()
            assert (worker["badges"], worker["rate_limited_until"]) == (
                ["rate_limited"],
                met["until"],
            )
            assert -1 < met["until"] - real.server.moments[0] - WAIT_S < WAIT_S
        events = rest_of(process)
    later = [(e["until"], e["status"]) for e in events if e["type"] == "RateLimitMet"]
    if told_of(agent, status) != UNTIL:
        assert set(later) == ({(None, named)} if told_of(agent, status) == WAITS else set())
    result = events[-1]["report"]["steps"]["work"]["worker_results"][0]
    assert result["outcome"] == "success", result
    assert real.committed() == "hello\n"
    waited_s = real.server.moments[1] - real.server.moments[0]
    assert (waited_s > WAIT_S - 0.5) is ((agent, status) not in ASKS_EARLY), waited_s


def meets_429(agent: str, folder: Path, serve: Serve) -> None:
    waits_for(429, agent, folder, serve)


def meets_529(agent: str, folder: Path, serve: Serve) -> None:
    waits_for(529, agent, folder, serve)


def loses_its_server(agent: str, folder: Path, serve: Serve) -> None:
    first, last = work_for(agent, command="echo partial > hello.txt; until test -e go; do :; done")
    real = scripted(agent, folder, serve, first, last)
    with real.running() as process:
        until_running(process)
        work = real.wait_work("hello.txt")
        real.server.close()
        (work.parent / "go").touch()
        wait_shown(real, TELLS_NETWORK.get(agent, ""))
        cancelled(real, process)
    assert real.committed() == "partial\n"


PLAYED: dict[str, Callable[[str, Path, Serve], None]] = {
    "create": creates,
    "allowed": is_allowed,
    "denied": is_denied,
    "steer": is_steered,
    "cancel in a tool": is_cancelled,
    "cancel while its model hangs": hangs,
    "resume with feedback": goes_on,
    "400": meets_400,
    "401": meets_401,
    "404": meets_404,
    "429": meets_429,
    "529": meets_529,
    "server killed": loses_its_server,
}


@pytest.mark.parametrize(("story", "agent"), CELLS, ids=lambda word: word.replace(" ", "_"))
def test_story(story: str, agent: str, folder: Path, serve: Serve) -> None:
    PLAYED[story](agent, folder, serve)
