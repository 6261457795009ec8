"""Collect the secrets that an engine knows: what it passes to agents, and the like."""

from collections.abc import Iterable, Mapping

from engine.plan.model import Plan
from engine.redaction import secret_values


def known_secrets(plans: Iterable[Plan], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values that must not be shown to others, by the names of their variables."""
    found: dict[str, str] = {}
    passed: list[str] = []
    for plan in plans:
        passed += plan.runtime.holes.env
        for agent in plan.agents:
            found |= secret_values(agent.env, ("*",))
    return {**found, **secret_values(environ, passed)}
