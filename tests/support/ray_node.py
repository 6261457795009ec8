"""Start a real Ray cluster of one node for tests, with a token, on this machine's own address."""

import atexit
import functools
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
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RayNode:
    """A cluster: its address, and what leads to it."""

    address: str
    environment: Mapping[str, str]


@functools.cache
def shared_node() -> RayNode:
    """One cluster for all tests of this process; it ends with it."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(ray_node())


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
def ray_node() -> Iterator[RayNode]:
    """A cluster that ends with this."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        token = Path(folder, "token")
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        known = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}
        address = _own_address()
        port = _free_port(address)
        words = {"port": port, "node-ip-address": address, "num-cpus": 2, "temp-dir": folder}
        words |= {"object-store-memory": 150_000_000, "include-dashboard": "false"}
        argv = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"]
        argv += [f"--{name}={value}" for name, value in words.items()]
        env = {**os.environ, **known, **quiet}
        with Path(folder, "log").open("wb") as log:
            head = subprocess.Popen(argv, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            while "Ray runtime started" not in Path(folder, "log").read_text():
                assert head.poll() is None, Path(folder, "log").read_text()
                time.sleep(0.1)
            yield RayNode(f"{address}:{port}", known)
        finally:
            head.terminate()
            with suppress(subprocess.TimeoutExpired):
                head.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(head.pid, signal.SIGKILL)
