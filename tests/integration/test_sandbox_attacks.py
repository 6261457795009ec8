"""A hostile agent on every rung and on none: what it gets, and what it must not get."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.limits import Dimension, Level
from engine.sandbox.confine import confine, release, row
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.request import NetworkAccess
from engine.sandbox.view import Access, look
from tests.support.matrix import let_through
from tests.support.needs import need
from tests.support.sandboxes import PYTHON, Scene, run

IS_ROOT = os.getuid() == 0


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> MachineSupport:
    return probe(os.environ, tmp_path_factory.mktemp("state"))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


def on(machine: MachineSupport, rung: str, folder: Path) -> MachineSupport:
    """The machine with a rung of file isolation forced; skipped where it has none."""
    mechanism = Mechanism(rung)
    if not machine.has(mechanism):
        need("bubblewrap" if rung == "bwrap" else rung)
    return probe({**os.environ, "PLAIT_SANDBOX": rung}, folder)


def succeeded(answer: dict[str, bool]) -> set[str]:
    return {name for name, worked in answer.items() if worked}


def test_bwrap_for_an_agent_with_its_own_sandbox_still_refuses_everything(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    here = on(machine, "bwrap", tmp_path / "state")
    request = scene.request(needs_own_sandbox=True)
    # It may make a namespace, in which it changes nothing but what it sees itself.
    assert succeeded(scene.try_attacks(here, request)) <= {*let_through("bwrap"), "own_namespace"}


@pytest.mark.parametrize(
    "case", [("bwrap", Level.ENFORCED), ("landlock", Level.ADVISORY), ("none", Level.NONE)]
)
def test_a_profile_says_what_the_matrix_shows(
    scene: Scene, tmp_path: Path, machine: MachineSupport, case: tuple[str, Level]
):
    rung, level = case
    forced = {**os.environ, "PLAIT_SANDBOX": rung}
    here = probe(forced, tmp_path / "state")
    if rung != "none":
        on(machine, rung, tmp_path / "state")
    profile = confine(here, scene.request())
    release(profile)
    assert row(profile, Dimension.FILES).level is level
    git = row(profile, Dimension.GIT).level
    assert git is (Level.ENFORCED if level is Level.ENFORCED else Level.ADVISORY)
    assert row(profile, Dimension.NETWORK).level is Level.NONE


def test_landlock_closes_a_network_as_a_whole(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    here = on(machine, "landlock", tmp_path / "state")
    profile = confine(here, scene.request(network=NetworkAccess.NONE))
    release(profile)
    assert row(profile, Dimension.NETWORK).level is Level.ENFORCED


@pytest.mark.parametrize("rung", ["bwrap", "landlock"])
def test_what_is_hidden_stays_hidden_below_a_folder_that_is_shown(
    machine: MachineSupport, scene: Scene, tmp_path: Path, rung: str
):
    here = on(machine, rung, tmp_path / "state")
    request = scene.request(read_only=(*scene.request().read_only, scene.root))
    assert Access.READ in {sight.access for sight in look(here, request).sights}
    got = succeeded(scene.try_attacks(here, request))
    # What lies in a folder that is shown can be seen: the socket and its own tree.
    assert got - {"unix_socket"} == let_through(rung)
    bare = replace(request, hide=())
    names = ("read_sibling", "read_checkout", "read_secret", "list_siblings")
    assert succeeded(scene.try_attacks(here, bare, names)) == set(names)


@pytest.mark.needs("root")
def test_remounting_succeeds_when_capabilities_are_kept(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    here = on(machine, "bwrap", tmp_path / "state")
    profile = confine(here, scene.request())
    release(profile)
    drop = profile.wrapper.index("--cap-drop")
    weak = [*profile.wrapper[:drop], *profile.wrapper[drop + 2 :]]
    for word in ("--unshare-user", "--disable-userns"):
        weak.remove(word)
    for word in ("--uid", "--gid"):
        place = weak.index(word)
        del weak[place : place + 2]
    attack = ["mount", "-o", "remount,rw,bind", "/usr"]
    env, cwd = dict(os.environ), scene.workspace
    guarded = replace(profile, cgroups=())
    weakened = replace(profile, cgroups=(), wrapper=tuple(weak), landlock_is_scoped=False)
    assert run(weakened, attack, env=env, cwd=cwd).returncode == 0
    assert run(guarded, attack, env=env, cwd=cwd).returncode != 0


def test_what_is_written_beside_the_own_folders_is_refused_and_not_lost(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    here = on(machine, "bwrap", tmp_path / "state")
    request = scene.request()
    profile = confine(here, request)
    outside = (scene.repository.home, scene.repository.path, scene.attempt, Path("/"), Path("/run"))
    own = (scene.workspace, scene.home, scene.temp)
    script = "import sys, pathlib\nfor p in sys.argv[1:]:\n try:\n  pathlib.Path(p, 'x').touch()\n"
    script += "  print(p)\n except OSError:\n  pass"
    try:
        done = run(
            profile,
            [PYTHON, "-I", "-c", script, *map(str, (*outside, *own))],
            env=dict(os.environ),
            cwd=scene.workspace,
        )
    finally:
        release(profile)
    assert done.stdout.split() == list(map(str, own)), done.stderr
    assert (scene.workspace / "x").exists()
