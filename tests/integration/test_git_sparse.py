"""Worktrees that hold some folders: what is there, what is collected, and what nothing deletes."""

from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git import staging
from engine.git.collection import CollectRequest
from engine.git.inside import InsideGit
from engine.git.radar import snapshot
from engine.git.removal import examine, remove, restore
from engine.git.sparse import check_folders, held
from engine.git.strays import examine_stray
from engine.git.workspace import Strategy, Workspace, recall
from engine.messages.results import Holding
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio

FILES: dict[str, str | bytes | None] = {
    "README.md": "top\n",
    "src/setup.py": "above\n",
    "src/parser/a.py": "a\n",
    "src/parser/deep/b.py": "b\n",
    "src/other/c.py": "c\n",
    "docs/guide.md": "guide\n",
    "docs/old/x.md": "x\n",
    "we[i]rd*/f": "odd\n",
    "weird/f": "even\n",
}
HERE = {"README.md", "src/setup.py", "src/parser/a.py", "src/parser/deep/b.py"}
STRATEGIES = [Strategy.WORKTREE, Strategy.CLONE]


async def lab_of(tmp_path: Path) -> Lab:
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit(FILES, "start")
    return await Lab.open(tmp_path, built)


async def sparse(lab: Lab, *folders: str, **more: Any) -> Workspace:
    """A workspace with the folders `src/parser`, or with those given."""
    return await lab.prepare(folders=folders or ("src/parser",), **more)


def there(space: Workspace) -> set[str]:
    root = Path(space.path)
    names = {str(one.relative_to(root)) for one in root.rglob("*") if not one.is_dir()}
    return {name for name in names if name != ".git" and not name.startswith(".git/")}


async def outcome(lab: Lab, space: Workspace, script: str) -> dict[str, str | None]:
    """Collect the work and return what it changes: each path with its text, None if deleted."""
    lab.agent(space, script)
    change = await lab.collect(space)
    lab.built.fsck()
    before, after = lab.files(space.base), lab.files(change.head)
    return {
        path: after.get(path)
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_worktree_holds_its_folders_and_the_files_above_them(
    tmp_path: Path, strategy: Strategy
):
    lab = await lab_of(tmp_path)
    before = snapshot_of(lab.built.path)
    space = await sparse(lab, strategy=strategy)
    assert there(space) == HERE
    assert lab.agent(space, "git status --porcelain").stdout == b""
    if strategy is Strategy.WORKTREE:
        assert lab.built.status(Path(space.path)) == ""
    again = await to_thread.run_sync(recall, space.attempt, Path(space.directory))
    assert again == space
    assert snapshot_of(lab.built.path) == before


async def test_names_with_the_signs_of_patterns_mean_themselves(tmp_path: Path):
    lab = await lab_of(tmp_path)
    space = await sparse(lab, "we[i]rd*")
    assert there(space) == {"README.md", "we[i]rd*/f"}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("", {}),
        ("echo new > src/parser/a.py", {"src/parser/a.py": "new\n"}),
        ("echo new > src/parser/a.py; git commit -qam mine", {"src/parser/a.py": "new\n"}),
        ("rm src/parser/a.py", {"src/parser/a.py": None}),
        ("git rm -q src/parser/a.py; git commit -qm gone", {"src/parser/a.py": None}),
        ("rm -r src/parser/deep", {"src/parser/deep/b.py": None}),
        ("mkdir new; echo n > new/f", {"new/f": "n\n"}),
        ("mkdir docs; echo n > docs/new.md", {"docs/new.md": "n\n"}),
        ("mkdir docs; echo n > docs/guide.md", {"docs/guide.md": "n\n"}),
        (
            "mkdir docs; echo n > docs/new.md; git add --sparse docs; git commit -qm mine",
            {"docs/new.md": "n\n"},
        ),
        (
            "git sparse-checkout add docs; echo n > docs/guide.md",
            {"docs/guide.md": "n\n"},
        ),
        (
            "git sparse-checkout add docs; git rm -q docs/guide.md; git commit -qm gone",
            {"docs/guide.md": None},
        ),
        ("git sparse-checkout set src/parser/deep", {}),
        ("git sparse-checkout disable; echo n > docs/guide.md", {"docs/guide.md": "n\n"}),
        ("git sparse-checkout disable; git sparse-checkout set docs", {}),
        ("rm -f .git/index $PRIVATE/index", {}),
        ("git read-tree HEAD", {}),
    ],
)
async def test_a_change_holds_what_was_done_and_no_more(
    tmp_path: Path, script: str, changed: dict[str, str | None], strategy: Strategy
):
    lab = await lab_of(tmp_path)
    space = await sparse(lab, strategy=strategy)
    assert await outcome(lab, space, script) == changed


