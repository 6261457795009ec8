"""Workers on two nodes in networks of their own: one is killed, one is cut off, the engine dies.

The nodes do not see the user's repository. The engine lives on the head, on which nobody works.
"""

import json
import os
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.ray_apart import Apart, apart
from tests.support.shells import Shell, end_engine

NODES = ("n1", "n2")
ITEMS = "abcdefghijkl"
LINES = 200
DETECTED_S, GONE_S = 10.0, 2.0
LEASE_S = 12.0
PLAN = """
runtime:
  max_concurrent_workers: 12
  sites: {default: box, box: {ray: {address: "ADDRESS", resources: {slot: 1}, LEASE}}}
pipelines:
  - name: p
    steps:
      - name: each
        run: "RUN"
        merge: each
        strategy: {matrix: {items: ITEMS}}
""".replace("LEASE", f"lease_minutes: {LEASE_S / 60}")
WORK = (
    f"for n in $(seq {LINES}); do echo line $n; done; echo $PLAIT_ITEM > made; "
    "until test -e go; do sleep 0.1; done; echo end"
)
EVER = "setsid sleep 54321 & sleep 54322 & echo there; wait"

pytestmark = [pytest.mark.needs("ray", "networks"), pytest.mark.long]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Apart]:
    with (
        tempfile.TemporaryDirectory(prefix="hidden") as hidden,
        apart(Path(hidden), *NODES, slots=6) as made,
    ):
        yield made


@pytest.fixture
def shell(cluster: Apart) -> Iterator[Shell]:
    """A repository that no node sees; every node is there."""
    cluster.make_whole()
    with tempfile.TemporaryDirectory(dir=cluster.hidden) as place:
        folder = Path(place, "project")
        folder.mkdir()
        made = Shell(folder, Path(place, "state"), dict(cluster.environment), 120)
        made.before = tuple(cluster.inside)
        made.git("init", "-q", "-b", "main")
        made.git("config", "user.name", "A")
        made.git("config", "user.email", "a@b")
        (folder / "a.txt").write_text("one\n")
        made.git("add", ".")
        made.git("commit", "-qm", "first")
        yield made
        end_engine(made)


def begin(shell: Shell, cluster: Apart, run: str, items: str, *, said: str) -> None:
    """Start one worker for each item, and return when all have said something."""
    plan = PLAN.replace("ADDRESS", cluster.address).replace("RUN", run)
    (shell.folder / "plait.yaml").write_text(plan.replace("ITEMS", str(list(items))))
    begun = shell.plait("run", "plait.yaml", "--detach")
    assert begun.code == 0, begun
    names = [f"each/worker_{n}" for n in range(1, len(items) + 1)]
    until(lambda: all(said in shell.plait("logs", name).out for name in names), said)


def workers(shell: Shell) -> Mapping[str, Any]:
    """The workers of the run by name."""
    steps = shell.plait("status", "--json").json()["steps"]
    return {w["worker"]: w for step in steps for w in step["workers"]}


