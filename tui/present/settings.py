"""Settings as they are typed: `memory_mb=2048 agent=codex` on a line of their own."""

from dataclasses import fields, replace

from engine.limits import Limits


def split_settings(text: str) -> tuple[dict[str, str], str]:
    """`key=value` words of the first line, if it is made of nothing else, and the rest."""
    first, _, rest = text.partition("\n")
    parts = [word.partition("=") for word in first.split()]
    known = {place.name for place in fields(Limits)} | {"agent"}
    if parts and all(sign and key in known for key, sign, _ in parts):
        return {key: value for key, _, value in parts}, rest.strip()
    return {}, text.strip()


def limits_with(limits: Limits, settings: dict[str, str]) -> Limits | str:
    """The limits with these set; or what is wrong with a value."""
    changed: dict[str, float | int] = {}
    for key, value in settings.items():
        try:
            number = float(value)
        except ValueError:
            return f"{key}={value}: not a number"
        if not 0 < number < float("inf"):
            return f"{key}={value}: must be more than 0"
        changed[key] = number if key in {"time_seconds", "budget_usd"} else int(number)
    return replace(limits, **changed)  # type: ignore[arg-type]
