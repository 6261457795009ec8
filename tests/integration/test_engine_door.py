"""Owners command an engine, watchers look, agents and strangers stay outside."""

import json
import os
import pwd
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine, Run, attach
from engine.errors import EngineError
from engine.messages import commands as c
from engine.messages import merging as m
from engine.messages import questions as q
from engine.messages import screens
from engine.messages.events import Commanded
from engine.messages.questions import ReadLog, ReadRun
from engine.messages.roles import Role
from engine.phases import Phase
from engine.port import capability, server
from engine.port.capability import VERSION
from engine.port.client import Address, RemoteEngine, living_engine
from engine.port.protocol import NotAdmitted, ProtocolError
from engine.sandbox.probe import probe
from engine.store.codec import dump
from tests.support import door_attack
from tests.support.engine_runs import Place, manifest, phases, scripted
from tests.support.merging_runs import MergingPlace, reviewed
from tests.support.plans import a_plan

pytestmark = pytest.mark.anyio

IS_ROOT = os.getuid() == 0
PYTHON = os.path.realpath(sys.executable)
A = "a/worker_1"
ASKS = manifest({"name": "a", "agent": scripted({"say": "here"}, {"ask": "Well?"})})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def address_of(engine: Engine) -> Address:
    found = await living_engine(engine._place.layout)
    assert found is not None
    return found


@asynccontextmanager
async def client(engine: Engine, role: Role) -> AsyncIterator[RemoteEngine]:
    async with RemoteEngine.connect(await address_of(engine), role) as remote:
        yield remote
    await anyio.sleep(0.02)  # both ends share a loop: let the engine see it leave


async def asking(engine: Engine) -> Run:
    run = await engine.start(ASKS)
    await run.wait()
    return run


def questions(run: str) -> list[q.Ask[Any]]:
    """Every question but those that wait or take long; most of those that change have no answer."""
    return [
        q.ReadEngine(),
        q.ReadRun(run),
        q.ReadReport(run),
        q.ListRuns(),
        q.ReadLog(run, A),
        q.StartPlan(a_plan()),
        q.ResumeRun(run),
        q.EnterSandbox(run, A),
        q.ReadSides(run, A, ()),
        q.CleanUp(),
        q.RestoreTrash("x"),
        q.LeaveEngine(),
        m.DecideConflict(run, A, c.FinishResolving()),
        m.CheckWorker(run, A),
        m.CheckTogether(run, [A]),
        m.LeaveOutHunks(run, A, []),
        m.MakeCheckpoint(run, A),
        m.EditChange(run, A, m.FileText(path="a")),
        m.ReadComposite(run, "a", []),
        m.WeaveHunks(run, "a", []),
        q.ServeWorker(run, A),
        q.StopServing(run, A),
        screens.TypeInto(run, A),
    ]


