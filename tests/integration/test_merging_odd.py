"""Odd merges, with `git merge` in a checkout as the oracle: the same conflicts, nothing lost."""

import os
import random
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.errors import GitFailed, WorkspaceError
from engine.git.runner import Repo
from engine.merge import (
    ConflictKind,
    FileConflict,
    FileResult,
    ResolutionSession,
    Whole,
    kind_named,
    options,
)
from engine.messages import commands as c
from engine.review.alone.own import OwnMerge
from engine.review.preview import Previewed, preview
from engine.review.results import result_tree
from tests.support.merge_oracle import ENVIRONMENT
from tests.support.odd_merges import put

pytestmark = [pytest.mark.anyio, pytest.mark.long]
HOW_MANY = 10_000 if os.environ.get("PLAIT_THOROUGH") else 60
AT_ONCE = 20
ODDEST = (3219, 3870, 7651)
"""Seeds of which git 2.39 dies, whose stand-in base has markers, and of a folder in the way."""
MOST_CHOICES = 3
MUST_OCCUR = frozenset(
    {
        ConflictKind.CONTENTS,
        ConflictKind.DIRECTORY_FILE,
        ConflictKind.DIRECTORY_RENAME,
        ConflictKind.DISTINCT_TYPES,
        ConflictKind.MODIFY_DELETE,
        ConflictKind.RENAME_ADD,
        ConflictKind.RENAME_DELETE,
        ConflictKind.RENAME_RENAME,
        ConflictKind.SUBMODULE,
    }
)
PLAIN_KINDS = frozenset(
    {
        ConflictKind.CONTENTS,
        ConflictKind.ADD_ADD,
        ConflictKind.BINARY,
        ConflictKind.MODIFY_DELETE,
        ConflictKind.MODE,
        ConflictKind.SYMLINK,
        ConflictKind.SUBMODULE,
        ConflictKind.EOL,
        ConflictKind.NO_NEWLINE,
    }
)
"""Kinds of which `git checkout --ours` leaves what "keep ours" does: one path, no other in it."""
_LABEL = re.compile(rb"^([<>|]{7,}) .*$", re.MULTILINE)
_REFUSED = re.compile("is not a valid tree|put different files at")
_BUGS_OF_GIT = (b"merge-ort.c:", b"cache entry has null sha1")
_INVENTED = re.compile(rb"~[^/]*")

Entry = tuple[str, bytes]
Stages = dict[tuple[bytes, int], Entry]


class Checkout:
    """A repository with many merges, and a working tree in which git makes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(
        self, *argv: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,), says_why: bool = False
    ) -> bytes:
        done = subprocess.run(
            ["git", *argv],
            cwd=self.folder,
            env=ENVIRONMENT,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode in ok, (argv, done.stdout, done.stderr)
        return done.stderr if says_why else done.stdout

    def merged(self, seed: int) -> Stages | None:
        """Return the index that `git merge` leaves; None where git dies of a bug of its own.

        The merge stays under way in the checkout. Marked text has no labels here.
        """
        self.git("update-ref", "-d", "MERGE_HEAD")
        self.git("read-tree", "--reset", f"{seed}/target")
        self.git("update-ref", "--no-deref", "HEAD", f"refs/heads/{seed}/target")
        self.git("checkout", "-q", "-f", "--detach", f"{seed}/target")
        self.git("clean", "-qfdx")
        merge = ("merge", "-q", "-m", "m", f"refs/heads/{seed}/incoming")
        said = self.git(*merge, ok=(0, 1, 128, -signal.SIGABRT), says_why=True)
        if any(bug in said for bug in _BUGS_OF_GIT):
            Path(self.folder, ".git", "index.lock").unlink(missing_ok=True)
            return None
        assert b"fatal:" not in said
        rows = [row for row in self.git("ls-files", "-s", "-z").split(b"\0") if row]
        split = [(*row.split(b"\t", 1)[0].split(), row.split(b"\t", 1)[1]) for row in rows]
        contents = self.contents([oid.decode() for mode, oid, _, _ in split])
        return {
            (plain_path(path), int(stage)): (mode.decode(), contents.get(oid.decode(), oid))
            for mode, oid, stage, path in split
        }

    def contents(self, oids: list[str]) -> dict[str, bytes]:
        """Return the bytes of these blobs, without the labels of markers; submodules have none."""
        asked = sorted(set(oids))
        stdin = "".join(f"{oid}\n" for oid in asked).encode()
        answer = self.git("cat-file", "--batch", stdin=stdin)
        found: dict[str, bytes] = {}
        at = 0
        for oid in asked:
            end = answer.index(b"\n", at)
            words = answer[at:end].split()
            at = end + 1
            if words[-1] != b"missing":
                size = int(words[2])
                found[oid] = _LABEL.sub(rb"\1", answer[at : at + size])
                at += size + 1
        return found

    def listing(self, tree: str) -> dict[bytes, Entry]:
        """Return every file of a tree."""
        rows = [row for row in self.git("ls-tree", "-r", "-z", tree).split(b"\0") if row]
        split = [(*row.split(b"\t", 1)[0].split(), row.split(b"\t", 1)[1]) for row in rows]
        contents = self.contents([oid.decode() for _, _, oid, _ in split])
        return {
            path: (mode.decode(), contents.get(oid.decode(), oid)) for mode, _, oid, path in split
        }


def plain_path(path: bytes) -> bytes:
    """Return a path without the words by which git keeps colliding files apart."""
    return _INVENTED.sub(b"~", path)


class Found(NamedTuple):
    """One merge: git's index, plait's reading of it, and what plait's tree has of it."""

    seed: int
    index: Stages | None
    made: Previewed
    tree: dict[bytes, Entry]


