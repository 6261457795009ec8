"""Read what an agent draws on its terminal, and heed only what it tells by signals of its own.

Its screen is for humans: no verdict and no question is ever read from it. A notice (OSC 9, 99, 777)
or a bell asks for a human. Whatever is typed then, by whomever, is the answer.
"""

import re

from engine.agents.agent_events import (
    AgentEvent,
    Asked,
    Heard,
    ProtocolReply,
    TurnEnded,
    Withdrawn,
)
from engine.agents.contract import LaunchRequest
from engine.agents.on_screen.of_claude import ANY_PROGRAM, CUT, PERMISSION, Ways
from engine.agents.permitting import verdict_of
from engine.agents.reading import Reading
from engine.agents.records import Record
from engine.terminal.keys import paste_bytes
from engine.terminal.redraw import screen_text
from engine.terminal.signals import Signal, SignalKind
from engine.terminal.terminal import Terminal

DONE = "plait: done"
"""The notice by which an agent, or a hook of its own, says that it has done what it was told."""
_OVER = "its turn is over, but you typed in its terminal: continue there, or end the attempt"
_END = "end it"
_CALL = re.compile(r"([\w-]+)\((.*)\)")
_INEXACT = " (not shown exactly: look at its terminal)"
_RANG = "it rang the bell: look at its terminal"
_PROMPTS = "it shows its prompt and waits"
_INTERRUPT = b"\x03"
_SEEN = 64
"""So many bytes at the end of what was typed are told apart: terminals take long texts in parts."""


