"""What the options of an agent's choice mean, alike for every adapter that starts a program.

`program`: another program than the usual one; `args`: further arguments, split as a shell would.
"""

import shlex

from engine.agents.contract import LaunchRequest
from engine.errors import AgentError

_TRUE = {"true", "yes", "1", "on"}


def is_set(request: LaunchRequest, option: str) -> bool:
    """An option that is text in a manifest and true in meaning."""
    return request.choice.options.get(option, "").lower() in _TRUE


def program_of(request: LaunchRequest, usual: str) -> str:
    """The program to start."""
    return request.choice.options.get("program") or usual


def more_arguments(request: LaunchRequest) -> tuple[str, ...]:
    """The arguments that the user adds."""
    given = request.choice.options.get("args", "")
    try:
        return tuple(shlex.split(given))
    except ValueError as error:
        raise AgentError(
            f"the args of {request.choice.name!r} cannot be split: {error}",
            hint="Quote them as a shell wants them quoted.",
        ) from error


def picked(request: LaunchRequest, names: tuple[str, ...]) -> dict[str, str]:
    """Those variables of the user's environment that are there."""
    return {name: request.environment[name] for name in names if request.environment.get(name)}


def flag(name: str, value: str | None) -> tuple[str, ...]:
    """The flag with its value, or nothing where there is no value."""
    return (name, value) if value else ()
