"""Which adapters there are, by the names that manifests use."""

import difflib
from collections.abc import Mapping

import anyio

from engine.agents.command import CommandAdapter
from engine.agents.contract import AgentAdapter, Found
from engine.agents.presets import AIDER, MINI
from engine.agents.scripted import ScriptedAdapter
from engine.errors import AgentNotFound

ADAPTERS: dict[str, AgentAdapter] = {
    adapter.name: adapter for adapter in (ScriptedAdapter(), CommandAdapter(), AIDER, MINI)
}


def adapter_named(name: str) -> AgentAdapter:
    """The adapter of that name; AgentNotFound names the nearest where there is none."""
    adapter = ADAPTERS.get(name)
    if adapter is None:
        near = difflib.get_close_matches(name, ADAPTERS, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        raise AgentNotFound(name, hint=f"{guess}There are: {', '.join(ADAPTERS)}.")
    return adapter


async def find_agents(environment: Mapping[str, str]) -> tuple[Found, ...]:
    """What is there of every agent on this machine, in the order of the registry."""
    found: dict[str, Found] = {}

    async def look(adapter: AgentAdapter) -> None:
        found[adapter.name] = await adapter.find(environment)

    async with anyio.create_task_group() as group:
        for adapter in ADAPTERS.values():
            group.start_soon(look, adapter)
    return tuple(found[name] for name in ADAPTERS)
