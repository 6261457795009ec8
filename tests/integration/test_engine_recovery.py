"""Kill -9 of engine, zygote and keeper at random moments: the run comes to the same end.

Each agent appends to a file outside of its workspace, so what was done twice or not at all shows.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from engine.keeper import proc
from tests.support.engine_runs import ChildPlace, Place, scripted
from tests.support.processes import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.long]

THOROUGH = bool(os.environ.get("PLAIT_THOROUGH"))
ROUNDS = 40 if THOROUGH else 2
LINES = 30
VERDICT = {
    "lines/worker_1": "FINISHED",
    "lines/worker_2": "FINISHED",
    "flaky/worker_1": "FINISHED",
    "broken/worker_1": "FAILED",
    "after/worker_1": "FINISHED",
    "never/worker_1": "SKIPPED",
}


def plan(place: Place) -> dict[str, Any]:
    """Two that write many lines, one that fails at first, one that always does, and dependents."""
    began = {"shell": f"echo {{worker}} {{attempt}} >> {place.outside}/began"}
    ended = {"shell": f"echo {{worker}} {{attempt}} >> {place.outside}/ended"}
    lines = {"repeat": {"times": LINES, "steps": [{"say": "line {i}"}, {"sleep": 0.01}]}}
    after = f"sleep 0.1; echo after/worker_1 x >> {place.outside}/ended"
    return place.manifest(
        {
            "name": "lines",
            "agent": scripted(began, lines, ended, {"write": {"path": "out", "text": "{index}"}}),
            "concurrency": 2,
            "artifacts": ["out"],
            "merge": "none",
        },
        {
            "name": "flaky",
            "agent": scripted(began, {"sleep": 0.05}, ended),
            "merge": "none",
        },
        {"name": "broken", "agent": scripted(began, {"sleep": 0.05}, {"fail": "no"})},
        {"name": "after", "dependencies": ["lines", "flaky"], "run": after},
        {
            "name": "never",
            "dependencies": ["broken"],
            "run": f"echo never >> {place.outside}/ended",
        },
    )


@pytest.fixture(params=[Place, ChildPlace])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    made: Place = request.param(tmp_path)
    return made


@pytest.fixture
def engines(place: Place) -> Iterator["Engines"]:
    with ExitStack() as stack:
        yield Engines(place, stack)
        kill_all(place)


class Engines:
    """Engines in processes of their own, one after the other, on one place."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self.place, self._stack = place, stack

    def start(self, way: str, wanted: dict[str, Any] | None = None) -> subprocess.Popen[bytes]:
        """One that begins the plan, or another one."""
        return self._open("start", way, json.dumps(wanted or plan(self.place)))

    def go_on(self, way: str) -> subprocess.Popen[bytes]:
        """One that takes up what was left."""
        return self._open("go-on", way, "")

    def _open(self, what: str, way: str, text: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.support.engine_process", str(self.place.project)]
        engine = subprocess.Popen(
            [*words, what, way],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.place.environment,
        )
        self._stack.callback(_bury, engine)
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write(text.encode())
        engine.stdin.close()
        assert engine.stdout.readline().startswith(b"run ")
        return engine


def _bury(engine: subprocess.Popen[bytes]) -> None:
    engine.kill()
    engine.wait()
    for pipe in (engine.stdin, engine.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def kill_all(place: Place) -> None:
    for pid in place.living():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def report_of(engine: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return what it reports at its end."""
    assert engine.stdout is not None
    text = engine.stdout.read()
    assert engine.wait(60) == 0
    report: dict[str, Any] = json.loads(text)
    return report


def workers(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = (w for step in report["steps"].values() for w in step["worker_results"])
    return {w["worker"]: w for w in found}


def counted(path: Path) -> Counter[str]:
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def judge(place: Place, report: dict[str, Any], *, is_detached: bool) -> None:
    """The verdict is the same, no attempt was run twice, no line was lost."""
    found = workers(report)
    why = {name: (w["cause"], w["error"]) for name, w in found.items()}
    assert {name: w["phase"] for name, w in found.items()} == VERDICT, why
    began, ended = counted(place.outside / "began"), counted(place.outside / "ended")
    assert max(began.values()) == 1, began
    assert ended.pop("after/worker_1 x") == 1 or not is_detached
    assert max(ended.values()) == 1, ended
    for name in ("lines/worker_1", "lines/worker_2", "flaky/worker_1"):
        assert ended[f"{name} {found[name]['attempts']}"] == 1, (name, ended)
    for name in ("lines/worker_1", "lines/worker_2"):
        assert said(place, report["run"], name, found[name]["attempts"]) == LINES
    if is_detached:  # who lives on without an engine has no reason to begin again
        assert {w["attempts"] for w in found.values()} == {0, 1}
        assert not any(name.startswith(("broken", "never")) for name in ended)


def said(place: Place, run: str, worker: str, attempt: int) -> int:
    """Return how many different lines the recording of an attempt holds, each of them once."""
    folder = f"plait/runs/{run}/{worker}/attempt_{attempt}/recording"
    state = Path(place.environment["PLAIT_STATE_HOME"])
    git = place.project / ".git"
    (path,) = git.glob(folder) if git.exists() else state.glob(f"folders/*/{folder}")
    block = path.read_bytes()
    counts = [block.count(b'"say", "text": "line %d"' % n) for n in range(1, LINES + 1)]
    assert set(counts) <= {1}
    return sum(counts)


KEEPER, ZYGOTE = "plait-keeper", "plait-zygote"


def strike(place: Place, name: str, dice: random.Random | None = None) -> None:
    """Kill all programs of a name, or some two of them."""
    alive = sorted(pid for pid in place.living() if _named(pid, name))
    for pid in alive if dice is None else dice.sample(alive, min(2, len(alive))):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_from_above(place: Place) -> None:
    """Kill everybody, nobody before who would write down how it ended."""
    for name in (ZYGOTE, KEEPER):
        while any(_named(pid, name) for pid in place.living()):
            strike(place, name)
    kill_all(place)


def strike_child(place: Place) -> int:
    """Kill the process in which the workers live; return how many there were."""
    struck = 0
    for pid in filter(_is_child, place.living()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            struck += 1
    return struck


def _is_child(pid: int) -> bool:
    with suppress(OSError):
        return b"engine.site.far" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _named(pid: int, name: str) -> bool:
    """Return True if a program has that name, and is not a fork that is about to become another."""
    process = proc.look(pid)
    if process is None or process.name != name:
        return False
    parent = proc.look(process.parent)
    return parent is None or parent.name != name


async def no_survivors(place: Place) -> None:
    """Nobody is left soon after."""
    assert not await place.survivors()


@pytest.mark.parametrize("way", ["tethered", "detached"])
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_an_engine_killed_at_any_moment_is_followed_by_one_that_goes_on(
    place: Place, engines: Engines, way: str, seed: int
):
    dice = random.Random(f"{way}{seed}")
    engine = await to_thread.run_sync(engines.start, way)
    for _ in range(dice.randint(1, 3)):
        await anyio.sleep(dice.uniform(0, 0.35))
        if dice.random() < 0.3:
            await to_thread.run_sync(strike, place, ZYGOTE)
        engine.kill()
        await to_thread.run_sync(engine.wait)
        engine = await to_thread.run_sync(engines.go_on, way)
    report = await to_thread.run_sync(report_of, engine)
    judged = partial(judge, place, report, is_detached=way == "detached")
    await to_thread.run_sync(judged)
    await no_survivors(place)


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_keeper_killed_at_any_moment_costs_an_attempt_and_nothing_else(
    place: Place, engines: Engines, seed: int
):
    dice = random.Random(f"keeper{seed}")
    engine = await to_thread.run_sync(engines.start, "tethered")
    for _ in range(dice.randint(1, 3)):
        await anyio.sleep(dice.uniform(0, 0.3))
        await to_thread.run_sync(strike, place, KEEPER, dice)
    report = await to_thread.run_sync(report_of, engine)
    await to_thread.run_sync(partial(judge, place, report, is_detached=False))
    await no_survivors(place)


@pytest.mark.parametrize("place", [ChildPlace], indirect=True)
@pytest.mark.parametrize("way", ["tethered", "detached"])
@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_a_child_killed_at_any_moment_is_followed_by_another(
    place: Place, engines: Engines, way: str, seed: int
):
    dice = random.Random(f"child{way}{seed}")
    engine = await to_thread.run_sync(engines.start, way)
    await wait_until(lambda: any(map(_is_child, place.living())))
    struck = 0
    for _ in range(dice.randint(1, 3)):
        await anyio.sleep(dice.uniform(0, 0.3))  # the agents alone take longer
        struck += await to_thread.run_sync(strike_child, place)
    assert struck
    report = await to_thread.run_sync(report_of, engine)
    judged = partial(judge, place, report, is_detached=way == "detached")
    await to_thread.run_sync(judged)
    await no_survivors(place)


async def test_a_zygote_killed_under_its_engine_is_not_missed(place: Place, engines: Engines):
    engine = await to_thread.run_sync(engines.start, "tethered")
    for _ in range(3):
        await anyio.sleep(0.1)
        await to_thread.run_sync(strike, place, ZYGOTE)
    report = await to_thread.run_sync(report_of, engine)
    await to_thread.run_sync(partial(judge, place, report, is_detached=False))
    assert {w["attempts"] for w in workers(report).values()} == {0, 1}
    await no_survivors(place)


async def test_everything_killed_at_once_is_taken_up_again(place: Place, engines: Engines):
    engine = await to_thread.run_sync(engines.start, "detached")
    await anyio.sleep(0.2)
    engine.kill()
    await to_thread.run_sync(kill_from_above, place)
    await to_thread.run_sync(engine.wait)
    engine = await to_thread.run_sync(engines.go_on, "detached")
    report = await to_thread.run_sync(report_of, engine)
    await to_thread.run_sync(partial(judge, place, report, is_detached=False))
    await no_survivors(place)


async def test_whoever_is_looked_for_is_found_while_it_lives(place: Place, engines: Engines):
    """Else none of the tests above would kill or miss anybody."""
    engine = await to_thread.run_sync(engines.start, "detached")
    with anyio.fail_after(30):
        while not {KEEPER, ZYGOTE} <= await to_thread.run_sync(place.names):  # noqa: ASYNC110
            # they set no event of ours
            await anyio.sleep(0.01)
    engine.kill()  # first: it would start others in place of those who are killed
    await to_thread.run_sync(engine.wait)
    await to_thread.run_sync(kill_from_above, place)
    await no_survivors(place)
