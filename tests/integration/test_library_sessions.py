"""A workspace for a while: what it has, what runs in it, and what stays when it is left."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engine import AgentRunFailed, Conflicted, IsolatedAgentSession, Landed, Limits, Refused
from engine.errors import AgentError, PlanError
from engine.limits import Dimension
from tests.support.library import WRITES, Workbench, functions, script
from tests.support.needs import need

__all__ = ["functions"]
pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    return Workbench(tmp_path, monkeypatch)


async def test_prompts_commands_and_functions_work_in_one_workspace(
    bench: Workbench, functions: Any
) -> None:
    words: dict[str, Any] = {"agent": "scripted", "options": WRITES, "repo": bench.project}
    async with IsolatedAgentSession("agent-1", limits=Limits(memory_mb=512), **words) as session:
        workspace = session.workspace
        assert (workspace / "a.txt").read_text() == "one\n"
        assert session.branch == f"plait/{session.worker}"
        with sqlite3.connect(session.db_path) as database:
            assert database.execute("select count(*) from sqlite_master").fetchone()[0] > 0
        database.close()

        reply = await session.run("Fix the parser")
        assert reply.text == "did Fix the parser"
        assert (workspace / "b.txt").read_text() == "Fix the parser\n"
        assert (await session.run(["cat", "b.txt"])).text == "Fix the parser"
        reply = await session.run(functions.work, "from a function")
        assert reply.text.startswith("from a function by ")
        assert reply.change is not None
        assert reply.change.files == 2
        (memory,) = [row for row in reply.result.limits if row.dimension is Dimension.MEMORY]
        assert memory.mechanism
    assert not workspace.exists()
    assert bench.worktrees() == []
    assert bench.shown(session_branch(reply.branch), "made.txt") == "from a function"


def session_branch(branch: str | None) -> str:
    assert branch is not None
    return f"refs/heads/{branch}"


@pytest.mark.parametrize("rung", ["bwrap", "landlock", "none"])
async def test_git_answers_in_every_run_of_a_session(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, rung: str
) -> None:
    need(*{"bwrap": ["bubblewrap"], "landlock": ["landlock"]}.get(rung, []))
    monkeypatch.setenv("PLAIT_SANDBOX", rung)
    commits = "git commit -qam next --allow-empty; git log --format=%s"
    async with IsolatedAgentSession("agent-1", repo=bench.project) as session:
        for count in (1, 2):
            reply = await session.run(["sh", "-c", commits])
            assert reply.text.split() == [*["next"] * count, "begin"]
        assert bench.git.git("log", "-1", "--format=%s", cwd=session.workspace) == "next"


async def test_a_failed_run_leaves_the_session_open(bench: Workbench) -> None:
    async with IsolatedAgentSession("agent-1", repo=bench.project) as session:
        with pytest.raises(AgentRunFailed, match="exit code 3"):
            await session.run(["sh", "-c", "echo x > x.txt; exit 3"])
        assert (await session.run(["cat", "x.txt"])).text == "x"
        with pytest.raises(PlanError, match="does not name an agent"):
            await session.run("a prompt for nobody")


async def test_a_session_lands_and_is_refused_where_it_cannot(bench: Workbench) -> None:
    async with IsolatedAgentSession("agent-1", repo=bench.project) as session:
        assert isinstance(await session.land(), Refused)
        await session.run(["sh", "-c", "echo two > a.txt"])
        landed = await session.land()
        assert isinstance(landed, Landed)
        assert landed.target == "main"
    assert (bench.project / "a.txt").read_text() == "two\n"
    async with IsolatedAgentSession("agent-2", repo=bench.project, base="HEAD~1") as session:
        await session.run(["sh", "-c", "echo three > a.txt"])
        clash = await session.land()
    assert clash == Conflicted(worker="agent-2/worker_1", paths=("a.txt",))
    assert (bench.project / "a.txt").read_text() == "two\n"


async def test_a_session_has_a_name_is_open_and_does_one_thing(bench: Workbench) -> None:
    with pytest.raises(AgentError, match="is not a valid session name"):
        IsolatedAgentSession("No Spaces", repo=bench.project)
    session = IsolatedAgentSession("agent-1", repo=bench.project)
    with pytest.raises(AgentError, match="not open"):
        await session.run(["true"])
    with pytest.raises(AgentError, match="not open"):
        _ = session.workspace
    async with bench.engine():
        pass  # the lock is free: nothing was opened that nobody would close


async def test_a_session_goes_on_with_its_agents_own_conversation(bench: Workbench) -> None:
    options = script({"result": "begun"}, resumed=[{"result": "resumed for {prompt}"}])
    words: dict[str, Any] = {"agent": "scripted", "options": options, "repo": bench.project}
    async with IsolatedAgentSession("agent-1", **words) as session:
        assert (await session.run("one")).text == "begun"
        assert (await session.run(["echo", "between"])).text == "between"
        assert (await session.run("two")).text == "begun"
        assert (await session.run("three")).text == "resumed for three"
