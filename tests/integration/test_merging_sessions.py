"""Conflicts of real workers: seen through the port, resolved step by step, landed as resolved."""

from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.messages.merging import ConflictView, DecideConflict, ReadConflicts
from engine.phases import Phase
from engine.review import review
from tests.support.merging_runs import (
    SOURCE,
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    settled,
)

pytestmark = [pytest.mark.anyio, pytest.mark.long]
WHO = "s2/worker_1"
BOTH = "grep -q ^mine code && grep -q ^theirs code"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path)


def hunk(view: ConflictView, path: str = "code"):
    (found,) = view.file(path).hunks
    return found


async def test_conflicts_are_seen_with_names_lines_words_and_proposals(place: MergingPlace):
    async with place.engine() as engine:
        texts = changed(3, "line 3, mine"), changed(3, "my line 3")
        run = await conflicted(engine, place, *texts)
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
    assert (view.target, view.incoming, view.is_of_base) == ("main", WHO, False)
    (file,) = view.files
    assert (file.path, file.kind, file.open_hunks, file.is_resolved) == (
        "code",
        "contents",
        1,
        False,
    )
    found = hunk(view)
    assert found.base == ("line 3\n",)
    assert [(line.sign, line.text) for line in found.target] == [
        ("-", "line 3\n"),
        ("+", "line 3, mine\n"),
    ]
    assert found.target[1].marks == ((6, 12),)
    assert found.before[-1] == "line 2\n"
    assert "my line 3, mine\n" in [offer.text for offer in found.proposals]
    assert found.choice is None
    assert {option.choice for option in file.options} >= {"target", "incoming", "union"}


RESOLUTIONS = {
    "target": (c.ChooseHunk(path="code", hunk=0, choice="target"), "mine\n"),
    "both": (c.ChooseHunk(path="code", hunk=0, choice="both"), "mine\ntheirs\n"),
    "single lines": (
        c.PickLines(
            path="code",
            hunk=0,
            lines=(
                c.PickedLine(side="incoming", at=0),
                c.PickedLine(side="base", at=0),
                c.PickedLine(side="target", at=0),
            ),
        ),
        "theirs\nline 3\nmine\n",
    ),
    "own text": (c.WriteHunk(path="code", hunk=0, text="caf\udce9\n"), "caf\udce9\n"),
}


@pytest.mark.parametrize("name", RESOLUTIONS)
async def test_what_was_chosen_is_what_lands(place: MergingPlace, name: str):
    action, text = RESOLUTIONS[name]
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        view = await engine.port.ask(DecideConflict(run.id, WHO, action))
        assert view.is_resolved
        tree = view.tree
        done = await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert (done.is_finished, done.tree) == (True, tree)
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.built.rev("main^{tree}") == tree
    landed = place.built.show("main", "code")
    assert landed == changed(3, text.rstrip("\n")).encode(errors="surrogateescape")
    assert place.built.git("rev-list", "--count", "main", "--merges") == "2"
    assert place.built.status() == ""


async def test_a_proposal_is_taken_as_it_was_shown_and_told_so(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, changed(3, "line 3, mine"), changed(3, "my line 3"))
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        offer = next(offer for offer in hunk(view).proposals if offer.text.startswith("my line"))
        action = c.WriteHunk(path="code", hunk=hunk(view).key, text=offer.text, source=offer.rule)
        view = await engine.port.ask(DecideConflict(run.id, WHO, action))
        assert (hunk(view).choice, hunk(view).source) == ("own", offer.rule)
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == changed(3, "my line 3, mine")