def stages_of(lab: Checkout, made: Previewed) -> Stages:
    """Return the conflicts that plait found, in the form of an index."""
    rows = {
        (one.path, number): stage
        for one in made.merged.conflicts
        for number, stage in enumerate((one.base, one.ours, one.theirs), 1)
        if stage is not None
    }
    contents = lab.contents([stage.oid for stage in rows.values()])
    return {
        (plain_path(path), number): (stage.mode, contents.get(stage.oid, stage.oid.encode()))
        for (path, number), stage in rows.items()
    }


def same_as_git(lab: Checkout, found: Found) -> None:
    """Hold the conflicts, and every path without one, against git's."""
    if found.index is None:
        return
    open_ = {key: entry for key, entry in found.index.items() if key[1]}
    assert stages_of(lab, found.made) == open_
    clean = {path: entry for (path, stage), entry in found.index.items() if not stage}
    conflicted = {one.path for one in found.made.merged.conflicts}
    mine = {plain_path(path): entry for path, entry in found.tree.items() if path not in conflicted}
    assert mine == clean
    if open_:
        assert found.made.conflicts.files
    bases = [one.base for one in found.made.conflicts.files if one.base]
    told = {
        (one.mode, one.blob.encode() if one.content is None else _LABEL.sub(rb"\1", one.content))
        for one in bases
    }
    assert told.issuperset(entry for (_, stage), entry in open_.items() if stage == 1)


def decided(made: Previewed, choice: Whole) -> ResolutionSession:
    session = ResolutionSession(made.conflicts.files)
    for one in made.conflicts.files:
        session = session.choose_whole(one.path, choice)
    return session


def belongings(made: Previewed) -> set[bytes]:
    """Return the paths that a choice may take away: those in conflict, and what lies below them."""
    below = {path for one in made.conflicts.files for path in (one.path, *one.below)}
    return below | {one.path for one in made.merged.conflicts} | set(made.conflicts.invented)


def keeps_what_is_clean(
    found: Found, after: Mapping[bytes, Entry], told: object, *, but: bytes | None = None
) -> None:
    for path in found.tree.keys() - belongings(found.made) - {but}:
        assert after.get(path) == found.tree[path], (told, path, "had no conflict")


def own_at(made: Previewed, choice: Whole, path: bytes) -> set[Entry]:
    """Return a side's versions that plait reads at a path."""
    sides = (one.target if choice is Whole.TARGET else one.incoming for one in made.conflicts.files)
    return {
        (one.mode, one.content or b"")
        for one in sides
        if one and one.path == path.removesuffix(b"~")
    }


async def keeps_a_side(
    lab: Checkout, repo: Repo, found: Found, choice: Whole
) -> dict[bytes, Entry]:
    """Decide all for one side: all of its versions are there, and all that had no conflict."""
    made = found.made
    results = decided(made, choice).results()
    assert results is not None
    after = lab.listing(await result_tree(repo, made.merged, made.conflicts, results))
    keeps_what_is_clean(found, after, choice)
    leaves_nothing_of_gits_own(found, after, choice)
    number, tree = (2, made.sides.ours) if choice is Whole.TARGET else (3, made.sides.theirs)
    versions = lab.listing(tree)
    for (path, stage), entry in stages_of(lab, made).items():
        if stage == number:
            # Git may have merged the version with another one; then the side's own is meant.
            own = {entry, versions.get(path, entry), *own_at(made, choice, path)}
            assert own.intersection(after.values()), (choice, path, "the version is lost")
    staged = {path for path, _ in stages_of(lab, made)}
    # Git may lose a version where a moved file meets another, with a message and without a stage.
    is_as_staged = all(is_plain(one) and one.path in staged for one in made.conflicts.files)
    if found.index is not None and is_as_staged:
        git = {path: entry for (path, stage), entry in found.index.items() if stage in (0, number)}
        assert {plain_path(path): entry for path, entry in after.items()} == git, choice
    return after


def is_plain(one: FileConflict) -> bool:
    return one.kind in PLAIN_KINDS and not one.held


def leaves_nothing_of_gits_own(found: Found, after: Mapping[bytes, Entry], told: object) -> None:
    """Find no path in a result that git made up, and no marker."""
    assert not after.keys() & set(found.made.conflicts.invented), told
    assert [path for path, (_, content) in after.items() if b"<<<<<<<" in content] == [], told


