"""Deliver the runs of one engine to a shared history while they go on.

Nothing waits for it: it reads the journals in a thread, and a history that is down, slow, full or
may only be read costs nothing but delay, which is reported. Only runs whose plan says so are
delivered.
"""

import getpass
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from engine.bus import Bus
from engine.clock import Clock
from engine.errors import EngineError, StoreError
from engine.git.runner import Call
from engine.history.outbox import Outbox
from engine.history.seam import HistoryDatabase, RunOrigin
from engine.ids import RunId
from engine.messages.results import HistoryDelay
from engine.plan.model import SharedHistory
from engine.site.place import Place

PACE_S = 1.0
"""Collect events for so long before a delivery."""
LAST_S = 5.0
"""Wait for so long at the end for the last delivery."""
_LONGEST_S = 30.0
_SCP = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>(?!/).+)")
Tell = Callable[[HistoryDelay | None], None]
OpenShared = Callable[[SharedHistory], HistoryDatabase]
OpenOutbox = Callable[[SharedHistory], Awaitable[Outbox]]


async def find_origin(place: Place) -> RunOrigin:
    """Return where the runs of a place come from."""
    repo, url = place.repo, ""
    if repo is not None:
        with suppress(EngineError, TimeoutError):
            url = await repo.line("config", "--get", "remote.origin.url", call=Call(ok=(0, 1)))
    return RunOrigin(
        repository=address(url) or str(_home(place)),
        person=(repo.settings.name if repo is not None else "") or _login(),
        host=socket.gethostname(),
    )


def _home(place: Place) -> Path:
    """Return the folder of a repository, the same for all its worktrees: names are not unique."""
    if place.repo is None:
        return place.project
    common = Path(place.repo.common_dir)
    return common.parent if common.name == ".git" else common


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def address(url: str) -> str:
    """Return a repository's address alike for all who have it: no scheme, user or password."""
    if found := _SCP.fullmatch(url):
        place = f"{found['host']}/{found['path']}"
    elif "://" in url:
        parts = urlsplit(url)
        place = f"{parts.hostname or ''}{parts.path}"
    else:
        place = url
    return place.rstrip("/").removesuffix(".git")


@dataclass
class _Receiver:
    """One shared history and the runs that are delivered to it."""

    shared: SharedHistory
    runs: dict[RunId, Tell] = field(default_factory=dict)
    outbox: Outbox | None = None
    is_level: bool = False
    delay: HistoryDelay | None = None
    wait_s: float = 0.0
    due: float = 0.0
    counted: int = -1


class Feeder:
    """Everything that an engine has to deliver to shared histories."""

    def __init__(self, open_outbox: OpenOutbox, bus: Bus, clock: Clock) -> None:
        """Start without runs.

        Args:
            open_outbox: Opens what is to be delivered to one history.
            bus: Counts what happens.
            clock: Tells when to try again.
        """
        self._open_outbox = open_outbox
        self._bus = bus
        self._clock = clock
        self._lines: dict[SharedHistory, _Receiver] = {}
        self._woken = anyio.Event()
        self._delivering = anyio.Lock()

    def follow(self, run: RunId, shared: SharedHistory | None, tell: Tell) -> None:
        """Deliver a run from now on, if its plan shares a history, and tell of its delays."""
        if shared is None:
            return
        line = self._lines.setdefault(shared, _Receiver(shared))
        line.runs[run] = tell
        if line.delay is not None:
            tell(line.delay)
        self._woken.set()

    async def serve(self) -> None:
        """Deliver for as long as the engine lives; sleep while no run shares a history."""
        while True:
            await self._woken.wait()
            for line in list(self._lines.values()):
                if self._is_due(line):
                    await self._deliver(line)
            await self._clock.sleep(PACE_S)

    def _is_due(self, line: _Receiver) -> bool:
        if line.delay is not None:
            return self._clock.monotonic() >= line.due
        return not line.is_level or line.counted != self._bus.count

    async def _deliver(self, line: _Receiver) -> None:
        async with self._delivering:
            counted = self._bus.count
            try:
                if line.outbox is None:
                    line.outbox = await self._open_outbox(line.shared)
                deliver = partial(_deliver_now, line, line.outbox)
                await anyio.to_thread.run_sync(deliver, abandon_on_cancel=True)
            except StoreError as error:
                self._delayed(line, error)
            else:
                line.counted, line.is_level = counted, True
                line.wait_s = 0.0
                self._tell(line, None)

    def _delayed(self, line: _Receiver, error: StoreError) -> None:
        line.is_level = False
        line.wait_s = min(max(line.wait_s * 2, PACE_S), _LONGEST_S)
        line.due = self._clock.monotonic() + line.wait_s
        since = line.delay.since if line.delay else self._clock.now()
        self._tell(line, HistoryDelay(what=str(error), help=error.hint, since=since))

    def _tell(self, line: _Receiver, delay: HistoryDelay | None) -> None:
        if delay != line.delay:
            line.delay = delay
            for tell in line.runs.values():
                tell(delay)

    async def finish(self) -> None:
        """Deliver the last events of runs that are not delayed, and release the histories."""
        with anyio.CancelScope(shield=True):
            for line in self._lines.values():
                if line.delay is None:
                    with anyio.move_on_after(LAST_S):
                        await self._deliver(line)
                if line.outbox is not None and not self._delivering.locked():
                    await anyio.to_thread.run_sync(line.outbox.close)


def _deliver_now(line: _Receiver, outbox: Outbox) -> None:
    """Deliver everything at first and after a delay, and else what the living runs have new.

    Raises:
        StoreError: Something is not delivered, and can be.
    """
    if not line.is_level:
        if refused := outbox.deliver_all().refused:
            raise StoreError(refused[0], hint="`plait db push` lists everything that was refused.")
        return
    for run in list(line.runs):
        outbox.deliver(run)


@asynccontextmanager
async def feeding(
    place: Place, open_shared: OpenShared, *, bus: Bus, clock: Clock
) -> AsyncIterator[Feeder]:
    """Yield what delivers the shared runs of a place; the last of them when this ends."""

    async def open_outbox(shared: SharedHistory) -> Outbox:
        origin = await find_origin(place)
        history = await anyio.to_thread.run_sync(open_shared, shared)
        return Outbox(place.store, history, origin, place.layout, partial(is_shared, shared))

    feeder = Feeder(open_outbox, bus, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feeder.serve)
        try:
            yield feeder
        finally:
            tasks.cancel_scope.cancel()
            await feeder.finish()


def is_shared(shared: SharedHistory, plan: dict[str, Any]) -> bool:
    """Return whether a plan, as JSON values, shares this history."""
    found = (plan.get("runtime") or {}).get("history") or {}
    return bool(found.get("url_env") == shared.url_env)
