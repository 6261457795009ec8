"""Generated files in conflict: made anew by the manifest's command, on the rest of the result."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.api import Engine, Run
from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.messages.merging import ConflictFileView, ConflictView, DecideConflict, ReadConflicts
from engine.phases import Phase
from tests.support.merging_runs import MergingPlace, land, reviewed, settled

pytestmark = pytest.mark.anyio
WHO = "s2/worker_1"
SORTED = "sort -u deps > deps.lock"
"""A lock file of our own: the dependencies in their order."""
START = {"deps": "b\n", "deps.lock": "b\n", "notes": "start\n"}
MINE = {"deps": "b\nmine\n", "deps.lock": "b\nmine\n"}
THEIRS = {"deps": "b\nz\n", "deps.lock": "b\nz\n"}


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, START)


async def clashing(
    engine: Engine,
    place: MergingPlace,
    command: str = SORTED,
    *,
    sides: tuple[Mapping[str, str], Mapping[str, str]] = (MINE, THEIRS),
    name: str = "*.lock",
) -> Run:
    """A run whose second worker conflicts with the first, in sources and in what comes of them."""
    manifest = {**place.workers(*sides), "review": {"regenerate": {name: command}}}
    run = await reviewed(engine, manifest)
    assert await land(engine, run, "s1/worker_1") is Phase.LANDED
    assert await land(engine, run, WHO) is Phase.CONFLICTED
    return run


class Deciding:
    """Decisions about the conflicts of the second worker."""

    def __init__(self, engine: Engine, run: Run) -> None:
        self._engine, self._run = engine, run

    async def __call__(self, action: c.ResolutionAction) -> ConflictView:
        return await self._engine.port.ask(DecideConflict(self._run.id, WHO, action))

    async def both(self, path: str = "deps") -> ConflictView:
        return await self(c.ChooseRest(choice="both", paths=(path,)))

    async def anew(self, path: str = "deps.lock") -> ConflictFileView:
        return (await self(c.Regenerate(path=path))).file(path)

    async def text(self, path: str = "deps.lock") -> str | None:
        found = await self._engine.port.ask(ReadConflicts(self._run.id, WHO, path))
        return found.looked_at.text if found.looked_at else None


async def test_a_lock_file_is_made_from_the_decided_rest_and_lands(place: MergingPlace):
    async with place.engine() as engine:
        run = await clashing(engine, place)
        decide = Deciding(engine, run)
        with pytest.raises(WorkspaceError, match=r"generated from other files: resolve deps first"):
            await decide.anew()
        view = await decide.both()
        assert (view.file("deps.lock").regenerate, view.is_resolved) == (SORTED, False)
        made = await decide.anew()
        assert (made.is_resolved, made.made_by, made.is_stale) == (True, SORTED, False)
        changed = [(line.sign, line.text) for line in made.change]
        assert changed == [(" ", "b\n"), (" ", "mine\n"), ("+", "z\n")]
        assert await decide.text() == "b\nmine\nz\n"
        assert place.text("deps.lock") == "b\nmine\n"  # nothing lands by itself
    async with place.engine() as engine:  # what was made outlives its engine
        decide = Deciding(engine, run)
        assert not (await decide(c.UndoChoice())).file("deps.lock").is_resolved
        view = await decide(c.RedoChoice())
        assert view.file("deps.lock").made_by == SORTED
        await decide(c.FinishResolving(seen=view.tree))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text("deps.lock") == "b\nmine\nz\n"


async def test_what_was_made_for_another_result_is_open_again_and_cannot_land(
    place: MergingPlace,
):
    async with place.engine() as engine:
        run = await clashing(engine, place)
        decide = Deciding(engine, run)
        await decide.both()
        assert (await decide.anew()).is_resolved
        view = await decide(c.ChooseRest(choice="target", paths=("deps",)))
        assert view.file("deps").hunks[0].choice == "both"  # it was decided: nothing has changed
        assert view.is_resolved
        view = await decide(c.ChooseHunk(path="deps", hunk=0, choice="target"))
        lock = view.file("deps.lock")
        assert (lock.is_stale, lock.is_resolved, view.is_resolved) == (True, False, False)
        with pytest.raises(WorkspaceError, match=r"still to resolve: deps\.lock"):
            await decide(c.FinishResolving())
        view = await decide(c.UndoChoice())
        assert (view.file("deps.lock").is_stale, view.is_resolved) == (False, True)
        await decide(c.RedoChoice())
        assert not (await decide.anew()).is_stale
        assert await decide.text() == "b\nmine\n"
        place.built.commit({"notes": "moved\n"}, "meanwhile")  # another result now
        moved = await engine.port.ask(ReadConflicts(run.id, WHO))
        assert moved.file("deps.lock").is_stale


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no solution >&2; exit 3", "ended with exit code 3: no solution"),
        ("rm deps.lock", "made no deps.lock that plait can use: it is gone"),
        ("ln -sf /etc/hostname deps.lock", "made no deps.lock that plait can use"),
        (
            "printf '<<<<<<< x\\n=======\\n>>>>>>> y\\n' > deps.lock",
            "wrote a deps.lock that plait cannot use",
        ),
    ],
)
async def test_a_command_that_fails_says_why_and_changes_nothing(
    place: MergingPlace, command: str, why: str
):
    async with place.engine() as engine:
        decide = Deciding(engine, await clashing(engine, place, command))
        before = await decide.both()
        with pytest.raises(WorkspaceError, match=why):
            await decide.anew()
        assert before.decisions == 1
        view = await decide(c.ChooseWhole(path="deps.lock", choice="target"))
        assert (view.decisions, view.is_resolved) == (2, True)


async def test_a_command_runs_where_no_agent_had_a_hand_in_and_reaches_no_checkout(
    place: MergingPlace,
):
    stolen = place.project / "stolen"
    command = f"touch {stolen}; ls -A ~ | wc -l > deps.lock; cat deps >> deps.lock"
    async with place.engine() as engine:
        run = await clashing(engine, place, command)
        decide = Deciding(engine, run)
        await decide.both()
        await decide.anew()
        made = await decide.text()
    assert made is not None
    assert made.endswith("\nb\nmine\nz\n")
    assert not stolen.exists()


async def test_a_command_runs_in_the_folder_of_its_file(tmp_path: Path):
    def in_folder(files: Mapping[str, str]) -> dict[str, str]:
        return {f"web/{name}": text for name, text in files.items()}

    place = MergingPlace(tmp_path, in_folder(START))
    async with place.engine() as engine:
        sides = (in_folder(MINE), in_folder(THEIRS))
        decide = Deciding(engine, await clashing(engine, place, sides=sides, name="deps.lock"))
        await decide.both("web/deps")
        assert (await decide.anew("web/deps.lock")).is_resolved
        assert await decide.text("web/deps.lock") == "b\nmine\nz\n"


async def test_a_file_that_git_merged_by_itself_is_made_anew_too(tmp_path: Path):
    gap = "".join(f"{letter}\n" for letter in "lmnopq")
    place = MergingPlace(tmp_path, {**START, "deps.lock": gap})
    sides = ({**MINE, "deps.lock": f"b\n{gap}"}, {**THEIRS, "deps.lock": f"{gap}z\n"})
    async with place.engine() as engine:
        run = await clashing(engine, place, sides=sides)
        decide = Deciding(engine, run)
        view = await decide.both()
        assert [(one.path, one.regenerate) for one in view.merged] == [("deps.lock", SORTED)]
        assert view.is_resolved
        view = await decide(c.Regenerate(path="deps.lock"))
        assert view.file("deps.lock").made_by == SORTED
        view = await decide(c.ChooseHunk(path="deps", hunk=0, choice="target"))
        assert (view.file("deps.lock").is_stale, view.is_resolved) == (True, False)
        await decide(c.UndoChoice())
        await decide(c.FinishResolving())
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.text("deps.lock") == "b\nmine\nz\n"


async def test_a_merged_generated_file_is_the_targets_for_its_command_and_keeps_its_mode(
    tmp_path: Path,
):
    gap = "".join(f"{letter}\n" for letter in "lmnopq")
    place = MergingPlace(tmp_path, {**START, "deps.lock": gap})
    place.built.git("update-index", "--chmod=+x", "deps.lock")
    place.built.git("commit", "-q", "-m", "executable")
    place.built.git("checkout", "-q", "-f", "main")
    sides = ({**MINE, "deps.lock": f"b\n{gap}"}, {**THEIRS, "deps.lock": f"{gap}z\n"})
    async with place.engine() as engine:
        run = await clashing(engine, place, "cat deps.lock deps > made && mv made deps.lock",
                             sides=sides)  # fmt: skip
        decide = Deciding(engine, run)
        await decide.both()
        assert await decide.text() == f"b\n{gap}z\n", "git's own merge: the control"
        view = await decide(c.Regenerate(path="deps.lock"))
        assert await decide.text() == f"b\n{gap}b\nmine\nz\n"
        await decide(c.FinishResolving(seen=view.tree))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.built.git("ls-tree", "main", "deps.lock").startswith("100755 ")


@pytest.mark.parametrize("mode", ["100644", "100755"])
async def test_a_decided_mode_stays_when_a_file_is_made_anew(place: MergingPlace, mode: str):
    async with place.engine() as engine:
        run = await clashing(engine, place)
        decide = Deciding(engine, run)
        await decide.both()
        await decide(c.ChooseMode(path="deps.lock", mode=mode))
        view = await decide(c.Regenerate(path="deps.lock"))
        await decide(c.FinishResolving(seen=view.tree))
        assert await settled(engine, run, WHO) is Phase.LANDED
    assert place.built.git("ls-tree", "main", "deps.lock").startswith(f"{mode} ")


async def test_without_a_command_nothing_is_made(place: MergingPlace):
    async with place.engine() as engine:
        decide = Deciding(engine, await clashing(engine, place, name="other.lock"))
        view = await decide.both()
        assert view.file("deps.lock").regenerate == ""
        for path in ("deps.lock", "nothing.lock"):
            with pytest.raises(WorkspaceError, match="no command regenerates"):
                await decide.anew(path)
