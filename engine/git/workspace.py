"""The place where one attempt works: made whole or not at all, and made again harmlessly.

Knows the three strategies. `worktree`: a linked worktree outside the user's tree, for the user to
look at, with a private clone that the agent's git works in. `clone`: the private clone lies in the
workspace itself. `directory`: no git at all.

Files that git does not know and a build needs all the same are copied in; the user lists them
(`workspace.include`, `.worktreeinclude`). Nothing is overwritten or moved, and no link that leads
out of the user's tree is followed or copied.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.beneath import (
    EntryKind,
    PathRefused,
    WalkEntry,
    copy_tree,
    kind_of,
    list_tree,
    remove_tree,
)
from engine.errors import GitFailed, WorkspaceError
from engine.git.cone import Cone, cone_of, flags_of
from engine.git.filled import note_filled
from engine.git.names import PREFIX, RefNames, check_prefix
from engine.git.objects import set_refs
from engine.git.private import PrivateClone, make_private, renew_refs
from engine.git.runner import Call, Repo, Where, is_passing
from engine.git.staging import copy_index
from engine.git.submodules import fill_submodules, hide_links
from engine.git.worktrees import (
    admin_dir,
    detach_others,
    drop_entry,
    is_plain,
    put_in_place,
    register,
)
from engine.ids import AttemptId
from engine.patterns import gather
from engine.private import private_folder

FILE = ".worktreeinclude"
_BLOCK = 2048  # what a file takes on disk beyond its length, on average
NOTE = "workspace.json"
_NOTED = ["strategy", "path", "directory", "base", "branch_prefix", "git_dir", "gitfile"]
_FETCHED_BY = ("https", "ssh", "git", "file")


@dataclass(frozen=True, slots=True)
class Include:
    """One path that was asked for: copied, or why not."""

    path: bytes
    refused: str = ""


async def copy_includes(repo: Repo, patterns: Sequence[str], target: str) -> tuple[Include, ...]:
    """Copy what the patterns (in the language of `.gitignore`) name and git does not track."""
    if repo.worktree is None:
        return ()
    wanted = [*patterns, *(await to_thread.run_sync(_listed, repo.worktree))]
    if not wanted:
        return ()
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    words = ["ls-files", "-z", "--others", "--ignored", "--directory"]
    words += [f"--exclude={pattern}" for pattern in wanted]
    listing = await repo.read(*words, call=Call(), where=where)
    names = [name for name in listing.split(b"\0") if name]
    return await to_thread.run_sync(_copy_all, repo.worktree, target, names)


def _listed(worktree: str) -> list[str]:
    try:
        content = Path(worktree, FILE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [line for line in content.split("\n") if line.strip() and not line.startswith("#")]


def _copy_all(source: str, target: str, names: Iterable[bytes]) -> tuple[Include, ...]:
    wanted: list[bytes] = []
    refused: list[Include] = []
    top = Path(source).resolve()
    for entry in (one for name in names for one in _below(source, name.rstrip(b"/"))):
        if isinstance(entry, PathRefused):
            refused.append(Include(entry.path, entry.reason))
        elif entry.kind is EntryKind.LINK and not _leads_inside(top, entry.path):
            refused.append(Include(entry.path, "the link points outside the repository"))
        elif entry.kind is not EntryKind.FOLDER:
            wanted.append(entry.path)
    done = copy_tree(source, wanted, target)
    copied = [Include(path) for path in done.files]
    return (*copied, *refused, *(Include(one.path, one.reason) for one in done.refused))


def _copy_brought(source: str, target: str) -> tuple[Include, ...]:
    names = sorted(os.fsencode(path.name) for path in Path(source).iterdir())
    return _copy_all(source, target, names)


def _below(source: str, name: bytes) -> Iterator[WalkEntry | PathRefused]:
    """List a name and all that lies below it; a link to a folder is one entry."""
    place = os.fsencode(source) + b"/" + name
    try:
        seen = os.lstat(place)
    except OSError:
        return
    yield WalkEntry(name, kind_of(seen.st_mode), seen.st_size, seen.st_mode)
    if stat.S_ISDIR(seen.st_mode):
        for one in list_tree(place):
            yield replace(one, path=name + b"/" + one.path)


def _leads_inside(top: Path, name: bytes) -> bool:
    return Path(top, os.fsdecode(name)).resolve().is_relative_to(top)


_NOTED += ["objects", "branch", "admin", "folders"]


class Strategy(StrEnum):
    """The way a workspace is kept apart."""

    WORKTREE = "worktree"
    CLONE = "clone"
    DIRECTORY = "directory"


@dataclass(frozen=True, kw_only=True)
class Spare:
    """A tree to begin with instead of an empty folder, filled by our git and touched by nobody.

    Attributes:
        tree: Where it lies, on the file system of the workspace.
        index: What git knows of its files.
        base: The commit that they are of.
        is_whole: No file is missing.
    """

    tree: Path
    index: Path
    base: str
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class WorkspaceRequest:
    """A workspace to make.

    Attributes:
        base: The commit to start from.
        path: Where the working tree goes.
        directory: The attempt's own folder, for the private clone and our notes about it.
        includes: What to copy from the user's tree beside what git knows.
        brought: A folder that was filled with these files, where that tree cannot be read.
        is_mounted: A sandbox will bind `gitfile` over the workspace's `.git`; without one the
            workspace's own `.git` points to the private clone until it is collected.
        spare: A tree to begin a worktree with.
        folders: The folders to check out, with the files above them; None for all.
        is_ahead: Nobody works there yet; what is to be as new as possible then is left to
            `complete`.
    """

    attempt: AttemptId
    base: str
    path: Path
    directory: Path
    strategy: Strategy = Strategy.WORKTREE
    branch_prefix: str = PREFIX
    includes: Sequence[str] = ()
    brought: str = ""
    is_mounted: bool = True
    spare: Spare | None = None
    folders: tuple[str, ...] | None = None
    is_ahead: bool = False


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A place to work in, as plain data.

    Attributes:
        path: The working tree.
        git_dir: The private clone, which the agent may write; None without git.
        gitfile: A file to bind over `path/.git`, read-only; None where nothing is to be bound.
        objects: Folders of borrowed objects, to be bound read-only where they lie.
        branch: The branch on which the agent finds itself.
        admin: The worktree's own folder in the shared `.git`; None for the other strategies.
        included: What was copied, and what was not and why.
        folders: The folders that were checked out, with the files above them; None for all.
    """

    attempt: AttemptId
    strategy: Strategy
    path: str
    directory: str
    base: str
    branch_prefix: str = PREFIX
    git_dir: str | None = None
    gitfile: str | None = None
    objects: tuple[str, ...] = ()
    branch: str = ""
    admin: str | None = None
    included: tuple[Include, ...] = ()
    folders: tuple[str, ...] | None = None

    @property
    def cone(self) -> Cone | None:
        """The part of the repository that was checked out; None for all of it."""
        return cone_of(self.folders)

    @property
    def collect_dir(self) -> str:
        """The one folder that reading this workspace writes to; the agent must never reach it."""
        return f"{self.directory}/collect"

    @property
    def refs(self) -> RefNames:
        """The refs of this attempt."""
        return RefNames(self.attempt, self.branch_prefix)


