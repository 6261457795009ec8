"""Reading an attempt's log back from its recording, long after its agent has gone."""

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import anyio.to_thread

from engine.agents import agent_events as a
from engine.agents.contract import Ending, StreamParser
from engine.core.state import RunState, Worker
from engine.ids import AttemptId
from engine.keeper.recording import ERR, IN, NOTE, OUT, parse
from engine.supervisor.agent_work import parser_for
from engine.supervisor.briefing import story_of, wants_story
from engine.supervisor.logbook import Logbook, raw_text
from engine.supervisor.tools import Tools

_STREAMS = {OUT: "out", ERR: "err", IN: "in"}


async def read_log(tools: Tools, state: RunState, attempt: AttemptId) -> Logbook:
    """The log of one attempt, made anew from its recording."""
    worker = state.workers[attempt.worker]
    parser = await anyio.to_thread.run_sync(parser_for, tools, state, worker)
    started = state.workers[attempt.worker].attempt_since or 0.0
    path = tools.layout.recording(attempt)
    read = partial(_read, path, parser, attempt.number, started)
    return await anyio.to_thread.run_sync(read)


async def story_before(tools: Tools, state: RunState, w: Worker) -> str:
    """What the attempt before did, for an agent that goes on in its place and remembers nothing."""
    if not wants_story(w) or w.next.previous is None:
        return ""
    log = await read_log(tools, state, AttemptId(state.run, w.id, w.next.previous))
    return await anyio.to_thread.run_sync(lambda: story_of(log.read(0).lines))


def _read(path: Path, parser: StreamParser, number: int, started: float) -> Logbook:
    logbook = Logbook(number, is_ended=True)
    try:
        block = path.read_bytes()
    except FileNotFoundError:
        return logbook
    frames, _ = parse(block)
    for seconds, stream, data in frames:
        if stream != NOTE:
            _write(logbook, parser.feed(_STREAMS[stream], data), started + seconds)
    outcome = parser.finish(Ending(exit_code=0))
    at = started + frames[-1][0] if frames else started
    _write(logbook, outcome.last_events, at)
    logbook.end(outcome.text, at)
    return logbook


def _write(logbook: Logbook, events: Sequence[a.AgentEvent], at: float) -> None:
    for is_raw, several in groupby(events, key=lambda e: isinstance(e, (a.Raw, a.Printed))):
        if is_raw:
            logbook.write_raw(raw_text(several), at, monotonic=0.0)
        else:
            for event in several:
                logbook.note(event, at)


def output_bytes(path: Path) -> bytes:
    """What an attempt wrote on stdout and stderr, in the order in which it came."""
    try:
        frames, _ = parse(path.read_bytes())
    except FileNotFoundError:
        return b""
    return b"".join(data for _, stream, data in frames if stream in {OUT, ERR})
