"""Worktrees of ours that no run knows any more: what may go is proved by refs and files alone.

The private repositories of such attempts are gone with their runs. What is left is a tree of files,
and the refs under which the attempt's work was kept.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.errors import EngineError
from engine.git.conversion import attributes_of
from engine.git.inside import InsideGit, Source
from engine.git.names import PREFIX, RefNames
from engine.git.objects import resolve, scratch_folder, tree_of
from engine.git.removal import RemovalVerdict, keep_detached, processes_in
from engine.git.runner import Repo, Where
from engine.git.staging import Intake, LeftOut, stage_all
from engine.git.stumbling import past_obstacles
from engine.git.workspace import Strategy, Workspace
from engine.git.worktrees import checkouts
from engine.ids import AttemptId

_SHOWN = 5


async def examine_stray(repo: Repo, attempt: AttemptId, path: Path) -> RemovalVerdict:
    """Judge if a tree of files may go: all must be in one commit that the attempt's refs keep.

    What the repository's rules ignore goes to the trash with it, whole.
    """
    place = next((one for one in await checkouts(repo) if one.path == str(path)), None)
    workspace = Workspace(
        attempt=attempt,
        strategy=Strategy.WORKTREE,
        path=str(path),
        directory="",
        base="",
        branch_prefix=_prefix(attempt, (place.branch if place else None) or ""),
        admin=place.git_dir if place else None,
    )
    await keep_detached(repo, workspace)
    reason = await to_thread.run_sync(_why_not_looked_at, path)
    names = workspace.refs
    found = [await resolve(repo, ref) for ref in (names.head, names.left_head)]
    heads = [head for head in found if head is not None]
    if not reason and not heads:
        reason = "its run is gone, and no ref keeps its work"
    if reason:
        return RemovalVerdict(workspace=workspace, reasons=(reason,))
    try:
        left_out = await _left_out(repo, workspace.admin)
        base = await resolve(repo, names.base)
        files, reason = await _kept_by(repo, path, heads, (base, left_out))
    except EngineError as error:
        files, reason = "", f"it could not be read: {error}"
    return RemovalVerdict(workspace=workspace, reasons=(reason,) if reason else (), files=files)


def _why_not_looked_at(path: Path) -> str:
    busy = processes_in(str(path))
    if busy:
        return f"it is in use by {', '.join(busy[:_SHOWN])}"
    git = path / ".git"
    if git.is_dir() and not git.is_symlink():
        return "its run is gone, and its own repository may have commits with no other copy"
    return ""


async def _left_out(repo: Repo, admin: str | None) -> LeftOut | None:
    """Return what tells the files that a sparse worktree does not hold, by its index in the user's.

    No agent could write that index.
    """
    if admin is None or not await to_thread.run_sync(Path(admin, "index").is_file):
        return None
    where = Where(git_dir=admin)
    records = (await repo.read("ls-files", "-t", "-z", where=where)).split(b"\0")
    marked = frozenset(record[2:] for record in records if record[:1] == b"S")

    async def of(gone: Sequence[bytes]) -> frozenset[bytes]:
        return frozenset(name for name in gone if name in marked)

    return of if marked else None


async def _kept_by(
    repo: Repo, path: Path, heads: Sequence[str], before: tuple[str | None, LeftOut | None]
) -> tuple[str, str]:
    """Return the commit that has all of a tree, or else what of it is in none.

    `before` is its base, if that is known, and what tells the files that it never held.
    """
    base, left_out = before
    intake = Intake(left_out=left_out)
    async with scratch_folder(repo) as scratch:
        source = Source(
            worktree=str(path),
            agent_git=str(scratch / "none"),
            folder=scratch / "git",
            attributes=await attributes_of(repo, base) if base else None,
        )
        async with InsideGit.opened(repo, source, list) as git:
            onto = heads[0]
            stage = partial(stage_all, git, str(path), onto=onto, intake=intake, conversions=git)
            _, staged = await past_obstacles(str(path), stage)
    names = [os.fsdecode(one.path) for one in staged.set_aside if not one.is_empty]
    names += map(os.fsdecode, staged.embedded)
    if names:
        return "", f"its run is gone, and no commit has {', '.join(names[:_SHOWN])}"
    for head in heads:
        if staged.tree == await tree_of(repo, head):
            return head, ""
    return "", "its run is gone, and it has files that are in no commit"


def _prefix(attempt: AttemptId, branch: str) -> str:
    """Return the prefix of its branch, as far as the worktree is still on it."""
    tail = RefNames(attempt, "").branch
    return (
        branch.removeprefix("refs/heads/").removesuffix(tail) if branch.endswith(tail) else PREFIX
    )
