"""Words of agents with odd figures in them: read, acted upon, stored, replayed and drawn.

No byte that an agent writes may raise while it is read, become a value that cannot be stored, or
one that cannot be drawn. 30 streams for each adapter are tried, 600 with `PLAIT_THOROUGH`.
"""

import json
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from engine.agents import records, waiting
from engine.agents.agent_events import AgentEvent
from engine.agents.contract import LaunchRequest
from engine.agents.registry import adapter_named, adapters
from engine.api import event_json, view_json
from engine.core import facts as f
from engine.host.seam import AttemptExit
from engine.ids import AttemptId, RunId
from engine.limits import Limits
from engine.messages.events import LatestWins, MustArrive, RateLimitMet, Told
from engine.messages.results import EngineView
from engine.plan.model import AgentChoice
from engine.run.view import view_of
from engine.store.codec import from_json, to_json
from engine.testing.manual_clock import ManualClock
from engine.work import watch as watching
from engine.work.agent_work import screen_of
from engine.work.logbook import Logbook
from engine.work.notebook import Notebook
from engine.work.replay import _write
from engine.work.watch import Watch
from tests.property.test_agents_streams import must_be_writable
from tests.support.core_runs import Told as CoreTold
from tests.support.core_runs import a_run, who
from tests.support.plans import a_step
from tui.commands.following import sentence
from tui.kit.cards import card
from tui.kit.tiles import tile
from tui.screens.worker.logs import Log
from tui.words.happened import event_row
from tui.words.scene import Scene

