"""Keep an attempt's log as a console reads it: its last lines, and what it does now.

Made from the attempt's events as they come; it can always be made again from the recording.
"""

import math
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial, singledispatchmethod
from typing import NamedTuple

from engine.agents import agent_events as a
from engine.agents.contract import SETTINGS_HEADS
from engine.limits import Usage
from engine.messages.deeds import Deed, Piece, lately
from engine.messages.logs import KEPT_LINES, LogChunk, LogKind, LogLines, LogPiece
from engine.terminal.terminal import Terminal

TAIL_LINES = 12
_SETTINGS = tuple(f"{head}: " for head in SETTINGS_HEADS)
_FOCUS_S = 2.0
_REMEMBERED, _MOST_RECENT = 4000, 60
_AT_ONCE_S, _MEASURED_S = 1.0, 0.05
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code:? (\d{1,3})\b", re.IGNORECASE)
_SHOWN = 60
ANSWERS = {
    "401": "the login was refused",
    "403": "the login is not allowed to do that",
    "404": "the server does not know the model",
    "429": "too many requests",
    "500": "the server failed",
    "503": "the server is overloaded",
    "529": "the server is overloaded",
}
AT_ITS_CAP = "the recording is full: later output was not kept"


class Remark(NamedTuple):
    """Something that did not come from the agent."""

    at: float
    kind: LogKind
    text: str


