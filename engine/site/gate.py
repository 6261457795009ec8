"""Stand between an engine and a Ray cluster, and speak to the engine as a child does.

Ray ends the process that holds its client when the head of the cluster is gone, and its client
writes to that process's stderr. So it is never the engine itself. The far half lives in an actor
on a node, and ends with this process; nothing is tried again by Ray.
"""

import os
import socket
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NoReturn

import anyio

from engine.errors import WorkspaceError
from engine.site.far import Resident
from engine.site.line import Start
from engine.site.wire import Message, Pipe, refused

_INSTALL = "pip install 'plait[ray]'"
_KEPT = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""The variables of the user's that lead to a cluster; no agent sees them."""
_PATIENCE_S = 20.0
_CHECK = "Is a cluster there, with this token, and the same versions of Ray and Python?"


def start_of(address: str, environment: Mapping[str, str]) -> Start:
    """Return how the gate to a cluster is started.

    Raises:
        WorkspaceError: Ray is not installed, or the cluster would let everybody in.
    """
    if find_spec("ray") is None:
        raise WorkspaceError("Ray is not installed here", hint=f"`{_INSTALL}`")
    if environment.get("RAY_AUTH_MODE") != "token":
        raise WorkspaceError(
            "a Ray cluster without a token runs the code of everybody who reaches it",
            hint="Start each node with RAY_AUTH_MODE=token, and set it here too.",
        )
    words = (sys.executable, "-m", "engine.site.gate", address)
    return Start(words=words, keeps=_KEPT, name="ray")


def main() -> None:
    """Hold the conversation on standard input; the first word is the address of a cluster."""
    with socket.socket(fileno=os.dup(0)) as end:
        late = threading.Timer(_PATIENCE_S, _refuse, (end, sys.argv[1]))
        late.start()
        try:
            actor = _actor(sys.argv[1])
        except Exception as error:  # noqa: BLE001  whatever Ray says
            sys.stderr.write(f"{error}\n")
            _refuse(end, sys.argv[1])
        late.cancel()
        anyio.run(_pass_on, Pipe(end), actor)


def _actor(address: str) -> Any:
    import ray  # type: ignore[import-not-found]  # noqa: PLC0415  only this process has it

    ray.init(address=address, namespace="plait", log_to_driver=False)
    options = {"num_cpus": 0.01, "max_restarts": 0, "max_task_retries": 0}
    return ray.remote(Resident).options(**options, max_concurrency=1000).remote()


def _refuse(end: socket.socket, address: str) -> NoReturn:
    """Answer the first call with words that people can use."""

    async def answer() -> None:
        pipe = Pipe(end)
        message = await pipe.receive()
        said = refused(WorkspaceError(f"nothing answers at {address}", hint=_CHECK))
        if message is not None:
            await pipe.send({**said.head, "n": message.head["n"]})

    anyio.run(answer)
    os._exit(1)


async def _pass_on(pipe: Pipe, actor: Any) -> None:
    async def answer(number: int, coming: Any) -> None:
        try:
            said: Message = await coming
        except Exception as error:  # noqa: BLE001  whatever Ray says: the engine begins anew
            sys.stderr.write(f"call {number}: {error}\n")
            os._exit(1)
        await pipe.send(*said)

    async with anyio.create_task_group() as tasks:
        while (message := await pipe.receive()) is not None:
            number = message.head["n"]
            if "do" in message.head:
                tasks.start_soon(answer, number, actor.answer.remote(*message))
            else:
                actor.take_back.remote(number)
        os._exit(0)  # Ray ends the actor, whose owner this is


if __name__ == "__main__":
    main()
