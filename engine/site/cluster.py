"""The site that is a Ray cluster: each worker lives on a node, which is a far half like a child's.

Placement, liveness and transport are Ray's. Attempts, retries, limits and all that is kept are not.
"""

import hashlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.errors import EngineError, SiteSilent, WorkspaceError
from engine.git.parcel import check_carried
from engine.host.seam import Host
from engine.ids import AttemptId, RunId, WorkerId
from engine.limits import Dimension
from engine.patterns.background import Background
from engine.patterns.together import gather
from engine.plan.model import AgentChoice, Cluster, Runtime
from engine.site import broker, gate
from engine.site.broker import PREFIX, Broker, NodeEntry, QueuedEntry, needs_of
from engine.site.child import ChildSite, key_of
from engine.site.far import Opening, lease_of
from engine.site.late import FOLDER, LateSpaces
from engine.site.line import Line
from engine.site.place import Place
from engine.site.seam import SpaceAddress, Terms, Workplace

_BROKER = ".broker"
_LOOK_S = 2.0
_MARGIN_S = 5.0
_ENFORCED = (Dimension.FILES, Dimension.GIT)
"""Dimensions without which agents would reach the cluster's token, and each other."""


class NodeSite(ChildSite):
    """A node of a cluster; what its workers had reserved is given back when they end.

    Attributes:
        is_leaving: It was asked to leave.
    """

    def __init__(
        self,
        line: Line,
        place: Place,
        *,
        tethers: Callable[[RunId], bool],
        can_confine: bool,
        free: Callable[[RunId, WorkerId], object],
    ) -> None:
        super().__init__(line, place, tethers=tethers, can_confine=can_confine)
        self._free = free
        self.is_leaving = False
        self._late = self._git = LateSpaces(line, self._repo, place.layout)

    async def bring_late(self) -> dict[AttemptId, str]:
        """Bring the work of attempts that were given up; return where each is kept."""
        return await self._late.bring()

    async def is_there(self, address: SpaceAddress) -> bool:
        """Return whether a workspace is there to go on in: on a node that leaves is none."""
        return not self.is_leaving and await super().is_there(address)

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is held for an attempt that has ended, and what it had reserved."""
        self._free(attempt.run, attempt.worker)
        await super().forget(attempt)

    async def free_ports(self, run: RunId, worker: WorkerId) -> None:
        """Return a worker's ports, and what it had reserved."""
        self._free(run, worker)
        await super().free_ports(run, worker)


