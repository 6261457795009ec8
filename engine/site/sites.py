"""Know the sites of one engine, and which of them each worker of a run lives in."""

from collections.abc import Callable
from dataclasses import replace

from engine.core.state import RunState
from engine.errors import SiteSilent, WorkspaceError
from engine.ids import AttemptId, WorkerId
from engine.plan.model import AgentChoice, Cluster, Plan
from engine.site.cluster import RaySite
from engine.site.local import LocalSite
from engine.site.seam import Site, SpaceAddress, Workplace

LOCAL = "local"
"""The name of the site that is this machine's own disk."""


class Sites:
    """The sites of one engine by name.

    Attributes:
        near: This machine's own disk.
        known: Those of this machine.
        clusters: Those that manifests have added, by name and address, as far as they were used.
        open_cluster: Opens one of them; None where there can be none.
        heard_late: Hears where the work of an attempt is kept that came after it was given up.
        heard_silence: Hears why a site does not answer, and None once it does again.
        heard_leaving: Hears of a site that was asked to leave, so that its workers move.
    """

    def __init__(self, near: LocalSite, *, default: str = LOCAL) -> None:
        """Begin with this machine alone; `default` is the name where a manifest chooses none."""
        self.near = near
        self.known: dict[str, Site] = {LOCAL: near}
        self.clusters: dict[tuple[str, str], RaySite] = {}
        self.open_cluster: Callable[[Cluster], RaySite] | None = None
        self.heard_late: Callable[[AttemptId, str], None] = lambda _attempt, _ref: None
        self.heard_silence: Callable[[str, SiteSilent | None], None] = lambda _site, _why: None
        self.heard_leaving: Callable[[str], None] = lambda _site: None
        self._default = default or LOCAL

    def chosen(self, plan: Plan) -> Plan:
        """Return a plan that names its site, so that a later engine finds its workers there."""
        name = plan.runtime.site or self._default
        return replace(plan, runtime=replace(plan.runtime, site=name))

    def of(self, state: RunState, worker: WorkerId) -> Site:
        """Return where a worker lives, or will live.

        Raises:
            WorkspaceError: There is no site of that name here, or no node has been found for it.
        """
        return self._at(state, worker, state.workers[worker].begun.site)

    def at(self, state: RunState, address: SpaceAddress) -> Site:
        """Return where a workspace is, or is being made.

        Raises:
            WorkspaceError: As `of` does.
        """
        return self._at(state, address.attempt.worker, address.site)

    async def is_there(self, state: RunState, address: SpaceAddress) -> bool:
        """Return whether a workspace is there; one that was never made is not."""
        return bool(address.path) and await self.at(state, address).is_there(address)

    def _at(self, state: RunState, worker: WorkerId, name: str) -> Site:
        name, _, node = (name or state.plan.site_of(worker.step) or LOCAL).partition("/")
        site = self._named(state.plan, name)
        if isinstance(site, RaySite):
            return site.node(node) if node else site.placed(state.run, worker)
        return site

    async def place(self, state: RunState, at: Workplace) -> Site:
        """Find a place for a workspace that is to be made, or made ready again.

        Raises:
            WorkspaceError: There is none, or there never could be.
        """
        name = at.address.site or state.plan.site_of(at.attempt.worker.step) or LOCAL
        site = self._named(state.plan, name.partition("/")[0])
        return await site.place(at) if isinstance(site, RaySite) else site

    def is_near(self, plan: Plan, step: str) -> bool:
        """Return whether the workers of a step live on this machine's own disk."""
        return (plan.site_of(step) or LOCAL) == LOCAL

    def used_by(self, plan: Plan) -> dict[Site | RaySite, tuple[AgentChoice, ...]]:
        """Return each site of a plan, with the agents that work there.

        Raises:
            WorkspaceError: There is no site of that name here.
        """
        used: dict[Site | RaySite, tuple[AgentChoice, ...]] = {}
        for step in plan.steps:
            site = self._named(plan, plan.site_of(step.name) or LOCAL)
            agents = (worker.agent for worker in step.workers if worker.agent is not None)
            every = {id(agent): agent for agent in (*used.get(site, ()), *agents)}
            used[site] = tuple(every.values())
        return used

    async def every(self) -> tuple[Site, ...]:
        """Return all sites in which anything may lie, as far as they were used."""
        nodes = [node for one in self.clusters.values() for node in await one.members()]
        return (*self.known.values(), *nodes)

    def _named(self, plan: Plan, name: str) -> Site | RaySite:
        cluster = next((one for one in plan.runtime.clusters if one.name == name), None)
        if cluster is not None and self.open_cluster is not None:
            key = (cluster.name, cluster.address)
            if key not in self.clusters:
                self.clusters[key] = self.open_cluster(cluster)
                self.clusters[key].heard_late = self.heard_late
                self.clusters[key].heard_silence = self.heard_silence
                self.clusters[key].heard_leaving = self.heard_leaving
            return self.clusters[key]
        if name not in self.known:
            known = ", ".join(sorted(self.known))
            raise WorkspaceError(
                f"there is no site {name!r} here",
                hint=f"Sites here: {known}. Only a git repository can have sites other than local.",
            )
        return self.known[name]
