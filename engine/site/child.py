"""The site that is a child process on a mirror of its own: nothing is shared but a pipe.

Near stay the user's refs, the recording as a byte prefix of the far one, and how an attempt ended.
A child that dies is begun anew and asked once more: every call may be repeated. The attempts that
were tethered to it are lost, and say so.
"""

import hashlib
import os
from collections.abc import (
    AsyncIterator,
    Callable,
    Container,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio
import anyio.to_thread

from engine.agents.contract import LaunchRequest
from engine.errors import HostLost, SiteGone, SiteSilent, WorkspaceError
from engine.git.parcel import check_carried
from engine.host.local import LocalHost
from engine.host.seam import AttemptSpec, Chunk, Frame, Stream
from engine.ids import AttemptId, RunId, WorkerId
from engine.keeper import recording
from engine.messages.questions import TrashItem
from engine.messages.results import Entrance
from engine.phases import StopCause
from engine.plan.model import ExecutionMode, IsolationStrategy, Runtime
from engine.private import private_folder
from engine.sandbox.tamper import News
from engine.site.far import Far, FarChunk, Opening
from engine.site.line import NAME, Line, Start
from engine.site.local import LocalSite
from engine.site.mirrored import ChildSpaces
from engine.site.place import Place
from engine.site.seam import (
    Ability,
    CommandEnd,
    Launched,
    SpaceAddress,
    Terms,
    Workplace,
)
from engine.store.layout import Layout

P = ParamSpec("P")
T = TypeVar("T")
_STREAMS = (Stream.OUT, Stream.ERR, Stream.IN, Stream.NOTE)
_OUT_OF_REACH = (SiteGone, SiteSilent)
_ENDED_WITH_CHILD = frozenset({StopCause.SHUTDOWN, StopCause.KEEPER_LOST})


def _host(
    act: Callable[Concatenate[LocalHost, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[ChildHost, P], Coroutine[Any, Any, T]]":
    async def tell(self: "ChildHost", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.line.insist(partial(self.line.call, act, *args, **named))

    return tell


class ChildHost:
    """The processes of a child's attempts; what they write is recorded here as it is there."""

    def __init__(self, line: Line, layout: Layout) -> None:
        self.line = line
        self._layout = layout
        self._births: dict[AttemptId, int] = {}
        self._egress: dict[AttemptId, int] = {}
        self._copies = LocalHost(layout.root)
        self._over: set[AttemptId] = set()

    send = _host(LocalHost.send)
    interrupt = _host(LocalHost.interrupt)
    freeze = _host(LocalHost.freeze)
    thaw = _host(LocalHost.thaw)
    hold_clock = _host(LocalHost.hold_clock)
    set_limits = _host(LocalHost.set_limits)
    resize = _host(LocalHost.resize)
    cancel = _host(LocalHost.cancel)
    capacity = _host(LocalHost.capacity)

    async def start(self, spec: AttemptSpec) -> None:
        """Refuse: the far half alone knows the paths of an attempt."""
        raise WorkspaceError(f"{spec.attempt} cannot be started from this side of the site")

    async def go(self, attempt: AttemptId) -> None:
        """Refuse: nothing is started held."""
        raise WorkspaceError(f"{attempt} is not held at its start here")

    def begun(self, attempt: AttemptId) -> None:
        """Note which child an attempt lives with."""
        self._births.setdefault(attempt, self.line.births)

    async def read(
        self, attempt: AttemptId, after_offset: int, *, wait: bool = True, is_focused: bool = False
    ) -> Chunk:
        """Return what was recorded after an offset, once it is recorded here too.

        What has ended is read here alone: the far copy goes with the workspace.
        """
        folder = self._layout.attempt(attempt)
        if attempt not in self._egress:
            log = folder / "egress.log"
            self._egress[attempt] = await anyio.to_thread.run_sync(_size, log)
            self._over.update(await self._copies.attempts([str(folder)]))
        if attempt in self._over:
            return await self._copies.read(attempt, after_offset, wait=wait)
        size = self._egress[attempt]

        async def ask() -> tuple[FarChunk, bytes]:
            return await self.line.call(
                Far.read, attempt, after_offset, wait=wait, is_focused=is_focused, egress=size
            )

        try:
            heard, blob = await self.line.insist(ask)
        except SiteGone as gone:
            raise HostLost(str(attempt), after_offset) from gone
        was_lost = self._births.get(attempt, self.line.births) != self.line.births
        if was_lost and heard.end is not None and heard.end.cause in _ENDED_WITH_CHILD:
            raise HostLost(str(attempt), after_offset)
        frames, used = recording.parse(memoryview(blob))
        if blob or heard.end is not None or heard.egress:
            whole, beside = memoryview(blob)[:used], (heard.egress, heard.exit_json)
            keep = partial(_keep, folder, after_offset, whole, beside)
            await anyio.to_thread.run_sync(keep)
            self._egress[attempt] = size + len(heard.egress.encode(errors="surrogateescape"))
        return Chunk(
            frames=tuple(Frame(at, _STREAMS[stream], data) for at, stream, data in frames),
            next_offset=after_offset + used,
            usage=heard.usage,
            is_clogged=heard.is_clogged,
            end=heard.end,
        )

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is held for an attempt that has ended."""
        self._births.pop(attempt, None)
        self._egress.pop(attempt, None)
        self._over.discard(attempt)
        await self._copies.forget(attempt)

    async def attempts(self, directories: Sequence[str]) -> tuple[AttemptId, ...]:
        """Return nothing: no folder of this disk tells what lives there."""
        del directories
        return ()

    async def aclose(self, *, detach: bool, stay: Container[RunId] = ()) -> None:
        """Release all attempts and the child."""
        if self.line.is_open:
            runs = {attempt.run for attempt in self._births}
            left = tuple(run for run in runs if run in stay)
            with suppress(WorkspaceError):
                await self.line.call(Far.close, detach=detach, stay=left)
        await self._copies.aclose(detach=True)
        await self.line.close()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _keep(folder: Path, offset: int, blob: memoryview, beside: tuple[str, str]) -> None:
    """Write the bytes where they stand in the far recording; how it ended comes last."""
    private_folder(folder)
    egress, exit_json = beside
    if blob or not offset:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(folder / recording.FILE, flags, 0o600)
        try:
            os.pwrite(fd, blob, offset)
        finally:
            os.close(fd)
    if egress:
        with (folder / "egress.log").open("ab") as log:
            log.write(egress.encode(errors="surrogateescape"))
    if exit_json:
        draft = folder / "exit.json.new"
        draft.write_text(exit_json, encoding="utf-8", errors="surrogateescape")
        draft.replace(folder / "exit.json")


def key_of(place: Place) -> str:
    """Return a name of the repository that tells it from every other one of this machine."""
    return hashlib.sha256(os.fsencode(place.layout.common_dir)).hexdigest()[:10]


def _site(
    act: Callable[Concatenate[LocalSite, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[ChildSite, P], Coroutine[Any, Any, T]]":
    async def tell(self: "ChildSite", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.line.call(act, *args, **named)

    return tell


def _if_there(
    act: Callable[Concatenate[LocalSite, P], Coroutine[Any, Any, None]],
) -> "Callable[Concatenate[ChildSite, P], Coroutine[Any, Any, None]]":
    """Tell it where the site is there: with a site that is gone, all of this is gone."""

    async def tell(self: "ChildSite", /, *args: P.args, **named: P.kwargs) -> None:
        with suppress(*_OUT_OF_REACH):
            await self.line.insist(partial(self.line.call, act, *args, **named))

    return tell


class ChildSite:
    """A site in a child process.

    `tethers` says of which runs the attempts end with the engine, however it ends.
    """

    abilities = frozenset(Ability) - {Ability.ENTER, Ability.FOLDERS}

    def __init__(
        self, line: Line, place: Place, *, tethers: Callable[[RunId], bool], can_confine: bool
    ) -> None:
        if place.repo is None:
            raise WorkspaceError(f"the site {line.name!r} needs a git repository")
        self.line = line
        self._repo = place.repo
        self.can_confine = can_confine
        self.host = ChildHost(line, place.layout)
        self._git = ChildSpaces(line, place.repo, place.layout)
        self._tethers = tethers
        self._told: dict[RunId, bool] = {}

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        place: Place,
        home: Path,
        environment: Mapping[str, str],
        *,
        tethers: Callable[[RunId], bool],
        can_confine: bool,
    ) -> AsyncIterator[Self]:
        """Open the site of a repository; a child is started by the first call that needs one.

        It is of this machine, so what confines agents here does so there.
        """
        opening = Opening(
            home=home / "sites" / f"{NAME}-{key_of(place)}",
            project=place.project,
            object_format=place.repo.object_format if place.repo else "",
            environment=dict(environment),
        )
        async with anyio.create_task_group() as tasks:
            line = Line(opening, tasks, Start())
            try:
                yield cls(line, place, tethers=tethers, can_confine=can_confine)
            finally:
                with anyio.CancelScope(shield=True):
                    await line.close()
                tasks.cancel_scope.cancel()

    def spaces(self, terms: Terms) -> ChildSpaces:
        """Return the workspaces with git; those without are not carried."""
        if terms.runtime.isolation is IsolationStrategy.DIRECTORY:
            raise WorkspaceError(f"plain folders cannot move to the site {self.line.name!r}")
        return self._git

    async def admit(self, terms: Terms, rows: object = None) -> None:
        """Refuse a run that requires what is not enforced there, or what cannot be carried."""
        del rows
        self.spaces(terms)
        if terms.runtime.execution_mode is ExecutionMode.THREAD:
            raise WorkspaceError("functions in threads run only in the engine's own process")
        await check_carried(self._repo, terms.runtime.base or "HEAD")
        await self.line.call(Far.admit, terms)

    describe = _site(LocalSite.describe)
    check_agents = _site(LocalSite.check_agents)
    report = _site(LocalSite.report)
    is_known = _site(LocalSite.is_known)
    stop = _if_there(LocalSite.stop)
    end = _if_there(LocalSite.end)
    change_limits = _site(LocalSite.change_limits)
    drop = _if_there(LocalSite.drop)
    sow = _site(LocalSite.sow)
    reap = _if_there(LocalSite.reap)
    tidy = _if_there(LocalSite.tidy)
    restore = _site(LocalSite.restore)

    async def trashed(self) -> tuple[TrashItem, ...]:
        """Return the contents of the trash there, newest first; nothing where nobody lived."""
        if not await self.line.has_lived():
            return ()
        try:
            return await self.line.call(LocalSite.trashed)
        except _OUT_OF_REACH:
            return ()

    async def purge(self, now: float) -> None:
        """Delete what has been in the trash for long enough."""
        if await self.line.has_lived():
            with suppress(*_OUT_OF_REACH):
                await self.line.call(LocalSite.purge, now)

    async def written_since(self, runtime: Runtime, trees: Mapping[str, int]) -> News:
        """Return what was written in workspaces since a moment for each."""
        try:
            return await self.line.call(LocalSite.written_since, runtime, trees)
        except _OUT_OF_REACH:
            return News(paths=(), is_whole=False)

    async def _tell(self, run: RunId) -> None:
        """Tell every child if a run's attempts end with the engine."""
        is_tethered = self._tethers(run)
        if self._told.get(run) is not is_tethered:
            await self.line.tell_each(run, Far.tether, run, is_loose=not is_tethered)
            self._told[run] = is_tethered

    async def launch(
        self, at: Workplace, program: LaunchRequest | str, env: Mapping[str, str]
    ) -> Launched:
        """Start an agent or a shell command as the attempt itself, or find it started."""
        # Before it is asked for: what the next child finds of it has ended with this one.
        await self.line.insist(partial(self._tell, at.attempt.run))
        self.host.begun(at.attempt)
        return await self.line.insist(partial(self.line.call, LocalSite.launch, at, program, env))

    async def run(self, at: Workplace, command: str) -> CommandEnd:
        """Run a shell command on an attempt's behalf to its end."""
        await self._tell(at.attempt.run)
        return await self.line.call(LocalSite.run, at, command)

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is kept for an attempt that is dead, and remove its surroundings."""
        await self.host.forget(attempt)
        with suppress(*_OUT_OF_REACH):
            await self.line.call(LocalSite.forget, attempt)

    async def free_ports(self, run: RunId, worker: WorkerId) -> None:
        """Return a worker's ports for others to use."""
        with suppress(*_OUT_OF_REACH):
            await self.line.call(LocalSite.free_ports, run, worker)

    async def is_there(self, address: SpaceAddress) -> bool:
        """Return whether a workspace is there; one of another site is not."""
        try:
            there = await self.line.call(LocalSite.is_there, address)
        except SiteGone:
            return False
        return address.site == self.line.name and there

    async def earlier(
        self, address: SpaceAddress, numbers: Sequence[int]
    ) -> tuple[SpaceAddress, ...]:
        """Return the workspaces of other attempts of the same worker that are still there."""
        if address.site != self.line.name:
            return ()
        try:
            found = await self.line.call(LocalSite.earlier, address, numbers)
        except SiteGone:
            return ()
        return tuple(replace(one, site=self.line.name) for one in found)

    async def aside(self, at: Workplace) -> SpaceAddress:
        """Make an empty folder beside a workspace, for an attempt with a role of its own."""
        return replace(await self.line.call(LocalSite.aside, at), site=self.line.name)

    async def enter(self, at: Workplace, *, is_collected: bool) -> Entrance:
        """Refuse: nobody can come in from here."""
        del is_collected
        raise WorkspaceError(
            f"{at.attempt.worker} runs at the site {self.line.name!r}, which you cannot enter "
            "from here",
            hint="Look at its diff or its branch.",
        )
