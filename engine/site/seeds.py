"""Reuse what setup made of the user's own commits in later trees, before setup runs there.

A seed is what a setup command added to a workspace: `node_modules`, `.venv`, `target`. It is made
only where every file that setup could read is the user's, so no agent's file is ever in one. It is
known by the command, the toolchain and the lock files, or else by the commit. Setup runs all the
same; it only finds most of its work done.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypedDict

from engine.beneath import (
    EntryKind,
    WalkEntry,
    Why,
    copy_tree,
    list_tree,
    read_file,
    remove_tree,
    write_file,
)
from engine.private import private_folder
from engine.values import dataclass

LOCK_FILES = (
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
    *("uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "requirements.txt"),
    *("Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock", "flake.lock"),
)
_PROGRAMS = (
    *("python3", "uv", "node", "npm", "pnpm", "yarn", "bun"),
    *("cargo", "rustc", "go", "ruby", "php", "java"),
)
"""Of another version, each would make another seed."""
KEPT_S = 14 * 24 * 3600.0
"""A seed that nobody took for so long goes."""
MOST_KEPT = 8
_SMALL = 1 << 20
"""Larger files are not searched for the path of the workspace they were made in."""
_OLD = ".seeds"
"""Seeds of earlier versions, which agents could write into."""
_NEVER = b"__pycache__"
"""Compiled from sources that may differ: it is known by their time in whole seconds alone."""
_GIT = b".git"
_LONGEST_TICK_S = 2.0

_Stat = str
"""The mode of an entry and what changes when it does; its ctime cannot be set back.

A text, since there are many thousands: the garbage collector does not look at texts.
"""


class _Label(TypedDict):
    """The label of a seed.

    `origin` is the workspace it was made in, `moved` are the files that name that path.
    """

    origin: str
    tops: list[str]
    moved: list[str]


@dataclass(frozen=True, kw_only=True)
class Seedling:
    """A workspace of the user's files about to be set up, and what lies in it before."""

    key: str
    workspace: Path
    before: frozenset[bytes]


@dataclass(frozen=True, kw_only=True)
class Planted:
    """The contents given to a check tree, and how every entry was then.

    Attributes:
        key: The seed; None where nothing was given.
        tops: The outermost of what was given.
    """

    key: str | None = None
    tops: tuple[str, ...] = ()
    entries: Mapping[str, _Stat] = field(default_factory=dict)


