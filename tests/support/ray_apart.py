"""Start a Ray cluster whose nodes are apart: each in a network of its own, so links can be cut."""

import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from engine.site.local_cluster import TUNED
from tests.support.ray_node import HEAD

_NUMBERS = itertools.count(1)
_ROOT = Path(__file__).parents[2]
_BIN = Path(sys.executable).parent


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Apart:
    """A head and nodes; `inside` are the words before a command that is to reach them.

    Attributes:
        hidden: A folder that no node sees: the user's repositories lie below it.
    """

    folder: Path
    hidden: Path
    name: str
    subnet: str
    names: Sequence[str]
    slots: int
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address where the head listens."""
        return f"{self.subnet}.1:6379"

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead to the cluster."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.folder / "token")}

    def network(self, node: str) -> str:
        """The network of a node, by the name that `ip` knows."""
        return f"{self.name}{node}"

    @property
    def inside(self) -> Sequence[str]:
        """Before the words of an engine: it is in the network of the head."""
        return ("nsenter", f"--net=/run/netns/{self.network(HEAD)}")

    def connect(self, node: str, number: int, bridge: str) -> None:
        """Make the network of a node, with a link to the bridge and a way out over it."""
        net, link = self.network(node), f"v{self.network(node)}"
        _ip("netns", "add", net)
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", net)
        _ip("link", "set", link, "master", bridge, "up")
        within = ("netns", "exec", net, "ip")
        _ip(*within, "addr", "add", f"{self.subnet}.{number}/24", "dev", "eth0")
        _ip(*within, "link", "set", "eth0", "up")
        _ip(*within, "link", "set", "lo", "up")
        _ip(*within, "route", "add", "default", "via", f"{self.subnet}.254")

    def link(self, node: str, state: str) -> None:
        """Cut the link of a node (`down`), or heal it (`up`)."""
        _ip("link", "set", f"v{self.network(node)}", state)

    def start(self, node: str, number: int, *words: str) -> None:
        """Start Ray on a node: with its own HOME and files of Ray's, and no sight of the hidden."""
        home, log = self.folder / node, self.folder / f"{node}.log"
        home.mkdir(exist_ok=True)
        ray = (
            f"{_BIN}/ray start --block --node-ip-address={self.subnet}.{number} --node-name={node}"
        )
        ray += f" --object-store-memory=80000000 --include-log-monitor=false --temp-dir={home}/ray"
        ray += f" {' '.join(words)}"
        mounts = "true" if node == HEAD else f"mount -t tmpfs none {self.hidden}"
        net = ("nsenter", f"--net=/run/netns/{self.network(node)}", "unshare", "-m", "sh", "-c")
        state = str(home / "state")
        ours = {"HOME": str(home), "PLAIT_STATE_HOME": state, "PYTHONPATH": str(_ROOT)}
        with log.open("wb") as said:
            self.nodes[node] = subprocess.Popen(
                [*net, f"{mounts}; exec {ray}"],
                env={**os.environ, **TUNED, **self.environment, **ours},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def wait_started(self, *nodes: str) -> None:
        """Return when these nodes are in the cluster."""
        until = time.monotonic() + 90
        for node in nodes:
            log = self.folder / f"{node}.log"
            while "Ray runtime started" not in log.read_text():
                assert self.nodes[node].poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.1)

    def end(self, node: str) -> None:
        """End all of Ray on a node, at once."""
        process = self.nodes.pop(node)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def join(self, node: str) -> None:
        """Start a node, or start it again."""
        resources = f"--num-cpus=6 --resources='{json.dumps({'slot': self.slots})}'"
        number = 2 + self.names.index(node)
        self.start(node, number, f"--address={self.address}", resources)

    def make_whole(self) -> None:
        """Start the nodes again that are gone, and wait for all."""
        for node in self.names:
            process = self.nodes.get(node)
            if process is None or process.poll() is not None or not self._raylets(node):
                if process is not None:
                    self.end(node)
                self.join(node)
        self.wait_started(*self.names)

    def raylet(self, node: str) -> psutil.Process:
        """The daemon of Ray on a node."""
        return self._raylets(node)[0]

    def _raylets(self, node: str) -> list[psutil.Process]:
        found = []
        for one in psutil.Process(self.nodes[node].pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # Ray starts many that end soon
                if one.name() == "raylet" and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
        return found

    def inhabitants(self, node: str, word: str) -> list[psutil.Process]:
        """The processes in the network of a node that have a word on their command line."""
        network = Path("/run/netns", self.network(node)).stat().st_ino
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                own = Path("/proc", str(process.pid), "ns/net").stat().st_ino
                if own == network and any(word in one for one in process.cmdline()):
                    found.append(process)
        return found


@contextmanager
def apart(hidden: Path, *names: str, slots: int) -> Iterator[Apart]:
    """A cluster of a head, on which nobody works, and nodes of these names."""
    number = next(_NUMBERS)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="apart", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        mark = f"{os.getpid() % 50000:x}{number}"
        subnet = f"10.{100 + os.getpid() % 100}.{number}"
        cluster = Apart(folder, hidden, f"p{mark}", subnet, names, slots)
        bridge = f"b{mark}"
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{subnet}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        every = (HEAD, *names)
        for n, node in enumerate(every, 1):
            cluster.connect(node, n, bridge)
            stack.callback(_ip, "netns", "del", cluster.network(node))
        stack.callback(_end, cluster)
        words = "--head --port=6379 --num-cpus=0 --include-dashboard=false --no-monitor"
        cluster.start(HEAD, 1, words)
        cluster.wait_started(HEAD)
        for node in names:
            cluster.join(node)
        cluster.wait_started(*names)
        yield cluster


def _end(cluster: Apart) -> None:
    for node in list(cluster.nodes):
        cluster.end(node)
