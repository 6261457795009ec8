"""Conflicts read from git, of every kind, with their own paths and versions; then their results."""

import io
from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.git.merge3 import MergedTrees, Merger
from engine.git.runner import Repo
from engine.merge import (
    ConflictKind,
    FileConflict,
    FilePlace,
    ResolutionSession,
    SideNames,
    Whole,
    options,
)
from engine.review.conflicts import Conflicts, read_conflicts
from engine.review.preview import OpenMerge, open_merge, preview
from engine.review.results import result_tree
from tests.support.merge_oracle import ENVIRONMENT, Trees
from tests.support.merge_stories import OTHER, STORIES, TEXT, Story, Tree, file, random_trees
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


def _commit(branch: bytes, tree: Tree) -> bytes:
    """A branch of one commit for `fast-import`; but the first has no parent, the others its."""
    head = b"commit refs/heads/%s\ncommitter a <a@x> 1700000000 +0000\ndata 0\n" % branch
    parent = b"" if branch == b"base" else b"from refs/heads/base\n"
    rows = [b"deleteall\n"]
    for path, (mode, content) in tree.items():
        name = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
        if mode == "160000":
            rows.append(b"M 160000 %s %s\n" % (content, name))
        else:
            rows.append(
                b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), name, len(content), content)
            )
    return head + parent + b"".join(rows) + b"\n"


class Lab:
    """Three trees as branches of a repository, and git's own merge of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.trees = Trees(folder)
        self.trees.git("init", "-q", "-b", "main")

    def put(self, base: Tree, target: Tree, incoming: Tree) -> None:
        """All three as commits by one process: the sides are children of the base."""
        stream = b"".join(
            _commit(branch, tree)
            for branch, tree in ((b"base", base), (b"target", target), (b"incoming", incoming))
        )
        self.trees.git("fast-import", "--quiet", "--force", stdin=stream)

    async def repo(self) -> Repo:
        return await Repo.open(self.trees.folder, ENVIRONMENT)

    def listing(self, tree: str) -> dict[bytes, tuple[str, bytes]]:
        """Every file of a tree: mode and content, or a submodule's commit."""
        records = [r for r in self.trees.git("ls-tree", "-r", "-z", tree).split(b"\0") if r]
        heads = {path: head.split() for head, path in (r.split(b"\t", 1) for r in records)}
        blobs = [oid for _, kind, oid in heads.values() if kind == b"blob"]
        told = io.BytesIO(self.trees.git("cat-file", "--batch", stdin=b"\n".join(blobs) + b"\n"))
        contents = {oid: told.read(int(told.readline().split()[2]) + 1)[:-1] for oid in blobs}
        return {
            path: (mode.decode(), contents.get(oid, oid)) for path, (mode, _, oid) in heads.items()
        }

    def unmerged(self) -> set[bytes]:
        """Return what `git merge` leaves unmerged in a checkout of the target."""
        self.trees.git("checkout", "-q", "-f", "--detach", "target")
        self.trees.git("merge", "-q", "-m", "m", "incoming")
        listing = self.trees.git("ls-files", "-u", "-z").split(b"\0")
        found = {record.split(b"\t", 1)[1] for record in listing if record}
        self.trees.git("reset", "-q", "--hard")
        self.trees.git("clean", "-qfd")
        return found


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("conflicts"))


async def conflicts_of(lab: Lab, story: Story) -> Conflicts:
    lab.put(story.base, story.target, story.incoming)
    return (await preview(await lab.repo(), "target", "incoming")).conflicts


@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
async def test_every_kind_is_read_with_its_own_path(lab: Lab, story: Story):
    found = await conflicts_of(lab, story)
    assert {one.path: one.kind for one in found.files} == story.kinds
    assert all(b"~" not in one.path for one in found.files)
    for one in found.files:
        for side, tree in (("base", story.base), ("target", story.target)):
            version = getattr(one, side)
            if version is not None and version.content is not None:
                own = tree.get(version.path, (version.mode, version.content))
                assert (version.mode, version.content) == own, side
                assert own in tree.values(), side


