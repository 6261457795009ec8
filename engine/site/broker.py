"""Find a node of a Ray cluster for each worker, by what the worker declares that it needs.

A reservation is a placement group of Ray: it starts no process, waits its turn where the cluster
is full, and shows what is wanted to whatever adds nodes. It limits nothing: keepers do that.
"""

import os
import socket
import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from engine.errors import SiteGone, SiteSilent, WorkspaceError
from engine.limits import Limits
from engine.patterns.together import gather
from engine.site.cluster_client import LivingNode, alive, check_shut, connect
from engine.site.far import Far, Opening
from engine.site.gate import KEPT, check_client, refuse
from engine.site.line import Start
from engine.site.resident import Resident, serve
from engine.site.wire import Pipe
from engine.values import dataclass

_LOOK_S = 1.0
_MEMORY = "memory"
_WAITING = frozenset({"PENDING", "RESCHEDULING"})
PREFIX = "plait"
"""The names of all reservations begin so."""


@dataclass(frozen=True, kw_only=True)
class NodeEntry:
    """A node of a cluster as people see it.

    Attributes:
        total: All that it has to give: `CPU`, `memory` in bytes, and resources of any name.
        free: The part that nobody has reserved.
        is_leaving: It was asked to leave, so no worker is placed there any more.
    """

    name: str
    total: Mapping[str, float]
    free: Mapping[str, float]
    is_leaving: bool = False


@dataclass(frozen=True, kw_only=True)
class QueuedEntry:
    """A worker that waits until a node has room for it.

    Attributes:
        worker: Its run and name.
        needs: What it is to reserve.
    """

    worker: str
    needs: Mapping[str, float]


def needs_of(limits: Limits, resources: Mapping[str, float]) -> dict[str, float]:
    """Return what a worker reserves: what its limits allow it, and what its site asks for each."""
    declared = {
        "CPU": (limits.cpu_percent or 0) / 100,
        _MEMORY: (limits.memory_mb or 0) * 1024.0**2,
    }
    return {name: amount for name, amount in (declared | dict(resources)).items() if amount}


def start_of(address: str, environment: Mapping[str, str], *, name: str) -> Start:
    """Return how the broker of a cluster is started."""
    words = (sys.executable, "-m", "engine.site.broker", address)
    return Start(words=words, keeps=KEPT, name=name, check=partial(check_client, environment))


