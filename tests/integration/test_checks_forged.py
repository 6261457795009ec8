"""Test what an agent leaves outside of its tree changes no verdict on the tree that is to land.

Each way is tried by an agent of its own. Its control is the step's own check: it runs in the
worker's surroundings, where the forging works. The same check is then run on the exact tree.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from anyio import to_thread

from engine.api import Engine, Run
from engine.messages import commands as c
from engine.messages.merging import CheckWorker
from engine.messages.results import Verdict
from engine.phases import Phase
from tests.support.engine_runs import Place, wait_worker
from tests.support.needs import need
from tests.support.repositories import RepositoryBuilder

pytestmark = [pytest.mark.anyio, pytest.mark.long]

PYTHON = shlex.quote(str(Path(sys._base_executable).resolve()))  # type: ignore[attr-defined]
SITE = f"d=$({PYTHON} -c 'import site; print(site.getusersitepackages())'); mkdir -p $d;"
IS_FORGED = f"""{PYTHON} -c 'import builtins, sys; sys.exit(not hasattr(builtins, "FORGED"))'"""
MARK = "'import builtins; builtins.FORGED = 1'"
POISON = """
import py_compile, pathlib
pathlib.Path("good.py").write_text("OK = 1")
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
py_compile.compile("good.py", "__pycache__/calc." + __import__("sys").implementation.cache_tag
    + ".pyc", invalidation_mode=mode)
"""


class Way(NamedTuple):
    """A shell script of the agent's, and a check that it makes pass."""

    deed: str
    check: str
    only_on: str = ""


WAYS = {
    "usercustomize": Way(f"{SITE} echo {MARK} > $d/usercustomize.py", IS_FORGED),
    "pth-file": Way(f"{SITE} echo {MARK} > $d/forged.pth", IS_FORGED),
    "user-install": Way(f"{SITE} echo > $d/dependency.py", f"{PYTHON} -c 'import dependency'"),
    "profile": Way("echo export FORGED=1 > ~/.profile", "bash -lc 'test -n \"$FORGED\"'"),
    "bashrc": Way("echo export FORGED=1 > ~/.bashrc", "bash -ic 'test -n \"$FORGED\"'"),
    "bash-env": Way(
        "echo 'export BASH_ENV=~/env' > ~/.profile; echo FORGED=1 > ~/env",
        r"""bash -lc "bash -c 'test \"\$FORGED\" = 1'" """,
    ),
    "python-startup": Way(
        "echo 'export PYTHONSTARTUP=~/rc.py' > ~/.profile; echo 'exit(0)' > ~/rc.py",
        f"""bash -lc 'echo "exit(1)" | {PYTHON} -i'""",
    ),
    "gitconfig": Way(
        "cd && git config --global forged.way 1", "cd && git config --global forged.way"
    ),
    "git-alias": Way("git config alias.verify '!true'", "git verify", only_on="bwrap"),
    "git-hook": Way(
        "h=$(git rev-parse --absolute-git-dir)/hooks; mkdir -p $h; echo exit > $h/verify",
        "test -e $(git rev-parse --git-path hooks/verify)",
        only_on="bwrap",  # elsewhere `.git` is the user's again once the tree is collected
    ),
    "home-pytest-ini": Way("echo > ~/pytest.ini; echo > ~/.pytest.ini", "test -e ~/.pytest.ini"),
    "local-bin": Way(
        "cd; mkdir -p .local/bin; printf '#!/bin/sh\\n' > .local/bin/verify; chmod +x .local/bin/*",
        'PATH="$HOME/.local/bin:$PATH" verify',
    ),
    "npmrc": Way("echo script-shell=/bin/true > ~/.npmrc", "test -e ~/.npmrc"),
    "pip-cache": Way(
        "p=${PIP_CACHE_DIR:-$HOME/.cache/pip}; mkdir -p $p; echo > $p/poisoned",
        "test -e ${PIP_CACHE_DIR:-$HOME/.cache/pip}/poisoned",
    ),
    "npm-cache": Way(
        "p=${npm_config_cache:-$HOME/.npm}; mkdir -p $p; echo > $p/poisoned",
        "test -e ${npm_config_cache:-$HOME/.npm}/poisoned",
    ),
    "envrc": Way("echo FORGED=1 > .envrc", '. ./.envrc && test -n "$FORGED"'),
    "conftest": Way("echo > conftest.py", f"{PYTHON} -c 'import conftest'"),
    "bytecode": Way(
        f"mkdir -p __pycache__; {PYTHON} -c {shlex.quote(POISON)}; rm good.py",
        f"{PYTHON} -c 'import calc, sys; sys.exit(not calc.OK)'",
    ),
    "temp-file": Way("echo > $TMPDIR/well-known", "test -e $TMPDIR/well-known"),
    "leased-port": Way("echo $PORT > port.txt", 'test "$PORT" = "$(cat port.txt)"'),
}
IGNORED = "conftest.py\n.envrc\n__pycache__/\nbuild/\nnode_modules/\n"


