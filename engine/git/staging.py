"""Everything in a working tree as one tree object, without touching the index that belongs to it.

Whatever can be kept is kept, byte for byte; what cannot is named with the reason, and never loses
the rest. The files to stage are named one by one. `git add -A` would fail as a whole on one bad
path, commit a repository inside as a link to nothing, and know no limit.
"""

import os
import re
import shutil
import stat
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from anyio import to_thread

from engine.errors import GitFailed
from engine.git.cone import replaced
from engine.git.objects import scratch_folder
from engine.git.runner import Repo
from engine.git.unsafe import is_unsafe

UNREADABLE = "unreadable"
BIG_FILE = 5 * 1024 * 1024
"""A file above it is set aside and listed instead of committed."""
MOST_NEW = 200_000
"""The most new files that one attempt may leave; of more, the largest folders are set aside."""
_HUGE = 1 << 30
"""Even a file that git knows is set aside above it: a hole of terabytes is read for hours."""
_TRIES = 200
_MOST_FOLDERS = 10_000
"""So many folders are remembered as such."""
_ADD = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_LINKED = re.compile(rb"(?:^|\0). 160000 ")
_BY_INFO = ("update-index", "-z", "--index-info")


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that was not committed, its size, and why: `big`, `unreadable`, or in words.

    Attributes:
        is_empty: Nothing is lost with it: it holds no bytes (a FIFO, a socket, a device).
    """

    path: bytes
    size: int
    reason: str
    is_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class Staged:
    """A working tree as a tree object, and what is not in it.

    Attributes:
        embedded: Repositories that are no submodules; nothing of them is in the tree.
        links: Paths where the tree has a link to a repository's commit, with that commit.
        ignored: What the repository's rules keep out of commits; folders end with a slash.
        notes: What a reviewer should know, as whole sentences.
        has_gone: A file that git knew is gone. A folder in its place was not looked into till then.
    """

    tree: str
    set_aside: tuple[SetAside, ...] = ()
    embedded: tuple[bytes, ...] = ()
    links: tuple[tuple[bytes, str], ...] = ()
    ignored: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()
    has_gone: bool = False


LeftOut = Callable[[Sequence[bytes]], Awaitable[Container[bytes]]]
"""Tells of names that are not there which of them a sparse checkout leaves out."""


@dataclass(frozen=True, kw_only=True)
class Intake:
    """The bounds of what is taken from a working tree.

    Attributes:
        big_file: A new file above this size is set aside.
        most_new: How many new files are taken; of more, the largest folders are set aside.
        forced: Names to take although the repository's rules ignore them, each with a zero byte.
        left_out: Tells files that the worktree never had from files that were deleted.
    """

    big_file: int = BIG_FILE
    most_new: int = MOST_NEW
    forced: bytes = b""
    left_out: LeftOut | None = None


class Git(Protocol):
    """Runs git on one working tree with one index; wherever that has to happen."""

    async def __call__(self, *words: str, stdin: bytes = b"") -> bytes:
        """Return what the command writes."""


class Conversions(Protocol):
    """Says how contents are converted on their way into a tree that an agent left."""

    async def follow_tree(self) -> None:
        """Let the attributes that lie in the tree be in force."""

    async def follow_base(self) -> bool:
        """Let the attributes of the base alone be in force; tell if there is such a base."""

    async def follow_none(self) -> None:
        """Let files be kept byte for byte."""


@asynccontextmanager
async def private_index(repo: Repo, *, copy_of: str | None = None) -> AsyncIterator[str]:
    """An index file of our own, gone afterwards; a copy keeps what is known of unchanged files."""
    async with scratch_folder(repo) as folder:
        if copy_of is not None:
            await to_thread.run_sync(_copy_if_there, copy_of, folder / "index")
        yield str(folder / "index")


def copy_index(source: str | Path, target: str | Path) -> None:
    """Copy an index with its time stamp.

    Git compares that with the files' to know which it must read because they may have been changed
    in the very moment that the index was written; a newer copy would hide such changes.
    """
    shutil.copy2(source, target)


def _copy_if_there(source: str, target: Path) -> None:
    """A repository without an index has nothing staged."""
    with suppress(FileNotFoundError):
        copy_index(source, target)


async def stage_all(
    git: Git,
    worktree: str,
    *,
    onto: str | None = None,
    intake: Intake = Intake(),
    conversions: Conversions | None = None,
) -> Staged:
    """Bring the index that `git` works with in line with the working tree, and write its tree.

    The index begins as it is, or as the commit `onto`.

    Which files have changed is asked with the tree's own attributes in force, so what the agent
    committed stays as it committed it. What is staged after that follows the attributes of the
    base: those that the agent left decide nothing.
    """
    if onto is not None:
        await git("read-tree", "--reset", onto)
    differing = await _differing(git, worktree, conversions)
    take = partial(_sort_out, worktree, intake=intake)
    found = await to_thread.run_sync(take, (differing.changed, differing.others))
    if conversions is not None and found.has_attributes:
        # Files that it committed by rules of its own must not look changed by those of the base.
        with suppress(GitFailed):  # it fails where something did change
            await git("update-index", "-q", "--refresh")
        differing = await _differing(git, worktree, conversions)
        found = await to_thread.run_sync(take, (differing.changed, differing.others))
    if conversions is not None and await conversions.follow_base() and found.has_attributes:
        found.notes.append(
            "`.gitattributes` has changed: uncommitted files are kept without the conversions "
            "that it now asks for."
        )
    await _spare_left_out(worktree, found, differing.left_out, intake)
    if found.gone:
        stdin = b"".join(b"0 %040d\t%s\0" % (0, name) for name in _each(found.gone))
        await git(*_BY_INFO, stdin=stdin)
    if found.present:
        await _Adding(git, worktree, conversions, found).all()
    tree = await _write_tree(git, worktree, found)
    return Staged(
        tree=tree,
        set_aside=tuple(found.set_aside),
        embedded=tuple(sorted(found.embedded)),
        links=await _links(git) if differing.had_links or found.has_repository else (),
        notes=tuple(found.notes),
        has_gone=bool(found.gone),
    )


class _Differing(NamedTuple):
    """Names of files that differ from the index, and of those that it does not know.

    Attributes:
        had_links: The index has links to commits.
        left_out: What the index marks as left out of the worktree, and is not there.
    """

    changed: bytes
    others: bytes
    had_links: bool
    left_out: list[bytes]


async def _differing(git: Git, worktree: str, conversions: Conversions | None) -> _Differing:
    if conversions is not None:
        await conversions.follow_tree()
    had_links, left_out = await _clear_flags(git, worktree)
    words = ("diff-files", "--name-only", "-z", "--ignore-submodules=dirty")
    try:
        changed = await git(*words)
    except GitFailed:  # a conversion that the tree asks for ended git
        if conversions is None:
            raise
        await conversions.follow_none()
        changed = await git(*words)
    others = await git("ls-files", "-z", "--others", "--exclude-standard")
    return _Differing(changed, others, had_links, left_out)


async def _spare_left_out(
    worktree: str, found: "_SortedOut", left_out: list[bytes], intake: Intake
) -> None:
    """Let no file be deleted that the worktree never had.

    What has the name of such a file's folder, or lies in a folder with the name of such a file,
    would replace it: it is set aside.
    """
    if found.gone and intake.left_out is not None:
        gone = list(_each(found.gone))
        spared = await intake.left_out(gone)
        found.gone = bytearray(_listed([name for name in gone if name not in spared]))
        left_out = sorted([*left_out, *(name for name in gone if name in spared)])
    if left_out:
        await to_thread.run_sync(_set_clashing_aside, worktree, found, left_out)


def _set_clashing_aside(worktree: str, found: "_SortedOut", left_out: Sequence[bytes]) -> None:
    kept = bytearray()
    with _Tree.opened(worktree) as tree:
        for name in _each(found.present):
            other = replaced(name, left_out)
            if other is None:
                kept += name + b"\0"
            else:
                why = f"it would replace {os.fsdecode(other)!r}, which is not in this worktree"
                found.set_aside.append(SetAside(name, tree.look(name).size, why))
    found.present = kept


async def _links(git: Git) -> tuple[tuple[bytes, str], ...]:
    listing = await git("ls-files", "-s", "-z")
    heads = (record.split(b"\t", 1) for record in _each(listing) if record[:6] == b"160000")
    return tuple((path, head.split(b" ")[1].decode()) for head, path in heads)


def _each(listing: bytes | bytearray) -> Iterator[bytes]:
    """Give the names of a listing one by one: a list of a million would take ten times its room."""
    begin = 0
    while (end := listing.find(b"\0", begin)) >= 0:
        if end > begin:
            yield bytes(listing[begin:end])
        begin = end + 1


async def _clear_flags(git: Git, worktree: str) -> tuple[bool, list[bytes]]:
    """Look at every file there is: one that was assumed unchanged, or left out, holds work too.

    A file that a sparse checkout leaves out and that is not there has not been deleted. Returns
    whether there are links to commits, and the names of such files.
    """
    listing = await git("ls-files", "-v", "-s", "-z")
    flagged = [one for one in _each(listing) if one[:1] != b"H"] if _has_flags(listing) else []
    assumed = [one.partition(b"\t")[2] for one in flagged if one[:1].islower()]
    skipped = [one.partition(b"\t")[2] for one in flagged if one[:1] in {b"S", b"s"}]
    present = await to_thread.run_sync(present_of, worktree, skipped) if skipped else []
    for flag, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", present)):
        if names:
            stdin = b"".join(name + b"\0" for name in names)
            await git("update-index", flag, "-z", "--stdin", stdin=stdin)
    there = frozenset(present)
    left_out = [name for name in skipped if name not in there]
    # Looking for the mode alone takes a tenth of the time.
    return b" 160000 " in listing and _LINKED.search(listing) is not None, left_out


def _has_flags(listing: bytes) -> bool:
    """Return True if an entry of `ls-files -v` begins with anything else than an `H`."""
    return (b"\0" + listing).count(b"\0H") != listing.count(b"\0")


def present_of(worktree: str, names: list[bytes]) -> list[bytes]:
    """Return the names under which something is there."""
    with _Tree.opened(worktree) as tree:
        return [name for name in names if tree.look(name).kind is not _Kind.NOTHING]


@dataclass(slots=True)
class _SortedOut:
    """Names are kept as git lists them, each with a zero byte behind it."""

    present: bytearray = field(default_factory=bytearray)
    gone: bytearray = field(default_factory=bytearray)
    set_aside: list[SetAside] = field(default_factory=list)
    embedded: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_attributes: bool = False
    has_repository: bool = False
    """A repository stands where git knows something: staging it makes a link."""


def _sort_out(worktree: str, names: tuple[bytes, bytes], *, intake: Intake) -> _SortedOut:
    """Tell what is there, what is not, and what must not be committed."""
    found = _SortedOut()
    changed, others = names[0], names[1] + intake.forced
    with _Tree.opened(worktree) as tree:
        for name in _each(changed):
            found.has_attributes |= name.endswith(b".gitattributes")
            seen = tree.look(name)
            found.has_repository |= seen.kind is _Kind.SUBMODULE
            _take_changed(found, name, seen)
        cut = _beyond(others, intake.most_new)
        for name in _each(others):
            if name.partition(b"/")[0] in cut:
                continue
            found.has_attributes |= name.endswith(b".gitattributes")
            if name.endswith(b"/"):
                found.embedded.append(name.rstrip(b"/"))
            else:
                _take_new(found, name, tree.look(name), intake.big_file)
    found.set_aside += [
        SetAside(name, 0, f"{count} files, beyond the limit of {intake.most_new} new files")
        for name, count in cut.items()
    ]
    return found


def _beyond(others: bytes, most_new: int) -> dict[bytes, int]:
    """Say what at the top is left out of too many new files, and how many files each holds.

    The largest go first: work is rarely as many files as a cache that nobody ignores.
    """
    total = others.count(b"\0")
    if total <= most_new:
        return {}
    counts = Counter(name.partition(b"/")[0] for name in _each(others))
    cut: dict[bytes, int] = {}
    for name, count in counts.most_common():
        if total <= most_new:
            break
        cut[name] = count
        total -= count
    return cut


def _take_changed(found: _SortedOut, name: bytes, seen: "_SeenFile") -> None:
    if seen.kind is _Kind.NOTHING:
        found.gone += name + b"\0"
        return
    reason = _why_not(name, seen)
    if reason:  # the version that is known stays
        found.set_aside.append(SetAside(name, seen.size, reason))
    else:
        found.present += name + b"\0"


def _take_new(found: _SortedOut, name: bytes, seen: "_SeenFile", big_file: int) -> None:
    if seen.kind is _Kind.NOTHING:
        return
    reason = _why_not(name, seen) or ("big" if seen.size > big_file else "")
    if reason:
        found.set_aside.append(SetAside(name, seen.size, reason))
    else:
        found.present += name + b"\0"


def _why_not(name: bytes, seen: "_SeenFile") -> str:
    if seen.kind is _Kind.UNREADABLE:
        return UNREADABLE
    if seen.size > _HUGE:
        return "too big for git to read in time"
    mode = "120000" if seen.kind is _Kind.LINK else "100644"
    return "git refuses this name" if is_unsafe(name, mode) else ""


class _Adding:
    """Adds files to an index so that one which cannot be added loses no other."""

    def __init__(
        self, git: Git, worktree: str, conversions: Conversions | None, found: _SortedOut
    ) -> None:
        self._git, self._worktree, self._found = git, worktree, found
        self._conversions = conversions
        self._tries = _TRIES

    async def all(self) -> None:
        """Add what is present; what cannot be added is set aside."""
        try:
            await self._git(*_ADD, stdin=bytes(self._found.present))
        except GitFailed:
            if self._conversions is None:
                raise
            await self._one_by_one(list(_each(self._found.present)))

    async def _one_by_one(self, names: list[bytes]) -> None:
        """Halve what failed until the culprits stand alone; after many, convert nothing at all."""
        waiting = [names]
        unconverted: list[bytes] = []
        while waiting:
            some = waiting.pop()
            try:
                await self._git(*_ADD, stdin=_listed(some))
            except GitFailed:
                self._tries -= 1
                if len(some) == 1 or self._tries <= 0:
                    unconverted += some
                else:
                    half = len(some) // 2
                    waiting += [some[:half], some[half:]]
        if unconverted:
            await self._add_raw(unconverted)

    async def _add_raw(self, names: list[bytes]) -> None:
        """Add files byte for byte; halve again where that fails too."""
        if self._conversions is not None:
            await self._conversions.follow_none()
        waiting, kept = [names], 0
        tries = _TRIES
        while waiting:
            some = waiting.pop()
            try:
                await self._git(*_ADD, stdin=_listed(some))
                kept += len(some)
            except GitFailed as failed:
                tries -= 1
                if len(some) == 1 or tries <= 0:
                    said = failed.stderr.strip().rpartition("\n")[2]
                    await to_thread.run_sync(self._set_aside, some, f"git cannot store it: {said}")
                else:
                    half = len(some) // 2
                    waiting += [some[:half], some[half:]]
        if kept:
            files = "1 file is" if kept == 1 else f"{kept} files are"
            self._found.notes.append(
                f"{files} kept byte for byte: the conversion that `.gitattributes` asks for failed."
            )

    def _set_aside(self, names: Iterable[bytes], reason: str) -> None:
        with _Tree.opened(self._worktree) as tree:
            self._found.set_aside += [
                SetAside(name, tree.look(name).size, reason) for name in names
            ]


def _listed(names: Sequence[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


async def _write_tree(git: Git, worktree: str, found: _SortedOut) -> str:
    """Write the tree; a file whose object is gone is read from the working tree once more."""
    try:
        return (await git("write-tree")).decode().strip()
    except GitFailed:
        missing = await _missing(git)
        if not missing:
            raise
    zeros = b"".join(b"0 %040d\t%s\0" % (0, name) for name in missing)
    await git(*_BY_INFO, stdin=zeros)
    with _Tree.opened(worktree) as tree:
        there = [name for name in missing if tree.look(name).kind in {_Kind.FILE, _Kind.LINK}]
    found.set_aside += [
        SetAside(name, 0, "its object and the file are gone")
        for name in missing
        if name not in there
    ]
    if there:
        await git(*_ADD, stdin=_listed(there))
    return (await git("write-tree")).decode().strip()


async def _missing(git: Git) -> list[bytes]:
    """List the paths of the index whose objects are gone."""
    listing = await git("ls-files", "-s", "-z")
    paths: dict[bytes, list[bytes]] = {}
    for record in _each(listing):
        head, path = record.split(b"\t", 1)
        if head[:6] != b"160000":
            paths.setdefault(head.split(b" ")[1], []).append(path)
    stdin = b"".join(oid + b"\n" for oid in paths)
    said = await git("cat-file", "--batch-check=%(objectname)", stdin=stdin)
    gone = [line.split(b" ")[0] for line in said.split(b"\n") if line.endswith(b" missing")]
    return [path for oid in gone for path in paths[oid]]


class _Kind(Enum):
    """The kinds of things that can be committed under a name."""

    FILE = "file"
    LINK = "link"
    SUBMODULE = "submodule"
    UNREADABLE = "unreadable"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class _SeenFile:
    kind: _Kind
    size: int = 0


_NOTHING = _SeenFile(_Kind.NOTHING)


class _Tree:
    """Looks at single paths of a working tree; what lies behind a link is not in it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._folders: dict[bytes, _Kind | None] = {}

    @classmethod
    @contextmanager
    def opened(cls, worktree: str) -> Iterator["_Tree"]:
        """Look at a working tree by a descriptor, so that no name is longer than it must be."""
        root = os.open(worktree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield cls(root)
        finally:
            os.close(root)

    def look(self, name: bytes) -> _SeenFile:
        """Tell what is there under a name."""
        hidden = self._behind(name.rpartition(b"/")[0])
        if hidden is not None:
            return _SeenFile(hidden)
        try:
            found = os.stat(name, dir_fd=self._root, follow_symlinks=False)
        except OSError as error:
            return _SeenFile(_missing_kind(error))
        if stat.S_ISLNK(found.st_mode):
            return _SeenFile(_Kind.LINK, found.st_size)
        if stat.S_ISDIR(found.st_mode):
            return _SeenFile(_Kind.SUBMODULE) if self._is_repository(name) else _NOTHING
        if not stat.S_ISREG(found.st_mode):
            return _NOTHING
        return _SeenFile(_Kind.FILE if _can_read(found) else _Kind.UNREADABLE, found.st_size)

    def _behind(self, folder: bytes) -> _Kind | None:
        """Tell why nothing in a folder is in the tree, or None where all of it is."""
        if folder not in self._folders:
            if len(self._folders) > _MOST_FOLDERS:
                self._folders.clear()
            ends = [place.start() for place in re.finditer(b"/", folder)]
            outer = (folder[:end] for end in ends)
            hidden = (kind for one in outer if (kind := self._of_folder(one)) is not None)
            self._folders[folder] = next(hidden, None) or self._of_folder(folder)
        return self._folders[folder]

    def _of_folder(self, folder: bytes) -> _Kind | None:
        if not folder or self._folders.get(folder, _Kind.NOTHING) is None:
            return None
        try:
            mode = os.stat(folder, dir_fd=self._root, follow_symlinks=False).st_mode
        except OSError as error:
            return _missing_kind(error)
        if not stat.S_ISDIR(mode):
            return _Kind.NOTHING
        self._folders[folder] = None
        return None

    def _is_repository(self, name: bytes) -> bool:
        try:
            os.stat(name + b"/.git", dir_fd=self._root, follow_symlinks=False)
        except OSError:
            return False
        return True


def _missing_kind(error: OSError) -> _Kind:
    """Tell a path that is not there from one that only cannot be looked at."""
    is_gone = isinstance(error, FileNotFoundError | NotADirectoryError)
    return _Kind.NOTHING if is_gone else _Kind.UNREADABLE


def _can_read(found: os.stat_result) -> bool:
    """Tell by the mode: in a sandbox even root reads no file of its own that forbids it."""
    if found.st_uid == os.geteuid():
        return bool(found.st_mode & stat.S_IRUSR)
    bits = stat.S_IRGRP if found.st_gid in (os.getegid(), *os.getgroups()) else stat.S_IROTH
    return bool(found.st_mode & bits)
