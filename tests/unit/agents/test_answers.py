"""A human's word on a permission, as each agent hears it: allowed, or denied with the reason."""

import json
from dataclasses import replace
from typing import Any

import pytest

from engine.agents.acp import AcpStream
from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    Decided,
    Heard,
    ToolCalled,
    ToolEnded,
    TurnEnded,
)
from engine.agents.claude import ClaudeStream
from engine.agents.contract import LaunchRequest
from engine.agents.own_stream import OwnStream
from engine.agents.permitting import verdict_of
from engine.plan.model import AgentChoice, PermissionMode, Permissions


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("allow", (True, "")),
        ("deny", (False, "")),
        ("deny: use uv", (False, "use uv")),
        ("Deny:  use uv ", (False, "use uv")),
        ("use uv: it is faster", (False, "use uv: it is faster")),
        ("allowed", (False, "allowed")),
        ("allow: ls", (False, "allow: ls")),
    ],
)
def test_only_allow_allows(answer: str, verdict: tuple[bool, str]) -> None:
    assert verdict_of(answer) == verdict


def _request(adapter: str) -> LaunchRequest:
    choice = AgentChoice(name=adapter, adapter=adapter)
    return LaunchRequest(choice=choice, prompt="Do it.", workspace="/", home="/")


def _record(data: bytes | None) -> dict[str, Any]:
    assert data is not None
    return dict(json.loads(data))


@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        ("allow", {"answer": "allow"}),
        ("deny", {"answer": "deny"}),
        ("deny: use uv", {"answer": "deny", "reason": "use uv"}),
    ],
)
def test_a_program_of_one_s_own_hears_the_reason(answer: str, heard: dict[str, str]) -> None:
    stream = OwnStream(_request("scripted"))
    asked = {"plait": "ask", "id": "q", "text": "May I?", "permission": True}
    stream.feed("out", json.dumps(asked).encode() + b"\n")
    assert _record(stream.answer("q", answer)) == {"plait": "answer", "id": "q", **heard}


def test_words_that_answer_no_permission_stay_as_they_are() -> None:
    stream = OwnStream(_request("scripted"))
    stream.feed("out", b'{"plait": "ask", "id": "q", "text": "Which?"}\n')
    assert _record(stream.answer("q", "deny: or not"))["answer"] == "deny: or not"


def _claude_asks(given: dict[str, str]) -> tuple[ClaudeStream, Asked]:
    stream = ClaudeStream(_request("claude"))
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": given}
    record = {"type": "control_request", "request_id": "r", "request": request}
    (asked,) = stream.feed("out", json.dumps(record).encode() + b"\n")
    assert isinstance(asked, Asked)
    return stream, asked


def test_claude_runs_the_command_that_was_written_in_place_of_its_own() -> None:
    given = {"command": "pip install x", "description": "Install x"}
    stream, asked = _claude_asks(given)
    assert asked.is_editable
    answer = _record(stream.answer("r", "allow: pip install --user x"))
    updated = {**given, "command": "pip install --user x"}
    assert answer["response"]["response"] == {"behavior": "allow", "updatedInput": updated}


def test_another_command_allows_nothing_where_none_was_asked_for() -> None:
    stream, asked = _claude_asks({"file_path": "/etc/passwd"})
    assert not asked.is_editable
    answer = _record(stream.answer("r", "allow: ls"))
    assert answer["response"]["response"] == {"behavior": "deny", "message": "allow: ls"}


def test_a_command_of_several_lines_is_asked_about_and_judged_as_a_whole() -> None:
    whole = "git status\nrm -rf build"
    assert _claude_asks({"command": whole})[1].command == whole
    rules = Permissions(mode=PermissionMode.RULES, allow=("Bash(git status)",))
    stream = ClaudeStream(replace(_request("claude"), permissions=rules))
    for command, is_asked in ((whole, True), ("git status", False)):
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}}
        record = {"type": "control_request", "request_id": "r", "request": request}
        events = stream.feed("out", json.dumps(record).encode() + b"\n")
        assert any(isinstance(event, Asked) for event in events) is is_asked


def test_over_acp_another_command_is_a_refusal_of_the_one_it_asked_for() -> None:
    stream = AcpStream(_request("acp"))
    options = [{"optionId": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    call = {"title": "pip", "rawInput": {"command": "pip install x"}}
    params = {"sessionId": "s", "toolCall": call, "options": options}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}
    (question,) = stream.feed("out", json.dumps(asked).encode() + b"\n")
    assert isinstance(question, Asked)
    assert (question.command, question.is_editable) == ("pip install x", False)
    answer = _record(stream.answer(question.id, "allow: ls"))
    assert answer["result"]["outcome"]["optionId"] == "reject_once"


def test_over_acp_the_reason_is_the_next_prompt() -> None:
    stream = AcpStream(_request("acp"))
    options = [{"optionId": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    asked = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"title": "pip"}, "options": options},
    }
    (question,) = stream.feed("out", json.dumps(asked).encode() + b"\n")
    assert isinstance(question, Asked)
    denied = _record(stream.answer(question.id, "deny: use uv"))
    assert denied["result"]["outcome"]["optionId"] == "reject_once"
    assert list(stream._queue) == ["The user denied this: use uv"]


