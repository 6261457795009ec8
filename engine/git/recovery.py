"""Clean up after an engine that died: none of its gits runs on, no lock stays."""

import shutil

from anyio import to_thread

from engine.git.plumbing.records import StaleLocks
from engine.git.runner import Repo
from engine.git.unfinished import remove_dead_locks
from engine.git.worktrees import our_entries


async def recover_repository(repo: Repo) -> StaleLocks:
    """End the git children of dead engines, and remove the locks and scratch files they left.

    Call it once, before anything else is done in the repository, and while no other engine is at
    work in it. A lock that may be somebody else's stays, with the reason.
    """
    await repo.records.end_orphans()
    ours = await to_thread.run_sync(our_entries, repo.common_dir)
    async with repo.lock.held():
        stale = await to_thread.run_sync(repo.records.remove_stale, repo.common_dir, ours)
        await to_thread.run_sync(_remove_scratch, repo)
    await remove_dead_locks(repo)
    return stale


def _remove_scratch(repo: Repo) -> None:
    ours = repo.plait_dir / "git"
    for folder in (*ours.glob("scratch-*"), *ours.glob("attributes-*")):
        shutil.rmtree(folder, ignore_errors=True)
