"""Start a Ray cluster of this machine alone, for trying one, and end it.

Ray cannot be bound to the loopback, so the token alone keeps others out. Its processes are found
again by a mark in their environment: `ray stop` would end those of every cluster.
"""

import json
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import anyio
import anyio.to_thread
import psutil

from engine.beneath import remove_tree
from engine.errors import WorkspaceError
from engine.private import private_folder
from engine.site.gate import check_client
from engine.values import dataclass

NAME = "local-cluster"
TUNED = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
}
"""Ray ends none of ours when memory is short, and says within ten seconds that a node is gone."""
_MARK = "PLAIT_CLUSTER"
_START_S = 90.0
_END_S = 5.0
_STORE = 100_000_000


@dataclass(frozen=True, kw_only=True)
class LocalCluster:
    """A cluster of this machine; `environment` leads to it."""

    address: str
    environment: Mapping[str, str]


async def start_local_cluster(home: Path, environment: Mapping[str, str]) -> LocalCluster:
    """Start it, or return the one that is up.

    Raises:
        WorkspaceError: Ray is not installed, or cannot be started.
    """
    folder = home / NAME
    leads = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
    known = folder / "cluster.json"
    found = await anyio.to_thread.run_sync(_living, folder)
    if known.exists() and found:
        return LocalCluster(address=json.loads(known.read_text())["address"], environment=leads)
    await end_local_cluster(home)
    await anyio.to_thread.run_sync(private_folder, folder / "state")
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(secrets.token_hex(32))
    check_client(leads)
    address, scratch = _free_address(), tempfile.mkdtemp(prefix="plait-ray-")  # sockets: short
    host, port = address.rsplit(":", 1)
    known.write_text(json.dumps({"address": address, "scratch": scratch}))
    words = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", f"--port={port}"]
    words += [f"--node-ip-address={host}", "--node-name=local", "--include-dashboard=false"]
    words += [f"--temp-dir={scratch}", f"--object-store-memory={_STORE}"]
    ours = {**TUNED, **leads, _MARK: str(folder), "PLAIT_STATE_HOME": str(folder / "state")}
    env = {**environment, **ours, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    log = folder / "start.log"
    done = None
    with anyio.move_on_after(_START_S), log.open("wb") as said:
        done = await anyio.run_process(
            words, stdout=said, stderr=said, env=env, check=False, start_new_session=True
        )
    if done is None or done.returncode:
        await end_local_cluster(home)
        raise WorkspaceError("Ray could not be started here", hint=f"See {log}.")
    return LocalCluster(address=address, environment=leads)


async def end_local_cluster(home: Path) -> bool:
    """End it, and all that lives there; return whether it was up. Work that is there stays."""
    folder = home / NAME
    was_up = await anyio.to_thread.run_sync(_end, folder)
    known = folder / "cluster.json"
    if known.exists():
        await anyio.to_thread.run_sync(remove_tree, Path(json.loads(known.read_text())["scratch"]))
        known.unlink()
    return was_up


def _living(folder: Path) -> list[psutil.Process]:
    """Return its processes, and those that they have started."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(_MARK) == str(folder):
                found.append(process)
    return found


def _end(folder: Path) -> bool:
    found = _living(folder)
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(found, timeout=_END_S)
    while left := _living(folder):  # one that was being started when the others were told
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=_END_S)
    return bool(found)


def _free_address() -> str:
    """Return the address that others would be answered from, with a port that is free."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        with suppress(OSError):
            probe.connect(("192.0.2.1", 9))
        host = probe.getsockname()[0]
    if host == "0.0.0.0":  # noqa: S104  what it says where there is none
        raise WorkspaceError("this machine has no address, and Ray needs one that is not loopback")
    with closing(socket.socket()) as listening:
        listening.bind((host, 0))
        return f"{host}:{listening.getsockname()[1]}"
