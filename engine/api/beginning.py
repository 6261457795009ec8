"""Tell what a run can be started with in a folder: agents, a check, manifests, what is held."""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from os import environ
from pathlib import Path

import anyio
import anyio.to_thread

from engine.agents.contract import FoundAgent
from engine.agents.registry import find_agents
from engine.api.looking import machine_rows
from engine.api.plans import MANIFEST, is_manifest, manifest_in
from engine.errors import EngineError
from engine.git.runner import Repo, Where
from engine.limits import Enforcement
from engine.plan.agents import choose_agent
from engine.plan.model import AgentChoice
from engine.plan.starter import GuessedCheck, guessed_check
from engine.spec.pipeline import Manifest
from engine.values import dataclass

_LONGEST_MANIFEST = 1_000_000
_MOST_FILES = 50_000


@dataclass(frozen=True, kw_only=True)
class OfferedAgent:
    """An agent that a prompt can be given to.

    Attributes:
        name: Its name as `plait run -a` takes it.
        adapter: The adapter that drives it.
        is_installed: Its program is there.
        login: By what it is logged in, in words; None when nothing was found.
        install_hint: How to get it.
    """

    name: str
    adapter: str
    model: str = ""
    is_installed: bool = True
    version: str = ""
    login: str | None = None
    install_hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Beginnings:
    """All that a run can be started with in a folder.

    Attributes:
        agents: Those of the manifest first, then those that are installed, then the others.
        agent: The one that works where nothing is said; empty where there is none.
        check: The check that a prompt's work is held to where nothing is said; perhaps a guess.
        check_from: The file that the check was read or guessed from.
        manifests: The manifests of the folder: a path and the name of each of its pipelines.
        machine: How each dimension holds on this machine.
        files: The files that git keeps there, or would keep, at most fifty thousand of them.
    """

    agents: tuple[OfferedAgent, ...] = ()
    agent: str = ""
    check: str = ""
    check_from: str = ""
    manifests: tuple[tuple[str, str], ...] = ()
    machine: tuple[Enforcement, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def is_check_guessed(self) -> bool:
        """The check was not written for this project by its people."""
        return bool(self.check) and self.check_from != MANIFEST


async def look_for_beginnings(
    folder: Path, environment: Mapping[str, str] | None = None
) -> Beginnings:
    """Look at a folder and at this machine; nothing is changed."""
    env = dict(environ if environment is None else environment)
    rows: tuple[Enforcement, ...] = ()
    found: tuple[FoundAgent, ...] = ()
    files: tuple[str, ...] = ()

    async def probe() -> None:
        nonlocal rows
        rows = await machine_rows(env, folder=folder)

    async def list_files() -> None:
        nonlocal files
        files = await _files(folder, env)

    async with anyio.create_task_group() as beside:
        beside.start_soon(probe)
        beside.start_soon(list_files)
        found = await find_agents(env)
    read = partial(_beginnings, folder, found, env)
    return replace(await anyio.to_thread.run_sync(read), machine=rows, files=files)


async def _files(folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the files of the folder that git knows or would take; none where there is no git."""
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    try:
        repo = await Repo.open(folder, env)
        tree = str(repo.worktree) if repo.worktree else None
        listed = await repo.read(*words, where=Where(worktree=tree))
    except (EngineError, OSError):
        return ()
    return tuple(os.fsdecode(name) for name in listed.split(b"\0")[:_MOST_FILES] if name)


def _beginnings(folder: Path, found: tuple[FoundAgent, ...], env: Mapping[str, str]) -> Beginnings:
    manifest = manifest_in(folder) or Manifest()
    agents = tuple(_offered(manifest, found, env))
    named = manifest.runtime.agent or next(iter(manifest.agents), "")
    best = sorted(agents, key=lambda agent: (not agent.is_installed, agent.login is None))
    check = _check(folder, manifest)
    return Beginnings(
        agents=agents,
        agent=named or next((agent.name for agent in best), ""),
        check=check.command if check else "",
        check_from=check.file if check else "",
        manifests=tuple(_manifests(folder)),
    )


def _offered(
    manifest: Manifest, found: tuple[FoundAgent, ...], env: Mapping[str, str]
) -> Iterator[OfferedAgent]:
    """Yield the manifest's agents, then those of this machine by whether they are installed."""
    known = {agent.name: agent for agent in found}
    for name in manifest.agents:
        choice = choose_agent(name, manifest.agents)
        yield _offer(choice, known.get(choice.adapter), env)
    for agent in sorted(found, key=lambda agent: agent.path is None):
        choice = AgentChoice(name=agent.name, adapter=agent.name)
        if choice.has_vendor and agent.name not in manifest.agents:
            yield _offer(choice, agent, env)


def _offer(choice: AgentChoice, found: FoundAgent | None, env: Mapping[str, str]) -> OfferedAgent:
    offered = OfferedAgent(name=choice.name, adapter=choice.adapter, model=choice.model or "")
    if found is None or not choice.has_vendor:
        program = choice.argv[0] if choice.argv else "/"
        is_there = "/" in program or shutil.which(program, path=env.get("PATH")) is not None
        return replace(offered, is_installed=is_there, login="needs none")
    return replace(
        offered,
        is_installed=found.path is not None,
        version=found.version or "",
        login=found.login,
        install_hint=found.install_hint,
    )


def _check(folder: Path, manifest: Manifest) -> GuessedCheck | None:
    """Return the check of the first step that has one, else a guess."""
    steps = [step for pipeline in manifest.pipelines for step in pipeline.steps]
    written = next((step.check for step in steps if step.check), None)
    if written:
        return GuessedCheck(written, MANIFEST)
    try:
        files = frozenset(entry.name for entry in folder.iterdir())
    except OSError:
        return None
    return guessed_check(files, is_set_up=manifest.workspace.setup is not None)


def _manifests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the folder's manifests, `plait.yaml` first; one that is wrong without a pipeline."""
    paths = [path for ending in ("yaml", "yml") for path in folder.glob(f"*.{ending}")]
    for path in sorted(paths, key=lambda path: (path.name != MANIFEST, path.name)):
        try:
            if path.stat().st_size > _LONGEST_MANIFEST or not is_manifest(path.read_text("utf-8")):
                continue
        except (OSError, ValueError):
            continue
        manifest = manifest_in(folder, path.name)
        names = [one.name for one in manifest.pipelines] if manifest else [""]
        for name in names:
            yield path.name, name
