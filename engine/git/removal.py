"""Taking workspaces and branches away: only what is provably kept elsewhere, and never at once.

One rule for all of it, with a reason for each thing that stays. What goes is renamed into the trash
and can be put back.
"""

import errno
import os
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
from anyio import CancelScope, to_thread

from engine.beneath import join, remove_tree
from engine.errors import WorkspaceError
from engine.git.arrivals import LOST
from engine.git.collection import CollectRefused, CollectRequest, collect
from engine.git.diff import is_ancestor
from engine.git.merge3 import Merger
from engine.git.names import RefNames
from engine.git.objects import RefMove, RefMoved, is_id, move_refs, resolve, set_refs, tree_of
from engine.git.runner import WRITE, Repo, Where
from engine.git.seen_before import collected_as, forget_sight
from engine.git.sparse import mark_left_out
from engine.git.workspace import NOTE, Strategy, Workspace, fill
from engine.git.worktrees import admin_dir, checkouts, drop_entry, put_in_place
from engine.private import private_folder
from engine.system import IS_PORTABLE
from engine.values import dataclass

_SHOWN = 5
TREE = "tree"
"""The folder of a workspace's files in its item of the trash."""


@dataclass(frozen=True, kw_only=True)
class RemovalVerdict:
    """A verdict on removing a workspace. With no reasons to stay it may go.

    Attributes:
        files: The commit that has its files: the attempt's head, or another if something was done
            there after the attempt was recorded. Empty if nobody looked.
    """

    workspace: Workspace
    reasons: tuple[str, ...] = ()
    files: str = ""

    @property
    def is_safe(self) -> bool:
        """Everything in it is kept elsewhere."""
        return not self.reasons


@dataclass(frozen=True, kw_only=True)
class Removed:
    """A workspace that went, and where its files are now.

    Attributes:
        head: The commit with those that are not there any more: another workspace began with them.
        files: As `RemovalVerdict.files`. The labels of earlier versions lack it: there, removing a
            workspace moved the head.
    """

    workspace: Workspace
    kept_in: str
    head: str = ""
    files: str = ""


async def examine(
    repo: Repo, workspace: Workspace, request: CollectRequest, *, is_asked: bool = False
) -> RemovalVerdict:
    """Judge if a workspace may go: it is as it was collected, or is collected once more.

    What was done there since the attempt was recorded is kept beside its head, and moves neither
    the head nor the branch. With `is_asked` they stay although nothing is recorded: it is not to go
    now. Ignored files do not keep it: they go to the trash with it, whole.
    """
    busy = await to_thread.run_sync(processes_in, workspace.path)
    if busy:
        names = ", ".join(busy[:_SHOWN])
        return RemovalVerdict(workspace=workspace, reasons=(f"it is in use by {names}",))
    if workspace.strategy is Strategy.DIRECTORY:
        return await to_thread.run_sync(_examine_directory, workspace)
    await keep_detached(repo, workspace)
    files = await collected_as(repo, workspace, request.wrap)
    if files is not None:
        return RemovalVerdict(workspace=workspace, files=files)
    is_late = is_asked or await resolve(repo, workspace.refs.head) is not None
    change = await collect(repo, workspace, request, is_late=is_late)
    if isinstance(change, CollectRefused):
        reason = f"plait did not accept its work: {change.reason}"
        return RemovalVerdict(workspace=workspace, reasons=(reason,))
    reasons = [
        f"{os.fsdecode(one.path)!r} ({one.size} bytes, {one.reason}) is in no commit"
        for one in change.set_aside
        if not one.is_empty
    ]
    reasons += [
        f"the repository in {os.fsdecode(one.path)!r} has no other copy: {one.note}"
        for one in change.embedded
        if one.bundle is None
    ]
    return RemovalVerdict(workspace=workspace, reasons=tuple(reasons), files=change.head)


async def keep_detached(repo: Repo, workspace: Workspace) -> None:
    """Keep the commits on which only the HEAD of a linked worktree stands: it goes with that."""
    # By its path: one that was restored has another entry than the one that was noted.
    places = [one for one in await checkouts(repo) if one.path == workspace.path]
    head = await to_thread.run_sync(_detached_head, places[0].git_dir) if places else None
    if head is None:
        return
    others = ("--branches", "--tags", "--remotes", "--glob=refs/plait")
    if await repo.read("rev-list", "--max-count=1", head, "--not", *others):
        ref = f"{workspace.refs.left}/{LOST}{head[:12]}"
        await set_refs(repo, [(ref, head)], say="plait: detached HEAD")


def _detached_head(admin: str) -> str | None:
    try:
        said = Path(admin, "HEAD").read_text().strip()
    except OSError:  # its entry is gone
        return None
    return said if is_id(said) else None