@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
async def test_every_offered_choice_leaves_exactly_what_it_says(lab: Lab, story: Story):
    lab.put(story.base, story.target, story.incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    for number, conflict in enumerate(made.conflicts.files):
        for offered in options(conflict):
            session = decided(made.conflicts.files, skip=number)
            session = session.choose_whole(conflict.path, offered.choice)
            results = session.results()
            assert results is not None
            tree = await result_tree(repo, made.merged, made.conflicts, results)
            files = lab.listing(tree)
            for one in results:
                assert (one.path in files) is (one.mode is not None), (offered, one.path)
                if one.content is not None and one.mode is not None:
                    assert files[one.path] == (one.mode, one.content)
            assert not any(b"~" in path or b"<<<<<<<" in files[path][1] for path in files)


def decided(files: tuple[FileConflict, ...], *, skip: int = -1) -> ResolutionSession:
    """Every conflict but one decided for the target, in the plainest way it can be."""
    session = ResolutionSession(files)
    for number, one in enumerate(files):
        if number == skip:
            continue
        if one.open.whole:
            session = session.choose_whole(one.path, Whole.TARGET)
        if one.open.place:
            session = session.choose_place(one.path, FilePlace.TARGET)
        if one.open.mode:
            session = session.choose_mode(one.path, "100755")
    return session.choose_rest("target")


async def test_both_names_of_a_file_moved_twice_come_with_both_texts(lab: Lab):
    story = next(story for story in STORIES if story.name == "rename/rename")
    (one,) = (await conflicts_of(lab, story)).files
    assert one.target is not None
    assert one.incoming is not None
    assert (one.target.path, one.target.content) == (b"g", TEXT + b"t\n")
    assert (one.incoming.path, one.incoming.content) == (b"h", TEXT + b"i\n")
    assert len(one.hunks) == 1


@pytest.mark.parametrize("choice", ["target", "incoming", "base"])
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a link where a moved file was", b"f"),
        ("a folder where a moved file was", b"f/in"),
        ("directory split", b"d/new"),
    ],
)
async def test_no_choice_takes_away_what_the_merge_has_at_an_old_name(
    lab: Lab, name: str, path: bytes, choice: str
):
    story = next(story for story in STORIES if story.name == name)
    lab.put(story.base, story.target, story.incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    (one,) = made.conflicts.files
    offered = {option.choice for option in options(one)}
    choice = choice if choice in offered else "incoming"
    results = ResolutionSession(made.conflicts.files).choose_whole(one.path, choice).results()
    tree = lab.listing(await result_tree(repo, made.merged, made.conflicts, results or ()))
    assert tree[path] == {**story.target, **story.incoming}[path]


async def test_two_files_that_a_moved_folder_brought_together_can_stay_apart(lab: Lab):
    story = next(story for story in STORIES if story.name.startswith("a file in the way"))
    lab.put(story.base, story.target, story.incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    results = ResolutionSession(made.conflicts.files).choose_whole(b"e/new", "both").results()
    tree = lab.listing(await result_tree(repo, made.merged, made.conflicts, results or ()))
    assert (tree[b"e/new"], tree[b"d/new"]) == (file(b"t\n"), file(b"i\n"))


async def test_a_moved_file_that_moved_along_with_a_folder_is_not_lost(lab: Lab):
    story = next(story for story in STORIES if story.name.startswith("rename/rename into"))
    lab.put(story.base, story.target, story.incoming)
    (one,) = (await preview(await lab.repo(), "target", "incoming")).conflicts.files
    assert one.target is not None
    assert one.incoming is not None
    assert (one.target.path, one.target.content) == (b"e/f", TEXT + OTHER + b"t\n")
    assert (one.incoming.path, one.incoming.content) == (b"h", TEXT + OTHER + b"i\n")


async def test_decisions_that_want_a_file_and_a_folder_in_one_place_are_refused(lab: Lab):
    lab.put(STORIES[0].base, STORIES[0].target, STORIES[0].incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    session = ResolutionSession(made.conflicts.files).choose_rest("target")
    for path in (b"f/below", b"g"):
        session = session.set_file(path, b"1\n")
    with pytest.raises(WorkspaceError, match="f is a file, but f/below needs it"):
        await result_tree(repo, made.merged, made.conflicts, session.results() or ())


async def test_a_moved_file_is_known_by_both_its_names(lab: Lab):
    story = next(story for story in STORIES if story.name == "renamed and changed")
    (one,) = (await conflicts_of(lab, story)).files
    assert one.target is not None
    assert one.incoming is not None
    assert one.base is not None
    names = (one.base.path, one.target.path, one.incoming.path)
    assert names == (b"f", b"g", b"f")


async def test_the_files_below_and_a_free_path_are_named(lab: Lab):
    story = next(story for story in STORIES if story.name == "file against directory")
    (one,) = (await conflicts_of(lab, story)).files
    assert one.below == (b"d/f", b"d/g")
    assert one.free_path == b"d.incoming"


async def test_a_free_path_is_one_that_no_tree_uses(lab: Lab):
    base = {b"x": file(b"x\n"), b"pic.incoming.png": file(b"taken\n")}
    target = {**base, b"pic.png": file(b"\0t"), b"pic.incoming-2.png/y": file(b"y\n")}
    lab.put(base, target, {**base, b"pic.png": file(b"\0i")})
    (one,) = (await preview(await lab.repo(), "target", "incoming")).conflicts.files
    assert one.free_path == b"pic.incoming-3.png"


async def test_the_text_of_a_deleted_file_is_found_where_it_went(lab: Lab):
    rest = b"".join(b"what was there before %d\n" % number for number in range(60))
    base = {b"f": file(TEXT), b"all": file(rest)}
    target = {b"all": file(rest + TEXT)}
    incoming = {b"f": file(TEXT.replace(b"line 3", b"line three")), b"all": file(rest)}
    lab.put(base, target, incoming)
    made = await preview(await lab.repo(), "target", "incoming")
    (one,) = made.conflicts.files
    assert one.kind is ConflictKind.MODIFY_DELETE
    assert one.moved_to is not None
    assert one.moved_to.path == b"all"


async def test_the_text_of_a_deleted_file_is_not_found_where_it_did_not_go(lab: Lab):
    base = {b"f": file(TEXT), b"all": file(b"a\n")}
    target = {b"all": file(b"a\nline 0\nsomething else\n")}
    lab.put(base, target, {**base, b"f": file(TEXT + b"i\n")})
    (one,) = (await preview(await lab.repo(), "target", "incoming")).conflicts.files
    assert one.moved_to is None


@pytest.mark.parametrize("seed", range(16))
async def test_clean_trees_and_conflicts_are_those_of_git(lab: Lab, seed: int):
    base, target, incoming = random_trees(seed)
    lab.put(base, target, incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    answer = lab.trees.git("merge-tree", "--write-tree", "-z", "target", "incoming")
    is_clean = lab.trees.git("merge-tree", "--write-tree", "target", "incoming").count(b"\n") == 1
    assert made.is_clean is is_clean
    if is_clean:
        assert made.merged.tree == answer.split(b"\0")[0].decode()
        return
    assert {one.path for one in made.merged.conflicts} == lab.unmerged()
    results = decided(made.conflicts.files).results()
    assert results is not None
    files = lab.listing(await result_tree(repo, made.merged, made.conflicts, results))
    theirs = lab.listing(answer.split(b"\0")[0].decode())
    touched = {one.path for one in results} | {one.path for one in made.merged.conflicts}
    for path in (files.keys() | theirs.keys()) - touched:
        assert files[path] == theirs[path], "a clean part differs from git's"
    assert not any(b"<<<<<<<" in content for _, content in files.values())


def test_open_merge_reads_and_writes_without_a_loop(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("checkout", "-q", "-b", "feature")
    built.commit({"src/a.py": "a = 1\nb = 3\nc = 3\n"}, "theirs")
    built.git("checkout", "-q", "main")
    built.commit({"src/a.py": "a = 1\nb = 4\nc = 3\n"}, "mine")
    before = built.git("for-each-ref"), built.status(), built.head
    environment = built.environment

    merge = open_merge(built.path, target="main", incoming="feature", environment=environment)
    (conflict,) = merge.conflicts
    assert (conflict.path, conflict.kind) == (b"src/a.py", ConflictKind.CONTENTS)
    assert len(conflict.hunks) == len(conflict.proposals) == 1
    with pytest.raises(WorkspaceError, match=r"src/a\.py"):
        merge.tree()
    merge.choose(conflict.path, 0, "both")
    assert merge.is_resolved
    merge.undo()
    assert not merge.is_resolved
    merge.redo()
    merge.set_file(b"NOTES", b"merged\n")
    tree = merge.tree()

    assert built.show(tree, "src/a.py") == b"a = 1\nb = 4\nb = 3\nc = 3\n"
    assert built.show(tree, "NOTES") == b"merged\n"
    assert built.show(tree, "README.md") == built.show("main", "README.md")
    assert (built.git("for-each-ref"), built.status(), built.head) == before


async def test_open_merge_works_beside_a_loop_that_runs(tmp_path: Path):
    lab = Lab(tmp_path / "repo")
    lab.put(STORIES[0].base, STORIES[0].target, STORIES[0].incoming)
    merge = await OpenMerge.begin(
        lab.trees.folder, target="target", incoming="incoming", environment=ENVIRONMENT
    )
    merge.choose(b"f", 0, b"mine\n")
    tree = await merge.write_tree()
    assert lab.listing(tree)[b"f"][1] == TEXT + b"mine\n"


async def test_histories_with_nothing_in_common_are_refused_in_words(lab: Lab):
    one, other = lab.trees.commit({b"a": file(b"a\n")}), lab.trees.commit({b"b": file(b"b\n")})
    with pytest.raises(WorkspaceError, match="no commit in common"):
        await preview(await lab.repo(), one, other)


async def test_crossed_histories_are_merged_from_all_their_ancestors(lab: Lab):
    """Either ancestor alone as the base would make a conflict of what both sides agreed on."""
    root = lab.trees.commit({b"f": file(TEXT)})
    first = TEXT.replace(b"line 2\n", b"line two\n")
    second = TEXT.replace(b"line 9\n", b"line nine\n")
    both = first.replace(b"line 9\n", b"line nine\n")
    a = lab.trees.commit({b"f": file(first)}, root)
    b = lab.trees.commit({b"f": file(second)}, root)
    crossed = [lab.trees.commit({b"f": file(both)}, *pair) for pair in ((a, b), (b, a))]
    mine = lab.trees.commit({b"f": file(both.replace(b"line two", b"line TWO"))}, crossed[0])
    theirs = lab.trees.commit({b"f": file(both.replace(b"line nine", b"line NINE"))}, crossed[1])
    made = await preview(await lab.repo(), mine, theirs)
    assert made.is_clean
    git = lab.trees.git("merge-tree", "--write-tree", mine, theirs).decode().strip()
    assert made.merged.tree == git


async def test_crossed_histories_have_the_conflicts_of_git(lab: Lab):
    """A conflict that both resolved before is no base: one took the change, the other deleted."""
    x = {b"x": file(b"x\n")}
    root = lab.trees.commit({**x, b"f": file(TEXT)})
    a, b = lab.trees.commit({**x, b"f": file(TEXT + b"t\n")}, root), lab.trees.commit(x, root)
    mine = lab.trees.commit({**x, b"f": file(TEXT + b"t\n")}, a, b)
    theirs = lab.trees.commit(x, b, a)
    made = await preview(await lab.repo(), mine, theirs)
    assert [(one.path, one.kind) for one in made.conflicts.files] == [
        (b"f", ConflictKind.MODIFY_DELETE)
    ]


async def test_a_base_that_git_made_with_markers_in_it_is_nobodys_choice(lab: Lab):
    """Two ancestors that conflict leave marked text as the base: once text, once a deleted file."""
    lines = [TEXT.replace(b"line 2\n", b"line %d of %s\n" % (2, who)) for who in (b"a", b"b")]
    root = lab.trees.commit({b"f": file(TEXT), b"g": file(TEXT)})
    a, b = (lab.trees.commit({b"f": file(text), b"g": file(text)}, root) for text in lines)
    mine = lab.trees.commit({b"f": file(lines[0] + b"mine\n"), b"g": file(lines[0])}, a, b)
    theirs = lab.trees.commit({b"f": file(lines[1] + b"theirs\n")}, b, a)
    made = await preview(await lab.repo(), mine, theirs)
    text, deleted = made.conflicts.files
    assert (text.kind, deleted.kind) == (ConflictKind.CONTENTS, ConflictKind.MODIFY_DELETE)
    for one in (text, deleted):
        assert one.base is not None
        assert b"<<<<<<<<< " in (one.base.content or b"")
        assert Whole.BASE not in {option.choice for option in options(one)}
    session = ResolutionSession(made.conflicts.files)
    assert len(session.open_hunks(b"f")) == len(text.hunks) > 0
    with pytest.raises(ValueError, match="git merged it from several"):
        session.choose(b"f", 0, "base")
    assert session.choose_rest("base") == session


async def test_a_result_may_not_hold_a_path_that_reaches_into_git(lab: Lab):
    lab.put(STORIES[0].base, STORIES[0].target, STORIES[0].incoming)
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    session = ResolutionSession(made.conflicts.files).choose_rest("target")
    session = session.set_file(b".git/hooks/pre-commit", b"#!/bin/sh\n")
    with pytest.raises(WorkspaceError, match="git refuses"):
        await result_tree(repo, made.merged, made.conflicts, session.results() or ())


async def test_a_clean_merge_has_no_conflicts_to_read(lab: Lab):
    base: Tree = {b"f": file(TEXT)}
    lab.put(base, {b"f": file(b"top\n" + TEXT)}, {b"f": file(TEXT + b"end\n")})
    repo = await lab.repo()
    made = await preview(repo, "target", "incoming")
    assert made.is_clean
    again = await read_conflicts(repo, made.merged, made.sides, SideNames("target", "incoming"))
    assert again.files == ()


async def test_the_advice_that_git_gives_about_submodules_is_no_part_of_a_batch(lab: Lab):
    story = next(story for story in STORIES if story.name == "submodule")
    lab.put(story.base, story.target, story.incoming)
    repo = await lab.repo()
    sides = (await preview(repo, "target", "incoming")).sides
    first, second = await Merger(repo).preview([sides, sides])
    assert isinstance(first, MergedTrees)
    assert first == second
