"""`plait doctor`: what holds for a run here, what is missing, which agents are here.

It sums up; `--all` says everything. Both are made to be pasted into a bug report: they hold no
value of a variable and no login, and the home folder is written `~`.
"""

import argparse
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import anyio

from engine.api import find_agents, machine_rows, used_today
from engine.limits import Enforcement, Level
from engine.messages.results import LoginUse
from tui.commands.agents import abilities, without_home
from tui.commands.base import EXIT_OK, in_loop, put, put_json
from tui.commands.listing import listed, wrapped
from tui.words.clean import clean
from tui.words.figures import some, used
from tui.words.looks import LEVELS
from tui.words.starting import by_level

_LIBRARIES = ("textual", "rich", "anyio", "pydantic", "GitPython", "psutil", "PyYAML")
_PROGRAMS = ("git", "bwrap", "tmux", "git-lfs", "gh", "node")
_ASKED = {"tmux": "-V"}
_ADDED = {
    "git-lfs": "large files, as your repository keeps them",
    "gh": "`plait pr` can open pull requests, and prompts can insert GitHub issues",
}
"""Optional programs, and what each adds; a sandbox is missing where a level says so."""
_INSTALLERS = {
    "apt": "sudo apt install",
    "dnf": "sudo dnf install",
    "zypper": "sudo zypper install",
    "pacman": "sudo pacman -S",
}
_PACKAGES = {("pacman", "gh"): "github-cli"}
_NO_LOGIN = "no login found"
_PATIENCE_S = 5.0
_LONGEST = 80
_MARGIN = " " * 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how much to tell, and how."""
    parser.add_argument("--all", action="store_true", help="everything, for a bug report")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Probe and look; nothing is changed."""
    return in_loop(partial(_doctor, is_json=args.json, is_whole=args.all))


async def _doctor(*, is_json: bool, is_whole: bool) -> int:
    rows = await machine_rows(folder=Path())
    agents = await find_agents(os.environ)
    if not (is_json or is_whole):
        git = await _version_of("git")
        put(without_home("\n".join(summary_lines(rows, agents, git))))
        return EXIT_OK
    versions = await _versions()
    today = await used_today(os.environ)
    if is_json:
        told = [{**asdict(a), "today": _asdict(today.get(a.name))} for a in agents]
        machine = [asdict(row) for row in rows]
        put_json(without_home({"versions": versions, "machine": machine, "agents": told}))
        return EXIT_OK
    put(without_home("\n".join(_whole_lines(versions, rows, agents, today))))
    return EXIT_OK


# In short.


def summary_lines(rows: Sequence[Enforcement], agents: Sequence[Any], git: str) -> Iterator[str]:
    """Yield what works, then what is missing and the one command that gets it."""
    of = f"Python {platform.python_version()}, {git}, {platform.system()} {platform.release()}"
    yield from wrapped(f"plait {_installed('plait')}, {of}", "", "  ")
    yield from ("", "a run in this folder")
    for level, held in by_level(rows).items():
        yield from listed(LEVELS[level][0], held)
    yield from _better(rows)
    yield from ("", "agents", *_agents_in_short(agents))
    missing = [name for name in _ADDED if shutil.which(name) is None]
    if missing:
        yield from ("", "not here, and not needed")
    for name in missing:
        yield from listed(name, f"{_ADDED[name]}{_getting(name)}")
    yield ""
    yield "`plait doctor --all` says everything, for a bug report; it holds no secrets."


def _better(rows: Iterable[Enforcement]) -> Iterator[str]:
    """Yield what would make more of it hold, once for all that it helps."""
    fixes: dict[str, list[Enforcement]] = {}
    for row in rows:
        if row.fix and row.level is not Level.ENFORCED:
            fixes.setdefault(row.fix, []).append(row)
    for fix, helped in fixes.items():
        names = ", ".join(str(row.dimension) for row in helped)
        yield from wrapped(f"→ {names}: {fix}", "  ", "    ")