def _examine_directory(workspace: Workspace) -> RemovalVerdict:
    included = {os.fsdecode(one.path) for one in workspace.included if not one.refused}
    root = Path(workspace.path)
    own = [
        str(Path(folder, name).relative_to(root))
        for folder, _, names in os.walk(root)
        for name in names
        if str(Path(folder, name).relative_to(root)) not in included
    ]
    if not own:
        return RemovalVerdict(workspace=workspace)
    reason = f"{own[0]!r} and {len(own) - 1} more files have no other copy"
    return RemovalVerdict(workspace=workspace, reasons=(reason,))


def processes_in(path: str) -> list[str]:
    """Processes that stand in a folder."""
    root = str(Path(path).resolve())
    found: list[str] = []
    for pid in psutil.pids():
        try:
            place = _stands_in(pid)
            if pid != os.getpid() and (place == root or place.startswith(f"{root}/")):
                found.append(f"{psutil.Process(pid).name()} (process {pid})")
        except (psutil.Error, OSError):
            continue  # it has just ended, or is another's
    return found


def _stands_in(pid: int) -> str:
    """A process's folder; asked of the kernel itself where that can be, for there are many."""
    if IS_PORTABLE:
        return psutil.Process(pid).cwd() or ""
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - a `Path` costs more than the look
    except FileNotFoundError:
        return psutil.Process(pid).cwd() or ""


async def remove(repo: Repo, verdict: RemovalVerdict, trash: Path) -> Removed:
    """Move a workspace that may go into `trash`, a new folder of its own.

    Raises:
        WorkspaceError: It may not go.
    """
    workspace = verdict.workspace
    if not verdict.is_safe:
        raise WorkspaceError(f"{workspace.path} stays: {verdict.reasons[0]}")
    kept_in = await to_thread.run_sync(_to_trash, workspace, trash)
    if workspace.strategy is Strategy.WORKTREE:
        await to_thread.run_sync(forget_sight, workspace)
        async with repo.lock.held():
            await drop_entry(repo, Path(workspace.path))
    return Removed(workspace=workspace, kept_in=str(kept_in), files=verdict.files)


async def forget(
    repo: Repo, workspace: Workspace, *, with_branch: bool, with_base: bool = False
) -> None:
    """Let nothing say any more that a workspace was made whose folder is gone.

    Its branch goes too where that is asked for, unless it has moved since; and with `with_base` the
    ref of its base, of an attempt that never was.
    """
    await to_thread.run_sync(partial(Path(workspace.directory, NOTE).unlink, missing_ok=True))
    names = workspace.refs
    async with repo.lock.held():
        await drop_entry(repo, Path(workspace.path))
    base = await resolve(repo, names.base) if with_branch else None
    for ref in (names.branch_ref, *((names.base,) if with_base else ())):
        with suppress(RefMoved):
            await move_refs(repo, [RefMove(ref, None, base)], say="plait: not begun")


def _to_trash(workspace: Workspace, trash: Path) -> Path:
    private_folder(trash)
    target = trash / TREE
    if not os.path.lexists(workspace.path):
        return trash
    try:
        Path(workspace.path).rename(target)
    except OSError as failed:
        if failed.errno != errno.EXDEV:
            raise
        # Another file system: beside itself it can still be renamed at once and lose nothing.
        target = Path(f"{workspace.path}.trash")
        Path(workspace.path).rename(target)
    return target


async def restore(repo: Repo, removed: Removed) -> None:
    """Put a workspace back where it was, registered as it was.

    Raises:
        WorkspaceError: Something else is there now.
    """
    workspace = removed.workspace
    path = Path(workspace.path)
    if await to_thread.run_sync(os.path.lexists, path):
        raise WorkspaceError(f"{path} is in the way", hint="Move it away.")
    if workspace.strategy is not Strategy.WORKTREE:
        await to_thread.run_sync(_move_back, removed.kept_in, path, None)
        return
    names = workspace.refs
    async with repo.lock.held():
        await drop_entry(repo, path)
        head, is_on_branch = await _standing(repo, names, workspace.base)
        reason = ("--lock", "--reason", f"plait {workspace.attempt}")
        words = ("worktree", "add", "-q", *reason, "--detach", "--no-checkout")
        await repo.run(*words, str(path), head, call=WRITE)
        admin = await to_thread.run_sync(admin_dir, path)
        if removed.head:
            await _filled(repo, removed.head, (path, admin))
            await to_thread.run_sync(_bring_back, Path(removed.kept_in), path)
        else:
            await to_thread.run_sync(_move_back, removed.kept_in, path, path / ".git")
        where = Where(git_dir=admin, worktree=repo.void)
        await repo.run("read-tree", "--reset", head, call=WRITE, where=where)
        await mark_left_out(repo, workspace.cone, where, str(path))
        if is_on_branch:
            if await resolve(repo, names.branch_ref) is None:
                await set_refs(repo, [(names.branch_ref, head)], say="plait: restore")
            where = Where(git_dir=admin)
            await repo.run("symbolic-ref", "HEAD", names.branch_ref, call=WRITE, where=where)


