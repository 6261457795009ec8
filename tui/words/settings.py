"""Settings as they are typed: `memory_mb=2048 agent=codex at=14:32` on a line of their own."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from engine.limits import KINDS, Limits

MOMENTS = "14:32, 14:32:05, 10m (ago), or 2026-03-01T14:32"
"""The form of a time."""

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_WITHOUT_SECONDS = re.compile(r"(.*[T ])?\d{1,2}:\d\d")


def split_settings(text: str) -> tuple[dict[str, str], str]:
    """`key=value` words of the first line, if it is made of nothing else, and the rest."""
    first, _, rest = text.partition("\n")
    parts = [word.partition("=") for word in first.split()]
    known = {*KINDS, "agent", "at"}
    if parts and all(sign and key in known for key, sign, _ in parts):
        return {key: value for key, _, value in parts}, rest.strip()
    return {}, text.strip()


def limits_with(limits: Limits, settings: dict[str, str]) -> Limits | str:
    """The limits with these set; or what is wrong with a value."""
    changed: dict[str, float | int] = {}
    for key, value in settings.items():
        if key not in KINDS:
            return f"{key} is not a limit"
        try:
            number = float(value)
        except ValueError:
            return f"{key}={value}: not a number"
        if not 0 < number < float("inf"):
            return f"{key}={value}: must be more than 0"
        changed[key] = int(number) if KINDS[key].is_whole else number
    return replace(limits, **changed)  # type: ignore[arg-type]


def time_named(text: str, now: float) -> float | None:
    """The time that a word means, in seconds since 1970; None where it means none.

    A time of day is the last one that has been; a minute is meant to its end.
    """
    if ago := _AGO.fullmatch(text):
        return now - float(ago[1]) * _SECONDS[ago[2]]
    today = datetime.fromtimestamp(now, UTC).astimezone()
    if ":" not in text:
        return None
    is_of_day = "-" not in text
    text = f"0{text}" if text[1:2] == ":" else text
    try:
        then = datetime.fromisoformat(f"{today.date()}T{text}" if is_of_day else text)
    except ValueError:
        return None
    then = then.astimezone() if then.tzinfo is None else then
    if is_of_day and then > today:
        then -= timedelta(days=1)
    rest = 59.999 if _WITHOUT_SECONDS.fullmatch(text) else 0.999
    return then.timestamp() + rest
