"""Agent streams that were damaged: no traceback, no hang, nothing that could not be written down.

2,000 damaged streams are tried, 10,000 with `PLAIT_THOROUGH`.
"""

import dataclasses
import itertools
import json
import os
import random
import typing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.agents import records
from engine.agents.agent_events import AgentEvent, Printed, ProtocolReply, Raw, ToolEnded
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.reading import LineSplitter
from engine.agents.registry import adapter_named, adapters
from engine.plan.model import AgentChoice

TRANSCRIPTS = Path(__file__).parents[1] / "fixtures" / "transcripts"
COUNT = 10_000 if os.environ.get("PLAIT_THOROUGH") else 2_000
BATCHES = 20
ODD = [None, True, 0, -1, 1e400, 10**400, "", "\x00", "\ud800", [], {}, [[]], "x" * 5000, {"a": {}}]
BYTES = [
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r\n",
    b'"',
    b"{",
    b"}" * 40,
    b"[" * 3000,
    b"NaN",
    b"\\ud800",
]

OURS = [
    {"plait": "session", "id": "s"},
    {"plait": "say", "text": "hello", "delta": False},
    {"plait": "think", "text": "hm"},
    {"plait": "progress", "fraction": 0.5, "note": "half"},
    {"plait": "tool", "id": "1", "name": "Write", "state": "started", "paths": ["a"]},
    {"plait": "tool", "id": "1", "name": "Write", "state": "done", "output": "ok"},
    {"plait": "usage", "input_tokens": 1, "output_tokens": 2, "usd": 0.1},
    {"plait": "ask", "id": "q", "text": "?", "choices": ["a"], "permission": True, "tool": "Bash"},
    {"plait": "retry", "attempt": 1, "delay_s": 1, "status": "429"},
    {"plait": "rate_limit", "until": 2000000000, "delay_s": 3},
    {"plait": "agents", "count": 3},
    {"plait": "result", "text": "done", "ok": True},
]


def agent_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines()
    if not lines[0].startswith(b'{"from"'):
        return lines
    records = [json.loads(line) for line in lines]
    return [json.dumps(record["msg"]).encode() for record in records if record["from"] == "agent"]


def sources() -> list[tuple[str, list[bytes]]]:
    found = [("scripted", [json.dumps(record).encode() for record in OURS])]
    for path in sorted(TRANSCRIPTS.glob("*/*.ndjson")):
        agent = path.parent.name
        name = "acp" if agent.startswith("acp-") else agent
        if name in adapters() and path.stat().st_size < 60_000:
            found.append((name, agent_lines(path)))
    return found


SOURCES = sources()


