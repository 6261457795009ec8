"""The requirements of a run are checked for this run, before it begins and at every start."""

import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.errors import AgentError, MechanismMissing
from engine.phases import Phase
from tests.support.engine_runs import Place, manifest
from tests.support.needs import need

pytestmark = pytest.mark.anyio

NO_GROUPS = "cgroup1,cgroup2,systemd,nproc"
REFUSED: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "no sandbox": ({"PLAIT_SANDBOX": "none"}, {"require": ["files"]}, "Unset PLAIT_SANDBOX"),
    "no cgroups": ({"PLAIT_FORCE_OFF": NO_GROUPS}, {"require": ["pids"]}, "Unset PLAIT_FORCE_OFF"),
    "a hole to every file": (
        {},
        {"require": ["files"], "sandbox": {"docker": True}},
        "Remove `docker`",
    ),
    "a hole to every repository": (
        {},
        {"require": ["git"], "sandbox": {"docker": True}, "isolation_strategy": "worktree"},
        "Remove `docker`",
    ),
    "an open network": ({}, {"require": ["network"]}, "runtime.sandbox.network"),
    "a network that cannot be closed": (
        {"PLAIT_FORCE_OFF": "netns"},
        {"sandbox": {"network": "none"}},
        "Unset PLAIT_FORCE_OFF",
    ),
    "hosts that cannot be told apart": (
        {"PLAIT_SANDBOX": "landlock"},
        {"sandbox": {"network": {"allow": ["example.org"]}}},
        "Unset PLAIT_SANDBOX",
    ),
    "nothing enforces it": ({}, {"require": ["disk"]}, "Remove it from `require`"),
}

FIRST_OF_ALL_BUBBLEWRAP = frozenset(
    {
        *("a hole to every file", "a hole to every repository"),
        *("a network that cannot be closed", "hosts that cannot be told apart"),
    }
)
"""Without it the advice is to install it, whatever else is wrong."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("why", REFUSED)
async def test_a_run_does_not_begin_without_what_it_requires(place: Place, why: str):
    env, runtime, fix = REFUSED[why]
    if why in FIRST_OF_ALL_BUBBLEWRAP:
        need("bubblewrap")
    place.environment.update(env)
    async with place.engine() as engine:
        with pytest.raises(MechanismMissing) as missing:
            await engine.start(manifest({"name": "a", "run": "true"}, **runtime))
        assert (await engine.snapshot()).runs == ()
    assert fix in missing.value.hint


async def test_a_run_does_not_begin_where_nothing_answers_for_its_agent(place: Place):
    program = place.outside / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    step = {"name": "a", "agent": "deep", "prompt": "x"}
    plan = manifest(step, agents={"deep": {"adapter": "claude"}})
    with closing(socket.create_server(("127.0.0.1", 0))) as answers:
        port = answers.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        path = f"{place.outside}:{place.environment['PATH']}"
        place.environment |= {"PATH": path, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}
        async with place.engine() as engine:
            await (await engine.start(plan)).wait()  # it begins, and the program does nothing
            answers.close()
            with pytest.raises(AgentError, match=f"127.0.0.1:{port}: the connection is refused"):
                await engine.start(plan)
            assert len((await engine.snapshot()).runs) == 1


@pytest.mark.needs("bubblewrap")
async def test_a_run_begins_with_what_is_enforced(place: Place):
    runtime = {"require": ["files", "network", "kill"], "sandbox": {"network": "none"}}
    async with place.engine() as engine:
        run = await engine.start(manifest({"name": "a", "run": "true"}, **runtime))
        await run.wait()
        assert (await engine.view(run.id)).worker("a/worker_1").phase is Phase.FINISHED


@pytest.mark.needs("bubblewrap")
async def test_a_run_taken_up_where_less_holds_starts_nothing_any_more(place: Place):
    gate = {"name": "a", "run": place.waits_at("go")}
    steps = gate, {"name": "b", "run": "echo b", "dependencies": ["a"]}
    sandbox = {"paths": [f"{place.outside}"]}
    async with place.engine() as engine:
        run = (await engine.start(manifest(*steps, require=["files"], sandbox=sandbox))).id
    place.environment["PLAIT_SANDBOX"] = "none"
    place.open_gate("go")
    async with place.engine() as engine:
        taken = await engine.resume(run)
        await taken.wait()
        worker = (await engine.view(run)).worker("a/worker_1")
    assert worker.phase is Phase.FAILED
    assert "files: enforced is required" in (worker.error or "")
