"""Whole runs whose worktrees hold some folders: checked, retried, resumed, tried and landed."""

from pathlib import Path
from typing import Any

import pytest

from engine.api import Engine, end_try, try_worker
from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.phases import Phase
from engine.plan.model import RetryMode
from engine.plan.prompts import holding_sentence
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, land, reviewed

pytestmark = pytest.mark.anyio
WORKER = "s1/worker_1"
FILES = {"src/a": "a\n", "src/deep/b": "b\n", "docs/guide": "guide\n", "tools/t": "t\n"}
SITES = ["local", "child"]


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, FILES)


def plan(place: MergingPlace, *steps: dict[str, Any], site: str = "local", **workspace: Any) -> Any:
    workspace = {"sparse_checkout": ["src"], **workspace}
    return place.manifest(
        *steps, isolation_strategy="worktree", workspace=workspace, sites={"default": site}
    )


def step(*shell: str, **more: Any) -> dict[str, Any]:
    agent = scripted(*({"shell": line} for line in shell), {"result": "done"})
    return {"name": "s1", "agent": agent, **more}


def changed(place: MergingPlace, old: str, new: str) -> list[str]:
    return place.built.git("diff", "--name-status", old, new).split()


WORK = "ls > {out}/seen; echo new > src/a; mkdir -p extra; echo n > extra/n"
ALL_THERE = "test -e docs/guide && test -e tools/t && test -e extra/n"


@pytest.mark.parametrize("site", SITES)
async def test_a_change_is_checked_on_all_files_tried_and_landed(place: MergingPlace, site: str):
    before = place.built.rev("main")
    work = step(WORK.format(out=place.outside), check=ALL_THERE)
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, work, site=site))
        view = (await engine.view(run.id)).worker(WORKER)
        assert (place.outside / "seen").read_text() == "code\nother\nsrc\n"
        assert (view.phase, view.check and view.check.passed) == (Phase.REVIEWING, True)
        assert view.holds is not None
        assert (view.holds.folders, view.holds.held, view.holds.of) == (("src",), 2, 4)
        await try_worker(place.project, WORKER, run=run.id, environment=place.environment)
        assert (place.project / "extra/n").read_text() == "n\n"
        assert (place.project / "docs/guide").read_text() == "guide\n"
        await end_try(place.project, environment=place.environment)
        assert place.built.status() == ""
        assert await land(engine, run, WORKER) is Phase.LANDED
    assert changed(place, before, "main") == ["A", "extra/n", "M", "src/a"]
    assert (place.project / "docs/guide").read_text() == "guide\n"


async def test_a_check_that_needs_what_is_not_there_fails_only_for_its_own_reason(
    place: MergingPlace,
):
    async with place.engine() as engine:
        work = step("echo new > src/a", check="grep -q never docs/guide")
        run = await engine.start(plan(place, work))
        await run.wait()
        view = (await engine.view(run.id)).worker(WORKER)
        assert view.phase is Phase.FAILED
        assert view.check is not None
        assert view.check.exit_code == 1


async def test_a_retry_holds_what_the_last_attempt_made_elsewhere(place: MergingPlace):
    first = "mkdir tools; echo mine > tools/mine; echo new > src/a; echo again > tools/t"
    script = scripted(
        attempts={
            "1": [{"shell": first}, {"result": "one"}],
            "2": [{"shell": f"cat tools/* > {place.outside}/seen"}, {"result": "two"}],
        }
    )
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, {"name": "s1", "agent": script}))
        again = c.RetryWorker(worker=WORKER, run=run.id, mode=RetryMode.CONTINUE)
        assert isinstance(await engine.command(again), c.Accepted)
        view = await wait_worker(
            engine, run, WORKER, lambda w: w.attempt == 2 and w.phase is Phase.REVIEWING
        )
        assert (place.outside / "seen").read_text() == "mine\nagain\n"
        assert view.holds is not None
        assert view.holds.folders == ("src", "tools")
        assert view.change is not None
        assert changed(place, "main", str(view.change.head)) == [
            *("M", "src/a", "A", "tools/mine", "M", "tools/t")
        ]