class ScreenStream(Reading):
    """One attempt on a terminal.

    Attributes:
        terminal: What it has drawn so far, for whoever looks on.
    """

    wants_closing = False

    def __init__(
        self,
        request: LaunchRequest,
        *,
        typed: str = "",
        asks_by: frozenset[SignalKind] = frozenset(),
        is_proved_by_exit: bool = False,
        ways: Ways = ANY_PROGRAM,
    ) -> None:
        """Expect any program.

        Args:
            request: What it was launched for.
            typed: The prompt, where it is typed in once the program takes a paste.
            asks_by: The signals by which it asks for a human.
            is_proved_by_exit: Its exit code is the whole verdict.
            ways: The keys that it takes, where it is known.
        """
        super().__init__(request)
        self.terminal = Terminal(*request.terminal)
        self._typed = typed
        self._asks_by = asks_by
        self._is_proved_by_exit = is_proved_by_exit
        self._is_ready = False
        self._question = ""
        self._asked = 0
        self._said_to_it: list[tuple[bytes, str]] = []
        self._answered: list[bytes] = []
        self._ways = ways
        self._is_permission = False
        self._is_humans = False
        self._is_denied = False
        self._is_left = False

    @property
    def needs_proof(self) -> bool:
        """Nothing but its exit code speaks for it, and that is not enough for an agent."""
        return not self._is_proved_by_exit

    @property
    def last_message(self) -> str:
        """Return what stood on its screen last."""
        return screen_text(self.terminal)

    def record(self, record: Record) -> list[AgentEvent] | None:
        """Return nothing: it speaks no protocol."""
        del record
        return None

    @property
    def owed(self) -> tuple[bytes, ...]:
        """Return the prompt, where it is to be typed and was not; other replies do not keep."""
        return (self._prompt(),) if self._typed and self._is_ready else ()

    def feed(self, stream: str, data: bytes) -> list[AgentEvent]:
        """Return the events of these bytes."""
        if stream == "in":
            return self._heard(data)
        events: list[AgentEvent] = self.start("")
        self.terminal.feed(data)
        if replies := self.terminal.take_replies():
            events.append(ProtocolReply(replies))
        for signal in self.terminal.take_signals():
            events += self._heed(signal)
        return events

    def answer(self, question: str, answer: str) -> bytes | None:
        """Return the keys that type an answer."""
        if question != self._question:
            return None
        data = self._keys_of(answer)
        self._answered.append(data[-_SEEN:])
        return data

    def _keys_of(self, answer: str) -> bytes:
        if answer == _END and self._ways.leave:
            self._is_left = True
            return self._ways.leave
        if not self._is_permission:
            return self._keys(answer)
        is_allowed, _ = verdict_of(answer)
        self._is_denied = not is_allowed
        return self._ways.allow if is_allowed else self._ways.deny

    def steer(self, text: str) -> bytes | None:
        """Return the keys that type the words."""
        data = self._keys(text)
        self._said_to_it.append((data[-_SEEN:], text))
        return data

    def interrupt(self) -> bytes | None:
        """Return the key that breaks off what a program does."""
        return _INTERRUPT

    def _keys(self, text: str) -> bytes:
        return paste_bytes(text, self.terminal.grid.modes) + b"\r"

    def _prompt(self) -> bytes:
        return self._keys(self._typed)

    def _heed(self, signal: Signal) -> list[AgentEvent]:
        if signal.kind is SignalKind.TAKES_PASTE and self._typed and not self._is_ready:
            self._is_ready = True
            return [ProtocolReply(self._prompt())]
        if signal.kind is SignalKind.NOTICE and signal.text == DONE:
            if self._is_humans and self._ways.leave:
                return self._ask(_OVER, choices=(_END,))
            left = [ProtocolReply(self._ways.leave)] if self._ways.leave else []
            return [*self._withdrawn(), *left, TurnEnded(is_ok=True)]
        if signal.kind is SignalKind.BUSY:
            return self._withdrawn()
        if signal.kind not in self._asks_by:
            return []
        if signal.kind is SignalKind.NOTICE:
            return self._notice(*signal.text.partition(": ")[::2])
        is_open = bool(self._question)
        return [] if is_open else self._ask(_RANG if signal.kind is SignalKind.BELL else _PROMPTS)

    def _notice(self, title: str, text: str) -> list[AgentEvent]:
        if title == PERMISSION and self._ways.allow:
            return self._ask_permission(text)
        return self._ask(f"{title}: {text}" if text else title)

    def _ask(self, text: str, *, choices: tuple[str, ...] = ()) -> list[AgentEvent]:
        withdrawn = self._withdrawn()
        return [*withdrawn, Asked(id=self._next(), text=text, choices=choices)]

    def _ask_permission(self, call: str) -> list[AgentEvent]:
        """Ask for a permission: it is answered by the keys of the program's own dialog.

        A human alone answers it: whatever runs on the terminal can write the same notice.
        """
        withdrawn, found = self._withdrawn(), _CALL.fullmatch(call)
        tool, detail = found.groups() if found else (call, "")
        self._is_permission = True
        is_inexact = not detail or CUT in call
        text = f"{tool}: {detail}" if detail else tool
        asked = Asked(
            id=self._next(),
            text=text + _INEXACT if is_inexact else text,
            choices=("allow", "deny"),
            is_permission=True,
            tool=tool,
            detail=detail,
            needs_human=True,
        )
        return [*withdrawn, asked]

    def _next(self) -> str:
        self._asked += 1
        self._question = f"screen-{self._asked}"
        return self._question

    def _withdrawn(self) -> list[AgentEvent]:
        question, self._question, self._is_permission = self._question, "", False
        return [Withdrawn(question)] if question else []

    def _heard(self, data: bytes) -> list[AgentEvent]:
        """Take notice of what was typed, by us or by a human: a question is answered by it."""
        events: list[AgentEvent] = []
        if self._typed and self._is_ready and data.endswith(self._prompt()[-_SEEN:]):
            self._typed = ""
            return []
        for said in list(self._said_to_it):
            if data.endswith(said[0]):
                self._said_to_it.remove(said)
                events.append(Heard(said[1]))
        if self._is_denied and self._ways.deny in data:
            # Words sent too early would give the permission, so it is not talked to any more.
            events += [ProtocolReply(self._ways.leave), TurnEnded(is_ok=True)]
        if self._is_left and self._ways.leave in data:
            events.append(TurnEnded(is_ok=True))
        is_ours = bool(events or self._said_to_it or self._answered)
        self._answered = [keys for keys in self._answered if not data.endswith(keys)]
        if b"\r" in data and not is_ours:
            self._is_humans = True
        return [*events, *(self._withdrawn() if b"\r" in data or len(data) == 1 else [])]