def damaged_value(chance: random.Random, value: Any) -> Any:
    """The value with one thing somewhere in it gone, odd, or of another kind."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        changed = dict(value)
        if chance.random() < 0.2:
            del changed[key]
        else:
            changed[key] = damaged_value(chance, value[key])
        return changed
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], damaged_value(chance, value[place]), *value[place + 1 :]]
    return chance.choice(ODD)


def damaged_line(chance: random.Random, line: bytes) -> bytes:
    how = chance.randrange(4)
    if how == 0:
        place = chance.randrange(len(line) + 1)
        return line[:place] + chance.choice(BYTES) + line[place:]
    if how == 1:
        return line[: chance.randrange(len(line) + 1)]
    try:
        return json.dumps(damaged_value(chance, json.loads(line))).encode()
    except ValueError:
        return line[::-1]


def damaged(chance: random.Random, lines: list[bytes]) -> bytes:
    made = []
    for line in lines:
        if chance.random() < 0.1:
            continue
        made.append(damaged_line(chance, line) if chance.random() < 0.4 else line)
        if chance.random() < 0.05:
            made.append(line)
    if chance.random() < 0.3:
        chance.shuffle(made)
    return b"\n".join(made) + (b"\n" if chance.random() < 0.7 else b"")


def chunks(chance: random.Random, data: bytes) -> list[bytes]:
    size = chance.choice([1, 7, 100, 4096, 65536]) if len(data) < 20_000 else 65536
    return [data[start : start + size] for start in range(0, len(data), size)]


def request_for(name: str, chance: random.Random) -> LaunchRequest:
    return LaunchRequest(
        choice=AgentChoice(name=name, adapter=name),
        prompt="Do it.",
        workspace="/repo",
        home="/home",
        session=chance.choice([None, "s"]),
        is_confined=chance.random() < 0.5,
    )


def must_be_writable(thing: Any) -> None:
    """Strings are UTF-8, numbers are JSON, and all is of the kind that its class promises."""
    for name, hint in typing.get_type_hints(type(thing)).items():
        value = getattr(thing, name)
        kinds = [typing.get_origin(one) or one for one in typing.get_args(hint) or (hint,)]
        if typing.get_origin(hint) is tuple:
            assert isinstance(value, tuple), (thing, name)
            for item in value:
                assert isinstance(item, str) or name == "last_events", (thing, name)
        elif isinstance(value, int) and float in kinds:
            assert not isinstance(value, bool)
        else:
            assert isinstance(value, tuple(kinds)), (thing, name)
    values = dataclasses.asdict(thing) if dataclasses.is_dataclass(thing) else {}
    json.dumps(values, ensure_ascii=False, allow_nan=False, default=bytes.decode).encode()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damaged_streams_are_borne(batch: int) -> None:
    chance = random.Random(batch)
    for _ in range(COUNT // BATCHES):
        name, lines = chance.choice(SOURCES)
        parser = adapter_named(name).parser(request_for(name, chance))
        events: list[AgentEvent] = []
        for part in chunks(chance, damaged(chance, lines)):
            events += parser.feed(chance.choice(["out", "out", "out", "err", "in"]), part)
        for said in (parser.steer("x"), parser.interrupt(), parser.answer("q", "allow")):
            parser.feed("in", said or b"")
        outcome = parser.finish(chance.choice([Ending(exit_code=0), Ending(signal=9)]))
        for event in (*events, outcome):
            must_be_writable(event)
        assert outcome.ok is (outcome.error == "")


def apart(event: AgentEvent) -> list[AgentEvent]:
    """A flood in one piece means the same as its lines one by one."""
    if isinstance(event, Printed):
        return [Raw(line) for line in event.text.removesuffix("\n").split("\n")]
    return [event]


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_means_the_same_however_it_was_cut(seed: int) -> None:
    chance = random.Random(seed)
    for name, lines in chance.sample(SOURCES, 40):
        data = b"\n".join(lines) + b"\n"
        request = request_for(name, chance)
        verdicts = []
        for parts in ([data], chunks(chance, data)):
            parser = adapter_named(name).parser(request)
            events = [
                each
                for part in parts
                for event in parser.feed("out", part)
                for each in apart(event)
            ]
            verdicts.append((events, parser.finish(Ending(exit_code=0))))
        assert verdicts[0] == verdicts[1]


def test_what_is_owed_is_what_was_asked_for_and_not_sent() -> None:
    """An engine that was killed at any moment knows from the recording what it still has to say."""
    chance = random.Random(5)
    owing = 0
    for name, lines in [source for source in SOURCES if source[0] in {"acp", "claude", "scripted"}]:
        request = replace(request_for(name, chance), is_confined=True)
        live = adapter_named(name).parser(request)
        recording: list[tuple[str, bytes]] = []
        unsent: list[bytes] = []
        for line in lines:
            recording.append(("out", line + b"\n"))
            told = live.feed("out", line + b"\n")
            unsent += [event.data for event in told if isinstance(event, ProtocolReply)]
            if unsent and chance.random() < 0.7:
                recording.append(("in", unsent[0]))
                live.feed("in", unsent.pop(0))
            again = adapter_named(name).parser(request)
            for stream, data in recording:
                again.feed(stream, data)
            assert list(again.owed) == list(live.owed) == unsent
            owing += bool(unsent)
    assert owing > 50


def test_the_damage_is_real() -> None:
    """The negative control: damaged streams do read differently from whole ones."""
    chance = random.Random(1)
    differing = 0
    for name, lines in SOURCES[:50]:
        told = []
        for data in (b"\n".join(lines) + b"\n", damaged(chance, lines)):
            parser = adapter_named(name).parser(request_for(name, chance))
            told.append((parser.feed("out", data), parser.finish(Ending(exit_code=0))))
        differing += told[0] != told[1]
    assert differing > 40


def test_a_record_is_read_alike_by_the_quick_reader_and_by_the_patient_one() -> None:
    chance = random.Random(3)
    known = 0
    for _, lines in SOURCES:
        for line in damaged(chance, lines).split(b"\n"):
            patient = records._read_patiently(line)
            wanted = patient if isinstance(patient, dict) else None
            assert repr(records.read_record(line)) == repr(wanted)
            known += wanted is not None
    assert known > 1000


@settings(max_examples=60)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_a_line_is_the_same_however_it_was_cut(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    splitter = LineSplitter()
    lines = [line for a, b in itertools.pairwise(places) for line in splitter.feed(data[a:b])]
    assert [*lines, splitter.flush()] == data.split(b"\n")


@settings(max_examples=60)
@given(st.binary(max_size=300), st.integers(1, 40), st.integers(1, 60))
def test_no_line_is_longer_than_allowed(data: bytes, longest: int, size: int) -> None:
    splitter = LineSplitter(longest)
    lines = [
        line
        for start in range(0, len(data), size)
        for line in splitter.feed(data[start : start + size])
    ]
    assert [*lines, splitter.flush()] == [line[:longest] for line in data.split(b"\n")]


@pytest.mark.parametrize("name", sorted(adapters().keys() - {"jsonl", "terminal"}))
def test_an_answer_of_two_megabytes_in_one_line_is_borne(name: str) -> None:
    chance = random.Random(0)
    parser = adapter_named(name).parser(request_for(name, chance))
    text = "x" * 2_000_000
    records = {
        "claude": {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}},
        "codex": {
            "type": "item.completed",
            "item": {"id": "1", "type": "agent_message", "text": text},
        },
        "gemini": {"type": "message", "role": "assistant", "content": text},
        "opencode": {"type": "text", "part": {"text": text}},
        "copilot": {"type": "assistant.message", "data": {"content": text}},
        "scripted": {"plait": "say", "text": text},
    }
    line = json.dumps(records.get(name, {"text": text})).encode() + b"\n"
    events: list[AgentEvent] = []
    for start in range(0, len(line), 65536):
        events += parser.feed("out", line[start : start + 65536])
    assert len(events) == 1
    assert isinstance(events[0], Raw) is (name not in records)
    assert len(parser.finish(Ending(exit_code=0)).text) <= 65536


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "scripted", "command"])
def test_five_megabytes_that_a_command_printed_are_borne_and_only_their_end_is_kept(
    name: str,
) -> None:
    parser = adapter_named(name).parser(request_for(name, random.Random(0)))
    text = "a line of output\n" * 300_000 + "the end"
    result = {"type": "tool_result", "tool_use_id": "1", "content": text}
    item = {"id": "1", "type": "command_execution", "aggregated_output": text}
    records = {
        "claude": {"type": "user", "message": {"content": [result]}},
        "codex": {"type": "item.completed", "item": item},
        "gemini": {"type": "tool_result", "tool_id": "1", "output": text},
        "scripted": {"plait": "tool", "id": "1", "name": "Bash", "state": "done", "output": text},
    }
    data = json.dumps(records[name]).encode() if name in records else text.encode()
    events = [
        event
        for start in range(0, len(data) + 1, 65536)
        for event in parser.feed("out", (data + b"\n")[start : start + 65536])
    ]
    if name in records:
        (ended,) = events
        assert isinstance(ended, ToolEnded)
        assert ended.output.endswith("the end")
        assert len(ended.output) < 5000
    else:
        assert sum(len(e.text) + 1 for e in events if isinstance(e, Printed)) >= 5_000_000
    assert len(parser.finish(Ending(exit_code=0)).text) <= 65536
