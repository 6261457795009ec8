"""A hostile agent on every rung and on none: what it gets, and what it must not get."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.limits import Dimension, Level, Limits
from engine.sandbox.confine import confine, release, row
from engine.sandbox.ladder import limiter
from engine.sandbox.machine import Machine, Mechanism
from engine.sandbox.probe import probe
from engine.sandbox.request import Network
from engine.sandbox.view import Access, look
from tests.support.attacks import ATTACKS, ROOT_ONLY, absent
from tests.support.sandboxes import NETWORK, PYTHON, Scene, reachable, run

IS_ROOT = os.getuid() == 0
POSSIBLE = frozenset(ATTACKS) - (frozenset() if IS_ROOT else ROOT_ONLY) - absent()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return probe(os.environ, tmp_path_factory.mktemp("state"))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


def on(machine: Machine, rung: str, folder: Path) -> Machine:
    """The machine with a rung of file isolation forced; skipped where it has none."""
    mechanism = Mechanism(rung)
    if not machine.has(mechanism):
        pytest.skip(f"{rung}: {machine.finding(mechanism).reason}")
    return probe({**os.environ, "PLAIT_SANDBOX": rung}, folder)


def succeeded(answer: dict[str, bool]) -> set[str]:
    return {name for name, worked in answer.items() if worked}


def test_every_attack_succeeds_where_nothing_guards(scene: Scene, tmp_path: Path):
    machine = probe({**os.environ, "PLAIT_SANDBOX": "none"}, tmp_path / "state")
    request = scene.request(limits=Limits(memory_mb=512))
    expected = set(POSSIBLE) - {"remount"}  # needs a sandbox to undo
    if limiter(machine, Dimension.MEMORY) not in (Mechanism.CGROUP1, Mechanism.CGROUP2):
        expected -= {"raise_own_limit", "leave_cgroup"}
    assert succeeded(scene.try_attacks(machine, request)) == expected
    profile = confine(machine, request)
    release(profile)
    assert row(profile, Dimension.FILES).level is Level.NONE
    assert row(profile, Dimension.GIT).level is Level.ADVISORY


def test_bwrap_refuses_everything_but_the_open_network(
    machine: Machine, scene: Scene, tmp_path: Path
):
    here = on(machine, "bwrap", tmp_path / "state")
    request = scene.request(limits=Limits(memory_mb=512))
    got = succeeded(scene.try_attacks(here, request))
    assert got == reachable(here)
    profile = confine(here, request)
    release(profile)
    assert row(profile, Dimension.FILES).level is Level.ENFORCED
    assert row(profile, Dimension.NETWORK).level is Level.NONE


def test_bwrap_without_network_refuses_everything(machine: Machine, scene: Scene, tmp_path: Path):
    here = on(machine, "bwrap", tmp_path / "state")
    request = scene.request(limits=Limits(memory_mb=512), network=Network.NONE)
    assert succeeded(scene.try_attacks(here, request)) == set()


def test_bwrap_for_an_agent_with_its_own_sandbox_still_refuses_everything(
    machine: Machine, scene: Scene, tmp_path: Path
):
    here = on(machine, "bwrap", tmp_path / "state")
    request = scene.request(needs_own_sandbox=True)
    # It may make a namespace, in which it changes nothing but what it sees itself.
    assert succeeded(scene.try_attacks(here, request)) <= reachable(here) | {"own_namespace"}


def test_landlock_refuses_all_but_its_own_git_file(machine: Machine, scene: Scene, tmp_path: Path):
    here = on(machine, "landlock", tmp_path / "state")
    request = scene.request(limits=Limits(memory_mb=512))
    assert succeeded(scene.try_attacks(here, request)) == {*NETWORK, "replace_git_file"}


def test_landlock_without_network_makes_no_sockets(machine: Machine, scene: Scene, tmp_path: Path):
    here = on(machine, "landlock", tmp_path / "state")
    request = scene.request(network=Network.NONE)
    assert succeeded(scene.try_attacks(here, request)) == {"replace_git_file"}
    profile = confine(here, request)
    release(profile)
    assert row(profile, Dimension.NETWORK).level is Level.ENFORCED


@pytest.mark.parametrize("rung", ["bwrap", "landlock"])
def test_what_is_hidden_stays_hidden_below_a_folder_that_is_shown(
    machine: Machine, scene: Scene, tmp_path: Path, rung: str
):
    here = on(machine, rung, tmp_path / "state")
    request = scene.request(read_only=(*scene.request().read_only, scene.root))
    assert Access.READ in {sight.access for sight in look(here, request).sights}
    got = succeeded(scene.try_attacks(here, request))
    assert got - {"unix_socket", "replace_git_file"} == reachable(here)
    bare = replace(request, hide=())
    names = ("read_sibling", "read_checkout", "read_secret", "list_siblings")
    assert succeeded(scene.try_attacks(here, bare, names)) == set(names)


@pytest.mark.skipif(not IS_ROOT, reason="only root has capabilities to lose")
def test_remounting_succeeds_when_capabilities_are_kept(
    machine: Machine, scene: Scene, tmp_path: Path
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
    machine: Machine, scene: Scene, tmp_path: Path
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