COUNT = 600 if os.environ.get("PLAIT_THOROUGH") else 30
MONTH_S = 31 * 24 * 3600.0
SHIPPED = sorted({*adapters(), "claude on a terminal"} - {"jsonl"})
FIGURES = [
    *("0", "1", "42", "2.5", "1e9", "inf", "nan", "-1", "", "0x10", "1_000", "0.4.8", "."),
    *("9" * 16, "9" * 22, "9" * 310, "9" * 400, "9" * 5000, "1." + "9" * 5000, "1" + "0" * 308),
    *("\u0663", "\u00b2", "\uff19", "\U0001d7d7"),
]
UNITS = ["ms", "s", "m", "h", "d", "days", "m\u017f", "\u017f", "\u212a", "\u0131", ""]
WORDS = [
    *("fetch failed", "rate limit", "429", "overloaded", "quota", "\u202e", "\x00", "\ud800"),
    *("\x1b[2J", "\u0664\u0662\u0669", "(", "5" * 5000, "it works", "retry after", "e\u0301" * 300),
]
STATUS = ["429", "503", "529", "200", "999", "\u0664\u0662\u0669", "4" * 5000, "40", "busy"]
PLAIN = [
    "Attempt {n} failed with status {s}. {w} Retrying after {n}{u}...",
    "Attempt {n} failed: {w}. Retrying after {n}ms...",
    "Attempt {n} failed: {w}",
    "Suggested retry after {n}{u}.. Retrying after {n}ms...",
    "Retrying in {n}s (attempt {n}/{n}): {w}",
    "[log_950dc3] post http://x failed with status {s} in {n}ms - retrying, {n} attempts remaining",
    "[log_950dc3] post http://x succeeded with status {s} in {n}ms",
    "Reconnecting... {n}/{n} ({w} try again in {n}{u})",
    '[x - httpx:1 - INFO] HTTP Request: POST http://x "HTTP/1.1 {s} {w}"',
    "[x - openai._base_client:1 - INFO] Retrying request to /x in {n} seconds",
    "litellm.RateLimitError: {w}",
    "Retrying {w} in {n} seconds",
    "limit reached|{n}",
    "Exit code: {n}",
    "\x1b]777;notify;plait permission;{w}({n})\x07",
    "\x1b]9;{w}\x07\x1b[{n};{n}H\x1b[{n}m\x1b]133;D;{n}\x07",
    "{w}",
]
VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 0.5, 1e308, 10**400, 2**53, 2**53 - 1, 2**63, [], {}, [[]]),
]
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "1", "content": "?"}
RECORDS: list[dict[str, Any]] = [
    {"plait": "retry", "attempt": "?", "delay_s": "?", "status": "?"},
    {"plait": "retry", "attempt": 1, "delay_s": "?", "status": "429"},
    {"plait": "rate_limit", "until": "?", "delay_s": "?"},
    {"plait": "usage", "input_tokens": "?", "output_tokens": "?", "usd": "?"},
    {"plait": "progress", "fraction": "?", "note": "?"},
    {"plait": "ask", "id": "?", "text": "?", "permission": True, "tool": "?", "detail": "?"},
    {"plait": "tool", "id": "?", "name": "Bash", "state": "?", "output": "?"},
    {"plait": "agents", "count": "?"},
    {"plait": "session", "id": "?"},
    {"plait": "result", "ok": False, "text": "?", "error": "?"},
    {"type": "system", "subtype": "api_retry", "attempt": "?", "retry_delay_ms": "?"},
    {"type": "system", "subtype": "api_retry", "error_status": "?", "error": "?"},
    {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": "?"}},
    {"type": "result", "is_error": True, "result": "limit reached|{n}", "total_cost_usd": "?"},
    {"type": "user", "message": {"content": [TOOL_RESULT]}},
    {"type": "assistant", "message": {"id": "?", "usage": {"input_tokens": "?"}, "content": []}},
    {
        "type": "control_request",
        "request_id": "?",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "?"}},
    },
    {"type": "error", "message": "Reconnecting... {n}/{n} (try again in {n}{u})"},
    {"type": "turn.failed", "error": {"message": "rate limit: try again in {n}{u}"}},
    {"type": "item.completed", "item": {"id": "?", "type": "command_execution", "exit_code": "?"}},
    {"type": "auto_retry_start", "attempt": "?", "delayMs": "?", "errorMessage": "?"},
    {"type": "model.call_failure", "data": {"statusCode": "?"}},
    {"type": "assistant.turn_retry", "data": {"reason": "?"}},
    {"jsonrpc": "2.0", "id": 1, "result": {"agentCapabilities": {}}},
    {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "?"}},
    {
        "jsonrpc": "2.0",
        "method": "_claude/sdkMessage",
        "params": {"message": {"attempt": "?", "retry_delay_ms": "?", "error_status": "?"}},
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"update": {"sessionUpdate": "usage_update", "used": "?", "size": "?"}},
    },
    {
        "jsonrpc": "2.0",
        "id": "?",
        "method": "session/request_permission",
        "params": {"toolCall": {"toolCallId": "?", "rawInput": "?"}, "options": []},
    },
]


def nested(chance: random.Random) -> Any:
    """Lists and objects in each other, up to deeper than any reader goes."""
    value: Any = chance.choice(["x", 1])
    for _ in range(chance.choice([3, 90, 199, 201, 450, 700])):
        value = [value] if chance.random() < 0.8 else {"content": value}
    return value


def filled(chance: random.Random, text: str) -> str:
    places = {
        "{n}": ("3", FIGURES),
        "{u}": ("s", UNITS),
        "{w}": ("x", WORDS),
        "{s}": ("429", STATUS),
    }
    for place, (usual, known) in places.items():
        while place in text:
            one = usual if chance.random() < 0.5 else chance.choice(known)
            text = text.replace(place, one, 1)
    return text


def odd(chance: random.Random, shape: Any) -> Any:
    if isinstance(shape, dict):
        return {key: odd(chance, value) for key, value in shape.items()}
    if isinstance(shape, list):
        return [odd(chance, value) for value in shape]
    if shape != "?":
        return filled(chance, shape) if isinstance(shape, str) else shape
    kind = chance.randrange(5)
    if kind == 0:
        return nested(chance)
    return chance.choice([VALUES, FIGURES, WORDS, STATUS][kind - 1])


