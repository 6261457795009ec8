"""Writing a checked-out branch's files, index and ref so that a crash in between can be repaired.

The order is files, index, ref. While it goes on the user's index is locked by a file of ours whose
content says so: no git of the user's can commit meanwhile, and after a crash nobody takes the lock
for a stranger's. Writing again from any point gives the same end.
"""

import json
import os
import secrets
import stat
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from anyio import to_thread

from engine.beneath import Why, copy_as, copy_tree, remove_tree
from engine.errors import GitFailed, WorkspaceError, WorktreeBusy
from engine.git.objects import scratch_folder
from engine.git.plumbing.contents import FileVersion
from engine.git.runner import Call, Repo, Where
from engine.git.staging import copy_index
from engine.git.touched import Moves, Touched, conversion, index_at, index_lines, left_out
from engine.git.worktrees import Checkout
from engine.private import private_folder

_TOKEN = b"plait landing "
_FEW = ("-c", "index.threads=1", "-c", "core.preloadIndex=false")
"""For a few files of many: threads cost more than they save."""
_LINK_TO_COMMIT = "160000"


@dataclass
class IndexGuard:
    """A lock on the user's index.

    Attributes:
        was_left: The same landing had left it there: files may be half written.
        is_kept: Leave it when the scope ends, because what was begun is not finished.
    """

    was_left: bool = False
    is_kept: bool = False


@asynccontextmanager
async def locked_index(repo: Repo, place: Checkout, name: str) -> AsyncIterator[IndexGuard]:
    """The user's index locked for a landing; a lock that the same landing left is taken over.

    Raises:
        WorktreeBusy: Some other git has locked it.
    """
    guard = IndexGuard()
    guard.was_left = await to_thread.run_sync(_lock, repo.plait_dir / "git", place, name)
    try:
        yield guard
    finally:
        if not guard.is_kept:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_unlock, place, name)


def _lock(ours: Path, place: Checkout, name: str) -> bool:
    """Lock; whether this landing had done so before."""
    lock = Path(place.git_dir, "index.lock")
    with TemporaryDirectory(prefix="scratch-", dir=ours) as folder:
        token = Path(folder, "lock")
        token.write_bytes(_TOKEN + name.encode() + b"\n")
        try:
            lock.hardlink_to(token)
        except FileExistsError:
            if not is_ours(lock, name):
                raise WorktreeBusy(place.path, "another git (it holds index.lock)") from None
            return True
    return False


def _unlock(place: Checkout, name: str) -> None:
    lock = Path(place.git_dir, "index.lock")
    if is_ours(lock, name):
        lock.unlink(missing_ok=True)


def is_ours(lock: Path, name: str) -> bool:
    """The lock was made by this landing."""
    return lock_name(lock) == name


def lock_name(lock: Path) -> str:
    """Return the purpose of a lock of ours; nothing for one that is somebody else's."""
    try:
        content = lock.read_bytes()
    except OSError:
        return ""
    is_whole = content.startswith(_TOKEN) and content.endswith(b"\n")
    return content[len(_TOKEN) : -1].decode(errors="replace") if is_whole else ""


async def write_files(
    repo: Repo, place: Checkout, moves: Moves, *, commit: str | None = None
) -> Hashable:
    """Bring the files and the index entries to their new versions, which are this commit's.

    Says which index that makes, where it is known without another look.
    """
    if commit is not None and await _is_plain(repo, place, moves):
        with suppress(GitFailed):  # it may have written some: the long way writes them again
            return await _write_at_once(repo, place, moves, commit)
    async with scratch_folder(repo) as scratch:
        index = scratch / "index"
        where = Where(git_dir=place.git_dir, worktree=place.path, index=str(index))
        skipped = await _new_index(repo, place, moves.index, index)
        gone = [p.path for p in moves.files if p.new is None and not _is_link(p.old)]
        await to_thread.run_sync(_remove, place.path, gone)
        there = [
            (one.path, one.new)
            for one in moves.files
            if one.new is not None and not _is_link(one.new) and one.path not in skipped
        ]
        is_same = moves.files == moves.index
        source = where if is_same else replace(where, index=str(scratch / "files"))
        if there and not is_same:
            info = Call(stdin=index_lines(there, repo.zero))
            await repo.run("update-index", "-z", "--index-info", call=info, where=source)
        if there:
            await check_out(repo, source, b"".join(path + b"\0" for path, _ in there))
        await to_thread.run_sync(_install, index, Path(place.git_dir, "index"))
    return None


