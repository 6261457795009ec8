"""The common part of all parsers: lines, last message, usage, pending replies, verdict.

A parser of one agent adds only what a record of that agent means.
"""

import re
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, replace
from typing import TypeVar

from engine.agents.agent_events import (
    LONGEST_TEXT,
    AgentEvent,
    AgentOutcome,
    ProtocolReply,
    RateLimited,
    Raw,
    Said,
    Started,
    UsageSeen,
)
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.records import Record, read_record, type_error
from engine.agents.waiting import WordsBeside, wait_told
from engine.limits import Usage

_AGENT = "the agent"
INTERRUPTED = "the agent was interrupted"
LIMIT_REACHED = re.compile(r"usage limit|rate.?limit|quota exceeded|\b429\b", re.IGNORECASE)
UNAUTHORIZED = re.compile(
    r"\b401\b|authenticat|unauthori[sz]ed|api.?key (?:not|is) |not logged in", re.IGNORECASE
)
_STDERR_LINES = 12
_NETWORK = re.compile(
    r"E(?:CONN\w+|NOTFOUND|TIMEDOUT|AI_AGAIN|HOSTUNREACH|NETUNREACH)\b|getaddrinfo"
    r"|fetch failed|stream (?:disconnected|closed)|error sending request|dns error"
    r"|network (?:error|is unreachable)"
    r"|connection (?:error|reset|refused|closed|timed out)|unable to connect|socket hang up",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"(?:prompt|input|request) is too long|context.?(?:length|window|limit)|maximum context"
    r"|too many (?:input )?tokens|exceeds? the (?:maximum|max) (?:number of )?(?:input )?tokens"
    r"|ran out of room",
    re.IGNORECASE,
)
_OF_THE_DAY = re.compile(r"per.?day\b|PerDay|\bdaily (?:quota|limit|allowance)", re.IGNORECASE)
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|out of credits", re.IGNORECASE
)
_IN_WORDS = (
    (_CONTEXT, "the context of its model is full"),
    (_OF_THE_DAY, "the quota for today is used up"),
    (_NO_CREDIT, "its account has no credit left"),
    (_NETWORK, "its model cannot be reached over the network"),
)
"""Clients hand on the words of their model's vendor; these say what they come to."""
_NO_MODEL = re.compile(
    r"\b404\b|model.{0,80}\bnot (?:found|exist|known)|unknown model", re.IGNORECASE
)
_Number = TypeVar("_Number", int, float)
LONGEST_LINE = 16 * 1024 * 1024
"""Agents write a whole answer as one line; what is longer than this is cut."""


class LineSplitter:
    """Chunks in, whole lines out, without their ends; the unfinished tail is carried."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        # Parts of the unfinished line, joined once when its end comes: joining at each chunk would
        # cost the square of a long line's length.
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete."""
        block = self.whole(data)
        return [] if block is None else block.split(b"\n")

    def whole(self, data: bytes) -> bytes | None:
        """The lines that these bytes complete as one piece, without its last end; None if none."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return None
        if self._size + len(data) > self._longest:
            return self._whole_of_long(data, end)
        block = b"".join((*self._parts, memoryview(data)[:end])) if self._parts else data[:end]
        self._parts = [data[end + 1 :]] if end + 1 < len(data) else []
        self._size = len(data) - end - 1
        return block

    def _whole_of_long(self, data: bytes, end: int) -> bytes:
        """The same where a line may be too long, which is then cut."""
        head, newline, more = data[:end].partition(b"\n")
        self._keep(head)
        block = self._take() + newline + more
        self._keep(data[end + 1 :])
        return b"\n".join(line[: self._longest] for line in block.split(b"\n"))

    def flush(self) -> bytes:
        """Return the rest of a line that was never ended."""
        return self._take()

    def _keep(self, part: bytes) -> None:
        room = self._longest - self._size
        if part and room > 0:
            self._parts.append(part[:room])
            self._size += len(self._parts[-1])

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """An agent's closing record; `text` replaces its last message if there is any."""

    error: str = ""
    text: str = ""
    needs_login: bool = False