def a_line(chance: random.Random) -> tuple[str, bytes]:
    if chance.random() < 0.5:
        text = filled(chance, chance.choice(PLAIN))
        return chance.choice(["out", "err"]), text.encode("utf-8", "surrogatepass") + b"\n"
    text = json.dumps(odd(chance, chance.choice(RECORDS)))
    if chance.random() < 0.2:  # a figure that no writer of JSON makes
        text = text.replace(": 1,", f": {'9' * 5000},", 1)
    return "out", text.encode() + b"\n"


def a_stream(chance: random.Random) -> list[tuple[str, bytes]]:
    return [a_line(chance) for _ in range(chance.randrange(1, 30))]


def request(name: str) -> LaunchRequest:
    is_screen = name == "claude on a terminal"
    argv = ("claude",) if is_screen else ("x",)
    adapter = "terminal" if is_screen else name
    choice = AgentChoice(name="a", adapter=adapter, argv=argv, options={"asks_by": "notice bell"})
    return LaunchRequest(
        choice=choice, prompt="Go.", workspace="/w", home="/h", environment={"K": "k"}
    )


class Row:
    """Rows of an agent's own database: each must have been written as JSON."""

    def record(self, *_: object) -> None:
        raise AssertionError("nothing is flushed here")


class World:
    """A watch, a core and a console around one parser, as an engine puts them together."""

    def __init__(self, name: str) -> None:
        self.clock = ManualClock()
        self.core: CoreTold = a_run(a_step("a"))
        self.core.at = self.clock.now()
        self.core.ready("a")
        self.logbook = Logbook(1)
        asked = request(name)
        parser = adapter_named(asked.choice.adapter).parser(asked)
        self.logbook.screen = screen_of(parser)
        host: Any = None  # nothing is sent: only what came from the agent is looked at
        rows: Any = Row()
        self.watch = Watch(
            attempt=AttemptId(RunId("r1"), who("a"), 1),
            host=host,
            parser=parser,
            request=asked,
            logbook=self.logbook,
            notebook=Notebook(rows, 1),
            clock=self.clock,
            limits=Limits(),
            feed=self.feed,
            mention=self.mention,
            keeps_stdin=True,
            started_at=self.clock.now(),
            count_spent=lambda **_: None,
            is_caught_up=True,
        )

    def feed(self, fact: f.Fact) -> None:
        """Journal it as a run does, and have the core act on what is read back."""
        back = from_json(f.Fact, to_json(fact))
        assert back == fact
        if isinstance(fact, f.RateLimitSeen):
            assert (fact.until or 0.0) <= self.clock.now() + MONTH_S
        self.core.feed(back)
        for event in self.core.events:
            assert from_json(MustArrive, to_json(event)) == event
            self.draw_event(Told(run=RunId("r1"), at=self.clock.now(), event=event, seq=1))
        self.draw()

    def mention(self, event: LatestWins) -> None:
        to_json(event)
        self.draw_event(Told(run=RunId("r1"), at=self.clock.now(), event=event, seq=None))

    def hear(self, stream: str, data: bytes) -> list[AgentEvent]:
        events = self.watch.parser.feed(stream, data)
        for event in events:
            must_be_writable(event)
        self.watch._note(events, self.clock.now())
        self.watch.notebook.add(events, at=self.clock.now(), offset=0)
        return events

    def end(self) -> None:
        self.feed(self.watch._ended(AttemptExit(exit_code=1), 0))

    def draw_event(self, told: Told) -> None:
        sentence(told)
        json.dumps(event_json(told), allow_nan=False)
        event_row(told, self.clock.now(), 100)

    def draw(self) -> None:
        view = view_of(self.core.state, {(who("a"), 1): self.logbook})
        json.dumps(view_json(view), allow_nan=False)
        scene = Scene(view=EngineView(repository="r", runs=(view,)), run=view, now=self.clock.now())
        (step,) = view.steps
        (worker,) = step.workers
        for size in ((40, 9), (100, 24)):
            tile(worker, step, scene, size, is_focused=True)
            if worker.questions:
                card(worker, step, scene, size, is_focused=True)
        log = Log()
        log.take(self.logbook.read(0).lines)
        list(log.rows(0, 40))


