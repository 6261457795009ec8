"""Find the branch that a run lands on: the named one, or the one checked out."""

from difflib import get_close_matches

import anyio.to_thread

from engine.errors import WorkspaceError
from engine.git.metadata import branch_names, current_branch
from engine.git.objects import few_refs_below
from engine.git.runner import Repo
from engine.plan.model import Plan


async def target_of(repo: Repo, plan: Plan) -> str | None:
    """Return the target's name; None if nothing is to land and no branch is checked out.

    Raises:
        WorkspaceError: HEAD is detached and no target is named, or no branch has that name.
    """
    place = repo.worktree or repo.git_dir
    target = plan.runtime.target or await anyio.to_thread.run_sync(current_branch, place)
    if target is None and any(s.merge.lands for s in plan.steps):
        raise WorkspaceError(
            "HEAD is detached, so there is no branch to land on",
            hint="Name one: `--target BRANCH`, or `runtime.target` in the manifest.",
        )
    if target is not None and not await _is_branch(repo, target):
        names = await anyio.to_thread.run_sync(branch_names, place)
        # Only where there is no commit yet the first landing makes it.
        if names and target not in names:
            near = get_close_matches(target, names, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise WorkspaceError(
                f"there is no branch {target!r}{meant}",
                hint=f"To create it, run `git branch {target}`.",
            )
    return target


async def _is_branch(repo: Repo, name: str) -> bool:
    """Return True if a branch has that name; its neighbors are not read for that."""
    ref = f"refs/heads/{name}"
    return ref in await few_refs_below(repo, ref)