async def keeps_what_it_says(
    lab: Checkout, repo: Repo, found: Found, before: Mapping[bytes, Entry]
) -> None:
    """Take some of the choices that are offered, each with all else decided for the target."""
    made = found.made
    every = [(one, offered) for one in made.conflicts.files for offered in options(one)]
    for one, offered in random.Random(found.seed).sample(every, min(len(every), MOST_CHOICES)):
        session = decided(made, Whole.TARGET).choose_whole(one.path, offered.choice)
        try:
            results = session.results()
            assert results is not None
            tree = await result_tree(repo, made.merged, made.conflicts, results)
        except WorkspaceError as refused:
            assert _REFUSED.search(str(refused))  # noqa: PT017 - most are no error
            continue
        after = lab.listing(tree)
        moved = one.moved_to.path if one.moved_to and offered.choice is Whole.MOVE else None
        keeps_what_is_clean(found, after, (one.path, offered.choice), but=moved)
        leaves_nothing_of_gits_own(found, after, (one.path, offered.choice))
        changed = {
            path for path in after.keys() | before.keys() if after.get(path) != before.get(path)
        }
        assert changed <= {moved, *places_of(one)}, (one.path, offered.choice, "is not of it")
        for result in session.file_results(one.path) or ():
            told(after, result, offered.label)


def places_of(one: FileConflict) -> set[bytes]:
    """Return the paths that a decision about one conflict may change."""
    sides = (side.path for side in (one.base, one.target, one.incoming) if side)
    free = {one.free_path} if one.free_path else set[bytes]()
    return {one.path, *sides, *one.below} | free


async def is_the_same_in_the_checkout(
    lab: Checkout, found: Found, want: Mapping[bytes, Entry]
) -> None:
    """Decide the merge that is under way there for the incoming side."""
    if found.index is None or not any(stage for _, stage in found.index):
        return
    own = await OwnMerge.begin(lab.folder, ENVIRONMENT)
    for one in found.made.conflicts.files:
        await own.resolve(c.ChooseWhole(path=os.fsdecode(one.path), choice="incoming"))
    await own.resolve(c.FinishResolving())
    assert lab.git("ls-files", "-u") == b""
    after = lab.listing(lab.git("write-tree").decode().strip())
    plain = ({plain_path(path): entry for path, entry in tree.items()} for tree in (after, want))
    assert next(plain) == next(plain), "the user's own merge came to another tree"


def told(after: Mapping[bytes, Entry], result: FileResult, label: str) -> None:
    if result.mode is not None:
        assert result.path in after, label
        assert after[result.path][0] == result.mode, label


@pytest.mark.parametrize("first", range(0, HOW_MANY, AT_ONCE))
async def test_odd_merges_are_those_of_git_and_lose_nothing(tmp_path: Path, first: int):
    wrong = await differences(tmp_path / "repo", range(first, first + AT_ONCE))
    assert not wrong, f"{len(wrong)} of {AT_ONCE}:\n" + "\n".join(wrong)


async def test_the_oddest_of_them_are_too(tmp_path: Path):
    assert await differences(tmp_path / "repo", ODDEST) == []


async def differences(folder: Path, seeds: Sequence[int]) -> list[str]:
    """Return in words where plait differs from git in the merges of these seeds."""
    put(folder, seeds)
    lab = Checkout(folder)
    repo = await Repo.open(lab.folder, ENVIRONMENT)
    wrong: list[str] = []
    for seed in seeds:
        index = lab.merged(seed)
        made = await preview(repo, f"{seed}/target", f"{seed}/incoming")
        found = Found(seed, index, made, lab.listing(made.merged.tree))
        try:
            same_as_git(lab, found)
            if not made.is_clean:
                mine = await keeps_a_side(lab, repo, found, Whole.TARGET)
                theirs = await keeps_a_side(lab, repo, found, Whole.INCOMING)
                await keeps_what_it_says(lab, repo, found, mine)
                if seed % 2:
                    await is_the_same_in_the_checkout(lab, found, theirs)
        except GitFailed as error:
            # A tree in which a bug of git's left no object for a path can be read by no git.
            assert index is None, error  # noqa: PT017 - it is about the merge
        except (AssertionError, WorkspaceError) as error:
            wrong.append(f"{seed}: {type(error).__name__} {str(error)[:600]}")
    return wrong


def test_odd_merges_are_of_every_kind_and_every_third_has_several_bases(tmp_path: Path):
    """A generator that runs dry would prove nothing."""
    put(tmp_path / "repo", range(60))
    lab = Checkout(tmp_path / "repo")
    pairs = "".join(f"{seed}/target {seed}/incoming\n" for seed in range(60)).encode()
    said = lab.git("merge-tree", "--write-tree", "--messages", "-z", "--stdin", stdin=pairs)
    kinds = {kind_named(word.decode()) for word in re.findall(rb"(CONFLICT \([^)]*\))\0", said)}
    assert kinds >= MUST_OCCUR
    bases = {
        len(lab.git("merge-base", "--all", f"{seed}/target", f"{seed}/incoming").split())
        for seed in range(0, 60, 3)
    }
    assert bases == {2, 3}
