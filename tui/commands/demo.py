"""`plait demo`: a sample repository and scripted agents; everything else about it is real."""

import argparse
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from engine.api import EnginePort, make_repository, plan_from, reach
from engine.messages import commands as c
from engine.messages.events import Asked
from engine.messages.questions import ReadRun, StartPlan
from engine.messages.results import RunView
from engine.phases import Phase
from tui.commands.base import EXIT_FAILED, EXIT_OK, in_loop, put, run_console, say
from tui.commands.following import sentence
from tui.commands.streams import is_terminal

_PROJECT = Path(__file__).parent.parent / "demo" / "project"
_TOLD = (
    ("a worker hit its memory limit; its work was kept and its retry succeeded", "stream"),
    ("three candidates ran; one was chosen, the others stay on their refs", "quotes"),
    ("two workers changed the same line: one change landed, the other conflicts", "labels"),
    ("the tests ran on the chosen candidate", "verify"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the place to play it."""
    parser.add_argument(
        "--headless", action="store_true", help="without the console: print the story"
    )
    parser.add_argument("--keep", action="store_true", help="keep the sample repository")


def run(args: argparse.Namespace) -> int:
    """Make the sample, play it, and take it away again."""
    root = Path(tempfile.mkdtemp(prefix="plait-demo-"))
    folder = root / "tally"
    env = {"PLAIT_STATE_HOME": str(root / "state")}
    try:
        return in_loop(partial(_play, folder, env, is_headless=args.headless))
    finally:
        if args.keep:
            say(f"the sample is in {folder}")
        else:
            shutil.rmtree(root, ignore_errors=True)


async def make_sample(folder: Path, env: Mapping[str, str]) -> None:
    """Make the repository that the demo plays in."""
    shutil.copytree(_PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    await make_repository(folder, env, message="The sample project")


async def _play(folder: Path, more: dict[str, str], *, is_headless: bool) -> int:
    from os import environ  # noqa: PLC0415  the command's own, with the sample's on top

    environ.update(more)
    await make_sample(folder, environ)
    if not is_headless and is_terminal():
        return await _in_console(folder)
    plan = plan_from(folder / "plait.yaml", folder=folder)
    async with reach(folder) as (port, _):
        run = await port.ask(StartPlan(plan))
        await _drive(port, run)
        return _tell(await port.ask(ReadRun(run)))


async def _in_console(folder: Path) -> int:
    from engine.api import Engine  # noqa: PLC0415  only the console needs one of its own
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  loaded only when shown
    from tui.commands.console import program_words, shell_words  # noqa: PLC0415

    async with Engine.open(folder) as engine:
        await engine.start(plan_from(folder / "plait.yaml", folder=folder))
        shell = shell_words(folder)
        options = Options(
            config=config_home(),
            shell=shell,
            program=program_words(folder),
            folder=folder,
            can_stay_alive=False,
        )
        await run_console(PlaitApp(engine.port, options=options))
    return EXIT_OK


async def _drive(port: EnginePort, run: str) -> None:
    """Do what a person would: deny what is asked, choose, land, and meet the conflict."""
    todo = ["choose", "land rounding/worker_1", "land labels/worker_1"]
    async for told in port.events(0, run=run):
        line = sentence(told)
        if line:
            say(line)
        if isinstance(told.event, Asked):
            await port.command(c.Answer(worker=told.event.worker, answer="deny", run=run))
        view = await port.ask(ReadRun(run))
        if not todo and (view.is_waiting or view.ended_at is not None):
            return
        if todo and await _next_deed(port, view, todo[0]):
            todo.pop(0)


async def _next_deed(port: EnginePort, view: RunView, deed: str) -> bool:
    """Carry the next deed out if its time has come."""
    if deed == "choose":
        is_due = next(step for step in view.steps if step.name == "quotes").is_choice_due
        if is_due:
            await port.command(c.Choose(worker="quotes/worker_3", run=view.run))
        return is_due
    worker = deed.removeprefix("land ")
    others = view.worker("rounding/worker_1").phase
    is_first = worker.startswith("rounding")
    is_due = view.worker(worker).phase is Phase.REVIEWING and (is_first or others is Phase.LANDED)
    if is_due:
        await port.command(c.Land(worker=worker, run=view.run))
    return is_due


def _tell(view: RunView) -> int:
    """Check what came out against what was promised, and tell it."""
    stream = view.worker("stream/worker_1")
    quotes = [w.phase for w in view.workers if w.step == "quotes"]
    came_out = {
        "stream": stream.attempt > 1 and stream.phase is Phase.REVIEWING,
        "quotes": quotes.count(Phase.REVIEWING) == 1 and Phase.DISCARDED in quotes,
        "labels": view.worker("labels/worker_1").phase is Phase.CONFLICTED,
        "verify": view.worker("verify/worker_1").phase is Phase.FINISHED,
    }
    for words, step in _TOLD:
        put(f"{'✓' if came_out[step] else '✗'} {words}")
    return EXIT_OK if all(came_out.values()) else EXIT_FAILED
