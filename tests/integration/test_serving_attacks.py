"""A malicious served program: it reaches no more than its agent, and nobody is in its place."""

import http.server
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine
from engine.keeper import proc
from engine.messages.questions import ReadServed, StopServing
from engine.messages.served import ServedState
from engine.phases import Phase
from engine.site import listening, readiness
from tests.support import served as s
from tests.support.merging_runs import MergingPlace, land, reviewed
from tests.support.processes import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.needs("bubblewrap")]
WORKER = "site/worker_1"
REACH = """
import glob, json, os, socket, sys
def tcp(port):
    try: socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except OSError: return False
    return True
def unix(path):
    try: socket.socket(socket.AF_UNIX).connect(path)
    except OSError: return False
    return True
def read(path):
    try: return bool(open(path).read())
    except OSError: return False
said = json.load(open("what.json"))
print("FOUND", json.dumps({
    "victim": tcp(said["victim"]), "other": tcp(said["other"]),
    "engine": unix(said["engine"]), "key": read(said["key"]), "secret": read(said["secret"]),
}), flush=True)
"""


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@pytest.fixture
async def engine(place: MergingPlace) -> AsyncIterator[Engine]:
    async with place.engine() as engine:
        yield engine


class Victim(http.server.BaseHTTPRequestHandler):
    """A service of the user's on this machine's loopback."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def victim() -> Iterator[tuple[int, list[str]]]:
    """Its port, and what it was asked."""
    asked: list[str] = []
    handler = type("Handler", (Victim,), {"asked": asked})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


async def reached(place: MergingPlace, engine: Engine, network: str) -> dict[str, bool]:
    """Return what a served program can reach on this machine."""
    command = f"test -e what.json && python3 -c '{REACH}'; {s.PYTHON}"
    run = await reviewed(engine, s.plan(place, command, network=network, workers=2))
    other = await s.ready(engine, run, "site/worker_2")
    lives = json.loads((place.project / ".git/plait/engine.json").read_text())
    secret = place.project / "secret"
    secret.write_text("of the user's")
    view = (await engine.view(run.id)).worker(WORKER)
    with victim() as (port, _):
        what = {
            "victim": port,
            "other": other.port,
            "engine": lives["socket"],
            "key": str(place.project / ".git/plait/engine.key"),
            "secret": str(secret),
        }
        Path(view.workspace or "", "what.json").write_text(json.dumps(what))  # noqa: ASYNC240
        await s.ready(engine, run)
        await s.wait_said(engine, run, "FOUND")
        lines = (await engine.ask(ReadServed(run.id, WORKER))).lines
    (found,) = [line for line in lines if line.startswith("FOUND")]
    told: dict[str, bool] = json.loads(found.removeprefix("FOUND "))
    return told


async def test_in_a_closed_network_it_is_reached_and_reaches_nothing(
    place: MergingPlace, engine: Engine
):
    assert not any((await reached(place, engine, "none")).values())


async def test_in_an_open_network_it_reaches_what_its_agent_could(
    place: MergingPlace, engine: Engine
):
    """The control: the same attempts succeed where the network is the machine's own."""
    found = await reached(place, engine, "open")
    assert found == {"victim": True, "other": True, "engine": False, "key": False, "secret": False}


async def test_no_socket_of_this_machines_network_is_handed_in(place: MergingPlace, engine: Engine):
    """Whoever had one could connect it anew: the helper outside has one, which is the control."""
    run = await reviewed(engine, s.plan(place, s.PYTHON, network="none"))
    found = await s.ready(engine, run)
    ours, inside, outside = await to_thread.run_sync(_held, place, run.id, found.port)
    assert ours, "the port is listened on"
    assert (inside, outside) == (set(), ours)


def _held(place: MergingPlace, run: str, port: int) -> tuple[set[str], set[str], set[str]]:
    """The sockets that listen on a port here, and who of an attempt holds some: inside, outside."""
    ours = {row.inode for row in listening._listeners(1) if row.port == port}
    (note,) = (place.project / ".git/plait/runs").glob("*/.served/*/tenant")
    here = Path("/proc/self/ns/net").readlink()
    held: dict[bool, set[str]] = {True: set(), False: set()}
    for pid in proc.marked(f"{run}:{note.read_text()}"):
        is_inside = Path(f"/proc/{pid}/ns/net").readlink() != here
        held[is_inside].update(set(listening._sockets(pid)) & ours)
    return ours, held[True], held[False]


FLOOD = """
import os, socket, subprocess, sys, time
held = []
for _ in range(2000):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(0.2)
    try:
        one.connect("/run/plait-inlet")
        one.sendall(b"GET / HTTP/1.0" + bytes([13, 10, 13, 10]))
    except OSError:
        break
    held.append(one)
print("HELD", len(held), flush=True)
time.sleep(600)
"""


