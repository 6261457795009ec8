"""A host carrying out the profiles that the sandbox really makes on this machine."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.host.local import LocalHost
from engine.host.seam import AttemptExit, AttemptSpec
from engine.limits import Limits
from engine.phases import StopCause
from engine.sandbox.confine import confine, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess
from tests.support.processes import attempt, marked, output, read_all, wait_output
from tests.support.sandboxes import Scene

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> MachineSupport:
    return probe({}, tmp_path_factory.mktemp("probe") / "cache")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[LocalHost]:
    async with LocalHost(tmp_path) as opened:
        yield opened


class Confined:
    """An attempt in the profile that the sandbox makes for it."""

    def __init__(
        self, machine: MachineSupport, scene: Scene, *argv: str, **changes: object
    ) -> None:
        request: ConfineRequest = scene.request(**changes)
        self.profile: Profile = confine(machine, request)
        env = dict(environment(machine, request))
        plain = attempt(scene.root, *argv, cwd=scene.workspace, limits=request.limits)
        self.spec: AttemptSpec = replace(plain, env=tuple(env.items()), profile=self.profile)

    async def run(self, host: LocalHost) -> tuple[bytes, AttemptExit]:
        try:
            await host.start(self.spec)
            with anyio.fail_after(30):
                frames, end = await read_all(host, self.spec.attempt)
            return output(frames), end
        finally:
            assert await to_thread.run_sync(release, self.profile) == ()


async def made(machine: MachineSupport, scene: Scene, *argv: str, **changes: object) -> Confined:
    return await to_thread.run_sync(partial(Confined, machine, scene, *argv, **changes))


async def test_an_attempt_runs_in_its_workspace_and_its_exit_is_its_own(
    host: LocalHost, machine: MachineSupport, scene: Scene
) -> None:
    confined = await made(machine, scene, "sh", "-c", "pwd; touch made; exit 3")
    said, end = await confined.run(host)
    assert said.decode().split() == [str(scene.workspace)]
    assert (scene.workspace / "made").exists()
    assert (end.exit_code, end.not_started, end.left_over) == (3, None, ())


async def test_its_memory_is_held_and_the_whole_tree_ends_with_it(
    host: LocalHost, machine: MachineSupport, scene: Scene
) -> None:
    hog = "import os\nif os.fork(): os.wait()\nkept = []\nwhile 1: kept.append(b'x' * (4 << 20))"
    limits = Limits(memory_mb=128)
    confined = await made(machine, scene, "python3", "-I", "-S", "-c", hog, limits=limits)
    _, end = await confined.run(host)
    assert end.cause is StopCause.MEMORY
    assert end.limit is not None
    assert end.limit.allowed == 128
    assert await marked(confined.spec) == set()


@pytest.mark.needs("bubblewrap")
async def test_a_proxy_of_ours_does_not_keep_an_attempt_from_ending(
    host: LocalHost, machine: MachineSupport, scene: Scene
) -> None:
    folder = scene.root / "egress"
    folder.mkdir()
    changes = {
        "network": NetworkAccess.ALLOW_LIST,
        "allowed_hosts": ("localhost:1",),
        "way_dir": folder,
    }
    confined = await made(machine, scene, "sh", "-c", "echo on", **changes)
    with anyio.fail_after(30):
        said, end = await confined.run(host)
    assert said == b"on\n"
    assert (end.exit_code, end.left_over) == (0, ())
    assert await marked(confined.spec) == set()


async def test_a_stop_is_heard_inside(
    host: LocalHost, machine: MachineSupport, scene: Scene
) -> None:
    agent = (  # so quick to end that it is gone before anybody can look at it again
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'cleaned'), os._exit(4)))\n"
        "os.write(1, b'on')\n"
        "while True: time.sleep(0.02)"
    )
    confined = await made(machine, scene, "python3", "-I", "-S", "-c", agent)
    await host.start(confined.spec)
    await wait_output(host, confined.spec.attempt, b"on")
    await host.cancel(confined.spec.attempt, StopCause.USER)
    said, end = await confined.run(host)
    assert b"cleaned" in said
    assert (end.cause, end.exit_code) == (StopCause.USER, 4), end
