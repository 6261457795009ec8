"""`plait` and `plait attach`: the console on the detached engine of a repository.

What it looks like is shown first, and the engine reached then: one that must be started takes
longer than a screen to be drawn.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, say
from tui.commands.notifying import read_notify
from tui.commands.streams import is_terminal

if TYPE_CHECKING:
    from engine.api import Plan
    from tui.app import PlaitApp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the repository."""
    if parser.get_default("command") == "console":
        parser.add_argument("repo", nargs="?", default=".", metavar="REPO")
    else:
        add_repo(parser)
        parser.add_argument("--watch", action="store_true", help="only look")
    parser.add_argument("--theme", help="one of the themes, or one of your own")


def run(args: argparse.Namespace) -> int:
    """Open it."""
    repo = args.repo
    if not Path(repo).is_dir():
        say(f"{repo} is neither a command nor a folder; `plait --help` lists the commands")
        return EXIT_USAGE
    watch = getattr(args, "watch", False)
    return in_loop(partial(open_console, repo, read_only=watch, theme=args.theme))


async def open_console(
    repo: str,
    *,
    plan: "Plan | None" = None,
    begun: Callable[[str], object] = str,
    read_only: bool = False,
    theme: str | None = None,
) -> int:
    """The console on the detached engine of a repository; a plan is started there first.

    `begun` is told the id of its run.
    """
    if not is_terminal():
        say("the console needs a terminal; `plait run --headless` and `plait status` need none")
        return EXIT_USAGE
    from tui.app import Options, PlaitApp, config_home  # noqa: PLC0415  textual is loaded only when it is shown

    notify = read_notify()
    options = Options(
        config=config_home(),
        shell=shell_words(repo),
        program=program_words(repo),
        folder=Path(repo),
        notifies=notify.is_on,
        is_quiet=notify.is_quiet,
    )
    app = PlaitApp(None, read_only=read_only, theme=theme, options=options)
    connecting = _Connecting(app, repo, plan, begun)
    connecting.is_watching = read_only
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connecting.stay)
        await app.run_async()
        tasks.cancel_scope.cancel()
    if connecting.failed:
        raise connecting.failed
    return EXIT_OK


class _Connecting:
    """The way to the engine, kept as long as the console is open."""

    def __init__(
        self,
        app: "PlaitApp",
        repo: str,
        plan: "Plan | None",
        begun: Callable[[str], object],
    ) -> None:
        self._app = app
        self._repo = repo
        self._plan = plan
        self._begun = begun
        self.is_watching = False
        self.failed: Exception | None = None

    async def stay(self) -> None:
        """Reach the engine once the console is seen; where that fails, close it and keep why."""
        await self._app.has_painted.wait()
        from engine.api import attach, engine_key  # noqa: PLC0415  what is seen first needs none of it
        from engine.errors import EngineError  # noqa: PLC0415
        from engine.messages.questions import StartPlan  # noqa: PLC0415
        from engine.messages.roles import Role  # noqa: PLC0415

        role = Role.WATCHER if self.is_watching else Role.OWNER
        try:
            async with attach(self._repo, role=role) as port:
                if self._plan is not None:
                    self._begun(await port.ask(StartPlan(self._plan)))
                self._app.reach(port, Path(await engine_key(self._repo)) / "console.json")
                await anyio.sleep_forever()
        except (EngineError, OSError) as error:
            self.failed = error
            self._app.exit()


def program_words(repo: str | PathLike[str]) -> Callable[..., Sequence[str]]:
    """The command that runs a sub-command on a repository, from its name and its words."""
    plait = (sys.executable, "-m", "tui.cli")
    return lambda name, *words: (*plait, name, "-C", str(repo), *words)


def shell_words(repo: str | PathLike[str]) -> Callable[[str, str], Sequence[str]]:
    """The command that opens a worker's sandbox, from run and worker."""
    plait = program_words(repo)
    return lambda run, worker: plait("shell", "--run", run, worker)