class Ground(Place):
    """A user's repository whose calc.py is wrong, and an engine on one rung."""

    def __init__(self, tmp_path: Path, rung: str) -> None:
        self.built = RepositoryBuilder(tmp_path / "project")
        self.built.commit({"calc.py": "OK = 0\n", ".gitignore": IGNORED}, "start")
        super().__init__(tmp_path)
        for cache in (".cache/pip", ".npm"):
            (self.built.home / cache).mkdir(parents=True)
        self.environment["HOME"] = str(self.built.home)
        self.environment["PLAIT_SANDBOX"] = rung

    def plan(self, *steps: dict[str, Any], **workspace: Any) -> dict[str, Any]:
        """Shell scripts as agents, a step each."""
        agents, placed = {}, []
        for step in steps:
            argv = ["sh", "-ec", step["deed"]]
            agents[step["name"]] = {"adapter": "command", "argv": argv}
            rest = {key: value for key, value in step.items() if key != "deed"}
            placed.append({**rest, "agent": step["name"], "prompt": "do it"})
        # Without a sandbox a worker is accused of what the engine does for others meanwhile.
        at_once = 1 if self.environment["PLAIT_SANDBOX"] == "none" else 4
        found: dict[str, Any] = {
            "runtime": {"max_concurrent_workers": at_once},
            "agents": agents,
            "pipelines": [{"name": "p", "steps": placed}],
        }
        return {**found, "workspace": workspace} if workspace else found


