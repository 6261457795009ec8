"""A worker lives on a node of a real Ray cluster, or a message says why it cannot."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.api import try_site
from engine.errors import SiteSilent, WorkspaceError
from engine.site import gate
from tests.support.ray_node import RayCluster, ray_cluster, shared_node

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def node() -> RayCluster:
    return shared_node()


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "state").mkdir()
    return {**os.environ, "PLAIT_STATE_HOME": str(tmp_path / "state")}


@pytest.mark.long
@pytest.mark.needs("ray")
async def test_a_node_passes_the_trial(node: RayCluster, environment: Mapping[str, str]) -> None:
    done = await try_site(f"ray:{node.address}", {**environment, **node.environment})
    assert [one.problem for one in done] == [""] * 7


@pytest.mark.long
@pytest.mark.needs("ray")
async def test_another_token_is_refused_in_words(
    node: RayCluster, environment: Mapping[str, str], tmp_path: Path
) -> None:
    other = tmp_path / "token"
    other.write_text("0" * 64)
    known = {**node.environment, "RAY_AUTH_TOKEN_PATH": str(other)}
    with pytest.raises(SiteSilent, match=f"nothing answers at {node.address}") as refused:
        await try_site(f"ray:{node.address}", {**environment, **known})
    assert "with this token" in refused.value.hint


@pytest.mark.long
@pytest.mark.needs("ray")
async def test_a_cluster_that_answers_without_a_token_is_refused_though_we_have_one(
    environment: Mapping[str, str], node: RayCluster
) -> None:
    with ray_cluster(RAY_AUTH_MODE="disabled") as bare:
        with pytest.raises(WorkspaceError, match="runs the code of everybody") as refused:
            await try_site(f"ray:{bare.address}", {**environment, **node.environment})
        assert "RAY_AUTH_MODE=token" in refused.value.hint


async def test_where_ray_is_missing_the_way_to_install_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "find_spec", lambda _: None)
    with pytest.raises(WorkspaceError) as refused:
        gate.check_client({"RAY_AUTH_MODE": "token"})
    assert refused.value.hint == "`pip install 'plait[ray]'`"


async def test_a_cluster_without_a_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "find_spec", lambda name: name)
    with pytest.raises(WorkspaceError, match="without a token"):
        gate.check_client({})


def test_a_token_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gate, "find_spec", lambda name: name)
    known = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    with pytest.raises(WorkspaceError, match=f"no token of a Ray cluster at {tmp_path}/token"):
        gate.check_client(known)
    (tmp_path / "token").touch()
    gate.check_client(known)
    gate.check_client({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64})
