"""Allowances that are used up, as agents tell it: a time to go on at, where there is one."""

import json
from typing import Any

import pytest

from engine.agents.agent_events import AgentOutcome, RateLimited, SubAgents, Withdrawn
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.registry import adapter_named
from engine.plan.model import AgentChoice


def told(agent: str, *records: dict[str, Any]) -> tuple[list[object], AgentOutcome]:
    choice = AgentChoice(name=agent, adapter=agent)
    request = LaunchRequest(choice=choice, prompt="", workspace="/", home="/")
    parser = adapter_named(agent).parser(request)
    events: list[object] = []
    for record in records:
        events += parser.feed("out", json.dumps(record).encode() + b"\n")
    return events, parser.finish(Ending(exit_code=1))


def refusal(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": True, "result": text, **more}


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("Claude AI usage limit reached|1794985000", 1794985000.0),
        ("5-hour limit reached ∙ resets 3pm", None),
        ("You have hit your weekly limit.", None),
    ],
)
def test_claude_s_words_for_a_used_up_allowance_are_known(text: str, until: float | None) -> None:
    events, outcome = told("claude", refusal(text))
    assert outcome.limit == RateLimited(until)
    assert RateLimited(until) in events


def test_claude_s_own_record_of_it_has_the_time() -> None:
    about = {"status": "rejected", "resetsAt": 1794985000, "rateLimitType": "five_hour"}
    event = {"type": "rate_limit_event", "rate_limit_info": about}
    _, outcome = told("claude", event, refusal("limit reached", api_error_status=429))
    assert outcome.limit == RateLimited(1794985000.0)
    fine = {"type": "rate_limit_event", "rate_limit_info": {**about, "status": "allowed_warning"}}
    assert told("claude", fine, refusal("it broke"))[1].limit is None


def test_claude_is_interrupted_once_when_its_login_is_refused_again() -> None:
    retries = [
        {"type": "system", "subtype": "api_retry", "attempt": n, "error_status": 401}
        for n in (1, 2, 3)
    ]
    broken = {"type": "result", "is_error": True, "terminal_reason": "aborted_streaming"}
    events, outcome = told("claude", *retries, broken)
    assert [type(event).__name__ for event in events[:4]] == [
        "Retrying",
        "Retrying",
        "ProtocolReply",
        "Retrying",
    ]
    assert (outcome.needs_login, outcome.error) == (True, "its login was refused (401)")


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_others_say_it_in_words(agent: str) -> None:
    words = "You've hit your usage limit. Try again later."
    records = {
        "codex": {"type": "turn.failed", "error": {"message": words}},
        "gemini": {"type": "result", "status": "error", "error": {"message": words}},
    }
    assert told(agent, records[agent])[1].limit == RateLimited()


def test_a_limit_that_was_overcome_is_no_limit() -> None:
    about = {"status": "rejected", "resetsAt": 1794985000}
    event = {"type": "rate_limit_event", "rate_limit_info": about}
    done = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
    choice = AgentChoice(name="claude", adapter="claude")
    request = LaunchRequest(choice=choice, prompt="", workspace="/", home="/")
    parser = adapter_named("claude").parser(request)
    parser.feed("out", b"".join(json.dumps(r).encode() + b"\n" for r in (event, done)))
    outcome = parser.finish(Ending(exit_code=0))
    assert (outcome.ok, outcome.limit) == (True, None)


def test_sub_agents_are_counted_and_their_words_are_not_the_agent_s() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Task", "input": {"description": "look"}}
    events, outcome = told(
        "claude",
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Mine."}]}},
        {"type": "assistant", "message": {"content": [call]}},
        {
            "type": "assistant",
            "parent_tool_use_id": "t",
            "message": {"content": [{"type": "text", "text": "Theirs."}]},
        },
    )
    assert [event for event in events if isinstance(event, SubAgents)] == [SubAgents(1)]
    assert outcome.text == "Mine."


def test_a_question_that_the_agent_gave_up_is_withdrawn() -> None:
    asked = {
        "type": "control_request",
        "request_id": "r",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}},
    }
    events, _ = told("claude", asked, {"type": "control_cancel_request", "request_id": "r"})
    assert events[-1] == Withdrawn("r")


@pytest.mark.parametrize(
    ("words", "is_network"),
    [
        ("API Error: Unable to connect to API (ECONNREFUSED)", True),
        ("API Error: Connection error.", True),
        ("stream disconnected before completion: error sending request for url", True),
        ("getaddrinfo ENOTFOUND api.example.com", True),
        ("scripted failure 400", False),
        ("the tests of the network layer fail", False),
    ],
)
def test_a_lost_network_is_known_by_its_words(words: str, *, is_network: bool) -> None:
    outcome = told("claude", refusal(words))[1]
    assert outcome.lost_network is is_network
    assert outcome.error.startswith("its model cannot be reached over the network") is is_network


@pytest.mark.parametrize(
    ("said", "comes_to"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "the context of its model is full"),
        ("Your input exceeds the context window of this model.", "the context of its model"),
        ("This model's maximum context length is 8192 tokens", "the context of its model"),
        ("Quota exceeded: GenerateRequestsPerDayPerProject, limit 50", "the quota for today"),
        ("You have reached your daily limit.", "the quota for today is used up"),
        ("You exceeded your current quota, please check your plan", "its account has no credit"),
        ("Your credit balance is too low to access the API", "its account has no"),
    ],
)
def test_what_a_vendor_s_words_come_to_is_said_before_them(said: str, comes_to: str) -> None:
    error = told("claude", refusal(said))[1].error
    assert error.startswith(comes_to)
    assert error.endswith(f": {said}")


def test_an_error_of_another_kind_is_told_as_it_is() -> None:
    said = "the daily report has no context"
    assert told("claude", refusal(said))[1].error == said
