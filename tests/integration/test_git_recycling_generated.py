"""Agents that move, swap, link and delete anything: what is lent is as git itself makes it."""

import ctypes
import mmap
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread

from engine.beneath import Parting
from engine.git import recycling
from engine.git.removal import RemovalVerdict
from engine.git.workspace import Workspace
from engine.site.trash import bring_back, discard, lend, trash_items
from engine.store.layout import Layout
from tests.support.git_lab import Lab
from tests.support.needs import WITH_OWN_MOUNTS
from tests.support.repositories import RepositoryBuilder

pytestmark = [pytest.mark.anyio, pytest.mark.needs("disk")]

SEEDS = range(300 if os.environ.get("PLAIT_THOROUGH") else 6)
BASES = ("HEAD", "HEAD~1", "HEAD~2")
NAMES = ("a", "b", "c", "same", "other", "new")
EXCHANGE, HERE = 2, -100


def files_of(generation: int) -> dict[str, str]:
    """Folders that hold files of the same names, some of them alike in every commit."""
    folders = ("a", "b", "c", "a/b", "b/a", "c/a/b")
    return {
        f"{folder}/{name}": f"{folder} {name} {generation if name == 'other' else ''}\n"
        for folder in folders
        for name in ("same", "other", f"of{generation}")
    }


class Hands:
    """Deeds of an agent on the files in a folder, by random; one that fails is left."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root, self.dice = root, dice
        own = [getattr(self, name) for name in sorted(vars(Hands)) if not name.startswith("_")]
        self._deeds: list[Callable[[], object]] = own

    def _live(self, deeds: int) -> None:
        for _ in range(deeds):
            with suppress(OSError, subprocess.CalledProcessError, shutil.Error):
                self.dice.choice(self._deeds)()

    def _one(self, *, of: Callable[[Path], bool] = os.path.lexists) -> Path:
        walk = os.walk(self.root)
        there = (Path(at, name) for at, inner, names in walk for name in (*inner, *names))
        found = sorted(one for one in there if ".git" not in one.parts and of(one))
        if not found:
            raise FileNotFoundError
        return self.dice.choice(found)

    def _file(self) -> Path:
        return self._one(of=lambda path: path.is_file() and not path.is_symlink())

    def _folder(self) -> Path:
        return self._one(of=lambda path: path.is_dir() and not path.is_symlink())

    def _place(self) -> Path:
        return self.dice.choice([self.root, self._folder()]) / self.dice.choice(NAMES)

    def move(self) -> None:
        self._one().rename(self._place())

    def move_folder(self) -> None:
        source, target = self._folder(), self._folder()
        if target not in (source, *source.parents):
            shutil.rmtree(target)
            source.rename(target)

    def swap(self) -> None:
        one, other, aside = self._one(), self._one(), self.root / "aside"
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def swap_folders(self) -> None:
        one, other, aside = self._folder(), self._folder(), self.root / "aside"
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def exchange(self) -> None:
        libc = ctypes.CDLL(None)
        one, other = os.fsencode(self._one()), os.fsencode(self._one())
        libc.renameat2(HERE, one, HERE, other, EXCHANGE)

    def link(self) -> None:
        place = self._place()
        place.hardlink_to(self._file())

    def link_and_drop(self) -> None:
        source, place = self._file(), self._place()
        place.hardlink_to(source)
        source.unlink()

    def point(self) -> None:
        self._place().symlink_to(self._one())

    def replace_by_link(self) -> None:
        folder, aside = self._folder(), self._place()
        folder.rename(aside)
        folder.symlink_to(aside)

    def mode(self) -> None:
        self._file().chmod(self.dice.choice([0o644, 0o755, 0o777, 0o700, 0o640]))

    def close(self) -> None:
        self._folder().chmod(self.dice.choice([0o555, 0o500, 0o777]))

    def write(self) -> None:
        self._place().write_text("new\n")

    def edit(self) -> None:
        """Change a file and keep its size and its own times."""
        path = self._file()
        seen = path.stat()
        path.write_bytes(path.read_bytes()[::-1])
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    def copy_over(self) -> None:
        source, target = self._file(), self._file()
        shutil.copy2(source, target)

    def map(self) -> None:
        with self._file().open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
            mapped[0:1] = b"#"

    def remove(self) -> None:
        self._file().unlink()

    def remove_folder(self) -> None:
        shutil.rmtree(self._folder())

    def make_folder(self) -> None:
        self._place().mkdir()

    def pipe(self) -> None:
        os.mkfifo(self._place())

    def mark(self) -> None:
        os.setxattr(self._one(), "user.mark", b"1")

    def mount(self) -> None:
        """Work on a folder under the name of another, as in a sandbox of its own."""
        script = 'mount --bind "$1" "$2"; cd "$2"; mv same t; mv other same; mkdir -p a; mv t a'
        folders = (str(self._folder()), str(self._folder()))
        words = [*WITH_OWN_MOUNTS, "sh", "-ec", script, "sh", *folders]
        subprocess.run(words, check=True, capture_output=True, timeout=30)


def listing(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every entry of a tree with its mode and content; `.git` aside."""
    found = {}
    for at, folders, names in os.walk(root):
        for path in (Path(at, name) for name in (*folders, *names)):
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else b""
            content = os.fsencode(path.readlink()) if stat.S_ISLNK(mode) else content
            found[str(path.relative_to(root))] = (mode, content)
    found.pop(".git", None)
    return found