async def prepare(repo: Repo, wanted: WorkspaceRequest) -> Workspace:
    """A workspace filled with its base; an earlier try that was cut short is made anew.

    Raises:
        WorkspaceError: It cannot be made; nothing of it is left.
        BranchTaken: A branch of the user's is in the way.
    """
    made = await to_thread.run_sync(recall, wanted.attempt, wanted.directory)
    if made is not None:
        return made
    if wanted.strategy is Strategy.DIRECTORY:
        workspace = await _directory(wanted)
    else:
        await _fetch_missing(repo, wanted.base)
        names = RefNames(wanted.attempt, wanted.branch_prefix)
        make = _clone if wanted.strategy is Strategy.CLONE else _worktree
        workspace = await make(repo, wanted, names)
    included: tuple[Include, ...] = ()
    if wanted.brought:
        included = await to_thread.run_sync(_copy_brought, wanted.brought, workspace.path)
    elif not wanted.is_ahead:
        included = await copy_includes(repo, wanted.includes, workspace.path)
    workspace = replace(workspace, included=included)
    await to_thread.run_sync(_remember, workspace)
    return workspace


async def complete(
    repo: Repo, wanted: WorkspaceRequest, made: Workspace, *, has_old_refs: bool
) -> Workspace:
    """Bring what was made ahead up to date for its attempt, which begins now.

    Doing it again is harmless, as long as nobody works there.
    """
    if has_old_refs and made.git_dir is not None:
        clone = PrivateClone(
            path=Path(made.git_dir),
            branch=made.refs.branch_ref,
            base=made.base,
            hide=made.branch_prefix,
        )
        await renew_refs(repo, clone)
        start = Path(made.directory, "start", "packed-refs")
        await to_thread.run_sync(shutil.copyfile, clone.path / "packed-refs", start)
    included = await copy_includes(repo, wanted.includes, made.path)
    if included:
        made = replace(made, included=included)
        await to_thread.run_sync(_remember, made)
    return made


