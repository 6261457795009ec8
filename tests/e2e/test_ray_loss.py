"""Workers survive when their node, its far half or the engine is killed."""

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil
import pytest

from tests.support.ray_node import HEAD, RayCluster, ray_cluster
from tests.support.shells import Shell, end_engine

PLAN = """
runtime:
  sites: {default: box, box: {ray: {address: "ADDRESS", resources: {slot: 1}, lease_minutes: 10}}}
agents:
  writer:
    adapter: scripted
    script:
      attempts:
        "1": [{say: "at work"}, {write: {path: half, text: "of it"}}, {say: "written"},
              {shell: "until test -e go; do sleep 0.05; done"}, {result: "done"}]
        "2": [{write: {path: whole, text: "all"}}, {result: "done"}]
pipelines:
  - name: p
    steps: [{name: a, agent: writer, prompt: x}, {name: b, agent: writer, prompt: x}]
"""
A, B = "a/worker_1", "b/worker_1"
NUMBERS = itertools.count(1)

pytestmark = [pytest.mark.needs("ray"), pytest.mark.long]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as made:
        yield made


@pytest.fixture
def nodes(cluster: RayCluster) -> Iterator[set[str]]:
    """The names of two nodes with two slots each; a test takes out the one that it spoils."""
    there = set(cluster.nodes) - {HEAD}
    new = [f"n{next(NUMBERS)}" for _ in range(2 - len(there))]
    cluster.join(*new, slots=2)
    there.update(new)
    yield there
    cluster.end(*(set(cluster.nodes) - there - {HEAD}))


@pytest.fixture
def begun(repository: Shell, cluster: RayCluster, nodes: object) -> Iterator[Shell]:
    repository.env.clear()
    repository.env.update(cluster.environment)
    (repository.folder / "plait.yaml").write_text(PLAN.replace("ADDRESS", cluster.address))
    repository.git("add", ".")
    repository.git("commit", "-qm", "plan")
    assert repository.plait("run", "plait.yaml", "--detach").code == 0
    wait_written(repository, A, B)
    yield repository
    end_engine(repository)
    for actor in cluster.actors():
        actor.kill()


def workers(shell: Shell) -> Mapping[str, Any]:
    """The workers of the latest run by name."""
    steps = shell.plait("status", "--json").json()["steps"]
    return {w["worker"]: w for step in steps for w in step["workers"]}


def until(is_so: Callable[[], object], what: str, within_s: float = 90) -> None:
    last = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < last, what
        time.sleep(0.2)


def wait_written(shell: Shell, *names: str) -> None:
    """Return when these workers have written their file."""
    until(lambda: all("written" in shell.plait("logs", n).out for n in names), "written")


def has_ended_well(shell: Shell, worker: str, attempt: int) -> bool:
    found = workers(shell)[worker]
    return (found["phase"], found["attempt"]) == ("REVIEWING", attempt)


def release(cluster: RayCluster) -> None:
    """Let the first attempts end."""
    for path in cluster.state.rglob("attempt_1"):
        if (path / "half").exists():
            (path / "go").touch()


def test_a_node_that_is_killed_costs_one_attempt_of_its_workers_alone(
    begun: Shell, nodes: set[str], cluster: RayCluster
) -> None:
    lives = {name: w["site"] for name, w in workers(begun).items()}
    assert sorted(lives.values()) == sorted(f"box/{name}" for name in nodes)
    lost = lives[A].removeprefix("box/")
    assert begun.plait("checkpoint", A).code == 0
    nodes.remove(lost)
    cluster.raylet(lost).kill()
    until(lambda: workers(begun)[A]["attempt"] == 2, "a second attempt", 30)
    until(lambda: has_ended_well(begun, A, 2), "the second attempt")
    assert workers(begun)[A]["site"] == lives[B]
    assert (workers(begun)[B]["phase"], workers(begun)[B]["attempt"]) == ("RUNNING", 1)
    # The node comes back: what its worker had made is kept, beside the change.
    late = "refs/plait/@late/**/a/worker_1/attempt_1/head"
    cluster.end(lost)
    cluster.join(lost)
    until(lambda: "arrived late" in begun.plait("logs", A).out, "what comes late")
    (head,) = begun.git("for-each-ref", "--format=%(refname)", late).split()
    assert begun.git("show", f"{head}:half") == "of it"
    # The second attempt had gone on from what was seen of the first one.
    diff = begun.plait("diff", A).out
    assert "+of it" in diff
    assert "+all" in diff


def drain(cluster: RayCluster, node: str) -> None:
    """Tell a node to go, as an autoscaler does, or whoever hears a spot notice."""
    cluster.drain(node)


def terminate(cluster: RayCluster, node: str) -> None:
    """Send SIGTERM to `ray start --block`, as whoever ends a pod or a unit does."""
    cluster.nodes[node].terminate()


def terminate_raylet(cluster: RayCluster, node: str) -> None:
    """Send SIGTERM to the daemon itself, as `ray stop` does: it leaves at once."""
    cluster.raylet(node).terminate()