class Seeds:
    """The seeds of one repository, beside its workspaces."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._environ = environ
        self._growing: set[str] = set()

    def key(self, tree: Path, setup: str, *, base: str | None) -> str:
        """Return the key of the seed for a tree; `base` is the user's commit."""
        digest = hashlib.sha256(f"{setup}\0{self._toolchain()}".encode(errors="surrogateescape"))
        locks = [(name, read_file(tree, name)) for name in LOCK_FILES]
        found = [(name, data) for name, data in locks if isinstance(data, bytes)]
        for name, data in found:
            digest.update(f"\0{name}\0".encode() + hashlib.sha256(data).digest())
        if not found:
            digest.update(f"\0{base}".encode())
        return digest.hexdigest()[:32]

    def _toolchain(self) -> str:
        path = self._environ.get("PATH", "")
        found = (shutil.which(name, path=path) for name in _PROGRAMS)
        return "\0".join(_version(program) for program in found if program)

    def sow(
        self, workspace: Path, setup: str, *, base: str | None, is_users: bool
    ) -> Seedling | None:
        """Give a workspace what seeds exist; return a seedling if its setup can make a seed."""
        key = self.key(workspace, setup, base=base)
        self.give(key, workspace)
        # Every tree may use a seed; only a tree without agents' files may make one.
        return self.begin(key, workspace) if is_users else None

    def give(self, key: str, workspace: Path) -> None:
        """Copy a seed into a workspace, if there is one; files that exist stay."""
        label = self._label(key)
        if label is not None:
            with suppress(OSError):  # a full disk: setup will say so
                self._copy(key, label, workspace, _missing(workspace, label["tops"]))

    def begin(self, key: str, workspace: Path) -> Seedling | None:
        """Look at a workspace before its setup; None if a seed is already kept or being made."""
        if key in self._growing or (self._root / key).exists():
            return None
        self._growing.add(key)
        return Seedling(key=key, workspace=workspace, before=frozenset(_paths(workspace)))

    def keep(self, seedling: Seedling, *, is_well: bool) -> None:
        """Keep what setup added, if it went well; old seeds go."""
        self._growing.discard(seedling.key)
        tops = _added(seedling) if is_well else []
        if tops:
            private_folder(self._root)
            draft = self._root / f".{seedling.key}.{secrets.token_hex(4)}"
            try:
                self._store(seedling, tops, draft)
                draft.rename(self._root / seedling.key)
            except OSError:  # a full disk, or another was quicker: setup has done its work anyway
                remove_tree(draft)
        self._drop_old()

    def _store(self, seedling: Seedling, tops: Sequence[bytes], draft: Path) -> None:
        files = draft / "files"
        private_folder(files)
        copied = copy_tree(seedling.workspace, tops, files)
        left_out = [one for one in copied.refused if one.why is not Why.NOT_A_FILE]
        if left_out:  # setup would take what is there for the whole
            raise OSError(errno.EFBIG, str(left_out[0].why), os.fsdecode(left_out[0].path))
        origin = os.fsencode(seedling.workspace)
        moved = [name for name in copied.files if _names(files, name, origin)]
        label = _Label(
            origin=str(seedling.workspace),
            tops=[os.fsdecode(top) for top in tops],
            moved=[os.fsdecode(name) for name in moved],
        )
        (draft / "label.json").write_text(json.dumps(label))

    def restore(
        self, key: str | None, tree: Path, before: Planted, *, kept: Sequence[str]
    ) -> Planted:
        """Make what lies beside a commit's files in a tree exactly the seed, or nothing.

        All else beside them is gone by now, but for those tops of `before` that were kept. In them
        only what differs is copied anew: nothing that ran in the tree can have set back a ctime.

        Raises:
            OSError: It cannot be known what lies there, or something cannot go.
        """
        label = self._label(key) if key is not None else None
        is_same = label is not None and key == before.key
        standing = [top for top in kept if _has_folders(tree, top)]
        if not is_same:
            _remove(tree, standing)
        if key is None or label is None:
            return Planted()
        old = [top for top in standing if is_same]
        tops = [top for top in label["tops"] if top in old or _is_free(tree, top)]
        there = dict(_stats(tree, old))
        changed = {path for path, _ in there.items() ^ before.entries.items()}
        differs = changed & there.keys()
        over = {path for path in differs if _are_files(before.entries.get(path), there[path])}
        _remove(tree, differs - over)
        gone = changed & before.entries.keys()
        gone = {path for path in gone if any(is_beneath(path, top) for top in old)}
        whole = {top for top in old if top in gone or _is_mostly(gone, before.entries, top)}
        wanted = _outermost((gone | whole | set(tops)) - (set(old) - whole))
        if not wanted:
            return before if tuple(tops) == before.tops else replace(before, tops=tuple(tops))
        self._copy(key, label, tree, wanted, is_over=True)
        entries = dict(_stats(tree, tops))
        _wait_tick(tree.parent, max(map(_changed_ns, entries.values()), default=0))
        return Planted(key=key, tops=tuple(tops), entries=entries)

    def _label(self, key: str) -> _Label | None:
        seed = self._root / key
        try:
            label: _Label = json.loads((seed / "label.json").read_bytes())
            os.utime(seed)
        except (OSError, ValueError):
            return None
        return label

    def _copy(
        self, key: str, label: _Label, tree: Path, names: Sequence[str], *, is_over: bool = False
    ) -> None:
        """Copy parts of a seed; replace the path of the workspace it was made in by the tree's."""
        copied = copy_tree(self._root / key / "files", names, tree, is_over=is_over)
        fresh = set(copied.files)
        old, new = os.fsencode(label["origin"]), os.fsencode(tree)
        for name in map(os.fsencode, label["moved"]):
            if name in fresh:
                _rename_inside(tree, name, old, new)

    def _drop_old(self) -> None:
        now = time.time()
        remove_tree(self._root.with_name(_OLD))
        seeds = sorted(self._root.glob("[0-9a-f]*"), key=_since, reverse=True)
        for rank, seed in enumerate(seeds):
            if rank >= MOST_KEPT or now - _since(seed) > KEPT_S:
                remove_tree(seed)


def _version(program: str) -> str:
    found = os.stat(program)  # noqa: PTH116  which hands over text
    return f"{os.path.realpath(program)} {found.st_size} {found.st_mtime_ns}"


def _since(seed: Path) -> float:
    with suppress(OSError):
        return seed.stat().st_mtime
    return 0.0


def _paths(tree: Path) -> Iterator[bytes]:
    for one in list_tree(tree, is_entered=lambda path: path != _GIT):
        yield one.path


def _added(seedling: Seedling) -> list[bytes]:
    """Return what setup added: the outermost folders, files and links."""
    before = seedling.before - {_GIT}
    entries = list_tree(seedling.workspace, is_entered=lambda path: path in before)
    kinds = {EntryKind.FILE, EntryKind.FOLDER, EntryKind.LINK}
    return [
        one.path
        for one in entries
        if isinstance(one, WalkEntry) and one.kind in kinds and one.path not in seedling.before
        if not one.path.endswith(_NEVER)
    ]


