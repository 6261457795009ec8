"""Two workers change the same line: a console on a real engine resolves, checks and lands it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.api import Engine, HunkView, Run
from engine.phases import Phase
from tests.support.consoles import Console
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import (
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    writes,
)
from tui.app import Options, PlaitApp
from tui.screens.compare.screen import CompareScreen
from tui.screens.review.screen import ReviewScreen

pytestmark = [pytest.mark.anyio, pytest.mark.long]
WHO, LAST = "s2/worker_1", "s3/worker_1"
EITHER = "grep -q -e ^mine -e ^theirs code"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


@asynccontextmanager
async def console_on(engine: Engine, worker: str) -> AsyncIterator[Console]:
    """A console on a real engine's port, its cursor on a worker."""
    app = PlaitApp(engine.port, options=Options(is_plain=False, has_truecolor=True))
    app.session.worker = worker
    async with app.run_test(size=(120, 36)):
        console = Console(app, engine.port)  # type: ignore[arg-type]
        await console.until(lambda: app.session.worker_view is not None)
        yield console


async def phase(engine: Engine, run: Run, wanted: Phase) -> None:
    """Wait until the worker has come to a phase."""
    await wait_worker(engine, run, WHO, lambda w: w.phase is wanted)


async def test_a_conflict_is_resolved_checked_and_landed(place: MergingPlace):
    async with place.engine(within_s=60) as engine:
        run = await conflicted(engine, place, MINE, THEIRS, check=EITHER)
        async with console_on(engine, WHO) as console:
            await console.do("merge")
            await console.shows("s2/worker_1 → main", "conflict 1 of 1", "mine", "theirs")
            await console.do("no", "check")
            await console.shows("✗ check failed")
            await console.do("undo", "take_both", "check")
            await console.shows("✓ proved on the exact tree")
            await console.do("land")
            await phase(engine, run, Phase.LANDED)
    assert place.text() == THEIRS.replace("theirs\n", "mine\ntheirs\n")


async def test_decisions_are_there_again_in_another_console_on_another_engine(
    place: MergingPlace,
):
    async with place.engine(within_s=60) as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        async with console_on(engine, WHO) as console:
            await console.do("go_review", "take_incoming")
            await console.shows("0 open", "chosen: the incoming side")
    async with place.engine(within_s=60) as engine:
        again = await engine.resume(run.id)
        async with console_on(engine, WHO) as console:
            await console.do("go_review")
            await console.shows("0 open", "chosen: the incoming side")
            await console.do("undo")
            await console.shows("1 open")
            await console.do("redo", "land")
            await console.type("land\n")
            await phase(engine, again, Phase.LANDED)
    assert place.text() == THEIRS


async def test_an_asked_agent_answers_with_a_proposal_that_one_key_takes(place: MergingPlace):
    answers = "so:\n<<<ANSWER\nmine, then theirs\nANSWER>>>"
    asked = scripted({"write": {"path": "code", "text": THEIRS}}, {"result": answers})
    steps = [{"name": "s1", "agent": writes(MINE)}, {"name": "s2", "agent": asked}]
    made = place.manifest(*steps, isolation_strategy="worktree")
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, made)
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        async with console_on(engine, WHO) as console:
            await console.do("go_review", "steer")
            await console.shows("ask for a proposal: code:3")
            await console.type("agent=nobody\n")
            await console.shows("there is no agent 'nobody'")
            await console.do("steer")
            await console.type("keep both\n")
            await console.shows("as the agent proposes", "proposed by s2", "1 open")
            await console.do("mark", "land")
            await console.type("land\n")
            await phase(engine, run, Phase.LANDED)
    assert place.text() == changed(3, "mine, then theirs")


async def test_why_no_answer_came_is_said_and_lines_picked_meanwhile_stay(place: MergingPlace):
    async with place.engine(within_s=60) as engine:
        await conflicted(engine, place, MINE, THEIRS)
        async with console_on(engine, WHO) as console:
            await console.do("go_review", "steer")
            await console.press("enter")
            await console.do("select", "mark")
            await console.until(lambda: bool(_hunk(console).ask_problem))
            await console.shows("LINES 1")
            await console.do("leave")
            await console.shows("No answer came: s2")


def _hunk(console: Console) -> HunkView:
    screen = console.screen
    assert isinstance(screen, ReviewScreen)
    assert screen.pane.hunk is not None
    return screen.pane.hunk


