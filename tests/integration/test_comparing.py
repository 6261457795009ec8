"""A diff of a running worker, and the end of the tree that it shows."""

from pathlib import Path

import pytest
from anyio import to_thread

from engine.core.state import RunState
from engine.git.names import RefNames
from engine.git.objects import set_refs
from engine.git.radar import Snapshot
from engine.git.runner import Call, Repo, Where
from engine.ids import AttemptId, WorkerId
from engine.private import private_folder
from engine.review.comparing import Comparisons, DiffWanted
from tests.support.core_runs import a_run
from tests.support.git_lab import Lab
from tests.support.plans import a_step

pytestmark = pytest.mark.anyio


class _Looking:
    """A look at a tree that comes to its end while somebody looks."""

    def __init__(self, repo: Repo, *, ends: bool) -> None:
        self.repo, self.ends = repo, ends
        self.comparisons = Comparisons(repo, self)

    async def __call__(self, _state: RunState, _worker: WorkerId, objects: Path) -> Snapshot:
        where = Where(objects=str(await to_thread.run_sync(private_folder, objects)))
        write = Call(stdin=b"new text\n", writes=True)
        blob = await self.repo.run("hash-object", "-w", "--stdin", call=write, where=where)
        row = Call(stdin=b"100644 blob " + blob.stdout.strip() + b"\tnew.txt\n", writes=True)
        tree = (await self.repo.run("mktree", call=row, where=where)).stdout.decode().strip()
        if self.ends:
            await self.comparisons.forget(objects)
        return Snapshot(commit=tree, tree=tree)


def _left(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("looked_at*")]


@pytest.mark.parametrize("ends", [False, True])
async def test_a_tree_that_ends_during_a_look_is_shown_to_the_end(
    tmp_path: Path, *, ends: bool
) -> None:
    lab = await Lab.open(tmp_path)
    told = a_run(a_step("fix"))
    told.ready("fix1")
    worker = told.worker("fix1")
    names = RefNames(AttemptId(told.state.run, worker.id, 1))
    await set_refs(lab.repo, [(names.base, "HEAD")], say="base")
    looking, folder = _Looking(lab.repo, ends=ends), tmp_path / "looked_at"

    diff = await looking.comparisons.diff(told.state, worker, DiffWanted(attempt=1), folder)

    assert diff.is_live
    assert "new.txt" in [file.path for file in diff.files]
    assert _left(tmp_path) == ([] if ends else ["looked_at"])
