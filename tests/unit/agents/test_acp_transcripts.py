"""Recorded conversations over the Agent Client Protocol, our client in the recorded one's place."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.agents.acp import AcpStream
from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    Decided,
    Heard,
    ProtocolReply,
    Said,
    Started,
    ToolCalled,
    ToolEnded,
    TurnEnded,
)
from engine.agents.contract import Ending, LaunchRequest
from engine.plan.model import AgentChoice, PermissionMode, Permissions

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
HINT = "You may spawn up to 3 concurrent sub-agents or workers for this step."
Talk = list[dict[str, Any]]


def conversations(agent: str, case: str) -> Iterator[Talk]:
    """Each process's conversation of a transcript."""
    talk: Talk = []
    for line in (TRANSCRIPTS / f"acp-{agent}" / f"{case}.ndjson").read_text().splitlines():
        record = json.loads(line)
        if record["msg"].get("method") == "initialize" and talk:
            yield talk
            talk = []
        talk.append(record)
    yield talk


def client(**more: Any) -> AcpStream:
    choice = AgentChoice(name="x", adapter="acp")
    return AcpStream(
        LaunchRequest(choice=choice, prompt="Do it.", workspace="/repo", home="/home", **more)
    )


def hear(stream: AcpStream, talk: Talk) -> list[AgentEvent]:
    lines = [json.dumps(part["msg"]).encode() + b"\n" for part in talk if part["from"] == "agent"]
    return [event for line in lines for event in stream.feed("out", line)]


def replies(events: list[AgentEvent]) -> Talk:
    return [json.loads(event.data) for event in events if isinstance(event, ProtocolReply)]


def agents_with(case: str) -> list[str]:
    return sorted(
        p.parent.name[4:] for p in TRANSCRIPTS.glob(f"acp-*/{case}.ndjson") if "cline" not in str(p)
    )


@pytest.mark.parametrize("agent", agents_with("create-allow"))
def test_a_permission_is_granted_with_the_option_that_the_agent_offered(agent: str) -> None:
    (talk,) = conversations(agent, "create-allow")
    stream = client(is_confined=True)
    events = hear(stream, talk)
    theirs = [
        p["msg"] for p in talk if p["from"] == "client" and "outcome" in str(p["msg"].get("result"))
    ]
    ours = [r for r in replies(events) if "outcome" in str(r.get("result"))]
    assert ours == theirs
    assert len([e for e in events if isinstance(e, Decided)]) == len(theirs)
    outcome = stream.finish(Ending(exit_code=0))
    assert outcome.ok, outcome.error
    assert outcome.text == "Created hello.txt."
    assert outcome.session
    assert outcome.usage.input_tokens
    assert any(isinstance(e, TurnEnded) and e.is_ok for e in events)
    assert {e.id for e in events if isinstance(e, ToolEnded)} <= {
        e.id for e in events if isinstance(e, ToolCalled)
    } | {e.id for e in events if isinstance(e, ToolEnded) and agent == "gemini"}


@pytest.mark.parametrize("agent", [a for a in agents_with("create-reject") if a != "codex-acp"])
def test_a_refusal_uses_the_option_that_the_agent_offered(agent: str) -> None:
    (talk,) = conversations(agent, "create-reject")
    stream = client(permissions=Permissions(mode=PermissionMode.ASK))
    events = hear(stream, talk)
    (asked,) = [event for event in events if isinstance(event, Asked)]
    theirs = [
        p["msg"] for p in talk if p["from"] == "client" and "outcome" in str(p["msg"].get("result"))
    ]
    # The recording goes on as if somebody had answered, so the question was withdrawn at its end.
    again = client(permissions=Permissions(mode=PermissionMode.ASK))
    question = next(p for p in talk if p["msg"].get("method") == "session/request_permission")
    hear(again, [*talk[:4], question])
    assert [json.loads(again.answer(asked.id, "deny") or b"")] == theirs
    assert again.answer(asked.id, "deny") is None


@pytest.mark.parametrize("agent", agents_with("dead"))
def test_a_model_that_refuses_is_a_failure_even_where_the_turn_ended_well(agent: str) -> None:
    (talk,) = conversations(agent, "dead")
    stream = client()
    events = hear(stream, talk)
    outcome = stream.finish(Ending(exit_code=0))
    assert not outcome.ok
    assert "scripted failure 400" in outcome.error
    assert [event.is_ok for event in events if isinstance(event, TurnEnded)] == [False]


