"""Layers over the user's package caches: which there are, and how they come and go."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.sandbox.bubblewrap import without_keeper, words
from engine.sandbox.caches import layers, mounts, prepare, variables, without_layers
from engine.sandbox.environment import environment
from engine.sandbox.machine import forced
from engine.sandbox.request import ConfineRequest
from engine.sandbox.view import look
from tests.unit.sandbox.machines import FULL

WITHOUT = forced(FULL, {"PLAIT_FORCE_OFF": "overlay"})


@pytest.fixture
def request_(tmp_path: Path) -> ConfineRequest:
    for name in ("w", "h", "caches", "user/.npm", "user/.cargo/registry", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    env = {"HOME": str(tmp_path / "user"), "PATH": "/usr/bin"}
    env["PIP_CACHE_DIR"] = str(tmp_path / "elsewhere")
    return ConfineRequest(
        name="x",
        workspace=tmp_path / "w",
        home=tmp_path / "h",
        cache_dir=tmp_path / "caches",
        env=env,
    )


def test_there_is_a_layer_for_every_cache_that_the_user_has(
    request_: ConfineRequest, tmp_path: Path
):
    found = {layer.name: layer for layer in layers(FULL, request_)}
    assert set(found) == {".cache/pip", ".npm", ".cargo/registry"}
    assert found[".cache/pip"].lower == tmp_path / "elsewhere"
    assert dict(variables(FULL, request_)) == {
        "PIP_CACHE_DIR": "/run/plait-caches/cache-pip",
        "npm_config_cache": "/run/plait-caches/npm",
    }
    assert dict(environment(FULL, request_))["npm_config_cache"] == "/run/plait-caches/npm"


def test_there_is_none_where_nothing_can_be_layered_or_kept(request_: ConfineRequest):
    assert layers(WITHOUT, request_) == ()
    assert layers(FULL, replace(request_, cache_dir=None)) == ()
    assert layers(forced(FULL, {"PLAIT_SANDBOX": "landlock"}), request_) == ()
    assert "PIP_CACHE_DIR" not in dict(environment(WITHOUT, request_))


def test_no_layer_is_made_inside_what_the_worker_writes(request_: ConfineRequest):
    made = list(mounts(FULL, request_))
    targets = [made[place + 3] for place, word in enumerate(made) if word == "--overlay"]
    assert len(targets) == 3
    assert all(target.startswith("/run/plait-caches/") for target in targets)


def test_a_program_without_a_keeper_has_no_layers(request_: ConfineRequest):
    made = words(FULL, request_, look(FULL, request_))
    left = without_keeper(made)
    assert not [word for word in left if "overlay" in word or "plait-caches" in word]
    assert left[0] == made[0]
    assert left[-1] == "--"
    assert without_layers(("bwrap", "--", "x", "--overlay", "y")) == (
        *("bwrap", "--", "x", "--overlay", "y"),
    )


def test_cargo_finds_its_layer_by_a_link_that_goes_when_the_layer_does(request_: ConfineRequest):
    link = request_.home / ".cargo/registry"
    prepare(FULL, request_)
    assert link.readlink() == Path("/run/plait-caches/cargo-registry")
    prepare(FULL, request_)
    prepare(WITHOUT, request_)
    assert not link.is_symlink()
    prepare(WITHOUT, request_)


def test_a_folder_of_the_workers_own_stays(request_: ConfineRequest):
    own = request_.home / ".cargo/registry"
    own.mkdir(parents=True)
    for machine in (FULL, WITHOUT):
        prepare(machine, request_)
        assert own.is_dir()
        assert not own.is_symlink()
