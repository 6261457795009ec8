"""A reviewer sees both sides' commits, merged text, and who else resolves, beside the conflicts."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from engine.api import Engine, Run
from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.messages import events as ev
from engine.messages.events import Told
from engine.messages.merging import CheckWorker, DecideConflict, ReadConflicts
from engine.messages.questions import ReadReport
from engine.phases import Phase
from tests.support.engine_runs import scripted
from tests.support.merging_runs import (
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    settled,
    writes,
)

pytestmark = pytest.mark.anyio
T = TypeVar("T")
WHO = "s2/worker_1"
BOTH = "grep -q ^mine code && grep -q ^theirs code"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


async def told(stream: AsyncIterator[Told], kind: type[T], worker: str) -> T:
    """The next event of a kind about a worker."""
    async for one in stream:
        if isinstance(one.event, kind) and getattr(one.event, "worker", "") == worker:
            return one.event
    raise AssertionError(kind)


@asynccontextmanager
async def listening(engine: Engine, run: Run) -> AsyncIterator[AsyncIterator[Told]]:
    stream = engine.port.events(run=run.id)
    assert isinstance(stream, AsyncGenerator)
    try:
        yield stream
    finally:
        await stream.aclose()


@pytest.mark.parametrize("is_despite_check", [False, True])
async def test_a_red_result_lands_only_by_an_explicit_word(
    place: MergingPlace, *, is_despite_check: bool
):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS, check=f"! {{ {BOTH}; }}")
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        assert not (await engine.port.ask(CheckWorker(run.id, WHO))).passed
        action = c.FinishResolving(is_despite_check=is_despite_check)
        await engine.port.ask(DecideConflict(run.id, WHO, action))
        if not is_despite_check:
            assert await settled(engine, run, WHO) is Phase.REVIEWING
            return
        assert await settled(engine, run, WHO) is Phase.LANDED
        async with listening(engine, run) as stream:
            landed = [await told(stream, ev.Landed, f"s{n}/worker_1") for n in (1, 2)]
        report = await engine.port.ask(ReadReport(run.id))
    assert [event.is_despite_check for event in landed] == [False, True]
    results = [step.worker_results[0].is_despite_check for step in report.steps.values()]
    assert results == [False, True]
    assert "Plait-Check: overruled" in place.built.git("log", "-1", "--format=%B", "main")


async def test_a_check_overruled_for_another_tree_still_counts_for_the_resolved_one(
    place: MergingPlace,
):
    async with place.engine() as engine:
        check = f"! {{ {BOTH}; }}"
        run = await reviewed(engine, place.workers(MINE, THEIRS, check=check))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO, is_despite_check=True) is Phase.CONFLICTED
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.REVIEWING


async def test_a_second_console_is_told_of_every_decision(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        seen = []
        async with listening(engine, run) as stream:
            await told(stream, ev.Landed, "s1/worker_1")
            for action in (c.ChooseRest(choice="both"), c.UndoChoice()):
                await engine.port.ask(DecideConflict(run.id, WHO, action))
                seen.append(await told(stream, ev.ConflictsDecided, WHO))
    assert [(e.open_files, e.open_hunks, e.is_resolved) for e in seen] == [
        (0, 0, True),
        (1, 1, False),
    ]


async def test_both_sides_commits_and_headings_stand_beside_the_conflicts(tmp_path: Path):
    source = "def first():\n" + "".join(f"    line {n}\n" for n in range(1, 13))
    place = MergingPlace(tmp_path, {"fn.py": source})
    texts = [{"fn.py": source.replace("line 6\n", f"{who} 6\n")} for who in ("mine", "theirs")]
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(*texts))
        place.built.commit({"other": "elsewhere\n"}, "touch something else")
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
    (file,) = view.files
    assert file.hunks[0].where == "def first():"
    subjects = [commit.subject for commit in view.target_commits]
    assert "touch something else" in subjects
    assert "touch something else" not in [commit.subject for commit in file.target_commits]
    assert file.target_commits
    assert len(view.incoming_commits) == len(file.incoming_commits) == 1


async def test_what_git_merged_by_itself_can_be_looked_at_and_what_lies_close_is_told(
    place: MergingPlace,
):
    mine = {"code": changed(9, "mine 9", MINE), "other": changed(2, "mine 2"), "far": "x\n"}
    theirs = {
        "code": changed(11, "theirs 11", THEIRS),
        "other": changed(4, "theirs 4", changed(12, "theirs 12")),
        "own": "by one side\n",
    }
    async with place.engine() as engine:
        run = await conflicted(engine, place, mine, theirs)
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert [(file.path, file.by, file.kind, file.near) for file in view.merged] == [
            ("other", "both", "M", 2),
            ("own", "incoming", "A", 0),
        ]
        assert (view.clean, view.looked_at) == (2, None)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        code = (await engine.port.ask(ReadConflicts(run.id, WHO, "code"))).looked_at
        other = (await engine.port.ask(ReadConflicts(run.id, WHO, "other"))).looked_at
        own = (await engine.port.ask(ReadConflicts(run.id, WHO, "own"))).looked_at
        nothing = (await engine.port.ask(ReadConflicts(run.id, WHO, "nothing"))).looked_at
    assert code
    assert other
    assert own
    assert nothing is None
    assert [(p.origin, p.line, p.is_near) for p in code.pieces if p.origin != "same"] == [
        ("conflict", 3, False),
        ("target", 10, True),
        ("incoming", 12, True),
    ]
    assert code.pieces[1].lines == ("mine\n", "theirs\n")
    assert code.pieces[1].old == ("line 3\n",)
    assert "".join(line for piece in code.pieces for line in piece.lines) == code.text
    told_of = [(p.origin, p.old, p.lines, p.is_near) for p in other.pieces if p.origin != "same"]
    assert told_of == [
        ("target", ("line 2\n",), ("mine 2\n",), True),
        ("incoming", ("line 4\n",), ("theirs 4\n",), True),
        ("incoming", ("line 12\n",), ("theirs 12\n",), False),
    ]
    assert (own.text, own.kind, own.mode) == ("by one side\n", "merged", "100644")


async def test_a_file_without_conflicts_is_edited_before_it_lands(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        shown = (await engine.port.ask(ReadConflicts(run.id, WHO, "other"))).looked_at
        assert shown
        assert shown.text
        action = c.SetFile(path="other", text=shown.text + "more\n", mode=shown.mode or "")
        await engine.port.ask(DecideConflict(run.id, WHO, action))
        again = (await engine.port.ask(ReadConflicts(run.id, WHO, "other"))).looked_at
        assert again
        assert (again.kind, again.text) == ("edited", shown.text + "more\n")
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text("other").endswith("line 12\nmore\n")


async def test_a_target_that_moved_is_told_until_the_next_decision(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        assert not (await engine.port.ask(ReadConflicts(run.id, WHO))).moved
        place.built.commit({"other": "elsewhere\n"}, "meanwhile")
        assert (await engine.port.ask(ReadConflicts(run.id, WHO))).moved
        view = await engine.port.ask(
            DecideConflict(run.id, WHO, c.ChooseHunk(path="code", hunk=0, choice="base"))
        )
        assert (view.moved, view.decisions) == (False, 2)
    async with place.engine() as engine:
        assert not (await engine.port.ask(ReadConflicts(run.id, WHO))).moved
        place.built.commit({"other": "again\n"}, "meanwhile")
    async with place.engine() as engine:
        assert (await engine.port.ask(ReadConflicts(run.id, WHO))).moved


def answering(text: str, result: str, **more: Any) -> dict[str, Any]:
    """An agent that writes `code` and says something, now and whenever it is asked."""
    return scripted({"write": {"path": "code", "text": text}}, {"result": result}, **more)


@pytest.mark.parametrize(
    ("result", "offered", "problem"),
    [
        ("well:\n<<<ANSWER\nmine and theirs\nANSWER>>>", "mine and theirs\n", ""),
        ("I would keep both.", None, "s2: its answer had no lines between the two markers"),
    ],
)
async def test_an_asked_agent_gives_one_more_proposal_and_never_decides(
    place: MergingPlace, result: str, offered: str | None, problem: str
):
    steps = [
        {"name": "s1", "agent": writes(MINE)},
        {"name": "s2", "agent": answering(THEIRS, result)},
    ]
    async with place.engine() as engine:
        run = await reviewed(engine, place.manifest(*steps, isolation_strategy="worktree"))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        async with listening(engine, run) as stream:
            await told(stream, ev.ConflictsFound, WHO)
            action = c.AskAgent(path="code", hunk=0, words="keep both")
            view = await engine.port.ask(DecideConflict(run.id, WHO, action))
            assert view.files[0].hunks[0].asked == "s2"
            with pytest.raises(WorkspaceError, match="has been asked already"):
                await engine.port.ask(DecideConflict(run.id, WHO, action))
            hunk = view.files[0].hunks[0]
            while hunk.asked:
                await told(stream, ev.ConflictsDecided, WHO)
                hunk = (await engine.port.ask(ReadConflicts(run.id, WHO))).files[0].hunks[0]
        assert (hunk.choice, hunk.ask_problem) == (None, problem)
        texts = [offer.text for offer in hunk.proposals if offer.rule == "asked"]
        assert texts == ([offered] if offered else [])
    async with place.engine() as engine:  # what was answered is kept
        hunk = (await engine.port.ask(ReadConflicts(run.id, WHO))).files[0].hunks[0]
        assert [o.reason for o in hunk.proposals if o.rule == "asked"] == (
            ["proposed by s2"] if offered else []
        )
    state = anyio.Path(place.environment["PLAIT_STATE_HOME"])
    assert [found async for found in state.rglob("ask-*")] == []
    assert place.text() == MINE


async def test_who_is_not_there_is_not_asked_and_who_had_not_answered_can_be_asked_again(
    place: MergingPlace,
):
    slow = scripted({"shell": place.waits_at("go")}, {"write": {"path": "code", "text": THEIRS}})
    steps = [{"name": "s1", "agent": writes(MINE)}, {"name": "s2", "agent": slow}]
    place.open_gate("go")
    async with place.engine() as engine:
        run = await reviewed(engine, place.manifest(*steps, isolation_strategy="worktree"))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        for action in (
            c.AskAgent(path="code", hunk=0, agent="nobody"),
            c.AskAgent(path="code", hunk=7),
            c.AskAgent(path="nothing", hunk=0),
        ):
            with pytest.raises(WorkspaceError):
                await engine.port.ask(DecideConflict(run.id, WHO, action))
        (place.outside / "go").unlink()
        await engine.port.ask(DecideConflict(run.id, WHO, c.AskAgent(path="code", hunk=0)))
    async with place.engine() as engine:
        hunk = (await engine.port.ask(ReadConflicts(run.id, WHO))).files[0].hunks[0]
        assert (hunk.asked, hunk.ask_problem) == (
            "",
            "s2: the engine ended before the agent answered; ask again",
        )
        view = await engine.port.ask(DecideConflict(run.id, WHO, c.AskAgent(path="code", hunk=0)))
        assert (view.files[0].hunks[0].asked, view.files[0].hunks[0].ask_problem) == ("s2", "")