@pytest.mark.parametrize("agent", agents_with("cancel"))
def test_an_interrupted_turn_can_be_followed_by_another(agent: str) -> None:
    (talk,) = conversations(agent, "cancel")
    stream = client(is_confined=True)
    cut = next(i for i, p in enumerate(talk) if p["msg"].get("method") == "session/cancel")
    last = max(i for i, p in enumerate(talk) if p["msg"].get("method") == "session/prompt")
    hear(stream, talk[:cut])
    cancel = json.loads(stream.interrupt() or b"")
    assert cancel["method"] == "session/cancel"
    ended = [event for event in hear(stream, talk[cut:last]) if isinstance(event, TurnEnded)]
    assert [event.is_ok for event in ended] == [False]
    assert not stream.finish(Ending(exit_code=0)).ok
    prompt = json.loads(stream.steer("Again.") or b"")
    assert (prompt["method"], prompt["id"]) == ("session/prompt", 4)
    events = hear(stream, talk[last:])
    outcome = stream.finish(Ending(exit_code=0))
    assert outcome.ok
    assert outcome.text == "Nothing to do; all is well."
    assert any(isinstance(event, Said) for event in events)


@pytest.mark.parametrize("agent", ["claude-acp", "codex-acp", "copilot", "opencode"])
def test_a_session_is_taken_up_again_in_a_way_that_the_agent_knows(agent: str) -> None:
    first, second = conversations(agent, "load")
    session = next(
        p["msg"]["params"]["sessionId"] for p in first if p["msg"].get("method") == "session/prompt"
    )
    stream = client(session=session, feedback="Feedback.", is_confined=True)
    events = hear(stream, second)
    opened, prompt = replies(events)[:2]
    theirs = [p["msg"] for p in second if p["from"] == "client"]
    assert opened == theirs[1]
    assert prompt["params"]["prompt"] == [{"type": "text", "text": "Feedback."}]
    assert [e.session for e in events if isinstance(e, Started)] == [session]
    # What the agent tells of the history is not told as if it happened now.
    assert Said("Created hello.txt.") not in events
    assert stream.finish(Ending(exit_code=0)).ok


@pytest.mark.parametrize("agent", agents_with("hint"))
def test_the_hint_goes_into_the_session_where_the_agent_takes_it(agent: str) -> None:
    (talk,) = conversations(agent, "hint")
    opened, prompt = replies(hear(client(hint=3), talk))[:2]
    is_taken = agent in {"claude-acp", "codex-acp"}
    assert (HINT in json.dumps(opened)) is is_taken
    assert (HINT in json.dumps(prompt)) is not is_taken


def test_a_session_that_cannot_be_taken_up_is_begun_anew_with_the_whole_prompt() -> None:
    (talk,) = conversations("opencode", "create-allow")
    stream = client(session="gone", feedback="More tests.", is_confined=True)
    (resume,) = replies(hear(stream, talk[:2]))
    assert resume["method"] == "session/resume"
    error = {"jsonrpc": "2.0", "id": resume["id"], "error": {"code": -32002, "message": "gone"}}
    (anew,) = replies(hear(stream, [{"from": "agent", "msg": error}]))
    assert anew["method"] == "session/new"
    opened = {"jsonrpc": "2.0", "id": anew["id"], "result": {"sessionId": "fresh"}}
    events = hear(stream, [{"from": "agent", "msg": opened}])
    assert [event.session for event in events if isinstance(event, Started)] == ["fresh"]
    (prompt,) = replies(events)
    assert "Do it." in str(prompt)
    assert "More tests." in str(prompt)


def test_a_login_that_is_wanted_ends_the_attempt_and_says_so() -> None:
    (talk,) = conversations("cline", "create-allow")
    stream = client()
    events = hear(stream, talk)
    outcome = stream.finish(Ending(exit_code=0))
    assert outcome.needs_login
    assert any(isinstance(event, TurnEnded) for event in events)


def test_what_is_said_during_a_turn_is_said_after_it() -> None:
    (talk,) = conversations("opencode", "create-allow")
    stream = client(is_confined=True)
    hear(stream, talk[:-1])
    assert stream.steer("And the tests.") == b""
    events = hear(stream, talk[-1:])
    assert replies(events)[-1]["params"]["prompt"] == [{"type": "text", "text": "And the tests."}]
    assert not [event for event in events if isinstance(event, TurnEnded)]
    stream.feed("in", json.dumps(replies(events)[-1]).encode() + b"\n")
    again = [part for part in talk if part["msg"].get("method") == "session/update"][-1:]
    assert Heard("And the tests.") not in events
    assert Heard("And the tests.") in hear(stream, again)
    assert Heard("And the tests.") not in hear(stream, again)


def test_requests_that_were_never_offered_are_refused_at_once() -> None:
    stream = client()
    request = {"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {"path": "/x"}}
    (reply,) = replies(hear(stream, [{"from": "agent", "msg": request}]))
    assert reply["error"]["code"] == -32601
    assert stream.owed
