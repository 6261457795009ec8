"""A run understands limits, budgets and logins as the real Claude Code and Codex report them."""

import json
import time
from pathlib import Path

import pytest

from tests.agents.clients import WORK, Serve
from tests.agents.model_server import Turn
from tests.agents.real_runs import RealRun
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

AGENTS = ("claude", "codex")


def log_in(real: RealRun, token: str) -> None:
    """A login of claude's in the user's HOME, which is one of the test's own."""
    for name in ("ANTHROPIC_API_KEY",):
        real.env.pop(name, None)
    home = real.folder.parent / "home"
    kept = {"accessToken": token, "expiresAt": 4_000_000_000_000, "scopes": ["user:inference"]}
    (home / ".claude").mkdir(parents=True, exist_ok=True)
    (home / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": kept}))
    real.env["HOME"] = str(home)


def test_a_used_up_allowance_of_claude_s_is_waited_for(folder: Path, serve: Serve) -> None:
    resets = int(time.time()) + 3600
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(resets),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "x-should-retry": "false",
    }
    first = Turn(text="I will write.", runs="echo hello > hello.txt")
    server = serve([first, Turn(status=429, headers=headers), Turn(text="Written.")])
    real = RealRun(folder, "claude", server)
    log_in(real, "short-lived")
    real.plan()
    with real.running() as process:
        wait_event(process, "WorkerMoved", after="BACKING_OFF")
        worker = real.status()
        assert worker["retry_at"] == worker["rate_limited_until"] == resets
        assert len(server.requests) == 2
        # A human does not wait for the hour: the session is taken up where it stopped.
        assert real.shell.plait("retry", "work/worker_1", "--mode", "resume").code == 0
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    assert (result["outcome"], result["attempts"]) == ("success", 2)
    assert real.committed() == "hello\n"
    assert "I will write." in str(server.requests[-1]["messages"])


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refused_login_waits_for_a_human(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, serve([Turn(status=401)]))
    real.plan()
    done = real.shell.plait(*real.words)
    assert done.code == 3, done.err
    assert done.events[-1]["report"]["waits_for"][0].startswith("log in for work/worker_1")
    assert real.status()["badges"] == ["needs_login"]


def test_claude_goes_on_when_its_user_has_logged_in_again(folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    server.wanted_login = "Bearer good"
    real = RealRun(folder, "claude", server)
    log_in(real, "stale")
    real.plan()
    real.shell.plait(*real.words)
    log_in(real, "good")
    assert real.shell.plait("resume", "--headless", "--json").code == 3
    worker = real.status()
    assert (worker["phase"], worker["attempt"], worker["badges"]) == ("REVIEWING", 2, [])
    assert set(server.logins) == {"Bearer stale", "Bearer good"}


def test_claude_itself_looks_at_what_it_spends(folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="I look.", runs="echo looked"), WORK[1]])
    real = RealRun(folder, "claude", server)
    real.plan(runtime={"limits": {"budget_usd": 0.001}})
    result = real.run()
    assert (result["outcome"], result["cause"]) == ("failed", "BUDGET"), result
    assert (result["limit_hit"]["allowed"], result["limit_hit"]["unit"]) == (0.001, "USD")
    assert len(server.requests) == 1


def test_a_budget_ends_claude(folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="I look.", runs="until test -e never; do sleep 0.1; done"), WORK[1]])
    real = RealRun(folder, "claude", server)
    real.plan(runtime={"limits": {"budget_tokens": 500}}, retry={"attempts": 3})
    result = real.run()
    assert (result["outcome"], result["cause"], result["attempts"]) == ("failed", "BUDGET", 1)
    assert (result["limit_hit"]["allowed"], result["limit_hit"]["unit"]) == (500, "tokens")
    assert len(server.requests) == 1
