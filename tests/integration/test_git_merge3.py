"""`merge3` says what `git merge` says, and never more."""

from pathlib import Path

import pytest

from engine.errors import GitFailed, WorkspaceError
from engine.git.common import common_sides
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.objects import commits_of
from engine.git.removal import is_contained
from engine.git.runner import Call, Repo
from tests.support.merge_oracle import ENVIRONMENT
from tests.support.odd_merges import put
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio

Files = dict[str, str | bytes | None]
START: Files = {"a": "1\n2\n3\n4\n5\n", "b": "b\n", "d/x": "x\n" * 9, "d/y": "y\n" * 9}

CASES: dict[str, tuple[Files, Files, set[bytes], set[str]]] = {
    "clean": ({"a": "0\n2\n3\n4\n5\n"}, {"a": "1\n2\n3\n4\n6\n"}, set(), set()),
    "contents": ({"a": "o\n"}, {"a": "t\n"}, {b"a"}, {"CONFLICT (contents)"}),
    "both added": ({"n": "o\n"}, {"n": "t\n"}, {b"n"}, {"CONFLICT (contents)"}),
    "modify/delete": ({"a": None}, {"a": "t\n"}, {b"a"}, {"CONFLICT (modify/delete)"}),
    "binary": ({"b": b"\0o"}, {"b": b"\0t"}, {b"b"}, {"CONFLICT (binary)", "CONFLICT (contents)"}),
    "rename/rename": (
        {"d/x": None, "o": "x\n" * 9},
        {"d/x": None, "t": "x\n" * 9},
        {b"d/x", b"o", b"t"},
        {"CONFLICT (rename/rename)"},
    ),
    "rename/delete": (
        {"d/x": None, "o": "x\n" * 9},
        {"d/x": None},
        {b"o"},
        {"CONFLICT (rename/delete)"},
    ),
    "odd names": ({"t\tn\nl": "o\n"}, {"t\tn\nl": "t\n"}, {b"t\tn\nl"}, {"CONFLICT (contents)"}),
}


class Sample:
    """Three commits: `base`, `ours` and `theirs`, each a branch."""

    def __init__(self, tmp_path: Path, ours: Files, theirs: Files, base: Files = START) -> None:
        self.built = RepositoryBuilder(tmp_path / "repo")
        self.built.commit(base, "base")
        for name, files in (("ours", ours), ("theirs", theirs)):
            self.built.git("checkout", "-q", "-b", name, "main")
            self.built.commit(files, name)
        self.built.git("checkout", "-q", "main")

    async def open(self) -> Repo:
        return await Repo.open(self.built.path, self.built.environment)

    async def merge(self) -> MergedTrees:
        return await Merger(await self.open()).merge3("main", "ours", "theirs")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_merge3_names_what_git_merge_leaves_open(
    tmp_path: Path, case: tuple[Files, Files, set[bytes], set[str]]
):
    ours, theirs, paths, kinds = case
    sample = Sample(tmp_path, ours, theirs)

    merged = await sample.merge()

    assert {one.path for one in merged.conflicts} == paths
    assert {one.kind for one in merged.messages if one.is_conflict} == kinds
    assert merged.is_clean is (not paths)
    built = sample.built
    built.git("checkout", "-q", "ours")
    built.try_git("merge", "-q", "-m", "m", "theirs")
    unmerged = built.git_bytes("ls-files", "-u", "-z").split(b"\0")
    assert {record.split(b"\t", 1)[1] for record in unmerged if record} == paths
    if not paths:
        assert built.rev("HEAD^{tree}") == merged.tree


async def test_merge3_gives_each_side_with_mode_and_object(tmp_path: Path):
    sample = Sample(tmp_path, {"a": "o\n"}, {"a": "t\n"})

    (found,) = (await sample.merge()).conflicts

    rev = sample.built.rev
    sides = [(one.mode, one.oid) for one in (found.base, found.ours, found.theirs) if one]
    assert sides == [("100644", rev(f"{name}:a")) for name in ("main", "ours", "theirs")]


async def test_the_same_question_has_the_same_answer_and_leaves_refs_alone(tmp_path: Path):
    sample = Sample(tmp_path, {"a": "o\n"}, {"a": "t\n"})
    refs = sample.built.git("for-each-ref")

    assert await sample.merge() == await sample.merge()

    assert sample.built.git("for-each-ref") == refs
    sample.built.fsck()


async def test_what_a_merge_is_asked_with_stays_out_of_the_users_objects(tmp_path: Path):
    sample = Sample(tmp_path / 'a"b:c\\d', {"a": "o\n"}, {"a": "t\n"})
    before = sample.built.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")

    await sample.merge()

    after = sample.built.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    assert after.count("commit") == before.count("commit")
    assert after.count("tree") == before.count("tree") + 1
    assert not list((sample.built.path / ".git/plait/git").glob("scratch-*"))


