"""Refusals of a model as plain text tells them, and the model's name beside them."""

import json

import pytest

from engine.agents.agent_events import BUSY, Retrying
from engine.agents.command import shell_parser
from engine.agents.contract import AgentAdapter, Ending, LaunchRequest
from engine.agents.registry import adapter_named, heard
from engine.agents.waiting import wait_told
from engine.plan.model import AgentChoice

AUTH = b"litellm.AuthenticationError: OpenAIException - no such key\n"
SLOW_DOWN = b"litellm.RateLimitError: OpenAIException - slow down\n"


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
    events = reader.feed("out", SLOW_DOWN + b"Retrying in 2.0 seconds...\nApplied edit to a\n")
    assert Retrying(1, 2.0, "429") in events
    assert reader.finish(Ending(exit_code=0)).ok


def test_a_command_that_could_not_be_started_is_no_agent_to_install() -> None:
    _, request = launched("aider")
    ending = Ending(not_started="No such file or directory")
    said = [
        reader.finish(ending).error
        for reader in (shell_parser(request), adapter_named("aider").parser(request))
    ]
    why = "could not be started: No such file or directory"
    assert said == [f"the command {why}", f"the agent {why}; `plait agents` lists installed agents"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("x/y", "the model 'x/y' is unknown to its provider: no 404"),
        (None, "its model is unknown to its provider"),
    ],
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


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Rate limit reached. Please try again in 1.898s.", 1.898),
        ("Please try again in 6m12s.", 372.0),
        ("try again in 350ms", 0.35),
        ("Try again in 3 days 2 hours 5 minutes.", 266_700.0),
        ("try again in 1 hour and 30 minutes", 5400.0),
        ('{"@type": "google.rpc.RetryInfo", "retryDelay": "4s"}', 4.0),
        ("Please retry in 41.5s.", 41.5),
        ("Retrying after 4000ms...", 4.0),
        ("retry-after: 20 seconds", 20.0),
        ("rate limit reached", None),
        ("try again later", None),
        ("it failed after 20 s; try again", None),
        ("try again in 3 steps", None),
        ("try again at 3:45 PM", None),
    ],
)
def test_the_wait_of_a_server_is_read_from_its_words(words: str, seconds: float | None) -> None:
    told = wait_told(words)
    assert told == (seconds if seconds is None else pytest.approx(seconds))


PERSISTS = "Retrying with backoff..."
QUOTA = "You exceeded your current quota"
BESIDE = {
    f'Attempt 2 failed with status 429. {PERSISTS} {{"retryDelay":"4s"}}': (2, 4.0, "429"),
    f"Attempt 1 failed with status 503. {PERSISTS}": (1, None, "503"),
    "Attempt 1 failed: Retry in 4s. Retrying after 4321ms...": (1, 4.321, "Retry in 4s"),
    f"Attempt 1 failed: {QUOTA}. Retrying after 4321ms...": (1, 4.321, "429"),
    "Attempt 3 failed: Provider is overloaded. Retrying after 2000ms...": (3, 2.0, "529"),
    "Attempt 1 failed: fetch failed. Retrying after 2000ms...": (1, 2.0, "fetch failed"),
    "Attempt 1 failed with status 529. Retrying after 30000ms...": (1, 30.0, "529"),
    "Retrying in 60s (attempt 1/10): [API Error: 429 slow down]": (1, 60.0, "429"),
}


@pytest.mark.parametrize("name", ["gemini", "qwen", "opencode", "pi"])
@pytest.mark.parametrize("line", BESIDE)
def test_what_is_said_beside_the_stream_is_a_wait(name: str, line: str) -> None:
    adapter, request = launched(name)
    assert Retrying(*BESIDE[line]) in adapter.parser(request).feed("err", line.encode() + b"\n")


@pytest.mark.parametrize(
    "line",
    [
        "Attempt 1 failed: the parser is broken",
        "Attempt 10 failed: slow down. Max attempts reached",
        "Retrying provider attempt (0 buffered tool call(s) discarded).",
    ],
)
def test_what_is_said_beside_the_stream_of_other_things_is_no_wait(line: str) -> None:
    adapter, request = launched("gemini")
    events = adapter.parser(request).feed("err", line.encode() + b"\n")
    assert [type(event).__name__ for event in events] == ["Raw"]


ASKED = (
    '[2026-11-20 05:00:00 - httpx:1025 - INFO] HTTP Request: POST http://x/v1 "HTTP/1.1 {} Busy"\n'
)
AGAIN = (
    "[2026-11-20 05:00:00 - openai._base_client:1094 - INFO] "
    "Retrying request to /chat/completions in 4.000000 seconds\n"
)


@pytest.mark.parametrize("name", ["aider", "mini"])
@pytest.mark.parametrize("status", ["429", "529"])
def test_the_wait_of_an_agent_of_plain_text_is_read_from_the_log_beneath_it(
    name: str, status: str
) -> None:
    adapter, request = launched(name, model="openai/x")
    assert adapter.launch(request).env["OPENAI_LOG"] == "info"
    reader = adapter.parser(request)
    assert reader.feed("err", ASKED.format(status).encode()) == []  # no words of the agent's own
    assert reader.feed("err", AGAIN.encode()) == [Retrying(1, 4.0, status)]
    reader.feed("err", ASKED.format(200).encode())
    assert reader.finish(Ending(exit_code=0)).ok


