"""A change's whole way through repositories as people have them: the user's checkout is theirs."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from engine.git.collection import CollectRequest
from engine.git.composition import Composed, LandRequest, compose
from engine.git.landing import LandingDone, LandPrepared, land, prepare_landing
from engine.git.merge3 import Merger
from engine.git.names import RefNames
from engine.git.objects import Wording
from engine.git.removal import examine, remove, remove_branch
from engine.git.undo import undo_landing
from engine.git.workspace import Workspace
from tests.support.git_lab import Lab
from tests.support.kinds import AS_PEOPLE_HAVE_THEM, bare, lacking_blobs
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio
WORK = "echo work > work.txt; git add -A; git commit -qm work; git status --porcelain"
MINE = "edited by the user"


def dirty(built: RepositoryBuilder) -> RepositoryBuilder:
    built.write("README.md", MINE)
    built.write("src/a.py", MINE)
    built.git("add", "src/a.py")
    built.write("untracked", MINE)
    return built


def seen_by_user(built: RepositoryBuilder) -> dict[str, bytes]:
    """Every file of the user's checkout; of a bare repository there is none."""
    return snapshot_of(built.path) if (built.path / ".git").exists() else {}


async def landed(lab: Lab, base: str, head: str) -> LandPrepared:
    """The change on `main`, which is there or not, checked out or not."""
    has_main = lab.built.try_git("rev-parse", "-q", "--verify", "refs/heads/main").returncode == 0
    request = LandRequest(
        target="main", base=base, head=head, message="x", author=lab.me, committer=lab.me,
        creates=not has_main,
    )  # fmt: skip
    made = await compose(lab.repo, Merger(lab.repo), request)
    assert isinstance(made, Composed), made
    plan = await prepare_landing(lab.repo, made)
    assert isinstance(plan, LandPrepared), plan
    assert isinstance(await land(lab.repo, plan), LandingDone)
    return plan


async def undone(lab: Lab, plan: LandPrepared) -> None:
    wording = Wording(message="x", author=lab.me)
    back = await undo_landing(lab.repo, Merger(lab.repo), plan, wording)
    assert isinstance(back, LandPrepared), back
    assert isinstance(await land(lab.repo, back), LandingDone)


async def cleaned(lab: Lab, space: Workspace, tmp_path: Path, main: str | None) -> None:
    """The workspace and its branch gone; the branch only while its work is on the target."""
    names = RefNames(space.attempt)
    targets = [main] if main else []
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert verdict.is_safe, verdict
    await remove(lab.repo, verdict, tmp_path / "trash")
    assert space.path not in lab.built.worktrees()
    said = await remove_branch(lab.repo, Merger(lab.repo), names, targets=targets)
    assert said == ("" if main else "its work has not landed yet")
    assert lab.refs(names.head)


@pytest.mark.parametrize("build", [*AS_PEOPLE_HAVE_THEM, dirty], ids=lambda build: build.__name__)
async def test_a_change_goes_its_whole_way_in_repositories_as_people_have_them(
    tmp_path: Path, build: Callable[[RepositoryBuilder], RepositoryBuilder]
):
    built = build(RepositoryBuilder.small(tmp_path / "repo"))
    lab = await Lab.open(tmp_path, built)
    before = seen_by_user(built)
    status = "" if build is bare else built.status()

    space = await lab.prepare()
    seen = lab.agent(space, WORK).stdout.decode()
    change = await lab.collect(space)

    assert seen == ""
    assert built.show(change.head, "work.txt") == b"work\n"
    changed = built.git("diff-tree", "-r", "--name-only", change.base, change.head)
    assert changed == "work.txt"
    assert not change.has_left_over
    assert seen_by_user(built) == before

    plan = await landed(lab, change.base, change.head)
    assert built.show("refs/heads/main", "work.txt") == b"work\n"
    if plan.worktree is not None:
        work = await anyio.Path(plan.worktree, "work.txt").read_text()
        assert work == "work\n"
    assert {p: text for p, text in seen_by_user(built).items() if p != "work.txt"} == before
    await undone(lab, plan)
    assert seen_by_user(built) == before
    assert build is bare or built.status() == status
    again = await landed(lab, change.base, change.head) if plan.old else None
    await cleaned(lab, space, tmp_path, again and again.target)
    if build is not lacking_blobs:
        built.fsck()
