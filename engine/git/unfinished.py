"""An operation of git's under way in the user's working tree: its sides, and how it goes on.

Reads what git left (the index's stages, the heads it noted, the files it wrote) and puts results
there. It never goes on by itself: that is the user's own command.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import psutil
from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git.checkout import keep_copies, lock_name, locked_index, write_files
from engine.git.common import common_sides
from engine.git.merge3 import ConflictedPath, Merger, Sides, Stage
from engine.git.objects import resolve
from engine.git.plumbing.contents import FileVersion
from engine.git.runner import Call, Repo, Where
from engine.git.staging import private_index
from engine.git.touched import Moves, Touched, conversion, differing
from engine.git.worktrees import Checkout
from engine.values import dataclass

_LOCK = "own merge"
_OWNER = re.compile(rf"{_LOCK} (\d+) ([\d.]+)")
_CLOCK_S = 5.0
"""The tolerance for a process's start: the boot, from which it counts, shifts with the clock."""
_STASHED = b">>>>>>> Stashed changes"


class Doing(StrEnum):
    """The operation that left conflicts in the index."""

    MERGE = "merge"
    REBASE = "rebase"
    CHERRY_PICK = "cherry-pick"
    REVERT = "revert"
    AM = "am"
    STASH = "stash"
    INDEX = "index"


