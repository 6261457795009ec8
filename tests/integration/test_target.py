"""The branch that a run lands on is found without reading all the others."""

from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.git.runner import Repo
from engine.review import target
from tests.support.plans import a_plan, a_step
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


async def found(built: RepositoryBuilder, name: str | None = None) -> str | None:
    repo = await Repo.open(built.path, built.environment)
    return await target.target_of(repo, a_plan(a_step("a"), target=name))


@pytest.mark.parametrize("is_packed", [False, True])
async def test_a_branch_that_is_there_needs_no_list_of_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_packed: bool,  # noqa: FBT001
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("branch", "deep/er")
    if is_packed:
        built.git("pack-refs", "--all")
    monkeypatch.delattr(target, "branch_names")
    assert [await found(built), await found(built, "deep/er")] == ["main", "deep/er"]


@pytest.mark.parametrize("name", ["mian", "deep", "m*", "../heads/main", "refs/heads/main", ""])
async def test_no_other_name_is_taken_for_a_branch(tmp_path: Path, name: str):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("branch", "deep/er")
    if not name:
        assert await found(built, name) == "main"
        return
    with pytest.raises(WorkspaceError, match="there is no branch"):
        await found(built, name)


async def test_a_repository_without_a_commit_has_its_first_branch(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    built = RepositoryBuilder(tmp_path / "repo")
    assert await found(built) == built.git("symbolic-ref", "--short", "HEAD").strip()
