"""The whole path with the real Claude Code and Codex: from `plait run` to the change for review."""

import time
from pathlib import Path

import pytest

from tests.agents.clients import HINT, WORK, Serve
from tests.agents.model_server import Turn
from tests.agents.real_runs import RealRun, until_running
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

AGENTS = ("claude", "codex")
LONGEST_CANCEL_S = 10.0


@pytest.mark.parametrize("agent", AGENTS)
def test_it_works_in_the_sandbox_and_its_change_is_kept(
    agent: str, folder: Path, serve: Serve
) -> None:
    real = RealRun(folder, agent, server := serve(WORK))
    real.plan(max_concurrent_agents=3)
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result
    assert result["output"] == "Written."
    assert real.committed() == "hello\n"
    assert not (real.folder / "hello.txt").exists()
    assert HINT in str(server.requests[0])
    worker = real.status()
    held = {row["dimension"]: row["level"] for row in worker["enforcement"]}
    assert (held["files"], held["git"]) == ("enforced", "enforced")
    usage = worker["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (2000, 100)
    assert (usage["usd"] is None) is (agent == "codex")


@pytest.mark.parametrize("agent", AGENTS)
def test_failures_of_the_server_are_overcome(agent: str, folder: Path, serve: Serve) -> None:
    failing = Turn(status=500)
    real = RealRun(folder, agent, serve([failing, failing, *WORK]))
    real.plan()
    assert real.run()["outcome"] == "success"
    assert real.committed() == "hello\n"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_cancelled_agent_leaves_no_process(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="Hm.", runs="echo partial > hello.txt; sleep 600"), WORK[1]])
    real = RealRun(folder, agent, server)
    real.plan()
    with real.running() as process:
        until_running(process)
        real.wait_work("hello.txt")
        assert real.living()
        says_what_it_is_at(real)
        began = time.monotonic()
        assert real.shell.plait("cancel", "work/worker_1").code == 0
        moved = wait_event(process, "WorkerMoved", before="STOPPING")
        assert not real.living()
        assert time.monotonic() - began < LONGEST_CANCEL_S
        assert moved["cause"] == "USER"
        assert process.wait(timeout=30) == 1
    assert real.committed() == "partial\n"


def says_what_it_is_at(real: RealRun) -> None:
    worker = real.wait_status(lambda worker: "sleep 600" in (worker["tool"] or ""))
    assert 0 <= time.time() - worker["tool_since"] < 60
    assert "sleep 600" in real.shell.plait("status").out
    if real.agent == "claude":
        assert worker["model"] in real.shell.plait("status").out
        assert (worker["context"] > 0, worker["turns"]) == (True, 1)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("mode", ["", "resume"])
def test_a_retry_takes_the_session_up_with_the_feedback(
    mode: str, agent: str, folder: Path, serve: Serve
) -> None:
    better = Turn(text="Better.", runs="echo better >> hello.txt")
    server = serve([*WORK, better, Turn(text="Better now.")])
    real = RealRun(folder, agent, server)
    real.plan()
    real.run()
    first = real.status()
    words = ("retry", "work/worker_1", "-m", "Say it better.")
    retried = real.shell.plait(*words, *(("--mode", mode) if mode else ()))
    assert retried.code == 0, retried.err
    assert ("resumes where it stopped" if mode else "continues with its") in retried.err
    real.shell.plait("resume", "--headless", "--json")
    worker = real.status()
    assert (worker["phase"], worker["attempt"]) == ("REVIEWING", 2), worker
    assert real.committed() == "hello\nbetter\n"
    last = str(server.requests[-1])
    assert "Say it better." in last
    assert "I will write." in last
    assert first["usage"]["input_tokens"] == 2000
    assert [each["input_tokens"] for each in worker["attempt_usages"]] == [2000, 2000]
    assert worker["usage"]["input_tokens"] == 4000  # of both attempts, none counted twice


