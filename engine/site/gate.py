"""Stand between an engine and one node of a Ray cluster, and speak to the engine as a child does.

Ray ends the process that holds its client when the head of the cluster is gone, and its client
writes to that process's stderr. So it is never the engine itself. The far half lives in a detached
actor on the node. Nothing is tried again by Ray, and no call waits for longer than the node lives.
"""

import os
import secrets
import socket
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

from engine.errors import SiteGone, SiteSilent, WorkspaceError
from engine.site.cluster_client import alive, connect, ray_errors
from engine.site.far import Detached, Far
from engine.site.line import Start
from engine.site.wire import Message, Pipe, refused

KEPT = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""The variables of the user's that lead to a cluster; no agent sees them."""
_INSTALL = "pip install 'plait[ray]'"
_BIRTH_S = 45.0
_PING_S = 1.0
_LATE_S = 3.0


def check_client(environment: Mapping[str, str]) -> None:
    """Refuse where no cluster can be spoken to from here.

    Raises:
        WorkspaceError: Ray is not installed, the cluster would let everybody in, or there is no
            token.
    """
    if find_spec("ray") is None:
        raise WorkspaceError("Ray is not installed here", hint=f"`{_INSTALL}`")
    if environment.get("RAY_AUTH_MODE") != "token":
        raise WorkspaceError(
            "a Ray cluster without a token runs code of anyone who can reach it",
            hint="Start each node with RAY_AUTH_MODE=token, and set that here too.",
        )
    file = Path(environment.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray/auth_token")
    if not environment.get("RAY_AUTH_TOKEN") and not file.is_file():
        raise WorkspaceError(
            f"there is no token of a Ray cluster at {file}",
            hint="RAY_AUTH_TOKEN_PATH names the file with the token that its nodes have.",
        )


def start_of(
    address: str, environment: Mapping[str, str], *, node: str, key: str, name: str
) -> Start:
    """Return how the gate to a node of a cluster is started."""
    words = (sys.executable, "-m", "engine.site.gate", address, node, key)
    return Start(words=words, keeps=KEPT, name=name, check=partial(check_client, environment))


def main() -> None:
    """Hold the conversation on standard input; the words are an address, a node and a key."""
    address, node, key, *_ = sys.argv[1:]
    with socket.socket(fileno=os.dup(0)) as end:
        anyio.run(_serve, Pipe(end), address, node, key)


async def _serve(pipe: Pipe, address: str, node: str, key: str) -> None:
    try:
        connect(address)
        gate = _Gate(pipe, address, node, f"plait/{key}")
        with anyio.fail_after(_BIRTH_S):
            await gate.reach()
    except TimeoutError:
        await refuse(pipe, SiteSilent(f"the node {node} does not answer"))
    except (SiteGone, SiteSilent) as why:
        await refuse(pipe, why)
    else:
        await gate.pass_on()


async def refuse(pipe: Pipe, error: Exception) -> None:
    """Answer the first call with words that people can use, and end."""
    message = await pipe.receive()
    if message is not None:
        said = refused(error)
        await pipe.send({**said.head, "n": message.head["n"]})
    os._exit(1)


class _Gate:
    def __init__(self, pipe: Pipe, address: str, node: str, name: str) -> None:
        self._pipe = pipe
        self._address = address
        self._node = node
        self._name = name
        self._me = secrets.token_hex(8)
        self._actor: Any = None
        self._is_over = False

    async def reach(self) -> None:
        """Find the actor on the node, or make it; return when it has answered.

        Raises:
            SiteGone: The node is not in the cluster.
        """
        import ray  # noqa: PLC0415  only this process has it
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415

        died, unavailable = ray_errors()
        options = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "get_if_exists": True}
        while True:
            there = await alive()
            found = next((one for one in there if one.name == self._node), None)
            if found is None:
                raise SiteGone(
                    f"the node {self._node} is not in the cluster at {self._address}",
                    hint="`plait sites` lists its nodes.",
                )
            where = NodeAffinitySchedulingStrategy(node_id=found.id, soft=False)
            far = ray.remote(Detached).options(
                **options,
                name=f"{self._name}/{found.name}",
                lifetime="detached",
                max_concurrency=1000,
                scheduling_strategy=where,
            )
            try:
                self._actor = far.remote()
                with anyio.fail_after(_BIRTH_S / 3):
                    await self._actor.renew.remote(self._me)
            except (TimeoutError, died, unavailable) as error:
                sys.stderr.write(f"{self._name}: {error!r}\n")
                await anyio.sleep(_PING_S / 2)
            else:
                return

    async def pass_on(self) -> None:
        """Carry calls and answers until the engine hangs up, or the far half is gone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ping)
            while (message := await self._pipe.receive()) is not None:
                number = f"{self._me}:{message.head['n']}"
                if "do" in message.head:
                    asked = Message({**message.head, "n": number}, message.blob)
                    tasks.start_soon(self._answer, message.head["n"], asked)
                else:
                    self._actor.take_back.remote(number)
            if self._is_over:
                import ray  # noqa: PLC0415  only this process has it

                ray.kill(self._actor)  # nothing lives there any more
            os._exit(0)

    async def _answer(self, number: int, asked: Message) -> None:
        said: Message = await self._lasting(lambda: self._actor.answer.remote(*asked))
        if asked.head["do"] in {Far.close.__qualname__, Far.remove.__qualname__}:
            self._is_over = said.head.get("value") is True
        await self._pipe.send({**said.head, "n": number}, said.blob)

    async def _lasting(self, act: Any) -> Any:
        """Return an answer; unavailable is not lost, so ask on until the actor has died."""
        _, unavailable = ray_errors()
        while True:
            try:
                return await act()
            except unavailable:
                await anyio.sleep(_PING_S / 2)
            except Exception as error:  # noqa: BLE001  it has died, or what else Ray says
                sys.stderr.write(f"{self._name}: {error!r}\n")
                os._exit(1)

    async def _ping(self) -> None:
        """Renew the lease; end this process when the node is gone, whatever waits for it."""
        while True:
            with anyio.move_on_after(_LATE_S) as late:
                await self._lasting(lambda: self._actor.renew.remote(self._me))
            if late.cancelled_caught and all(one.name != self._node for one in await alive()):
                sys.stderr.write(f"{self._name}: the node {self._node} is gone\n")
                os._exit(1)
            await anyio.sleep(_PING_S)


if __name__ == "__main__":
    main()
