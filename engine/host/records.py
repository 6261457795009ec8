"""Attempts on their way through JSON: the request a keeper is given, the end it writes down."""

from dataclasses import asdict, fields
from typing import Any

from engine.host.seam import AttemptExit, AttemptSpec
from engine.keeper import wire
from engine.limits import KINDS, Dimension, LimitHit, Usage
from engine.phases import StopCause

LIMIT_KINDS = {
    name: {
        "dimension": kind.dimension,
        "unit": kind.unit,
        "cause": kind.cause,
        "ends_at_once": kind.ends_at_once,
    }
    for name, kind in KINDS.items()
    if kind.dimension is not None
}
"""The table of limits as far as a keeper needs it, which loads no part of the engine."""


def request_of(spec: AttemptSpec) -> dict[str, Any]:
    """Return the request that a keeper is given for an attempt."""
    profile = {**vars(spec.profile), "cgroups": [asdict(each) for each in spec.profile.cgroups]}
    del profile["report"]  # for people
    return {
        **vars(spec),
        "v": wire.VERSION,
        "attempt": str(spec.attempt),
        "first_input": wire.as_text(spec.first_input),
        "limits": asdict(spec.limits),
        "kinds": LIMIT_KINDS,
        "profile": profile,
    }


def exit_of(content: dict[str, Any]) -> AttemptExit:
    """Return how an attempt ended, from its exit.json."""
    cause, limit = content.get("cause"), content.get("limit")
    return AttemptExit(
        cause=StopCause(cause) if cause else None,
        exit_code=content.get("exit_code"),
        signal=content.get("signal"),
        not_started=content.get("not_started"),
        limit=_limit_of(limit) if limit else None,
        usage=usage_of(content.get("usage") or {}),
        wall_s=content.get("wall_s", 0.0),
        paused_s=content.get("paused_s", 0.0),
        leader_end=content.get("leader_end", 0),
        is_truncated=content.get("is_truncated", False),
        left_over=tuple(content.get("left_over", ())),
        unkillable=tuple(content.get("unkillable", ())),
    )


def usage_of(content: dict[str, Any]) -> Usage:
    """Return what was used, as far as a keeper knows it."""
    return Usage(**{place.name: content.get(place.name) for place in fields(Usage)})


def _limit_of(content: dict[str, Any]) -> LimitHit:
    return LimitHit(
        dimension=Dimension(content["dimension"]),
        allowed=content["allowed"],
        seen=content["seen"],
        unit=content["unit"],
    )
