"""The examples of clusters say what their programs understand, and what plait wants of one."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.site.local_cluster import TUNED
from tests.support.kuberay import RAY_CLUSTER

DOCS = Path(__file__).parents[2] / "docs"
CHECKS = {name: value for name, value in TUNED.items() if "health" in name}


def _read(name: str) -> Any:
    return yaml.safe_load((DOCS / name).read_text())


def _judge(example: Any, schema: Any) -> None:
    validate = pytest.importorskip("jsonschema", reason="it comes with Ray (make ray)").validate
    validate(example, schema)


@pytest.mark.needs("ray")
def test_the_example_for_ray_up_is_one_that_ray_understands() -> None:
    found = importlib.util.find_spec("ray")
    assert found is not None
    assert found.origin is not None
    schema = json.loads((Path(found.origin).parent / "autoscaler/ray-schema.json").read_text())
    _judge(_read("ray-up.yaml"), schema)
    with pytest.raises(Exception, match="Additional properties"):
        _judge({**_read("ray-up.yaml"), "no_such_key": 1}, schema)


@pytest.mark.needs("ray")
def test_the_example_for_kuberay_is_a_ray_cluster() -> None:
    _judge(_read("ray-kuberay.yaml"), RAY_CLUSTER)
    with pytest.raises(Exception, match="Additional properties"):
        _judge({**_read("ray-kuberay.yaml"), "no_such_key": 1}, RAY_CLUSTER)


def test_both_want_a_token_and_notice_within_ten_seconds_that_a_node_is_gone() -> None:
    pods = _read("ray-kuberay.yaml")["spec"]
    groups = [pods["headGroupSpec"], *pods["workerGroupSpecs"]]
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        named = {one["name"]: one["value"] for one in container["env"]}
        assert named.items() >= CHECKS.items()
    starts = _read("ray-up.yaml")
    (_, head), (_, node) = starts["head_start_ray_commands"], starts["worker_start_ray_commands"]
    assert all(f"{name}={value}" in head for name, value in CHECKS.items())
    assert all("RAY_AUTH_MODE=token" in command for command in (head, node))
    assert pods["authOptions"] == {"mode": "token"}
