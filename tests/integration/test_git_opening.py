"""Open repositories of every form, and start few gits for a merge."""

import os
import shutil
from pathlib import Path

import pytest

from engine import open_merge
from engine.errors import WorkspaceError
from engine.git.runner import Repo
from tests.support.repositories import RepositoryBuilder

MOST_GITS = 7
"""Gits of one `open_merge` in a fresh process: three to open the repository, one for each kind of
question, and the attributes of the target."""


@pytest.fixture
def built(tmp_path: Path) -> RepositoryBuilder:
    made = RepositoryBuilder.small(tmp_path / "repo")
    made.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    made.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    return made


@pytest.mark.anyio
async def test_a_repository_is_found_from_anywhere_in_its_working_trees(built: RepositoryBuilder):
    top, common = built.path, str(built.path / ".git")
    for place, worktree in (
        (top, top),
        (top / "src", top),
        (top.parent / "linked", top.parent / "linked"),
    ):
        found = await Repo.open(place, built.environment)
        assert (found.worktree, found.common_dir) == (str(worktree), common)
    bare = await Repo.open(top.parent / "bare.git", built.environment)
    assert bare.worktree is None
    assert bare.common_dir == str(top.parent / "bare.git")


@pytest.mark.anyio
async def test_a_place_without_a_working_tree_is_refused_in_words(
    built: RepositoryBuilder, tmp_path: Path
):
    empty, odd = tmp_path / "empty", tmp_path / "line\nbreak"
    empty.mkdir()
    RepositoryBuilder.small(odd)
    for place, why in (
        (built.path / ".git", "is inside a git directory"),
        (built.path / ".git" / "refs", "is inside a git directory"),
        (empty, "is not a usable git repository"),
        (odd, "contains a line break"),
    ):
        with pytest.raises(WorkspaceError, match=why):
            await Repo.open(place, built.environment)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["repo", "linked"])
@pytest.mark.parametrize("how", ["plain", "included", "of a worktree", "of the user"])
async def test_drivers_are_those_that_git_lists_however_they_are_set(
    built: RepositoryBuilder, tmp_path: Path, where: str, how: str
):
    driver = ("filter.evil.clean", "touch ran")
    if how == "included":
        (tmp_path / "more").write_text('[filter "evil"]\n\tclean = touch ran\n')
        built.configure("include.path", str(tmp_path / "more"))
    elif how == "of a worktree":
        built.configure("extensions.worktreeConfig", "true")
        built.git("config", "--worktree", *driver)
    elif how == "of the user":
        built.git("config", "--global", *driver)
    else:
        built.configure(*driver)
    repo = await Repo.open(tmp_path / where, built.environment)
    known = await repo._overrides()
    repo.forget_configuration()
    assert await repo._overrides() == known
    assert ("filter.evil.clean" in known[1].values()) == (how != "of the user")


@pytest.mark.anyio
async def test_a_git_that_was_replaced_is_asked_for_its_version_anew(
    built: RepositoryBuilder, tmp_path: Path
):
    tools, real = tmp_path / "tools", shutil.which("git")
    tools.mkdir()
    env = {**built.environment, "PATH": f"{tools}:{built.environment['PATH']}"}
    for said in ("2.40.1", "2.41.0"):
        fake = tools / "git.new"
        fake.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo git version {said} && exit\n')
        fake.write_text(f'{fake.read_text()}exec "{real}" "$@"\n')
        fake.chmod(0o755)
        fake.replace(tools / "git")
        repo = await Repo.open(built.path, env)
        assert f"{repo.version[0]}.{repo.version[1]}" == said[:4]


def test_opening_a_merge_starts_few_gits(built: RepositoryBuilder, tmp_path: Path):
    built.git("checkout", "-q", "side", "--ignore-other-worktrees")
    built.commit({"src/a.py": "theirs\n"}, "theirs")
    built.git("checkout", "-q", "main")
    built.commit({"src/a.py": "mine\n"}, "mine")
    programs, log = tmp_path / "programs", tmp_path / "log"
    programs.mkdir()
    git = programs / "git"
    git.write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec "{shutil.which("git")}" "$@"\n')
    git.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    merge = open_merge(
        built.path,
        target="main",
        incoming="side",
        environment={**built.environment, "PATH": path},
    )
    assert len(merge.conflicts) == 1
    assert len(log.read_text().splitlines()) <= MOST_GITS, log.read_text()