class RaySite:
    """A Ray cluster as one engine uses it: opened by the first call that needs it.

    `heard_late` learns where the work of an attempt is kept that came after it was given up, and
    `heard_silence` why a site does not answer, or that it does again. `heard_leaving` hears of a
    node that was asked to leave.
    """

    abilities = ChildSite.abilities

    def __init__(
        self,
        cluster: Cluster,
        place: Place,
        home: Path,
        environment: Mapping[str, str],
        *,
        tasks: TaskGroup,
        tethers: Callable[[RunId], bool],
    ) -> None:
        if place.repo is None:
            raise WorkspaceError(f"the site {cluster.name!r} needs a git repository")
        self.cluster = cluster
        self.heard_late: Callable[[AttemptId, str], None] = lambda _attempt, _ref: None
        self.heard_silence: Callable[[str, SiteSilent | None], None] = lambda _site, _why: None
        self.heard_leaving: Callable[[str], None] = lambda _site: None
        self._place = place
        self._repo = place.repo
        # Several machines may use one cluster, each with a repository of the same path.
        here = f"{socket.gethostname()} {key_of(place)} {cluster.name}"
        self._key = hashlib.sha256(here.encode()).hexdigest()[:10]
        self._home = home / "sites" / f"{cluster.name}-{self._key}"
        self._environment = environment
        self._tasks, self._background = tasks, Background(tasks)
        self._tethers = tethers
        self._nodes: dict[str, NodeSite] = {}
        self._placed: dict[tuple[RunId, WorkerId], str] = {}
        self._admitted: set[tuple[str, int, tuple[str, ...]]] = set()
        start = broker.start_of(cluster.address, environment, name=cluster.name)
        opening = Opening(
            home=self._home / _BROKER,
            project=place.project,
            object_format="",
            environment=environment,
        )
        self._broker = Line(opening, tasks, start)
        self._broker.patience = self._patience
        self._is_looking = False
        self._idle: dict[str, float] = {}

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, cluster: Cluster, place: Place, home: Path, environment: Mapping[str, str]
    ) -> AsyncIterator[Self]:
        """Open a cluster for as long as this is held; nothing of ours lives there afterwards."""
        async with anyio.create_task_group() as tasks:
            site = cls(cluster, place, home, environment, tasks=tasks, tethers=lambda _: True)
            try:
                yield site
            finally:
                with anyio.CancelScope(shield=True):
                    await site.close(lambda host: host.aclose(detach=False))
                tasks.cancel_scope.cancel()

    def node(self, name: str) -> NodeSite:
        """Return a node by its name, whether it lives or not."""
        if name not in self._nodes:
            start = gate.start_of(
                self.cluster.address,
                self._environment,
                node=name,
                key=self._key,
                name=f"{self.cluster.name}/{name}",
            )
            crossing = {n: self._environment[n] for n in self.cluster.env if n in self._environment}
            opening = Opening(
                home=self._home / quote(name, safe=""),
                project=self._place.project,
                object_format=self._repo.object_format,
                environment=crossing,
                key=f"{self._key}-{quote(name, safe='')}",  # nodes may share a disk
                lease_s=self.cluster.lease_s,
            )
            line = Line(opening, self._tasks, start, environment=self._environment)
            line.patience = self._patience
            line.heard_silence = lambda why: self.heard_silence(line.name, why)
            self._nodes[name] = NodeSite(
                line,
                self._place,
                tethers=self._tethers,
                can_confine=not self.cluster.is_open,
                free=self._free,
            )
        return self._nodes[name]

    def _patience(self) -> float:
        """Return after how many seconds of silence no agent lives any more, whoever was to stay."""
        known = {run for run, _ in self._placed}  # nobody knows what an earlier engine had said
        is_loose = not known or not all(map(self._tethers, known))
        return lease_of(self.cluster.lease_s, is_loose=is_loose) + _MARGIN_S

    async def members(self) -> tuple[NodeSite, ...]:
        """Return the nodes that ever kept anything of this repository."""
        folder = anyio.Path(self._home)
        if not await folder.exists():
            return ()
        names = sorted([unquote(one.name) async for one in folder.iterdir()])
        return tuple(self.node(name) for name in names if name != _BROKER)

    async def nodes(self) -> tuple[NodeEntry, ...]:
        """Return the nodes that live; from the first look on, late work is looked for too."""
        if not self._is_looking:
            self._is_looking = True
            self._background.start_soon(self._look_round, failed=None)  # it goes on by itself
        there = await self._broker.call(Broker.nodes)
        for one in there:
            node = self._nodes.get(one.name)
            if node is not None:
                node.is_leaving = one.is_leaving
                if one.is_leaving:  # at each look: somebody may only now have begun there
                    self.heard_leaving(node.line.name)
        return there

    async def queued(self) -> tuple[QueuedEntry, ...]:
        """Return the workers, of any engine, that wait until a node has room for them."""
        return await self._broker.call(Broker.queued)

    def placed(self, run: RunId, worker: WorkerId) -> NodeSite:
        """Return the node of a worker whose workspace is not made yet.

        Raises:
            WorkspaceError: It has none.
        """
        if (run, worker) not in self._placed:
            raise WorkspaceError(f"{worker} has no node of {self.cluster.name} yet")
        return self.node(self._placed[run, worker])

    async def place(self, at: Workplace) -> NodeSite:
        """Reserve what an attempt needs; return the node, which is its workspace's if it has one.

        Raises:
            SiteSilent: Nothing answers.
            SiteGone: The node of its workspace is gone.
            WorkspaceError: No node could ever have so much, or the one that has may not be used.
        """
        await self.nodes()
        run, worker = at.attempt.run, at.attempt.worker
        _, _, bound = at.address.site.partition("/")
        needs = needs_of(at.limits, self.cluster.resources)
        name = await self._broker.call(Broker.reserve, self._name_of(run, worker), needs, bound)
        self._placed[run, worker] = name
        await self._admit(self.node(name), at.terms)
        return self.node(name)

    def _name_of(self, run: RunId, worker: WorkerId) -> str:
        return f"{PREFIX}/{self._key}/{run}/{worker}"

    def _free(self, run: RunId, worker: WorkerId) -> None:
        if self._placed.pop((run, worker), None) is not None:
            # What is left of a reservation goes with the cluster.
            self._background.start_soon(self._give_back, self._name_of(run, worker), failed=None)

    async def _give_back(self, name: str) -> None:
        await self._broker.insist(partial(self._broker.call, Broker.free, name))

    async def admit(self, terms: Terms, rows: object = None) -> None:
        """Refuse a run unless every node that it may use enforces what it requires."""
        del rows
        await check_carried(self._repo, terms.runtime.base or "HEAD")
        there = await self.usable()
        await gather(partial(self._admit, node, terms) for node in there)

    async def usable(self) -> tuple[NodeSite, ...]:
        """Return the nodes on which a worker may come to live.

        Raises:
            WorkspaceError: There is none.
        """
        wanted = self.cluster.resources.items()
        there = [
            self.node(one.name)
            for one in await self.nodes()
            if not one.is_leaving and all(one.total.get(name, 0.0) >= most for name, most in wanted)
        ]
        if not there:
            names = ", ".join(self.cluster.resources) or "any kind"
            raise WorkspaceError(
                f"the cluster {self.cluster.name} has no live node of {names}",
                hint="`plait sites` lists the live nodes and what they have.",
            )
        return tuple(there)

    async def _admit(self, node: NodeSite, terms: Terms) -> None:
        required = terms.runtime.require
        if not self.cluster.is_open:
            required = tuple(dict.fromkeys((*required, *(str(one) for one in _ENFORCED))))
        known = (node.line.name, node.line.births, required)
        if known in self._admitted:
            return
        await node.admit(replace(terms, runtime=replace(terms.runtime, require=required)))
        self._admitted.add((node.line.name, node.line.births, required))

    async def check_agents(
        self, agents: Sequence[AgentChoice], runtime: Runtime, folder: str
    ) -> None:
        """Refuse agents that cannot be started on every node that they may come to."""
        nodes = await self.usable()
        await gather(partial(one.check_agents, tuple(agents), runtime, folder) for one in nodes)

    async def tidy(self, run: RunId) -> None:
        """Remove the empty folders of a run that is over."""
        for node in await self.members():
            await node.tidy(run)

    def _rest(self) -> None:
        """End far halves that nobody has needed for a lease: with them no node is idle for Ray."""
        now, held = time.monotonic(), set(self._placed.values())
        for name, node in self._nodes.items():
            if name in held or not node.line.is_open:
                self._idle.pop(name, None)
            elif now - self._idle.setdefault(name, now) > lease_of(self.cluster.lease_s):
                del self._idle[name]
                self._background.start_soon(node.line.rest, failed=None)  # it is tried again

    async def _look_round(self) -> None:
        """Look for nodes that are to go, and for those that are back and owe work of attempts."""
        while True:
            self._rest()
            with suppress(EngineError, OSError):
                folders = await anyio.to_thread.run_sync(_owing, self._home)
                is_wanted = folders or self._placed
                there = {one.name for one in await self.nodes()} if is_wanted else set()
                for name in folders & there:
                    for attempt, ref in (await self.node(name).bring_late()).items():
                        self.heard_late(attempt, ref)
            await anyio.sleep(_LOOK_S)

    async def leave(self) -> None:
        """Remove all that is kept of this repository on the nodes that were spoken to."""
        for node in self._nodes.values():
            if node.line.is_open:
                await node.line.leave()

    async def close(self, let_go: Callable[[Host], Awaitable[None]]) -> None:
        """Release every node, and hang up."""
        with anyio.CancelScope(shield=True):
            await gather(partial(let_go, node.host) for node in self._nodes.values())
            await self._broker.close()


def _owing(home: Path) -> set[str]:
    """Return the nodes that owe the work of some attempt."""
    return {unquote(file.parent.parent.name) for file in home.glob(f"*/{FOLDER}/*")}
