"""The adapters, by the names that manifests use."""

import difflib
import functools
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from engine.agents.contract import AgentAdapter, AgentLaunch, FoundAgent, LaunchRequest, Steering
from engine.agents.models import models_of
from engine.agents.options import is_set
from engine.errors import AgentError, AgentNotFound
from engine.plan.model import AgentChoice, PermissionMode, Permissions, Runtime

TABLES = ("gemini", "opencode", "copilot", "qwen", "pi", "cline")


@functools.cache
def adapters() -> Mapping[str, AgentAdapter]:
    """Every adapter by its name, in the order in which they are shown."""
    # Imported when first asked for: reading tables costs more than most commands want to pay.
    from engine.agents.acp import AcpAdapter  # noqa: PLC0415
    from engine.agents.calling import CallableAdapter  # noqa: PLC0415
    from engine.agents.claude import ClaudeAdapter  # noqa: PLC0415
    from engine.agents.codex import CodexAdapter  # noqa: PLC0415
    from engine.agents.command import CommandAdapter  # noqa: PLC0415
    from engine.agents.on_screen.adapter import TerminalAdapter  # noqa: PLC0415
    from engine.agents.presets import AIDER, MINI, OVER_ACP  # noqa: PLC0415
    from engine.agents.scripted import ScriptedAdapter  # noqa: PLC0415
    from engine.agents.table_agent import JsonLinesAdapter, TableAdapter  # noqa: PLC0415
    from engine.agents.tables import shipped_table  # noqa: PLC0415

    tables = (TableAdapter(table=shipped_table(name)) for name in TABLES)
    known: list[AgentAdapter] = [ScriptedAdapter(), CommandAdapter(), TerminalAdapter()]
    known += [ClaudeAdapter(), CodexAdapter(), *tables, AIDER, MINI, AcpAdapter(), *OVER_ACP]
    known += [JsonLinesAdapter(), CallableAdapter()]
    return {adapter.name: adapter for adapter in known}


def adapter_named(name: str) -> AgentAdapter:
    """The adapter of that name; AgentNotFound names the nearest where there is none."""
    known = adapters()
    adapter = known.get(name)
    if adapter is None:
        near = difflib.get_close_matches(name, known, n=1)
        guess = f"Did you mean {near[0]!r}? " if near else ""
        raise AgentNotFound(name, hint=f"{guess}Known agents: {', '.join(known)}.")
    return adapter


def heard(choice: AgentChoice) -> Steering:
    """Return when this agent hears what is said to it while it works."""
    known = adapters().get(choice.adapter)
    if known is None or (choice.adapter == "command" and not is_set(choice, "events")):
        return Steering.NO
    return known.capabilities.steer


def bare_request(
    choice: AgentChoice, runtime: Runtime, environment: Mapping[str, str], **more: Any
) -> LaunchRequest:
    """Return a request by which an agent is launched as far as that goes without a workspace."""
    return LaunchRequest(
        choice=choice,
        prompt="",
        workspace="/",
        home="/",
        permissions=Permissions(mode=PermissionMode.RULES, allow=("*",)),
        environment=environment,
        user_home=environment.get("HOME", ""),
        passed=runtime.holes.env,
        opened=runtime.holes.paths,
        **more,
    )


def check_startable(request: LaunchRequest) -> AgentLaunch:
    """Return how it would be launched.

    Refuse an agent that is not installed, not logged in, or without the user's own provider.

    Raises:
        AgentError: It cannot be started, with what to do about it.
    """
    name, adapter = request.choice.name, adapter_named(request.choice.adapter)
    launch = adapter.launch(request)
    program = launch.argv[0]
    path = launch.env.get("PATH") or request.environment.get("PATH") or os.defpath
    places = [program] if "/" in program else path.split(os.pathsep)
    # A place that leads from the workspace is not there yet.
    if all(Path(one).is_absolute() for one in places) and not shutil.which(program, path=path):
        raise AgentError(
            f"the agent {name!r} is not installed: there is no program {program}",
            hint=f"Install it: {adapter.install_hint}",
        )
    if launch.wants_login:
        raise AgentError(f"the agent {name!r} is not logged in", hint=launch.wants_login)
    return launch


async def find_agents(
    environment: Mapping[str, str], *, with_models: bool = False
) -> tuple[FoundAgent, ...]:
    """Find out what is installed of every agent on this machine, in the order of the registry."""
    known = await anyio.to_thread.run_sync(adapters)
    found: dict[str, FoundAgent] = {}

    async def look(adapter: AgentAdapter) -> None:
        agent = await adapter.find(environment)
        models = await models_of(agent, environment) if with_models else ()
        found[adapter.name] = replace(agent, models=models)

    async with anyio.create_task_group() as group:
        for adapter in known.values():
            group.start_soon(look, adapter)
    return tuple(found[name] for name in known)
