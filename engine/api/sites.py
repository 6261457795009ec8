"""Tell what the sites of workers can do, and try one out.

A site is opened as an engine opens it, on a small repository in a temporary folder: nothing of the
user's is touched, and no living engine is disturbed.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import partial
from os import environ
from pathlib import Path

import anyio
import anyio.to_thread

from engine.api.errors_out import plain_errors
from engine.beneath import remove_tree
from engine.errors import EngineError, WorkspaceError, whole_of
from engine.git.sample import make_repository
from engine.host.local import LocalHost
from engine.patterns.together import gather
from engine.plan.model import Cluster, Plan
from engine.sandbox.probe import probe
from engine.site.broker import NodeEntry, QueuedEntry
from engine.site.child import ChildSite
from engine.site.cluster import RaySite
from engine.site.local import LocalSite
from engine.site.local_cluster import NAME, LocalCluster, end_local_cluster, start_local_cluster
from engine.site.place import Place, find_place
from engine.site.seam import Ability, Site, SiteReport
from engine.site.shelter import Shelter
from engine.site.sites import LOCAL
from engine.site.trial import FILE, PATIENCE_S, TEXT, Tried, tried
from engine.spec.words import SITES
from engine.store.layout import make_state_home
from engine.values import dataclass

LOCAL_CLUSTER = NAME
RAY = "ray:"
"""Before the address of a Ray cluster that no manifest names."""


@dataclass(frozen=True, kw_only=True)
class SiteEntry:
    """One site: what it can do, or why it does not answer.

    Attributes:
        nodes: The nodes of a cluster, with what is free of them.
        machines: What each node says of itself on which a worker may live, by its name.
        queued: The workers that wait until a node has room for them.
    """

    name: str
    abilities: tuple[Ability, ...] = ()
    report: SiteReport | None = None
    nodes: tuple[NodeEntry, ...] = ()
    machines: Mapping[str, "SiteEntry"] = field(default_factory=dict)
    queued: tuple[QueuedEntry, ...] = ()
    problem: str = ""


async def describe_sites(
    environment: Mapping[str, str] | None = None, *, plans: Sequence[Plan] = ()
) -> tuple[SiteEntry, ...]:
    """Return every site, with what it enforces, what it has to give, and its versions.

    `plans` are those of a manifest, which may add sites.
    """
    env = dict(environ if environment is None else environment)
    own = [await _described(name, env) for name in SITES]
    return (*own, *[await _listed(cluster, env) for cluster in _added(plans)])


def _added(plans: Sequence[Plan]) -> tuple[Cluster, ...]:
    """Return the clusters that a manifest adds: all its plans name the same."""
    return plans[0].runtime.clusters if plans else ()


async def _listed(cluster: Cluster, env: Mapping[str, str]) -> SiteEntry:
    try:
        async with _used(cluster, env) as (site, _):
            nodes, queued = await site.nodes(), await site.queued()
            usable = await site.usable()
            machines = await gather(partial(_machine, one.line.name, one) for one in usable)
    except EngineError as error:
        return SiteEntry(name=cluster.name, problem=whole_of(error))
    return SiteEntry(
        name=cluster.name,
        abilities=tuple(sorted(site.abilities)),
        nodes=nodes,
        machines={one.name.partition("/")[2]: one for one in machines},
        queued=queued,
    )


async def _described(name: str, env: Mapping[str, str]) -> SiteEntry:
    try:
        async with _opened(name, env) as (site, _):
            return await _machine(name, site)
    except (EngineError, OSError) as error:
        return SiteEntry(name=name, problem=whole_of(error))


async def _machine(name: str, site: Site) -> SiteEntry:
    """Return what the machine of a site says of itself, or why it says nothing."""
    try:
        with anyio.fail_after(PATIENCE_S):
            report = await site.describe()
    except (EngineError, OSError, TimeoutError) as error:
        said = whole_of(error) if str(error) else "it does not answer"
        return SiteEntry(name=name, problem=said)
    return SiteEntry(name=name, abilities=tuple(sorted(site.abilities)), report=report)


async def try_site(
    name: str, environment: Mapping[str, str] | None = None, *, plans: Sequence[Plan] = ()
) -> tuple[Tried, ...]:
    """Let a worker be made, work, be brought home, stopped and removed at a site.

    `plans` are those of a manifest, which may add sites, and `ray:ADDRESS` is one that none adds.
    Of a cluster each node is tried on which a worker may live. Return each of these, up to the
    first that went wrong.

    Raises:
        WorkspaceError: There is no such site, or no cluster answers.
    """
    env = dict(environ if environment is None else environment)
    named = {one.name: one for one in _added(plans)}
    if name.startswith(RAY):
        named[name] = Cluster(name="ray", address=name.removeprefix(RAY))
    if name in named:
        async with _used(named[name], env) as (far, place):
            return tuple([one for node in await far.usable() for one in await tried(node, place)])
    if name not in SITES:
        known = ", ".join((*SITES, *named))
        raise WorkspaceError(
            f"there is no site {name!r}",
            hint=f"Name one of {known}, or {RAY}ADDRESS for a cluster.",
        )
    async with _opened(name, env) as (site, place):
        return await tried(site, place)


async def start_cluster(environment: Mapping[str, str] | None = None) -> LocalCluster:
    """Start a Ray cluster of this machine alone, for trying one; return the one that is up.

    Raises:
        WorkspaceError: Ray is not installed, or cannot be started.
    """
    env = dict(environ if environment is None else environment)
    home = await anyio.to_thread.run_sync(make_state_home, env)
    return await start_local_cluster(home, env)


async def end_cluster(environment: Mapping[str, str] | None = None) -> bool:
    """End that cluster, with every worker that lives there; return whether it was up."""
    env = dict(environ if environment is None else environment)
    return await end_local_cluster(await anyio.to_thread.run_sync(make_state_home, env))


@asynccontextmanager
async def _place(env: Mapping[str, str]) -> AsyncIterator[tuple[Place, Path]]:
    """Make a repository that goes again, and a folder for all that sites keep of it."""
    home = await anyio.to_thread.run_sync(make_state_home, env)
    folder = await anyio.to_thread.run_sync(_folder, home)
    try:
        project = folder / "repository"
        await make_repository(project, env, message="trial")
        place = await find_place(project, {**env, "PLAIT_STATE_HOME": str(folder)})
        await anyio.to_thread.run_sync(place.layout.make)
        yield place, folder
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove_tree, folder)


@asynccontextmanager
async def _used(cluster: Cluster, env: Mapping[str, str]) -> AsyncIterator[tuple[RaySite, Place]]:
    """Open a cluster on such a repository."""
    with plain_errors():
        async with _place(env) as (place, home), RaySite.opened(cluster, place, home, env) as site:
            try:
                yield site, place
            finally:
                with anyio.CancelScope(shield=True), suppress(EngineError):
                    await site.leave()


@asynccontextmanager
async def _opened(name: str, env: Mapping[str, str]) -> AsyncIterator[tuple[Site, Place]]:
    """Open a site of this machine on such a repository."""
    home = await anyio.to_thread.run_sync(make_state_home, env)
    machine = await anyio.to_thread.run_sync(probe, env, home / "machine")
    async with _place(env) as (place, folder):
        shelter = Shelter(machine=machine, layout=place.layout, project=place.project, environ=env)
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
            confines = near.can_confine
            open_child = partial(ChildSite.opened, place, folder, env, tethers=lambda _: True)
            async with open_child(can_confine=confines) as child:
                yield child, place


def _folder(home: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trial-", dir=home))
    (folder / "repository").mkdir()
    (folder / "repository" / FILE).write_text(TEXT)
    return folder