def _agents_in_short(agents: Sequence[Any]) -> Iterator[str]:
    """Yield those that are here with their logins, then how to get the others, or a first one."""
    asked = [agent for agent in agents if agent.login != "needs none"]
    here = [agent for agent in asked if agent.path is not None]
    away = [agent for agent in asked if agent.path is None]
    for agent in here:
        login = agent.login or f"{_NO_LOGIN}: log in with {agent.name} itself"
        known = "  ".join(filter(None, (clean(agent.version or ""), clean(login))))
        yield from listed(agent.name, known)
    if not here and away:
        yield "  No agent is installed. For example:"
        yield from (f"  → {agent.install_hint}" for agent in away if agent.name == "claude")
    if away:
        many = some(len(away), "agent")
        yield from listed("not here", f"{many}; `plait agents` says how to get each")


def _getting(name: str) -> str:
    """Return the command of this system that installs a program; empty where none is known."""
    tool = next((tool for tool in _INSTALLERS if shutil.which(tool)), "")
    package = _PACKAGES.get((tool, name), name)
    return f" → {_INSTALLERS[tool]} {package}" if tool else ""


# In full.


def _whole_lines(
    versions: Mapping[str, str],
    rows: Iterable[Enforcement],
    agents: Sequence[Any],
    today: Mapping[str, LoginUse],
) -> Iterator[str]:
    yield "versions"
    yield from (f"  {name:<13} {version}" for name, version in versions.items())
    yield from ("a run in this folder", *_machine_lines(rows), "agents")
    for agent in agents:
        if agent.path is not None:
            yield from _agent_lines(agent, today.get(agent.name))
    yield "not found, or not set up"
    yield from (f"  {a.name:<13} → {a.install_hint}" for a in agents if a.path is None)


async def _versions() -> dict[str, str]:
    """The version of everything that a fault may be of."""
    found = {name: _installed(name) for name in ("plait", *_LIBRARIES)}
    found["Python"] = f"{platform.python_version()} ({platform.python_implementation()})"
    found["SQLite"] = sqlite3.sqlite_version
    found["system"] = platform.platform()
    encoding = f"{sys.stdout.encoding}, TERM {os.environ.get('TERM', 'not set')}"
    found["output"] = encoding
    for name in _PROGRAMS:
        found[name] = await _version_of(name)
    return found


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


async def _version_of(program: str) -> str:
    """The first line that a program says of its version."""
    path = shutil.which(program)
    if path is None:
        return "not installed"
    with anyio.move_on_after(_PATIENCE_S):
        try:
            done = await anyio.run_process([path, _ASKED.get(program, "--version")], check=False)
        except OSError as error:
            return f"cannot start: {error.strerror}"
        said = (done.stdout or done.stderr).decode(errors="replace").strip()
        line = without_home(clean(said.partition("\n")[0]))
        return str(line)[:_LONGEST] or "does not report its version"
    return "does not answer"


def _machine_lines(rows: Iterable[Enforcement]) -> Iterator[str]:
    wide = max(len(name) for name, _ in LEVELS.values())
    for row in rows:
        yield f"  {row.dimension:<8} {LEVELS[row.level][0]:<{wide}} {row.mechanism}"
        yield from wrapped(row.reason, " " * 11, " " * 11) if row.reason else ()
        yield from wrapped(f"→ {row.fix}", " " * 11, " " * 13) if row.fix else ()


def _agent_lines(agent: Any, today: LoginUse | None) -> Iterator[str]:
    """Its version and login, how it is driven, what it can, and what was used by it today."""
    login = agent.login or _NO_LOGIN
    yield f"  {agent.name:<13} {clean(agent.version or ''):<10} {login}".rstrip()
    yield from wrapped(
        f"{agent.driven}; {', '.join(abilities(agent.capabilities))}", _MARGIN, _MARGIN
    )
    for line in agent.settings.lines:
        yield from wrapped(clean(line), _MARGIN, _MARGIN)
    if today is not None and today.attempts:
        yield f"{_MARGIN}today: {used(today)}"


def _asdict(use: LoginUse | None) -> dict[str, Any] | None:
    return None if use is None else asdict(use)
