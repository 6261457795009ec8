"""`plait doctor`: what this machine can enforce, which agents are there, and how to get more."""

import argparse
import os
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

from engine.api import find_agents, machine_rows, used_today
from engine.limits import Enforcement
from engine.results import LoginUse
from tui.commands.base import EXIT_OK, in_loop, put, put_json
from tui.present.clean import clean
from tui.present.figures import used

_WIDTH = 80
_MARGIN = " " * 16
_HEARD = {
    "now": "hears you at once",
    "after_turn": "hears you after its turn",
    "by_resume": "hears you when it is taken up again",
    "no": "hears nothing while it works",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to tell."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Probe and look; nothing is changed."""
    return in_loop(partial(_doctor, is_json=args.json))


async def _doctor(*, is_json: bool) -> int:
    rows = await machine_rows()
    agents = await find_agents(os.environ)
    today = await used_today(os.environ)
    if is_json:
        told = [{**asdict(a), "today": _asdict(today.get(a.name))} for a in agents]
        put_json({"machine": [asdict(row) for row in rows], "agents": told})
        return EXIT_OK
    put("\n".join(["this machine", *_machine_lines(rows)]))
    put("agents")
    for agent in agents:
        if agent.path is not None:
            put("\n".join(_agent_lines(agent, today.get(agent.name))))
    put("not found, or to be set up by you")
    for agent in agents:
        if agent.path is None:
            put(f"  {agent.name:<13} → {agent.install_hint}")
    return EXIT_OK


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
        f"{agent.driven}; {', '.join(_can(agent.capabilities))}",
        _WIDTH,
        initial_indent=_MARGIN,
        subsequent_indent=_MARGIN,
    )
    if today is not None and today.attempts:
        lines.append(f"{_MARGIN}today: {used(today)}")
    return lines


def _can(can: Any) -> list[str]:
    told = [word for word, is_told in (("tokens", can.usage), ("cost", can.cost)) if is_told]
    found = [
        "asks before it acts" if can.permission else "cannot ask",
        _HEARD[can.steer],
        "goes on in its session" if can.resume else "begins anew each time",
        *(["forks"] if can.fork else []),
        f"tells {' and '.join(told)}" if told else "tells neither tokens nor cost",
        f"hint by {can.hint}",
    ]
    return [str(words) for words in found]


def _asdict(use: LoginUse | None) -> dict[str, Any] | None:
    return None if use is None else asdict(use)