_NEXT = {
    Doing.STASH: "git stash drop",
    Doing.INDEX: "git commit",
}
"""The commands that go on where it is not `git <doing> --continue`; a popped stash stays."""


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A merge of the user's own that waits for decisions.

    Attributes:
        sides: What is merged; None where git notes nowhere what came in.
        target: What the user calls the side that is there; `incoming` likewise.
        wrote: The tree that git wrote to the files, markers and all; None where it did not say.
        conflicts: The paths that the index still has open, each with its versions.
        series: Names the commits that are put on top one after another, of which this is one.
    """

    doing: Doing
    head: str
    sides: Sides | None
    target: str
    incoming: str
    wrote: str | None
    conflicts: tuple[ConflictedPath, ...]
    series: str = ""

    @property
    def next_step(self) -> str:
        """The command that goes on once nothing is open."""
        return _NEXT.get(self.doing, f"git {self.doing} --continue")


def _here(repo: Repo) -> Where:
    return Where(git_dir=repo.git_dir, worktree=repo.worktree)


async def unfinished(repo: Repo) -> Unfinished:
    """Return what waits for decisions where the repository was opened; perhaps no conflict.

    Raises:
        WorkspaceError: It has no working tree, or no commit yet.
    """
    head = await resolve(repo, "HEAD")
    if repo.worktree is None or head is None:
        raise WorkspaceError(
            "there is no working tree with a commit here", hint="Go to a checkout that has one."
        )
    conflicts = await _stages(repo)
    heads = await to_thread.run_sync(_noted, Path(repo.git_dir))
    doing = await _doing(repo, heads, conflicts)
    sides = await _sides(repo, doing, head, heads.get(doing, ""))
    return Unfinished(
        doing=doing,
        head=head,
        sides=sides,
        target=await _name(repo, head) or await _name(repo, heads.get("onto", "")) or "HEAD",
        incoming=await _incoming(repo, doing, heads),
        wrote=await resolve(repo, "AUTO_MERGE", "tree"),
        conflicts=conflicts,
        series=heads.get("series", ""),
    )


async def _stages(repo: Repo) -> tuple[ConflictedPath, ...]:
    listing = await repo.read("ls-files", "-u", "-z", where=_here(repo))
    found: dict[bytes, dict[str, Stage]] = {}
    for record in listing.split(b"\0"):
        if record:
            head, path = record.split(b"\t", 1)
            mode, oid, number = head.decode().split(" ")
            found.setdefault(path, {})[number] = Stage(mode, oid)
    return tuple(
        ConflictedPath(path=path, base=s.get("1"), ours=s.get("2"), theirs=s.get("3"))
        for path, s in sorted(found.items())
    )


def _noted(git_dir: Path) -> Mapping[str, str]:
    """The commits that git noted, and the branch that is being rebased."""
    found: dict[str, str] = {}
    is_rebase = (git_dir / "rebase-merge").is_dir() or (git_dir / "rebase-apply").is_dir()
    files = [
        (Doing.AM, "rebase-apply/applying"),
        (Doing.REBASE, "REBASE_HEAD" if is_rebase else ""),
        (Doing.CHERRY_PICK, "CHERRY_PICK_HEAD"),
        (Doing.REVERT, "REVERT_HEAD"),
        (Doing.MERGE, "MERGE_HEAD"),
        ("branch", "rebase-merge/head-name"),
        ("branch", "rebase-apply/head-name"),
        ("series", "rebase-merge/orig-head"),
        ("series", "rebase-apply/orig-head"),
        ("series", "sequencer/head"),
        ("onto", "rebase-merge/onto"),
        ("onto", "rebase-apply/onto"),
    ]
    for name, file in files:
        path = git_dir / file
        if file and path.is_file():
            found.setdefault(name, os.fsdecode(path.read_bytes()).strip())
    return found


async def _doing(repo: Repo, heads: Mapping[str, str], open_: Sequence[ConflictedPath]) -> Doing:
    for doing in (Doing.AM, Doing.REBASE, Doing.CHERRY_PICK, Doing.REVERT, Doing.MERGE):
        if doing in heads:
            return doing
    places = [Path(repo.worktree or "", os.fsdecode(one.path)) for one in open_]
    is_stash = await to_thread.run_sync(lambda: any(map(_is_stashed, places)))
    return Doing.STASH if is_stash else Doing.INDEX


def _is_stashed(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _STASHED in path.read_bytes()


async def _sides(repo: Repo, doing: Doing, head: str, noted: str) -> Sides | None:
    """Return the sides that are merged; a merge of many at once has no two sides."""
    if doing in {Doing.AM, Doing.STASH, Doing.INDEX} or "\n" in noted:
        return None
    theirs = await resolve(repo, noted)
    if theirs is None:
        return None
    if doing is Doing.MERGE:
        with suppress(WorkspaceError):  # they may have nothing in common
            return await common_sides(repo, Merger(repo), head, theirs)
        return None
    parent = await resolve(repo, f"{theirs}^") or repo.empty_tree
    return Sides(theirs, head, parent) if doing is Doing.REVERT else Sides(parent, head, theirs)


async def _name(repo: Repo, commit: str) -> str:
    """A branch at a commit: the one that is checked out if it is that one; empty where none is."""
    if not commit:
        return ""
    here = await repo.read(
        "symbolic-ref", "-q", "--short", "HEAD", call=Call(ok=(0, 1)), where=_here(repo)
    )
    words = ("for-each-ref", "--points-at", commit, "--format=%(refname:short)", "refs/heads")
    at = os.fsdecode(await repo.read(*words)).split("\n")
    current = os.fsdecode(here).strip()
    return current if current and current in at else at[0]


async def _incoming(repo: Repo, doing: Doing, heads: Mapping[str, str]) -> str:
    noted = heads.get(doing, "").split("\n")[0]
    match doing:
        case Doing.REBASE if "branch" in heads:
            return heads["branch"].removeprefix("refs/heads/")
        case Doing.MERGE:
            return await _name(repo, noted) or noted[:10]
        case Doing.REVERT:
            return f"without {noted[:10]}"
        case Doing.STASH:
            return "the stash"
        case Doing.AM:
            return "the patch"
        case Doing.INDEX:
            return "the other side"
        case _:
            return noted[:10]


async def settled_tree(repo: Repo) -> str:
    """The user's index as a tree, without the paths that are still open in it."""
    open_ = {one.path for one in await _stages(repo)}
    async with private_index(repo) as index:
        where = Where(index=index)
        listing = await repo.read("ls-files", "-s", "-z", where=_here(repo))
        rows = [r for r in listing.split(b"\0") if r and r.split(b"\t", 1)[1] not in open_]
        call = Call(stdin=b"".join(row + b"\0" for row in rows))
        await repo.run("read-tree", "--empty", where=where)
        if rows:
            await repo.run("update-index", "-z", "--index-info", call=call, where=where)
        return await repo.line("write-tree", where=where)