def files(found: dict[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    """Leave out the modes of folders: a tree that was lent forgets them."""
    return {name: (0 if stat.S_ISDIR(one[0]) else one[0], one[1]) for name, one in found.items()}


class Chain:
    """Workers one after the other, each with a tree of an earlier one."""

    def __init__(self, lab: Lab, layout: Layout, dice: random.Random) -> None:
        self.lab, self.layout, self.dice = lab, layout, dice
        self.lent = self.number = 0

    @classmethod
    async def open(cls, tmp_path: Path, seed: int) -> "Chain":
        built = RepositoryBuilder.small(tmp_path / "repo")
        for generation in range(3):
            built.commit(files_of(generation), f"generation {generation}")
        lab = await Lab.open(tmp_path, built)
        layout = await to_thread.run_sync(Layout, lab.repo.plait_dir)
        await to_thread.run_sync(layout.make)
        return cls(lab, layout, random.Random(seed))

    async def next(self) -> tuple[Workspace, Path]:
        """Make a workspace on some base, with a released tree if one fits, and one of git's own."""
        self.number += 1
        built, base = self.lab.built, self.dice.choice(BASES)
        place = self.lab.root / f".spare{self.number}"
        spare = await lend(self.lab.repo, self.layout, built.rev(base), place)
        self.lent += spare is not None
        name = f"r1/fix/worker_{self.number}@1"
        space = await self.lab.prepare(name, base=base, spare=spare)
        own = self.lab.root / f"own{self.number}"
        built.git("worktree", "add", "-q", "--detach", str(own), base)
        return space, own

    async def release(self, space: Workspace) -> None:
        """Collect a workspace and put it into the trash."""
        await self.lab.collect(space)
        await discard(self.lab.repo, self.layout, RemovalVerdict(workspace=space))


def difference(chain: Chain, space: Workspace, own: Path) -> str:
    """Return how a workspace differs from one that git made; empty where it does not."""
    ours, theirs = listing(Path(space.path)), listing(own)
    paths = [path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)]
    return " ".join(sorted(paths)) + chain.lab.built.status(Path(space.path))


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_tree_that_is_lent_is_as_git_makes_it_whatever_an_agent_did(
    tmp_path: Path, seed: int
):
    chain = await Chain.open(tmp_path, seed)
    for _ in range(5):
        space, own = await chain.next()
        assert difference(chain, space, own) == ""
        hands = Hands(Path(space.path), chain.dice)
        await to_thread.run_sync(hands._live, chain.dice.randrange(1, 8))
        before = await to_thread.run_sync(listing, Path(space.path))
        await chain.release(space)
    assert chain.lent
    items = await to_thread.run_sync(trash_items, chain.layout.trash)
    item = next(item for item in items if item.origin == space.path)
    await lend(chain.lab.repo, chain.layout, space.base, tmp_path / "spaces/.last")
    await bring_back(chain.lab.repo, chain.layout.trash, item.id)
    assert files(listing(Path(space.path))) == files(before)


async def test_by_times_alone_files_would_stay_where_an_agent_moved_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A renamed folder changes its own time, and not the times of the files in it."""
    real = recycling.part

    def by_times(root: Path, rest: Path, rule: Parting) -> int | None:
        known = {}
        for folder in rule.known:
            with os.scandir(root / os.fsdecode(folder)) as entries:
                seen = [(os.fsencode(one.name), one.stat(follow_symlinks=False)) for one in entries]
            known[folder] = {
                name: (one.st_ino & 0xFFFFFFFF, one.st_ctime_ns)
                for name, one in seen
                if not stat.S_ISDIR(one.st_mode) and one.st_ctime_ns < rule.before_ns
            }
        return real(root, rest, replace(rule, known=known))

    monkeypatch.setattr(recycling, "part", by_times)
    chain = await Chain.open(tmp_path, 0)
    space, _ = await chain.next()
    chain.lab.agent(space, "mv a/b t; mv c/a/b a/b; mv t c/a/b")
    await chain.release(space)
    space, own = await chain.next()
    assert difference(chain, space, own)