async def _name(repo: Repo, wanted: WorkspaceRequest, *refs: str) -> None:
    """Set refs of the attempt's to its base."""
    try:
        await set_refs(repo, [(ref, wanted.base) for ref in refs], say="plait: prepare")
    except GitFailed:
        await check_prefix(repo, wanted.branch_prefix)  # the one reason that can be told in words
        raise


async def check_space(
    repo: Repo, commit: str, *, root: Path, count: int, floor: int, cone: Cone | None = None
) -> None:
    """Make sure that so many workspaces of a commit fit, and leave `floor` bytes free.

    Raises:
        WorkspaceError: They do not.
    """
    ask = partial(_size, repo, commit, cone)
    wanted = count * int(await repo.cache.of(("size", commit, cone and cone.folders), ask))
    free = await to_thread.run_sync(_free, root)
    if free - wanted < floor:
        mb = 1 << 20
        raise WorkspaceError(
            f"{count} worktrees need about {wanted // mb + 1} MB and must leave {floor // mb} "
            f"MB free, but only {free // mb} MB are free below {root}",
            hint="Start fewer workers at once, free some space, or set `workspace_root`.",
        )


async def _size(repo: Repo, commit: str, cone: Cone | None) -> str:
    """Return about how many bytes the files of a commit take."""
    listing = await repo.read("ls-tree", "-r", "-l", "-z", commit)
    records = (record.split(b"\t", 1) for record in listing.split(b"\0") if record)
    sizes = (head.split()[3] for head, path in records if cone is None or cone.holds(path))
    return str(sum(int(size) + _BLOCK for size in sizes if size.isdigit()))


def _free(root: Path) -> int:
    place = next(folder for folder in (root, *root.parents) if folder.exists())
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def _remember(workspace: Workspace) -> None:
    """Say on disk that it is whole: from now on an agent may have work in it."""
    included = [[os.fsdecode(one.path), one.refused] for one in workspace.included]
    noted = {name: getattr(workspace, name) for name in _NOTED} | {"included": included}
    file = Path(workspace.directory, NOTE)
    draft = file.with_suffix(".partial")
    with draft.open("w", encoding="utf-8", errors="surrogateescape") as written:
        json.dump(noted, written)
        written.flush()
        os.fsync(written.fileno())
    draft.replace(file)


def recall(attempt: AttemptId, directory: Path) -> Workspace | None:
    """Return the workspace that was made for an attempt; None if it was never whole."""
    private_folder(directory / "collect")
    try:
        noted = json.loads((directory / NOTE).read_bytes())
    except FileNotFoundError:
        return None
    included = tuple(Include(os.fsencode(path), why) for path, why in noted.pop("included"))
    noted["objects"] = tuple(noted["objects"])
    noted["strategy"] = Strategy(noted["strategy"])
    folders = noted.pop("folders", None)
    noted["folders"] = None if folders is None else tuple(folders)
    return Workspace(attempt=attempt, included=included, **noted)


async def _directory(wanted: WorkspaceRequest) -> Workspace:
    await to_thread.run_sync(private_folder, wanted.path)
    return Workspace(
        attempt=wanted.attempt,
        strategy=wanted.strategy,
        path=str(wanted.path),
        directory=str(wanted.directory),
        base=wanted.base,
    )


