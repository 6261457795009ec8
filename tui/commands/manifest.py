"""`plait validate` and `plait plan`: what a manifest says, before anything runs."""

import argparse
from pathlib import Path

from engine.api import plan_from, plan_rows
from engine.errors import PlanError, SpecError
from tui.commands.base import EXIT_OK, EXIT_USAGE, put, put_json, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A plan's path, and how to tell."""
    parser.add_argument("plan", metavar="PLAN", help="a manifest, usually plait.yaml")
    parser.add_argument("--pipeline", help="which of its pipelines")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Read it; every problem is told at once."""
    try:
        plan = plan_from(Path(args.plan), folder=Path.cwd(), pipeline=args.pipeline)
    except (SpecError, PlanError) as error:
        return _tell_problems(error, is_json=args.json)
    if args.command == "validate":
        workers = sum(len(step.workers) for step in plan.steps)
        if args.json:
            put_json({"ok": True, "problems": []})
        else:
            put(f"{args.plan} is well-formed: {len(plan.steps)} steps, {workers} workers")
        return EXIT_OK
    described = plan_rows(plan)
    if args.json:
        put_json(described)
    else:
        put(described_text(described))
    return EXIT_OK


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


def described_text(described: dict[str, object]) -> str:
    """A plan in lines for people."""
    from engine.api import plan_text  # noqa: PLC0415  one reader of plans is enough

    return plan_text(described)
