"""Whatever an agent leaves, its work arrives: real git, real worktrees."""

import pytest
from pathlib import Path
from engine.git.runner import Repo
from engine.git.base import resolve_base
from engine.git.collection import collect, CollectRequest, Change
from engine.git.diff import changed_files, file_patch
from engine.git.workspace import Strategy, WorkspaceRequest, prepare
from engine.ids import AttemptId
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
async def test_collect_smoke(tmp_path: Path, strategy):
    built = RepositoryBuilder.small(tmp_path / "r")
    repo = await Repo.open(built.path, built.environment)
    base = await resolve_base(repo, "HEAD", repo.settings.sign(0))
    attempt = AttemptId.parse("r1/fix/worker_1@1")
    ws = await prepare(
        repo,
        WorkspaceRequest(
            attempt=attempt,
            base=base.commit,
            path=tmp_path / "ws" / attempt.path,
            directory=repo.plait_dir / "runs" / attempt.path,
            strategy=strategy,
            is_mounted=False,
        ),
    )
    place = Path(ws.path)
    (place / "new.txt").write_text("new\n")
    built.git("add", "-A", cwd=place)
    built.git("commit", "-q", "-m", "agent", cwd=place)
    built.git("commit", "-q", "--amend", "-m", "agent2", cwd=place)
    (place / "src/a.py").write_text("a = 1\nb = 7\nc = 3\n")
    built.git("stash", cwd=place)
    (place / "left.txt").write_text("left\n")
    (place / "README.md").unlink()
    ch = await collect(repo, ws, CollectRequest(author=repo.settings.sign(1)))
    print(ch)
    assert isinstance(ch, Change)
    assert await collect(repo, ws, CollectRequest(author=repo.settings.sign(1))) == ch
    print(built.git("log", "--all", "--oneline", "--decorate"))
    print(built.git("status", cwd=place))
    for f in await changed_files(repo, ch.base, ch.head):
        print(f, await file_patch(repo, f))
    built.fsck()
