"""The real Claude Code and Codex, driven by their adapters against a scripted model on loopback."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import (
    Asked,
    Decided,
    Said,
    Started,
    ToolCalled,
    ToolEnded,
    TurnEnded,
)
from engine.agents.contract import LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice, PermissionMode, Permissions, RetryMode
from tests.agents.clients import HINT, KEY, PATH, WORK, Serve, want
from tests.agents.model_server import ModelServer, Turn
from tests.support.agent_runs import RunningAgent, launch_request

pytestmark = pytest.mark.real_agents

AGENTS = ("claude", "codex")


def request_for(agent: str, folder: Path, server: ModelServer, **more: Any) -> LaunchRequest:
    want(agent)
    environment = {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }
    provider = f'{{name="x", base_url="{server.url}/v1", wire_api="responses", env_key="K"}}'
    settings = f"-c 'model_providers.x={provider}' -c model_provider=x -m gpt-5.5"
    choice = AgentChoice(
        name=agent,
        adapter=agent,
        env={"K": KEY, "PATH": PATH},
        options={"args": settings} if agent == "codex" else {},
    )
    given = {"choice": choice, "environment": environment, "is_confined": True, **more}
    return launch_request(folder, **given)


def run(asked: LaunchRequest) -> RunningAgent:
    return RunningAgent(adapter_named(asked.choice.adapter), asked)


@pytest.mark.parametrize("agent", AGENTS)
def test_it_works_in_its_workspace_and_says_so(agent: str, folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    running = run(request_for(agent, folder, server, hint=3))
    outcome = running.end()
    assert outcome.ok, outcome.error
    assert outcome.text == "Written."
    assert (folder / "work/hello.txt").read_text() == "hello\n"
    assert outcome.session == running.told(Started)[0].session
    assert [event.state for event in running.told(ToolEnded)] == ["done"]
    assert "echo hello" in running.told(ToolCalled)[0].title
    assert outcome.usage.input_tokens == 2000
    assert HINT in str(server.requests[0])
    assert "Fix the parser" in str(server.requests[0])


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refusal_of_the_model_is_a_failure(agent: str, folder: Path, serve: Serve) -> None:
    outcome = run(request_for(agent, folder, serve([Turn(status=400)]))).end()
    assert not outcome.ok
    assert "scripted failure 400" in outcome.error


@pytest.mark.parametrize("agent", AGENTS)
def test_a_refused_login_asks_for_one(agent: str, folder: Path, serve: Serve) -> None:
    outcome = run(request_for(agent, folder, serve([Turn(status=401)]))).end()
    assert outcome.needs_login, outcome.error


@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_is_taken_up_again(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([*WORK, Turn(text="Better now.")])
    asked = request_for(agent, folder, server)
    first = run(asked).end()
    again = replace(
        asked,
        mode=RetryMode.CONTINUE,
        session=first.session,
        feedback="Say it better.",
        used_before=first.usage,
    )
    outcome = run(again).end()
    assert outcome.ok, outcome.error
    assert outcome.session == first.session
    assert outcome.text == "Better now."
    last = str(server.requests[-1])
    assert "Say it better." in last
    assert "I will write." in last
    assert outcome.usage.input_tokens == 1000


@pytest.mark.parametrize("agent", AGENTS)
def test_a_fork_leaves_the_session_it_came_from(agent: str, folder: Path, serve: Serve) -> None:
    server = serve([*WORK, Turn(text="Another way.")])
    asked = request_for(agent, folder, server)
    first = run(asked).end()
    forked = replace(asked, mode=RetryMode.CONTINUE, session=first.session, is_fork=True)
    outcome = run(forked).end()
    assert outcome.ok, outcome.error
    assert outcome.session not in {None, first.session}
    assert "I will write." in str(server.requests[-1])


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_was_killed_has_not_done_well(agent: str, folder: Path, serve: Serve) -> None:
    running = run(request_for(agent, folder, serve([WORK[0], Turn(text="And", hangs=True)])))
    running.until(ToolEnded)
    running.process.terminate()
    outcome = running.end()
    assert not outcome.ok
    assert (folder / "work/hello.txt").exists()


@pytest.mark.parametrize(("answer", "state"), [("allow", "done"), ("deny", "denied")])
def test_claude_asks_before_it_acts(answer: str, state: str, folder: Path, serve: Serve) -> None:
    asking = Permissions(mode=PermissionMode.ASK)
    running = run(request_for("claude", folder, serve(WORK), permissions=asking))
    asked = running.until(Asked)
    assert (asked.tool, asked.detail) == ("Bash", "echo hello > hello.txt")
    running.write(running.parser.answer(asked.id, answer))
    assert running.end().ok
    assert [event.state for event in running.told(ToolEnded)] == [state]
    assert (folder / "work/hello.txt").exists() is (answer == "allow")


def test_claude_obeys_rules_without_asking(folder: Path, serve: Serve) -> None:
    rules = Permissions(mode=PermissionMode.AUTO, deny=("Bash(echo *)",))
    running = run(request_for("claude", folder, serve(WORK), permissions=rules))
    assert running.end().ok
    assert [event.is_allowed for event in running.told(Decided)] == [False]
    assert not (folder / "work/hello.txt").exists()


def test_claude_is_interrupted_and_goes_on_in_the_same_process(folder: Path, serve: Serve) -> None:
    server = serve([Turn(text="Begun", hangs=True), Turn(text="Well then.")])
    asked = request_for("claude", folder, server)
    running = run(asked)
    running.until(Started)
    server.wait_requests(1)
    running.keeps_open = True
    running.write(running.parser.interrupt())
    running.until(TurnEnded)
    running.write(running.parser.steer("Go on differently."))
    running.keeps_open = False
    outcome = running.end()
    assert outcome.text == "Well then."
    assert Said("Well then.") in running.events


def test_claude_logs_in_with_the_access_token_alone(folder: Path, serve: Serve) -> None:
    login = {"accessToken": "short-lived", "refreshToken": "x", "expiresAt": 4_000_000_000_000}
    (folder / ".claude").mkdir()
    (folder / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    server = serve(WORK)
    environment = {"ANTHROPIC_BASE_URL": server.url, "CLAUDE_CODE_MAX_RETRIES": "1"}
    given = {"environment": environment, "user_home": str(folder)}
    running = run(request_for("claude", folder, server, **given))
    assert running.end().ok
    assert set(server.logins) == {"Bearer short-lived"}


def test_claude_asks_what_only_a_human_knows(folder: Path, serve: Serve) -> None:
    options = [{"label": "Tabs", "description": "x"}, {"label": "Spaces", "description": "y"}]
    question = {
        "question": "Tabs or spaces?",
        "header": "Indent",
        "options": options,
        "multiSelect": False,
    }
    uses = ("AskUserQuestion", {"questions": [question]})
    server = serve([Turn(uses=uses), Turn(text="Spaces it is.")])
    running = run(request_for("claude", folder, server))
    asked = running.until(Asked)
    assert (asked.text, asked.choices) == ("Tabs or spaces?", ("Tabs", "Spaces"))
    assert not asked.is_permission
    running.write(running.parser.answer(asked.id, "Spaces"))
    assert running.end().ok
    assert "Spaces" in str(server.requests[-1]["messages"][-1])


def test_claude_hears_what_is_said_while_it_works(folder: Path, serve: Serve) -> None:
    server = serve([Turn(runs="sleep 1; echo slept"), Turn(text="Heard."), Turn(text="Heard it.")])
    running = run(request_for("claude", folder, server))
    running.until(ToolCalled)
    running.write(running.parser.steer("Use spaces."))
    outcome = running.end()
    assert outcome.ok, outcome.error
    assert "Use spaces." in str(server.requests[-1]["messages"])
    assert len(running.told(TurnEnded)) == 1
