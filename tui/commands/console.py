"""`plait`, `plait attach` and `plait serve`: the console, and the engine it looks at."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

import anyio

from engine.api import Engine, Plan, attach, engine_key
from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, say
from tui.commands.notifying import read_notify, run_hook


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which repository."""
    name = parser.get_default("command")
    if name == "console":
        parser.add_argument("repo", nargs="?", default=".", metavar="REPO")
    else:
        add_repo(parser)
    if name == "attach":
        parser.add_argument("--watch", action="store_true", help="only look")
    if name != "serve":
        parser.add_argument("--theme", help="one of the themes, or one of your own")


def run(args: argparse.Namespace) -> int:
    """Open it."""
    if args.command == "serve":
        return in_loop(partial(_serve, args.repo))
    repo = args.repo
    if not Path(repo).is_dir():
        say(f"{repo} is neither a command nor a folder; `plait --help` lists the commands")
        return EXIT_USAGE
    watch = getattr(args, "watch", False)
    return in_loop(partial(open_console, repo, read_only=watch, theme=args.theme))


async def open_console(
    repo: str, *, plan: Plan | None = None, read_only: bool = False, theme: str | None = None
) -> int:
    """The console on the detached engine of a repository; a plan is started there first."""
    if not sys.stdout.isatty():
        say("the console needs a terminal; `plait run --headless` and `plait status` need none")
        return EXIT_USAGE
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  textual is loaded only when it is shown

    async with attach(repo) as port:
        if plan is not None:
            await port.start(plan)
        shell, notifies = shell_words(repo), read_notify().is_on
        memory = Path(await engine_key(repo)) / "console.json"
        options = Options(config=config_home(), shell=shell, notifies=notifies, memory=memory)
        app = PlaitApp(port, read_only=read_only, theme=theme, options=options)
        await app.run_async()
    return EXIT_OK


def shell_words(repo: str | PathLike[str]) -> Callable[[str, str], Sequence[str]]:
    """The command that opens a worker's sandbox, from run and worker."""
    plait = (sys.executable, "-m", "tui.cli", "shell", "-C", str(repo))
    return lambda run, worker: (*plait, "--run", run, worker)


async def _serve(repo: str) -> int:
    """An engine for others; it ends when asked to, or when nothing runs and nobody looks."""
    async with Engine.open(repo, detach=True) as engine, anyio.create_task_group() as tasks:

        async def listen() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        if hook := read_notify().hook:
            tasks.start_soon(run_hook, engine, hook)
        await engine.resume_unfinished()
        await engine.wait_unneeded()
        tasks.cancel_scope.cancel()
    return EXIT_OK
