"""A network of some hosts: what the list allows arrives, the rest does not, and all is noted."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.errors import MechanismMissing
from engine.limits import Dimension, Level, Limits
from engine.phases import StopCause
from engine.sandbox.confine import confine, one_off, release, row
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess
from tests.support.kept import keep
from tests.support.needs import need
from tests.support.sandboxes import PYTHON, Scene, run

CLIENT = """
import http.client, json, os, socket, sys, urllib.parse
allowed, denied = map(int, sys.argv[1:])
proxy = urllib.parse.urlparse(os.environ['HTTPS_PROXY'])
answers = {}

def tunnel(port):
    client = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
    client.set_tunnel('localhost', port)
    client.request('GET', '/tunnel', body=b'x' * 200000)
    return client.getresponse().read().decode()

def plain(port):
    client = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
    client.request('GET', f'http://localhost:{port}/plain', headers={'Host': 'evil.example'})
    answer = client.getresponse()
    return f'{answer.status} {answer.read().decode()}'

def socks(port):
    with socket.create_connection((proxy.hostname, proxy.port), timeout=60) as client:
        client.sendall(bytes([5, 1, 0]))
        assert client.recv(2) == bytes([5, 0])
        client.sendall(bytes([5, 1, 0, 3, 9]) + b'localhost' + port.to_bytes(2, 'big'))
        code = client.recv(10)[1]
        if code:
            return f'refused {code}'
        client.sendall(b'GET /socks HTTP/1.0' + bytes([13, 10, 13, 10]))
        data = b''
        while more := client.recv(4096):
            data += more
        return data.decode().rsplit(chr(10), 1)[1]

def direct(port):
    socket.create_connection(('127.0.0.1', port), timeout=60).close()
    return 'connected'

for way in (tunnel, plain, socks, direct):
    for name, port in (('allowed', allowed), ('denied', denied)):
        try:
            answers[f'{way.__name__} {name}'] = way(port)
        except OSError as problem:
            answers[f'{way.__name__} {name}'] = f'{type(problem).__name__}: {problem}'
print(json.dumps(answers))
"""


class Page(BaseHTTPRequestHandler):
    """Says what was asked for, and of whom."""

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        body = f"{self.path} {self.headers['Host']} {len(self.rfile.read(length))}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    """Two servers on the loopback of the machine."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Page) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield (servers[0].server_port, servers[1].server_port)
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    (tmp_path / "keeping").mkdir()
    yield built
    built.close()


@pytest.fixture
def machine(tmp_path: Path) -> MachineSupport:
    found = probe(os.environ, tmp_path / "state")
    need("bubblewrap")
    return found


def listed(scene: Scene, *hosts: str) -> ConfineRequest:
    return scene.request(
        network=NetworkAccess.ALLOW_LIST, allowed_hosts=hosts, way_dir=scene.attempt
    )


@pytest.mark.anyio
async def test_hosts_on_the_list_are_reached_and_no_others(
    machine: MachineSupport, scene: Scene, ports: tuple[int, int], tmp_path: Path
):
    allowed, denied = ports
    request = listed(scene, f"localhost:{allowed}", "example.org")
    program = (PYTHON, "-I", "-c", CLIENT, str(allowed), str(denied))
    kept = await keep(machine, request, tmp_path / "keeping", *program)
    assert kept.end.exit_code == 0, kept.err
    said = json.loads(kept.out)
    host = f"localhost:{allowed}"
    assert said["tunnel allowed"] == f"/tunnel {host} 200000"
    assert said["plain allowed"] == f"200 /plain {host} 0"
    assert said["socks allowed"].startswith("/socks")
    assert "403" in said["tunnel denied"]
    assert said["plain denied"] == f"403 plait: localhost:{denied} is not on the allow-list\n"
    assert said["socks denied"] == "refused 2"
    assert {said["direct allowed"][:10], said["direct denied"][:10]} == {"Connection"}
    assert _noted(scene) == {("allowed", "localhost", allowed), ("denied", "localhost", denied)}
    assert set(kept.end.left_over) <= {"plait-egress"}  # the kernel ends it a moment later
    assert kept.end.unkillable == ()
    assert kept.end.wall_s < 60


@pytest.mark.anyio
async def test_the_helpers_do_not_prolong_the_grace_of_a_stopped_attempt(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    request = replace(listed(scene, "example.org"), limits=Limits(time_seconds=0.5))
    kept = await keep(machine, request, tmp_path / "keeping", "sleep", "600", grace_s=200.0)
    assert kept.end.cause is StopCause.TIMEOUT
    assert kept.end.wall_s < 100  # half the grace
    assert set(kept.end.left_over) <= {"plait-egress"}  # the kernel ends it a moment later
    assert kept.end.unkillable == ()


def test_the_list_is_told_and_is_enforced(machine: MachineSupport, scene: Scene):
    profile = confine(machine, listed(scene, "a.example", "*.b.example"))
    release(profile)
    network = row(profile, Dimension.NETWORK)
    assert (network.level, network.value) == (Level.ENFORCED, "a.example, *.b.example")


@pytest.mark.parametrize("env", [{"PLAIT_SANDBOX": "landlock"}, {"PLAIT_FORCE_OFF": "netns"}])
def test_a_list_that_cannot_be_enforced_is_not_degraded(
    scene: Scene, tmp_path: Path, env: dict[str, str]
):
    here = probe({**os.environ, **env}, tmp_path / "state")
    if "PLAIT_SANDBOX" in env:
        need("landlock")
    with pytest.raises(MechanismMissing, match="allow-list"):
        confine(here, listed(scene, "a.example"))


def test_a_list_without_a_place_for_its_proxy_is_a_mistake(scene: Scene):
    with pytest.raises(ValueError, match="folder"):
        scene.request(network=NetworkAccess.ALLOW_LIST)


def test_a_forwarder_without_a_proxy_lets_the_program_run(machine: MachineSupport, scene: Scene):
    profile = confine(machine, listed(scene, "a.example"))
    words = one_off(machine, profile)
    try:
        done = run(Profile(), [*words, "echo", "ran"], env=os.environ, cwd=scene.workspace)
    finally:
        release(profile)
    assert (done.stdout, done.returncode) == ("ran\n", 0), done.stderr


def _noted(scene: Scene) -> set[tuple[str, str, int]]:
    lines = (scene.attempt / "egress.log").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return {(each["egress"], each["host"], each["port"]) for each in entries}