async def _clone(repo: Repo, wanted: WorkspaceRequest, names: RefNames) -> Workspace:
    git_dir = wanted.path / ".git"
    await _name(repo, wanted, names.base)
    await to_thread.run_sync(_clear, wanted.path, None)
    cone = cone_of(wanted.folders)
    objects = await make_private(repo, _private(wanted, names, git_dir))
    where = Where(git_dir=str(git_dir), worktree=str(wanted.path), index=f"{git_dir}/index")
    await fill(repo, wanted.base, where, cone=cone)
    objects += await fill_submodules(
        repo, wanted.base, worktree=wanted.path, private=git_dir, cone=cone
    )
    await to_thread.run_sync(_note_start, git_dir, git_dir / "index", wanted.directory)
    async with repo.lock.held():
        await detach_others(repo, names.branch_ref)
        await _name(repo, wanted, names.branch_ref)
    return Workspace(
        attempt=wanted.attempt,
        strategy=wanted.strategy,
        path=str(wanted.path),
        directory=str(wanted.directory),
        base=wanted.base,
        branch_prefix=wanted.branch_prefix,
        git_dir=str(git_dir),
        objects=objects,
        branch=names.branch,
        folders=wanted.folders,
    )


def _private(wanted: WorkspaceRequest, names: RefNames, git_dir: Path) -> PrivateClone:
    return PrivateClone(
        path=git_dir,
        branch=names.branch_ref,
        base=wanted.base,
        hide=wanted.branch_prefix,
        cone=cone_of(wanted.folders),
    )


async def _worktree(repo: Repo, wanted: WorkspaceRequest, names: RefNames) -> Workspace:
    path, directory = wanted.path, wanted.directory
    git_dir, gitfile = directory / "git", directory / "gitfile"
    async with repo.lock.held():
        await detach_others(repo, names.branch_ref)
        await _name(repo, wanted, names.base, names.branch_ref)
        admin = await _register(repo, wanted, names.branch, git_dir)
    private = _private(wanted, names, git_dir)
    outer = Where(git_dir=admin, worktree=str(path))
    if private.cone is not None:
        await to_thread.run_sync(private.cone.write, admin)
    if wanted.spare is not None:
        await to_thread.run_sync(_begin_with, wanted.spare, path, admin)
    # Beside each other: neither touches what the other does, and the files take long.
    done: list[tuple[str, ...] | None] = await gather(
        [partial(make_private, repo, private), partial(_fill, repo, wanted, outer)]
    )
    objects = done[0] or ()
    objects += await fill_submodules(
        repo, wanted.base, worktree=path, private=git_dir, cone=private.cone
    )
    await to_thread.run_sync(_finish, (path, admin), (git_dir, gitfile), wanted.is_mounted)
    await hide_links(repo, admin)
    if private.cone is None:  # another worktree may begin with all files only
        await note_filled(repo, str(path), directory, wanted.base)
    return Workspace(
        attempt=wanted.attempt,
        strategy=wanted.strategy,
        path=str(path),
        directory=str(directory),
        base=wanted.base,
        branch_prefix=wanted.branch_prefix,
        git_dir=str(git_dir),
        gitfile=str(gitfile) if wanted.is_mounted else None,
        objects=objects,
        branch=names.branch,
        admin=admin,
        folders=wanted.folders,
    )


async def _register(repo: Repo, wanted: WorkspaceRequest, branch: str, private: Path) -> str:
    """Add the linked worktree on its branch; return its own folder in the shared `.git`.

    The user's own git takes no lock of ours: when the two meet, half of an entry is left, and the
    whole is tried again.
    """
    reason = f"plait {wanted.attempt}"
    locked = ("--lock", "--reason", reason)
    # Forced: git counts those of ours whose folder is gone; nobody else's is on the branch.
    words = ("worktree", "add", "-qf", *locked, "--no-checkout", str(wanted.path), branch)
    for tries_left in (4, 3, 2, 1, 0):
        await to_thread.run_sync(_clear, wanted.path, private)
        await drop_entry(repo, wanted.path)
        if is_plain(await repo.configuration()):
            entry = await to_thread.run_sync(register, repo, wanted.path, branch, reason)
            if entry is not None:
                return entry
        try:
            await repo.run(*words, call=Call(writes=True, is_repeatable=False))
            return await to_thread.run_sync(admin_dir, wanted.path)
        except GitFailed as failed:
            if not tries_left or not is_passing(failed):
                raise
    raise AssertionError("the last try has neither an answer nor an error")


