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
from typing import TYPE_CHECKING, NamedTuple

import anyio

from tui.commands.base import EXIT_OK, EXIT_USAGE, add_repo, in_loop, run_console, say
from tui.commands.notifying import read_notify
from tui.commands.streams import is_terminal

if TYPE_CHECKING:
    from engine.api import EnginePort, Plan
    from engine.messages.results import RunView
    from tui.app import PlaitApp


class Place(NamedTuple):
    """Name a worker to begin at; `types` begins in its terminal."""

    worker: str
    types: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the repository."""
    if parser.get_default("command") == "console":
        parser.add_argument("repo", nargs="?", default=".", metavar="REPO")
    else:
        add_repo(parser)
        about = "open on the page of this worker: [RUN/]STEP/worker_I, or the end of that name"
        parser.add_argument("worker", nargs="?", default="", metavar="WORKER", help=about)
        parser.add_argument(
            "--terminal",
            action="store_true",
            help="with WORKER: type into its agent's terminal, or into a shell in its sandbox",
        )
        parser.add_argument(
            "--watch", action="store_true", help="watch only: no key changes anything"
        )
    parser.add_argument("--theme", help="a theme, built in or your own")


def run(args: argparse.Namespace) -> int:
    """Open it."""
    repo = args.repo
    if not Path(repo).is_dir():
        say(f"{repo} is neither a command nor a folder; `plait --help` lists the commands")
        return EXIT_USAGE
    watch, worker = getattr(args, "watch", False), getattr(args, "worker", "")
    types = getattr(args, "terminal", False)
    if types and (watch or not worker):
        say("--terminal needs a WORKER, and does not go with --watch")
        return EXIT_USAGE
    place = Place(worker, types) if worker else None
    return in_loop(partial(open_console, repo, read_only=watch, theme=args.theme, place=place))


async def open_console(
    repo: str,
    *,
    plan: "Plan | None" = None,
    begun: Callable[[str], object] = str,
    read_only: bool = False,
    theme: str | None = None,
    place: Place | None = None,
) -> int:
    """The console on the detached engine of a repository; a plan is started there first.

    Args:
        repo: The repository.
        plan: What is started.
        begun: Called with the id of its run.
        read_only: Change nothing.
        theme: One of the themes.
        place: Begin there.
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
        begins_on="worker" if place else "fleet",
    )
    app = PlaitApp(None, read_only=read_only, theme=theme, options=options)
    connecting = _Connecting(app, repo, plan, begun)
    connecting.is_watching = read_only
    connecting.place = place
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connecting.stay)
        await run_console(app)
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
        self.place: Place | None = None
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
                found = await _found(port, self.place) if self.place else None
                self._app.reach(port, Path(await engine_key(self._repo)) / "console.json")
                if found:
                    await self._begin_at(*found)
                await anyio.sleep_forever()
        except (EngineError, OSError) as error:
            self.failed = error
            self._app.exit()

    async def _begin_at(self, view: "RunView", place: Place) -> None:
        """Put the cursor on the worker; type into its terminal where that is wanted."""
        session = self._app.session
        session.past_run = view
        session.open_run(view.run)
        session.worker = place.worker
        await session.bridge.until(lambda seen: seen)
        session.look()
        if place.types and self._app.board:
            has_screen = view.worker(place.worker).has_screen
            self._app.board.perform("take_over" if has_screen else "terminal")
        self._app.redraw()


async def _found(port: "EnginePort", place: Place) -> "tuple[RunView, Place]":
    """Return the run of the worker to begin at, and the worker by its whole name."""
    from engine.messages.questions import ReadRun  # noqa: PLC0415  what is seen first needs none of it
    from tui.commands.deciding import full_name, run_of  # noqa: PLC0415  likewise

    view = await port.ask(ReadRun(run_of(place.worker)))
    return view, place._replace(worker=full_name(view, place.worker.removeprefix(f"{view.run}/")))


def program_words(repo: str | PathLike[str]) -> Callable[..., Sequence[str]]:
    """The command that runs a sub-command on a repository, from its name and its words."""
    plait = (sys.executable, "-m", "tui.cli")
    return lambda name, *words: (*plait, name, "-C", str(repo), *words)


def shell_words(repo: str | PathLike[str]) -> Callable[[str, str], Sequence[str]]:
    """The command that opens a worker's sandbox, from run and worker."""
    plait = program_words(repo)
    return lambda run, worker: plait("shell", "--run", run, worker)
