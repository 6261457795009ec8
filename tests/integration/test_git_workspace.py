import pytest
from pathlib import Path
from engine.git.runner import Repo
from engine.git.base import resolve_base
from engine.git.workspace import Strategy, WorkspaceRequest, prepare
from engine.ids import AttemptId
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
async def test_prepare_smoke(tmp_path: Path, strategy):
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
    print(ws)
    print(built.git("status", cwd=Path(ws.path)))
    print(built.git("log", "--all", "--oneline", cwd=Path(ws.path)))
    print(built.git("worktree", "list"))
    print((Path(ws.git_dir) / "config").read_text())
    assert (
        await prepare(
            repo,
            WorkspaceRequest(
                attempt=attempt,
                base=base.commit,
                path=tmp_path / "ws" / attempt.path,
                directory=repo.plait_dir / "runs" / attempt.path,
                strategy=strategy,
            ),
        )
        == ws
    )