@dataclass
class Logbook:
    """The engine's knowledge of one attempt beyond the journal.

    Attributes:
        most: How many lines are kept.
        first: The number of the oldest line still kept; numbers only grow.
        model: The model that the agent says it works with.
        context: How many tokens its newest request held, of a `window` of so many.
        turns: How many answers its model gave.
        settings: Which settings of the user's the agent got, and which stayed behind, as lines.
        is_turn_over: The agent has nothing more to do, well or not, and waits for its input to end.
        last_progress: When it last reported something it did, on the monotonic clock.
        last_raw: When it last wrote a plain line, likewise.
        hears: When its agent hears what is said to it; empty where no agent works.
        last_read: When somebody last read it line by line, likewise.
        on_remark: Called with each new remark, so that it can be kept.
        screen: The terminal that its agent draws on, if it has one.
    """

    attempt: int
    most: float = KEPT_LINES
    first: int = 0
    model: str = ""
    context: int | None = None
    window: int | None = None
    turns: int | None = None
    settings: tuple[str, ...] = ()
    progress: float | None = None
    usage: Usage = field(default_factory=Usage)
    last_output_at: float | None = None
    last_progress: float | None = None
    last_raw: float | None = None
    last_read: float | None = None
    sub_agents: int = 0
    hears: str = ""
    cached_tokens: int = 0
    is_ended: bool = False
    is_turn_over: bool = False
    on_remark: Callable[[Remark], None] | None = None
    screen: Terminal | None = None
    _is_open: bool = False
    _next: int = 0
    _earlier: deque[Remark] = field(default_factory=deque)
    _recalled: set[str] = field(default_factory=set)
    _kept: deque[Piece] = field(default_factory=deque)
    _recent: deque[Piece] = field(default_factory=partial(deque, maxlen=_MOST_RECENT))
    _tools: dict[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def tool(self) -> str | None:
        """Return the tool that runs now; of several, the one that began last."""
        return next(reversed(self._tools.values()))[0] if self._tools else None

    @property
    def tool_since(self) -> float | None:
        """Return when that tool began."""
        return next(reversed(self._tools.values()))[1] if self._tools else None

    @property
    def next(self) -> int:
        """Return the number of the next line."""
        return self._next

    @property
    def newest(self) -> tuple[int, object]:
        """Return what differs after every text that was written."""
        return self._next, self._kept[-1] if self._kept else None

    def is_focused(self, monotonic: float) -> bool:
        """Return whether somebody reads it now, so that new output should appear at once."""
        return self.last_read is not None and monotonic - self.last_read < _FOCUS_S

    def write(self, kind: LogKind, text: str, at: float) -> None:
        """Add a text of one kind, a line a row."""
        self._is_open = False
        self._add(text, kind, at)

    def remark(self, kind: LogKind, text: str, at: float, *, is_once: bool = False) -> None:
        """Add what did not come from the agent, and will not be found in its recording."""
        if is_once and text in self._recalled:
            return
        self.write(kind, text, at)
        self._hear_settings(text)
        if self.on_remark is not None:
            self.on_remark(Remark(at, kind, text))

    def recall(self, remarks: Iterable[Remark]) -> None:
        """Take in the remarks of an earlier engine: each has its place before the next line."""
        self._earlier.extend(remarks)
        self._recalled.update(said.text for said in self._earlier)
        for said in self._earlier:
            self._hear_settings(said.text)

    def _hear_settings(self, text: str) -> None:
        if text.startswith(_SETTINGS) and text not in self.settings:
            self.settings = (*self.settings, text)

    def write_raw(self, text: str, at: float, *, monotonic: float) -> None:
        """Add many lines of plain output at once; none of them is looked at."""
        self._is_open = False
        self.last_raw = monotonic
        self._add(text, LogKind.OUTPUT, at)

    def _go_on(self, kind: LogKind, text: str, at: float) -> None:
        if self._is_open and self._kept and self._kept[-1][1] is kind:
            head, *rest = text.split("\n", 1)
            began, _, said, count = self._kept[-1]
            self._kept[-1] = (began, kind, said + head, count)
            self._remember((at, kind, head, 0), "")
            for more in rest:
                self._add(more, kind, at)
        else:
            self.write(kind, text, at)
        self._is_open = True

    def _add(self, text: str, kind: LogKind, at: float) -> None:
        if self._earlier:
            self._insert(until=at)
        self._append(text, kind, at)

    def _insert(self, until: float) -> None:
        while self._earlier and self._earlier[0].at <= until:
            said = self._earlier.popleft()
            self._append(said.text, said.kind, said.at)

    def _append(self, text: str, kind: LogKind, at: float) -> None:
        count = text.count("\n") + 1
        self._kept.append((at, kind, text, count))
        self._remember(self._kept[-1])
        self._next += count
        while self._next - self.first - self._kept[0][3] >= self.most:
            self.first += self._kept.popleft()[3]

    def _remember(self, piece: Piece, joint: str = "\n") -> None:
        """Keep the end of what was written last; output, and words that go on, are one piece."""
        at, kind, text, count = piece
        last = self._recent[-1] if self._recent else None
        if last and last[1] is kind and (self._is_open or kind is LogKind.OUTPUT):
            whole = f"{last[2]}{joint}{text[-_REMEMBERED:]}"[-_REMEMBERED:]
            self._recent[-1] = (last[0], kind, whole, last[3] + count)
        else:
            self._recent.append((at, kind, text[-_REMEMBERED:], count))

    def _from(self, number: int) -> LogLines:
        """Return the kept lines from a number on."""
        pieces: list[LogPiece] = []
        begin = self._next
        for at, kind, text, count in reversed(self._kept):
            if begin <= number:
                break
            begin -= count
            if begin < number:
                text = text.split("\n", number - begin)[-1]  # noqa: PLW2901 - its end alone
            pieces.append(LogPiece(at, kind, text))
        return LogLines(tuple(reversed(pieces)))

    @singledispatchmethod
    def note(self, event: a.AgentEvent, at: float) -> None:
        """Record an event of the agent; kinds not named below leave no trace."""

    @note.register
    def _(self, event: a.Said, at: float) -> None:
        self._speak(LogKind.SAYS, event.text, at, is_delta=event.is_delta)

    @note.register
    def _(self, event: a.Thought, at: float) -> None:
        self._speak(LogKind.THOUGHT, event.text, at, is_delta=event.is_delta)

    @note.register
    def _(self, event: a.ToolCalled, at: float) -> None:
        told = f"{event.name}  {event.title}".rstrip() + _edit(event.edit)
        _, began = self._tools.get(event.id, ("", at))
        self._tools[event.id] = told, began
        self.write(LogKind.TOOL, told, at)

    @note.register
    def _(self, event: a.ToolEnded, at: float) -> None:
        told, began = self._tools.pop(event.id, ("", at))
        if ending := _ending(event, at - began):
            is_newest = bool(self._kept) and self._kept[-1][1:3] == (LogKind.TOOL, told)
            self.write(LogKind.TOOL_END, ending if is_newest else f"{told}: {ending}", at)
        kind = LogKind.TOOL_END if event.state == "done" else LogKind.ERROR
        if event.output:
            self.write(kind, event.output, at)
        elif event.state != "done":
            self.write(kind, f"tool call {event.state}", at)

    @note.register
    def _(self, event: a.Progressed, at: float) -> None:
        self.progress = event.fraction
        if event.note:
            self.write(LogKind.NOTE, event.note, at)

    @note.register
    def _(self, event: a.UsageSeen, at: float) -> None:
        del at
        self.cached_tokens = event.cached_tokens or self.cached_tokens
        self.context, self.window, self.turns = event.context, event.window, event.turns
        self.usage = replace(
            self.usage,
            input_tokens=_newer(event.input_tokens, self.usage.input_tokens),
            output_tokens=_newer(event.output_tokens, self.usage.output_tokens),
            usd=event.usd if event.usd is not None else self.usage.usd,
        )

    @note.register
    def _(self, event: a.SubAgents, at: float) -> None:
        del at
        self.sub_agents = event.count

    @note.register
    def _(self, event: a.Asked, at: float) -> None:
        self.write(LogKind.NOTE, f"asks: {event.text}", at)

    @note.register
    def _(self, event: a.Heard, at: float) -> None:
        self.write(LogKind.NOTE, heard_note(event.text), at)

    @note.register
    def _(self, event: a.Decided, at: float) -> None:
        word = "allowed" if event.is_allowed else "denied"
        what = f"{event.tool} {event.detail}".strip()
        self.write(LogKind.NOTE, f"{word} by {event.rule}" + (f": {what}" if what else ""), at)

    @note.register
    def _(self, event: a.Retrying, at: float) -> None:
        answer = ANSWERS.get(event.status, "")
        told = f"its model answered {event.status}{f' ({answer})' if answer else ''}; "
        if event.status and not event.status.isdigit():
            told = f"its model could not be asked ({event.status}); "
        wait = f" in {event.delay_s:.0f} s" if event.delay_s else ""
        text = f"{told if event.status else ''}it tries again{wait} (try {event.attempt})"
        self.write(LogKind.NOTE, text, at)

    @note.register
    def _(self, event: a.RateLimited, at: float) -> None:
        del event
        self.write(LogKind.NOTE, "the provider's rate limit was reached", at)

    @note.register
    def _(self, event: a.TurnEnded, at: float) -> None:
        del at
        self.is_turn_over = not event.is_interrupted

    @note.register
    def _(self, event: a.Started, at: float) -> None:
        if event.model:
            self.model = event.model
            self.write(LogKind.NOTE, f"model {event.model}", at)

    def _speak(self, kind: LogKind, text: str, at: float, *, is_delta: bool) -> None:
        if is_delta:
            self._go_on(kind, text, at)
        else:
            self.write(kind, text, at)

    def sample(self, usage: Usage) -> None:
        """Record what the keeper measured."""
        self.usage = replace(
            usage,
            input_tokens=self.usage.input_tokens,
            output_tokens=self.usage.output_tokens,
            usd=self.usage.usd,
        )

    @property
    def moved_at(self) -> float | None:
        """Return when the agent last progressed; plain output counts if nothing better is known."""
        return self.last_raw if self.last_progress is None else self.last_progress

    def end(self, last_words: str, at: float) -> None:
        """Close the log; show the agent's closing words unless it said them before."""
        self._insert(until=math.inf)
        self.is_ended = True
        self._tools.clear()
        words = last_words.strip()
        end = "\n".join(words.split("\n")[-TAIL_LINES:])  # the rest may be kept no longer
        if words and end not in "\n".join(text for _, _, text, _ in self._kept):
            self.write(LogKind.SAYS, words, at)

    def read(self, after: int, *, most: int | None = None) -> LogChunk:
        """Return the lines after a number, or the newest of them, as far as they are kept."""
        first = max(after, self.first, 0 if most is None else self.next - most)
        return LogChunk(
            lines=self._from(first),
            first=min(first, self.next),
            next_offset=self.next,
            is_end=self.is_ended,
        )

    def lately(self) -> tuple[Deed, ...]:
        """Return what its agent did last, for a tile."""
        return lately(reversed(self._recent))

    def tail(self) -> tuple[str, ...]:
        """Return the last lines, for a tile."""
        newest = self._from(max(self.first, self._next - TAIL_LINES))
        return tuple(line.text for line in newest)


def _ending(event: a.ToolEnded, took_s: float) -> str:
    """Return how a tool ended; nothing where it did so well and at once."""
    code = event.exit_code
    if code is None and (said := _EXIT_CODE.match(event.output)):
        code = int(said[1])
    if code is None and event.state == "done" and took_s < _AT_ONCE_S:
        return ""
    ended = event.state if code is None else f"exit {code}"
    return f"{ended}, {took_s:.1f} s" if took_s >= _MEASURED_S else ended


def _edit(lines: tuple[int, int] | None) -> str:
    return f"  +{lines[0]} -{lines[1]}" if lines else ""


def raw_text(events: Iterable[a.AgentEvent]) -> str:
    """Return the lines of plain output as one text."""
    plain = (event for event in events if isinstance(event, (a.Raw, a.Printed)))
    return "\n".join(e.line if isinstance(e, a.Raw) else e.text for e in plain)


def _newer(new: int | None, old: int | None) -> int | None:
    return old if new is None else new


def heard_note(text: str) -> str:
    """Return one line saying that words have reached an agent."""
    first, *more = text.splitlines() or [""]
    return (
        f"the agent read your message: {first[:_SHOWN]}{'…' if more or len(first) > _SHOWN else ''}"
    )
