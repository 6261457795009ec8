"""Reads the JSON lines of an agent by its table."""

import functools
import re
from collections.abc import Callable
from typing import Any

from engine.agents.agent_events import (
    AgentEvent,
    Retrying,
    Thought,
    ToolCalled,
    ToolEnded,
)
from engine.agents.contract import LaunchRequest
from engine.agents.reading import Closing, Reading
from engine.agents.records import (
    Record,
    content_text,
    count_of,
    number_of,
    paths_of,
    tail_of,
    text_of,
    title_of,
)
from engine.agents.tables import AgentTable, ReadyRule

_LIMIT_REACHED = re.compile(r"usage limit|rate.?limit|quota exceeded|\b429\b", re.IGNORECASE)
_UNAUTHORIZED = re.compile(
    r"\b401\b|authenticat|unauthori[sz]ed|api.?key (?:not|is) |not logged in", re.IGNORECASE
)
_MILLISECONDS = 1000
_BAD = {"error", "failed", "failure", "cancelled", "aborted", "rejected"}


class TableStream(Reading):
    """One attempt's stream of an agent that a table describes."""

    def __init__(self, request: LaunchRequest, table: AgentTable) -> None:
        super().__init__(request)
        self._rules = table.ready
        self._trouble = ""
        self._is_fresh = True  # a piece of a message begins a new one here, as after every tool
        self._tellers: dict[str, Callable[[Callable[[str], Any]], list[AgentEvent]]] = {
            "started": self._started,
            "said": self._says,
            "thought": lambda get: [Thought(text)] if (text := content_text(get("text"))) else [],
            "called": self._called,
            "ended": self._ended,
            "used": self._used,
            "adds": self._adds,
            "retrying": self._retrying,
            "trouble": self._troubled,
            "closing": self._closed,
            "nothing": lambda _: [],
        }

    def record(self, record: Record) -> list[AgentEvent] | None:
        """What one record means by the rules for its type."""
        rules = self._rules.get(text_of(record.get("type")))
        if rules is None:
            return None
        events: list[AgentEvent] = []
        for rule in rules:
            for item in _items(rule, record):
                if rule.holds(record, item):
                    get = functools.partial(rule.read, record=record, item=item)
                    events += self._tellers[rule.tell](get)
        return events

    # ------------------------------------------------------------------ one teller each

    def _started(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._is_fresh = True
        return self.start(text_of(get("session")), text_of(get("model")))

    def _says(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        text = content_text(get("text"))
        if not text:
            return []
        is_delta, self._is_fresh = bool(get("delta")) and not self._is_fresh, False
        return [self.say(text, is_delta=is_delta)]

    def _called(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._is_fresh = True
        name, given = text_of(get("name")), get("input")
        return [ToolCalled(text_of(get("id")) or name, name, title_of(given), paths_of(given))]

    def _ended(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        failed, status = get("failed"), text_of(get("status"))
        is_bad = failed is True or bool(count_of(failed)) or status in _BAD
        output = tail_of(content_text(get("output")))
        return [ToolEnded(text_of(get("id")), "failed" if is_bad else "done", output)]

    def _used(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        return [
            self.used(
                input_tokens=get("input_tokens"),
                output_tokens=get("output_tokens"),
                cached_tokens=get("cached_tokens"),
                usd=get("usd"),
            )
        ]

    def _adds(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        known = self.usage
        return [
            self.used(
                input_tokens=(known.input_tokens or 0) + (get("input_tokens") or 0),
                output_tokens=(known.output_tokens or 0) + (get("output_tokens") or 0),
                cached_tokens=(known.cached_tokens or 0) + (get("cached_tokens") or 0),
                usd=(known.usd or 0.0) + (get("usd") or 0.0),
            )
        ]

    def _retrying(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        delay_ms = number_of(get("delay_ms"))
        delay_s = number_of(get("delay_s")) if delay_ms is None else delay_ms / _MILLISECONDS
        return [Retrying(count_of(get("attempt")) or 1, delay_s, text_of(get("status")))]

    def _troubled(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        self._trouble = content_text(get("error")) or self._trouble
        return [Thought(self._trouble)]

    def _closed(self, get: Callable[[str], Any]) -> list[AgentEvent]:
        text = content_text(get("text"))
        error = self._fault(get, text)
        self.closing = Closing(
            error=error,
            text=text if not error else "",
            needs_login=bool(_UNAUTHORIZED.search(error)),
        )
        events: list[AgentEvent] = []
        if session := text_of(get("session")):
            events += self.start(session)
        if _LIMIT_REACHED.search(error):
            events.append(self.limited())
        return events

    def _fault(self, get: Callable[[str], Any], text: str) -> str:
        """Why it ended badly, if it did: by a flag or exit code, by a word, by an error."""
        error = content_text(get("error"))
        if get("is_error") or text_of(get("status")) in _BAD or error:
            return error or self._trouble or text or "the agent reported an error"
        return ""


def _items(rule: ReadyRule, record: Record) -> list[Any]:
    if rule.each is None:
        return [None]
    found = rule.each(record, None)
    return found if isinstance(found, list) else []