@pytest.mark.parametrize(("delay", "status"), [("4.000000", BUSY), ("0.418632", "")])
def test_a_wait_without_a_status_was_named_by_a_server_if_it_is_whole(
    delay: str, status: str
) -> None:
    adapter, request = launched("mini", model="openai/x")
    line = AGAIN.replace("4.000000", delay).encode()
    assert adapter.parser(request).feed("err", line) == [Retrying(1, float(delay), status)]


def test_a_command_may_log_as_it_likes() -> None:
    request = LaunchRequest(
        choice=AgentChoice(name="mine", adapter="command", argv=("x",)),
        prompt="Go.",
        workspace="/w",
        home="/h",
    )
    (event,) = adapter_named("command").parser(request).feed("err", AGAIN.encode())
    assert type(event).__name__ == "Raw"


@pytest.mark.parametrize("status", [429, 503, 529])
def test_copilot_says_what_it_waits_for_when_it_begins_to_wait(status: int) -> None:
    adapter, request = launched("copilot")
    reader = adapter.parser(request)
    failure = {"type": "model.call_failure", "data": {"statusCode": status}}
    events = reader.feed("out", json.dumps(failure).encode() + b"\n")
    assert events == [Retrying(1, None, str(status))]
    again = b'{"type":"assistant.turn_retry","data":{"reason":"rate_limit"}}\n'
    assert reader.feed("out", again) == [Retrying(1, None, "429")]  # its wait is over
    refused = b'{"type":"model.call_failure","data":{"statusCode":400}}\n'
    assert reader.feed("out", refused) == []  # it does not ask again


def test_gemini_names_its_wait_at_the_end_of_several_lines() -> None:
    adapter, request = launched("gemini")
    reader = adapter.parser(request)
    reader.feed("err", b"Attempt 2 failed: scripted failure 429\n")
    (_, event) = reader.feed("err", b"Suggested retry after 4s.. Retrying after 5863ms...\n")
    assert event == Retrying(2, 5.863, "429")
    again = reader.feed("err", b"Retrying after 5863ms...\n")
    assert [type(one).__name__ for one in again] == ["Raw"]  # of another story


@pytest.mark.parametrize("stream", ["out", "err"])
def test_the_wait_of_qwen_is_read_from_the_log_beneath_it(stream: str) -> None:
    adapter, request = launched("qwen")
    assert adapter.launch(request).env["OPENAI_LOG"] == "info"
    reader = adapter.parser(request)
    head = "[log_950dc3] post http://127.0.0.1:1/v1/chat/completions "
    failed = f"{head}failed with status 429 in 42ms - retrying, 3 attempts remaining\n"
    assert reader.feed(stream, failed.encode()) == [Retrying(1, None, "429")]
    done = f"{head}succeeded with status 200 in 5ms\n"
    assert reader.feed(stream, done.encode()) == []


@pytest.mark.parametrize("name", ["gemini", "opencode", "pi"])
def test_each_wait_of_several_is_its_own(name: str) -> None:
    adapter, request = launched(name)
    reader = adapter.parser(request)
    lines = [f"Attempt {n} failed: slow down. Retrying after {n}000ms...\n" for n in (1, 2, 3)]
    events = [event for line in lines for event in reader.feed("err", line.encode())]
    retries = [event for event in events if isinstance(event, Retrying)]
    assert [(one.attempt, one.delay_s) for one in retries] == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_a_failure_whose_wait_never_came_gives_the_next_one_nothing() -> None:
    adapter, request = launched("gemini")
    reader = adapter.parser(request)
    reader.feed("err", b"Attempt 1 failed: fetch failed\n")
    (_, event) = reader.feed("err", b"Attempt 2 failed: slow down. Retrying after 5000ms...\n")
    assert event == Retrying(2, 5.0, "slow down")


@pytest.mark.parametrize("name", ["claude", "codex", "command", "callable", "scripted", "mini"])
@pytest.mark.parametrize("stream", ["out", "err"])
def test_other_programs_that_try_again_do_not_wait_for_a_model(name: str, stream: str) -> None:
    adapter, request = launched(name)
    reader = adapter.parser(request)
    for line in (
        "Attempt 1 failed: disk quota exceeded. Retrying in 5s",
        "Attempt 1 failed with status 429",
        "[log_950dc3] post http://x failed with status 429 in 42ms - retrying, 3 attempts left",
    ):
        events = reader.feed(stream, line.encode() + b"\n")
        assert [type(event).__name__ for event in events] == ["Raw"], line


def test_the_output_of_a_command_step_is_never_a_wait() -> None:
    _, request = launched("command")
    line = b"Attempt 1 failed: disk quota exceeded. Retrying in 5s\n"
    assert [type(one).__name__ for one in shell_parser(request).feed("err", line)] == ["Raw"]


def asked_again(*statuses: int | None) -> list[Retrying]:
    """Return what mini waits for where its model answers so; None is a connection that broke."""
    adapter, request = launched("mini", model="openai/x")
    reader = adapter.parser(request)
    told: list[Retrying] = []
    for status in statuses:
        if status is not None:
            reader.feed("err", ASKED.format(status).encode())
        if status is None or status >= 400:
            line = AGAIN.replace("4.000000", "0.418632").encode()
            told += [event for event in reader.feed("err", line) if isinstance(event, Retrying)]
    return told


def test_a_connection_that_broke_has_no_status_of_an_earlier_answer() -> None:
    assert asked_again(200, None) == [Retrying(1, 0.418632, "")]
    assert [one.status for one in asked_again(429, None, 503)] == ["429", "", "503"]


def test_tries_are_counted_anew_after_an_answer() -> None:
    assert [one.attempt for one in asked_again(429, 429, 200, 429)] == [1, 2, 1]
