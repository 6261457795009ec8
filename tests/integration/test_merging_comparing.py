"""A worker's change held against its base, the target, another attempt; and while it still runs."""

from pathlib import Path

import anyio
import pytest

from engine.core.effects import Collect
from engine.core.state import RunState
from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff, FileKind
from engine.messages.questions import WaitIdle
from engine.phases import Phase
from engine.work.workshop import Kept
from engine.work.workshops import GitWorkshop
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, changed, land, reviewed

pytestmark = pytest.mark.anyio
ONE, TWO = "s1/worker_1", "s2/worker_1"


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


def told(diff: ChangeDiff) -> list[str]:
    """Every line that differs, with its sign."""
    return [
        f"{line.sign}{line.text}"
        for file in diff.files
        for hunk in file.hunks
        for line in hunk.lines
        if line.sign != " "
    ]


async def test_a_change_is_held_against_its_base_the_target_and_any_revision(place: MergingPlace):
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, place.workers(changed(3, "one"), changed(9, "two")))
        assert await land(engine, run, ONE) is Phase.LANDED
        base = await engine.diff(run.id, TWO)
        merged = await engine.diff(run.id, TWO, against="target")
        plain = await engine.diff(run.id, TWO, against="main")
        with pytest.raises(WorkspaceError, match="there is no 'nowhere'"):
            await engine.diff(run.id, TWO, against="nowhere")
        seen = await engine.diff(run.id, TWO, against=base.head)
    assert told(base) == ["-line 9", "+two"]
    assert (base.against, base.is_live) == ("base", False)
    assert told(merged) == ["-line 9", "+two"]
    assert merged.against == "main as it is now"
    assert told(plain) == ["-one", "+line 3", "-line 9", "+two"]
    assert told(seen) == []


async def test_where_landing_would_conflict_the_markers_are_shown_and_no_result(
    place: MergingPlace,
):
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, place.workers(changed(3, "one"), changed(3, "two")))
        await land(engine, run, ONE)
        found = await engine.diff(run.id, TWO, against="target")
    assert "1 file still in conflict" in found.against
    assert found.result == ""
    shown = told(found)
    assert [line[:8] for line in shown if line[1:2] in "<=>"] == [
        "+<<<<<<<",
        "+=======",
        "+>>>>>>>",
    ]
    assert "+two" in shown


async def test_another_attempt_is_compared_directly(place: MergingPlace):
    texts = [[{"write": {"path": "code", "text": changed(3, each)}}, {"result": "done"}]
             for each in ("first", "second")]  # fmt: skip
    agent = scripted(attempts={"1": texts[0], "2": texts[1]})
    plan = place.manifest({"name": "s1", "agent": agent}, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        await engine.command(c.RetryWorker(worker=ONE, run=run.id))
        await wait_worker(engine, run, ONE, lambda w: w.attempt == 2 and w.phase is Phase.REVIEWING)
        found = await engine.diff(run.id, ONE, against="@1")
        with pytest.raises(WorkspaceError, match="attempt 7 of s1/worker_1 left no work"):
            await engine.diff(run.id, ONE, against="@7")
    assert told(found) == ["-first", "+second"]
    assert found.against == "attempt 1"


async def test_a_change_is_there_while_its_worker_runs(place: MergingPlace):
    script = [
        {"write": {"path": "code", "text": changed(3, "so far")}},
        {"write": {"path": "new.txt", "text": "new\n"}},
        {"shell": f"touch {place.outside / 'wrote'}; {place.waits_at('go')}"},
        {"write": {"path": "code", "text": changed(3, "at last")}},
        {"result": "done"},
    ]
    plan = place.manifest({"name": "s1", "agent": scripted(*script)}, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await engine.start(plan)
        await wait_worker(engine, run, ONE, lambda _: (place.outside / "wrote").exists())
        running = await engine.diff(run.id, ONE)
        place.open_gate("go")
        await wait_worker(engine, run, ONE, lambda w: w.phase is Phase.REVIEWING)
        since = await engine.diff(run.id, ONE, against=running.head)
        pictures = list(place.built.path.glob(".git/plait/runs/*/s1/worker_1/looked_at"))
        assert pictures
        assert await land(engine, run, ONE) is Phase.LANDED
        await engine.port.ask(WaitIdle())
        assert not pictures[0].exists()
        assert told(await engine.diff(run.id, ONE)) == ["-line 3", "+at last", "+new"]
        assert not pictures[0].exists()
    assert running.is_live
    assert told(running) == ["-line 3", "+so far", "+new"]
    assert [file.kind for file in running.files] == [FileKind.MODIFIED, FileKind.ADDED]
    assert not since.is_live
    assert told(since) == ["-so far", "+at last"]


async def test_more_context_never_makes_hunks_grow_together(place: MergingPlace):
    long = "".join(f"line {n}\n" for n in range(1, 101))
    text = changed(20, "twenty", changed(50, "fifty", long))
    place.built.commit({"long": long}, "long")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, place.workers({"long": text}))
        short = await engine.diff(run.id, ONE)
        wide = await engine.diff(run.id, ONE, context=60)
    assert short.keys == wide.keys
    first, second = wide.files[0].hunks
    lines = [line for hunk in (first, second) for line in hunk.lines]
    assert [line.new for line in lines if line.new] == list(range(1, 101))
    assert [line.old for line in lines if line.old] == list(range(1, 101))
    assert [line.text for line in lines if line.sign != "-"] == text.splitlines()


async def test_an_attempt_that_is_being_collected_is_never_shown_as_the_one_before(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    real, is_kept, go = GitWorkshop.collect, anyio.Event(), anyio.Event()

    async def slow(workshop: GitWorkshop, state: RunState, effect: Collect) -> Kept:
        kept = await real(workshop, state, effect)
        if effect.attempt == 2:
            is_kept.set()  # its refs are written, and nobody has heard of them
            await go.wait()
        return kept

    monkeypatch.setattr(GitWorkshop, "collect", slow)
    texts = [[{"write": {"path": "code", "text": changed(3, each)}}, {"result": "done"}]
             for each in ("first", "second")]  # fmt: skip
    agent = scripted(attempts={"1": texts[0], "2": texts[1]})
    plan = place.manifest({"name": "s1", "agent": agent}, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, plan)
        await engine.command(c.RetryWorker(worker=ONE, run=run.id))
        await is_kept.wait()
        assert "+second" in told(await engine.diff(run.id, ONE))
        assert "+first" in told(await engine.diff(run.id, ONE, attempt=1))
        go.set()
        await wait_worker(engine, run, ONE, lambda w: w.attempt == 2 and w.phase is Phase.REVIEWING)
