"""Worktrees as bad as an agent can leave them, each made from a seed."""

import ctypes
import hashlib
import os
import random
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.beneath import EntryKind, WalkEntry, list_tree

RACED = "raced"
"""The folder that another thread swaps for a link that leads out."""
NAMES = (
    *("a", "A", "b", "src", "x.txt", "X.TXT", "é", "e\u0301", "\udcff\udcfe", "-rf", " ", "  x"),
    *("new\nline", "tab\there", '"q"', "back\\slash", "*", "?", "[x]", ":(top)", "@{u}", "con"),
    *("git~1", ".GIT", ".git ", ".gitignore", ".gitattributes", ".gitmodules", "refs", "HEAD"),
    *(".lock", "index.lock", "n" * 255, "\u200c.git", "%s", "$(touch out)", ".plait", "dist"),
)
ATTRIBUTES = (
    *("* text eol=crlf", "* working-tree-encoding=UTF-16", "* ident", "* filter=evil -text"),
    *("[attr]m text\n* m", "* " + "y" * 3000, "*.txt working-tree-encoding=NOPE", "\udcff text"),
)
IGNORES = ("*", "*.txt", "dist/", "!a", "/a\n/b", "**/x.txt", "\\", "src/\n!src/a.py")
MODES = (0, 0o111, 0o444, 0o200, 0o555, 0o4755, 0o1777, 0o400)
_GIT = (
    *("git add -A", "git commit -qm work", "git checkout -qb side", "git stash -q -u"),
    *("git update-index --assume-unchanged README.md", "git rm -rq --cached ."),
    *("git update-index --skip-worktree README.md", "git checkout -q --detach", "git tag t"),
    *('touch "$PRIVATE/index.lock"', 'rm -rf "$PRIVATE/objects"', 'rm -f "$PRIVATE/HEAD"'),
    *('mkfifo "$PRIVATE/refs/heads/fifo"', 'rm -rf "$PRIVATE"', 'echo x > "$PRIVATE/packed-refs"'),
    *("git init -q e; echo 1 > e/1", "git init -q e; git -C e commit -qm 1 --allow-empty"),
    *("git init -q --bare bare", "git init -q e; git -C e config core.fsmonitor ./evil"),
    *("git clone -q . c", 'ln -s /etc/passwd "$PRIVATE/refs/heads/link"', "git gc -q"),
    *("git config core.worktree /", "git symbolic-ref HEAD refs/heads/none"),
)


class Grower:
    """Fills one worktree, deed by deed."""

    def __init__(self, root: Path, outside: Path, chance: random.Random) -> None:
        self.root, self.outside, self.chance = root, outside, chance
        self.folders = [root]
        self.deeds: list[Callable[[], None]] = [
            *(self.file, self.file, self.file, self.link, self.link, self.folder, self.folder),
            *(self.special, self.mode, self.attributes, self.ignore, self.modules, self.replace),
            *(self.deep, self.many, self.sparse, self.big, self.twin, self.hard_link),
        ]

    def grow(self, deeds: int) -> None:
        """Do so many deeds; those that the file system refuses are nothing."""
        for _ in range(deeds):
            with suppress(OSError, ValueError, IndexError):
                self.chance.choice(self.deeds)()

    def place(self) -> Path:
        """Name a place in one of the folders, taken or not."""
        return self.chance.choice(self.folders) / self.chance.choice(NAMES)

    def file(self) -> None:
        data = self.chance.randbytes(self.chance.randrange(60))
        with self.place().open("xb") as file:
            file.write(data if self.chance.random() < 0.5 else b"one\r\ntwo\n$Id$\n")

    def link(self) -> None:
        to = [
            self.outside,
            self.outside / "secret",
            "/",
            "..",
            ".",
            "a",
            "nowhere",
            ".git",
            "x" * 900,
        ]
        self.place().symlink_to(self.chance.choice(to))

    def folder(self) -> None:
        place = self.place()
        place.mkdir()
        self.folders.append(place)

    def special(self) -> None:
        place = self.place()
        match self.chance.randrange(3):
            case 0:
                os.mkfifo(place)
            case 1:
                with socket.socket(socket.AF_UNIX) as listening:
                    listening.bind(str(place))
            case _:
                os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 5))

    def mode(self) -> None:
        there = [*self.folders[1:], *(path for path in self.root.iterdir() if path.name != ".git")]
        place = self.chance.choice(there)
        found = place.lstat()
        if stat.S_ISDIR(found.st_mode) or (found.st_nlink == 1 and not place.is_symlink()):
            place.chmod(self.chance.choice(MODES))

    def attributes(self) -> None:
        text = self.chance.choice(ATTRIBUTES)
        place = self.chance.choice(self.folders) / ".gitattributes"
        self._write(place, text)

    def ignore(self) -> None:
        self._write(self.chance.choice(self.folders) / ".gitignore", self.chance.choice(IGNORES))

    def modules(self) -> None:
        place = self.root / ".gitmodules"
        if self.chance.random() < 0.3:
            place.symlink_to("/etc/passwd")
        else:
            self._write(place, '[submodule "e"]\npath=e\nurl=-uevil\nupdate=!touch ran\n')

    def _write(self, place: Path, text: str) -> None:
        place.unlink(missing_ok=True)
        with place.open("xb") as file:
            file.write(os.fsencode(text) + b"\n")

    def replace(self) -> None:
        """Put something else where the base has something."""
        name = self.chance.choice(["README.md", "src", "src/a.py"])
        place = self.root / name
        place.rename(self.root / f"was-{self.chance.randrange(99)}")
        # A link may take its place: whatever is put there later would be written outside.
        self.folders = [one for one in self.folders if one != place and place not in one.parents]
        match self.chance.randrange(4):
            case 0:
                place.symlink_to(self.outside)
            case 1:
                os.mkfifo(place)
            case 2:
                place.mkdir()
                self.folders.append(place)
            case _:
                pass

    def deep(self) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY
        current = os.open(self.chance.choice(self.folders), flags)
        name = self.chance.choice(["d" * 200, "d"])
        try:
            for _ in range(self.chance.choice([3, 25, 60])):
                os.mkdir(name, dir_fd=current)
                inner = os.open(name, flags, dir_fd=current)
                os.close(current)
                current = inner
            os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=current))
        finally:
            os.close(current)

    def many(self) -> None:
        place = self.place()
        place.mkdir()
        for number in range(self.chance.choice([20, 300])):
            (place / f"f{number}").touch()

    def sparse(self) -> None:
        with self.place().open("xb") as file:
            file.truncate(3 << 30)

    def big(self) -> None:
        with self.place().open("xb") as file:
            file.write(bytes(6 << 20))

    def twin(self) -> None:
        folder = self.chance.choice(self.folders)
        for name in ("Twin", "twin", "TWIN"):
            with (folder / name).open("xb") as file:
                file.write(name.encode())

    def hard_link(self) -> None:
        self.place().hardlink_to(self.outside / "secret")


