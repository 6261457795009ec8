"""Send one request to a living engine from a process that has loaded next to nothing.

In every unusual case there is no answer and no reason. The ordinary way then runs the command, and
says what is wrong.
"""

from __future__ import annotations

import json
import os
import socket
import struct

from engine.port import capability

TYPE_CHECKING = False  # `typing` costs as much as all that this module does
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PEER = struct.Struct("3i")
_PATIENCE_S = 10.0
"""The time for a greeting; an engine that is busier is waited for in the ordinary way."""
_OWNER = "owner"
"""As `engine.messages.roles` has it."""


def answer_of(state: str, request: Mapping[str, Any]) -> Any:
    """Return what the engine of a repository answers; None where there is no answer.

    Args:
        state: The folder where plait keeps what it knows of the repository.
        request: As `engine.port.protocol` has it, without its number.
    """
    try:
        return _answer(state, request)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _answer(state: str, request: Mapping[str, Any]) -> Any:
    with open(f"{state}/engine.json", "rb") as file:
        named = json.load(file)
    if named["v"] != capability.VERSION:
        return None
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_PATIENCE_S)
        line.connect(named["socket"])
        _, uid, _ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid():
            return None
        with line.makefile("rwb") as stream:
            if not _is_greeted(stream, capability.read_key(f"{state}/engine.key")):
                return None
            line.settimeout(None)
            return _exchange(stream, {"id": 1, **request}).get("ok")


def _is_greeted(stream: Any, key: bytes) -> bool:
    """Prove to know the engine's key; return True if the engine proves it too."""
    hello = json.loads(stream.readline())
    if hello.get("plait") != "engine" or hello.get("v") != capability.VERSION:
        return False
    nonces = str(hello["nonce"]), capability.new_nonce()
    proof = capability.proof(key, _OWNER, capability.CLIENT, nonces)
    said = {"v": capability.VERSION, "role": _OWNER, "nonce": nonces[1], "proof": proof}
    wanted = capability.proof(key, _OWNER, capability.ENGINE, nonces)
    return capability.is_proof(_exchange(stream, said).get("proof"), wanted)


def _exchange(stream: Any, message: Mapping[str, Any]) -> dict[str, Any]:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()
    answer: dict[str, Any] = json.loads(stream.readline())
    return answer
