"""Test what a killed engine leaves outside of the repository goes when the next one opens."""

import os
import socket
from pathlib import Path

import pytest

from engine.sandbox.cgroups import sweep
from engine.sandbox.machine import Hierarchy, Mechanism
from tests.support.shells import Shell


@pytest.fixture
def runtime(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("r")
    shell.env["XDG_RUNTIME_DIR"] = str(folder)
    return folder


def _left(base: Path, name: str) -> Path:
    folder = base / name
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "engine.sock"))
    os.utime(folder, (0, 0))
    return folder


def test_a_socket_nobody_listens_at_goes(shell: Shell, runtime: Path):
    dead = _left(runtime, "plait-dead")
    empty = runtime / "plait-empty"
    empty.mkdir(mode=0o700)
    os.utime(empty, (0, 0))
    assert shell.plait("clean").code == 0
    assert not dead.exists()
    assert not empty.exists()
    assert list(runtime.iterdir()) == []


def test_a_socket_that_is_heard_or_young_stays(shell: Shell, runtime: Path):
    young = runtime / "plait-young"
    young.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as living:
        heard = runtime / "plait-heard"
        heard.mkdir(mode=0o700)
        living.bind(str(heard / "engine.sock"))
        living.listen()
        os.utime(heard, (0, 0))
        assert shell.plait("clean").code == 0
        assert heard.exists()
    assert young.exists()


def test_empty_old_groups_go_and_nothing_else(tmp_path: Path):
    """A plain folder stands in for the hierarchy: both refuse to remove what is not empty."""
    for name in ("plait-old", "plait-used/below", "plait-young", "somebodys"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("plait-old", "plait-used", "somebodys"):
        os.utime(tmp_path / name, (0, 0))
    here = Hierarchy(
        mechanism=Mechanism.CGROUP1, version=1, parent=str(tmp_path), controllers=("pids",)
    )
    sweep([here])
    assert {left.name for left in tmp_path.iterdir()} == {"plait-used", "plait-young", "somebodys"}