async def test_a_hunk_edited_in_the_box_is_what_lands(place: MergingPlace):
    async with place.engine(within_s=60) as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        async with console_on(engine, WHO) as console:
            await console.do("go_review", "edit")
            console.screen.box.area.text = "    by hand\nand more"
            await console.press("enter")
            await console.shows("chosen: own text")
            await console.do("land")
            await console.type("land\n")
            await phase(engine, run, Phase.LANDED)
    assert place.text() == changed(3, "    by hand\nand more")


@pytest.mark.parametrize(
    ("idea", "said", "lands_on", "uncommitted"),
    [
        ("take_both", "carry them", "main", True),
        ("take_target", "commit them", "main", False),
        ("pause", "wait for me", "main", False),
        ("take_incoming", "other branch", "agents/one", True),
    ],
)
async def test_edits_in_the_way_of_a_landing_are_answered_by_one_key(
    place: MergingPlace, *, idea: str, said: str, lands_on: str, uncommitted: bool
):
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, place.workers(THEIRS))
        place.built.write("code", changed(9, "of the user"))
        assert await land(engine, run, "s1/worker_1") is Phase.REVIEWING
        async with console_on(engine, "s1/worker_1") as console:
            await console.shows("your edits in code are in the way")
            await console.do("merge")
            await console.shows("YOUR EDITS ARE IN THE WAY 1", said)
            await console.do(idea)
            if idea == "pause":
                await console.shows("the change waits for review again", "stop waiting")
                await console.do("pause")
                await console.shows("wait for me")
                await console.do("pause")
                await console.shows("stop waiting")
                place.built.git("commit", "-qam", "mine")
            elif idea == "take_incoming":
                place.built.git("branch", lands_on)
                await console.type(f"{lands_on}\n")
            await wait_worker(engine, run, "s1/worker_1", lambda w: w.phase is Phase.LANDED)
    assert "theirs\n" in place.text(revision=lands_on)
    assert "of the user\n" in (place.project / "code").read_text()
    assert bool(place.built.status()) is uncommitted


async def test_a_deleted_file_is_decided_as_a_whole(place: MergingPlace):
    async with place.engine(within_s=60) as engine:
        gone, kept = {"code": None}, {"code": THEIRS}
        run = await conflicted(engine, place, gone, kept)  # type: ignore[arg-type]
        async with console_on(engine, WHO) as console:
            await console.do("go_review")
            await console.shows("main deleted it", "s2/worker_1 changed it", "CHOOSE")
            await console.shows("CHANGE  on s2/worker_1", "+ theirs")
            await console.do("take_incoming", "land")
            await console.type("land\n")
            await phase(engine, run, Phase.LANDED)
    assert place.text() == THEIRS


async def test_a_conflict_of_what_a_worker_builds_on_lets_it_go_on_when_decided(
    place: MergingPlace,
):
    made = place.workers(MINE, THEIRS, changed(9, "more", changed(3, "both")))
    made["pipelines"][0]["steps"][2]["dependencies"] = ["s1", "s2"]
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, made)
        await wait_worker(engine, run, LAST, lambda w: w.phase is Phase.CONFLICTED)
        async with console_on(engine, LAST) as console:
            await console.do("go_review")
            await console.shows("s1/worker_1", "s2/worker_1", "conflict 1 of 1")
            await console.do("take_both", "down")
            await console.shows("lets the worker continue")
            await console.do("land")
            await wait_worker(engine, run, LAST, lambda w: w.phase is Phase.REVIEWING)


async def test_hunks_of_two_candidates_are_woven_checked_and_wait_for_review(place: MergingPlace):
    one = changed(2, "one")
    two = changed(11, "two")
    step = {
        "name": "s",
        "concurrency": 2,
        "agent": scripted(
            workers={
                "1": [{"write": {"path": "code", "text": one}}, {"result": "done"}],
                "2": [{"write": {"path": "code", "text": two}}, {"result": "done"}],
            }
        ),
        "check": "true",
    }
    async with place.engine(within_s=60) as engine:
        run = await reviewed(engine, place.manifest(step, isolation_strategy="worktree"))
        async with console_on(engine, "s/worker_1") as console:
            await console.do("go_compare")
            screen = console.screen
            assert isinstance(screen, CompareScreen)
            await console.shows("HUNKS 2", "only A", "only B")
            await console.do("mark", "right", "mark", "check")
            await console.until(lambda: screen.pane.is_checked)
            await console.shows("s/woven")
            view = await engine.view(run.id)
            assert view.worker("s/woven").phase is Phase.REVIEWING
    branch = view.worker("s/woven").branch
    assert branch is not None
    assert place.text(revision=branch) == changed(11, "two", one)
