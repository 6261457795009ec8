"""The paths that a move from one commit to another touches, and what a working tree has there.

Content decides, never a time stamp: a small index of just these paths is filled and compared, with
the user's line ends and LFS in force.
"""

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from engine.git.objects import tree_difference
from engine.git.plumbing.cache import stamp
from engine.git.plumbing.contents import FileVersion, has_exactly
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.staging import private_index
from engine.git.worktrees import Checkout

_ABSENT = "000000"
_LINK_TO_COMMIT = "160000"
_CHECKSUM = 32


@dataclass(frozen=True, slots=True)
class Touched:
    """One path, before and after; None where it is absent."""

    path: bytes
    old: FileVersion | None
    new: FileVersion | None

    @property
    def reversed(self) -> "Touched":
        """The way back."""
        return Touched(self.path, self.new, self.old)


@dataclass(frozen=True, slots=True)
class Moves:
    """The changes of a landing to a working tree: to its index, and to its files.

    The two differ only where the user's edits are carried along.
    """

    index: tuple[Touched, ...]
    files: tuple[Touched, ...]

    @property
    def reversed(self) -> "Moves":
        """The way back."""
        index, files = ([one.reversed for one in part] for part in (self.index, self.files))
        return Moves(tuple(index), tuple(files))

    @property
    def before(self) -> list[tuple[bytes, FileVersion | None]]:
        """The files before."""
        return [(one.path, one.old) for one in self.files]

    @property
    def after(self) -> list[tuple[bytes, FileVersion | None]]:
        """The files afterwards."""
        return [(one.path, one.new) for one in self.files]


@dataclass(frozen=True, kw_only=True)
class IndexMove:
    """From which commit to which an index is brought, and the paths that this is about."""

    old: str
    new: str
    paths: frozenset[bytes]


async def touched_paths(repo: Repo, old: str, new: str, where: Where = HERE) -> tuple[Touched, ...]:
    """Every path that differs between two commits or trees, by their ids."""
    trees = [repo.cache.trees.get(one) or one for one in (old, new)]

    async def ask() -> tuple[Touched, ...]:
        answer = await tree_difference(repo, trees[0], trees[1], where)
        return _parse(answer.split(b"\0"))

    return await repo.cache.of(("touched", *trees), ask)


def _parse(fields: Sequence[bytes]) -> tuple[Touched, ...]:
    found: list[Touched] = []
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = head[1:].decode().split(" ")
        before = None if old_mode == _ABSENT else FileVersion(old_mode, old_oid)
        after = None if new_mode == _ABSENT else FileVersion(new_mode, new_oid)
        found.append(Touched(path, before, after))
    return tuple(found)


def index_lines(entries: Iterable[tuple[bytes, FileVersion | None]], zero: str) -> bytes:
    """Input for `update-index -z --index-info`: removals first, as folders may become files."""
    ordered = sorted(entries, key=lambda entry: entry[1] is not None)
    return b"".join(
        b"%s %s\t%s\0"
        % (
            (version.mode if version else "0").encode(),
            (version.oid if version else zero).encode(),
            path,
        )
        for path, version in ordered
    )


def conversion(repo: Repo) -> tuple[str, ...]:
    """The `-c` words under which the user's files are compared and written."""
    return repo.settings.lfs_flags


async def left_out(repo: Repo, place: Checkout) -> frozenset[bytes]:
    """Tracked files that a sparse checkout keeps out of a working tree."""

    async def ask() -> list[bytes]:
        where = Where(git_dir=place.git_dir, worktree=place.path)
        listing = (await repo.read("ls-files", "-t", "-z", where=where)).split(b"\0")
        return [record[2:] for record in listing if record[:1] == b"S"]

    names = await repo.cache.of(_skipped(await index_of(place)), ask)
    return await to_thread.run_sync(_absent, place.path, names) if names else frozenset()


def _absent(worktree: str, names: Sequence[bytes]) -> frozenset[bytes]:
    root = Path(worktree)
    return frozenset(name for name in names if not os.path.lexists(root / os.fsdecode(name)))


