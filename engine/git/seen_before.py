"""Tell whether a workspace still is as it was collected, so that a second look at it is short.

Collecting leaves the index that it worked with and a note: what the agent's repository said, which
commit has the files, and under which refs the work is kept. Whatever was done since shows in one of
them, or in a file that differs from that index. Where anything does, or cannot be known, all is
collected once more.

The files are not read again where the kernel's own times say that none of them was touched since
before the collection read them. No program can set these times.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from anyio import to_thread

from engine.beneath import last_change, read_file
from engine.errors import GitFailed
from engine.git.disk_moment import DiskMoment
from engine.git.inside import AgentRefs, InsideGit, Source, Wrap, read_refs
from engine.git.objects import few_refs_below
from engine.git.runner import Repo
from engine.git.staging import copy_index, present_of
from engine.git.stumbling import past_obstacles
from engine.git.workspace import Workspace

_NOTE, _INDEX = "collected.json", "collected.index"
_MOST_INDEX = 256 << 20


class AgentSight(NamedTuple):
    """A look at an agent's repository, taken before its objects are read."""

    refs: AgentRefs
    digest: str


def sight_of(agent_git: str) -> AgentSight:
    """Read the refs of an agent's repository, with a digest of all that it says."""
    refs = read_refs(Path(agent_git))
    said = repr(astuple(refs)).encode(errors="surrogateescape")
    index = read_file(agent_git, "index", most=_MOST_INDEX)
    said += index if isinstance(index, bytes) else b""
    return AgentSight(refs, hashlib.sha256(said).hexdigest())


def keep_index(git: InsideGit, workspace: Workspace) -> None:
    """Keep the index of a collection; there is no note of it yet."""
    forget_sight(workspace)
    copy_index(Path(git.git_dir, "index"), Path(workspace.directory, _INDEX))


def note_sight(
    workspace: Workspace,
    sight: AgentSight,
    head: tuple[str, str],
    kept: dict[str, str],
    *,
    began: DiskMoment | None,
) -> None:
    """Note that all of a workspace is kept under some refs, as it was at a sight.

    `head` is the commit that has its files, with its tree. `began` is before the first of them was
    read.
    """
    commit, tree = head
    note = _Note(sight=sight.digest, head=commit, tree=tree, kept=kept, began=began)
    Path(workspace.directory, _NOTE).write_text(json.dumps(note))


def forget_sight(workspace: Workspace) -> None:
    """Remove the note and the index, if there are any; a stray has no folder for them."""
    for name in (_NOTE, _INDEX) if workspace.directory else ():
        Path(workspace.directory, name).unlink(missing_ok=True)


async def collected_as(repo: Repo, workspace: Workspace, wrap: Wrap) -> str | None:
    """Return the commit that has a workspace's files, as the last collection found them.

    None if anything that a collection would take may have changed since. What git ignores is not
    looked at: it is in no commit, and goes to the trash with the rest.
    """
    note = await to_thread.run_sync(_noted, workspace)
    if note is None or not await _is_as_noted(repo, workspace, wrap, note):
        return None
    return note.get("head", note["kept"].get(workspace.refs.head))


async def _is_as_noted(repo: Repo, workspace: Workspace, wrap: Wrap, note: "_Note") -> bool:
    agent_git = workspace.git_dir
    if agent_git is None:
        return False
    if (await to_thread.run_sync(sight_of, agent_git)).digest != note["sight"]:
        return False
    if await few_refs_below(repo, workspace.refs.pinned) != note["kept"]:
        return False
    if await to_thread.run_sync(_is_untouched, workspace, note.get("began")):
        return True
    source = Source(
        worktree=workspace.path,
        agent_git=agent_git,
        folder=Path(workspace.collect_dir, "git"),
        index=Path(workspace.directory, _INDEX),
        start=Path(workspace.directory, "start"),
    )
    with suppress(GitFailed):  # whatever it is, collecting once more gets past it or says why
        async with InsideGit.opened(repo, source, wrap) as git:
            work = partial(_is_tree, git, note["tree"])
            found, is_same = await past_obstacles(workspace.path, work)
        return is_same and not (found.moved or found.odd)
    return False


def _is_untouched(workspace: Workspace, noted: Sequence[Any] | None) -> bool:
    """Tell whether nothing in a tree was touched since a moment before its files were read.

    A time that equals the moment's proves nothing: clocks of file systems tick.
    """
    now = DiskMoment.now(workspace.path)
    if noted is None or now is None:
        return False
    began = DiskMoment.noted(noted)
    if not now.is_after(began):
        return False
    seen = last_change(workspace.path)
    return seen is not None and seen.folder == began.folder and seen.at_ns < began.disk_ns


async def _is_tree(git: InsideGit, tree: str) -> bool:
    """Tell whether index and files are those of a tree, and nothing lies beside them."""
    listing = await git("ls-files", "-v", "-z")
    flagged = [one for one in listing.split(b"\0") if one and not one.startswith(b"H ")]
    if any(not one.startswith(b"S ") for one in flagged):
        return False  # a file that git was told not to look at
    left_out = [one[2:] for one in flagged]
    if left_out and await to_thread.run_sync(present_of, git.source.worktree, left_out):
        return False
    if await git("ls-files", "-z", "--others", "--exclude-standard"):
        return False
    if await git("diff-files", "--name-only", "-z", "--ignore-submodules=none"):
        return False
    return (await git("write-tree")).decode().strip() == tree


class _Note(TypedDict):
    sight: str
    head: str
    tree: str
    kept: dict[str, str]
    began: DiskMoment | None


def _noted(workspace: Workspace) -> _Note | None:
    path = Path(workspace.path)
    if not path.is_dir() or path.is_symlink():
        return None
    try:
        note: _Note = json.loads(Path(workspace.directory, _NOTE).read_bytes())
    except (OSError, ValueError):
        return None
    return note if Path(workspace.directory, _INDEX).is_file() else None
