"""`plait doctor`: what this machine can enforce, which agents are there, and how to get more."""

import argparse
import os
from dataclasses import asdict
from functools import partial
from typing import Any

from engine.api import find_agents, machine_rows
from tui.commands.base import EXIT_OK, in_loop, put, put_json
from tui.present.clean import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How to tell."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Probe and look; nothing is changed."""
    return in_loop(partial(_doctor, is_json=args.json))


async def _doctor(*, is_json: bool) -> int:
    rows = await machine_rows()
    agents = await find_agents(os.environ)
    if is_json:
        put_json({"machine": [asdict(row) for row in rows], "agents": [asdict(a) for a in agents]})
        return EXIT_OK
    put("this machine")
    for row in rows:
        put(f"  {row.dimension:<8} {row.level:<9} {row.mechanism}")
        if row.reason:
            put(f"           {row.reason}")
        if row.fix:
            put(f"           → {row.fix}")
    put("agents")
    for agent in agents:
        put(f"  {_agent_line(agent)}")
    return EXIT_OK


def _agent_line(agent: Any) -> str:
    if agent.path is None:
        return f"{agent.name:<12} not found     → {agent.install_hint}"
    login = f", {agent.login}" if agent.login else ""
    return f"{agent.name:<12} {clean(agent.version or '')} {agent.driven}{login}"