@pytest.mark.parametrize("agent", AGENTS)
def test_workers_ask_at_once_and_never_more_than_the_cap(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve([Turn(text="I will.", runs="echo hello > hello.txt", waits=True), WORK[1]])
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    cells = {"matrix": {"items": ["a", "b", "c", "d"]}}
    real.plan(strategy=cells, policy="settled", runtime={"max_concurrent_workers": 3})
    with real.running() as process:
        server.wait_in_flight(3)
        phases = [real.status(n)["phase"] for n in range(4)]
        assert sorted(phases) == ["QUEUED", "RUNNING", "RUNNING", "RUNNING"]
        server.gate.set()
        report = rest_of(process)[-1]["report"]
    assert server.peak == 3
    assert report["steps"]["work"]["success_count"] == 4


@pytest.mark.parametrize("agent", AGENTS)
def test_each_replica_asks_for_itself(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="I will.", runs="echo hello > hello.txt", waits=True), WORK[1]])
    server.is_by_conversation = True
    real = RealRun(folder, agent, server)
    real.plan(concurrency=3, policy="settled")
    with real.running() as process:
        server.wait_in_flight(3)
        assert server.in_flight == 3
        server.gate.set()
        rest_of(process)
    assert [real.committed(n) for n in (1, 2, 3)] == ["hello\n"] * 3


@pytest.mark.parametrize(("policy", "outcome"), [("deny", "unchanged"), ("fail", "cancelled")])
def test_questions_of_claude_are_answered_by_policy(
    policy: str, outcome: str, folder: Path, serve: Serve
) -> None:
    real = RealRun(folder, "claude", serve(WORK))
    real.plan(permissions="ask")
    result = real.run("--on-question", policy)
    assert result["outcome"] == outcome, result
    assert result["commit"] is None


def test_codex_is_not_started_where_it_would_have_to_ask(folder: Path, serve: Serve) -> None:
    real = RealRun(folder, "codex", serve(WORK))
    real.plan(permissions="ask")
    result = real.run()
    assert result["outcome"] == "failed"
    assert "cannot ask" in result["error"]


def test_claude_is_steered_while_it_works(folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="I look.", runs="until test -e go; do sleep 0.05; done"), WORK[1]])
    real = RealRun(folder, "claude", server)
    real.plan()
    with real.running() as process:
        wait_event(process, "ToolUsed")
        said = real.shell.plait("steer", "work/worker_1", "Use spaces.")
        assert said.code == 0
        assert "the agent has not read it yet" in said.err  # its tool goes on
        assert wait_event(process, "Steered")["delivery"] == "queued"
        Path(real.status()["workspace"], "go").touch()
        assert wait_event(process, "Steered")["delivery"] == "delivered"
        rest_of(process)
    assert "Use spaces." in str(server.requests[-1]["messages"])


def test_codex_is_told_when_it_is_taken_up_again(folder: Path, serve: Serve) -> None:
    looks = Turn(text="I look.", runs="until test -e go; do sleep 0.05; done; rm go")
    server = serve([looks, WORK[1], WORK[0], Turn(text="With spaces.")])
    real = RealRun(folder, "codex", server)
    real.plan()
    with real.running() as process:
        wait_event(process, "ToolUsed")
        assert real.shell.plait("steer", "work/worker_1", "Use spaces.").code == 0
        assert "when it resumes" in real.shell.plait("logs", "work/worker_1").out
        Path(real.status()["workspace"], "go").touch()
        events = rest_of(process)
    result = events[-1]["report"]["steps"]["work"]["worker_results"][0]
    fates = [(e["attempt"], e["delivery"]) for e in events if e["type"] == "Steered"]
    assert fates == [(1, "queued"), (2, "delivered")]
    assert (result["outcome"], result["attempts"]) == ("success", 2)
    assert result["output"] == "With spaces."
    assert "Use spaces." in str(server.requests[2])
    assert "I look." in str(server.requests[2])
    assert real.committed() == "hello\n"


@pytest.mark.parametrize("agent", ["claude-acp", "codex-acp"])
def test_a_log_says_each_thing_once(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, server := serve(WORK))
    server.is_by_conversation = True
    real.plan()
    assert real.run()["outcome"] == "success"
    lines = real.shell.plait("logs", "work/worker_1").out.splitlines()
    said = [
        line for line in lines if line.startswith("$ ") or line in {"I will write.", "Written."}
    ]
    assert [line.split()[0] for line in said] == ["I", "$", "Written."]
    assert said[1].endswith("echo hello > hello.txt")
    assert not [line for line in lines if "jsonrpc" in line or "task_started" in line]
