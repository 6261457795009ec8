"""A repository of a user's, the engine's hands on it, and an agent's shell: one line a test."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from engine.git.base import resolve_base
from engine.git.collection import CollectedChange, CollectRequest, collect
from engine.git.runner import Repo
from engine.git.workspace import Workspace, WorkspaceRequest, prepare
from engine.ids import AttemptId
from tests.support.repositories import RepositoryBuilder


class Lab:
    """`lab = await Lab.open(tmp_path)`; then `lab.prepare()`, `lab.agent(space, "…")`, collect."""

    def __init__(self, built: RepositoryBuilder, repo: Repo, root: Path) -> None:
        self.built, self.repo, self.root = built, repo, root
        self.me = repo.settings.sign(1_767_225_600)

    @classmethod
    async def open(cls, tmp_path: Path, built: RepositoryBuilder | None = None) -> Self:
        """A small repository unless one is given."""
        made = built or RepositoryBuilder.small(tmp_path / "repo")
        return cls(made, await Repo.open(made.path, made.environment), tmp_path / "spaces")

    async def prepare(
        self, name: str = "r1/fix/worker_1@1", *, base: str = "HEAD", **wanted: Any
    ) -> Workspace:
        """A workspace on a base; without mounts, so that an agent's git finds its clone."""
        attempt = AttemptId.parse(name)
        start = await resolve_base(self.repo, base, self.me)
        request = WorkspaceRequest(
            attempt=attempt,
            base=start.commit,
            path=self.root / attempt.path,
            directory=self.repo.plait_dir / "runs" / attempt.path,
            **{"is_mounted": False, **wanted},
        )
        return await prepare(self.repo, request)

    def agent(self, space: Workspace, script: str) -> subprocess.CompletedProcess[bytes]:
        """Run a shell script as the agent, in its workspace; a failing line ends it."""
        return subprocess.run(
            ["sh", "-ec", script],
            cwd=space.path,
            env={**self.built.environment, "PRIVATE": space.git_dir or ""},
            capture_output=True,
            check=True,
            timeout=120,
        )

    async def collect(self, space: Workspace, **wanted: Any) -> CollectedChange:
        """The change, which must be accepted."""
        change = await collect(self.repo, space, CollectRequest(author=self.me, **wanted))
        assert isinstance(change, CollectedChange), change
        return change

    def files(self, revision: str) -> dict[str, str]:
        """Every file of a revision with its text; submodules are left out."""
        listing = self.built.git_bytes("ls-tree", "-r", "-z", revision)
        entries = [record.split(b"\t", 1) for record in listing.split(b"\0") if record]
        oids = [head.split()[2].decode() for head, _ in entries if b" blob " in head]
        names = [os.fsdecode(name) for head, name in entries if b" blob " in head]
        texts = [self.built.git_bytes("cat-file", "blob", oid) for oid in oids]
        return {n: t.decode(errors="replace") for n, t in zip(names, texts, strict=True)}

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Refs of the user's repository."""
        listing = self.built.git("for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
        return dict(line.split(" ") for line in listing.split("\n") if line)


def shell(argv: Sequence[str], cwd: Path) -> bytes:
    """A program's output; it must succeed."""
    return subprocess.run(argv, cwd=cwd, check=True, capture_output=True, timeout=60).stdout
