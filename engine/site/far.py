"""Serve a far half of workers: today's local site on a mirror, in a process of its own.

It has no path into the user's repository: all that it knows of it came over the pipe. One that is
detached outlives whoever speaks to it, as long as its lease allows: a node cannot tell a cut link
from a closed laptop. When nobody has spoken to it for so long, it ends itself, and with it every
agent. What lies on its disk stays.
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.errors import HostLost, WorkspaceError
from engine.git.collection import CollectedChange
from engine.git.large_files import LARGE_FILES
from engine.git.names import RefNames
from engine.git.objects import refs_below
from engine.git.parcel import Parcel, lay_out, pack_of, take_parcel
from engine.git.radar import Snapshot
from engine.git.runner import Repo, Where
from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, Chunk
from engine.ids import AttemptId, RunId
from engine.keeper import recording
from engine.limits import Dimension, Usage
from engine.messages.questions import CleanItem
from engine.plan.model import IsolationStrategy
from engine.private import private_folder
from engine.sandbox.ladder import check_required
from engine.sandbox.probe import probe
from engine.site.artifacts import BOUNDS, artifacts_folder
from engine.site.crossing import (
    CrossingEntry,
    Stretch,
    arriving_at,
    begin,
    listed,
    read_pieces,
    settle,
    write_pieces,
)
from engine.site.local import LocalSite
from engine.site.place import Place
from engine.site.resident import Resident, serve
from engine.site.seam import Brought, Collecting, FilledSpace, Filling, Terms, Workplace
from engine.site.shelter import Shelter
from engine.site.spaces import GitSpaces
from engine.site.sweeping import FarStore, drop_recorded
from engine.site.wire import Message, Pipe
from engine.store.layout import Layout, make_state_home
from engine.values import dataclass

_MOST_READ = 4 << 20
"""The most bytes of a recording in one call: each call costs milliseconds."""
LEASE_S = 60.0
"""The longest time without a caller while one is expected."""
LOOSE_S = 30 * 60.0
"""The same where attempts are to go on without an engine."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The first words to a far half.

    Attributes:
        home: Its own folder: the mirror, the trees, what is known of the machine.
        project: The user's checkout, which no agent may see; it need not be there.
        environment: The user's own, for agents.
        key: The name of its folder in the state home of another machine, in place of `home`; the
            environment is that machine's own then, and `environment` is added to it.
        lease_s: The longest time that its agents go on while nobody speaks to it; 0 for ours.
    """

    home: Path
    project: Path
    object_format: str
    environment: Mapping[str, str]
    key: str = ""
    lease_s: float = 0.0

    async def there(self) -> "Opening":
        """Return these words with the folder and the environment of the machine that hears them."""
        if not self.key:
            return self
        own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        home = await anyio.to_thread.run_sync(make_state_home, own)
        environment = {**own, **self.environment}
        return replace(self, home=home / "sites" / self.key, environment=environment)


@dataclass(frozen=True, kw_only=True)
class FarChunk:
    """News of an attempt beside the bytes of its recording.

    Attributes:
        exit_json: The file that tells its end, once all has been read.
    """

    usage: Usage | None = None
    is_clogged: bool = False
    end: AttemptExit | None = None
    exit_json: str = ""
    egress: str = ""


@dataclass(frozen=True, kw_only=True)
class Work:
    """All that an attempt left, with the refs that its pack belongs to."""

    brought: Brought
    refs: Mapping[str, str]


def lease_of(given_s: float, *, is_loose: bool = False) -> float:
    """Return for how long agents go on while nobody speaks to a detached far half."""
    return given_s or (LOOSE_S if is_loose else LEASE_S)


class Shelf(StrEnum):
    """The kinds of files that cross beside commits.

    They are what a step keeps for later ones, bundles of repositories inside a workspace, contents
    of LFS, and files of the user's that git does not know.
    """

    ARTIFACTS = "artifacts"
    BUNDLES = "bundles"
    LARGE = "large"
    INCLUDES = "includes"


class Far:
    """The far half: what only it does, beside the local site that it holds."""

    def __init__(self) -> None:
        self.targets: dict[type, Any] = {Far: self}
        self._opening: Opening | None = None
        self._mirror: Repo | None = None
        self._host: LocalHost | None = None
        self._loose: set[RunId] = set()
        self._life = secrets.token_hex(8)
        self._opening_once = anyio.Lock()
        self._supplying = anyio.Lock()

    @property
    def lease_s(self) -> float:
        """Return for how long it lives on while nobody speaks to it."""
        given_s = self._opening.lease_s if self._opening else 0.0
        return lease_of(given_s, is_loose=bool(self._loose))

    async def open(self, opening: Opening) -> str:
        """Find out what this machine can do, and open the mirror; the first one is empty.

        Return a name that no other far half has, so that the caller knows if it is still the same.
        """
        async with self._opening_once:
            if self._mirror is None:
                await self._open(await opening.there())
            self._opening = replace(self._known, lease_s=opening.lease_s)
        return self._life

    async def _open(self, opening: Opening) -> None:
        home = opening.home
        await anyio.to_thread.run_sync(private_folder, home / "trees")
        env = dict(opening.environment)
        machine = await anyio.to_thread.run_sync(probe, env, home / "machine")
        self._opening = opening
        layout = Layout(home / "mirror.git")
        shelter = Shelter(machine=machine, layout=layout, project=opening.project, environ=env)
        self._shelter = shelter
        if not await anyio.Path(layout.common_dir / "config").is_file():
            empty = Parcel(object_format=opening.object_format)
            await anyio.to_thread.run_sync(lay_out, layout.common_dir, empty)
        await self._begin(await Repo.open(layout.common_dir, env))

    async def _begin(self, mirror: Repo) -> None:
        opening = self._known
        layout = Layout(Path(mirror.common_dir))
        await anyio.to_thread.run_sync(layout.make)
        trees = opening.home / "trees"
        place = Place(project=opening.project, layout=layout, workspaces=trees, repo=mirror)
        host = LocalHost(layout.root)
        site = LocalSite(
            place,
            host=host,
            shelter=self._shelter,
            environment=opening.environment,
            tethers=lambda run: bool(opening.key) or run not in self._loose,
        )
        git = site.kinds[IsolationStrategy.WORKTREE]
        self.targets |= {LocalSite: site, LocalHost: host, GitSpaces: git}
        self._mirror, self._host, self._layout = mirror, host, layout

    @property
    def _known(self) -> Opening:
        if self._opening is None:
            raise WorkspaceError("nothing has opened this site yet")
        return self._opening

    @property
    def _repo(self) -> Repo:
        if self._mirror is None:
            raise WorkspaceError("nothing has been sent to this site yet")
        return self._mirror

    async def tips(self, shallow: bytes) -> tuple[str, ...]:
        """Return the commits that need not be brought with all that lies behind them.

        There are none where the user's history ends elsewhere than it did.
        """
        known = self._known.home / "mirror.git/shallow"
        if await anyio.to_thread.run_sync(_bytes, known) != shallow:
            return ()
        return tuple(dict.fromkeys((await refs_below(self._repo)).values()))

    # What crosses beside commits.

    def _shelf(self, attempt: AttemptId, shelf: Shelf) -> Path:
        match shelf:
            case Shelf.ARTIFACTS:
                return artifacts_folder(self._layout, attempt)
            case Shelf.BUNDLES:
                return self._layout.attempt(attempt)
            case Shelf.LARGE:
                return self._layout.common_dir / LARGE_FILES
            case Shelf.INCLUDES:
                return self._layout.attempt(attempt) / "includes"

    async def holds(
        self, attempt: AttemptId, shelf: Shelf, names: tuple[bytes, ...]
    ) -> tuple[CrossingEntry, ...]:
        """Return what lies on a shelf; with `names`, only these files of it."""
        look = partial(listed, self._shelf(attempt, shelf), bounds=BOUNDS, names=names)
        return await anyio.to_thread.run_sync(look)

    async def give(
        self, attempt: AttemptId, shelf: Shelf, wanted: tuple[Stretch, ...]
    ) -> tuple[int, bytes]:
        """Give pieces of what lies on a shelf, and how many."""
        root = self._shelf(attempt, shelf)
        return len(wanted), await anyio.to_thread.run_sync(read_pieces, root, wanted)

    async def expect(
        self, attempt: AttemptId, shelf: Shelf, entries: tuple[CrossingEntry, ...]
    ) -> None:
        """Make place for what is to lie on a shelf."""
        await anyio.to_thread.run_sync(begin, arriving_at(self._shelf(attempt, shelf)), entries)

    async def take(
        self, attempt: AttemptId, shelf: Shelf, arriving: tuple[Stretch, ...], data: bytes
    ) -> None:
        """Take pieces of what is to lie on a shelf."""
        draft = arriving_at(self._shelf(attempt, shelf))
        await anyio.to_thread.run_sync(write_pieces, draft, arriving, data)

    async def keep(
        self, attempt: AttemptId, shelf: Shelf, entries: tuple[CrossingEntry, ...]
    ) -> None:
        """Put what has come to its shelf; putting it there again is harmless."""
        root = self._shelf(attempt, shelf)
        if await anyio.Path(arriving_at(root)).exists():
            await anyio.to_thread.run_sync(settle, arriving_at(root), entries, root)

    async def prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        """Make and fill a workspace, with the files of the user's that were brought for it."""
        spaces: GitSpaces = self.targets[GitSpaces]
        includes = self._shelf(at.attempt, Shelf.INCLUDES)
        if await anyio.Path(includes).is_dir():
            filling = replace(filling, brought=str(includes))
        made = await spaces.prepare(at, filling)
        await anyio.to_thread.run_sync(remove_tree, includes)
        return made

    async def abandon(self, at: Workplace, *, with_branch: bool) -> None:
        """Remove a half-made workspace, and what was brought for it."""
        spaces: GitSpaces = self.targets[GitSpaces]
        await spaces.abandon(at, with_branch=with_branch)
        includes = self._shelf(at.attempt, Shelf.INCLUDES)
        for folder in (includes, arriving_at(includes)):
            await anyio.to_thread.run_sync(remove_tree, folder)

    async def supply(self, parcel: Parcel, pack: bytes) -> None:
        """Take what the next workspace needs of the user's repository."""
        async with self._supplying:
            path = self._known.home / "mirror.git"
            await anyio.to_thread.run_sync(lay_out, path, parcel)
            await take_parcel(self._repo, parcel, pack)

    async def admit(self, terms: Terms) -> None:
        """Refuse a run unless everything it requires is enforced here."""
        found = await anyio.to_thread.run_sync(self._shelter.report_on, terms.runtime)
        check_required([Dimension(name) for name in terms.runtime.require], found)

    async def tether(self, run: RunId, *, is_loose: bool) -> None:
        """Say if the attempts of a run go on when this process ends."""
        (self._loose.add if is_loose else self._loose.discard)(run)

    async def look(
        self, at: Workplace, wanted: Collecting, had: str
    ) -> tuple[Snapshot | None, bytes]:
        """Take the tree as it is now, with a pack of what `had` does not hold."""
        spaces: GitSpaces = self.targets[GitSpaces]
        objects = self._layout.worker(at.attempt.run, at.attempt.worker) / "looked_at"
        taken = await spaces.look(at, wanted, objects)
        if taken is None:
            return None, b""
        where = Where(objects=str(objects))
        return taken, await pack_of(self._repo, [taken.commit], [had], where=where)

    async def collect(self, at: Workplace, wanted: Collecting, had: str) -> tuple[Work, bytes]:
        """Collect into the mirror, with a pack of what `had` does not hold."""
        spaces: GitSpaces = self.targets[GitSpaces]
        brought = await spaces.collect(at, wanted)
        if not isinstance(brought.change, CollectedChange):
            return Work(brought=brought, refs={}), b""
        refs = await self._kept(at)
        return Work(brought=brought, refs=refs), await pack_of(self._repo, refs.values(), [had])

    async def _kept(self, at: Workplace) -> Mapping[str, str]:
        """Return the refs under which the work of an attempt is kept here."""
        names = RefNames(at.attempt, at.terms.runtime.branch_prefix)
        found = await refs_below(self._repo, names.pinned)
        return {ref: oid for ref, oid in found.items() if ref != names.base}

    async def _is_at_home(self, at: Workplace, at_home: Mapping[str, str]) -> bool:
        kept = await self._kept(at)
        return all(at_home.get(ref) == oid for ref, oid in kept.items())

    async def examine(
        self, at: Workplace, wanted: Collecting, at_home: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Return why a workspace has to stay, where these are the refs at home."""
        spaces: GitSpaces = self.targets[GitSpaces]
        reasons = await spaces.examine(at, wanted)
        if not await self._is_at_home(at, at_home):
            reasons = (*reasons, "not all of its work has arrived here")
        return reasons

    async def release(
        self,
        at: Workplace,
        wanted: Collecting,
        at_home: Mapping[str, str],
        recorded: Mapping[str, str],
    ) -> bool:
        """Remove a workspace if all of it is at home, and with it the recordings that are."""
        spaces: GitSpaces = self.targets[GitSpaces]
        is_kept = partial(self._is_at_home, at, at_home)
        went = await spaces.release(at, wanted, is_kept=is_kept)
        if went:
            folder = self._layout.worker(at.attempt.run, at.attempt.worker)
            await anyio.to_thread.run_sync(drop_recorded, folder, recorded)
        return went

    async def clear(
        self, known: tuple[RunId, ...], at_home: Mapping[str, str], *, is_dry: bool
    ) -> tuple[tuple[CleanItem, ...], bool]:
        """Remove what is kept of runs that are not known; say if only the mirror is left then."""
        spaces: GitSpaces = self.targets[GitSpaces]
        strays = await spaces.clear_strays(known, is_dry=is_dry)
        store = FarStore(mirror=self._repo, layout=self._layout, trees=self._known.home / "trees")
        going = [one.path for one in strays if one.is_safe]
        runs, is_empty = await store.clear(known, at_home, going=going, is_dry=is_dry)
        return (*strays, *runs), is_empty

    async def read(
        self, attempt: AttemptId, after: int, *, wait: bool, is_focused: bool, egress: int
    ) -> tuple[FarChunk, bytes]:
        """Return what is new, with the recording's own bytes."""
        if self._host is None:
            raise HostLost(str(attempt), after)
        folder = self._layout.attempt(attempt)
        try:
            chunk = await self._host.read(attempt, after, wait=wait, is_focused=is_focused)
        except HostLost:  # one that a child before this one has started is found by its folder
            if not await self._host.attempts([str(folder)]):
                raise
            chunk = await self._host.read(attempt, after, wait=wait, is_focused=is_focused)
        look = partial(_news, folder, after, chunk, egress)
        return await anyio.to_thread.run_sync(look)

    async def close(self, *, detach: bool, stay: tuple[RunId, ...]) -> bool:
        """Release all attempts: leave them running, or end them and wait until they are dead.

        Return whether nothing lives here any more.
        """
        if self._host is None:
            return True
        if detach and self._known.key:  # they are bound to this process, which stays
            return await anyio.to_thread.run_sync(_has_ended, self._layout.runs)
        await self._host.aclose(detach=detach, stay=stay)
        if stay and self._mirror is not None:
            await self._begin(self._mirror)
        return not detach and not stay

    async def remove(self) -> bool:
        """End everything, and remove all that is kept here."""
        await self.close(detach=False, stay=())
        await anyio.to_thread.run_sync(remove_tree, self._known.home)
        return True


def _has_ended(runs: Path) -> bool:
    """Return whether every attempt that was begun here has reported its end."""
    begun = runs.glob("*/*/*/attempt_*/keeper.json")
    return all((file.parent / "exit.json").exists() for file in begun)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _news(folder: Path, after: int, chunk: Chunk, egress: int) -> tuple[FarChunk, bytes]:
    """Return what is new of an attempt; more of its recording than the chunk, where there is."""
    has_more = chunk.next_offset > after
    heard = FarChunk(
        usage=chunk.usage,
        is_clogged=chunk.is_clogged,
        end=chunk.end,
        exit_json=_text(folder / "exit.json", 0) if chunk.end is not None else "",
        egress=_text(folder / "egress.log", egress),
    )
    return heard, _part(folder / recording.FILE, after) if has_more else b""


def _part(file: Path, after: int) -> bytes:
    with file.open("rb") as opened:
        return os.pread(opened.fileno(), _MOST_READ, after)


def _text(file: Path, after: int) -> str:
    try:
        with file.open("rb") as log:
            log.seek(after)
            return log.read().decode(errors="surrogateescape")
    except OSError:
        return ""


_ACTS: Sequence[Callable[..., Any]] = (
    *(Far.open, Far.tips, Far.supply, Far.tether, Far.admit, Far.prepare, Far.abandon, Far.look),
    *(Far.collect, Far.examine, Far.release, Far.clear, Far.read, Far.holds, Far.give, Far.expect),
    *(
        Far.take,
        Far.keep,
        Far.close,
        Far.remove,
        LocalHost.send,
        LocalHost.interrupt,
        LocalHost.freeze,
    ),
    *(LocalHost.thaw, LocalHost.hold_clock, LocalHost.set_limits, LocalHost.resize),
    *(LocalHost.cancel, LocalHost.capacity, LocalSite.check_agents, LocalSite.report),
    *(LocalSite.launch, LocalSite.run, LocalSite.is_known, LocalSite.stop, LocalSite.end),
    *(LocalSite.forget, LocalSite.change_limits, LocalSite.earlier, LocalSite.is_there),
    *(LocalSite.written_since, LocalSite.aside, LocalSite.drop, LocalSite.sow, LocalSite.reap),
    *(LocalSite.free_ports, LocalSite.tidy, LocalSite.trashed, LocalSite.restore),
    *(LocalSite.purge, LocalSite.describe, GitSpaces.resume),
)
CALLS = {act.__qualname__: act for act in _ACTS}
"""All that can be asked over the pipe."""


class _Answer:
    """An answer that is being made."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.said = Message({"value": None}, b"")


class Detached(Resident):
    """A far half with one caller at a time; another caller takes its place."""

    def __init__(self) -> None:
        self._far = Far()
        super().__init__(self._far.targets, CALLS)
        self._caller = ""
        self._making: dict[str, _Answer] = {}
        self._heard = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """End this process, and so its agents, when the lease is over."""
        never = threading.Event()
        while time.monotonic() - self._heard < self._far.lease_s:
            never.wait(1)
        os._exit(1)

    def take_back(self, number: int | str) -> None:
        """End a call; one that comes after this ends as it comes: nothing keeps their order."""
        self.expect(number)
        super().take_back(number)

    async def renew(self, caller: str) -> None:
        """Renew the lease; what another caller had asked is taken back, and has ended then."""
        self._heard = time.monotonic()
        if caller == self._caller:
            return
        self._caller = caller
        for number, making in list(self._making.items()):
            self.take_back(number)
            await making.done.wait()

    async def answer(self, head: Mapping[str, Any], blob: bytes) -> Message:
        """Answer a call; one that is asked again before it is answered is done once."""
        number = head["n"]
        if number in self._making:
            making = self._making[number]
            await making.done.wait()
            return making.said
        making = self._making[number] = _Answer()
        try:
            making.said = await super().answer(head, blob)
        finally:
            del self._making[number]
            making.done.set()
        return making.said


def main() -> None:
    """Serve the conversation on standard input."""
    with socket.socket(fileno=os.dup(0)) as end:
        anyio.run(serve, Pipe(end), Resident(Far().targets, CALLS))


if __name__ == "__main__":
    main()