def outside_of(folder: Path) -> Path:
    """Make a folder of the user's that nothing may touch."""
    folder.mkdir()
    (folder / "secret").write_text("secret\n")
    (folder / "hooks").mkdir()
    (folder / "hooks/keep").write_text("keep\n")
    return folder


def digest(folder: Path) -> str:
    """Say all there is in a folder, with modes and contents, in one word."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        found.update(f"{path}\0{mode:o}\0".encode())
        if path.is_file() and not path.is_symlink():
            found.update(path.read_bytes())
    return found.hexdigest()


def leave(
    root: Path, outside: Path, seed: int, *, environment: Mapping[str, str] | None = None
) -> bool:
    """Fill a worktree from a seed; with an environment, with git as well. Tell if git was used."""
    chance = random.Random(seed)
    grower = Grower(root, outside, chance)
    grower.grow(chance.randrange(3, 30))
    uses_git = environment is not None and chance.random() < 0.4
    if uses_git:
        for _ in range(chance.randrange(1, 4)):
            words = ("sh", "-c", chance.choice(_GIT))
            with suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(
                    words, cwd=root, env=environment, capture_output=True, timeout=20, check=False
                )
            grower.grow(3)
    if chance.random() < 0.05:
        root.chmod(chance.choice(MODES))
    return uses_git


@contextmanager
def racing(root: Path, outside: Path) -> Iterator[None]:
    """Let a thread swap a folder of the worktree for a link that leads out, over and over."""
    place, link = root / RACED, root / f"{RACED}-link"
    libc = ctypes.CDLL(None)
    names = (-100, os.fsencode(place), -100, os.fsencode(link), 2)  # AT_FDCWD, RENAME_EXCHANGE
    is_over = threading.Event()
    with suppress(OSError):
        place.mkdir()
        (place / "secret").write_text("mine\n")
        (place / "hooks").mkdir()
        link.symlink_to(outside)

    def swap() -> None:
        while not is_over.wait(0.0005):
            libc.renameat2(*names)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def unsaid(root: Path, said: frozenset[bytes]) -> list[bytes]:
    """List what stands in a worktree and is neither said itself nor by a folder above it."""
    found = []
    for one in list_tree(root, is_entered=lambda path: path != b".git" and path not in said):
        if not isinstance(one, WalkEntry) or one.kind is EntryKind.FOLDER or one.path == b".git":
            continue
        parts = one.path.split(b"/")
        names = {b"/".join(parts[: n + 1]) for n in range(len(parts))}
        if not names & said and not parts[0].startswith(RACED.encode()):
            found.append(one.path)
    return found
