"""`plait validate` and `plait plan`: what a manifest says, before anything runs."""

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from engine.api import (
    Plan,
    check_sites,
    check_sparse_checkouts,
    describe,
    machine_rows,
    plan_from,
    plans_in,
)
from engine.errors import PlanError, SpecError
from engine.limits import Level
from tui.commands.base import EXIT_OK, EXIT_USAGE, put, put_json, say
from tui.words.figures import some
from tui.words.looks import LEVELS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan's path, and how to tell."""
    parser.add_argument("plan", metavar="PLAN", help="a manifest, usually plait.yaml")
    if parser.get_default("command") == "plan":
        parser.add_argument("--pipeline", help="which of its pipelines")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Read it; every problem is reported at once."""
    path = Path(args.plan)
    try:
        if args.command == "validate":
            plans = plans_in(path)
            for check in (check_sites, check_sparse_checkouts):
                anyio.run(check, path.resolve().parent, plans)
        else:
            plans = (plan_from(path, folder=Path.cwd(), pipeline=args.pipeline),)
    except (SpecError, PlanError) as error:
        return _tell_problems(error, is_json=args.json)
    if args.command == "plan":
        described = {**describe(plans[0]), "levels": levels(plans[0])}
        put_json(described) if args.json else put(plan_text(described))
    elif args.json:
        put_json({"ok": True, "problems": []})
    else:
        steps = sum(len(plan.steps) for plan in plans)
        workers = sum(len(step.workers) for plan in plans for step in plan.steps)
        what = f"{some(steps, 'step')}, {some(workers, 'worker')}" if plans else "no pipeline"
        put(f"{args.plan} is valid: {what}")
    return EXIT_OK


def levels(plan: Plan) -> list[dict[str, Any]]:
    """Return how each dimension would hold for this plan here, and how to get more."""
    return [asdict(row) for row in anyio.run(partial(machine_rows, plan=plan))]


def _tell_problems(error: SpecError | PlanError, *, is_json: bool) -> int:
    problems = error.problems if isinstance(error, SpecError) else ()
    if is_json:
        rows = [vars(problem) for problem in problems] or [{"message": str(error)}]
        put_json({"ok": False, "problems": rows})
    else:
        say(str(error))
        if error.hint:
            say(error.hint)
    return EXIT_USAGE


def plan_text(described: dict[str, Any]) -> str:
    """A plan in lines for people."""
    size = f"{some(described['workers'], 'worker')}, {described['at_once']} at once"
    lines = [f"{described['name']}: {size}"]
    lines += [
        f"  clamped: {clamp['where']} asks for {clamp['asked']}, gets {clamp['given']}: "
        f"{clamp['reason']}"
        for clamp in described["clamps"]
    ]
    for step in described["steps"]:
        lines += _step_lines(step)
    held = ", ".join(
        f"{row['dimension']} {LEVELS[Level(row['level'])][0]}" for row in described["levels"]
    )
    lines.append(f"enforced here: {held}")
    for row in described["levels"]:
        if row["level"] != "enforced" and (row["reason"] or row["fix"]):
            lines.append(f"  {row['dimension']}: {row['reason'] or row['mechanism']}")
            lines += [f"    → {row['fix']}"] if row["fix"] else []
    return "\n".join(lines)


def _step_lines(step: dict[str, Any]) -> list[str]:
    after = f" after {', '.join(step['dependencies'])}" if step["dependencies"] else ""
    check = f", check `{step['check']}`" if step["check"] else ""
    lines = [f"{step['name']}{after}: {step['policy']}, merge {step['merge']}{check}"]
    for worker in step["workers"]:
        who = worker["agent"]["name"] if worker["agent"] else f"$ {step['run']}"
        label = f" [{worker['label']}]" if worker["label"] and worker["label"] != who else ""
        lines.append(f"  {worker['worker']}  {who}{label}")
        if worker["prompt"]:
            lines.append(f"    {worker['prompt'].splitlines()[0][:100]}")
        if worker["hint_sentence"]:
            lines.append(f"    {worker['hint_sentence']}")
    if step["sparse_checkout"]:
        lines.append(f"  sparse checkout: {', '.join(step['sparse_checkout'])}")
    limits = {name: value for name, value in step["limits"].items() if value is not None}
    if limits:
        lines.append(
            "  limits: " + ", ".join(f"{name} {value:g}" for name, value in limits.items())
        )
    return lines