async def _standing(repo: Repo, names: RefNames, base: str) -> tuple[str, bool]:
    """Return the commit that a restored worktree stands on, and whether on the worker's branch.

    That has more commits where the user added some. It is not of this attempt where it lacks the
    head of this one, or is checked out.
    """
    head = await resolve(repo, names.head) or base
    tip = await resolve(repo, names.branch_ref)
    if any(place.branch == names.branch_ref for place in await checkouts(repo)):
        return head, False
    if tip is None:
        return head, True
    return (tip, True) if await is_ancestor(repo, head, tip) else (head, False)


async def _filled(repo: Repo, commit: str, place: tuple[Path, str]) -> None:
    """Write the files of a commit where nothing is yet; leave nothing if that fails."""
    path, admin = place
    is_done = False
    try:
        await fill(repo, commit, Where(git_dir=admin, worktree=str(path)))
        is_done = True
    finally:
        if not is_done:
            with CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, path)
                await drop_entry(repo, path)


def _move_back(kept_in: str, path: Path, gitfile: Path | None) -> None:
    """Rename back; the `.git` file of the new registration takes the place of the old one."""
    if gitfile is not None:
        put_in_place(Path(kept_in), path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    Path(kept_in).rename(path)


def _bring_back(kept_in: Path, path: Path) -> None:
    """Lay the files that no other workspace began with over those that git has made again."""
    for source in (kept_in, rest_of(kept_in)):
        if source.is_dir() and not join(source, path, skipped=(b".git",)):
            raise WorkspaceError(
                f"some files could not be moved from {source} to {path}",
                hint="Move them yourself, then run `plait clean`.",
            )


def rest_of(kept_in: Path) -> Path:
    """Return the folder for the files of a tree that no other workspace may begin with."""
    return kept_in.with_name(f"{kept_in.name}.rest")


async def is_contained(repo: Repo, merger: Merger, change: tuple[str, str], target: str) -> bool:
    """Tell whether all of a change is in the target, whether merged, squashed or rebased there.

    The change is its recorded base and its head: its own history may say anything.
    """
    base, head = change
    if await is_ancestor(repo, head, target):
        return True
    merged = await merger.merge3(base, target, head)
    return merged.is_clean and merged.tree == await tree_of(repo, target)


async def remove_branch(
    repo: Repo,
    merger: Merger,
    names: RefNames,
    *,
    targets: Sequence[str],
    landed: str | None = None,
    going: Container[str] | None = None,
) -> str | None:
    """Delete a worker's branch if its work is in a target and pinned; why it stays, or nothing.

    `landed` is the commit by which exactly the work of this branch came to its target, if it did.
    Where it is only to be said, `going` are the worktrees that would be gone by then. None means
    that there is no such branch.
    """
    tip = await resolve(repo, names.branch_ref)
    if tip is None:
        return None
    pinned = await resolve(repo, names.head)
    if pinned is None or not await is_ancestor(repo, tip, pinned):
        return "it has commits that no attempt has"
    held = [place.path for place in await checkouts(repo) if place.branch == names.branch_ref]
    if any(path not in (going or ()) for path in held):
        return "it is checked out"
    base = await resolve(repo, names.base)
    if tip != base and not await _is_in(repo, merger, (base, tip), targets, landed=landed):
        return "its work has not landed yet"
    if going is not None:
        return ""
    try:
        move = RefMove(names.branch_ref, None, tip)
        await move_refs(repo, [move], say="plait: clean")
    except RefMoved:
        return "it has just moved"
    return ""


async def _is_in(
    repo: Repo,
    merger: Merger,
    change: tuple[str | None, str],
    targets: Sequence[str],
    *,
    landed: str | None,
) -> bool:
    """Tell whether a change is in one of these targets, by what was recorded of it or by trees."""
    base, head = change
    for target in targets:
        if landed is not None and await is_ancestor(repo, landed, target):
            return True
        if base is not None and await is_contained(repo, merger, (base, head), target):
            return True
    return False


async def drop_missing(repo: Repo, workspace_root: Path) -> tuple[str, ...]:
    """Forget registered worktrees of ours below a root whose folder is gone; which they were."""
    dropped: list[str] = []
    async with repo.lock.held():  # nobody is half-way through making one
        listing = await repo.read("worktree", "list", "--porcelain", "-z")
        for record in os.fsdecode(listing).split("\0\0"):
            lines = record.split("\0")
            path = Path(lines[0].removeprefix("worktree "))
            is_ours = any(line.startswith("locked plait ") for line in lines)
            is_below = path.is_relative_to(workspace_root)
            if is_ours and is_below and not await to_thread.run_sync(os.path.lexists, path):
                await drop_entry(repo, path)
                dropped.append(str(path))
    return tuple(dropped)