@pytest.mark.parametrize(("side", "clean"), [("ours", True), ("theirs", False), ("main", True)])
async def test_only_the_targets_attributes_are_in_force(
    tmp_path: Path,
    side: str,
    clean: bool,  # noqa: FBT001 (a table)
):
    base: Files = {**START, ".gitattributes": "a merge=union\n"} if side == "main" else START
    more: Files = {".gitattributes": "a merge=union\n"}
    ours: Files = {"a": "o\n", **(more if side == "ours" else {})}
    theirs: Files = {"a": "t\n", **(more if side == "theirs" else {})}
    sample = Sample(tmp_path, ours, theirs, base)
    for checked_out in ("main", "ours", "theirs"):
        sample.built.git("checkout", "-q", checked_out)
        assert (await sample.merge()).is_clean is clean


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", "..", ".git ", ".g\u200cit", "a\\.git"])
async def test_a_tree_that_no_checkout_may_see_is_not_clean(tmp_path: Path, name: str):
    sample = Sample(tmp_path, {"a": "0\n2\n3\n4\n5\n"}, {})
    built = sample.built
    blob = built.git("hash-object", "-w", "--stdin", stdin=b"evil\n")
    inner = built.git("mktree", stdin=f"100644 blob {blob}\tconfig\n".encode())
    top = built.git_bytes("ls-tree", "-z", "main") + f"040000 tree {inner}\t{name}\0".encode()
    tree = built.git("mktree", "-z", "--missing", stdin=top)
    built.git(
        "update-ref", "refs/heads/theirs", built.git("commit-tree", tree, "-p", "main", "-m", "e")
    )

    merged = await sample.merge()

    assert merged.conflicts == ()
    assert merged.unsafe == (f"{name}/config".encode(),)
    assert not merged.is_clean


async def test_previews_of_many_merges_equal_the_single_ones(tmp_path: Path):
    sample = Sample(tmp_path, {"a": "o\n"}, {"a": "t\n"})
    sample.built.git("checkout", "-q", "-b", "third", "main")
    sample.built.commit({"b": "3\n", ".gitattributes": "a merge=union\n"}, "third")
    repo = await sample.open()
    names = ("ours", "theirs", "third", "main")
    questions = [Sides("main", one, other) for one in names for other in names]

    many = await Merger(repo).preview(questions)
    single = [await Merger(repo).merge3(q.base, q.ours, q.theirs) for q in questions]

    assert many == single
    assert {one.is_clean for one in single} == {True, False}
    repo.version = (2, 38)
    assert await Merger(repo).preview(questions) == single
    assert await Merger(repo).preview([]) == []


_DIES = 3219
"""The seed of a merge of which git 2.39 dies, with a failed assertion."""


async def test_a_merge_of_which_git_dies_is_made_in_a_milder_way_that_is_told(tmp_path: Path):
    put(tmp_path / "repo", range(_DIES, _DIES + 1))
    names = [f"{_DIES}/{side}" for side in ("target", "incoming")]
    repo = await Repo.open(tmp_path / "repo", ENVIRONMENT)
    done = await repo.run("merge-tree", "--write-tree", *names, call=Call(ok=(0, 1, -6)))
    merger = Merger(repo)
    sides = await common_sides(repo, merger, *await commits_of(repo, *names))

    merged = await merger.merge(sides)

    assert bool(merged.caveat) == (done.exit_code == -6)
    assert merged.conflicts
    assert await merger.preview([sides]) == [merged]


async def test_a_radars_objects_stay_out_of_the_repository(tmp_path: Path):
    sample = Sample(tmp_path, {"a": "o\n"}, {"a": "t\n"})
    repo = await sample.open()
    before = snapshot_of(sample.built.path / ".git/objects")
    merger = Merger(repo, objects=tmp_path / "radar")

    (seen,) = await merger.preview([Sides("main", "ours", "theirs")])

    assert isinstance(seen, MergedTrees)
    assert [one.path for one in seen.conflicts] == [b"a"]
    assert snapshot_of(sample.built.path / ".git/objects") == before
    assert snapshot_of(tmp_path / "radar")


async def test_merging_what_is_not_there_is_an_error(tmp_path: Path):
    sample = Sample(tmp_path, {}, {})
    merger = Merger(await sample.open())

    with pytest.raises(WorkspaceError, match="is not a tree"):
        await merger.merge3("main", "ours", "nowhere")
    with pytest.raises((WorkspaceError, GitFailed)):
        await merger.merge3("main", "ours", "--output=x")


@pytest.mark.parametrize("how", ["merge --no-ff -qm m", "merge --squash -q", "rebase -q"])
async def test_what_was_merged_squashed_or_rebased_is_contained(tmp_path: Path, how: str):
    sample = Sample(tmp_path, {"a": "0\n2\n3\n4\n5\n"}, {"b": "mine\n"})
    built = sample.built
    built.git("checkout", "-q", "-B", "target", "ours")
    if how.startswith("rebase"):
        built.git("checkout", "-q", "-B", "target", "theirs")
        built.git("rebase", "-q", "ours")
    else:
        built.git(*how.split(), "theirs")
        built.commit(say="squash")
    repo = await sample.open()
    merger = Merger(repo)

    assert await is_contained(repo, merger, ("main", "theirs"), "target")
    assert not await is_contained(repo, merger, ("main", "target"), "theirs")
    assert not await is_contained(repo, merger, ("main", "theirs"), "ours")