MERGE = "git fetch -q . ; git merge -q --no-edit side; echo n > src/parser/a.py"


def with_side(lab: Lab) -> None:
    """A branch of the user's that changes, adds and deletes files outside of `src/parser`."""
    lab.built.git("switch", "-q", "-c", "side")
    lab.built.commit(
        {"docs/guide.md": "side\n", "docs/added.md": "added\n", "src/other/c.py": None}, "side"
    )
    lab.built.git("switch", "-q", "main")


SIDE = {"docs/guide.md": "side\n", "docs/added.md": "added\n", "src/other/c.py": None}


async def test_a_merge_of_files_that_are_not_there_is_kept_whole(tmp_path: Path):
    lab = await lab_of(tmp_path)
    with_side(lab)
    space = await sparse(lab)
    assert await outcome(lab, space, MERGE) == {**SIDE, "src/parser/a.py": "n\n"}
    assert lab.built.status(Path(space.path)) == ""


OWN = "git sparse-checkout set docs; echo n > docs/guide.md; git commit -qam mine"


async def test_an_agents_own_sparse_checkout_deletes_nothing(tmp_path: Path):
    lab = await lab_of(tmp_path)
    space = await lab.prepare()
    assert await outcome(lab, space, OWN) == {"docs/guide.md": "n\n"}


async def test_without_the_guard_files_that_are_not_there_would_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def none(_git: InsideGit, _gone: object) -> frozenset[bytes]:
        return frozenset()

    monkeypatch.setattr(InsideGit, "left_out", none)
    lab = await lab_of(tmp_path)
    with_side(lab)
    merged = await outcome(lab, await sparse(lab), MERGE)
    assert SIDE.keys() - merged.keys() == {"docs/added.md"}
    own = await outcome(lab, await lab.prepare("r2/fix/worker_1@1"), OWN)
    assert own["src/other/c.py"] is None


async def test_what_would_replace_files_that_are_not_there_is_set_aside(tmp_path: Path):
    lab = await lab_of(tmp_path)
    space = await sparse(lab)
    lab.agent(space, "echo five > docs; mkdir -p src/other/c.py; echo n > src/other/c.py/f")
    change = await lab.collect(space)
    assert change.is_empty
    why = "it would replace {!r}, which is not in this worktree"
    assert {one.path: (one.size, one.reason) for one in change.set_aside} == {
        b"docs": (5, why.format("docs/guide.md")),
        b"src/other/c.py/f": (2, why.format("src/other/c.py")),
    }
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert len(verdict.reasons) == 2


async def test_without_the_guard_a_file_would_replace_a_whole_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(staging, "replaced", lambda _name, _others: None)
    lab = await lab_of(tmp_path)
    assert await outcome(lab, await sparse(lab), "echo five > docs") == {
        "docs": "five\n",
        "docs/guide.md": None,
        "docs/old/x.md": None,
    }


@pytest.mark.parametrize(
    "script",
    [
        "git sparse-checkout add docs; rm docs/guide.md",
        "git rm -q --cached --sparse docs/guide.md",
    ],
)
async def test_a_deletion_that_is_not_taken_is_named(tmp_path: Path, script: str):
    lab = await lab_of(tmp_path)
    space = await sparse(lab)
    lab.agent(space, script)
    change = await lab.collect(space)
    assert change.is_empty
    (note,) = change.notes
    assert note.startswith("docs/guide.md is outside this sparse worktree, and plait keeps it: ")


