"""Start a real Ray cluster of one node for tests, with a token, on this machine's own address."""

import atexit
import functools
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from engine.site.local_cluster import TUNED

HEAD = "head"
"""The name of the first node of a cluster."""


@dataclass(frozen=True)
class RayCluster:
    """A cluster: its address, and what leads to it."""

    address: str
    environment: Mapping[str, str]
    state: Path
    """The state home of its nodes."""
    folder: Path
    ours: Mapping[str, str]
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *words: str) -> None:
        """Start a node, with a folder of its own and all its processes in one group."""
        argv = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus=2"]
        argv += ["--object-store-memory=80000000", "--include-log-monitor=false", *words]
        argv += [f"--node-ip-address={_own_address()}", f"--node-name={name}"]
        argv += [f"--temp-dir={self.folder}/{name}"]
        root = str(Path(__file__).parents[2])
        ours = {**self.ours, "PLAIT_STATE_HOME": str(self.state), "PYTHONPATH": root}
        with (self.folder / f"log{name}").open("wb") as said:
            self.nodes[name] = subprocess.Popen(
                argv,
                env={**os.environ, **self.environment, **TUNED, **ours},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait_started(self, *names: str) -> None:
        """Return when these nodes are in the cluster."""
        for name in names:
            log = self.folder / f"log{name}"
            while "Ray runtime started" not in log.read_text():
                assert self.nodes[name].poll() is None, log.read_text()
                time.sleep(0.1)

    def join(self, *names: str, slots: int = 0) -> None:
        """Start nodes of these names with so many slots each, at once."""
        for name in names:
            slot = json.dumps({"slot": slots})
            self.start(name, f"--address={self.address}", f"--resources={slot}")
        self.wait_started(*names)

    def end(self, *names: str) -> None:
        """End all of Ray on these nodes, at once."""
        ended = [self.nodes.pop(name) for name in names]
        for node in ended:
            with suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
        for node in ended:
            node.wait()

    def raylet(self, name: str) -> psutil.Process:
        """The daemon of Ray on a node."""
        below = psutil.Process(self.nodes[name].pid).children(recursive=True)
        return next(one for one in below if one.name() == "raylet")

    def drain(self, name: str) -> None:
        """Tell a node to go, as whoever takes machines back does."""
        asking = (
            "import ray, sys; ray.init(address=sys.argv[1], log_to_driver=False); "
            "print(next(n['NodeID'] for n in ray.nodes() if n['NodeName'] == sys.argv[2]))"
        )
        env = {**os.environ, **self.environment}
        words = [sys.executable, "-c", asking, self.address, name]
        node = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        words = [str(Path(sys.executable).with_name("ray")), "drain-node"]
        words += [f"--address={self.address}", f"--node-id={node.strip()}", "--reason-message=gone"]
        words += ["--reason=DRAIN_NODE_REASON_PREEMPTION", "--deadline-remaining-seconds=120"]
        subprocess.run(words, env=env, capture_output=True, check=True)

    def actors(self) -> list[psutil.Process]:
        """The processes of the far halves that live there."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, IndexError):
                is_ours = process.environ().get("PLAIT_STATE_HOME") == str(self.state)
                if process.cmdline()[0].startswith("ray::Detached") and is_ours:
                    found.append(process)
        return found

    def wait_actors(self, count: int) -> list[psutil.Process]:
        """The far halves, once there are so many."""
        until = time.monotonic() + 90  # a lease may have to run out
        while len(found := self.actors()) != count:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found


@functools.cache
def shared_node() -> RayCluster:
    """One cluster for all tests of this process; it ends with it."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(ray_cluster())


def _own_address() -> str:
    """The address that others would be answered from: Ray cannot be reached on the loopback."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def _free_port(address: str) -> int:
    with closing(socket.socket()) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@contextmanager
def ray_cluster(**ours: str) -> Iterator[RayCluster]:
    """A cluster of one node that ends with this; more nodes may join it.

    Its nodes get the variables that are given.
    """
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        token = Path(folder, "token")
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        known = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        state = Path(folder, "state")
        state.mkdir()
        host = _own_address()
        port = _free_port(host)
        cluster = RayCluster(f"{host}:{port}", known, state, Path(folder), ours)
        try:
            cluster.start(
                HEAD, "--head", f"--port={port}", "--include-dashboard=false", "--no-monitor"
            )
            cluster.wait_started(HEAD)
            yield cluster
        finally:
            cluster.end(*cluster.nodes)
