"""Provide an agent that misbehaves: it ignores every polite stop, its children outlive it."""

from typing import Any


def stubborn_agent(*, children: int = 1) -> dict[str, Any]:
    """Return an `agents` entry that only a kill ends; it says `deaf` when ready.

    Args:
        children: How many processes it starts that leave its session and its tree.
    """
    steps: list[dict[str, Any]] = [{"ignore_term": True}]
    if children:
        steps.append({"spawn": {"count": children, "detached": True}})
    steps += [{"say": "deaf"}, {"hang": True}]
    return {"adapter": "scripted", "script": {"steps": steps}}