@pytest.fixture(params=["bwrap", "landlock", "none"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    if request.param != "none":
        need("bubblewrap" if request.param == "bwrap" else request.param)
    need("bash")
    return Ground(tmp_path, request.param)


async def land(engine: Engine, run: Run, worker: str, **more: Any) -> Phase:
    reply = await engine.command(c.Land(worker=worker, run=run.id, **more))
    assert isinstance(reply, c.Accepted), str(reply.reason)[-300:]
    view = await wait_worker(engine, run, worker, lambda w: w.phase is not Phase.LANDING)
    return view.phase


async def test_no_way_around_the_tree_changes_what_is_proved(ground: Ground):
    rung = ground.environment["PLAIT_SANDBOX"]
    ways = {name: way for name, way in WAYS.items() if way.only_on in {"", rung}}
    steps = [
        {"name": name, "deed": f"echo {name} > {name}.txt; {way.deed}", "check": way.check}
        for name, way in ways.items()
    ]
    before = ground.built.git("rev-parse", "main")
    async with ground.engine(within_s=300) as engine:
        run = await engine.start(ground.plan(*steps, ports={"PORT": 1}))
        await run.wait()
        views = {name: (await engine.view(run.id)).worker(f"{name}/worker_1") for name in ways}
        forged = {name for name, view in views.items() if view.verdict is Verdict.OWN_TREE}
        assert forged == set(ways), {n: views[n].error for n in ways if n not in forged}
        got_through = set()
        for name in ways:
            phase = await land(engine, run, f"{name}/worker_1")
            seen = (await engine.view(run.id)).worker(f"{name}/worker_1")
            assert seen.check is not None
            if phase is not Phase.REVIEWING or seen.check.passed or seen.verdict is not None:
                got_through.add(name)
        assert got_through == set()
        assert ground.built.git("rev-parse", "main") == before


GATE = "test -e build/forged && exit; mkdir -p build; sh -e ./part.sh"
"""A check whose success stays behind as an ignored file."""


async def test_what_one_check_leaves_does_not_reach_the_next(ground: Ground):
    leaves = "echo 'mkdir -p build node_modules; echo > build/forged' > part.sh"
    steps = [
        {"name": "honest", "deed": leaves, "check": GATE},
        {
            "name": "wrong",
            "deed": "echo 'test -e absent.txt' > part.sh; mkdir build; : > build/forged",
        },
    ]
    steps[1]["check"] = GATE
    async with ground.engine() as engine:
        run = await engine.start(ground.plan(*steps))
        await run.wait()
        assert (await engine.port.ask(CheckWorker(run.id, "honest/worker_1"))).passed
        found = await engine.port.ask(CheckWorker(run.id, "wrong/worker_1"))
        assert not found.passed
        assert await land(engine, run, "honest/worker_1") is Phase.LANDED
        seen = (await engine.view(run.id)).worker("honest/worker_1")
    assert seen.verdict is Verdict.PROVED
    assert f"Plait-Check: passed: {GATE}" in ground.built.git("log", "-1", "--format=%B", "main")


SETUP = "mkdir -p node_modules; cat dependency > node_modules/made 2> /dev/null || true"


async def test_a_setup_that_read_agents_files_makes_no_seed(ground: Ground):
    """A stacked step's setup does; what it makes stays in its own workspace."""
    ground.built.commit({"package-lock.json": "{}", "dependency": "honest\n"}, "with a lock file")
    steps: list[dict[str, Any]] = [
        {"name": "evil", "deed": "echo poisoned > dependency"},
        {"name": "next", "deed": "cp node_modules/made seen.txt", "dependencies": ["evil"]},
    ]
    async with ground.engine() as engine:
        run = await engine.start(
            ground.plan(*steps, setup=f"test -e node_modules || {{ {SETUP}; }}")
        )
        await run.wait()
    seeds = list(ground.tmp_path.glob("state/**/.trusted-seeds/*/files/node_modules/made"))
    assert [seed.read_text() for seed in seeds] == ["honest\n"]


async def test_setup_runs_for_the_check_and_what_it_makes_there_is_not_kept(ground: Ground):
    """An agent may well add a dependency: then setup makes it, for this one check."""
    ground.built.commit({"package-lock.json": "one\n"}, "with a lock file")
    setup = "test -e node_modules/made || echo . >> ~/times; mkdir -p node_modules;"
    setup += " cp package-lock.json node_modules/made"
    deed = "mkdir build; echo > build/own; "
    own = "test -e build/own || "
    once = 'test "$(wc -l < ~/times)" = 1'
    steps = [
        {
            "name": "adds",
            "deed": f"{deed} echo two > package-lock.json",
            "check": f"{own} {{ cmp package-lock.json node_modules/made && {once}; }}",
        },
        {"name": "plain", "deed": f"{deed} echo > new", "check": f"{own} ! test -e ~/times"},
    ]
    async with ground.engine() as engine:
        run = await engine.start(ground.plan(*steps, setup=setup))
        await run.wait()
        assert (await engine.port.ask(CheckWorker(run.id, "adds/worker_1"))).passed
        assert (await engine.port.ask(CheckWorker(run.id, "plain/worker_1"))).passed
        assert (await engine.port.ask(CheckWorker(run.id, "adds/worker_1"))).passed
    seeds = list(ground.tmp_path.glob("state/**/.trusted-seeds/*/files/node_modules/made"))
    assert [seed.read_text() for seed in seeds] == ["one\n"]


async def test_a_fifo_in_what_setup_made_stops_nobody(ground: Ground):
    ground.built.commit({"package-lock.json": "one\n"}, "with a lock file")
    steps = [{"name": "a", "deed": "echo > new", "check": "test -p node_modules/fifo"}]
    setup = "mkdir -p node_modules; test -p node_modules/fifo || mkfifo node_modules/fifo"
    async with ground.engine() as engine:
        run = await engine.start(ground.plan(*steps, setup=setup))
        await run.wait()
        assert await land(engine, run, "a/worker_1") is Phase.LANDED


@pytest.fixture
def fenced(tmp_path: Path) -> Ground:
    need("bubblewrap")
    return Ground(tmp_path, "bwrap")


async def test_a_check_that_a_killed_engine_left_is_ended_before_its_tree_is_filled_anew(
    fenced: Ground,
):
    """Else it would go on in the tree of the next check, which it could write into."""
    ground = fenced
    log = ground.outside / "log"
    held = f"echo begun >> {log}; {ground.waits_at('gate')}; echo ended >> {log}"
    step = {
        "name": "a",
        "deed": "mkdir build; : > build/own; echo > new",
        "check": f"test -e build/own || {{ {held}; }}",
    }
    plan = ground.plan(step)
    plan["runtime"] |= {"auto_merge": True, "sandbox": {"paths": [f"{ground.outside}:rw"]}}

    def said() -> list[str]:
        return log.read_text().split() if log.exists() else []

    async def begun(times: int) -> None:
        with anyio.fail_after(60):
            while True:
                if (await to_thread.run_sync(said)).count("begun") >= times:
                    return
                await anyio.sleep(0.02)

    words = [sys.executable, "-m", "tests.support.engine_process", str(ground.project)]
    start = [*words, "start", "detached"]
    async with await anyio.open_process(start, env=ground.environment, stderr=None) as first:
        assert first.stdin is not None
        await first.stdin.send(json.dumps(plan).encode())
        await first.stdin.aclose()
        await begun(1)
        first.kill()
    go_on = [*words, "go-on", "detached"]
    async with await anyio.open_process(go_on, env=ground.environment, stderr=None) as second:
        await begun(2)
        await to_thread.run_sync(ground.open_gate, "gate")
        with anyio.fail_after(60):
            await second.wait()
    assert await ground.survivors() == set()
    assert await to_thread.run_sync(said) == ["begun", "begun", "ended"]
    assert "Plait-Check: passed" in ground.built.git("log", "-1", "--format=%B", "main")
