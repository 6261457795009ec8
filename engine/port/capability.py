"""Prove that a client knows the key of an engine, without sending the key.

The key lies beside `engine.json`, in a folder that no sandbox shows to a worker. Both sides prove
that they know it by a MAC over the nonces of both, so a recorded conversation opens nothing. Each
role has a key of its own, derived from the engine's: who has the watcher's cannot become an owner.

It loads next to nothing: every short command greets an engine.
"""

from __future__ import annotations

import hmac
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

VERSION = 5
"""The version of the greeting and of all that follows it."""
_BYTES = 32
_DIGEST = "sha256"
CLIENT, ENGINE = "client", "engine"


def new_nonce() -> str:
    """Return a number that is used once."""
    return os.urandom(_BYTES).hex()


def write_key(path: Path) -> bytes:
    """Make a new key and write it where its owner alone can read it.

    Raises:
        StoreError: The file cannot be written.
    """
    from engine.store.files import write_atomically  # noqa: PLC0415  clients write no key

    key = os.urandom(_BYTES)
    write_atomically(path, key.hex().encode(), mode=0o600)
    return key


def read_key(path: Path | str) -> bytes:
    """Return the key of the living engine.

    Raises:
        OSError: The file is missing or must not be read.
        ValueError: The file holds no key.
    """
    with open(path, encoding="ascii") as file:
        key = bytes.fromhex(file.read())
    if len(key) != _BYTES:
        raise ValueError(f"{path} holds no key")
    return key


def proof(key: bytes, role: str, side: str, nonces: tuple[str, str]) -> str:
    """Return what only somebody who knows the key can say in this conversation.

    Args:
        key: The engine's key.
        role: The role that is claimed.
        side: CLIENT or ENGINE, so that nobody can send the other's proof back.
        nonces: The engine's, then the client's.
    """
    own = hmac.digest(key, f"plait {role}".encode(), _DIGEST)
    said = "\n".join((side, *nonces)).encode()
    return hmac.digest(own, said, _DIGEST).hex()


def is_proof(said: object, wanted: str) -> bool:
    """Return True if a proof is the wanted one, in a time that tells nothing about it."""
    return isinstance(said, str) and hmac.compare_digest(said.encode(), wanted.encode())
