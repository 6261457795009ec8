"""Merge three texts or three trees with git itself: the oracle of the merge tests."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0000",
    "GIT_COMMITTER_DATE": "1700000000 +0000",
}


@dataclass(frozen=True)
class MergeFile:
    """`git merge-file` over three texts written to a folder of its own."""

    folder: Path
    base: bytes
    target: bytes
    incoming: bytes

    def run(self, *options: str) -> tuple[int, bytes]:
        """The exit code (conflicts, or 255 for failure) and the text."""
        names = ("target", "base", "incoming")
        for name in names:
            (self.folder / name).write_bytes(getattr(self, name))
        done = subprocess.run(
            ["git", "merge-file", "-p", *options, *names],
            cwd=self.folder,
            env=ENVIRONMENT,
            capture_output=True,
            check=False,
        )
        return done.returncode, done.stdout

    def conflicts(self) -> int:
        """Return how many conflicts git sees; it says no more than 127."""
        return self.run("--diff3")[0]

    def favoring(self, side: str) -> bytes:
        """The text with every conflict resolved as `side`: ours, theirs or union."""
        return self.run(f"--{side}")[1]


def merge_file(base: bytes, target: bytes, incoming: bytes) -> "Picked":
    """Everything the tests ask of `git merge-file`, in one go."""
    with tempfile.TemporaryDirectory() as folder:
        files = MergeFile(Path(folder), base, target, incoming)
        return Picked(
            conflicts=files.conflicts(),
            ours=files.favoring("ours"),
            theirs=files.favoring("theirs"),
            union=files.favoring("union"),
        )


@dataclass(frozen=True)
class Picked:
    """The answer of git to one merge."""

    conflicts: int
    ours: bytes
    theirs: bytes
    union: bytes


@dataclass
class Trees:
    """A repository in which three trees are merged as `git merge` would."""

    folder: Path
    entries: dict[str, str] = field(default_factory=dict)

    def git(self, *argv: str, stdin: bytes = b"") -> bytes:
        """The output of one git command; 1 is merge-tree's word for a conflict."""
        done = subprocess.run(
            ["git", *argv],
            cwd=self.folder,
            env=ENVIRONMENT,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise AssertionError(done.stderr.decode())
        return done.stdout

    def commit(self, files: Mapping[bytes, tuple[str, bytes]], *parents: str) -> str:
        """A commit of these paths: mode and content each."""
        self.git("read-tree", "--empty")
        lines = []
        for path, (mode, content) in files.items():
            blob = self.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            name = content.decode() if mode == "160000" else blob
            lines.append(f"{mode} {name}\t".encode() + path)
        self.git("update-index", "-z", "--index-info", stdin=b"\0".join(lines) + b"\0")
        tree = self.git("write-tree").decode().strip()
        flags = [flag for parent in parents for flag in ("-p", parent)]
        return self.git("commit-tree", tree, *flags, "-m", "x").decode().strip()

    def kinds(self, target: str, incoming: str) -> dict[bytes, list[str]]:
        """git's own names of the conflicts of two commits, by path."""
        raw = self.git("merge-tree", "--write-tree", "-z", "--messages", target, incoming)
        messages = raw.partition(b"\0\0")[2].split(b"\0")
        found: dict[bytes, list[str]] = {}
        place = 0
        while place < len(messages) and messages[place].isdigit():
            count = int(messages[place])
            kind = messages[place + count + 1].decode()
            if kind.startswith("CONFLICT"):
                for path in messages[place + 1 : place + count + 1]:
                    found.setdefault(path, []).append(kind)
            place += count + 3
        return found
