"""Refusals of a model as plain text tells them, and the model's name beside them."""

import pytest

from engine.agents.agent_events import Retrying
from engine.agents.contract import AgentAdapter, Ending, LaunchRequest
from engine.agents.registry import adapter_named, heard
from engine.plan.model import AgentChoice

AUTH = b"litellm.AuthenticationError: OpenAIException - no such key\n"
BUSY = b"litellm.RateLimitError: OpenAIException - slow down\n"


def launched(name: str, **choice: str) -> tuple[AgentAdapter, LaunchRequest]:
    request = LaunchRequest(
        choice=AgentChoice(name=name, adapter=name, **choice),  # type: ignore[arg-type]
        prompt="Go.",
        workspace="/w",
        home="/h",
        is_confined=True,
        environment={"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"},
    )
    return adapter_named(name), request


@pytest.mark.parametrize("name", ["aider", "mini"])
def test_an_agent_of_plain_text_claims_nothing(name: str) -> None:
    adapter, request = launched(name)
    can = adapter.capabilities
    assert not any((can.permission, can.resume, can.two_way, can.usage))
    assert heard(request.choice) == "no"


@pytest.mark.parametrize("name", ["aider", "mini"])
@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_refused_key_is_why_it_did_nothing(name: str, stream: str) -> None:
    adapter, request = launched(name, model="openai/x")
    reader = adapter.parser(request)
    reader.feed(stream, AUTH)
    outcome = reader.finish(Ending(exit_code=0))
    assert outcome.error == "AuthenticationError (401): OpenAIException - no such key"
    assert outcome.needs_login
    assert adapter.launch(request).login == "OPENAI_API_KEY"


def test_a_refusal_that_was_overcome_is_none() -> None:
    adapter, request = launched("aider", model="openai/x")
    reader = adapter.parser(request)
    events = reader.feed("out", BUSY + b"Retrying in 2.0 seconds...\nApplied edit to a\n")
    assert Retrying(1, 2.0, "429") in events
    assert reader.finish(Ending(exit_code=0)).ok


@pytest.mark.parametrize(
    ("model", "words"),
    [("x/y", "the model 'x/y' is not known there: no 404"), (None, "its model is not known there")],
)
def test_a_model_that_its_vendor_does_not_know_is_named(model: str | None, words: str) -> None:
    adapter, request = launched("pi", **({"model": model} if model else {}))
    reader = adapter.parser(request)
    reader.feed(
        "out", b'{"type":"agent_end","messages":[{"stopReason":"error","errorMessage":"no 404"}]}\n'
    )
    assert words in reader.finish(Ending(exit_code=0)).error


def test_words_that_name_the_model_stay_as_they_are() -> None:
    adapter, request = launched("pi", model="x/y")
    reader = adapter.parser(request)
    reader.feed(
        "out",
        b'{"type":"agent_end","messages":[{"stopReason":"error","errorMessage":"404 x/y"}]}\n',
    )
    assert reader.finish(Ending(exit_code=0)).error == "404 x/y"


def test_a_status_is_told_alone_where_words_hold_one() -> None:
    adapter, request = launched("pi")
    (event,) = adapter.parser(request).feed(
        "out",
        b'{"type":"auto_retry_start","attempt":1,"delayMs":2000,"errorMessage":"429 slow down"}\n',
    )
    assert event == Retrying(1, 2.0, "429")