async def test_a_watcher_may_look_and_changes_nothing(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        async with client(engine, Role.WATCHER) as remote:
            for question in questions(run.id):
                if not question.changes:
                    await remote.ask(question)
                    continue
                with pytest.raises(EngineError, match="this client is a watcher"):
                    await remote.ask(question)
            reply = await remote.command(c.Answer(worker=A, answer="go"))
            assert isinstance(reply, c.Refused)
            assert "watcher" in reply.reason
            async for told in remote.events(run=run.id):
                assert told.seq == 1
                break
        assert not engine._door.asked_to_leave.is_set()
        assert (await engine.view(run.id)).worker(A).questions
        async with client(engine, Role.OWNER) as remote:  # the control: an owner may
            assert isinstance(await remote.command(c.Answer(worker=A, answer="go")), c.Accepted)
        assert phases(await run.wait()) == {A: "FINISHED"}


async def test_a_watcher_sees_no_secrets(place: Place):
    token = "ghp_" + "a1B2c3D4" * 5
    place.environment = {**place.environment, "PASSED_ON": "the value of it"}
    says = scripted({"say": f"{token} and the value of it"}, {"ask": f"Is {token} right?"})
    plan = manifest({"name": "a", "agent": says}, sandbox={"env": ["PASSED_ON"]})
    async with place.engine() as engine:
        run = await engine.start(plan)
        await run.wait()
        for role in (Role.WATCHER, Role.OWNER):
            async with client(engine, role) as remote:
                log = "".join(line.text for line in (await remote.ask(ReadLog(run.id, A))).lines)
                (question,) = (await remote.ask(ReadRun(run.id))).worker(A).questions
                is_shown = role is Role.OWNER  # the control
                assert (token in log) == (token in question.text) == is_shown
                assert ("the value of it" in log) == is_shown
                assert ("[redacted $PASSED_ON]" in log) != is_shown
                async for told in remote.events(run=run.id):
                    if type(told.event).__name__ == "Asked":
                        assert (token in str(told.event)) == is_shown
                        break
        await engine.command(c.Answer(worker=A, answer="go"))
        await run.wait()


def test_what_changes_something_is_not_for_watchers_and_nothing_is_for_agents():
    kinds = q.question_kinds()
    assert {name for name, kind in kinds.items() if kind.changes} == {
        *("StartPlan", "ResumeRun", "EnterSandbox", "CleanUp", "RestoreTrash", "LeaveEngine"),
        *("DecideConflict", "CheckWorker", "CheckTogether", "LeaveOutHunks", "WeaveHunks"),
        *("EditChange", "ServeWorker", "StopServing", "TypeInto"),
        *("MakeCheckpoint", "MakeFile", "FormatTexts"),
        *("AskAside", "ExplainCandidates"),  # they cost what an agent costs
        *("ReadResult", "ReadComposite"),  # they keep the objects of the result
        "ReadSides",  # no secret is found in its bytes
    }
    assert not any(server._may(Role.AGENT, changes=kind.changes) for kind in kinds.values())


async def test_a_console_that_watches_is_a_watcher_at_the_door(place: Place):
    async with place.engine() as engine:
        await asking(engine)
        async with attach(place.project, environment=place.environment, role=Role.WATCHER) as port:
            assert isinstance(await port.command(c.StopRun()), c.Refused)
        await anyio.sleep(0.02)


async def test_every_command_tells_who_gave_it(place: Place):
    async with place.engine() as engine:
        run = await asking(engine)
        async with client(engine, Role.OWNER) as remote:
            await remote.command(c.Answer(worker=A, answer="go"))
        await run.wait()
        said = []
        async for told in engine.events(run=run.id):
            if isinstance(told.event, Commanded):
                said.append(told.event)
                break
    (event,) = said
    assert (event.command, event.worker) == ("Answer", A)
    assert (event.by.role, event.by.pid) == (Role.OWNER, os.getpid())
    assert event.by.user == await to_thread.run_sync(_whoami)


def _whoami() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        return str(os.getuid())


@pytest.mark.parametrize(
    ("role", "proved_as", "key"),
    [("owner", "owner", b"x" * 32), ("owner", "watcher", None), ("king", "king", None)],
    ids=["wrong key", "a watcher as owner", "no role"],
)
async def test_who_cannot_prove_to_know_the_key_stays_outside(
    place: Place, role: str, proved_as: str, key: bytes | None
):
    async with place.engine() as engine:
        address = await address_of(engine)
        known = key or await to_thread.run_sync(capability.read_key, address.key)
        async with await anyio.connect_unix(address.socket) as stream:
            nonces = json.loads(await stream.receive())["nonce"], "n"
            said = door_attack.mac(known, proved_as, "client", nonces)
            greeting = {"v": VERSION, "role": role, "nonce": "n", "proof": said}
            await stream.send(json.dumps(greeting).encode() + b'\n{"id": 1, "do": "history"}\n')
            answer = json.loads(await stream.receive())
            assert "does not know the engine's key" in answer["error"]
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
        await anyio.sleep(0.02)


async def test_a_proof_that_was_heard_opens_nothing_again(place: Place):
    async with place.engine() as engine:
        address = await address_of(engine)
        key = await to_thread.run_sync(capability.read_key, address.key)
        greeting = b""
        answers = []
        for _ in range(2):
            async with await anyio.connect_unix(address.socket) as stream:
                nonce = json.loads(await stream.receive())["nonce"]
                if not greeting:
                    said = door_attack.mac(key, "owner", "client", (nonce, "n"))
                    fields = {"v": VERSION, "role": "owner", "nonce": "n", "proof": said}
                    greeting = json.dumps(fields).encode() + b"\n"
                await stream.send(greeting)
                answers.append(json.loads(await stream.receive()))
            await anyio.sleep(0.02)
    assert "role" in answers[0]
    assert "error" in answers[1]


async def test_a_client_of_another_version_is_told_so(place: Place):
    async with place.engine() as engine:
        address = await address_of(engine)
        async with await anyio.connect_unix(address.socket) as stream:
            await stream.receive()
            await stream.send(b'{"v": 2, "role": "owner"}\n')
            answer = json.loads(await stream.receive())
        assert answer == {"error": f"this engine speaks version {VERSION}", "v": VERSION}
        await anyio.sleep(0.02)


async def test_an_engine_that_does_not_know_the_key_is_no_engine(tmp_path: Path):
    path, key = tmp_path / "s", tmp_path / "key"
    await to_thread.run_sync(capability.write_key, key)

    async def talk(stream: Any) -> None:
        async with stream:
            hello = {"v": VERSION, "plait": "engine", "pid": 1, "nonce": "n"}
            await stream.send(json.dumps(hello).encode() + b"\n")
            await stream.receive()
            await stream.send(b'{"role": "owner", "proof": "00"}\n')
            with suppress(anyio.EndOfStream):
                await stream.receive()

    async with await anyio.create_unix_listener(path) as door, anyio.create_task_group() as tasks:
        tasks.start_soon(door.serve, talk)
        with pytest.raises(ProtocolError, match="does not know the engine's key"):
            async with RemoteEngine.connect(Address(str(path), key)):
                pass
        await anyio.sleep(0.02)
        tasks.cancel_scope.cancel()


async def test_the_key_is_for_its_owner_alone_and_goes_with_the_engine(place: Place):
    async with place.engine() as engine:
        address = await address_of(engine)
        first = await to_thread.run_sync(capability.read_key, address.key)
        assert (await anyio.Path(address.key).stat()).st_mode & 0o777 == 0o600
    assert not await anyio.Path(address.key).exists()
    async with place.engine():
        assert await to_thread.run_sync(capability.read_key, address.key) != first


# -- other users ----------------------------------------------------------------------------------

NOBODY = 65534
_KNOCK = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.settimeout(60)
try:
    client.connect(sys.argv[1])
    print(client.recv(4096).decode())
except OSError as error:
    print("failed", error)
"""


async def knock(path: str) -> str:
    done = await anyio.run_process([PYTHON, "-I", "-c", _KNOCK, path])
    return done.stdout.decode()


@pytest.mark.needs("root")
async def test_another_user_is_kept_out_by_the_folder_and_by_the_engine(place: Place):
    async with place.engine() as engine:
        address = await address_of(engine)
        assert "failed" in await knock(address.socket)
        folder = Path(address.socket).parent
        await anyio.Path(folder).chmod(0o755)  # the control: without the folder's guard …
        await anyio.Path(address.socket).chmod(0o666)
        assert "does not know the engine's key" in await knock(address.socket)  # … the engine's


@pytest.mark.parametrize("kind", ["folder", "open folder", "file", "link"])
async def test_nobody_can_keep_an_engine_from_listening_by_a_planted_name(
    place: Place, monkeypatch: pytest.MonkeyPatch, kind: str
):
    shared = place.tmp_path / "t"
    shared.mkdir()
    shared.chmod(0o1777)
    planted = shared / f"plait-{os.getuid()}"
    if kind == "file":
        planted.touch()
    elif kind == "link":
        planted.symlink_to("/nowhere")
    else:
        planted.mkdir(0o755)
        planted.chmod(0o777 if kind == "open folder" else 0o700)
    if IS_ROOT:
        os.lchown(planted, NOBODY, NOBODY)
    monkeypatch.setattr(server.tempfile, "tempdir", str(shared))
    place.environment = {**place.environment, "XDG_RUNTIME_DIR": ""}
    async with place.engine() as engine:
        run = await asking(engine)
        socket = anyio.Path((await address_of(engine)).socket)
        assert (await socket.parent.stat()).st_mode & 0o777 == 0o700
        async with client(engine, Role.OWNER) as remote:
            assert (await remote.ask(ReadRun())).run == run.id
    assert [path.name for path in shared.iterdir()] == [planted.name]


@pytest.fixture
def short_place() -> Iterator[Place]:
    """Make a place with a path short enough for a socket, which pytest's own may not be."""
    with TemporaryDirectory() as folder:
        inner = Path(folder, "place")
        inner.mkdir()
        yield Place(inner)


async def test_a_runtime_folder_that_others_can_enter_is_not_used(short_place: Place):
    place = short_place
    runtime = place.tmp_path / "runtime"
    runtime.mkdir()
    runtime.chmod(0o755)
    place.environment = {**place.environment, "XDG_RUNTIME_DIR": str(runtime)}
    async with place.engine() as engine:
        assert runtime not in Path((await address_of(engine)).socket).parents
    runtime.chmod(0o700)
    async with place.engine() as engine:
        assert runtime in Path((await address_of(engine)).socket).parents
    assert not list(runtime.iterdir())


def test_what_killed_engines_left_is_swept_and_nothing_else(tmp_path: Path):
    old, other, mine = tmp_path / "plait-old", tmp_path / "plait-notes", tmp_path / "plait-new"
    for folder in (old, other, mine):
        folder.mkdir(0o700)
    (old / "engine.sock").touch()
    (other / "engine.sock").touch()
    (other / "notes").touch()
    for folder in (old, other):
        os.utime(folder, (1, 1))
    server._sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"plait-notes", "plait-new"}