class Reading(ABC):
    """One attempt's stream, read line by line; subclasses give records their meaning."""

    called = _AGENT
    """The words for it in an error."""

    wants_closing = True
    """Without a closing record the attempt has not ended well, whatever its exit code."""

    counts_session = False
    """Its totals are those of its session, of which an earlier attempt may have used a part."""

    retries_beside = False
    """Its client says beside its stream that it asks its model again; others only sound so."""

    def __init__(self, request: LaunchRequest) -> None:
        self.request = request
        before = request.used_before if self.counts_session and request.session else Usage()
        self._before = before
        self.session = request.session if not request.is_fork else None
        self.usage = UsageSeen()
        self.closing: Closing | None = None
        self.limit: RateLimited | None = None
        self.model = ""
        self._begun: str | None = None
        self._splitters = {name: LineSplitter() for name in ("out", "err", "in")}
        self._said: list[str] = []
        self._said_size = 0
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._owed: list[bytes] = []
        self._tries = 0
        self._words_beside = WordsBeside()

    # ------------------------------------------------------------------ what a subclass adds

    @abstractmethod
    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one JSON record; None if it means nothing to this parser."""

    def read(self, line: bytes) -> Record | None:
        """The record that a line is; a subclass may leave out what it never looks at."""
        return read_record(line)

    def block(self, block: bytes) -> list[AgentEvent]:
        """Return the events of some whole lines of output."""
        events: list[AgentEvent] = []
        for line in block.split(b"\n"):
            events += self.line(line)
        return events

    def line(self, line: bytes) -> list[AgentEvent]:
        """Return the events of one line of output."""
        found = self.read(line)
        if found is not None:
            try:
                events = self.record(found)
            except type_error:
                events = None  # a shape that nobody documented: shown as it came
            if events is not None:
                return events
        return self._beside(line.decode("utf-8", "replace").rstrip("\r"), "out")

    def sent(self, line: bytes) -> list[AgentEvent]:
        """Return the events of a line that was written to the agent, seen in its recording."""
        del line
        return []

    def answer(self, question: str, answer: str) -> bytes | None:
        """Nothing can be asked unless a subclass says so."""
        del question, answer
        return None

    def steer(self, text: str) -> bytes | None:
        """Nothing can be said unless a subclass says so."""
        del text
        return None

    def interrupt(self) -> bytes | None:
        """Nothing can be broken off unless a subclass says so."""
        return None

    # ------------------------------------------------------------------ what subclasses use

    def start(self, session: str, model: str = "") -> list[AgentEvent]:
        """The agent is at work in this session: reported once, though many records may name it."""
        if session == self._begun:
            return []
        self._begun = session
        self.session = session or self.session
        self.model = model or self.model
        return [Started(self.session, model or None)]

    def say(self, text: str, *, is_delta: bool = False) -> Said:
        """The agent said this; a whole message replaces the last one, a delta goes on with it."""
        if not is_delta:
            self._said.clear()
            self._said_size = 0
        if self._said_size <= 2 * LONGEST_TEXT:
            self._said.append(text)
            self._said_size += len(text)
        return Said(text, is_delta)

    def used(
        self,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        usd: float | None = None,
    ) -> UsageSeen:
        """Totals so far; what is not given keeps its last value."""
        known = self.usage
        self.usage = replace(
            known,
            input_tokens=_or(_less(input_tokens, self._before.input_tokens), known.input_tokens),
            output_tokens=_or(
                _less(output_tokens, self._before.output_tokens), known.output_tokens
            ),
            cached_tokens=_or(cached_tokens, known.cached_tokens),
            usd=_or(_less(usd, self._before.usd), known.usd),
        )
        return self.usage

    def limited(
        self, *, until: float | None = None, delay_s: float | None = None, words: str = ""
    ) -> RateLimited:
        """The allowance is used up; forgotten again if the agent goes on and ends well."""
        delay_s = wait_told(words) if delay_s is None else delay_s
        self.limit = RateLimited(until, delay_s)
        return self.limit

    def reply(self, data: bytes) -> ProtocolReply:
        """These bytes are to be written now."""
        self._owed.append(data)
        return ProtocolReply(data)

    # ------------------------------------------------------------------ the parser's promise

    @property
    def owed(self) -> tuple[bytes, ...]:
        """Replies asked for and not yet seen as sent."""
        return tuple(self._owed)

    def feed(self, stream: str, data: bytes) -> list[AgentEvent]:
        """Return the events of these bytes; half a line is kept until its other half comes."""
        splitter = self._splitters.get(stream)
        if splitter is None:
            return []
        if stream != "out":
            return self._aside(stream, splitter.feed(data))
        block = splitter.whole(data)
        return [] if block is None else self.block(block)

    def finish(self, ending: Ending) -> AgentOutcome:
        """The verdict over exit code and closing record together."""
        events: list[AgentEvent] = []
        if tail := self._splitters["out"].flush():
            events += self.line(tail)
        if tail := self._splitters["err"].flush():
            events += self._aside("err", [tail])
        closing = self.closing or Closing()
        found = self._error(ending)
        error = self._about_model(in_words(found)) if ending.cause is None else found
        return AgentOutcome(
            ok=not error,
            text=clip(closing.text or self.last_message),
            error=error,
            session=self.session,
            usage=Usage(
                input_tokens=self.usage.input_tokens,
                output_tokens=self.usage.output_tokens,
                usd=self.usage.usd,
            ),
            needs_proof=self.needs_proof,
            limit=self.limit if error else None,
            needs_login=bool(error) and closing.needs_login,
            lost_network=bool(_NETWORK.search(error)),
            last_events=tuple(events),
        )

    @property
    def needs_proof(self) -> bool:
        """Only the exit code speaks for it."""
        return not self.wants_closing and self.closing is None

    @property
    def last_message(self) -> str:
        """Return its last message."""
        return "".join(self._said)

    def _aside(self, stream: str, lines: list[bytes]) -> list[AgentEvent]:
        if stream == "in":
            return [event for line in lines for event in self._settle(line)]
        texts = [line.decode("utf-8", "replace").rstrip("\r") for line in lines]
        texts = [text for text in texts if text.strip()]
        self._stderr.extend(texts)
        return [event for text in texts for event in self._beside(text, stream)]

    def _beside(self, text: str, stream: str) -> list[AgentEvent]:
        """Return the events of a line that is no record."""
        told = [Raw(text, stream)] if text.strip() else []
        if not self.retries_beside:
            return list(told)
        logged = self._words_beside.logged(text)
        return [*told, *self._words_beside.said(text)] if logged is None else list(logged)

    def _settle(self, line: bytes) -> list[AgentEvent]:
        whole = line + b"\n"
        if whole in self._owed:
            self._owed.remove(whole)
        return self.sent(line)

    def _error(self, ending: Ending) -> str:
        if ending.not_started is not None:
            hint = "; `plait agents` lists installed agents" if self.called == _AGENT else ""
            return f"{self.called} could not be started: {ending.not_started}{hint}"
        if ending.cause is not None:
            return f"{self.called} was stopped: {ending.cause}"
        if self.closing is not None and self.closing.error:
            return self.closing.error
        if ending.signal is not None:
            return f"{self.called} was killed by signal {ending.signal}"
        if ending.exit_code != 0:
            return f"{self.called} ended with exit code {ending.exit_code}{self._last_words()}"
        if self.wants_closing and self.closing is None:
            return f"{self.called} ended without reporting that it was done{self._last_words()}"
        return ""

    def _about_model(self, error: str) -> str:
        """Name the model that its vendor does not know; its words seldom do."""
        model = self.request.choice.model or self.model
        if not _NO_MODEL.search(error) or (model and model in error):
            return error
        named = f"the model {model!r}" if model else "its model"
        return f"{named} is unknown to its provider: {error}"

    def _last_words(self) -> str:
        return f": {self._stderr[-1][:500]}" if self._stderr else ""


def _or(new: _Number | None, old: _Number | None) -> _Number | None:
    return old if new is None else new


def _less(total: _Number | None, before: _Number | None) -> _Number | None:
    # An agent that begins its count anew with each process tells less than was used before.
    return total if total is None or before is None or total < before else total - before


def in_words(error: str) -> str:
    """Return an error of a vendor's with what it comes to before it, where that is known."""
    told = next((words for pattern, words in _IN_WORDS if pattern.search(error)), "")
    return f"{told}: {error}" if told else error


def clip(text: str) -> str:
    """The text, its end cut where it is longer than an output may be."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LONGEST_TEXT:
        return text
    return data[:LONGEST_TEXT].decode("utf-8", "ignore")