def _acp_at_work() -> AcpStream:
    stream = AcpStream(_request("acp"))
    for identity, result in ((1, {}), (2, {"sessionId": "s"})):
        answer = {"jsonrpc": "2.0", "id": identity, "result": result}
        stream.feed("out", json.dumps(answer).encode() + b"\n")
        for owed in stream.owed:
            stream.feed("in", owed)
    return stream


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_over_acp_a_turn_that_nobody_cancelled_has_ended_by_itself(*, is_cancelled: bool) -> None:
    stream = _acp_at_work()
    if is_cancelled:
        stream.feed("in", stream.interrupt() or b"")
    ended = {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}
    (turn,) = stream.feed("out", json.dumps(ended).encode() + b"\n")
    assert isinstance(turn, TurnEnded)
    assert turn.is_interrupted is is_cancelled  # else its input would stay open forever
    assert stream.closing is not None
    assert ("was denied" in stream.closing.error) is not is_cancelled


def test_over_acp_a_tool_is_shown_once_and_when_it_is_known_what_it_does() -> None:
    stream = _acp_at_work()
    updates: list[dict[str, Any]] = [
        {"sessionUpdate": "tool_call", "status": "pending", "name": "Bash", "title": "Terminal"},
        {"sessionUpdate": "tool_call_update", "rawInput": {"command": "ls"}, "title": "ls"},
        {"sessionUpdate": "tool_call_update", "status": "completed", "title": "ls again"},
    ]
    told: list[AgentEvent] = []
    for update in updates:
        params = {"sessionId": "s", "update": {"toolCallId": "t", **update}}
        line = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        told += stream.feed("out", json.dumps(line).encode() + b"\n")
    assert told == [ToolCalled("t", "Bash", "ls"), ToolEnded("t", "done")]


def _said_to_claude() -> tuple[ClaudeStream, str]:
    stream = ClaudeStream(_request("claude"))
    data = stream.steer("Use spaces.")
    assert stream.feed("in", data or b"") == []
    return stream, _record(data)["uuid"]


def _told(stream: ClaudeStream, **record: Any) -> list[AgentEvent]:
    return stream.feed("out", json.dumps(record).encode() + b"\n")


def test_claude_has_heard_words_when_it_takes_them_from_its_queue() -> None:
    stream, identity = _said_to_claude()
    about = {"type": "command_lifecycle", "command_uuid": identity}
    assert _told(stream, **about, state="queued") == []
    result = {"type": "result", "is_error": False, "result": "", "queued_turn_count": 0}
    assert Heard("Use spaces.") not in _told(stream, **result)
    assert _told(stream, **about, state="started") == [Heard("Use spaces.")]
    assert _told(stream, **about, state="completed") == []


@pytest.mark.parametrize(("queued", "is_heard"), [(0, True), (1, False)])
def test_a_claude_that_tells_nothing_of_words_has_heard_them_when_its_queue_is_empty(
    queued: int, *, is_heard: bool
) -> None:
    stream, _ = _said_to_claude()
    result = {"type": "result", "is_error": False, "result": "", "queued_turn_count": queued}
    assert (Heard("Use spaces.") in _told(stream, **result)) is is_heard


RULES = Permissions(mode=PermissionMode.RULES, allow=("*(git *)",), deny=("*/.env)",))
DEEP = "/w/" + "x/" * 150 + ".env"


def _asks(adapter: str, given: dict[str, object]) -> list[AgentEvent]:
    """Return the events of a permission that an agent asks for under these rules."""
    request = replace(_request(adapter), permissions=RULES)
    if adapter == "claude":
        wanted = {"subtype": "can_use_tool", "tool_name": "Edit", "input": given}
        record = {"type": "control_request", "request_id": "r", "request": wanted}
        return ClaudeStream(request).feed("out", json.dumps(record).encode() + b"\n")
    call = {"title": "t", "rawInput": given}
    params = {"sessionId": "s", "toolCall": call, "options": []}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}
    return AcpStream(request).feed("out", json.dumps(asked).encode() + b"\n")


@pytest.mark.parametrize("adapter", ["claude", "acp"])
@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"command": "git status"}, True),
        ({"command": "git status", "commands": ["git status"]}, True),
        ({"commands": ["git status", "git log"]}, True),
        ({"commands": ["git status", "rm -r x"]}, None),
        ({"command": "git status", "commands": ["rm -r x"]}, None),
        ({"file_path": DEEP}, False),
        ({"file_path": f"a\n{DEEP}"}, False),
    ],
)
def test_a_rule_judges_the_whole_of_what_is_wanted(
    adapter: str,
    given: dict[str, object],
    verdict: bool | None,  # noqa: FBT001 (a table)
) -> None:
    events = _asks(adapter, given)
    decided = [event.is_allowed for event in events if isinstance(event, Decided)]
    assert decided == ([] if verdict is None else [verdict])
    asked = [event for event in events if isinstance(event, Asked)]
    assert [(one.needs_human, "rm -r x" in one.command) for one in asked] == (
        [(True, True)] if verdict is None else []
    )


def test_all_of_a_long_path_is_asked_about() -> None:
    request = {"subtype": "can_use_tool", "tool_name": "Edit", "input": {"file_path": DEEP}}
    record = {"type": "control_request", "request_id": "r", "request": request}
    (asked,) = ClaudeStream(_request("claude")).feed("out", json.dumps(record).encode() + b"\n")
    assert isinstance(asked, Asked)
    assert asked.detail == DEEP
    assert len(asked.text) < len(DEEP)
