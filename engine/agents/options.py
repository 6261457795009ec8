"""The options of an agent's choice, with one meaning for all adapters that start a program.

`program`: another program than the usual one; `args`: further arguments, split as a shell would.
"""

import os
import re
import shlex
import shutil
from pathlib import Path

from engine.agents.contract import LaunchRequest
from engine.errors import AgentError
from engine.plan.model import AgentChoice

_TRUE = {"true", "yes", "1", "on"}


def is_set(choice: AgentChoice, option: str) -> bool:
    """An option that is text in a manifest and true in meaning."""
    return choice.options.get(option, "").lower() in _TRUE


def program_of(request: LaunchRequest, usual: str) -> str:
    """The program to start; a `~` is the user's own HOME, not the worker's."""
    program = request.choice.options.get("program") or usual
    return program.replace("~", request.user_home, 1) if program.startswith("~/") else program


def folders_of(request: LaunchRequest, program: str) -> tuple[str, ...]:
    """Folders that a program needs to read where it runs, beside the one it is found in.

    What lies on the PATH is often a link to somewhere that does not: a package of node's with all
    that it depends on, or a virtual environment with its interpreter.
    """
    path = request.choice.env.get("PATH") or request.environment.get("PATH") or os.defpath
    found = shutil.which(program, path=path)
    if found is None or not Path(found).is_absolute():
        return ()  # not there, or a file of the worker's own tree
    real = Path(found).resolve()
    modules = [folder for folder in real.parents if folder.name == "node_modules"]
    if modules:
        return (str(modules[-1]),)
    settings = real.parent.parent / "pyvenv.cfg"
    if not settings.is_file():
        holds_home = Path(request.user_home or "/").is_relative_to(real.parent)
        return (str(real if holds_home else real.parent),)
    homes = re.findall(r"^home\s*=\s*(.+)$", settings.read_text(), re.MULTILINE)
    return (str(settings.parent), *(str(Path(home.strip()).parent) for home in homes))


def more_arguments(request: LaunchRequest) -> tuple[str, ...]:
    """The arguments that the user adds."""
    given = request.choice.options.get("args", "")
    try:
        return tuple(shlex.split(given))
    except ValueError as error:
        raise AgentError(
            f"the args of {request.choice.name!r} cannot be split: {error}",
            hint="Quote them as in a shell.",
        ) from error


def picked(request: LaunchRequest, names: tuple[str, ...]) -> dict[str, str]:
    """Those variables of the user's environment that are there."""
    return {name: request.environment[name] for name in names if request.environment.get(name)}


def flag(name: str, value: str | None) -> tuple[str, ...]:
    """The flag with its value, or nothing where there is no value."""
    return (name, value) if value else ()
