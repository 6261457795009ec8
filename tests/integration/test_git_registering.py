"""Worktrees registered and listed without git: the same as by git, in every state that it knows."""

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from engine.errors import GitFailed
from engine.git import workspace, worktrees
from engine.git.refs import has_ref_files
from engine.git.runner import Repo
from engine.git.workspace import Workspace
from engine.git.worktrees import _listed_by_git, _read, checkouts
from tests.support import kinds
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

STATES = [
    "git worktree add -q -b b$N ../w$N",
    "git worktree add -q --detach ../w$N",
    "git worktree add -q --lock --no-checkout -b l$N ../w$N",
    "git -C ../w1 switch -q -c s$N",
    "git -C ../w1 switch -q --detach",
    "git -C ../w2 checkout -q --orphan o$N",
    "git -C ../w2 bisect start -q",
    "git switch -q -c m$N",
    "git switch -q --detach",
    "git checkout -q --orphan u$N",
    "git worktree move ../w3 ../moved$N",
    "git worktree remove --force ../w1",
    "rm -rf ../w2",
    "rm -rf ../w3/.git",
    "git worktree prune --expire=now",
    "git symbolic-ref refs/heads/alias$N refs/heads/main; git symbolic-ref HEAD refs/heads/alias$N",
    "git branch -m renamed$N",
    "git pack-refs --all",
    "git config core.bare true",
    "git config core.bare false",
    "git config core.bare yes",
    "rm -f .git/worktrees/w1/gitdir",
    "echo rubbish > .git/worktrees/w2/HEAD",
    "mkdir -p .git/worktrees/empty; touch .git/worktrees/file",
    "cp -r .git/worktrees/w1 .git/worktrees/double",
    "printf 'ref:  refs/heads/main' > .git/HEAD",
    "git config extensions.worktreeConfig true; git config core.repositoryFormatVersion 1",
    "git config --unset extensions.worktreeConfig",
]


async def made(lab: Lab, *, by_hand: bool, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a new workspace, registered by us or by git; that it is by us is checked."""
    done: list[str | None] = []

    def noted(*words: object) -> str | None:
        done.append(worktrees.register(*words) if by_hand else None)  # type: ignore[arg-type]
        return done[-1]

    monkeypatch.setattr(workspace, "register", noted)
    space = await lab.prepare(f"r{int(by_hand)}/fix/worker_1@1")
    assert [one is not None for one in done] == [by_hand]
    return space


def entry_of(space: Workspace) -> dict[str, str]:
    """Return an entry's own files, with the names of the place and the attempt left out."""
    assert space.admin is not None
    entry = Path(space.admin)
    files = {name: (entry / name).read_text() for name in ("HEAD", "commondir", "gitdir", "locked")}
    files[".git"] = Path(space.path, ".git").read_text()
    parts = {str(entry): "ENTRY", space.path: "PLACE", space.attempt.run: "RUN"}
    for name, text in files.items():
        for part, word in parts.items():
            text = text.replace(part, word)  # noqa: PLW2901
        files[name] = text
    return files


@pytest.mark.parametrize("is_linked", [False, True])
async def test_an_entry_of_ours_is_that_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_linked: bool
):
    root = tmp_path / "really"
    root.mkdir()
    (tmp_path / "by-link").symlink_to(root)
    lab = await Lab.open(tmp_path / "by-link" if is_linked else root)
    lab.root = tmp_path / ("by-link" if is_linked else "really") / "spaces"
    ours, theirs = [
        await made(lab, by_hand=by_hand, monkeypatch=monkeypatch) for by_hand in (True, False)
    ]
    assert ours.admin != theirs.admin
    told = [entry_of(space) for space in (ours, theirs)]
    # Until it is collected, the workspace's own `.git` leads to the private clone.
    for one in told:
        del one[".git"]
    assert told[0] == told[1]
    await lab.collect(ours)
    await lab.collect(theirs)
    assert entry_of(ours) == entry_of(theirs)


async def test_the_users_git_works_with_an_entry_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    built = lab.built
    space = await made(lab, by_hand=True, monkeypatch=monkeypatch)
    lab.agent(space, "echo work > work; git add -A; git commit -qm work")
    await lab.collect(space)
    place, branch = Path(space.path), space.branch
    assert built.git("rev-parse", "--abbrev-ref", "HEAD", cwd=place) == branch
    assert built.git("log", "-1", "--format=%s", cwd=place) == "work"
    assert built.status(place) == ""
    assert built.try_git("checkout", branch).returncode  # it is checked out there
    built.git("gc", "-q", "--prune=now")
    built.git("worktree", "prune", "--expire=now")
    assert str(place) in built.worktrees()
    built.git("commit", "-q", "--allow-empty", "-m", "more", cwd=place)
    assert built.git("reflog", "-1", "--format=%gs", cwd=place) == "commit: more"
    built.git("worktree", "unlock", str(place))
    built.git("worktree", "move", str(place), str(tmp_path / "moved"))
    assert built.git("log", "-1", "--format=%s", cwd=tmp_path / "moved") == "more"
    built.git("worktree", "remove", str(tmp_path / "moved"))
    assert not list((built.path / ".git").glob("worktrees/*"))
    built.fsck()


