"""Looking at real processes, with and without the kernel's lists of children."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.keeper import proc
from engine.keeper.cgroups import Cgroups
from engine.keeper.sampler import Excess, Sampler
from engine.keeper.tree import Tree
from tests.support.processes import kill_all

MARK = f"mark-{os.getpid()}"


@pytest.fixture
def family() -> Iterator[list[int]]:
    """A shell, a shell below it, and a sleeper below that."""
    script = "sh -c 'sleep 600 & echo $$ $!; wait' & wait"
    env = {**os.environ, proc.MARK: MARK}
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, env=env) as top:
        assert top.stdout is not None
        pids = [top.pid, *map(int, top.stdout.readline().split())]
        while (sleeper := proc.look(pids[2])) is None or sleeper.name != "sleep":
            continue  # it is still the shell that becomes it
        yield pids
        kill_all(reversed(pids))
    while proc.marked(MARK):  # else the next test may find one of them that is not quite dead
        continue


@pytest.fixture(params=["with lists", "without"])
def _lists_of_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "_HAS_CHILDREN", request.param == "with lists")


@pytest.mark.usefixtures("_lists_of_children")
def test_everybody_below_is_found_parents_first(family: list[int]) -> None:
    top, middle, bottom = family
    assert proc.children(top) == [middle]
    assert proc.descendants(top) == [middle, bottom]
    assert proc.population(top) == (2, 2)


def test_a_mark_is_found_in_all_who_inherited_it_and_in_nobody_else(family: list[int]) -> None:
    assert set(proc.marked(MARK)) == set(family)
    assert proc.marked(MARK[:-1]) == []


def test_a_mark_is_found_while_its_process_becomes_another_program(tmp_path: Path) -> None:
    restless = tmp_path / "restless"
    restless.write_text('exec sh "$0"\n')
    env = {**os.environ, proc.MARK: MARK}
    with subprocess.Popen(["sh", str(restless)], env=env) as process:
        while proc.marked(MARK) != [process.pid]:
            continue
        looks = [proc.marked(MARK) for _ in range(300)]
        process.kill()
    assert looks == [[process.pid]] * 300


def test_a_process_is_told_from_a_later_one_of_the_same_number(family: list[int]) -> None:
    process = proc.look(family[2])
    assert process is not None
    assert (process.name, process.parent, process.threads) == ("sleep", family[1], 1)
    assert proc.is_alive(process.pid, process.start)
    assert not proc.is_alive(process.pid, process.start - 1)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["true"])
    while (process := proc.look(child.pid)) is None or process.state != "Z":
        continue
    assert process.is_dead
    assert not proc.is_alive(child.pid, process.start)
    child.wait()
    assert proc.look(child.pid) is None


def test_ancestors_lead_up_from_the_process_itself(family: list[int]) -> None:
    assert proc.ancestors(family[2])[:4] == [family[2], family[1], family[0], os.getpid()]
    assert proc.ancestors(0) == []


def test_shared_memory_is_proportional(family: list[int]) -> None:
    process = proc.look(family[0])
    share = proc.proportional(family[0])
    assert process is not None
    assert share is not None
    assert 0 < share <= process.rss
    assert proc.proportional(2**22 + 1) is None


def test_counting_alone_sees_threads_and_a_bomb() -> None:
    """Whoever is counted is a child of this very process."""
    begin = "import threading as t; [t.Thread(target=input).start() for _ in range(2)]"
    script = [sys.executable, "-c", f"{begin}; print(1, flush=True); input()"]
    child = subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = Sampler(Tree(Cgroups([])), {"pids": 1000})
        sampler.look()
        sampler.processes = 0
        sampler.look()
        assert sampler.processes >= 3, "three threads of one process at least"
        sampler.limits["pids"] = 2
        with pytest.raises(Excess, match="pids"):
            sampler.look()
    finally:
        child.kill()
        child.communicate()
