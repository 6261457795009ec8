"""The user's package caches as a worker has them: read from below, written above, its own."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.sandbox.confine import confine, looking, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest
from tests.support.needs import need
from tests.support.sandboxes import Scene, run


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> MachineSupport:
    found = probe(os.environ, tmp_path_factory.mktemp("state"))
    need("overlay")
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    for name in (".cache/pip", ".cargo/registry"):
        (built.repository.home / name).mkdir(parents=True)
        (built.repository.home / name / "wheel").write_text("the user's\n")
    yield built
    built.close()


@pytest.fixture
def shell(machine: MachineSupport, scene: Scene) -> Callable[..., str]:
    """Runs a script as the worker with this folder for its caches; what it says."""

    def do(folder: Path, script: str) -> str:
        asked = cached(scene, folder)
        profile = confine(machine, asked)
        env = dict(environment(machine, asked))
        try:
            done = run(profile, ["sh", "-euc", script], env=env, cwd=scene.workspace)
        finally:
            release(profile)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return do


def cached(scene: Scene, folder: Path) -> ConfineRequest:
    folder.mkdir(exist_ok=True)
    env = {key: value for key, value in scene.request().env.items() if "CACHE" not in key}
    return scene.request(cache_dir=folder, env=env)


def test_a_worker_reads_the_users_cache_and_writes_its_own(
    scene: Scene, shell: Callable[..., str], tmp_path: Path
):
    mine, other = tmp_path / "mine", tmp_path / "other"
    script = 'cat "$PIP_CACHE_DIR/wheel"; echo mine > "$PIP_CACHE_DIR/wheel"'
    assert shell(mine, script) == "the user's\n"
    assert shell(mine, 'cat "$PIP_CACHE_DIR/wheel"') == "mine\n"
    assert shell(other, 'cat "$PIP_CACHE_DIR/wheel"') == "the user's\n"
    assert (scene.repository.home / ".cache/pip/wheel").read_text() == "the user's\n"


def test_cargo_reaches_its_layer_through_its_home(
    scene: Scene, shell: Callable[..., str], tmp_path: Path
):
    script = "cat ~/.cargo/registry/wheel; rm ~/.cargo/registry/wheel; ls -A ~/.cargo/registry"
    assert shell(tmp_path / "mine", script) == "the user's\n"
    assert (scene.repository.home / ".cargo/registry/wheel").exists()


def test_a_program_of_the_engine_runs_beside_without_the_layers(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    with looking(machine, cached(scene, tmp_path / "mine")) as words:
        argv = [*words, "sh", "-c", "ls /run/plait-caches || echo none"]
        done = run(Profile(), argv, env=os.environ, cwd=scene.workspace)
    assert done.stdout == "none\n"