def until(is_so: Callable[[], object], what: str, within_s: float = 120) -> float:
    """Return the seconds until something was so."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < within_s, what
        time.sleep(0.1)
    return time.monotonic() - begun


def let_go(cluster: Apart, node: str) -> None:
    """Let the workers of a node end."""
    for made in (cluster.folder / node).rglob("made"):
        (made.parent / "go").touch()


def finish(shell: Shell, cluster: Apart) -> None:
    """Let the workers of the second node end, and wait for that of every worker."""

    def have_ended() -> bool:
        let_go(cluster, "n2")
        return {w["phase"] for w in workers(shell).values()} == {"REVIEWING"}

    until(have_ended, "the end of all")


def facts(shell: Shell, kind: str) -> list[float]:
    """Return when the engine learned each fact of a kind."""
    (journal,) = (shell.folder / ".git/plait/runs").glob("*/run.db")
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as database:
        return [at for (at,) in database.execute("SELECT at FROM fact WHERE kind = ?", (kind,))]


def living_on(shell: Shell, node: str) -> list[str]:
    return [name for name, w in workers(shell).items() if w["site"] == f"box/{node}"]


def test_a_node_of_twelve_workers_is_killed_and_every_line_comes_once(
    shell: Shell, cluster: Apart
) -> None:
    begin(shell, cluster, WORK, ITEMS, said=f"line {LINES}")
    assert Counter(w["site"] for w in workers(shell).values()) == {"box/n1": 6, "box/n2": 6}
    lost = living_on(shell, "n1")
    killed = time.time()
    cluster.raylet("n1").kill()
    until(lambda: all(workers(shell)[name]["attempt"] == 2 for name in lost), "again")
    ended = facts(shell, "AttemptEnded")
    assert len(ended) == 6, "each attempt of the node, and no other"
    assert max(ended) - killed < DETECTED_S
    assert not cluster.inhabitants("n1", "seq"), "what ran there went with it"
    finish(shell, cluster)
    found = workers(shell)
    assert {n: w["attempt"] for n, w in found.items()} == {n: 1 + (n in lost) for n in found}
    wanted = [*(f"line {n}" for n in range(1, LINES + 1)), "end"]
    for number, item in enumerate(ITEMS, 1):
        name = f"each/worker_{number}"
        branch = found[name]["branch"].removeprefix("refs/heads/")
        assert shell.git("show", f"{branch}:made") == f"{item}\n"
        said = [line.strip() for line in shell.plait("logs", name).out.splitlines()]
        assert [line for line in said if line in wanted] == wanted


def test_a_node_that_is_cut_off_spends_no_longer_than_its_lease(
    shell: Shell, cluster: Apart
) -> None:
    begin(shell, cluster, WORK, "ab", said=f"line {LINES}")
    (lost,) = living_on(shell, "n1")
    (other,) = living_on(shell, "n2")
    assert cluster.inhabitants("n1", "until test -e")
    cluster.link("n1", "down")
    try:
        took = until(lambda: not cluster.inhabitants("n1", "until test -e"), "its lease is over")
        assert took < LEASE_S + 3
        until(lambda: workers(shell)[lost]["attempt"] == 2, "again", 40)
    finally:
        cluster.link("n1", "up")
    cluster.end("n1")
    cluster.join("n1")
    late = f"refs/plait/@late/**/{lost}/attempt_1/head"
    until(lambda: shell.git("for-each-ref", late), "what comes late is kept")
    finish(shell, cluster)
    assert (workers(shell)[lost]["attempt"], workers(shell)[other]["attempt"]) == (2, 1)


def test_an_engine_that_is_killed_goes_on_without_a_gap(shell: Shell, cluster: Apart) -> None:
    slow = "for n in $(seq 400); do echo line $n; sleep 0.02; done; echo x > made"
    begin(shell, cluster, slow, "ab", said="line 5")
    named = shell.folder / ".git/plait/engine.json"
    run = shell.plait("status", "--json").json()["run"]
    os.kill(json.loads(named.read_text())["pid"], signal.SIGKILL)
    shell.plait("resume", run, "--headless")
    wanted = [f"line {n}" for n in range(1, 401)]
    for name, w in workers(shell).items():
        assert (w["phase"], w["attempt"]) == ("REVIEWING", 1)
        said = [line.strip() for line in shell.plait("logs", name).out.splitlines()]
        assert [line for line in said if line.startswith("line")] == wanted


def test_nothing_is_left_of_what_is_cancelled(shell: Shell, cluster: Apart) -> None:
    begin(shell, cluster, EVER, "ab", said="there")
    assert all(cluster.inhabitants(node, "5432") for node in NODES)
    with shell.running("cancel", "--all", "--kill"):
        until(lambda: not any(cluster.inhabitants(node, "5432") for node in NODES), "all gone")
        gone = time.time()
    (asked, *_) = facts(shell, "RunStopRequested")
    assert gone - asked < GONE_S
