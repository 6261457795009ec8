"""A run names why a model refuses: the key by its name, the model, the time to wait."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.clients import WORK, Serve
from tests.agents.model_server import Turn
from tests.agents.real_runs import RealRun, until_running, wait_shown
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents

AGENTS = ("claude", "codex")
Lost = tuple[RealRun, subprocess.Popen[str]]


@pytest.mark.parametrize(("agent", "model"), [("claude", "claude-opus-9"), ("codex", "gpt-5.5")])
def test_a_model_that_is_not_known_is_named(
    agent: str, model: str, folder: Path, serve: Serve
) -> None:
    real = RealRun(folder, agent, serve([Turn(status=404)]))
    if agent == "claude":
        real.env["ANTHROPIC_MODEL"] = model
    real.plan()
    result = real.run()
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT")
    assert model in result["error"]


@pytest.mark.parametrize("status", [429, 529])
def test_a_model_that_has_too_much_to_do_is_waited_for_in_sight(
    status: int, folder: Path, serve: Serve
) -> None:
    busy = Turn(status=status, headers={"retry-after": "6"})
    real = RealRun(folder, "claude", serve([busy, WORK[0], Turn(text="Written.", waits=True)]))
    real.plan()
    with real.running() as process:
        met = wait_event(process, "RateLimitMet")
        assert met["status"] == str(status)
        worker = real.status()
        assert worker["badges"] == ["rate_limited"]
        assert worker["rate_limited_until"] == met["until"]
        waits_s = met["until"] - real.server.moments[0]
        assert 5 < waits_s < 30  # what the server said, and a little by lot
        real.server.wait_requests(3)
        assert real.status()["badges"] == []
        real.server.gate.set()
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    assert result["outcome"] == "success"


def test_codex_that_met_a_limit_is_resumed_when_that_is_over(folder: Path, serve: Serve) -> None:
    real = RealRun(folder, "codex", serve([Turn(status=429)]))
    real.plan()
    with real.running() as process:
        wait_event(process, "WorkerMoved", after="BACKING_OFF")
        worker = real.status()
        assert worker["rate_limited_until"]
        assert real.shell.plait("cancel", "work/worker_1").code == 0
        rest_of(process)


TOO_LONG = {
    "claude": "prompt is too long: 210000 tokens > 200000 maximum",
    "codex": "Your input exceeds the context window of this model.",
}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_context_that_is_full_is_said_in_words(agent: str, folder: Path, serve: Serve) -> None:
    real = RealRun(folder, agent, serve([Turn(status=400, refusal=TOO_LONG[agent])]))
    real.plan()
    result = real.run()
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT")
    assert result["error"].startswith("the context of its model is full: ")


@contextlib.contextmanager
def without_its_server(agent: str, folder: Path, serve: Serve) -> Iterator[Lost]:
    """A run whose model server goes while the agent is in its first tool."""
    looks = Turn(text="I look.", runs="touch begun; until test -e go; do sleep 0.05; done")
    server = serve([looks, WORK[1]])
    real = RealRun(folder, agent, server)
    real.plan()
    with real.running() as process:
        until_running(process)
        begun = real.wait_work("begun")
        server.close()
        (begun.parent / "go").touch()
        yield real, process


def test_a_network_that_is_lost_is_said_in_words(folder: Path, serve: Serve) -> None:
    with without_its_server("claude", folder, serve) as (_, process):
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    assert (result["outcome"], result["cause"]) == ("failed", "AGENT")
    assert result["error"].startswith("its model cannot be reached over the network: ")


def test_codex_that_waits_for_the_network_says_so(folder: Path, serve: Serve) -> None:
    with without_its_server("codex", folder, serve) as (real, process):
        wait_shown(real, "its model could not be asked (Connection failed")
        assert real.shell.plait("cancel", "work/worker_1").code == 0
        rest_of(process)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_provider_where_nothing_answers_starts_no_run(
    agent: str, folder: Path, serve: Serve
) -> None:
    server = serve(WORK)
    real = RealRun(folder, agent, server)
    real.plan()
    server.close()
    refused = real.shell.plait(*real.words)
    assert refused.code != 0
    assert "cannot reach its provider at 127.0.0.1:" in refused.err
    assert not server.logins


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_says_it_could_not_has_no_success(
    agent: str, folder: Path, serve: Serve
) -> None:
    real = RealRun(folder, agent, serve([Turn(text="I could not find the parser.")]))
    real.plan()
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("unchanged", "FINISHED")
    assert result["ending"] == "says it could not do it"
