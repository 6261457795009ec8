"""`plait serve`: an engine without a console, and the user's command that is run for notifications.

The engine that is left alone runs it, so that it is run whether a console is open or not. It hears
what happened in its environment, never in its words: what agents write is no command.
"""

import argparse
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio

from engine.api import Engine
from engine.errors import EngineError
from engine.messages.events import (
    Asked,
    ChoiceWanted,
    ConflictsFound,
    ReviewWanted,
    RunFinished,
    Told,
)
from tui.commands.answering import answered
from tui.commands.base import EXIT_OK, add_repo, in_loop
from tui.commands.following import sentence
from tui.commands.notifying import Notify, read_notify
from tui.commands.status import leave_answers
from tui.words.clean import clean_code

_WANTED = Asked | ChoiceWanted | ConflictsFound | ReviewWanted | RunFinished
_PATIENCE_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the repository, and which of its interrupted runs go on."""
    add_repo(parser)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="resume only these runs, not all")


def run(args: argparse.Namespace) -> int:
    """Serve until asked to end."""
    code = in_loop(partial(_serve, args.repo, args.runs))
    leave_answers(args.repo)
    return code


async def _serve(repo: str, runs: Sequence[str]) -> int:
    """An engine for others; it ends when asked to, or when nothing runs and nobody looks."""
    async with Engine.open(repo, detach=True) as engine, anyio.create_task_group() as tasks:

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        engine.run_commands(answered)
        notify = read_notify()
        if notify.hook:
            tasks.start_soon(_run_hook, engine, notify)
        if runs:
            await _take_up(engine, runs)
        else:
            await engine.resume_unfinished()
        await engine.wait_unneeded()
        tasks.cancel_scope.cancel()
    return EXIT_OK


async def _take_up(engine: Engine, runs: Sequence[str]) -> None:
    for run_id in runs:
        with suppress(EngineError):  # it cannot be read: the others go on
            await engine.resume(run_id)


async def _run_hook(engine: Engine, notify: Notify) -> None:
    """Run the command whenever a human is needed or a run has ended, from now on."""
    began = (await engine.snapshot()).at
    async for told in engine.events():
        if isinstance(told.event, _WANTED) and told.at >= began and not notify.is_quiet():
            with anyio.move_on_after(_PATIENCE_S):
                await anyio.run_process(
                    ["sh", "-c", notify.hook], check=False, env={**os.environ, **_described(told)}
                )


def _described(told: Told) -> dict[str, str]:
    return {
        "PLAIT_EVENT": type(told.event).__name__,
        "PLAIT_RUN": told.run,
        "PLAIT_WORKER": str(getattr(told.event, "worker", "")),
        "PLAIT_TEXT": clean_code(sentence(told) or f"run {told.run}"),
    }
