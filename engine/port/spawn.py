"""Starting an engine that outlives whoever starts it: a process of its own, in its own session."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from engine.errors import EngineError
from engine.port.client import Address, living_engine
from engine.store.layout import Layout

_PATIENCE_S = 60.0
_LOOK_S = 0.02


def _spawn(folder: Path, log: Path, environ: Mapping[str, str], runs: Sequence[str]) -> int:
    """Start `plait serve` with nothing of the terminal in its hands."""
    null = os.open(os.devnull, os.O_RDWR)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "tui.cli", "serve", "-C", str(folder), *runs],
            {**environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, said, 1),
                (os.POSIX_SPAWN_DUP2, said, 2),
            ],
            setsid=True,
        )
    finally:
        os.close(null)
        os.close(said)


async def spawn_engine(
    folder: Path, layout: Layout, environ: Mapping[str, str], *, runs: Sequence[str] = ()
) -> Address:
    """Start a detached engine for this folder; return where it, or one that was faster, listens.

    It takes up these interrupted runs only, or all where none is named.

    Raises:
        EngineError: It did not come up; its own words are in the message.
    """
    log = layout.root / "engine.log"
    await anyio.to_thread.run_sync(layout.make)
    pid = await anyio.to_thread.run_sync(_spawn, folder, log, environ, runs)
    with anyio.move_on_after(_PATIENCE_S):
        while True:
            address = await living_engine(layout)
            if address is not None and await _listens(address.socket):
                return address
            if await anyio.to_thread.run_sync(_is_hopeless, pid, layout.engine_lock):
                break
            await anyio.sleep(_LOOK_S)  # a starting process has nothing to wait for but its file
    text = await anyio.to_thread.run_sync(_tail, log)
    raise EngineError(f"no engine could be started: {text}", hint=f"Its log is {log}.")


async def _listens(socket: str) -> bool:
    """Return True if somebody listens: a killed engine leaves its socket and its name."""
    try:
        stream = await anyio.connect_unix(socket)
    except OSError:
        return False
    await stream.aclose()
    return True


def _is_hopeless(pid: int, lock: Path) -> bool:
    """Return True if ours has ended and no other is about to listen: of several, one wins."""
    try:
        done, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # it was found over before
        done = pid
    return done == pid and not _is_held(lock)


def _is_held(lock: Path) -> bool:
    """Return True if the writer of the lock lives; never try the kernel's lock, only take it."""
    try:
        os.kill(int(json.loads(lock.read_bytes())["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"
