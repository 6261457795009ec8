"""Test what git said once is not asked again; but whatever the user does in between is seen."""

from pathlib import Path

import pytest

from engine.git.objects import read_ref, stands_at
from engine.git.touched import left_out, staged_paths, touched_paths
from engine.git.worktrees import checkouts
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


async def branches(lab: Lab) -> set[str | None]:
    """Return what is checked out anywhere."""
    return {place.branch for place in await checkouts(lab.repo)}


@pytest.mark.parametrize("is_coarse", [False, True])
async def test_what_the_user_stages_is_seen_even_where_time_is_coarse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_coarse: bool
):
    if is_coarse:  # a second index of one size within one tick
        monkeypatch.setattr("engine.git.touched.stamp", lambda _: None)
    lab = await Lab.open(tmp_path, RepositoryBuilder.with_files(tmp_path / "repo", 3))
    built, head = lab.built, lab.built.head
    (place,) = await checkouts(lab.repo)
    name = built.git("ls-files").split("\n")[0]
    for _ in range(3):
        (built.path / name).write_text("edited\n")
        built.git("add", name)
        assert await staged_paths(lab.repo, place, head) == {name.encode()}
        built.git("reset", "-q", "--hard")
        assert await staged_paths(lab.repo, place, head) == frozenset()

    (built.path / name).unlink()
    assert await left_out(lab.repo, place) == frozenset()
    built.git("update-index", "--skip-worktree", name)
    assert await left_out(lab.repo, place) == {name.encode()}


async def test_what_the_user_checks_out_is_seen_at_once(tmp_path: Path):
    lab = await Lab.open(tmp_path, RepositoryBuilder.with_files(tmp_path / "repo", 3))
    built = lab.built
    assert await branches(lab) == {"refs/heads/main"}
    built.git("switch", "-q", "-c", "two")
    assert await branches(lab) == {"refs/heads/two"}
    built.git("worktree", "add", "-q", str(tmp_path / "other"), "main")
    assert await branches(lab) == {"refs/heads/two", "refs/heads/main"}
    built.git("switch", "-q", "--detach", cwd=tmp_path / "other")
    assert await branches(lab) == {"refs/heads/two", None}
    built.git("worktree", "remove", str(tmp_path / "other"))
    built.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    built.git("symbolic-ref", "HEAD", "refs/heads/alias")
    assert await branches(lab) == {"refs/heads/main"}
    built.git("symbolic-ref", "refs/heads/alias", "refs/heads/two")
    assert await branches(lab) == {"refs/heads/two"}


async def test_a_ref_is_where_it_is_however_git_keeps_it(tmp_path: Path):
    lab = await Lab.open(tmp_path, RepositoryBuilder.with_files(tmp_path / "repo", 3))
    built, first = lab.built, lab.built.head
    main = "refs/heads/main"
    assert await read_ref(lab.repo, main) == first
    built.git("commit", "-q", "--allow-empty", "-m", "more")
    assert await read_ref(lab.repo, main, first) == built.head
    for _ in range(2):
        assert await stands_at(lab.repo, main, built.head)
        assert not await stands_at(lab.repo, main, first)
        assert not await stands_at(lab.repo, main, None)
        built.git("pack-refs", "--all")
    assert await stands_at(lab.repo, "refs/heads/none", None)
    assert await read_ref(lab.repo, "refs/heads/none", first) is None
    assert lab.repo.cache.trees.get(first) == built.rev(f"{first}^{{tree}}")
    assert await touched_paths(lab.repo, first, built.head) == ()
