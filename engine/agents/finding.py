"""Look for agents on this machine: the program, its version, and its login.

It asks files before it asks programs: some agents take ten seconds to say their version.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from engine.agents.contract import (
    AgentAdapter,
    CopiedSettings,
    FoundAgent,
    LaunchRequest,
    LoginTraces,
)
from engine.agents.settings.copied import SettingsCopy
from engine.errors import AgentError
from engine.plan.model import AgentChoice
from engine.values import dataclass

_VERSION = re.compile(r"\d{1,9}\.\d{1,9}(?:\.\d{1,9})?[\w.+-]*")
_LONGEST_ASK_S = 15.0


@dataclass(frozen=True, kw_only=True)
class ProgramSearch:
    """A program to look for by its name, and what else is known of it.

    Attributes:
        driven: Its way of being driven.
        settings: What copies the user's own settings of it.
    """

    program: str
    driven: str
    settings: Callable[[LaunchRequest], SettingsCopy] | None = None


async def find_agent(
    adapter: AgentAdapter, search: ProgramSearch, environment: Mapping[str, str]
) -> FoundAgent:
    """Find an agent's program, its version, and the login it would use."""

    def look() -> tuple[str | None, str | None, str | None, CopiedSettings]:
        path = shutil.which(search.program, path=environment.get("PATH", os.defpath))
        version = _packaged_version(path) if path else None
        login = _login(adapter.login, environment)
        return path, version, login, _settings(adapter, search, environment)

    path, version, login, settings = await anyio.to_thread.run_sync(look)
    if path is not None and version is None:
        version = await _told_version(path)
    return FoundAgent(
        name=adapter.name,
        path=path,
        version=version,
        login=login,
        driven=search.driven,
        capabilities=adapter.capabilities,
        install_hint=adapter.install_hint,
        settings=settings,
    )


def _settings(
    adapter: AgentAdapter, search: ProgramSearch, environment: Mapping[str, str]
) -> CopiedSettings:
    """Return what a worker would get by default of the user's own settings."""
    if search.settings is None:
        return CopiedSettings()
    request = LaunchRequest(
        choice=AgentChoice(name=adapter.name, adapter=adapter.name),
        prompt="",
        workspace="",
        home="",
        environment=environment,
        user_home=environment.get("HOME", ""),
        is_confined=True,
    )
    try:
        return search.settings(request).listed
    except AgentError as error:
        return CopiedSettings(left_out=(str(error),))


def _login(traces: LoginTraces, environment: Mapping[str, str]) -> str | None:
    """The first trace of a login that is there, in words; values are never shown."""
    for name in traces.variables:
        if environment.get(name):
            return f"by {name}"
    home = environment.get("HOME", "")
    for name in traces.files:
        if home and Path(home, name).is_file():
            return f"by ~/{name}"
    return None


def _packaged_version(program: str) -> str | None:
    real = Path(program).resolve()
    for folder in list(real.parents)[:5]:
        try:
            package = json.loads((folder / "package.json").read_bytes())
            if package.get("bin") and (version := package.get("version")):
                return str(version)
        except (OSError, ValueError, AttributeError):
            continue
    return None


async def _told_version(program: str) -> str | None:
    """Return its answer; None where it cannot be started, or takes too long."""
    with anyio.move_on_after(_LONGEST_ASK_S), contextlib.suppress(OSError):
        said = await anyio.run_process((program, "--version"), check=False)
        match = _VERSION.search(said.stdout.decode("utf-8", "replace"))
        return match[0] if match else None
    return None
