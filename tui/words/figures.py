"""Write figures: durations, ages, costs, sizes, counts. A figure not known is a dash."""

import re
import time
from collections.abc import Iterable

from engine.limits import Usage
from engine.messages.results import LoginUse, WorkerView

UNKNOWN = "\u2013"
MINUS = "\u2212"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_GIB = 1024
_CENT = 0.01
_NO_CENTS_FROM = 100
_ONE_DECIMAL_BELOW_GIB = 10


_NUMBER = re.compile("[0-9]{1,9}")


def number_in(text: str) -> int | None:
    """Return the number that a text is; None for any other text, and for one of many digits.

    Python takes a sign such as ² for a digit, and refuses to read thousands of digits.
    """
    return int(text) if _NUMBER.fullmatch(text) else None


def lasting(seconds: float | None) -> str:
    """A duration: `0:42`, `1:04:12`, `2d 3h`."""
    if seconds is None:
        return UNKNOWN
    whole = max(int(seconds), 0)
    if whole >= _DAY:
        return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"
    minutes, rest = divmod(whole, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def countdown(seconds: float) -> str:
    """Time still to go: `in 0:42`."""
    return f"in {lasting(seconds)}"


NEARLY = 0.85
"""From this share of a limit on, little is left of it."""


def remaining(seconds: float) -> str:
    """Return a time that is left, no more exactly than it is known: `48 min`, `40 s`."""
    if seconds < _MINUTE:
        return f"{max(int(seconds), 0)} s"
    if seconds < 2 * _HOUR:
        return f"{int(seconds // _MINUTE)} min"
    return lasting(seconds).rpartition(":")[0] + " h" if seconds < _DAY else lasting(seconds)


def how_long(seconds: float) -> str:
    """Return a duration in its largest unit, as a sentence says it: `6 min`."""
    whole = max(int(seconds), 0)
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if whole >= unit:
            return f"{whole // unit} {name}"
    return f"{whole} s"


def age(seconds: float) -> str:
    """Return how long ago, as a sentence says it: `6 min ago`."""
    return f"{how_long(seconds)} ago"


def clock(at: float, now: float) -> str:
    """A point in time: the clock today, the date on other days."""
    there, here = time.localtime(at), time.localtime(now)
    if (there.tm_year, there.tm_yday) == (here.tm_year, here.tm_yday):
        return time.strftime("%H:%M:%S", there)
    return f"{there.tm_mday} {time.strftime('%b', there)}"


def tokens(count: int | None) -> str:
    """Tokens: `812`, `31.2k`, `1.24M`."""
    if count is None:
        return UNKNOWN
    if count < 1000:  # noqa: PLR2004 - the unit itself
        return str(count)
    if count < 999_950:  # noqa: PLR2004 - from here on it would round to 1000.0k
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.2f}M"


def cost(usd: float | None) -> str:
    """Money: `$0.42`, `<$0.01`; nothing known is a dash, never `$0.00`."""
    if not usd:
        return UNKNOWN
    if usd < _CENT:
        return "<$0.01"
    return f"${usd:.0f}" if usd >= _NO_CENTS_FROM else f"${usd:.2f}"


def cost_of(workers: Iterable[WorkerView]) -> str:
    """Return what several cost: `$0.42`; `≥$0.42` where one reported no cost; else a dash."""
    known = list(workers)
    spent = sum(worker.usage.usd or 0.0 for worker in known)
    is_least = any(_is_least(worker) for worker in known)
    return f"{'≥' if is_least and spent else ''}{cost(spent)}"


def _is_least(worker: WorkerView) -> bool:
    """Say whether an attempt of an agent reported no cost."""
    ran = [usage for usage in worker.attempt_usages if usage != Usage()] or [worker.usage]
    return bool(worker.agent and worker.attempt) and any(usage.usd is None for usage in ran)


def used(use: LoginUse) -> str:
    """Return what a login used: `≥$0.42, 31.2k tokens; 2 of 5 attempts reported no cost`."""
    usd = ("≥" if use.without_usd and use.usd else "") + cost(use.usd)
    nothing = None if use.without_tokens else 0
    count = ("≥" if use.without_tokens and use.tokens else "") + tokens(use.tokens or nothing)
    text = f"{usd}, {count} tokens"
    if not use.without_usd:
        return text
    return f"{text}; {use.without_usd} of {some(use.attempts, 'attempt')} reported no cost"


def memory(mebibytes: float | None) -> str:
    """Memory or disk: `88M`, `1.0G`, `21G`."""
    if mebibytes is None:
        return UNKNOWN
    if mebibytes < _GIB - 0.5:
        return f"{mebibytes:.0f}M"
    gibibytes = mebibytes / _GIB
    return f"{gibibytes:.1f}G" if gibibytes < _ONE_DECIMAL_BELOW_GIB else f"{gibibytes:.0f}G"


def count(number: int) -> str:
    """A count: `7,012`."""
    return f"{number:,}"


def some(number: int, noun: str, plural: str = "") -> str:
    """A counted noun: `1 file`, `3 files`."""
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"