async def _fill(repo: Repo, wanted: WorkspaceRequest, where: Where) -> None:
    """Write what the tree does not have yet."""
    spare = wanted.spare
    if spare is None or spare.base != wanted.base:
        await fill(repo, wanted.base, where, cone=cone_of(wanted.folders))
    elif not spare.is_whole:
        call = Call(writes=True, timeout_s=1800)
        await repo.run("checkout-index", "-q", "-f", "-u", "-a", call=call, where=where)


async def fill(repo: Repo, base: str, where: Where, *, cone: Cone | None = None) -> None:
    """Write the base's files, outside the lock: this is what takes long."""
    call = Call(writes=True, timeout_s=1800, flags=flags_of(cone))
    await repo.run(
        "read-tree", "--reset", "-u", "--no-recurse-submodules", base, call=call, where=where
    )


def _begin_with(spare: Spare, path: Path, admin: str) -> None:
    """Put a spare tree where a worktree is registered, with its index."""
    put_in_place(spare.tree, path)
    # The new time of the copy says that no file was changed in the moment when it was read. The
    # kernel's times have proved that, more finely than git compares them.
    shutil.copyfile(spare.index, Path(admin, "index"))


def _clear(path: Path, private: Path | None) -> None:
    """Take away what an earlier try left: it was never whole, so no agent has been in it."""
    for folder in (path, private):
        if folder is None:
            continue
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise WorkspaceError(f"{folder} is in the way", hint="Move it away.")
        if remove_tree(folder):
            raise WorkspaceError(f"{folder} cannot be removed", hint="Remove it yourself.")
    private_folder(path)  # git would make it, and those above it, for everybody


def _finish(place: tuple[Path, str], private: tuple[Path, Path], is_mounted: bool) -> None:  # noqa: FBT001 (run in a thread)
    """Hand the filled index to the private clone, and say where the agent's git is."""
    path, admin = place
    git_dir, gitfile = private
    copy_index(Path(admin, "index"), git_dir / "index")
    _note_start(git_dir, Path(admin, "index"), gitfile.parent)
    line = b"gitdir: " + os.fsencode(git_dir) + b"\n"
    gitfile.write_bytes(line)
    if not is_mounted:
        (path / ".git").write_bytes(line)


def _note_start(git_dir: Path, index: Path, directory: Path) -> None:
    """Keep, out of the agent's reach, what collecting compares with."""
    copy_index(index, directory / "index")
    start = directory / "start"
    shutil.rmtree(start, ignore_errors=True)
    shutil.copytree(git_dir / "info", start / "info")
    for name in ("HEAD", "packed-refs"):
        shutil.copyfile(git_dir / name, start / name)


async def _fetch_missing(repo: Repo, commit: str) -> None:
    """Fetch what a partial clone left at its remote of a commit's tree.

    Git would fetch them one by one in the middle of a checkout, by whatever program the repository
    names. Here it is one fetch, over the user's own connections, for exactly one commit's files.

    Raises:
        GitFailed: The remote could not be reached, or does not have them any more.
    """
    if repo.settings.promisor is None:
        return
    words = ("rev-list", "--objects", "--missing=print", "--no-walk", commit)
    listing = (await repo.read(*words)).decode(errors="surrogateescape")
    missing = [line[1:] for line in listing.split("\n") if line.startswith("?")]
    if not missing:
        return
    flags = tuple(w for name in _FETCHED_BY for w in ("-c", f"protocol.{name}.allow=always"))
    call = Call(
        stdin="".join(f"{oid}\n" for oid in missing).encode(),
        writes=True,
        flags=(*flags, "-c", "fetch.negotiationAlgorithm=noop", *repo.settings.network_flags),
        env=repo.settings.environment,
        timeout_s=1800,
    )
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
    async with repo.lock.held():
        await repo.run(
            *("fetch", *options, "--recurse-submodules=no", "--filter=blob:none", "--stdin"),
            repo.settings.promisor,
            call=call,
        )