async def edited_files(
    repo: Repo, entries: Sequence[tuple[bytes, FileVersion | None]]
) -> dict[bytes, FileVersion | None]:
    """Return the files that are not these versions, with their content as git would store it."""
    place = _place(repo)
    changed = await differing(repo, place, entries)
    return {path: await _as_stored(repo, path) for path in changed}


async def _as_stored(repo: Repo, path: bytes) -> FileVersion | None:
    """Return the content at a path as a blob; None where there is no file."""
    full = Path(repo.worktree or "", os.fsdecode(path))
    mode = await to_thread.run_sync(_mode, full)
    if mode is None:
        return None
    if mode == "120000":
        target = await to_thread.run_sync(lambda: os.fsencode(os.readlink(full)))  # noqa: PTH115
        call = Call(stdin=target)
        return FileVersion(mode, await repo.line("hash-object", "-w", "--stdin", call=call))
    call = Call(flags=conversion(repo))
    words = ("hash-object", "-w", "--", os.fsdecode(path))
    return FileVersion(mode, await repo.line(*words, call=call, where=_here(repo)))


def _mode(path: Path) -> str | None:
    if path.is_symlink():
        return "120000"
    if not path.is_file():
        return None
    return "100755" if os.access(path, os.X_OK) else "100644"


def _place(repo: Repo) -> Checkout:
    return Checkout(path=repo.worktree or "", git_dir=repo.git_dir, branch=None, under_way=None)


async def put(
    repo: Repo,
    results: Mapping[bytes, FileVersion | None],
    *,
    trash: Path,
    before: Mapping[bytes, FileVersion | None],
) -> None:
    """Write results to the user's files and take them into the index, as `git add` does.

    What a file holds that is neither its result nor as git had left it is copied to the trash
    first; `before` says how that was, and a path that is not there was left nobody knows how.

    Raises:
        WorktreeBusy: Another git works there.
    """
    place = _place(repo)
    touched = tuple(Touched(path, None, version) for path, version in results.items())
    await remove_dead_locks(repo)
    name = await to_thread.run_sync(_own_name)
    async with locked_index(repo, place, name) as guard:
        other = await differing(repo, place, list(results.items()))
        known = [(path, version) for path, version in before.items() if path in other]
        edited = await differing(repo, place, known) | (other - before.keys())
        await to_thread.run_sync(keep_copies, place.path, edited, trash)
        guard.is_kept = True  # a crash over half written files leaves the lock, with its name
        await write_files(repo, place, Moves(touched, touched))
        guard.is_kept = False


async def remove_dead_locks(repo: Repo) -> None:
    """Take away locks of those that were killed while they put results; files are as they were.

    A lock of ours names the process that holds it, and only that of a dead one is ever taken.
    """
    async with repo.lock.held():
        await to_thread.run_sync(_remove_dead_locks, Path(repo.common_dir))


def _remove_dead_locks(common: Path) -> None:
    for lock in (common / "index.lock", *sorted(common.glob("worktrees/*/index.lock"))):
        owner = _OWNER.fullmatch(lock_name(lock))
        if owner is not None and not _is_alive(int(owner[1]), float(owner[2])):
            lock.unlink(missing_ok=True)


def _own_name() -> str:
    return f"{_LOCK} {os.getpid()} {psutil.Process().create_time()}"


def _is_alive(pid: int, start: float) -> bool:
    try:
        return abs(psutil.Process(pid).create_time() - start) < _CLOCK_S
    except psutil.NoSuchProcess:
        return False


def lines_of(conflicts: Sequence[ConflictedPath]) -> Iterator[str]:
    """Names what the index has open, for telling whether it still has."""
    for one in conflicts:
        stages = (one.base, one.ours, one.theirs)
        yield f"{one.path.hex()} {' '.join(s.oid + s.mode if s else '-' for s in stages)}"
