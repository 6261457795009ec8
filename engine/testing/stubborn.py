"""An agent that misbehaves: it ignores every polite stop, and its children outlive it."""

from typing import Any


def stubborn_agent(*, children: int = 1) -> dict[str, Any]:
    """An entry of `agents` whose agent only a kill ends; it says `deaf` once it has gone deaf.

    Args:
        children: How many processes it starts that leave its session and its tree.
    """
    steps: list[dict[str, Any]] = [{"ignore_term": True}]
    if children:
        steps.append({"spawn": {"count": children, "detached": True}})
    steps += [{"say": "deaf"}, {"hang": True}]
    return {"adapter": "scripted", "script": {"steps": steps}}
