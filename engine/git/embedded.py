"""Repositories that an agent made or cloned inside its workspace, each kept whole as a bundle.

A commit could hold only a link to them, naming a commit that exists nowhere else.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.beneath import PathRefused, read_file
from engine.errors import GitFailed
from engine.git.inside import AgentRefs, InsideGit, Source, Wrap, read_refs, sane_name
from engine.git.objects import Wording, commit_bytes
from engine.git.runner import Repo
from engine.git.settings import Signature
from engine.git.staging import Intake, stage_all
from engine.git.stumbling import clear_objects, past_obstacles
from engine.git.workspace import Workspace
from engine.values import dataclass

_REACH = "gitdir: "
_HEAD = "refs/plait/head"


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """One repository found in a workspace: not a submodule, or one with work of its own.

    Attributes:
        path: Where it lies in the workspace; `.` for one in place of the workspace's own.
        bundle: The file that holds all of it, uncommitted work included, as
            `refs/plait/head`; None when it could not be kept, with the reason in `note`.
        link: The commit that base and change both link to there, for a submodule.
    """

    path: bytes
    bundle: str | None = None
    link: str | None = None
    note: str = ""


async def keep_embedded(
    repo: Repo, workspace: Workspace, wrap: Wrap, *, found: Sequence[Embedded], author: Signature
) -> tuple[Embedded, ...]:
    """Bundle each of the repositories; the workspace stays as it is.

    A submodule that stands where the change links to, with nothing uncommitted, is left out.
    """
    top = Path(workspace.path, ".git")
    is_replaced = workspace.git_dir != str(top) and await to_thread.run_sync(top.is_dir)
    kept: list[Embedded] = []
    for number, one in enumerate([*[Embedded(path=b".")] * is_replaced, *found], 1):
        try:
            done = await _keep(repo, workspace, wrap, what=(number, one), author=author)
        except GitFailed as failed:
            done = replace(one, note=f"It could not be read: {failed.stderr.strip()}")
        if done is not None:
            kept.append(done)
    return tuple(kept)


async def _keep(
    repo: Repo,
    workspace: Workspace,
    wrap: Wrap,
    *,
    what: tuple[int, Embedded],
    author: Signature,
) -> Embedded | None:
    number, one = what
    worktree = str(Path(workspace.path, os.fsdecode(one.path)))
    if one.link and not await to_thread.run_sync(os.path.lexists, f"{worktree}/.git"):
        return None
    agent_git = await to_thread.run_sync(_git_dir_of, workspace, worktree)
    if agent_git is None:
        return replace(one, note="Its git directory is outside the workspace.")
    source = Source(
        worktree=worktree,
        agent_git=agent_git,
        folder=Path(workspace.collect_dir, f"embedded-{number}"),
        attributes=b"",
    )
    await to_thread.run_sync(clear_objects, agent_git)
    async with InsideGit.opened(repo, source, wrap) as git:
        seen = await to_thread.run_sync(read_refs, Path(agent_git))
        refs = await _refs(git, seen, author)
        if one.link and refs.get(_HEAD) == one.link:
            return None
        if not refs:
            return replace(one, note="It contains neither commits nor files.")
        lines = "".join(f"{oid} {ref}\n" for ref, oid in sorted(refs.items()))
        await to_thread.run_sync(Path(git.git_dir, "packed-refs").write_text, lines)
        made = f"{git.git_dir}/all.bundle"
        await git("bundle", "create", "--quiet", made, "--all")
    bundle = f"{workspace.directory}/embedded-{number}.bundle"
    await to_thread.run_sync(shutil.move, made, bundle)
    return replace(one, bundle=bundle)


async def _refs(git: InsideGit, seen: AgentRefs, author: Signature) -> dict[str, str]:
    """The repository's own refs, and one for its files as they are."""
    kinds = await git.kinds([*({seen.head} if seen.head else ()), *seen.refs.values()])
    refs = {ref: oid for ref, oid in seen.refs.items() if oid in kinds and sane_name(ref)}
    head = seen.head if kinds.get(seen.head or "") == "commit" else None
    had = None
    if head is not None:
        had = (await git("rev-parse", f"{head}^{{tree}}")).decode().strip()
    place = git.source.worktree
    intake = Intake(left_out=git.left_out)
    stage = partial(stage_all, git, place, onto=head, intake=intake, conversions=git)
    _, staged = await past_obstacles(place, stage)
    is_empty = head is None and not await git("ls-tree", staged.tree)
    if staged.tree != had and not is_empty:
        wording = Wording(message="Work left uncommitted\n", author=author)
        content = commit_bytes(staged.tree, [head] if head else [], wording)
        words = ("hash-object", "-t", "commit", "-w", "--stdin")
        head = (await git(*words, stdin=content)).decode().strip()
    return {**refs, _HEAD: head} if head else refs


def _git_dir_of(workspace: Workspace, worktree: str) -> str | None:
    """The git directory of a working tree, if it lies where the agent could write."""
    dot_git = Path(worktree, ".git")
    if dot_git.is_symlink():
        return None
    if dot_git.is_dir():
        return str(dot_git)
    content = read_file(worktree, ".git", most=4096)
    if isinstance(content, PathRefused):
        return None
    said = os.fsdecode(content)
    target = Path(worktree, said.removeprefix(_REACH).rstrip("\n")).resolve()
    own = [Path(workspace.path).resolve(), Path(workspace.git_dir or workspace.path).resolve()]
    is_own = said.startswith(_REACH) and any(target.is_relative_to(folder) for folder in own)
    return str(target) if is_own else None