# -- agents ---------------------------------------------------------------------------------------

FENCES = [
    pytest.param("bwrap", marks=pytest.mark.needs("bubblewrap")),
    pytest.param("landlock", marks=pytest.mark.needs("landlock")),
]
RUNGS = [*FENCES, "none"]


class Attacked:
    """An engine with a change that waits for review, and an agent that wants to land it."""

    def __init__(self, tmp_path: Path, rung: str) -> None:
        self.place = MergingPlace(tmp_path)
        self.place.environment["PLAIT_SANDBOX"] = rung
        shutil.rmtree(tmp_path / "state" / "machine")
        probe(self.place.environment, tmp_path / "state" / "machine")
        self.program = self.place.outside / "attack.py"
        self.program.write_text(Path(door_attack.__file__).read_text())

    async def try_to_land(self, engine: Engine, *, is_told_key: bool) -> tuple[str, Phase]:
        """Return the reply to the agent, and what became of its sibling's change."""
        victim = await reviewed(engine, self.place.workers({"new": "unreviewed\n"}))
        address = await address_of(engine)
        key = await to_thread.run_sync(capability.read_key, address.key)
        case = {
            "socket": address.socket,
            "key_file": str(address.key),
            "key": key.hex() if is_told_key else "",
            "role": "owner",
            "command": dump(c.Land(worker="s1/worker_1", run=victim.id)),
        }
        await anyio.Path(self.place.outside / "case.json").write_text(json.dumps(case))
        words = f"{PYTHON} -I {self.program} {self.place.outside / 'case.json'}"
        paths = [f"{self.place.outside}:rw", f"{Path(PYTHON).parent.parent}:ro"]
        if self.place.environment["PLAIT_SANDBOX"] == "bwrap":
            paths.append(f"{Path(address.socket).parent}:rw")  # else there is nothing to attack
        plan = manifest(
            {"name": "evil", "run": f"{words} > {self.place.outside / 'said'} 2>&1"},
            sandbox={"paths": paths, "ssh_agent": True},
            isolation_strategy="worktree",
        )
        run = await engine.start(plan)
        await run.wait()
        said = await anyio.Path(self.place.outside / "said").read_text()
        with anyio.move_on_after(60):
            while "Accepted" in said:
                if (await engine.view(victim.id)).worker("s1/worker_1").phase is Phase.LANDED:
                    break
                await anyio.sleep(0.02)
        return said, (await engine.view(victim.id)).worker("s1/worker_1").phase


