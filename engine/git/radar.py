"""Snapshots of work that is still going on, for predicting which workers will conflict.

They live in an object folder of their own that no sandbox sees: nothing of an unfinished attempt
enters the user's repository. A snapshot is also a point from which an attempt can be tried again.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.git.collection import CollectRequest, commit_inside, fetch_from
from engine.git.conversion import attributes_of
from engine.git.inside import InsideGit, Source, read_refs
from engine.git.runner import Repo, Where
from engine.git.staging import Intake, copy_index, stage_all
from engine.git.stumbling import past_obstacles
from engine.git.workspace import Workspace
from engine.private import private_folder

_NAME = "refs/radar/now"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A working tree as it was, as a commit on what its HEAD named."""

    commit: str
    tree: str


async def snapshot(
    repo: Repo, workspace: Workspace, request: CollectRequest, *, objects: Path
) -> Snapshot | None:
    """Snapshot a worker's tree as it is now; None if it cannot be read or was not accepted."""
    if workspace.git_dir is None:
        return None
    directory = Path(workspace.directory)
    warm = directory / "radar.index"
    source = Source(
        worktree=workspace.path,
        agent_git=workspace.git_dir,
        folder=Path(workspace.collect_dir, "radar"),
        index=warm if await to_thread.run_sync(warm.exists) else directory / "index",
        start=directory / "start",
        attributes=await attributes_of(repo, workspace.base),
        cone=workspace.cone,
    )
    async with InsideGit.opened(repo, source, request.wrap) as git:
        seen = await to_thread.run_sync(read_refs, Path(workspace.git_dir))
        kinds = await git.kinds([seen.head] if seen.head else [])
        head = seen.head if seen.head in kinds else None
        onto = head or workspace.base
        intake = Intake(big_file=request.big_file, most_new=request.most_new, left_out=git.left_out)
        stage = partial(stage_all, git, workspace.path, onto=onto, intake=intake, conversions=git)
        _, staged = await past_obstacles(workspace.path, stage)
        commit = await commit_inside(git, staged.tree, head or workspace.base, request)
    await to_thread.run_sync(_keep, git.git_dir, warm, commit)
    await to_thread.run_sync(private_folder, objects)
    refused = await fetch_from(repo, git, _NAME, where=Where(objects=str(objects)))
    return Snapshot(commit, staged.tree) if refused is None else None


def _keep(git_dir: str, warm: Path, commit: str) -> None:
    copy_index(Path(git_dir, "index"), warm)
    Path(git_dir, "packed-refs").write_text(f"{commit} {_NAME}\n", encoding="utf-8")