def replayed(name: str, lines: list[tuple[str, bytes]]) -> list[str]:
    """Return the log as one who reads the recording again has it."""
    asked = request(name)
    parser = adapter_named(asked.choice.adapter).parser(asked)
    logbook = Logbook(1)
    for stream, data in lines:
        _write(logbook, parser.feed(stream, data), ManualClock().now())
    return [line.text for line in logbook.read(0).lines]


def go_through(name: str, chance: random.Random, times: int = COUNT) -> None:
    for _ in range(times):
        one_goes_through(name, chance)


def one_goes_through(name: str, chance: random.Random) -> None:
    world, lines = World(name), a_stream(chance)
    for stream, data in lines:
        world.hear(stream, data)
    live = [line.text for line in world.logbook.read(0).lines]
    assert replayed(name, lines) == live
    world.draw()
    world.end()


@pytest.mark.parametrize("name", SHIPPED)
def test_what_an_agent_writes_is_read_stored_replayed_and_drawn(name: str) -> None:
    go_through(name, random.Random(name))


def with_long_waits(patch: pytest.MonkeyPatch) -> None:
    for name in ("_WAIT", "_PART"):
        pattern: re.Pattern[str] = getattr(waiting, name)
        text = pattern.pattern.replace("{1,15}", "+").replace("{1,30}", "+")
        patch.setattr(waiting, name, re.compile(text, re.IGNORECASE | re.ASCII))
    patch.setattr(waiting, "number_of", lambda value: value)


def with_odd_letters(patch: pytest.MonkeyPatch) -> None:
    for name in ("_WAIT", "_PART"):
        pattern: re.Pattern[str] = getattr(waiting, name)
        patch.setattr(waiting, name, re.compile(pattern.pattern, re.IGNORECASE))


def with_long_counts(patch: pytest.MonkeyPatch) -> None:
    texts = [pattern.pattern.replace("{1,9}", "+") for pattern in waiting._TRIES_AGAIN]
    patch.setattr(waiting, "_TRIES_AGAIN", [re.compile(text, re.ASCII) for text in texts])


def with_several_points(patch: pytest.MonkeyPatch) -> None:
    pattern = re.compile(r"Retrying request to \S+ in ([\d.]+) seconds")
    patch.setattr("engine.agents.own_stream._ASKS_AGAIN", pattern)


def with_endless_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watching, "_LONGEST_LIMIT_S", 1e300)


def with_deep_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records, "_is_deep", lambda _: False)


@pytest.mark.parametrize(
    ("name", "take_away"),
    [
        ("gemini", with_long_waits),
        ("gemini", with_odd_letters),
        ("gemini", with_long_counts),
        ("mini", with_several_points),
        ("command", with_endless_limits),
        ("claude", with_deep_records),
    ],
)
def test_the_lines_meet_each_guard(
    name: str, take_away: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: without one of the guards, some line does harm."""
    take_away(monkeypatch)
    with pytest.raises((AssertionError, ValueError, KeyError, RecursionError)):
        go_through(name, random.Random(name), 500)


def test_a_wait_is_told_once_and_again_where_it_differs() -> None:
    world = World("scripted")
    for delay_s, status in ((5, "429"), (5.5, "429"), (5, "429"), (90, "429"), (90, "503")):
        record = {"plait": "retry", "attempt": 1, "delay_s": delay_s, "status": status}
        world.hear("out", json.dumps(record).encode() + b"\n")
    met = [event for event in world.core.history if isinstance(event, RateLimitMet)]
    assert [(e.until and e.until - world.clock.now(), e.status) for e in met] == [
        (5.0, "429"),
        (90.0, "429"),
        (90.0, "503"),
    ]
