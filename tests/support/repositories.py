"""Real git repositories for tests, built in one line each, and a plain git to look at them with.

The git used here is the ordinary one, with an environment of its own and none of the engine's
hardening: what a test proves must not rest on the code under test.
"""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

DATE = "2026-01-01T00:00:00+00:00"
USER = "[user]\n\tname = Ada User\n\temail = ada@example.org\n"
SMALL: dict[str, str | bytes | None] = {
    "README.md": "# sample\n",
    "src/a.py": "a = 1\nb = 2\nc = 3\n",
}


def plain_environment(home: Path) -> dict[str, str]:
    """The environment of a user whose home is `home`, with fixed dates and nothing else set."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": DATE,
        "GIT_COMMITTER_DATE": DATE,
        "LC_ALL": "C",
    }


class RepositoryBuilder:
    """A repository in a folder, with a user who has a name: `RepositoryBuilder(tmp_path / "r")`.

    `home` is the folder whose `.gitconfig` is the user's; it lies beside the repository.
    """

    def __init__(self, path: Path, *, bare: bool = False, init: bool = True) -> None:
        self.path = path
        self.home = path.parent / f"{path.name}-home"
        self.home.mkdir(parents=True, exist_ok=True)
        path.mkdir(parents=True, exist_ok=True)
        if not (self.home / ".gitconfig").exists():
            (self.home / ".gitconfig").write_text(USER)
        if init:
            self.git("init", "-q", "-b", "main", "--template=", *(["--bare"] if bare else []))
            (path / ("info" if bare else ".git/info")).mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """Return what this user's shell has set."""
        return plain_environment(self.home)

    def git(
        self,
        *argv: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Return what git says, decoded and stripped; a failure fails the test with git's words."""
        return self.git_bytes(*argv, cwd=cwd, stdin=stdin, env=env).decode(errors="replace").strip()

    def git_bytes(
        self,
        *argv: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return what git says, as it is."""
        done = self.try_git(*argv, cwd=cwd, stdin=stdin, env=env)
        assert done.returncode == 0, f"git {argv} said: {done.stderr!r}"
        return done.stdout

    def try_git(
        self,
        *argv: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Git's answer, whatever it is."""
        return subprocess.run(
            ["git", *argv],
            cwd=cwd or self.path,
            env={**self.environment, **(env or {})},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def shell(self, script: str, *, cwd: Path | None = None) -> None:
        """Run a shell script as this user; a failing line ends it."""
        subprocess.run(
            ["sh", "-ec", script],
            cwd=cwd or self.path,
            env=self.environment,
            capture_output=True,
            check=True,
            timeout=120,
        )

    def configure(self, key: str, value: str, *, scope: str = "--local") -> Self:
        """Set a key of git's configuration; `--global` is this user's own file."""
        self.git("config", scope, key, value)
        return self

    def write(self, path: str | bytes, content: str | bytes, *, mode: int | None = None) -> Path:
        """Put a file into the working tree."""
        target = Path(os.fsdecode(os.path.join(os.fsencode(self.path), os.fsencode(path))))  # noqa: PTH118 (bytes)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            target.chmod(mode)
        return target

    def commit(self, files: Mapping[str, str | bytes | None] | None = None, say: str = "c") -> str:
        """Commit files (None removes one) and everything else that changed; the commit's id."""
        for path, content in (files or {}).items():
            if content is None:
                (self.path / path).unlink()
            else:
                self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", say)
        return self.head

    @property
    def head(self) -> str:
        """The commit that HEAD names."""
        return self.git("rev-parse", "HEAD")

    def rev(self, name: str) -> str:
        """The object that a revision names."""
        return self.git("rev-parse", "--verify", name)

    def branches(self) -> list[str]:
        """Every branch, sorted."""
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def show(self, revision: str, path: str) -> bytes:
        """A file's bytes at a revision."""
        return self.git_bytes("cat-file", "blob", f"{revision}:{path}")

    def status(self, cwd: Path | None = None) -> str:
        """Return what `git status --porcelain` says."""
        return self.git("status", "--porcelain", cwd=cwd)

    def fsck(self) -> None:
        """Fail unless every object and ref is sound."""
        self.git("fsck", "--full", "--strict", "--no-dangling")

    def forget_unreachable(self) -> None:
        """Return what the most thorough of users does: every object that no ref holds is gone."""
        self.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        self.git("gc", "-q", "--prune=now")

    def worktrees(self) -> list[str]:
        """Return where git says working trees are."""
        listing = self.git("worktree", "list", "--porcelain")
        return [
            line.removeprefix("worktree ")
            for line in listing.splitlines()
            if line.startswith("worktree ")
        ]

    @classmethod
    def with_files(cls, path: Path, count: int, *, per_folder: int = 100) -> Self:
        """A repository of one commit with `count` small files."""
        built = cls(path)
        for number in range(count):
            built.write(f"d{number // per_folder}/f{number}.txt", f"line {number}\n" * 3)
        built.commit(say="files")
        return built

    @classmethod
    def small(cls, path: Path) -> Self:
        """A repository of one commit with a README and a source file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            shutil.copytree(_template(), path)
            return cls(path, init=False)
        built = cls(path)
        built.commit(SMALL, "start")
        return built


@functools.cache
def _template() -> Path:
    """The small repository, made once: copying it is many times cheaper than making it."""
    place = Path(tempfile.mkdtemp(prefix="plait-template-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    built = RepositoryBuilder(place / "repo")
    built.commit(SMALL, "start")
    return built.path


def snapshot_of(root: Path, *, skip: Sequence[str] = (".git",)) -> dict[str, bytes]:
    """Every file and link below a folder with its bytes and mode: two equal ones are the same."""
    found: dict[str, bytes] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in skip]
        for name in [*files, *[n for n in names if (Path(folder) / n).is_symlink()]]:
            path = Path(folder) / name
            if name in skip:
                continue
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = b"%o " % path.lstat().st_mode + content
    return found
