"""Hold Ray's client in a process of its own: connect, and tell which nodes live.

Ray is imported in functions alone: it is an extra, and weighs on whoever imports it.
"""

import os
import sys
import threading
from collections.abc import Collection, Mapping
from typing import Any

import anyio
import anyio.to_thread

from engine.errors import SiteSilent, WorkspaceError
from engine.values import dataclass

PATIENCE_S = 12.0
"""The longest time until a cluster has answered."""
_KNOCKING = """
import sys
from ray._raylet import GcsClient
GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, timeout=5)
"""
_CHECK = "Check that a cluster runs there, with this token and the same versions of Ray and Python."


@dataclass(frozen=True, kw_only=True)
class LivingNode:
    """A node of a cluster that lives.

    Attributes:
        name: The name that it was started with; its address where it has none.
        total: All that it has to give: `CPU`, `memory` in bytes, and resources of any name.
        is_leaving: It was asked to leave, so nothing new begins there.
    """

    id: str
    name: str
    total: Mapping[str, float]
    is_leaving: bool = False


def connect(address: str) -> None:
    """Connect to a cluster, within our own time.

    Raises:
        SiteSilent: Nothing answers, or it refuses us.
    """
    import ray  # noqa: PLC0415  only such a process has it

    done = threading.Event()
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            ray.init(address=address, namespace="plait", log_to_driver=False)
        except BaseException as error:  # noqa: BLE001  whatever Ray says
            failed.append(error)
        done.set()

    threading.Thread(target=begin, daemon=True).start()
    if not done.wait(PATIENCE_S) or failed:
        sys.stderr.write(f"{failed}\n")
        raise SiteSilent(f"nothing answers at {address}", hint=_CHECK)


async def check_shut(address: str) -> None:
    """Refuse a cluster that answers whoever has no token.

    A process has one way to speak to Ray, so another one asks.

    Raises:
        WorkspaceError: It did.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    words = [sys.executable, "-c", _KNOCKING, address]
    with anyio.move_on_after(PATIENCE_S):  # what does not answer lets nobody in
        asked = await anyio.run_process(
            words, env={**env, "RAY_AUTH_MODE": "disabled"}, stdout=None, stderr=None, check=False
        )
        if asked.returncode == 0:
            raise WorkspaceError(
                f"the Ray cluster at {address} runs the code of everybody who reaches it",
                hint="Start each of its nodes with RAY_AUTH_MODE=token and the same token.",
            )


def ray_errors() -> tuple[type[Exception], type[Exception]]:
    """Return the errors that say that an actor has died, and that it does not answer now."""
    from ray.exceptions import ActorDiedError, ActorUnavailableError  # noqa: PLC0415

    return ActorDiedError, ActorUnavailableError


async def alive() -> tuple[LivingNode, ...]:
    """Return the nodes that live; this process ends where the cluster does not say."""
    try:
        with anyio.fail_after(PATIENCE_S):
            rows, leaving = await anyio.to_thread.run_sync(_rows, abandon_on_cancel=True)
    except Exception as error:  # noqa: BLE001  whatever Ray says
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    found: dict[str, LivingNode] = {}
    for row in rows:
        name = row["NodeName"]
        name = f"{name}-{row['NodeID'][:6]}" if name in found else name
        own = row["NodeID"]
        found[name] = LivingNode(
            id=own, name=name, total=row["Resources"], is_leaving=own in leaving
        )
    return tuple(found.values())


def _rows() -> tuple[list[dict[str, Any]], Collection[str]]:
    import ray  # noqa: PLC0415  only such a process has it
    from ray._private.state import state  # noqa: PLC0415  no public one

    living = (row for row in ray.nodes() if row["Alive"])
    return sorted(living, key=lambda row: str(row["NodeID"])), state.get_draining_nodes()