async def test_a_file_is_edited_as_text_and_other_files_may_be_set_and_deleted(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        view = await engine.port.ask(ReadConflicts(run.id, WHO, "code"))
        text = view.file("code").text
        assert text is not None
        assert "<<<<<<< main" in text
        start, end = text.index("<<<<<<<"), text.index("line 4")
        edited = text[:start] + "by hand\n" + text[end:]
        for action in (
            c.EditFile(path="code", text=edited),
            c.SetFile(path="new/file", text="set\n", mode="100755"),
            c.SetFile(path="other", text=None),
        ):
            view = await engine.port.ask(DecideConflict(run.id, WHO, action))
        assert [file.path for file in view.files] == ["code", "new/file", "other"]
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == changed(3, "by hand")
    listing = place.built.git("ls-tree", "-r", "main").split("\n")
    assert [line.split()[0] + line.split("\t")[1] for line in listing] == [
        "100644code",
        "100755new/file",
    ]


async def test_steps_are_undone_redone_and_reopened(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)

        async def do(action: c.ResolutionAction) -> ConflictView:
            return await engine.port.ask(DecideConflict(run.id, WHO, action))

        view = await do(c.ChooseRest(choice="incoming"))
        assert (view.is_resolved, view.can_undo, view.can_redo) == (True, True, False)
        view = await do(c.UndoChoice())
        assert (view.is_resolved, view.can_redo) == (False, True)
        assert (await do(c.RedoChoice())).is_resolved
        view = await do(c.Reopen(path="code", hunk=hunk(view).key))
        assert not view.is_resolved
        with pytest.raises(WorkspaceError, match="still to resolve: code"):
            await do(c.FinishResolving())
        assert (await do(c.ChooseWhole(path="code", choice="target"))).file(
            "code"
        ).whole == "target"


async def test_what_cannot_be_done_is_said_and_changes_nothing(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        before = await engine.port.ask(ReadConflicts(run.id, WHO))
        for action in (
            c.ChooseHunk(path="code", hunk=7, choice="target"),
            c.ChooseHunk(path="nothing", hunk=0, choice="target"),
            c.ChooseHunk(path="code", hunk=0, choice="nonsense"),
            c.ChooseWhole(path="code", choice="move"),
            c.ChooseMode(path="code", mode="100600"),
        ):
            with pytest.raises(WorkspaceError):
                await engine.port.ask(DecideConflict(run.id, WHO, action))
        assert await engine.port.ask(ReadConflicts(run.id, WHO)) == before
        with pytest.raises(WorkspaceError, match="LANDED"):
            await engine.port.ask(ReadConflicts(run.id, "s1/worker_1"))


async def test_a_file_deleted_here_and_changed_there_is_decided_as_a_whole(place: MergingPlace):
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers({"code": None}, THEIRS))
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert view.file("code").needs_whole
        await engine.port.ask(
            DecideConflict(run.id, WHO, c.ChooseWhole(path="code", choice="incoming"))
        )
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == THEIRS


async def test_a_target_that_moved_is_merged_again_and_decisions_are_kept(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        place.built.commit({"code": changed(9, "by the user", MINE)}, "meanwhile")
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert (view.is_resolved, view.opened) == (True, ())
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == changed(9, "by the user", changed(3, "mine\ntheirs"))


async def test_a_decision_falls_away_when_its_hunk_changes_and_is_told(place: MergingPlace):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        place.built.commit({"code": changed(3, "otherwise")}, "meanwhile")
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
    assert (view.is_resolved, view.opened) == (False, ("code",))


async def test_a_target_that_moves_after_finishing_is_never_taken_back(place: MergingPlace):
    """The resolved tree is of an older target: landing it as it is would undo what came since."""
    async with place.engine() as engine:
        check = f"if {BOTH}; then {place.waits_at('go')}; fi"
        run = await conflicted(engine, place, MINE, THEIRS, check=check)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        place.built.commit({"other": changed(1, "by the user")}, "meanwhile")
        place.open_gate("go")
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text("other") == changed(1, "by the user")
    assert place.text() == changed(3, "mine\ntheirs")


async def test_what_was_chosen_before_is_offered_as_remembered_and_can_be_forgotten(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS)
        action = c.WriteHunk(path="code", hunk=0, text="agreed\n")
        await engine.port.ask(DecideConflict(run.id, WHO, action))
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    place.built.commit({"code": SOURCE}, "back to the start")
    async with place.engine() as engine:
        again = await conflicted(engine, place, MINE, THEIRS)
        view = await engine.port.ask(ReadConflicts(again.id, WHO))
        offer = hunk(view).proposals[0]
        assert (offer.rule, offer.text, view.is_resolved) == ("remembered", "agreed\n", False)
        assert offer.remembered
        view = await engine.port.ask(
            DecideConflict(again.id, WHO, c.ForgetAnswer(key=offer.remembered))
        )
        assert all(offer.rule != "remembered" for offer in hunk(view).proposals)


async def test_a_failed_check_of_the_resolution_leads_back_to_it(place: MergingPlace):
    check = f"! {{ {BOTH}; }}"
    async with place.engine() as engine:
        run = await conflicted(engine, place, MINE, THEIRS, check=check)
        await engine.port.ask(DecideConflict(run.id, WHO, c.ChooseRest(choice="both")))
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.REVIEWING
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert view.is_resolved
        assert view.check is not None
        assert not view.check.passed
        view = await engine.port.ask(
            DecideConflict(run.id, WHO, c.ChooseHunk(path="code", hunk=0, choice="incoming"))
        )
        assert view.check is None
        await engine.port.ask(DecideConflict(run.id, WHO, c.FinishResolving()))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text() == THEIRS


async def test_very_many_hunks_get_their_proposals_look_by_look(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    texts = [
        changed(9, said.format(9), changed(6, said.format(6), changed(3, said.format(3))))
        for said in ("line {}, mine", "my line {}")
    ]
    async with place.engine() as engine:
        run = await conflicted(engine, place, *texts)
        monkeypatch.setattr(review, "_THINKS_S", -1.0)
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert (view.is_thinking, len(view.file("code").hunks)) == (True, 3)
        monkeypatch.setattr(review, "_THINKS_S", 600.0)
        view = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert not view.is_thinking
        assert all(found.proposals for found in view.file("code").hunks)
