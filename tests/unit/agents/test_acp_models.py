"""Over the Agent Client Protocol: the model that is wanted, tools named by a question, refusals."""

import json
from typing import Any

import pytest

from engine.agents.acp import AcpStream
from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    ProtocolReply,
    Retrying,
    ToolCalled,
    ToolEnded,
)
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice, PermissionMode, Permissions

OPTION = {"id": "m", "category": "model", "options": [{"value": "opus"}, {"value": "sonnet"}]}


def stream_for(model: str | None = "sonnet", **more: Any) -> AcpStream:
    choice = AgentChoice(name="x", adapter="acp", model=model)
    permissions = Permissions(mode=PermissionMode.ASK)
    request = LaunchRequest(
        choice=choice, prompt="Go.", workspace="/w", home="/h", permissions=permissions
    )
    return AcpStream(request, **more)


def hear(stream: AcpStream, identity: int, **told: Any) -> list[AgentEvent]:
    answer = {"jsonrpc": "2.0", "id": identity, **told}
    events = stream.feed("out", json.dumps(answer).encode() + b"\n")
    for event in events:
        if isinstance(event, ProtocolReply):
            stream.feed("in", event.data)
    return events


def opened(stream: AcpStream, **session: Any) -> dict[str, Any]:
    """Open a session; what is said next."""
    hear(stream, 1, result={})
    events = hear(stream, 2, result={"sessionId": "s", **session})
    (said,) = (json.loads(event.data) for event in events if isinstance(event, ProtocolReply))
    return dict(said)


def test_the_model_is_chosen_before_the_first_prompt() -> None:
    stream = stream_for()
    said = opened(stream, configOptions=[{"id": "x", "category": "mode", "options": []}, OPTION])
    assert said["method"] == "session/set_config_option"
    assert said["params"] == {"sessionId": "s", "configId": "m", "value": "sonnet"}
    (reply,) = hear(stream, said["id"], result={})
    assert isinstance(reply, ProtocolReply)
    assert json.loads(reply.data)["method"] == "session/prompt"


@pytest.mark.parametrize(("model", "given"), [(None, {}), ("x", {"is_told_model": True})])
def test_nobody_chooses_what_is_not_wanted_or_is_an_argument(
    model: str | None, given: dict[str, bool]
) -> None:
    said = opened(stream_for(model, **given), configOptions=[OPTION])
    assert said["method"] == "session/prompt"


def test_a_model_that_is_not_known_ends_the_attempt_before_its_prompt() -> None:
    stream = stream_for("sonet")
    said = opened(stream, configOptions=[OPTION])
    hear(stream, said["id"], error={"code": -32602, "message": "Invalid params"})
    outcome = stream.finish(Ending(exit_code=0))
    assert "its client does not know the model 'sonet': it knows sonnet" in outcome.error
    assert not stream.owed


def test_an_agent_that_offers_no_models_does_not_work_with_another() -> None:
    stream = stream_for("opus")
    hear(stream, 1, result={})
    events = hear(stream, 2, result={"sessionId": "s"})
    assert not [event for event in events if isinstance(event, ProtocolReply)]
    assert "does not let plait choose a model" in stream.finish(Ending(exit_code=0)).error


@pytest.mark.parametrize(("before", "way"), [("/w", "session/resume"), ("/old", "session/new")])
def test_a_session_that_stays_in_its_folder_is_begun_anew_elsewhere(before: str, way: str) -> None:
    stream = AcpStream(
        LaunchRequest(
            choice=AgentChoice(name="x", adapter="acp"),
            prompt="Go.",
            workspace="/w",
            home="/h",
            session="s",
            session_workspace=before,
        ),
        stays=True,
    )
    able: dict[str, Any] = {"sessionCapabilities": {"resume": {}}}
    (reply,) = hear(stream, 1, result={"agentCapabilities": able})
    assert isinstance(reply, ProtocolReply)
    assert json.loads(reply.data)["method"] == way


@pytest.mark.parametrize("kind", ["allow_once", "reject_once"])
def test_a_tool_that_only_its_question_tells_of_is_shown(kind: str) -> None:
    stream = stream_for(None)
    opened(stream)
    tool = {"toolCallId": "t", "kind": "execute", "title": "sleep 600"}
    options = [{"optionId": one, "kind": one} for one in ("allow_once", "reject_once")]
    params = {"sessionId": "s", "toolCall": tool, "options": options}
    events = hear(stream, 7, method="session/request_permission", params=params)
    called, asked = events
    assert called == ToolCalled("t", "execute", "sleep 600", ())
    assert isinstance(asked, Asked)
    answer = stream.answer(asked.id, "allow" if kind == "allow_once" else "deny")
    ended = stream.feed("in", answer or b"")
    assert ended == ([] if kind == "allow_once" else [ToolEnded("t", "denied")])


