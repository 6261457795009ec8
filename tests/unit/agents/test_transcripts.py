"""Every recorded run of a real agent: its events make sense, and its verdict is what happened."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import (
    AgentEvent,
    AgentOutcome,
    Asked,
    Raw,
    Retrying,
    Said,
    Started,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    UsageSeen,
)
from engine.agents.contract import Ending, LaunchRequest, StreamParser
from engine.agents.registry import adapter_named
from engine.limits import Usage
from engine.plan.model import AgentChoice

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
WELL = {
    *("create", "edit", "shell", "multi", "parallel", "failing-shell", "busy", "flaky", "dropped"),
    *("resume", "hint", "control-allow", "control-deny", "control-two-turns"),
}
# How the process ended where it was not 0: by code, or by signal where negative.
ENDS = {
    "claude": {"refused": 1, "unauthorized": 1, "dead": 1, "hang-sigint": 0, "hang-sigterm": 143}
    | {"crash": -9, "sleeper-sigint": 0, "sleeper-sigterm": 143, "sleeper-group": 143}
    | {"sleeper-kill9": -9, "control-interrupt": 1},
    "codex": {"refused": 1, "unauthorized": 1, "dead": 1, "hang-sigint": 1, "hang-sigterm": -15}
    | {"crash": -9, "sleeper-sigint": 1, "sleeper-sigterm": -15, "sleeper-group": -15}
    | {"sleeper-kill9": -9},
    "gemini": {"refused": 144, "unauthorized": 145, "dead": -9, "hang-sigint": 0}
    | {"hang-sigterm": 0, "sleeper-sigterm": 0, "sleeper-kill9": -9, "dropped": 1},
    "opencode": {"refused": 1, "unauthorized": 1, "dead": 1, "hang-sigint": -9}
    | {"hang-sigterm": -15, "sleeper-sigterm": -15, "sleeper-kill9": -9},
    "copilot": {"refused": 1, "unauthorized": 1, "dead": 1, "hang-sigint": -2}
    | {"hang-sigterm": -15, "sleeper-sigterm": -15, "sleeper-kill9": -9},
    "qwen": {"refused": 1, "hang-sigterm": -15, "sleeper-kill9": -9},
    "pi": {"refused": 0, "hang-sigterm": 143, "sleeper-kill9": -9},
    "cline": {"refused": 1, "hang-sigterm": -9, "sleeper-kill9": -9},
}
CASES = sorted(
    (path.parent.name, path.stem)
    for path in TRANSCRIPTS.glob("*/*.ndjson")
    if path.parent.name in ENDS
)


def request_for(agent: str, **more: Any) -> LaunchRequest:
    choice = AgentChoice(name=agent, adapter=agent)
    return LaunchRequest(choice=choice, prompt="Do it.", workspace="/repo", home="/home", **more)


def ending(agent: str, case: str) -> Ending:
    code = ENDS[agent].get(case, 0)
    return Ending(exit_code=code) if code >= 0 else Ending(signal=-code)


def lines_of(agent: str, case: str) -> Iterator[bytes]:
    """Return what the agent wrote, and only that where both directions were recorded."""
    for line in (TRANSCRIPTS / agent / f"{case}.ndjson").read_bytes().splitlines(keepends=True):
        if not line.startswith(b'{"from"'):
            yield line
        elif (record := json.loads(line))["from"] == "agent":
            yield json.dumps(record["msg"]).encode() + b"\n"


def replay(agent: str, case: str) -> tuple[list[AgentEvent], AgentOutcome]:
    parser: StreamParser = adapter_named(agent).parser(request_for(agent))
    events: list[AgentEvent] = []
    for line in lines_of(agent, case):
        events += parser.feed("out", line)
    errors = TRANSCRIPTS / agent / f"{case}.stderr.txt"
    if errors.exists():
        parser.feed("err", errors.read_bytes())
    return events, parser.finish(ending(agent, case))


@pytest.mark.parametrize(("agent", "case"), CASES)
def test_the_verdict_is_what_happened(agent: str, case: str) -> None:
    _, outcome = replay(agent, case)
    is_well = case in WELL and (agent, case) != ("gemini", "dropped")
    assert outcome.ok is is_well, outcome.error
    assert bool(outcome.error) is not is_well
    assert not outcome.needs_proof


@pytest.mark.parametrize(("agent", "case"), CASES)
def test_nothing_that_is_known_is_shown_raw(agent: str, case: str) -> None:
    events, _ = replay(agent, case)
    assert [event for event in events if isinstance(event, Raw)] == []
    assert any(isinstance(event, Started) for event in events) or case in {
        "refused",
        "unauthorized",
        "dead",
    }


@pytest.mark.parametrize("agent", sorted(ENDS))
def test_a_good_run_tells_its_tools_its_words_and_its_cost(agent: str) -> None:
    events, outcome = replay(agent, "create")
    called = {event.id for event in events if isinstance(event, ToolCalled)}
    ended = [event for event in events if isinstance(event, ToolEnded)]
    assert called
    assert {event.id for event in ended} == called
    assert {event.state for event in ended} == {"done"}
    assert outcome.text == "Created hello.txt."
    if agent != "cline":
        assert outcome.session
    if agent != "copilot":
        # gemini counts another 1000 for the model that chose the model
        assert outcome.usage.input_tokens == (3000 if agent == "gemini" else 2000)
        assert any(isinstance(event, UsageSeen) for event in events)


@pytest.mark.parametrize(
    ("agent", "status"), [("claude", "429"), ("codex", "429"), ("copilot", "429")]
)
def test_retries_are_told(agent: str, status: str) -> None:
    events, outcome = replay(agent, "busy")
    retries = [event for event in events if isinstance(event, Retrying)]
    # copilot tells when it begins to wait, and when it asks again
    assert len(retries) == (4 if agent == "copilot" else 2)
    assert {event.status for event in retries} == {status}
    assert outcome.limit is None


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_a_refused_login_is_told_as_one(agent: str) -> None:
    assert replay(agent, "unauthorized")[1].needs_login
    assert not replay(agent, "refused")[1].needs_login


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot"])
def test_a_refusal_says_in_the_model_s_own_words_why(agent: str) -> None:
    assert "scripted failure 400" in replay(agent, "refused")[1].error


@pytest.mark.parametrize(
    "agent", ["claude", "codex", "gemini", "opencode", "copilot", "qwen", "pi"]
)
def test_a_session_taken_up_again_has_the_same_id(agent: str) -> None:
    events, outcome = replay(agent, "resume")
    assert {event.session for event in events if isinstance(event, Started)} - {None} <= {
        outcome.session
    }
    assert outcome.text == "Edited notes.txt."


@pytest.mark.parametrize("agent", ["claude", "codex", "opencode", "copilot"])
def test_a_command_that_failed_is_a_failed_tool_in_a_good_run(agent: str) -> None:
    events, outcome = replay(agent, "failing-shell")
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert ended.state == "failed"
    assert "oops" in ended.output
    assert outcome.ok


def test_claude_asks_and_is_answered_in_its_own_words() -> None:
    parser = adapter_named("claude").parser(request_for("claude"))
    events = [
        event for line in lines_of("claude", "control-allow") for event in parser.feed("out", line)
    ]
    (asked,) = [event for event in events if isinstance(event, Asked)]
    assert (asked.tool, asked.detail, asked.is_permission) == ("Write", "/repo/hello.txt", True)
    assert [e for e in events if isinstance(e, TurnEnded)] == [
        TurnEnded(is_ok=True, text="Created hello.txt.")
    ]

    parser = adapter_named("claude").parser(request_for("claude"))
    said = [
        json.loads(line)["msg"]
        for line in (TRANSCRIPTS / "claude/control-allow.ndjson").read_bytes().splitlines()
    ]
    question = next(m for m in said if m.get("request", {}).get("subtype") == "can_use_tool")
    answer = next(
        m for m in said if m.get("response", {}).get("request_id") == question["request_id"]
    )
    parser.feed("out", json.dumps(question).encode() + b"\n")
    assert json.loads(parser.answer(question["request_id"], "allow") or b"") == answer
    assert parser.answer(question["request_id"], "allow") is None


def test_claude_counts_both_turns_of_one_process() -> None:
    events, outcome = replay("claude", "control-two-turns")
    assert sum(isinstance(event, TurnEnded) for event in events) == 2
    assert (outcome.usage.input_tokens, outcome.usage.usd) == (5000, 0.025)
    counts = [e.input_tokens or 0 for e in events if isinstance(e, UsageSeen)]
    assert counts == sorted(counts)


def test_codex_shows_commands_without_the_shell_around_them() -> None:
    events, _ = replay("codex", "edit")
    called = [event for event in events if isinstance(event, ToolCalled)]
    assert called[0].title == "cat notes.txt"
    assert called[1].paths == ("/repo/notes.txt",)


def test_what_a_session_had_used_before_is_not_counted_again() -> None:
    request = request_for("codex", session="s", used_before=Usage(input_tokens=2000))
    parser = adapter_named("codex").parser(request)
    for line in lines_of("codex", "resume"):
        parser.feed("out", line)
    assert parser.finish(Ending(exit_code=0)).usage.input_tokens == 3000


def test_said_pieces_make_the_last_message() -> None:
    events, _ = replay("gemini", "create")
    assert [e for e in events if isinstance(e, Said)][-2:] == [
        Said("Created hell"),
        Said("o.txt.", is_delta=True),
    ]


@pytest.mark.parametrize("agent", ["claude", "pi", "opencode"])
def test_a_context_and_the_answers_of_the_model_are_counted(agent: str) -> None:
    events, _ = replay(agent, "create")
    seen = [event for event in events if isinstance(event, UsageSeen)]
    assert [one.turns for one in seen if one.turns][-1] == 2
    assert seen[-1].context


_INIT = (
    b'{"type":"system","subtype":"init","session_id":"s",%s"slash_commands":["a"],%s"uuid":"u"}\n'
)


@pytest.mark.parametrize(
    ("early", "late"),
    [
        (b'"model":"m",', b""),
        (b"", b'"model":"m",'),
        (b'"tools":[{"x":1,"slash_commands":2}],', b'"model":"m",'),
    ],
)
def test_claude_s_first_record_is_known_wherever_it_tells(early: bytes, late: bytes) -> None:
    parser = adapter_named("claude").parser(request_for("claude"))
    assert parser.feed("out", _INIT % (early, late)) == [Started("s", "m")]


def test_half_of_claude_s_first_record_is_none() -> None:
    parser = adapter_named("claude").parser(request_for("claude"))
    torn = (_INIT % (b'"model":"m",', b"")).replace(b"}", b"")
    assert [type(event) for event in parser.feed("out", torn)] == [Raw]
