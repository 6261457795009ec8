"""`plait doctor`: versions, what this machine can enforce, which agents are there, how to get more.

Its output is made to be pasted into a bug report: it holds no value of a variable and no login, and
the home folder is written `~`.
"""

import argparse
import os
import platform
import shutil
import sqlite3
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import anyio

from engine.api import find_agents, machine_rows, used_today
from engine.limits import Enforcement
from engine.messages.results import LoginUse
from tui.commands.agents import abilities, without_home
from tui.commands.base import EXIT_OK, in_loop, put, put_json
from tui.words.clean import clean
from tui.words.figures import used

_LIBRARIES = ("textual", "rich", "anyio", "pydantic", "GitPython", "psutil", "PyYAML")
_PROGRAMS = ("git", "bwrap", "tmux", "git-lfs", "gh", "node")
_ASKED = {"tmux": "-V"}
_PATIENCE_S = 5.0
_WIDTH = 80
_MARGIN = " " * 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how to tell it."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Probe and look; nothing is changed."""
    return in_loop(partial(_doctor, is_json=args.json))


async def _doctor(*, is_json: bool) -> int:
    versions = await _versions()
    rows = await machine_rows()
    agents = await find_agents(os.environ)
    today = await used_today(os.environ)
    if is_json:
        told = [{**asdict(a), "today": _asdict(today.get(a.name))} for a in agents]
        machine = [asdict(row) for row in rows]
        put_json(without_home({"versions": versions, "machine": machine, "agents": told}))
        return EXIT_OK
    lines = ["versions", *(f"  {name:<13} {version}" for name, version in versions.items())]
    lines += ["this machine", *_machine_lines(rows), "agents"]
    for agent in agents:
        if agent.path is not None:
            lines += _agent_lines(agent, today.get(agent.name))
    lines.append("not found, or not set up")
    lines += [f"  {a.name:<13} → {a.install_hint}" for a in agents if a.path is None]
    put(without_home("\n".join(lines)))
    return EXIT_OK


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
        return str(line)[:_WIDTH] or "does not report its version"
    return "does not answer"


def _machine_lines(rows: Iterable[Enforcement]) -> Iterator[str]:
    for row in rows:
        yield f"  {row.dimension:<8} {row.level:<9} {row.mechanism}"
        if row.reason:
            yield f"           {row.reason}"
        if row.fix:
            yield f"           → {row.fix}"


def _agent_lines(agent: Any, today: LoginUse | None) -> list[str]:
    """Its version and login, how it is driven, what it can, and what was used by it today."""
    login = agent.login or "no login found"
    lines = [f"  {agent.name:<13} {clean(agent.version or ''):<10} {login}".rstrip()]
    lines += textwrap.wrap(
        f"{agent.driven}; {', '.join(abilities(agent.capabilities))}",
        _WIDTH,
        initial_indent=_MARGIN,
        subsequent_indent=_MARGIN,
    )
    lines += (f"{_MARGIN}{clean(line)}" for line in agent.settings.lines)
    if today is not None and today.attempts:
        lines.append(f"{_MARGIN}today: {used(today)}")
    return lines


def _asdict(use: LoginUse | None) -> dict[str, Any] | None:
    return None if use is None else asdict(use)
