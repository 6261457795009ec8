"""Read from the words of a client that it asks its model again, and for how long it waits.

These words are foreign text: no number in them is too long to read, and no wait is endless.
"""

import re

from engine.agents.agent_events import Retrying
from engine.agents.records import Record, count_of, number_of, text_of

_TRIES_AGAIN = (
    re.compile(
        r"Attempt (?P<attempt>\d{1,9}) failed(?: with status (?P<status>\d{3}))?\b(?P<words>.*?)"
        r"(?P<wait>\bRetrying (?:after|in) .*)?$",
        re.ASCII,
    ),
    re.compile(
        r"(?P<wait>Retrying in \d+s) \(attempt (?P<attempt>\d{1,9})/\d+\)(?P<words>.*)$", re.ASCII
    ),
)
"""The words beside the stream with which gemini and qwen ask their model again; the first, too,
those of what plait adds to clients that hand on nothing by themselves."""
_FAILED = re.compile(r"Attempt \d+ failed: .*")
_WAITS = re.compile(r"\bRetrying after \d+ms")
_LOGGED = re.compile(
    r"\[log_[0-9a-f]{6}\b[^]]*\] \w+ \S+ (?:succeeded|failed) with status (\d{3}) in \d+ms(.*)",
    re.ASCII,
)
"""The log of a vendor's library for Node, where `OPENAI_LOG` is set, as a table has it."""
_RECONNECTS = re.compile(
    r"Reconnecting\.\.\. (?:(\d{1,9})/\d+|waiting for network) \((.*)\)", re.DOTALL | re.ASCII
)
_STATUS = re.compile(r"\b(?:4\d\d|5\d\d)\b", re.ASCII)
_STATUS_IN_WORDS = (
    (re.compile(r"rate.?limit|too many requests|quota", re.IGNORECASE), "429"),
    (re.compile(r"overloaded|at capacity", re.IGNORECASE), "529"),
)
_LONGEST_WORDS = 200
FIGURE = r"\d{1,15}(?:\.\d{1,30})?"
"""A figure in words, as a regular expression: as short as those that a client writes."""
# By ASCII alone, since else a letter such as the long s is an `s` and names no unit.
_WAIT = re.compile(
    r"(?:retry.?delay|(?:try again|retry|retrying|wait)(?: in| after| for)?|retry.?after)"
    rf"[\"' :=]*((?:{FIGURE}\s*(?:ms|s|sec(?:ond)?s?|m|min(?:ute)?s?|hours?|h|days?|d)(?![a-z])"
    r"[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE | re.ASCII,
)
_PART = re.compile(rf"({FIGURE})\s*(ms|h|m|s|d)", re.IGNORECASE | re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class WordsBeside:
    """The words of one client beside its stream, line by line."""

    def __init__(self) -> None:
        self._tries = 0
        self._failure = ""

    def logged(self, text: str) -> list[Retrying] | None:
        """Return what a line of a library's log reports; None if the line is none."""
        if (found := _LOGGED.match(text)) is None:
            return None
        asks_again = "retrying" in found[2]
        self._tries = self._tries + 1 if asks_again else 0
        return [Retrying(self._tries, None, found[1])] if asks_again else []

    def said(self, text: str) -> list[Retrying]:
        """Return what another line reports."""
        is_failure, names_wait = bool(_FAILED.fullmatch(text)), bool(_WAITS.search(text))
        # Words of a server can be several lines, and the wait stands at the end of them.
        is_end = self._failure and names_wait and not is_failure
        whole = f"{self._failure}: {text}" if is_end else text
        self._failure = text if is_failure and not names_wait else ""
        return _retries_in(whole)


def _retries_in(text: str) -> list[Retrying]:
    """Return what words beside the stream tell; the client's own figure before its server's."""
    for pattern in _TRIES_AGAIN:
        told = again.groupdict(default="") if (again := pattern.match(text)) else {}
        status, words, wait = told.get("status", ""), told.get("words", ""), told.get("wait", "")
        if status or wait:
            delay_s = wait_told(wait) or wait_told(words)
            return [Retrying(int(told["attempt"]), delay_s, status or status_in(words))]
    return []


def status_in(words: str) -> str:
    """Return the status of an answer that these words are about, else the words themselves."""
    known = next((status for pattern, status in _STATUS_IN_WORDS if pattern.search(words)), "")
    found = _STATUS.search(words)
    return known or (found[0] if found else words.strip(" :.")[:_LONGEST_WORDS])


def retry_of_claude(record: Record) -> Retrying:
    """Return what Claude Code's own record of a retry tells, which comes over ACP, too."""
    delay_ms = number_of(record.get("retry_delay_ms"))
    return Retrying(
        count_of(record.get("attempt")) or 1,
        None if delay_ms is None else delay_ms * _SECONDS["ms"],
        text_of(record.get("error_status")) or text_of(record.get("error")),
    )


def retry_of_codex(words: str, tries: int) -> Retrying | None:
    """Return what Codex's words tell; None where they are about anything else than a retry.

    Args:
        words: What it says in place of an error.
        tries: So often it has tried, where its words do not say it.
    """
    if (again := _RECONNECTS.match(words)) is None:
        return None
    return Retrying(int(again[1] or tries + 1), wait_told(again[2]), status_in(again[2]))


def wait_told(words: str) -> float | None:
    """Return for how many seconds a server says that it takes no requests; None if it does not."""
    found = _WAIT.search(words)
    parts = _PART.findall(found[1]) if found else []
    seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)
    return number_of(seconds) or None