async def differing(
    repo: Repo, place: Checkout, entries: Sequence[tuple[bytes, FileVersion | None]]
) -> frozenset[bytes]:
    """Paths where the working tree holds something else than these versions say."""
    if await to_thread.run_sync(has_exactly, place.path, entries, repo.object_format):
        return frozenset()
    skipped = await left_out(repo, place)
    there = [(path, v) for path, v in entries if v is not None and path not in skipped]
    present = [(path, v) for path, v in there if v.mode != _LINK_TO_COMMIT]
    gone = [path for path, v in entries if v is None]
    async with private_index(repo) as index:
        where = Where(git_dir=place.git_dir, worktree=place.path, index=index)
        lines = index_lines(present, repo.zero)
        if not lines:
            return frozenset(await to_thread.run_sync(_in_the_way, place.path, gone, present))
        info = Call(stdin=lines, flags=conversion(repo))
        await repo.run("update-index", "-z", "--index-info", call=info, where=where)
        call = Call(ok=(0, 1), flags=conversion(repo))
        refreshed = await repo.run("update-index", "--refresh", call=call, where=where)
        words = ("diff-files", "--name-only", "-z", "--ignore-submodules=all")
        is_same = refreshed.exit_code == 0  # each file was read, and is what its entry says
        listing = b"" if is_same else await repo.read(*words, call=call, where=where)
    changed = {name for name in listing.split(b"\0") if name}
    return frozenset(changed | await to_thread.run_sync(_in_the_way, place.path, gone, present))


def _in_the_way(
    worktree: str, gone: Sequence[bytes], present: Sequence[tuple[bytes, FileVersion]]
) -> set[bytes]:
    """Paths that should be absent and are not.

    A folder of that name is no obstacle as long as everything in it is known to be there.
    """
    root = Path(worktree)
    known = {path for path, _ in present}
    found: set[bytes] = set()
    for path in gone:
        place = root / os.fsdecode(path)
        above = _not_a_folder(root, path)
        if above is not None:
            found |= set() if above in known else {path}
        elif place.is_symlink() or (place.exists() and not place.is_dir()):
            found.add(path)
        else:
            inner = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
            found |= {path for one in inner if os.fsencode(one.relative_to(root)) not in known}
    return found


def _not_a_folder(root: Path, path: bytes) -> bytes | None:
    """The highest parent of a path that is there and is a file or a link."""
    for parent in list(Path(os.fsdecode(path)).parents)[-2::-1]:
        place = root / parent
        if place.is_symlink() or place.is_file():
            return os.fsencode(parent)
    return None


async def staged_paths(repo: Repo, place: Checkout, commit: str) -> frozenset[bytes]:
    """Paths that the user has staged, or that a merge left open."""

    async def ask() -> frozenset[bytes]:
        where = Where(git_dir=place.git_dir, worktree=place.path)
        words = ("diff-index", "--cached", "--name-only", "-z", "--ignore-submodules=none")
        listing = await repo.read(*words, commit, "--", where=where)
        return frozenset(name for name in listing.split(b"\0") if name)

    return await repo.cache.of(_staged(commit, await index_of(place)), ask)


def _skipped(index: Hashable) -> Hashable:
    return "skipped", index


def _staged(commit: str, index: Hashable) -> Hashable:
    return "staged", commit, index


async def follow_index(repo: Repo, place: Checkout, before: Hashable, move: IndexMove) -> None:
    """A new index of ours says of other paths than it is about what the one before said.

    Known is then what of them is staged, and that a sparse checkout leaves nothing out.
    """
    index = await index_of(place)
    staged = repo.cache.known(_staged(move.old, before))
    if isinstance(staged, frozenset):
        repo.cache.put(_staged(move.new, index), staged - move.paths)
    if repo.cache.known(_skipped(before)) == []:
        repo.cache.put(_skipped(index), [])


async def index_of(place: Checkout) -> Hashable:
    """Return a stamp of the index that a working tree has at the moment."""
    if place.index is not None:
        return place.index
    return await to_thread.run_sync(index_at, place.git_dir)


def index_at(git_dir: str) -> Hashable:
    """The same, by the git directory of the working tree."""
    file = Path(git_dir, "index")
    return str(file), stamp(file), _checksum(file)


def _checksum(index: Path) -> bytes:
    """Return the checksum at an index's end: time stamps can be as coarse as two seconds."""
    try:
        with index.open("rb") as file:
            file.seek(-min(_CHECKSUM, file.seek(0, os.SEEK_END)), os.SEEK_END)
            return file.read()
    except FileNotFoundError:
        return b""
