"""Workers of a manifest live on a node of a real Ray cluster: what comes home, what is refused."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.ray_node import HEAD, RayCluster, ray_cluster, shared_node
from tests.support.shells import Shell, end_engine

PLAN = """
runtime:
  sites: {gpu-box: {ray: {address: "ADDRESS"}}}
  limits: {memory_mb: 512, cpu_percent: 50}
workspace: {include: [secret], setup: "echo set up > made"}
agents:
  writer:
    adapter: scripted
    script:
      steps:
        - shell: "cat secret made > out.txt; mkdir -p kept; cp out.txt kept; echo x >> a.txt"
        - result: "done"
pipelines:
  - name: p
    steps:
      - {name: make, site: gpu-box, agent: writer, prompt: "make it",
         artifacts: [kept], check: "grep x a.txt"}
      - {name: use, dependencies: [make], run: "cat kept/out.txt; tail -1 a.txt"}
"""

pytestmark = [pytest.mark.needs("ray"), pytest.mark.long]


@pytest.fixture(scope="module")
def node() -> RayCluster:
    return shared_node()


@pytest.fixture
def planned(repository: Shell, node: RayCluster) -> Shell:
    repository.env.clear()
    repository.env.update(node.environment)
    (repository.folder / "plait.yaml").write_text(PLAN.replace("ADDRESS", node.address))
    (repository.folder / ".gitignore").write_text("secret\nmade\nout.txt\nkept\n")
    repository.git("add", ".")
    repository.git("commit", "-qm", "plan")
    (repository.folder / "secret").write_text("a secret\n")
    return repository


def workers(shell: Shell) -> Mapping[str, Mapping[str, str]]:
    """The workers of the latest run by name."""
    steps = shell.plait("status", "--json").json()["steps"]
    return {w["worker"]: w for step in steps for w in step["workers"]}


def test_a_worker_lives_on_a_node_and_its_work_lands_here(planned: Shell, node: RayCluster):
    assert planned.plait("validate", "plait.yaml").code == 0
    done = planned.plait("run", "plait.yaml", "--headless", "--json")
    assert done.events[-1]["report"]["steps"]["use"]["worker_results"][0]["phase"] == "FINISHED"
    found = workers(planned)
    assert found["make/worker_1"]["site"].startswith("gpu-box/")
    assert found["use/worker_1"]["site"] == ""
    assert f"at {found['make/worker_1']['site']}" in planned.plait("status").out
    said = planned.plait("logs", "use/worker_1").out
    assert [line.strip() for line in said.splitlines()] == ["a secret", "set up", "x"]
    assert "+x" in planned.plait("diff", "make/worker_1").out
    assert planned.plait("land", "make/worker_1").code == 0
    assert (planned.folder / "a.txt").read_text() == "one\ntwo\nthree\nx\n"
    assert len(planned.git("worktree", "list").splitlines()) == 1
    node.wait_actors(0)  # it goes with the engine that used it


def test_a_cluster_of_the_manifest_is_listed_and_tried(planned: Shell, node: RayCluster):
    kept = set(node.state.glob("sites/*"))
    listed = planned.plait("sites")
    assert (listed.code, "gpu-box" in listed.out) == (0, True), listed
    assert "CPU 0 of 2 used" in listed.out
    assert "no workers are queued" in listed.out
    (cluster,) = [one for one in planned.plait("sites", "--json").json() if one["nodes"]]
    (there,) = cluster["machines"].values()
    levels = {row["dimension"]: row["level"] for row in there["report"]["rows"]}
    assert (levels["files"], levels["git"]) == ("enforced", "enforced")
    assert {"plait", "Python", "git", "Ray"} <= there["report"]["versions"].keys()
    tried = planned.plait("site", "check", "gpu-box", "--json").json()
    assert [one["problem"] for one in tried] == [""] * 7
    node.wait_actors(0)
    assert set(node.state.glob("sites/*")) == kept, "nothing of a trial stays on a node"


def test_what_waits_for_room_is_listed(planned: Shell, node: RayCluster):
    (planned.folder / "plait.yaml").write_text(FULL.replace("ADDRESS", node.address))
    assert planned.plait("run", "plait.yaml", "--detach").code == 0
    while "RUNNING" not in {w["phase"] for w in workers(planned).values()}:
        time.sleep(0.1)  # to ask a cluster starts more than to ask an engine
    until_said(planned, "CPU 2 of 2 used", "1 worker waits for room: 1 for 2 CPU")
    assert planned.plait("cancel", "--all").code == 1
    until_said(planned, "CPU 0 of 2 used", "no workers are queued")
    end_engine(planned)


def test_a_node_that_nobody_needs_is_free_while_the_engine_lives(
    repository: Shell, node: RayCluster
):
    repository.env.clear()
    repository.env.update(node.environment)
    plan = OPEN.replace("ADDRESS", node.address).replace("}}}", ", lease_minutes: 0.1}}}")
    (repository.folder / "plait.yaml").write_text(
        plan.replace('"true"', '"echo x > made", merge: each')
    )
    assert repository.plait("run", "plait.yaml", "--detach").code == 0
    node.wait_actors(1)
    node.wait_actors(0)
    named = json.loads((repository.folder / ".git/plait/engine.json").read_text())
    assert psutil.pid_exists(named["pid"])
    assert workers(repository)["s/worker_1"]["phase"] == "REVIEWING"
    assert repository.plait("retry", "s/worker_1").code == 0  # it is begun anew
    assert workers(repository)["s/worker_1"]["attempt"] == 2
    end_engine(repository)


def until_said(shell: Shell, *said: str) -> None:
    """Return when the list of sites says all of that."""
    last = time.monotonic() + 60
    while not all(one in (listed := shell.plait("sites").out) for one in said):
        assert time.monotonic() < last, listed


FULL = """
runtime: {sites: {default: box, box: {ray: {address: "ADDRESS"}}}, limits: {cpu_percent: 200}}
pipelines: [{name: p, steps: [{name: a, run: "sleep 1000"}, {name: b, run: "sleep 1000"}]}]
"""


def test_what_no_node_can_hold_is_refused_with_the_figure(planned: Shell):
    file = planned.folder / "plait.yaml"
    file.write_text(file.read_text().replace("cpu_percent: 50", "cpu_percent: 5000"))
    done = planned.plait("run", "plait.yaml", "--headless")
    assert done.code != 0
    said = workers(planned)["make/worker_1"]
    assert "no node has 50 CPU; the largest has 2 CPU" in str(said), said


def test_a_node_that_enforces_nothing_is_refused_unless_the_manifest_says_so(
    repository: Shell,
):
    """Nodes on which no mechanism may be used report that."""
    with ray_cluster(PLAIT_SANDBOX="none") as bare:
        repository.env.clear()
        repository.env.update(bare.environment)
        plan = repository.folder / "plait.yaml"
        plan.write_text(OPEN.replace("ADDRESS", bare.address))
        done = repository.plait("run", "plait.yaml", "--headless")
        assert "files: enforced is required" in done.err, done
        plan.write_text(plan.read_text().replace("}}}", ", unenforced: true}}}"))
        assert repository.plait("run", "plait.yaml", "--headless").code == 0
        seen = looking(repository, bare, ", unenforced: true")
        assert (token_of(bare) in seen, "session_" in seen) == (True, True), "the control"


def test_an_agent_on_a_node_sees_nothing_of_the_cluster(repository: Shell, node: RayCluster):
    repository.env.clear()
    repository.env.update(node.environment)
    seen = looking(repository, node)
    assert "looked" in seen
    assert "RAY_" not in seen
    assert token_of(node) not in seen
    assert "session_" not in seen, "its sockets and logs"


def looking(shell: Shell, cluster: RayCluster, how: str = "") -> str:
    """Return what a worker on a node finds when it looks for the token and for files of Ray."""
    token = cluster.environment["RAY_AUTH_TOKEN_PATH"]
    files = f"{cluster.folder}/{HEAD} /dev/shm"
    look = f"cat {token} 2>/dev/null; env; echo looking; ls -A {files}; echo looked"
    plan = OPEN.replace("ADDRESS", cluster.address).replace("}}}", f"{how}}}}}}}")
    (shell.folder / "plait.yaml").write_text(plan.replace('"true"', f'"{look}"'))
    assert shell.plait("run", "plait.yaml", "--headless").code == 0
    return shell.plait("logs", "s/worker_1").out


def token_of(cluster: RayCluster) -> str:
    return Path(cluster.environment["RAY_AUTH_TOKEN_PATH"]).read_text()


OPEN = """
runtime: {sites: {default: box, box: {ray: {address: "ADDRESS"}}}}
pipelines: [{name: p, steps: [{name: s, run: "true"}]}]
"""


def test_a_cluster_of_this_machine_is_started_tried_and_ended(repository: Shell):
    repository.env.clear()
    said = repository.plait("site", "up", "local-cluster")
    assert said.code == 0, said
    assert repository.plait("site", "up", "local-cluster").out == said.out, "it is up"
    words = said.out.split("export ")[1].splitlines()[0].split()
    repository.env.update(dict(word.split("=", 1) for word in words))
    address = said.out.split('address: "')[1].split('"')[0]
    tried = repository.plait("site", "check", f"ray:{address}", "--json").json()
    assert [one["problem"] for one in tried] == [""] * 7
    assert "has ended" in repository.plait("site", "down", "local-cluster").out
    assert "was not running" in repository.plait("site", "down", "local-cluster").out
    left = [one for one in psutil.process_iter() if is_marked(one, str(repository.state))]
    assert not left


def is_marked(process: psutil.Process, state: str) -> bool:
    with suppress(psutil.Error):
        return process.environ().get("PLAIT_CLUSTER", "").startswith(state)
    return False
