"""Tell what the sites of workers can do, and try one out.

A site is opened as an engine opens it, on a small repository in a temporary folder: nothing of the
user's is touched, and no living engine is disturbed.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from os import environ
from pathlib import Path

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.errors import EngineError, WorkspaceError
from engine.git.sample import make_repository
from engine.host.local import LocalHost
from engine.sandbox.probe import probe
from engine.site.child import ChildSite
from engine.site.gate import start_of
from engine.site.line import NAME as CHILD
from engine.site.local import LocalSite
from engine.site.place import Place, find_place
from engine.site.seam import Ability, Site, SiteReport
from engine.site.shelter import Shelter
from engine.site.sites import LOCAL
from engine.site.trial import FILE, PATIENCE_S, TEXT, Tried, tried
from engine.store.layout import make_state_home

SITES = (LOCAL, CHILD)
"""The names of all sites in which workers can live."""
RAY = "ray:"
"""Before the address of a Ray cluster: what can be tried, but not yet lived in."""


@dataclass(frozen=True, kw_only=True)
class SiteEntry:
    """One site: what it can do, or why it does not answer."""

    name: str
    abilities: tuple[Ability, ...] = ()
    report: SiteReport | None = None
    problem: str = ""


async def describe_sites(environment: Mapping[str, str] | None = None) -> tuple[SiteEntry, ...]:
    """Return every site, with what it enforces, what it has to give, and its versions."""
    env = dict(environ if environment is None else environment)
    return tuple([await _described(name, env) for name in SITES])


async def _described(name: str, env: Mapping[str, str]) -> SiteEntry:
    try:
        async with _opened(name, env) as (site, _):
            with anyio.fail_after(PATIENCE_S):
                report = await site.describe()
            return SiteEntry(name=name, abilities=tuple(sorted(site.abilities)), report=report)
    except (EngineError, OSError, TimeoutError) as error:
        return SiteEntry(name=name, problem=str(error) or "it does not answer")


async def try_site(name: str, environment: Mapping[str, str] | None = None) -> tuple[Tried, ...]:
    """Let a worker be made, work, be brought home, stopped and removed at a site.

    `ray:ADDRESS` is a node of a Ray cluster. Return each of these, up to the first that went wrong.

    Raises:
        WorkspaceError: There is no such site.
    """
    if name not in SITES and not name.startswith(RAY):
        known = ", ".join(SITES)
        raise WorkspaceError(
            f"there is no site {name!r}",
            hint=f"There are {known}, and {RAY}ADDRESS for a cluster.",
        )
    env = dict(environ if environment is None else environment)
    async with _opened(name, env) as (site, place):
        return await tried(site, place)


@asynccontextmanager
async def _opened(name: str, env: Mapping[str, str]) -> AsyncIterator[tuple[Site, Place]]:
    """Open a site on a repository that goes again, with all that the site keeps of it."""
    home = await anyio.to_thread.run_sync(make_state_home, env)
    machine = await anyio.to_thread.run_sync(probe, env, home / "machine")
    folder = await anyio.to_thread.run_sync(_folder, home)
    try:
        project = folder / "repository"
        await make_repository(project, env, message="trial")
        place = await find_place(project, {**env, "PLAIT_STATE_HOME": str(folder)})
        await anyio.to_thread.run_sync(place.layout.make)
        shelter = Shelter(machine=machine, layout=place.layout, project=project, environ=env)
        async with LocalHost(place.layout.root) as host:
            near = LocalSite(
                place,
                host=host,
                shelter=shelter,
                environment=env,
                tethers=lambda _: True,
            )
            if name == LOCAL:
                yield near, place
                return
            open_child = partial(ChildSite.opened, place, folder, env, tethers=lambda _: True)
            if name.startswith(RAY):
                open_child = partial(open_child, start=start_of(name.removeprefix(RAY), env))
            async with open_child(can_confine=near.can_confine) as child:
                yield child, place
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove_tree, folder)


def _folder(home: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=home))
    (folder / "repository").mkdir()
    (folder / "repository" / FILE).write_text(TEXT)
    return folder
