"""Candidates compared and woven: figures, consensus, direct diffs, and a composite that lands."""

from pathlib import Path

import pytest

from engine.api import Engine, Run, reach
from engine.errors import EngineError, WorkspaceError
from engine.messages import commands as c
from engine.messages.merging import CompareWorkers, ListCandidates, ReadComposite, WeaveHunks
from engine.messages.questions import ReadDiff
from engine.messages.results import Outcome
from engine.phases import Phase
from tests.support.engine_runs import scripted
from tests.support.merging_runs import SOURCE, MergingPlace, changed, land, settled

pytestmark = pytest.mark.anyio
NAMES = ("pick/worker_1", "pick/worker_2", "pick/worker_3")
FIRST = changed(2, "two", changed(9, "nine"))
SECOND = changed(2, "two", changed(9, "NINE"))
THIRD = changed(5, "five")


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def picked(engine: Engine, place: MergingPlace, **more: object) -> Run:
    """Three candidates: two agree on a line, and there is one thing that only the third did."""
    works = {
        "1": [{"write": {"path": "code", "text": FIRST}}],
        "2": [{"write": {"path": "code", "text": SECOND}}],
        "3": [
            {"write": {"path": "code", "text": THIRD}},
            {"write": {"path": "new", "text": "new\n"}},
            {"shell": "rm other"},
        ],
    }
    step = {
        "name": "pick",
        "agent": scripted(workers=works),
        "concurrency": 3,
        "policy": "settled",
        **more,
    }
    run = await engine.start(place.manifest(step, isolation_strategy="worktree"))
    await run.wait()
    return run