async def _is_plain(repo: Repo, place: Checkout, moves: Moves) -> bool:
    """Files stay files and folders folders, and nothing says of any that it is to be different."""
    if moves.files != moves.index or repo.settings.lfs or await left_out(repo, place):
        return False
    paths = {one.path for one in moves.index}
    folders = {parent for path in paths for parent in _folders(path)}
    return not folders & paths and not any(
        _is_link(one.old)
        or _is_link(one.new)
        or one.path.rpartition(b"/")[2] in {b".gitattributes", b".gitmodules"}
        for one in moves.index
    )


def _folders(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


async def _write_at_once(repo: Repo, place: Checkout, moves: Moves, commit: str) -> Hashable:
    """The same by one git, for what it can be trusted with; which index that makes."""
    real = Path(place.git_dir, "index")
    made: list[Hashable] = []

    def sow(folder: Path) -> None:
        _name_too(real, folder / "index")

    def harvest(folder: Path) -> None:
        _install(folder / "index", real)
        made.append(index_at(place.git_dir))

    async with scratch_folder(repo, sow, harvest) as scratch:
        index = scratch / "index"
        where = Where(git_dir=place.git_dir, worktree=place.path, index=str(index))
        words = ("checkout", "--quiet", "--no-overlay", "--pathspec-from-file=-")
        paths = b"".join(one.path + b"\0" for one in moves.index)
        flags = (*conversion(repo), *_FEW)
        call = Call(stdin=paths, flags=flags, writes=True, timeout_s=1800)
        await repo.run(*words, "--pathspec-file-nul", commit, call=call, where=where)
    return made[0]


async def check_out(repo: Repo, where: Where, paths: bytes) -> None:
    """Write files from the index, with large ones whole where they can be had, else as pointers."""
    words = ("checkout-index", "--force", "--quiet", "-u", "-z", "--stdin")
    call = Call(stdin=paths, flags=conversion(repo), writes=True, timeout_s=1800)
    if repo.settings.lfs:
        env = {**repo.settings.environment, "GIT_LFS_SKIP_SMUDGE": "0"}
        done = await repo.run(
            *words, call=replace(call, env=env, ok=tuple(range(256))), where=where
        )
        if done.exit_code == 0:
            return
    await repo.run(*words, call=call, where=where)


async def _new_index(
    repo: Repo, place: Checkout, touched: Sequence[Touched], index: Path
) -> frozenset[bytes]:
    """The user's index with the new entries; the paths that a sparse checkout leaves out."""
    real = Path(place.git_dir, "index")
    await to_thread.run_sync(_copy, real, index)
    where = Where(git_dir=place.git_dir, worktree=place.path, index=str(index))
    skipped = await left_out(repo, place)
    lines = index_lines([(one.path, one.new) for one in touched], repo.zero)
    if lines:
        call = Call(stdin=lines)
        await repo.run("update-index", "--replace", "-z", "--index-info", call=call, where=where)
    kept = [one.path for one in touched if one.new is not None and one.path in skipped]
    if kept:
        call = Call(stdin=b"".join(path + b"\0" for path in kept))
        await repo.run("update-index", "--skip-worktree", "-z", "--stdin", call=call, where=where)
    return frozenset(kept)


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        copy_index(source, target)


def _name_too(source: Path, target: Path) -> None:
    """The index under one more name: git never writes into one, it puts another in its place."""
    if not source.is_symlink():  # a relative one would lead nowhere from there
        with suppress(OSError):  # there is none, or no second name for it
            target.hardlink_to(source)
            return
    _copy(source, target)


def _is_link(version: FileVersion | None) -> bool:
    return version is not None and version.mode == _LINK_TO_COMMIT


def _install(index: Path, real: Path) -> None:
    """Put the new index in place: whole or not at all, whatever file system it comes from."""
    if not index.exists() or (real.exists() and index.samefile(real)):
        return
    near = real.with_name("index.plait")
    try:
        index.replace(near)
    except OSError:  # it lies on another file system
        copy_index(index, near)
    with near.open("rb") as file:
        os.fsync(file.fileno())
    near.replace(real)


def _remove(worktree: str, paths: Iterable[bytes]) -> None:
    """Take files away, and the folders that this empties, as git does."""
    root = Path(worktree)
    for path in paths:
        place = root / os.fsdecode(path)
        parents = [root / parent for parent in Path(os.fsdecode(path)).parents][:-1]
        if any(parent.is_symlink() for parent in parents):
            continue
        try:
            if stat.S_ISDIR(place.lstat().st_mode):
                continue
            place.unlink()
        except (FileNotFoundError, NotADirectoryError):
            pass  # an earlier try removed it: its folders may still be to go
        for parent in parents:
            try:
                parent.rmdir()
            except OSError:
                break  # not empty, or gone with an earlier file


@dataclass(frozen=True, slots=True)
class Trashed:
    """A file that was neither old nor new, and where its copy is."""

    path: bytes
    copy: str


COPIES = "copies.json"
"""In a folder of copies: the working tree they are from, and which of its paths."""


def keep_copies(worktree: str, paths: Iterable[bytes], trash: Path) -> tuple[Trashed, ...]:
    """Copy what is at the paths into a folder of its own in the trash; links stay links.

    Raises:
        WorkspaceError: Something there cannot be copied, so it must not be written over.
    """
    there = [path for path in sorted(paths) if _is_there(worktree, path)]
    if not there:
        return ()
    folder = trash / f"edits-{secrets.token_hex(4)}"
    private_folder(folder)
    label = {"worktree": worktree, "paths": [os.fsdecode(path) for path in there]}
    (folder / COPIES).write_text(json.dumps(label), encoding="utf-8")
    files = folder / "files"
    files.mkdir(mode=0o700)
    lost = [one for one in copy_tree(worktree, there, files).refused if one.why is not Why.GONE]
    if lost:
        raise WorkspaceError(
            f"{os.fsdecode(lost[0].path)} in {worktree} cannot be copied: {lost[0].reason}",
            hint="It is in the way of a file that plait must write. Move it.",
        )
    return tuple(Trashed(path, str(files / os.fsdecode(path))) for path in there)


def copied(folder: Path) -> tuple[str, tuple[str, ...]]:
    """The working tree that a folder's copies are from, and their paths in it.

    Raises:
        WorkspaceError: It says nothing that can be read.
    """
    try:
        label = json.loads((folder / COPIES).read_bytes())
        return str(label["worktree"]), tuple(map(str, label["paths"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceError(f"{folder / COPIES} cannot be read: {error}") from error


def put_back(folder: Path) -> tuple[str, ...]:
    """Put copies back where they were, or beside what is there now, with `.restored` behind.

    Raises:
        WorkspaceError: Their working tree is gone, or a path leads elsewhere now.
    """
    worktree, paths = copied(folder)
    if not Path(worktree).is_dir():
        raise WorkspaceError(f"{worktree} is gone", hint=f"The copies are in {folder / 'files'}.")
    found: list[str] = []
    for path in paths:
        copy, target = folder / "files" / path, Path(worktree, path)
        if not os.path.lexists(copy):
            continue  # it was put back before, or whoever made it died over it
        if any(parent.is_symlink() or parent.is_file() for parent in _between(target, worktree)):
            raise WorkspaceError(
                f"a file or a link is where {target} needs a folder",
                hint=f"Copy it from {copy}.",
            )
        free = _free(target)
        back = copy_as(folder / "files", path, worktree, free.relative_to(worktree))
        if back.refused:
            raise WorkspaceError(
                f"{free} cannot be written: {back.refused[0].reason}", hint=f"Copy it from {copy}."
            )
        remove_tree(folder / "files", path)
        found.append(str(free))
    return tuple(found)


def _free(target: Path) -> Path:
    names = (f"{target.name}.restored{number}" for number in ("", *range(2, 1000)))
    places = (target, *(target.with_name(name) for name in names))
    return next(place for place in places if not os.path.lexists(place))


def _is_there(worktree: str, path: bytes) -> bool:
    source = Path(worktree, os.fsdecode(path))
    is_behind_link = any(parent.is_symlink() for parent in _between(source, worktree))
    return os.path.lexists(source) and not is_behind_link


def _between(source: Path, worktree: str) -> list[Path]:
    inner = source.relative_to(worktree).parents
    return [Path(worktree, parent) for parent in inner if str(parent) != "."]
