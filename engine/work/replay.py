"""Read an attempt's log back from its recording, long after its agent has gone."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

import anyio.to_thread

from engine.agents import agent_events as a
from engine.agents.contract import Ending, StreamParser
from engine.core.state import RunState, Worker
from engine.errors import EngineError
from engine.ids import AttemptId
from engine.keeper.recording import ERR, IN, NOTE, OUT, TRUNCATED, began_at, parse
from engine.messages.logs import KEPT_LINES, LogChunk, LogKind, LogLines
from engine.store.store import AgentLog
from engine.work.agent_work import parser_for, screen_of
from engine.work.briefing import story_of, wants_story
from engine.work.logbook import AT_ITS_CAP, Logbook, raw_text
from engine.work.remarks import remarks_of
from engine.work.tools import Tools

_STREAMS = {OUT: "out", ERR: "err", IN: "in"}


async def read_log(
    tools: Tools, state: RunState, attempt: AttemptId, *, most: float = KEPT_LINES
) -> Logbook:
    """Return the newest `most` lines of an attempt's log, read from its recording again."""
    worker = state.workers[attempt.worker]
    parser = await anyio.to_thread.run_sync(parser_for, tools, state, worker)
    started = state.workers[attempt.worker].begun.at or 0.0
    logbook = Logbook(attempt.number, most, screen=screen_of(parser))
    notes = tools.store.agent(attempt.run, attempt.worker)
    path = tools.layout.recording(attempt)
    read = partial(_read, path, parser, logbook, started, notes=notes)
    return await anyio.to_thread.run_sync(read)


async def log_from(
    kept: Logbook, after: int, most: int | None, read: Callable[..., Awaitable[Logbook]]
) -> LogChunk:
    """Return the lines of a log that are asked for; those no longer kept are read once more."""
    rest = kept.read(after, most=most)
    first = min(max(after, 0 if most is None else kept.next - most), rest.first)
    if first == rest.first:
        return rest
    whole = await read(most=math.inf)
    earlier = await anyio.to_thread.run_sync(lambda: whole.read(0).lines[first : rest.first])
    return replace(rest, lines=LogLines((*earlier.pieces, *rest.lines.pieces)), first=first)


async def story_before(tools: Tools, state: RunState, w: Worker) -> str:
    """Return the story of the attempt before, for an agent that goes on without memory."""
    if not wants_story(w) or w.next.previous is None:
        return ""
    attempt = AttemptId(state.run, w.id, w.next.previous)
    try:
        log = await read_log(tools, state, attempt)
    except EngineError:  # its agent is not there any more: the next one begins without a story
        return ""
    return await anyio.to_thread.run_sync(lambda: story_of(log.read(0).lines))


def _read(
    path: Path, parser: StreamParser, logbook: Logbook, started: float, *, notes: AgentLog
) -> Logbook:
    logbook.recall(remarks_of(notes, logbook.attempt))
    try:
        block = path.read_bytes()
    except FileNotFoundError:
        logbook.end("", started)
        return logbook
    frames, _ = parse(block)
    for seconds, stream, data in frames:
        if stream != NOTE:
            _write(logbook, parser.feed(_STREAMS[stream], data), started + seconds)
        elif (began := began_at(data)) is not None:
            started = began
        elif data.startswith(TRUNCATED):
            logbook.write(LogKind.NOTE, AT_ITS_CAP, started + seconds)
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
    """Return the output of an attempt, stdout and stderr in the order in which they came."""
    try:
        frames, _ = parse(path.read_bytes())
    except FileNotFoundError:
        return b""
    return b"".join(data for _, stream, data in frames if stream in {OUT, ERR})
