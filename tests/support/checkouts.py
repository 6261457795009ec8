"""A user's checkout with edits of every kind, a result to try in it, and a picture of all bytes."""

import hashlib
import os
import stat
from pathlib import Path

from engine.git.runner import Repo
from engine.messages.merging import MergedResult
from tests.support.repositories import RepositoryBuilder

BASE: dict[str, str | bytes | None] = {
    ".gitignore": "*.log\nbuild/\n",
    "changed": "one\ntwo\n",
    "deleted": "will be deleted\n",
    "deep/er/only": "alone in its folders\n",
    "turned": "a file\n",
    "folder/inner": "in a folder\n",
    "script": "#!/bin/sh\n",
    "mine": "mine\n",
    "other": "other\n",
    "clash": "clash\n",
}


def picture(built: RepositoryBuilder) -> dict[str, object]:
    """Everything of a checkout that must come back: kinds, modes, bytes, index, HEAD, branches."""
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(os.fsencode(built.path)):
        if folder == os.fsencode(built.path):
            folders.remove(b".git")
        for name in (*folders, *names):
            path = os.path.join(folder, name)  # noqa: PTH118 (bytes)
            seen = os.lstat(path)
            what: object = stat.S_IMODE(seen.st_mode), stat.S_IFMT(seen.st_mode)
            if stat.S_ISREG(seen.st_mode):
                what = (what, Path(os.fsdecode(path)).read_bytes())
            elif stat.S_ISLNK(seen.st_mode):
                what = os.readlink(path)  # noqa: PTH115 (bytes)
            found[os.fsdecode(os.path.relpath(path, os.fsencode(built.path)))] = what
    index = built.path / ".git/index"
    found["INDEX"] = hashlib.sha256(index.read_bytes()).hexdigest() if index.exists() else None
    found["HEAD"] = (built.path / ".git/HEAD").read_text()
    found["BRANCHES"] = built.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash")
    return found


def told(built: RepositoryBuilder) -> tuple[bytes, bytes]:
    """Git's own view of a checkout."""
    return (
        built.git_bytes("ls-files", "--stage", "-v", "-z"),
        built.git_bytes("status", "--porcelain=v2", "-z", "--ignored", "-uall"),
    )


def result_of(built: RepositoryBuilder, tree: str, name: str = "s1/worker_1") -> MergedResult:
    """A result as the engine tells it."""
    has_main = built.try_git("rev-parse", "--verify", "-q", "main").returncode == 0
    onto = built.rev("main" if has_main else "refs/plait/kept")
    return MergedResult(run="r1", worker=name, attempt=1, target="main", onto=onto, tree=tree)


async def opened(built: RepositoryBuilder) -> Repo:
    return await Repo.open(built.path, built.environment)


class Checkout:
    """A checkout on `main`, and beside it the tree of a worker's merged result."""

    def __init__(self, folder: Path) -> None:
        self.built = RepositoryBuilder(folder / "repo")
        self.built.write("script", "#!/bin/sh\n", mode=0o755)
        self.built.path.joinpath("link").symlink_to("mine")
        self.built.commit({k: v for k, v in BASE.items() if k != "script"}, "base")
        self.tree = self.made()

    @property
    def path(self) -> Path:
        return self.built.path

    def made(self) -> str:
        """Make the result on a branch of its own, and come back."""
        built, path = self.built, self.built.path
        built.git("checkout", "-q", "-b", "work")
        for name in ("deleted", "deep/er/only", "turned", "folder/inner", "link"):
            (path / name).unlink()
        (path / "folder").rmdir()
        (path / "link").symlink_to("other")
        (path / "script").chmod(0o644)
        built.commit(
            {
                "changed": "one\nTWO\n",
                "turned/inner": "was a file\n",
                "folder": "was a folder\n",
                "new/deep/file": "new\n",
                "clash": "theirs\n",
            },
            "work",
        )
        tree = built.rev("work^{tree}")
        built.git("checkout", "-q", "main")
        built.git("update-ref", "refs/plait/kept", "work")
        built.git("branch", "-q", "-D", "work")
        built.git("update-index", "-q", "--refresh")
        return tree

    def edit(self) -> None:
        """Edits of every kind, some where the result writes and some where it does not."""
        path, built = self.path, self.built
        built.write("clash", "mine, unstaged\n", mode=0o600)
        built.write("other", "staged\n")
        built.git("add", "other")
        built.write("other", "staged, then edited\n")
        built.write("untracked/file", "untracked\n", mode=0o640)
        built.write("new/deep/file", "an untracked file of mine\n")
        built.write("some.log", "ignored\n")
        built.write("build/out", "ignored\n")
        (path / "mine").chmod(0o755)
        built.write("turned", "mine again\n")
        built.git("add", "turned")
        (path / "deep/er").chmod(0o700)
        (path / "dangling").symlink_to("nowhere")
