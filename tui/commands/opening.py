"""`plait open`: the programs of workers, started in their sandboxes for you to look at."""

import argparse
import signal
import sys
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from engine.api import EnginePort, look, reach
from engine.errors import EngineError
from engine.messages.questions import (
    Ask,
    ListRuns,
    ReadRun,
    ReadServed,
    ServeWorker,
    StopServing,
)
from engine.messages.results import RunView
from engine.messages.served import Served, ServedState
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    add_repo,
    in_loop,
    put,
    put_json,
    say,
)
from tui.words.clean import clean
from tui.words.served import served_text

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_S = 20.0
_OVER = {ServedState.READY, ServedState.ENDED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take whose programs, and what is to become of them."""
    add_repo(parser)
    about = "[RUN/]STEP/worker_I, or the end of that name; without one: list what runs now"
    parser.add_argument("workers", nargs="*", metavar="WORKER", help=about)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    parser.add_argument("--browser", action="store_true", help="open each in your browser")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument(
        "--detach",
        action="store_true",
        help="return once they are ready; the engine keeps them running",
    )
    ways.add_argument(
        "--stop", action="store_true", help="stop the programs; without a name, all of the run"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Start them and stay until ctrl+c, list them, or end them."""
    if args.stop or not args.workers:
        return in_loop(partial(_stop if args.stop else _list, args))
    if args.json and not args.detach:
        say("--json reports on the programs: use it with --detach, or without a worker")
        return EXIT_USAGE
    return in_loop(partial(_open, args))


# What is served now.


async def _list(args: argparse.Namespace) -> int:
    found = await _served(args)
    if args.json:
        put_json([_json(worker, served) for worker, served in found])
    else:
        for worker, served in found:
            put(f"{worker} {served_text(served)}")
    if not found:
        say("no program is running; `plait open WORKER` starts the program of a worker")
    return EXIT_OK


async def _stop(args: argparse.Namespace) -> int:
    async with look(args.repo) as (port, has_lived):
        if has_lived:
            workers = args.workers or [one for one, _ in await _of_run(port.ask, args.run)]
            ended = [one for one in workers if await port.ask(StopServing(args.run, one))]
            for worker in ended:
                say(f"the program of {worker} has stopped")
            if ended:
                return EXIT_OK
    say("no program is running")
    return EXIT_FAILED if args.workers else EXIT_OK


async def _served(args: argparse.Namespace) -> list[tuple[str, Served]]:
    async with look(args.repo) as (port, has_lived):
        return await _of_run(port.ask, args.run) if has_lived else []


async def _of_run(ask: Callable[[Ask[Any]], Awaitable[Any]], run: str) -> list[tuple[str, Served]]:
    if not await ask(ListRuns()):
        return []
    view: RunView = await ask(ReadRun(run))
    every = [worker for step in view.steps for worker in step.workers]
    return [(one.worker, one.served) for one in every if one.served is not None]


def _json(worker: str, served: Served) -> dict[str, object]:
    names = ("state", "url", "port", "attempt", "is_own_tree", "since", "note")
    return {"worker": worker, **{name: getattr(served, name) for name in names}}


# Start them.


@dataclass(kw_only=True)
class _Opened:
    """One worker's program, as far as this command has seen it."""

    port: EnginePort
    run: str
    worker: str
    prefix: str
    browser: bool
    is_mine: bool = False
    served: Served | None = None
    after: int = 0

    async def begin(self) -> None:
        """Start it, unless it is served already."""
        known = await self.port.ask(ReadServed(self.run, self.worker))
        self.is_mine = known.served is None or known.served.state is ServedState.ENDED
        await self.port.ask(ServeWorker(self.run, self.worker))

    async def follow(self, *, until: frozenset[ServedState], is_quiet: bool = False) -> None:
        """Tell what it writes and how it is, until it is in one of these states."""
        while self.served is None or self.served.state not in until:
            log = await self.port.ask(ReadServed(self.run, self.worker, self.after, self.served))
            if log.served is None:  # somebody else has ended it
                say(f"the program of {self.worker} has stopped")
                return
            for line in () if is_quiet else log.lines:
                put(f"{self.prefix}{clean(line)}")
            sys.stdout.flush()
            before, self.served, self.after = self.served, log.served, log.count
            await self._tell(before, log.served)

    async def _tell(self, before: Served | None, now: Served) -> None:
        if before is None or served_text(before) != served_text(now):
            say(f"{self.worker} {served_text(now)}")
        if self.browser and now.url:
            self.browser = False
            await anyio.to_thread.run_sync(webbrowser.open, now.url)

    async def end(self) -> None:
        """End what this command has started."""
        if self.is_mine:
            with suppress(EngineError, OSError):
                await self.port.ask(StopServing(self.run, self.worker))


async def _open(args: argparse.Namespace) -> int:
    with anyio.open_signal_receiver(*_ENDS) as signals:  # to the very end: it is asked once
        return await _open_until(args, signals)


async def _open_until(args: argparse.Namespace, signals: AsyncIterator[signal.Signals]) -> int:
    async with reach(args.repo) as (port, has_lived):
        if args.detach and not has_lived:
            say("no engine runs here to keep it running: leave out --detach")
            return EXIT_USAGE
        width = max(map(len, args.workers))
        opened = [
            _Opened(
                port=port,
                run=args.run,
                worker=worker,
                prefix=f"{worker:<{width}} | " if len(args.workers) > 1 else "",
                browser=args.browser,
            )
            for worker in args.workers
        ]
        if args.detach:
            await _all(opened, until=frozenset(_OVER), is_quiet=True)
            if args.json:
                put_json([_json(one.worker, one.served) for one in opened if one.served])
            return _code(opened)
        try:
            await _until_asked(opened, signals)
        finally:
            with anyio.move_on_after(_PATIENCE_S, shield=True):
                async with anyio.create_task_group() as tasks:
                    for one in opened:
                        tasks.start_soon(one.end)
        return _code(opened)


async def _until_asked(opened: Sequence[_Opened], signals: AsyncIterator[signal.Signals]) -> None:
    """Follow them until all have ended, or somebody asks to end."""
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            await anext(signals)
            tasks.cancel_scope.cancel()

        tasks.start_soon(listen)
        say("ctrl+c stops it" if len(opened) == 1 else "ctrl+c stops them")
        await _all(opened, until=frozenset({ServedState.ENDED}))
        tasks.cancel_scope.cancel()


async def _all(
    opened: Sequence[_Opened], *, until: frozenset[ServedState], is_quiet: bool = False
) -> None:
    for one in opened:
        await one.begin()
    async with anyio.create_task_group() as tasks:
        for one in opened:
            tasks.start_soon(partial(one.follow, until=until, is_quiet=is_quiet))


def _code(opened: Sequence[_Opened]) -> int:
    """Return 1 where a program ended by itself; one that was asked to end did well."""
    has_ended = any(one.served and one.served.state is ServedState.ENDED for one in opened)
    return EXIT_FAILED if has_ended else EXIT_OK