@pytest.mark.parametrize(
    ("kind", "given", "title"),
    [
        ("execute", {"command": "make test", "description": "to be sure"}, "make test"),
        ("execute", {}, "to be sure"),
        ("edit", {"path": "/w/a"}, "to be sure"),
    ],
)
def test_a_command_is_shown_and_not_what_it_is_for(
    kind: str, given: dict[str, str], title: str
) -> None:
    stream = stream_for(None)
    opened(stream)
    update: dict[str, Any] = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "status": "in_progress",
    }
    update |= {"title": "to be sure", "kind": kind, "rawInput": given}
    note = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}}
    (called,) = stream.feed("out", json.dumps(note).encode() + b"\n")
    assert isinstance(called, ToolCalled)
    assert called.title == title


@pytest.mark.parametrize(
    ("words", "needs_login", "is_limited"),
    [
        ("Internal error: 401 no such key", True, False),
        ("429 Too Many Requests", False, True),
        ("400 bad", False, False),
    ],
)
def test_a_refused_turn_says_if_a_login_or_time_is_wanted(
    words: str, *, needs_login: bool, is_limited: bool
) -> None:
    stream = stream_for(None)
    said = opened(stream)
    hear(stream, said["id"], error={"code": -32603, "message": words})
    outcome = stream.finish(Ending(exit_code=0))
    assert outcome.needs_login is needs_login
    assert (outcome.limit is not None) is is_limited


def test_notes_of_the_client_s_own_are_no_part_of_its_model_s_words() -> None:
    stream = stream_for(None)
    said = opened(stream)
    for text in ("Info: Retrying...", "Info: Retrying...", "Error: Authentication failed (401)."):
        update = {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text},
        }
        note = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}}
        stream.feed("out", json.dumps(note).encode() + b"\n")
    hear(stream, said["id"], result={"stopReason": "end_turn"})
    outcome = stream.finish(Ending(exit_code=0))
    assert outcome.error == "Error: Authentication failed (401)."
    assert outcome.needs_login


def told(stream: AcpStream, method: str, **params: Any) -> list[AgentEvent]:
    record = {"jsonrpc": "2.0", "method": method, "params": params}
    return stream.feed("out", json.dumps(record).encode() + b"\n")


def test_claude_over_acp_is_asked_for_its_retries_and_tells_them() -> None:
    choice = AgentChoice(name="x", adapter="claude-acp")
    request = LaunchRequest(choice=choice, prompt="Go.", workspace="/w", home="/h")
    stream = adapter_named("claude-acp").parser(request)
    assert isinstance(stream, AcpStream)
    (reply,) = hear(stream, 1, result={})
    assert isinstance(reply, ProtocolReply)
    wanted = json.loads(reply.data)["params"]["_meta"]["claudeCode"]["emitRawSDKMessages"]
    assert wanted == [{"type": "system", "subtype": "api_retry"}]
    retry = {"attempt": 2, "retry_delay_ms": 4000, "error_status": 529}
    events = told(stream, "_claude/sdkMessage", sessionId="s", message=retry)
    assert events == [Retrying(2, 4.0, "529")]


def test_no_other_agent_is_asked_for_more_than_the_protocol_has() -> None:
    (reply,) = hear(stream_for(), 1, result={})
    assert isinstance(reply, ProtocolReply)
    assert "_meta" not in json.loads(reply.data)["params"]


def test_what_is_said_beside_a_turn_counts_while_that_lasts() -> None:
    stream = stream_for(None)
    line = b"Attempt 1 failed with status 429. Retrying after 4000ms...\n"
    said = opened(stream)
    assert Retrying(1, 4.0, "429") in stream.feed("err", line)
    hear(stream, said["id"], result={"stopReason": "end_turn"})
    assert Retrying(1, 4.0, "429") not in stream.feed("err", line)  # it kept it back until now


def test_codex_over_acp_tells_its_retries() -> None:
    stream = stream_for()
    opened(stream, configOptions=[OPTION])
    why = "exceeded retry limit, last status: 429 Too Many Requests"
    error = {"message": "Reconnecting... 2/5", "additionalDetails": why, "willRetry": True}
    update = {"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": error}}}
    assert told(stream, "session/update", sessionId="s", update=update) == [
        Retrying(2, None, "429")
    ]
