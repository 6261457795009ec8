"""`plait agents`: the agents that are here, their logins, and what each can do."""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from engine.api import find_agents
from tui.commands.base import EXIT_OK, in_loop, put, put_json
from tui.commands.listing import listed
from tui.words.clean import clean

_HEARD = {
    "now": "reads your messages at once",
    "after_turn": "reads your messages after its turn",
    "by_resume": "reads your messages when it resumes",
    "no": "reads no messages while it works",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how to tell it, and if the clients are to list their models."""
    parser.add_argument(
        "--models", action="store_true", help="ask the clients that can list their models"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Look for them; nothing is started but what says its version or its models."""
    return in_loop(partial(_agents, args))


async def _agents(args: argparse.Namespace) -> int:
    found = await find_agents(os.environ, with_models=args.models)
    if args.json:
        put_json(without_home({"agents": [asdict(agent) for agent in found]}))
    else:
        put(without_home("\n".join(agent_lines(found))))
    return EXIT_OK


def agent_lines(agents: Sequence[Any]) -> Iterator[str]:
    """Yield those that are here and what each can do, then a line that installs each other one."""
    here = [agent for agent in agents if agent.path is not None]
    if not here:
        yield "No agent is installed here."
    for agent in here:
        yield from _told(agent)
    yield "not installed, or not set up"
    yield from (f"  {a.name:<13} → {a.install_hint}" for a in agents if a.path is None)


def _told(agent: Any) -> Iterator[str]:
    """Yield its version, login and model, then its abilities, then the models that it listed."""
    model = clean(agent.settings.model)
    about = (
        f"version {clean(agent.version)}" if agent.version else "",
        clean(agent.login or "no login found"),
        f"model {model}" if model else "its default model",
    )
    yield from listed(agent.name, ", ".join(filter(None, about)), indent=0)
    yield from listed("", ", ".join(abilities(agent.capabilities)[:-1]), indent=0)
    if agent.models:
        yield from listed("", f"models: {clean(', '.join(agent.models))}", indent=0)


def abilities(can: Any) -> list[str]:
    """Return the abilities of an agent as plait drives it, in words."""
    told = [word for word, is_told in (("tokens", can.usage), ("cost", can.cost)) if is_told]
    found = [
        "asks before it acts" if can.permission else "cannot ask",
        _HEARD[can.steer],
        "resumes its session" if can.resume else "starts a new session each time",
        *(["forks"] if can.fork else []),
        f"reports {' and '.join(told)}" if told else "reports neither tokens nor cost",
        f"sub-agent hint by {can.hint}",
    ]
    return [str(words) for words in found]


def without_home(value: Any) -> Any:
    """The same with the user's home folder written `~`."""
    home = os.path.expanduser("~")  # noqa: PTH111  it may be anything, Path would tidy it
    match value:
        case str() if len(home) > 1:
            return value.replace(home, "~")
        case dict():
            return {name: without_home(each) for name, each in value.items()}
        case list() | tuple():
            return [without_home(each) for each in value]
        case _:
            return value
