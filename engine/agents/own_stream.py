"""Our own line protocol: JSON objects with a key `plait`, mixed with output that means nothing.

Any program may speak it; `docs/agents.md` describes it for people who write one.
"""

import re
from collections.abc import Callable

from engine.agents.agent_events import (
    BUSY,
    LONGEST_TEXT,
    AgentEvent,
    AgentOutcome,
    Asked,
    Decided,
    Heard,
    Printed,
    Progressed,
    Raw,
    Retrying,
    SubAgents,
    Thought,
    ToolCalled,
    ToolEnded,
)
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.permitting import decide, verdict_of
from engine.agents.reading import Closing, Reading
from engine.agents.records import (
    Record,
    at,
    count_of,
    line_of,
    number_of,
    read_record,
    tail_of,
    text_of,
)
from engine.agents.waiting import FIGURE

_FLOOD = 4096
"""Lines of so many bytes in one piece are taken together."""
_REFUSED = re.compile(r"\blitellm\.(?:exceptions\.)?(\w+)\b:?\s*(.*)")
_AGAIN = re.compile(rf"Retrying (?:\S+ )?in ({FIGURE}) seconds", re.ASCII)
_LOGGED = re.compile(r"\[[^]]* - (?:httpx|openai)\S* - (?:INFO|DEBUG)] (.*)")
"""The log of the library beneath that one, where `OPENAI_LOG` is set, as its presets have it."""
_ANSWERED = re.compile(r'HTTP Request: .* "HTTP/\S+ (\d{3})\b', re.ASCII)
_ASKS_AGAIN = re.compile(rf"Retrying request to \S+ in ({FIGURE}) seconds", re.ASCII)
_LOGIN = {"AuthenticationError", "PermissionDeniedError"}
_STATUS = {"AuthenticationError": 401, "NotFoundError": 404, "RateLimitError": 429}
_BEGINNINGS = {"started", "running", "called"}


