"""Open the history of many runs, without an engine: to search it, to add it up, to keep it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from os import PathLike, environ
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from engine.api.errors_out import plain_errors
from engine.api.plans import MANIFEST, read_inside
from engine.errors import StoreError
from engine.history.braid import Braid, braid_of
from engine.history.feeder import find_origin, is_shared
from engine.history.outbox import Delivered, Outbox
from engine.history.seam import Extent, HistoryDatabase, Hit, Query
from engine.history.sqlite import SqliteHistory
from engine.ids import RunId
from engine.messages.statistics import Axis, CountAttempts, Figures, Reach
from engine.plan.model import SharedHistory
from engine.plan.runtime import shared_history_of
from engine.run.past import run_named
from engine.site.place import Place, find_place
from engine.spec.load import load_manifest
from engine.store.layout import make_state_home
from engine.store.store import JournalEntry
from engine.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class OpenHistory:
    """A history, and what this repository has to deliver to it.

    Attributes:
        repository: The name that the history knows this repository by.
        url_env: The variable that holds its address; empty for one's own.
    """

    repository: str
    url_env: str
    database: HistoryDatabase
    outbox: Outbox

    async def search(self, query: Query) -> list[Hit]:
        """Return the attempts that match, the newest first."""
        return await _in_thread(partial(self.database.search, query))

    async def figures(self, axis: Axis, query: Query) -> list[Figures]:
        """Return the figures of the attempts that match, by one of their properties."""
        return await _in_thread(partial(self.database.figures, axis, query))

    async def events(self, uid: str) -> list[JournalEntry]:
        """Return the events of a run, in order."""
        return await _in_thread(partial(self.database.events, uid))

    async def up(self) -> tuple[int, int]:
        """Bring its tables to this program's version; return the version before and after."""
        return await _in_thread(self.database.up)

    async def extent(self) -> Extent:
        """Return how much it holds."""
        return await _in_thread(self.database.extent)

    async def behind(self) -> list[str]:
        """Return the runs here of which something may be lacking there."""
        return [str(run) for run in await _in_thread(self.outbox.behind)]

    async def push(self, *, again: bool = False, everything: bool = False) -> Delivered:
        """Deliver what is lacking of this repository's runs.

        Args:
            again: Look at every run, also at those that were delivered before.
            everything: Also runs whose manifest did not share them.
        """
        outbox = self.outbox
        if everything:
            outbox = replace(outbox, is_meant=lambda _: True)
        if again or everything:
            outbox.forget()
        return await _in_thread(outbox.deliver_all)

    async def prune(self, before: float) -> int:
        """Remove the events and attempts of runs that began before a moment; return how many."""
        return await _in_thread(partial(self.database.prune, before))


async def _in_thread(act: Callable[[], T]) -> T:
    """Ask in a thread; whoever is interrupted does not wait for the answer."""
    return await anyio.to_thread.run_sync(act, abandon_on_cancel=True)


@asynccontextmanager
async def open_history(
    folder: str | PathLike[str] = ".",
    *,
    is_shared: bool = False,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[OpenHistory]:
    """Open one's own history, brought level with this repository's runs, or the shared one.

    Args:
        folder: Anywhere inside the repository.
        is_shared: The one whose address is in the variable that `plait.yaml` names.
        environment: In place of the process's own.

    Raises:
        StoreError: It cannot be opened.
        SpecError: `plait.yaml` is wrong.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    with plain_errors():
        async with _open(place, env, is_shared=is_shared) as opened:
            yield opened


@asynccontextmanager
async def _open(
    place: Place, env: Mapping[str, str], *, is_shared: bool
) -> AsyncIterator[OpenHistory]:
    opened = await (_shared if is_shared else _own)(place, env)
    try:
        yield opened
    finally:
        await anyio.to_thread.run_sync(opened.outbox.close)


async def count_attempts(
    place: Place, env: Mapping[str, str], question: CountAttempts
) -> tuple[Figures, ...]:
    """Return what the attempts of a place, of its owner or of the team come to.

    Raises:
        StoreError: The history cannot be opened or asked.
        SpecError: `plait.yaml` is wrong.
    """
    async with _open(place, env, is_shared=question.reach is Reach.TEAM) as history:
        query = Query(
            repository=history.repository if question.reach is Reach.HERE else "",
            since=question.since,
            of=question.of,
            name=question.name,
        )
        return tuple(await history.figures(question.by, query))


async def _own(place: Place, env: Mapping[str, str]) -> OpenHistory:
    home = await anyio.to_thread.run_sync(make_state_home, env)
    opened = await _opened(place, SqliteHistory(home / "history.db"))
    await opened.up()
    await opened.push()
    return opened


async def _shared(place: Place, env: Mapping[str, str]) -> OpenHistory:
    shared = await anyio.to_thread.run_sync(shared_by_manifest, place.project)
    return await _opened(place, await _in_thread(partial(open_shared, env, shared)), shared)


async def _opened(
    place: Place, database: HistoryDatabase, shared: SharedHistory | None = None
) -> OpenHistory:
    origin = await find_origin(place)
    is_meant = (lambda _: True) if shared is None else partial(is_shared, shared)
    return OpenHistory(
        repository=origin.repository,
        url_env=shared.url_env if shared else "",
        database=database,
        outbox=Outbox(place.store, database, origin, place.layout, is_meant),
    )


def shared_by_manifest(project: Path) -> SharedHistory:
    """Return the history that `plait.yaml` shares, or the usual one.

    Raises:
        SpecError: It is wrong.
    """
    path = project / MANIFEST
    if not path.is_file():
        return SharedHistory()
    read = partial(read_inside, project)
    manifest = load_manifest(path.read_bytes(), file=MANIFEST, read=read)
    return shared_history_of(manifest.runtime.database) or SharedHistory()


def open_shared(environment: Mapping[str, str], shared: SharedHistory) -> HistoryDatabase:
    """Return the history that a plan shares; it is reached when it is first asked.

    Raises:
        StoreError: Its address is not set or wrong, or psycopg is missing.
    """
    url = environment.get(shared.url_env, "")
    if not url:
        raise StoreError(
            f"{shared.url_env} is not set: it holds the address of the shared history",
            hint=f"Set {shared.url_env} to postgresql://user@host/database.",
        )
    from engine.history.postgres import PostgresHistory  # noqa: PLC0415 - an extra of the package

    return PostgresHistory(url)


async def read_braid(folder: str | PathLike[str], run: str) -> Braid:
    """Return how the strands of a run were woven into its branch; of the newest run if none named.

    Raises:
        NoSuchRun: There is none of that name.
        StoreError: Its journal cannot be read.
    """
    place = await find_place(Path(folder), dict(environ))
    origin = await find_origin(place)

    def read() -> Braid:
        store = place.store
        name = RunId(run_named(run, store.runs()))
        with store.run(name, read_only=True) as journal:
            return braid_of(name, journal, origin)

    return await _in_thread(read)