async def test_one_that_floods_the_way_in_hurts_nobody_else(place: MergingPlace, engine: Engine):
    floods = f"if grep -q 1 index.html; then python3 -c '{FLOOD}' & fi"
    command = f"{floods}; {s.PYTHON}"
    run = await reviewed(engine, s.plan(place, command, network="none", workers=2))
    other = await s.ready(engine, run, "site/worker_2")
    await s.begin(engine, run)
    await s.wait_said(engine, run, "HELD")
    assert await s.page(other.url) == "made by 2\n"
    assert await engine.ask(StopServing(run.id, WORKER))
    assert await s.page(other.url) == "made by 2\n"


SHARES = (
    "sleep 1; exec python3 -c 'import http.server, os, socket\n"
    "class Server(http.server.HTTPServer):\n"
    "    def server_bind(self):\n"
    "        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n"
    "        super().server_bind()\n"
    'Server(("127.0.0.1", int(os.environ["PORT"])), http.server.SimpleHTTPRequestHandler)'
    ".serve_forever()'"
)


@contextmanager
def hijacked(port: int, host: str) -> Iterator[None]:
    """Somebody else of this machine listens there first, and shares it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind((host, port))
        other.listen()
        yield


@pytest.mark.parametrize("host", ["", "127.0.0.1", "::1"])
async def test_nobody_is_shown_in_its_place(place: MergingPlace, engine: Engine, host: str):
    """Without anybody in its place it is ready: that is the control."""
    if host == "::1" and not socket.has_ipv6:
        pytest.skip("this machine has no IPv6 (it needs `::1` on its loopback)")
    run = await reviewed(engine, s.plan(place, SHARES))
    await s.begin(engine, run)
    port = (await s.wait_served(engine, run, ServedState.STARTING, has_port=True)).port
    with ExitStack() as stack:
        if host:
            stack.enter_context(hijacked(port, host))
        wanted = ServedState.STARTING if host else ServedState.READY
        note = "a program that is not this worker" if host else ""
        found = await s.wait_served(engine, run, wanted, note=note)
        assert bool(found.url) is (not host)
    assert (await s.wait_served(engine, run, ServedState.READY)).url


async def test_one_that_is_ready_is_no_more_once_somebody_takes_its_place(
    place: MergingPlace, engine: Engine
):
    run = await reviewed(engine, s.plan(place, SHARES))
    port = (await s.ready(engine, run)).port
    with hijacked(port, "127.0.0.1"):
        found = await s.wait_served(
            engine, run, ServedState.STARTING, note="a program that is not this worker"
        )
        assert not found.url


def server(answer: str) -> str:
    """A command that answers everybody with these bytes, again and again."""
    return (
        "exec python3 -c 'import os, socket\n"
        'there = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))\n'
        "while True:\n"
        "    one, _ = there.accept()\n"
        "    try:\n"
        "        one.recv(4096)\n"
        f"        one.sendall({answer})\n"
        "        one.close()\n"
        "    except OSError: pass'"
    )


async def test_a_page_that_leads_elsewhere_leads_the_engine_nowhere(
    place: MergingPlace, engine: Engine
):
    with victim() as (port, asked):
        to = f"http://127.0.0.1:{port}/secret"
        answer = f'b"HTTP/1.1 302 Found\\r\\nLocation: {to}\\r\\n\\r\\n"'
        run = await reviewed(engine, s.plan(place, server(answer), ready="/health"))
        found = await s.ready(engine, run)
        assert asked == []
        assert await s.page(found.url) == "secret", "a browser follows it: that is the control"
        assert asked == ["/secret"]


@pytest.mark.parametrize("answer", ['b"x" * 10**8', 'b"HTTP/1.1 2000000 OK\\r\\n"', 'b""'])
async def test_answers_that_are_none_keep_nobody_busy(
    place: MergingPlace, engine: Engine, answer: str
):
    run = await reviewed(engine, s.plan(place, server(answer), ready="/health"))
    await s.begin(engine, run)
    port = (await s.wait_served(engine, run, ServedState.STARTING, has_port=True)).port
    await wait_until(lambda: _listens(port), within_s=60)
    with anyio.fail_after(60):
        assert not await readiness.answers(port, "/health")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_links_in_its_tree_lead_the_removal_nowhere(place: MergingPlace, engine: Engine):
    """The tree that was laid out anew goes; what the program linked to stays."""
    kept = place.outside / "kept"
    kept.mkdir()
    (kept / "file").write_text("of the user's")
    command = f"ln -s {kept} away; ln -s {kept}/file file; mkdir -m 0 shut; {s.PYTHON}"
    run = await reviewed(engine, s.plan(place, command))
    assert await land(engine, run, WORKER) is Phase.LANDED
    await engine.release(WORKER)
    await s.ready(engine, run)
    assert await engine.ask(StopServing(run.id, WORKER))
    assert not s.left_over(place)
    assert (kept / "file").read_text() == "of the user's"