@pytest.mark.parametrize("leave", [drain, terminate, terminate_raylet])
def test_the_workers_of_a_node_that_is_told_to_go_move_with_their_work(
    begun: Shell,
    cluster: RayCluster,
    nodes: set[str],
    leave: Callable[[RayCluster, str], None],
) -> None:
    lives = {name: w["site"] for name, w in workers(begun).items()}
    going = lives[A].removeprefix("box/")
    assert begun.plait("checkpoint", A).code == 0
    if leave is not terminate_raylet:  # what is written after a checkpoint comes too
        for tree in cluster.state.rglob("attempt_1"):
            if (tree / "half").exists():
                (tree / "late").write_text("later\n")
    nodes.remove(going)
    leave(cluster, going)
    until(lambda: has_ended_well(begun, A, 2), "the second attempt")
    assert workers(begun)[A]["site"] == lives[B]
    assert (workers(begun)[B]["phase"], workers(begun)[B]["attempt"]) == ("RUNNING", 1)
    diff = begun.plait("diff", A).out
    assert "+of it" in diff
    assert "+all" in diff
    assert ("+later" in diff) is (leave is not terminate_raylet)
    if leave is drain:
        assert "being drained" in begun.plait("sites").out


PREPARED = """
runtime:
  sites: {default: box, box: {ray: {address: "ADDRESS", resources: {slot: 1}}}}
workspace: {setup: "touch there; until test -e go; do sleep 0.05; done"}
agents:
  writer:
    adapter: scripted
    script:
      attempts:
        "1": [{hang: true}]
        "2": [{write: {path: whole, text: "all"}}, {result: "done"}]
pipelines:
  - name: p
    steps: [{name: a, agent: writer, prompt: x}]
"""


@pytest.fixture
def preparing(repository: Shell, cluster: RayCluster, nodes: object) -> Iterator[tuple[Shell, str]]:
    """A run whose worker is being prepared, and the node that it is on."""
    repository.env.clear()
    repository.env.update(cluster.environment)
    (repository.folder / "plait.yaml").write_text(PREPARED.replace("ADDRESS", cluster.address))
    assert repository.plait("run", "plait.yaml", "--detach").code == 0
    until(lambda: any(cluster.state.rglob("attempt_1/there")), "its setup")
    (there,) = cluster.state.rglob("attempt_1/there")
    yield repository, there.relative_to(cluster.state / "sites").parts[0].rpartition("-")[2]
    end_engine(repository)


def test_a_worker_moves_that_was_being_prepared_when_its_node_was_told_to_go(
    preparing: tuple[Shell, str], nodes: set[str], cluster: RayCluster
) -> None:
    shell, node = preparing
    nodes.remove(node)
    cluster.drain(node)
    until(lambda: "being drained" in shell.plait("sites").out, "that it was heard")

    def has_moved() -> bool:
        for there in cluster.state.rglob("there"):
            (there.parent / "go").touch()
        return has_ended_well(shell, A, 2)

    until(has_moved, "the second attempt")
    assert workers(shell)[A]["site"] != f"box/{node}"


def test_a_far_half_that_is_killed_costs_one_attempt(begun: Shell, cluster: RayCluster) -> None:
    for actor in cluster.actors():
        actor.kill()
    for worker in (A, B):
        until(lambda w=worker: has_ended_well(begun, w, 2), f"{worker} again")
        assert "+of it" in begun.plait("diff", worker).out, "its tree was still there"


def test_an_engine_that_is_killed_finds_its_attempts_again(
    begun: Shell, cluster: RayCluster
) -> None:
    named = begun.folder / ".git/plait/engine.json"
    run = begun.plait("status", "--json").json()["run"]
    os.kill(json.loads(named.read_text())["pid"], signal.SIGKILL)
    release(cluster)
    begun.plait("resume", run, "--headless")
    assert all(has_ended_well(begun, worker, 1) for worker in (A, B)), workers(begun)
    assert "+of it" in begun.plait("diff", A).out


def test_a_cluster_that_is_silent_as_the_engine_starts_has_lost_nothing(
    begun: Shell, cluster: RayCluster
) -> None:
    named = begun.folder / ".git/plait/engine.json"
    run = begun.plait("status", "--json").json()["run"]
    os.kill(json.loads(named.read_text())["pid"], signal.SIGKILL)
    keeps = next(
        one
        for one in psutil.process_iter()
        if one.name() == "gcs_server" and str(cluster.folder) in " ".join(one.cmdline())
    )
    keeps.suspend()
    try:
        with begun.running("resume", run, "--headless") as process:
            until(lambda: "nothing answers at" in begun.plait("status").out, "why it stands still")
            assert {w["phase"] for w in workers(begun).values()} == {"RUNNING"}
            keeps.resume()
            release(cluster)
            until(lambda: process.poll() is not None, "the end of the run")
    finally:
        keeps.resume()
    assert all(has_ended_well(begun, worker, 1) for worker in (A, B)), workers(begun)