def _names(root: Path, name: bytes, text: bytes) -> bool:
    """Return whether a link, or a small file that is no binary, contains a text.

    The root is ours, so nothing in it needs to be opened step by step.
    """
    path = os.path.join(os.fsencode(root), name)  # noqa: PTH118  bytes in, many thousands of them
    try:
        with open(path, "rb", opener=_open_file) as file:
            data = file.read(_SMALL + 1)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return text in os.readlink(path)  # noqa: PTH115
    return len(data) <= _SMALL and text in data and b"\0" not in data


def _open_file(path: str | bytes, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _rename_inside(tree: Path, name: bytes, old: bytes, new: bytes) -> None:
    path = tree / os.fsdecode(name)
    if path.is_symlink():
        target = os.fsencode(path.readlink()).replace(old, new)
        path.unlink()
        path.symlink_to(os.fsdecode(target))
        return
    data = read_file(tree, name)
    if isinstance(data, bytes):
        found = path.stat()
        write_file(tree, name, data.replace(old, new), mode=stat.S_IMODE(found.st_mode))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _missing(tree: Path, tops: Iterable[str]) -> list[str]:
    return [top for top in tops if _is_free(tree, top)]


def _is_free(tree: Path, top: str) -> bool:
    """Return whether nothing stands there, and the folder that it belongs into does."""
    return _has_folders(tree, top) and not os.path.lexists(tree / top)


def _has_folders(tree: Path, top: str) -> bool:
    """Return whether no link is on the way there."""
    place = tree / top
    folders = (place.parent, *place.parent.parents)[: len(Path(top).parts) - 1]
    return all(each.is_dir() and not each.is_symlink() for each in folders)


def _remove(tree: Path, paths: Iterable[str]) -> None:
    for path in paths:
        refused = remove_tree(tree, path)
        if refused:
            raise OSError(errno.ENOTEMPTY, f"cannot be removed: {refused[0].why}", path)


def is_beneath(path: str, top: str) -> bool:
    """Return whether a path is another one or lies beneath it."""
    return path == top or path.startswith(f"{top}/")


def _outermost(paths: Iterable[str]) -> list[str]:
    found: list[str] = []
    for path in sorted(set(paths), key=lambda each: each.split("/")):
        if not found or not is_beneath(path, found[-1]):
            found.append(path)
    return found


def _stats(tree: Path, tops: Iterable[str]) -> Iterator[tuple[str, _Stat]]:
    """Return the state of each entry at the tops and below; for folders the mode alone."""
    waiting = list[str]()
    for top in tops:
        with suppress(FileNotFoundError):
            found = os.lstat(tree / top)
            yield top, _stat_of(found)
            if stat.S_ISDIR(found.st_mode):
                waiting.append(top)
    root = f"{tree}/"
    while waiting:
        folder = waiting.pop()
        # A folder that was closed meanwhile goes whole: its mode tells that it differs.
        with suppress(PermissionError, FileNotFoundError), os.scandir(root + folder) as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                found = entry.stat(follow_symlinks=False)
                yield path, _stat_of(found)
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(path)


def _stat_of(found: os.stat_result) -> _Stat:
    if stat.S_ISDIR(found.st_mode):
        return str(found.st_mode)
    when = f"{found.st_mtime_ns} {found.st_ctime_ns}"
    return f"{found.st_mode} {found.st_ino} {found.st_size} {when}"


def _is_mostly(gone: set[str], entries: Mapping[str, _Stat], top: str) -> bool:
    """Return whether so much differs that copying a whole top beats naming each file."""
    return sum(is_beneath(path, top) for path in gone) * 2 > sum(
        is_beneath(path, top) for path in entries
    )


def _are_files(before: _Stat | None, now: _Stat) -> bool:
    """Return whether a plain file has taken the place of a plain file: it can be written over."""
    return before is not None and stat.S_ISREG(_mode(before)) and stat.S_ISREG(_mode(now))


def _mode(found: _Stat) -> int:
    return int(found.split(" ", 1)[0])


def _changed_ns(found: _Stat) -> int:
    return int(found.rsplit(" ", 1)[1]) if " " in found else 0


def _wait_tick(folder: Path, newest_ns: int) -> None:
    """Wait until the file system's clock is past a time: what changes later shows it."""
    probe = folder / ".tick"
    until = time.monotonic() + _LONGEST_TICK_S
    while time.monotonic() < until:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > newest_ns:
            return


def read_planted(note: Path) -> Planted:
    """Read what was given to a check tree the last time."""
    try:
        known = json.loads(note.read_bytes())
        return Planted(key=known["key"], tops=tuple(known["tops"]), entries=known["entries"])
    except (OSError, ValueError, KeyError):
        return Planted()


def write_planted(note: Path, planted: Planted) -> None:
    """Write down what was given to a check tree."""
    note.write_text(json.dumps(vars(planted)))
