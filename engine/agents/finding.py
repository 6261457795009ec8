"""Looks for agents on this machine: the program, its version, and by what it is logged in.

Asks files before it asks programs: some agents take ten seconds to say their version.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")
_LONGEST_ASK_S = 15.0


@dataclass(frozen=True, kw_only=True)
class LoginTraces:
    """What shows that an agent can log in: variables by name, files below the user's HOME."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """The program's path as the user's own PATH would find it."""
    return shutil.which(name, path=environment.get("PATH", os.defpath))


async def find_version(program: str, arguments: Sequence[str] = ("--version",)) -> str | None:
    """The program's version, from its package if it has one, else by asking it."""
    found = await anyio.to_thread.run_sync(_packaged_version, program)
    return found or await _told_version(program, arguments)


def find_login(traces: LoginTraces, environment: Mapping[str, str]) -> str | None:
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


async def _told_version(program: str, arguments: Sequence[str]) -> str | None:
    with anyio.move_on_after(_LONGEST_ASK_S):
        try:
            said = await anyio.run_process([program, *arguments], check=False)
        except OSError:
            return None
        match = _VERSION.search(said.stdout.decode("utf-8", "replace"))
        return match[0] if match else None
    return None