class Broker:
    """The reservations of one engine in a cluster."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    async def open(self, opening: Opening) -> str:
        """Return the name of this process: reservations outlive it."""
        del opening
        return str(os.getpid())

    async def nodes(self) -> tuple[NodeEntry, ...]:
        """Return the nodes that live, with what of them is free."""
        there = await alive()
        free = await anyio.to_thread.run_sync(_free)
        return tuple(
            NodeEntry(
                name=one.name,
                total=one.total,
                free=free.get(one.id, {}),
                is_leaving=one.is_leaving,
            )
            for one in there
        )

    async def queued(self) -> tuple[QueuedEntry, ...]:
        """Return the workers of all engines that wait for room in this cluster."""
        return await anyio.to_thread.run_sync(_queued)

    async def reserve(self, name: str, needs: Mapping[str, float], node: str) -> str:
        """Reserve what a worker needs, on a certain node if one is named; return which it is.

        Asking again under the same name returns the same node, while it lives.

        Raises:
            SiteGone: The node that was named is not in the cluster.
            WorkspaceError: No node could ever have so much.
        """
        living = await alive()
        there = [one for one in living if not one.is_leaving]
        if not there:
            why = "every node of the cluster is being drained"
            raise SiteGone(why if living else "no node of the cluster is up")
        if node and all(one.name != node for one in there):
            raise SiteGone(f"the node {node} is not in the cluster")
        able = _able(needs, [one for one in there if node in {"", one.name}])
        held = Counter(self._given.values())
        wanted = min(able, key=lambda one: held[one.name])
        self._given[name] = wanted.name
        if not needs:
            return wanted.name
        if node:
            needs = {**needs, **_itself(wanted)}
        try:
            while True:
                found = await anyio.to_thread.run_sync(_reserved, name, needs, wanted.id)
                chosen = next((one.name for one in await alive() if one.id == found), None)
                if chosen is not None:
                    self._given[name] = chosen
                    return chosen
        except BaseException:  # nobody waits for it any more
            with anyio.CancelScope(shield=True):
                await self.free(name)
            raise

    async def free(self, name: str) -> None:
        """Give a reservation back; giving back none is harmless."""
        self._given.pop(name, None)
        await anyio.to_thread.run_sync(_remove, name)


def _able(needs: Mapping[str, float], there: list[LivingNode]) -> list[LivingNode]:
    """Return the nodes that have so much, whether it is free now or not."""
    for what, amount in needs.items():
        most = max((one.total.get(what, 0.0) for one in there), default=0.0)
        if amount > most:
            raise WorkspaceError(
                f"no node has {_said(what, amount)}; the largest has {_said(what, most)}",
                hint="Lower the limits of the step, or add a larger node.",
            )
    able = [one for one in there if all(one.total.get(w, 0.0) >= a for w, a in needs.items())]
    if not able:
        wanted = ", ".join(_said(*each) for each in needs.items())
        raise WorkspaceError(f"no single node has all of this: {wanted}")
    return able


def _itself(node: LivingNode) -> dict[str, float]:
    """Return a need that this node alone has: Ray gives each a resource of its address."""
    own = (n for n in node.total if n.startswith("node:") and not n.startswith("node:__"))
    return dict.fromkeys(own, 0.001)


def _said(what: str, amount: float) -> str:
    return f"{amount / 1024**2:.0f} MB of memory" if what == _MEMORY else f"{amount:g} {what}"


def _group(name: str) -> Any:
    import ray  # noqa: PLC0415  only this process has it

    try:
        return ray.util.get_placement_group(name)
    except ValueError:
        return None


def _reserved(name: str, needs: Mapping[str, float], node: str) -> str:
    """Return the id of the node of a reservation, which is the given one if it has room."""
    import ray  # noqa: PLC0415  only this process has it

    group = _group(name)
    if group is None:
        group = ray.util.placement_group(
            [dict(needs)],
            strategy="STRICT_PACK",
            name=name,
            lifetime="detached",
            _soft_target_node_id=node,
        )
    if not group.wait(_LOOK_S):
        return ""
    found: str = ray.util.placement_group_table(group)["bundles_to_node_id"][0]
    return found


def _queued() -> tuple[QueuedEntry, ...]:
    import ray  # noqa: PLC0415  only this process has it

    found = []
    for group in ray.util.placement_group_table().values():
        is_ours = group["name"].startswith(f"{PREFIX}/") and group["state"] in _WAITING
        if is_ours:
            needs = {n: a for n, a in group["bundles"][0].items() if not n.startswith("node:")}
            _, _, worker = group["name"].removeprefix(f"{PREFIX}/").partition("/")
            found.append(QueuedEntry(worker=worker, needs=needs))
    return tuple(sorted(found, key=lambda one: one.worker))


def _remove(name: str) -> None:
    import ray  # noqa: PLC0415  only this process has it

    group = _group(name)
    if group is not None:
        ray.util.remove_placement_group(group)


def _free() -> dict[str, dict[str, float]]:
    from ray._private.state import available_resources_per_node  # noqa: PLC0415  no public one

    return dict(available_resources_per_node())


CALLS = {
    Far.open.__qualname__: Broker.open,  # the first words of every conversation
    **{act.__qualname__: act for act in (Broker.nodes, Broker.queued, Broker.reserve, Broker.free)},
}


def main() -> None:
    """Hold the conversation on standard input; the first word is the address of a cluster."""
    with socket.socket(fileno=os.dup(0)) as end:
        anyio.run(_serve, Pipe(end), sys.argv[1])


async def _serve(pipe: Pipe, address: str) -> None:
    connecting = partial(anyio.to_thread.run_sync, connect, address)
    try:
        await gather([connecting, partial(check_shut, address)])
    except (SiteSilent, WorkspaceError) as why:
        await refuse(pipe, why)
    await serve(pipe, Resident({Broker: Broker()}, CALLS))


if __name__ == "__main__":
    main()