async def test_a_lock_keeps_the_entry_while_its_folder_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    space = await made(lab, by_hand=True, monkeypatch=monkeypatch)
    prune = "git worktree prune --expire=now"
    lab.built.shell(f"mv {space.path} {tmp_path}/aside; {prune}; test -d {space.admin}")
    lab.built.shell(f"rm {space.admin}/locked; {prune}; test ! -e {space.admin}")


async def test_nothing_is_left_of_an_entry_that_could_not_be_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    place = tmp_path / "place"
    place.mkdir()
    (lab.built.path / ".git/worktrees").write_text("in the way")
    words = (worktrees.register, lab.repo, place, "main", "plait x")
    assert await to_thread.run_sync(*words) is None
    assert not list(place.iterdir())
    assert not list((lab.repo.plait_dir / "git").glob("scratch-*"))
    (lab.built.path / ".git/worktrees").unlink()
    monkeypatch.setattr(worktrees, "_NAME", re.compile("never"))
    assert await to_thread.run_sync(*words) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("extensions.worktreeConfig", "true"),
        ("core.sharedRepository", "group"),
        ("core.sparseCheckout", "true"),
    ],
)
async def test_git_registers_where_an_entry_needs_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: str
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("config", "core.repositoryFormatVersion", "1")
    lab = await Lab.open(tmp_path, built)
    # Set when the repository is open already: every worktree is registered by what holds by then.
    built.git("config", key, value)
    if key.startswith("extensions"):
        built.git("config", "--worktree", "user.nickname", "Ada")

    def never(*_: object) -> None:
        raise AssertionError("git was to do it")

    monkeypatch.setattr(workspace, "register", never)
    space = await lab.prepare()
    is_own = "test -e" if key.startswith("extensions") else "test ! -e"
    lab.built.shell(f"{is_own} {space.admin}/config.worktree")


def test_a_configuration_that_could_not_be_listed_is_not_plain():
    assert not has_ref_files(())
    assert has_ref_files((("core.repositoryformatversion", "0"),))
    later = (("core.repositoryformatversion", "1"), ("extensions.refstorage", "reftable"))
    assert not has_ref_files(later)


async def seen(repo: Repo) -> tuple[list[object] | None, list[object]]:
    """Return the working trees that we read, and those that git lists."""
    read = await to_thread.run_sync(_read, repo, await repo.configuration())
    listing = await repo.read("worktree", "list", "--porcelain", "-z")
    listed = await to_thread.run_sync(_listed_by_git, repo, listing)
    return None if read is None else sorted(read, key=repr), sorted(listed, key=repr)


@pytest.mark.parametrize("seed", range(12))
async def test_what_we_read_of_worktrees_is_what_git_lists(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    built = RepositoryBuilder.small(tmp_path / "repo")
    repo = await Repo.open(built.path, built.environment)
    was_read = 0
    for number in range(1, 25):
        state = STATES[number - 1] if seed == 0 and number < 4 else dice.choice(STATES)
        built.shell(f"N={number}; {state} || true")
        if "-C ../w" not in state:  # two entries for one folder are one for us, two for git
            built.shell("rm -rf .git/worktrees/double")
        try:
            read, listed = await seen(repo)
        except GitFailed:  # what is so broken that git does not list it is not read either
            with pytest.raises(GitFailed):
                await checkouts(repo)
            break
        assert read is None or read == listed, state
        was_read += read is not None
    assert was_read, "it was to be read at least once"


@pytest.mark.parametrize(
    "kind", [kinds.bare, kinds.linked, kinds.shallow, kinds.detached, kinds.unborn, kinds.sparse]
)
async def test_what_we_read_is_what_git_lists_in_every_kind_of_repository(
    tmp_path: Path, kind: Callable[[RepositoryBuilder], RepositoryBuilder]
):
    built = kind(RepositoryBuilder.small(tmp_path / "repo"))
    repo = await Repo.open(built.path, built.environment)
    read, listed = await seen(repo)
    assert read is None or read == listed
    assert (read is None) == (kind is kinds.sparse)