async def test_a_snapshot_of_work_that_goes_on_deletes_nothing(tmp_path: Path):
    lab = await lab_of(tmp_path)
    with_side(lab)
    space = await sparse(lab)
    lab.agent(space, MERGE)
    for _ in range(2):
        taken = await snapshot(
            lab.repo, space, CollectRequest(author=lab.me), objects=tmp_path / "objects"
        )
        assert taken is not None
        env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tmp_path / "objects")}
        names = lab.built.git("diff", "--name-status", "main", taken.commit, env=env)
        assert names.split() == [
            *("A", "docs/added.md", "M", "docs/guide.md"),
            *("D", "src/other/c.py", "M", "src/parser/a.py"),
        ]


async def test_a_removed_worktree_comes_back_as_it_was(tmp_path: Path):
    lab = await lab_of(tmp_path)
    space = await sparse(lab)
    lab.agent(space, "echo n > src/parser/a.py; mkdir -p docs; echo n > docs/new.md")
    change = await lab.collect(space)
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert (verdict.reasons, verdict.files) == ((), change.head)
    removed = await remove(lab.repo, verdict, tmp_path / "trash")
    await restore(lab.repo, removed)
    assert there(space) == {*HERE, "docs/new.md"}
    assert lab.built.status(Path(space.path)) == ""


async def test_a_stray_worktree_may_go_once_its_work_is_kept(tmp_path: Path):
    lab = await lab_of(tmp_path)
    space = await sparse(lab)
    lab.agent(space, "echo n > src/parser/a.py")
    change = await lab.collect(space)
    verdict = await examine_stray(lab.repo, space.attempt, Path(space.path))
    assert (verdict.reasons, verdict.files) == ((), change.head)
    lab.agent(space, "echo more > src/parser/a.py")
    verdict = await examine_stray(lab.repo, space.attempt, Path(space.path))
    assert verdict.reasons == ("its run is gone, and it has files that are in no commit",)


async def test_folders_are_found_by_name_and_by_pattern(tmp_path: Path):
    lab = await lab_of(tmp_path)
    base = lab.built.rev("HEAD")

    async def found(*wanted: str) -> tuple[str, ...]:
        holds = await held(lab.repo, base, wanted)
        return holds.folders if holds else ("all",)

    assert await found() == ("all",)
    assert await found("./src/parser/") == ("src/parser",)
    assert await found("src/*") == ("src/other", "src/parser")
    assert await found("**/deep") == ("src/parser/deep",)
    assert await found("src/**", "src/parser") == ("src",)
    assert await found("we?rd") == ("weird",)
    assert await found("we[i]rd*") == ("we[i]rd*",)
    assert await found("gone") == ()
    assert await held(lab.repo, base, ["src/*"]) == Holding(
        folders=("src/other", "src/parser"), held=3, of=8
    )


async def test_folders_that_the_run_has_changed_are_held_too(tmp_path: Path):
    lab = await lab_of(tmp_path)
    base = lab.built.rev("HEAD")
    more = {"docs/old/x.md": "y\n", "README.md": "new\n", "tools/t": "t\n", "weird/f": None}
    later = lab.built.commit({**more, "src/setup.py": "new\n"}, "an earlier step")
    holds = await held(lab.repo, later, ["src/parser"], since=base)
    assert holds is not None
    assert holds.folders == ("docs/old", "src/parser", "tools")


@pytest.mark.parametrize(
    ("pattern", "said", "hint"),
    [
        ("sources", "'sources' matches no folder", "`src/parser`"),
        ("src/x*", "'src/x*' matches no folder", "`services/*/api`"),
        ("docs/guide.md", "'docs/guide.md' is a file", "Name its folder, `docs`."),
        ("README.md", "'README.md' is a file", "at the top"),
        ("--output=x", "matches no folder", ""),
    ],
)
async def test_a_pattern_that_names_no_folder_is_refused(
    tmp_path: Path, pattern: str, said: str, hint: str
):
    lab = await lab_of(tmp_path)
    with pytest.raises(WorkspaceError) as refused:
        await check_folders(lab.repo, lab.built.rev("HEAD"), ["src/*", pattern])
    assert said in str(refused.value)
    assert hint in refused.value.hint
