"""A try and the way back change nothing, whatever a checkout holds and a result changes."""

import os
import random
import stat
from pathlib import Path

import pytest

from engine.review.trying import TakenBack, put_on, take_back
from tests.support.checkouts import opened, picture, result_of, told
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
NO_FILES = {"INDEX", "HEAD", "BRANCHES"}
SEEDS = range(300 if os.environ.get("PLAIT_THOROUGH") else 8)
NAMES = ["a", "b", "a/b", "a/c", "b/a/c", "d e", "ü", "d e/x", "q\n", "z.log", "b/z.log", "é/é"]


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        for inner in place.iterdir():
            remove(inner)
        place.rmdir()
    else:
        place.unlink(missing_ok=True)


def make_way(root: Path, place: Path) -> None:
    """Remove what stands at a place or where its folders are to be."""
    for parent in reversed(place.relative_to(root).parents):
        above = root / parent
        if above.is_symlink() or above.is_file():
            above.unlink()
    remove(place)
    place.parent.mkdir(parents=True, exist_ok=True)


def scribble(dice: random.Random, root: Path, times: int) -> None:
    """Write, link, remove and change modes at random; what is in the way goes."""
    for _ in range(times):
        place, deed = root / dice.choice(NAMES), dice.randrange(8)
        if deed == 1 and place.is_file():
            place.chmod(dice.choice([0o644, 0o755, 0o600, 0o700]))
            continue
        make_way(root, place)
        if deed == 2:
            place.symlink_to(dice.choice(["a", "b/a", "../x", "nowhere"]))
        elif deed == 3:
            place.mkdir(mode=dice.choice([0o755, 0o700]))
        elif deed:
            place.write_bytes(dice.randbytes(dice.choice([0, 3, 9])))
            place.chmod(dice.choice([0o644, 0o644, 0o644, 0o755]))


def conflict(dice: random.Random, built: RepositoryBuilder) -> None:
    """Leave a path open in the index, as a merge does."""
    blob = built.git("hash-object", "-w", "--stdin", stdin=dice.randbytes(4))
    lines = "".join(f"100644 {blob} {stage}\tb\n" for stage in (1, 2, 3))
    built.git("update-index", "--force-remove", "b")
    built.try_git("update-index", "--index-info", stdin=lines.encode())


def random_place(dice: random.Random, folder: Path) -> tuple[RepositoryBuilder, str]:
    """A checkout with random edits, and the tree of a random result."""
    built = RepositoryBuilder(folder / "repo")
    built.commit({".gitignore": "*.log\n"}, "start")
    scribble(dice, built.path, 12)
    built.commit(say="base")
    built.git("checkout", "-q", "-b", "work")
    scribble(dice, built.path, 8)
    tree = built.git("rev-parse", f"{built.commit(say='work')}^{{tree}}")
    built.git("checkout", "-q", "-f", "main")
    scribble(dice, built.path, dice.randrange(6))
    if dice.random() < 0.7:
        built.git("add", "-A")
    if dice.random() < 0.4:
        conflict(dice, built)
    scribble(dice, built.path, dice.randrange(6))
    return built, tree


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_try_and_the_way_back_change_nothing(tmp_path: Path, seed: int):
    built, tree = random_place(random.Random(seed), tmp_path)
    seen, before = told(built), picture(built)
    repo = await opened(built)

    await put_on(repo, result_of(built, tree), now=1.0)
    for line in built.git_bytes("ls-tree", "-r", "-z", tree).split(b"\0"):
        if line:
            head, path = line.split(b"\t", 1)
            mode, _, oid = head.decode().split(" ")
            assert_holds(built, path, mode, oid)
    done = await take_back(repo)

    assert done is not None
    assert (done.edited, done.staged) == ((), "")
    assert picture(built) == before
    assert told(built) == seen


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_that_is_written_while_trying_is_lost(tmp_path: Path, seed: int):
    dice = random.Random(seed)
    built, tree = random_place(dice, tmp_path)
    before = picture(built)
    repo = await opened(built)

    trial, _ = await put_on(repo, result_of(built, tree), now=1.0)
    tried = picture(built)
    scribble(dice, built.path, 6)
    if dice.random() < 0.5:
        built.git("add", "-A")
    during = picture(built)
    done = await take_back(repo)
    after = picture(built)

    assert done is not None
    touched = {os.fsdecode(one.path) for one in trial.shifts if one.before.is_leaf}
    assert {name: after.get(name) for name in touched} == {name: before[name] for name in touched}
    assert after["INDEX"] == before["INDEX"]
    news = {
        name: what
        for name, what in during.items()
        if what not in (tried.get(name), before.get(name), after.get(name))
    }
    assert_kept(built, done, {name: what for name, what in news.items() if name not in NO_FILES})


def assert_kept(built: RepositoryBuilder, done: TakenBack, files: dict[str, object]) -> None:
    """Hold that each file or link that is gone again is kept as it was, twice."""
    for name, what in files.items():
        if isinstance(what, tuple) and not isinstance(what[0], tuple):
            continue  # a folder
        assert os.fsencode(name) in done.edited
        copy = Path(done.copies, name)
        kept = os.fsencode(copy.readlink()) if copy.is_symlink() else copy.read_bytes()
        assert kept == (what[1] if isinstance(what, tuple) else what)
        assert built.git_bytes("cat-file", "blob", f"{done.ref}:{name}") == kept


def assert_holds(built: RepositoryBuilder, path: bytes, mode: str, oid: str) -> None:
    """Hold that the checkout has this file of the result, or one that the result leaves alone."""
    place = built.path / os.fsdecode(path)
    main = built.git_bytes("ls-tree", "-z", "main", "--", os.fsdecode(path)).split(b"\t")[0]
    if main.decode() == f"{mode} blob {oid}":
        return  # not of the result: own edits stay
    content = os.fsencode(place.readlink()) if mode == "120000" else place.read_bytes()
    assert built.git("hash-object", "--stdin", stdin=content) == oid
    if mode != "120000":
        assert bool(place.stat().st_mode & stat.S_IXUSR) == (mode == "100755")