@pytest.mark.parametrize("rung", RUNGS)
async def test_an_agent_that_knows_everything_is_still_not_let_in(tmp_path: Path, rung: str):
    attacked = await to_thread.run_sync(Attacked, tmp_path, rung)
    async with attacked.place.engine() as engine:
        said, phase = await attacked.try_to_land(engine, is_told_key=True)
    assert "agents cannot use the engine" in said
    assert phase is Phase.REVIEWING


@pytest.mark.parametrize("rung", FENCES)
async def test_an_agent_in_a_sandbox_does_not_learn_the_key(
    tmp_path: Path, rung: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server.Peer, "is_kept", lambda _: False)
    attacked = await to_thread.run_sync(Attacked, tmp_path, rung)
    async with attacked.place.engine() as engine:
        said, phase = await attacked.try_to_land(engine, is_told_key=False)
    assert said.startswith("failed")
    assert phase is Phase.REVIEWING


@pytest.mark.parametrize("rung", RUNGS)
async def test_the_attack_lands_a_change_where_neither_guard_is(
    tmp_path: Path, rung: str, monkeypatch: pytest.MonkeyPatch
):
    """The negative control: all that holds the two attacks above is what they name."""
    monkeypatch.setattr(server.Peer, "is_kept", lambda _: False)
    attacked = await to_thread.run_sync(Attacked, tmp_path, rung)
    async with attacked.place.engine() as engine:
        said, phase = await attacked.try_to_land(engine, is_told_key=True)
    assert "Accepted" in said
    assert phase is Phase.LANDED


def test_whose_line_cannot_be_seen_is_refused():
    gone = os.posix_spawn("/bin/true", ["true"], {})
    fd = os.pidfd_open(gone)
    os.waitpid(gone, 0)
    assert server.Peer(pid=gone, uid=0, pidfd=fd).is_kept()
    os.close(fd)
    assert server.Peer(pid=0, uid=0, pidfd=-1).is_kept()
    assert server.Peer(pid=os.getpid(), uid=0, pidfd=-1).is_kept()
    fd = os.pidfd_open(os.getpid())
    assert not server.Peer(pid=os.getpid(), uid=0, pidfd=fd).is_kept()  # the control
    os.close(fd)


async def test_who_cannot_read_the_key_is_told_so(place: Place):
    async with place.engine() as engine:
        address = await address_of(engine)
        await anyio.Path(address.key).write_text("nonsense")
        with pytest.raises(NotAdmitted, match="the engine's key cannot be read"):
            async with RemoteEngine.connect(address):
                pass
        await anyio.sleep(0.02)