async def test_a_resumed_worktree_stays_sparse(place: MergingPlace):
    ls = f"ls >> {place.outside}/seen"
    script = scripted(
        attempts={
            "1": [{"shell": f"{ls}; echo new > src/a"}, {"fail": "half"}],
            "2": [{"shell": f"{ls}; cat src/a >> {place.outside}/seen"}, {"result": "whole"}],
        }
    )
    retry = {"attempts": 2, "delay_seconds": 0.01, "mode": "resume"}
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, {"name": "s1", "agent": script, "retry": retry}))
        view = (await engine.view(run.id)).worker(WORKER)
        assert (place.outside / "seen").read_text() == "code\nother\nsrc\n" * 2 + "new\n"
        assert view.change is not None
        assert view.holds is not None
        assert changed(place, "main", str(view.change.head)) == ["M", "src/a"]


async def test_a_later_step_holds_what_an_earlier_one_changed(place: MergingPlace):
    second = step(f"ls > {place.outside}/seen; cat extra/n >> {place.outside}/seen")
    second |= {"name": "s2", "dependencies": ["s1"], "sparse_checkout": ["docs"]}
    first = step("mkdir extra; echo n > extra/n")
    async with place.engine() as engine:
        run = await engine.start(plan(place, first, second))
        await wait_worker(engine, run, WORKER, lambda w: w.phase is Phase.REVIEWING)
        await run.wait()
    assert (place.outside / "seen").read_text() == "code\ndocs\nextra\nother\nn\n"


async def test_the_agent_hears_what_its_worktree_holds(place: MergingPlace):
    agent = scripted({"write": {"path": "src/a", "text": "{system}"}}, {"result": "done"})
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, {"name": "s1", "agent": agent}))
        view = (await engine.view(run.id)).worker(WORKER)
        assert view.change is not None
        said = place.built.show(str(view.change.head), "src/a").decode()
    assert said == holding_sentence(["src"])


async def test_setup_runs_in_the_folders_that_are_there(place: MergingPlace):
    setup = "ls > made; grep -q src made"
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, step("echo new > src/a"), setup=setup))
        view = (await engine.view(run.id)).worker(WORKER)
        assert view.change is not None
        shown = place.built.show(str(view.change.head), "made").decode()
        assert shown == "code\nmade\nother\nsrc\n"


async def test_a_step_with_an_empty_list_has_all_files(place: MergingPlace):
    work = step(f"ls > {place.outside}/seen", "echo new > src/a", sparse_checkout=[])
    async with place.engine() as engine:
        run = await reviewed(engine, plan(place, work))
        assert (await engine.view(run.id)).worker(WORKER).holds is None
    assert (place.outside / "seen").read_text() == "code\ndocs\nother\nsrc\ntools\n"


async def test_a_run_does_not_start_with_a_folder_that_is_not_there(place: MergingPlace):
    async with place.engine() as engine:
        with pytest.raises(WorkspaceError, match="sparse_checkout: 'sorces' matches no folder"):
            await engine.start(plan(place, step("true"), sparse_checkout=["src", "sorces"]))


async def prepared(engine: Engine, place: MergingPlace, folders: list[str]) -> set[str]:
    """List what is in a worktree, and how many files are left out of it."""
    listing = place.outside / f"list-{len(folders)}"
    work = step(
        f"git ls-files -t | grep -c ^S > {listing} || true; ls >> {listing}; echo x >> src/a"
    )
    run = await reviewed(engine, plan(place, work, sparse_checkout=folders))
    assert await land(engine, run, WORKER) is Phase.LANDED
    return set(listing.read_text().split())


async def test_worktrees_of_other_folders_never_begin_with_each_other(place: MergingPlace):
    async with place.engine() as engine:
        for _ in range(2):
            assert await prepared(engine, place, ["src"]) == {"2", "code", "other", "src"}
            whole = {"0", "code", "docs", "other", "src", "tools"}
            assert await prepared(engine, place, []) == whole
            two = await prepared(engine, place, ["src", "docs"])
            assert two == {"1", "code", "docs", "other", "src"}
