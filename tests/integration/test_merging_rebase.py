"""A rebase of twenty commits, each with a conflict: what was answered once is offered again."""

from pathlib import Path

import pytest

from engine.messages import commands as c
from engine.messages.merging import ConflictView, HunkView, ProposalView
from engine.review.alone.own import OwnMerge
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
COMMITS = 20


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    """Twenty commits on `side`, each of which changes a line that `main` has changed too."""
    made = RepositoryBuilder(tmp_path / "project")
    made.commit({f"f{n}": f"first\nwas {n}\nlast\n" for n in range(COMMITS)}, "start")
    made.git("checkout", "-q", "-b", "side")
    for n in range(COMMITS):
        made.commit({f"f{n}": f"first\ntheirs of {n}\nlast\n"}, f"commit {n}")
    made.git("checkout", "-q", "main")
    made.commit({f"f{n}": f"first\nmine for {n}\nlast\n" for n in range(COMMITS)}, "mine")
    made.git("checkout", "-q", "side")
    return made


async def opened(built: RepositoryBuilder) -> tuple[OwnMerge, ConflictView]:
    merge = await OwnMerge.begin(built.path, built.environment)
    return merge, await merge.conflicts()


def only_hunk(view: ConflictView) -> HunkView:
    (file,) = view.files
    (hunk,) = file.hunks
    return hunk


async def finish(built: RepositoryBuilder, merge: OwnMerge, action: c.ResolutionAction) -> None:
    """Decide the one conflict of a commit, and go on to the next commit as the user does."""
    await merge.resolve(action)
    await merge.resolve(c.FinishResolving())
    built.try_git("-c", "core.editor=true", "rebase", "--continue")


async def test_answers_of_a_rebase_that_was_broken_off_are_under_the_cursor_in_the_next(
    built: RepositoryBuilder,
) -> None:
    built.try_git("rebase", "main")
    for n in range(COMMITS):
        merge, view = await opened(built)
        assert not any(offer.remembered for offer in only_hunk(view).proposals)
        own = c.WriteHunk(path=f"f{n}", hunk=0, text=f"both of {n}\n")
        if n == COMMITS - 1:  # the last one is decided, and then all is given up
            await merge.resolve(own)
            await merge.resolve(c.FinishResolving())
            break
        await finish(built, merge, own)
    built.git("rebase", "--abort")
    built.try_git("rebase", "main")
    for n in range(COMMITS):
        merge, view = await opened(built)
        first = only_hunk(view).proposals[0]
        assert first.remembered
        assert (first.likely, first.text) == (True, f"both of {n}\n")
        again = c.WriteHunk(path=f"f{n}", hunk=0, text=first.text, source=first.rule)
        await finish(built, merge, again)
    assert not (built.path / ".git/rebase-merge").exists()
    assert [(built.path / f"f{n}").read_text() for n in range(COMMITS)] == [
        f"first\nboth of {n}\nlast\n" for n in range(COMMITS)
    ]
    assert built.git("rev-list", "--count", "main..side") == str(COMMITS)


async def test_a_side_taken_in_one_commit_is_offered_in_the_next_and_in_no_other_rebase(
    built: RepositoryBuilder,
) -> None:
    built.try_git("rebase", "main")
    merge, view = await opened(built)
    assert not _habits(view)
    await finish(built, merge, c.ChooseHunk(path="f0", hunk=0, choice="incoming"))
    for n in range(1, COMMITS // 2):
        merge, view = await opened(built)
        (habit,) = _habits(view)
        assert habit.same_as == "incoming"
        assert only_hunk(view).proposals[0].likely
        await finish(built, merge, c.ChooseHunk(path=f"f{n}", hunk=0, choice="incoming"))
    built.git("rebase", "--abort")
    built.git("commit", "-q", "--allow-empty", "-m", "one more")
    built.try_git("rebase", "main")
    _, view = await opened(built)
    assert not _habits(view)


def _habits(view: ConflictView) -> list[ProposalView]:
    return [offer for offer in only_hunk(view).proposals if offer.rule == "likewise"]