class OwnStream(Reading):
    """Reads lines of output, and our records among them wherever they are found."""

    def __init__(
        self,
        request: LaunchRequest,
        *,
        speaks: bool = False,
        is_proved_by_exit: bool = False,
        asks_by_litellm: bool = False,
    ) -> None:
        """Expect any program.

        Args:
            request: What it was launched for.
            speaks: It promised to speak our protocol: a `result` must close it, and it listens.
            is_proved_by_exit: Its exit code is all that is wanted of it (a command step).
            asks_by_litellm: It prints refusals of its model as that library words them.
        """
        super().__init__(request)
        self.wants_closing = speaks
        self._speaks = speaks
        self._is_proved_by_exit = is_proved_by_exit
        if is_proved_by_exit:
            self.called = "the command"
        self._printed: list[str] = []
        self._printed_size = 0
        self._asks_by_litellm = asks_by_litellm
        self._refusal: tuple[str, str] | None = None
        self._answered = ""
        self._waiting: dict[str, bool] = {}
        self._asked = 0
        self._readers: dict[str, Callable[[Record], list[AgentEvent]]] = {
            "session": lambda r: self.start(text_of(r.get("id"))),
            "say": lambda r: [self.say(text_of(r["text"]), is_delta=r.get("delta") is True)],
            "think": lambda r: [Thought(text_of(r["text"]), r.get("delta") is True)],
            "progress": self._progress,
            "tool": self._tool,
            "usage": self._usage,
            "ask": self._ask,
            "retry": self._retry,
            "rate_limit": self._rate_limit,
            "agents": lambda r: [SubAgents(count_of(r["count"]) or 0)],
            "result": self._result,
        }

    @property
    def needs_proof(self) -> bool:
        """Nothing but its exit code speaks for it, and that is not enough for an agent."""
        return self.closing is None and not self._is_proved_by_exit

    def block(self, block: bytes) -> list[AgentEvent]:
        """Return the events of some lines; a flood without a record of ours is skipped."""
        is_flood = len(block) >= _FLOOD and b"\n" in block
        if not is_flood or self._speaks or self._asks_by_litellm or b'"plait"' in block:
            return super().block(block)
        text = block.decode("utf-8", "replace")
        if "\r" in text:
            text = "\n".join(line.rstrip("\r") for line in text.split("\n"))
        self._print(text[-LONGEST_TEXT:])
        return [Printed(text)]

    def line(self, line: bytes) -> list[AgentEvent]:
        """Return the events of one line: a record of ours, or output."""
        if b'"plait"' in line:
            events = super().line(line)
        elif self._speaks and not line.strip():
            return []
        else:
            events = [Raw(line.decode("utf-8", "replace").rstrip("\r"))]
        for event in events:
            if isinstance(event, Raw):
                self._print(event.line)
        return [*events, *self._heed(line)]

    def finish(self, ending: Ending) -> AgentOutcome:
        """The verdict; a refusal of its model that was not overcome is why it did nothing."""
        if self._refusal is not None and self.closing is None and ending.cause is None:
            kind, words = self._refusal
            status = f" ({_STATUS[kind]})" if kind in _STATUS else ""
            self.closing = Closing(error=f"{kind}{status}: {words}", needs_login=kind in _LOGIN)
        return super().finish(ending)

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return the events of one record of ours."""
        reader = self._readers.get(text_of(record.get("plait")))
        return None if reader is None else reader(record)

    @property
    def last_message(self) -> str:
        """Return its last message; its last output, where it never said anything."""
        return super().last_message or "\n".join(self._printed)[-LONGEST_TEXT:]

    # ------------------------------------------------------------------ talking to it

    def answer(self, question: str, answer: str) -> bytes | None:
        """The answer as one line of JSON."""
        is_permission = self._waiting.pop(question, None)
        if is_permission is None:
            return None
        said: dict[str, object] = {"plait": "answer", "id": question, "answer": answer}
        if is_permission:
            is_allowed, reason = verdict_of(answer)
            said["answer"] = "allow" if is_allowed else "deny"
            if reason:
                said["reason"] = reason
        return line_of(said)

    def steer(self, text: str) -> bytes | None:
        """The words as one line of JSON."""
        return line_of({"plait": "steer", "text": text}) if self._speaks else None

    def interrupt(self) -> bytes | None:
        """The wish to break off as one line of JSON."""
        return line_of({"plait": "interrupt"}) if self._speaks else None

    def sent(self, line: bytes) -> list[AgentEvent]:
        """An answer that has been given is not waited for any more; words are in its input."""
        record = read_record(line)
        if at(record, "plait") == "answer":
            self._waiting.pop(text_of(at(record, "id")), None)
        is_steer = at(record, "plait") == "steer"
        return [Heard(text_of(at(record, "text")))] if is_steer else []

    # ------------------------------------------------------------------ one record each

    def _progress(self, record: Record) -> list[AgentEvent]:
        fraction = number_of(record.get("fraction"))
        return [
            Progressed(
                None if fraction is None else min(fraction, 1.0), text_of(record.get("note"))
            )
        ]

    def _tool(self, record: Record) -> list[AgentEvent]:
        name, state = text_of(record["name"]), text_of(record.get("state")) or "started"
        identity = text_of(record.get("id")) or name
        if state not in _BEGINNINGS:
            return [ToolEnded(identity, state, tail_of(text_of(record.get("output"))))]
        paths = tuple(filter(None, map(text_of, record.get("paths") or ())))
        return [ToolCalled(identity, name, text_of(record.get("title")), paths)]

    def _usage(self, record: Record) -> list[AgentEvent]:
        return [
            self.used(
                input_tokens=count_of(record.get("input_tokens")),
                output_tokens=count_of(record.get("output_tokens")),
                cached_tokens=count_of(record.get("cached_tokens")),
                usd=number_of(record.get("usd")),
            )
        ]

    def _ask(self, record: Record) -> list[AgentEvent]:
        self._asked += 1
        identity = text_of(record.get("id")) or f"ask-{self._asked}"
        tool, detail = text_of(record.get("tool")), text_of(record.get("detail"))
        is_permission = record.get("permission") is True
        if is_permission and (decision := decide(self.request, tool, detail)) is not None:
            allowed, rule = decision
            word = "allow" if allowed else "deny"
            return [
                Decided(identity, tool, detail, allowed, rule),
                self.reply(line_of({"plait": "answer", "id": identity, "answer": word})),
            ]
        choices = tuple(filter(None, map(text_of, record.get("choices") or ())))
        self._waiting[identity] = is_permission
        return [
            Asked(
                id=identity,
                text=text_of(record.get("text")),
                choices=choices or (("allow", "deny") if is_permission else ()),
                is_permission=is_permission,
                tool=tool,
                detail=detail,
            )
        ]

    def _retry(self, record: Record) -> list[AgentEvent]:
        attempt, delay_s = count_of(record.get("attempt")) or 1, number_of(record.get("delay_s"))
        return [Retrying(attempt, delay_s, text_of(record.get("status")))]

    def _rate_limit(self, record: Record) -> list[AgentEvent]:
        return [
            self.limited(
                until=number_of(record.get("until")), delay_s=number_of(record.get("delay_s"))
            )
        ]

    def _result(self, record: Record) -> list[AgentEvent]:
        text = text_of(record.get("text"))
        error = text_of(record.get("error"))
        if record.get("ok") is not True and not error:
            error = text or "the agent reported that it failed"
        self.closing = Closing(
            error="" if record.get("ok") is True else error,
            text=text,
            needs_login=record.get("needs_login") is True,
        )
        return []

    def _aside(self, stream: str, lines: list[bytes]) -> list[AgentEvent]:
        if stream != "err" or not self._asks_by_litellm:
            return super()._aside(stream, lines)
        logged = [_LOGGED.match(line.decode("utf-8", "replace")) for line in lines]
        said = [line for line, about in zip(lines, logged, strict=True) if about is None]
        waits = [event for about in logged if about for event in self._heed_log(about[1])]
        heeded = [event for line in said for event in self._heed(line)]
        return [*super()._aside(stream, said), *waits, *heeded]

    def _heed_log(self, text: str) -> list[AgentEvent]:
        """Tell of a request that is asked again before anybody else hears of its refusal."""
        if found := _ANSWERED.match(text):
            is_refusal = found[1] >= "400"
            self._answered = found[1] if is_refusal else ""
            self._tries = self._tries if is_refusal else 0
        elif again := _ASKS_AGAIN.match(text):
            self._tries += 1
            delay_s = float(again[1])
            # Of its own accord it never waits whole seconds: those its server has named.
            status = self._answered or (BUSY if delay_s.is_integer() else "")
            self._answered = ""  # the next request may get no answer at all
            return [Retrying(self._tries, delay_s, status)]
        return []

    def _heed(self, line: bytes) -> list[AgentEvent]:
        """Remember a refusal of the model, until it is asked once more."""
        text = line.decode("utf-8", "replace") if self._asks_by_litellm else ""
        if found := _REFUSED.search(text):
            self._refusal, self._answered = (found[1], found[2].strip()), ""
        if (again := _AGAIN.search(text)) and self._refusal:
            self._tries += 1
            kind, self._refusal = self._refusal[0], None
            return [Retrying(self._tries, float(again[1]), str(_STATUS.get(kind, kind)))]
        return []

    def _print(self, line: str) -> None:
        self._printed.append(line)
        self._printed_size += len(line) + 1
        if self._printed_size > 4 * LONGEST_TEXT:
            kept = "\n".join(self._printed)[-LONGEST_TEXT:]
            self._printed, self._printed_size = [kept], len(kept)