async def test_candidates_are_told_in_figures_and_hunks(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        async with reach(place.project, environment=place.environment) as (port, _):
            from_afar = await port.ask(ListCandidates(run.id, "pick"))
            with pytest.raises(EngineError, match="not a step"):
                await port.ask(ListCandidates(run.id, "nothing"))
        table = await engine.port.ask(ListCandidates(run.id, "pick"))
        assert from_afar == table
    assert [row.worker for row in table.rows] == list(NAMES)
    assert [(row.files, row.insertions, row.deletions) for row in table.rows] == [
        (1, 2, 2),
        (1, 2, 2),
        (3, 2, 13),
    ]
    assert [(row.hunks, row.agreed, row.consensus) for row in table.rows] == [
        (2, 1, 0.5),
        (2, 1, 0.5),
        (3, 0, 0.0),
    ]
    assert all(row.worked_s >= 0 and row.outcome is Outcome.SUCCESS for row in table.rows)
    both = next(hunk for hunk in table.hunks if hunk.line == 2)
    assert (both.path, both.old, both.new) == ("code", ("line 2\n",), ("two\n",))
    assert both.candidates == NAMES[:2]
    nine = [hunk for hunk in table.hunks if hunk.line == 9]
    assert len(nine) == 2
    assert nine[0].spot == nine[1].spot
    assert {(h.path, h.what) for h in table.hunks if h.what} == {
        ("new", "created"),
        ("other", "deleted"),
    }


async def test_any_two_are_compared_directly(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        diff = await engine.port.ask(CompareWorkers(run.id, *NAMES[:2]))
    (file,) = diff.files
    assert [(line.sign, line.text) for line in file.hunks[0].lines if line.sign != " "] == [
        ("-", "nine"),
        ("+", "NINE"),
    ]


async def test_hunks_of_several_are_woven_checked_chosen_and_landed(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place, check="grep -q . code")
        table = await engine.port.ask(ListCandidates(run.id, "pick"))

        def key(line: int, text: str) -> str:
            (found,) = [h for h in table.hunks if h.line == line and h.new == (text,)]
            return found.key

        new = next(hunk.key for hunk in table.hunks if hunk.path == "new")
        keys = [key(2, "two\n"), key(9, "NINE\n"), key(5, "five\n"), new]
        wove = await engine.port.ask(WeaveHunks(run.id, "pick", keys))
        assert (wove.worker, wove.reason) == ("pick/woven", "")
        assert wove.check is not None
        assert (wove.check.passed, wove.check.tree) == (True, wove.tree)
        assert dict(wove.taken) == dict(zip(NAMES, (1, 2, 2), strict=True))
        view = (await engine.view(run.id)).worker("pick/woven")
        assert (view.phase, view.branch) == (Phase.REVIEWING, f"plait/{run.id}/pick/woven")
        assert len((await engine.port.ask(ReadDiff(run.id, "pick/woven"))).files) == 2
        assert isinstance(
            await engine.command(c.Choose(worker="pick/woven", run=run.id)), c.Accepted
        )
        assert await land(engine, run, "pick/woven") is Phase.LANDED
        phases = [w.phase for w in (await engine.view(run.id)).workers]
    assert phases == [Phase.DISCARDED] * 3 + [Phase.LANDED]
    woven = changed(2, "two", changed(5, "five", changed(9, "NINE")))
    assert (place.text(), place.text("new"), place.text("other")) == (woven, "new\n", SOURCE)
    place.built.fsck()


async def test_the_diff_of_a_composite_is_shown_before_anything_is_made_of_it(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        table = await engine.port.ask(ListCandidates(run.id, "pick"))
        two, nine = (next(h.key for h in table.hunks if h.line == line) for line in (2, 9))
        refs = place.built.git("for-each-ref")
        diff = await engine.port.ask(ReadComposite(run.id, "pick", [two, nine]))
        assert place.built.git("for-each-ref") == refs
        assert len((await engine.view(run.id)).workers) == 3
        clash = [hunk.key for hunk in table.hunks if hunk.line == 9]
        with pytest.raises(WorkspaceError, match="change the same lines of code, at line 9"):
            await engine.port.ask(ReadComposite(run.id, "pick", clash))
        wove = await engine.port.ask(WeaveHunks(run.id, "pick", [two, nine]))
        woven = await engine.port.ask(ReadDiff(run.id, "pick/woven"))
    assert wove.worker
    assert [file.hunks for file in diff.files] == [file.hunks for file in woven.files]


async def test_hunks_that_cannot_stand_together_are_refused_in_words(place: MergingPlace):
    async with place.engine() as engine:
        run = await picked(engine, place)
        table = await engine.port.ask(ListCandidates(run.id, "pick"))
        nine = [hunk.key for hunk in table.hunks if hunk.line == 9]
        wove = await engine.port.ask(WeaveHunks(run.id, "pick", nine))
        assert wove.worker is None
        assert "change the same lines of code, at line 9" in wove.reason
        with pytest.raises(WorkspaceError, match="has the hunk"):
            await engine.port.ask(WeaveHunks(run.id, "pick", ["0" * 20]))
        assert len((await engine.view(run.id)).workers) == 3


async def test_a_composite_whose_check_fails_does_not_stand_and_another_takes_its_place(
    place: MergingPlace,
):
    """Each passes alone; together two of them do not."""
    check = "! { grep -q two code && grep -q five code; }"
    async with place.engine() as engine:
        run = await picked(engine, place, check=check)
        table = await engine.port.ask(ListCandidates(run.id, "pick"))
        two, five, nine = (
            next(hunk.key for hunk in table.hunks if hunk.line == line) for line in (2, 5, 9)
        )
        wove = await engine.port.ask(WeaveHunks(run.id, "pick", [two, five]))
        assert (wove.worker, wove.reason) == (None, "its check failed")
        assert len((await engine.view(run.id)).workers) == 3
        assert (await engine.port.ask(WeaveHunks(run.id, "pick", [two]))).worker
        assert (await engine.port.ask(WeaveHunks(run.id, "pick", [five, nine]))).worker
        view = (await engine.view(run.id)).worker("pick/woven")
        assert view.attempt == 2
    async with place.engine() as engine:
        taken = await engine.resume(run.id)
        assert await land(engine, taken, "pick/woven") is Phase.LANDED
        with pytest.raises(WorkspaceError, match="LANDED"):
            await engine.port.ask(WeaveHunks(run.id, "pick", [two]))
        assert await settled(engine, taken, "pick/woven") is Phase.LANDED
    assert "five" in place.text()
    assert "two" not in place.text()
