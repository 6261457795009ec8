"""Turn git's answer to a merge into conflicts as values: every kind, version and place.

Git names colliding files by inventing paths (`d~3f2c…`) and puts merged text with markers where a
file was moved twice. Neither is passed on: paths are the files' own, and versions come from the
trees wherever git's own stages are no longer those of a side.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from engine.git.merge3 import MergedTrees, MergeMessage, Sides
from engine.git.runner import HERE, Repo, Where
from engine.merge import ConflictKind, FileConflict, FileSide, SideNames, kind_named, split_lines
from engine.review.reading import Entries, contents_of, entries_below, entries_of, moves

_STRONGEST = (
    ConflictKind.RENAME_RENAME,
    ConflictKind.RENAME_ADD,
    ConflictKind.DIRECTORY_FILE,
    ConflictKind.RENAME_DELETE,
    ConflictKind.DISTINCT_TYPES,
    ConflictKind.DIRECTORY_RENAME,
    ConflictKind.MODIFY_DELETE,
    ConflictKind.SUBMODULE,
    ConflictKind.BINARY,
    ConflictKind.ADD_ADD,
    ConflictKind.CONTENTS,
)
"""Git may name several kinds for one path; the first of these says most about what to do."""

_KEEPS_BOTH = frozenset(
    {
        ConflictKind.ADD_ADD,
        ConflictKind.BINARY,
        ConflictKind.DISTINCT_TYPES,
        ConflictKind.SYMLINK,
        ConflictKind.RENAME_ADD,
        ConflictKind.DIRECTORY_FILE,
    }
)
"""Kinds for which a second path, so that both versions stay, is a sensible answer."""

_SUBMODULE = "160000"
_NAMES_OTHERS = frozenset(
    {ConflictKind.RENAME_DELETE, ConflictKind.RENAME_ADD, ConflictKind.DIRECTORY_RENAME}
)
"""Kinds whose message names the conflicted path first, and then where it came from."""
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_TRIES = 4
_MOST_FILES = 60
_SHARE = 0.6


class Conflicts(NamedTuple):
    """The conflicts that a merge left, and the paths in its tree that git invented."""

    files: tuple[FileConflict, ...]
    invented: tuple[bytes, ...] = ()


class _Seen(NamedTuple):
    """A version as git or a tree has it: where, of which mode, which object."""

    path: bytes
    mode: str
    oid: str


@dataclass
class _Draft:
    """A conflict while its versions are being put together."""

    path: bytes
    kind: ConflictKind
    base: _Seen | None = None
    target: _Seen | None = None
    incoming: _Seen | None = None
    held: tuple[bytes, ...] = ()
    below: tuple[bytes, ...] = ()

    @property
    def sides(self) -> tuple[_Seen | None, _Seen | None, _Seen | None]:
        """Return base, target and incoming."""
        return self.base, self.target, self.incoming


@dataclass
class _Reading:
    """One merge while its conflicts are being read."""

    repo: Repo
    merged: MergedTrees
    sides: Sides
    names: SideNames
    where: Where
    invented: Mapping[bytes, bytes]
    drafts: dict[bytes, _Draft] = field(default_factory=dict)

    async def entries(self, tree: str, paths: Sequence[bytes]) -> Entries:
        return await entries_of(self.repo, tree, paths, self.where)


async def read_conflicts(
    repo: Repo, merged: MergedTrees, sides: Sides, names: SideNames, *, where: Where = HERE
) -> Conflicts:
    """Return the conflicts of a merge as values, ordered by path.

    Args:
        repo: The repository.
        merged: What `merge3` said.
        sides: The very trees (or commits) that were merged; `ours` is the target.
        names: What the two sides are called on screen.
        where: Whose object folder holds what is not in the repository.

    Raises:
        WorkspaceError: An object is missing.
    """
    invented = _invented(merged.messages)
    reading = _Reading(repo, merged, sides, names, where, invented)
    _begin(reading, invented)
    await _own_places(reading)
    await _moved_twice(reading)
    await _collided(reading)
    await _moved_along(reading)
    await _directories(reading)
    _pathless(reading, invented)
    await _held(reading)
    return Conflicts(await _finished(reading), tuple(invented))


def conflict_paths(merged: MergedTrees) -> tuple[str, ...]:
    """Return the conflicts by path, for people: each file once, never a name that git made up."""
    own = _invented(merged.messages)
    for message in merged.messages:
        if kind_named(message.kind) is ConflictKind.RENAME_RENAME:
            own.update(dict.fromkeys(message.paths[1:3], message.paths[0]))
    paths = [own.get(one.path, one.path) for one in merged.conflicts]
    if not paths:
        paths = [m.paths[0] for m in merged.messages if m.is_conflict and m.paths]
    return tuple(map(os.fsdecode, dict.fromkeys([*paths, *merged.unsafe])))


def _invented(messages: Sequence[MergeMessage]) -> dict[bytes, bytes]:
    """Return the paths that git made up, with the paths of the files that lie there."""
    found: dict[bytes, bytes] = {}
    for message in messages:
        kind = kind_named(message.kind)
        if not message.is_conflict:
            continue
        if kind is ConflictKind.DIRECTORY_FILE:
            found[message.paths[0]] = message.paths[-1]
        elif kind is ConflictKind.DISTINCT_TYPES:
            found.update(dict.fromkeys(message.paths[1:], message.paths[0]))
    return {path: own for path, own in found.items() if path != own}


def _begin(reading: _Reading, invented: Mapping[bytes, bytes]) -> None:
    """Return one draft per path, from git's stages."""
    kinds = _kinds(reading.merged.messages, invented)
    for one in reading.merged.conflicts:
        path = invented.get(one.path, one.path)
        kind = kinds.get(path, ConflictKind.CONTENTS)
        draft = reading.drafts.setdefault(path, _Draft(path, kind))
        draft.base = _Seen(path, one.base.mode, one.base.oid) if one.base else draft.base
        draft.target = _Seen(path, one.ours.mode, one.ours.oid) if one.ours else draft.target
        draft.incoming = (
            _Seen(path, one.theirs.mode, one.theirs.oid) if one.theirs else draft.incoming
        )


def _kinds(
    messages: Sequence[MergeMessage], invented: Mapping[bytes, bytes]
) -> dict[bytes, ConflictKind]:
    found: dict[bytes, ConflictKind] = {}
    for message in messages:
        if not message.is_conflict:
            continue
        kind = kind_named(message.kind)
        about = message.paths[:1] if kind in _NAMES_OTHERS else message.paths
        for path in (invented.get(path, path) for path in about):
            known = found.get(path, kind)
            found[path] = min(known, kind, key=_rank)
    return found


def _rank(kind: ConflictKind) -> int:
    return _STRONGEST.index(kind) if kind in _STRONGEST else len(_STRONGEST)


def _about(reading: _Reading, kind: ConflictKind) -> Iterator[MergeMessage]:
    for message in reading.merged.messages:
        if message.is_conflict and kind_named(message.kind) is kind:
            yield message


async def _own_places(reading: _Reading) -> None:
    """Add the name each side has for a file that one moved; git's stages know only one."""
    with_base = [draft.path for draft in reading.drafts.values() if draft.base]
    there = await reading.entries(reading.sides.base, with_base)
    moved = [path for path in with_base if path not in there]
    if not moved:
        return
    by_target = await moves(reading.repo, reading.sides.base, reading.sides.ours, reading.where)
    by_incoming = await moves(reading.repo, reading.sides.base, reading.sides.theirs, reading.where)
    for path in moved:
        draft = reading.drafts[path]
        old = by_target.get(path) or by_incoming.get(path)
        if old is None or draft.base is None:
            continue
        draft.base = draft.base._replace(path=old)
        if draft.target and path not in by_target:
            draft.target = draft.target._replace(path=old)
        if draft.incoming and path not in by_incoming:
            draft.incoming = draft.incoming._replace(path=old)


async def _moved_twice(reading: _Reading) -> None:
    """Join the drafts of a file that each side moved elsewhere into one conflict.

    Git has merged the texts already and left the same result, markers and all, in both places.
    """
    for message in _about(reading, ConflictKind.RENAME_RENAME):
        old, mine, theirs = message.paths[:3]
        drafts = reading.drafts
        base = drafts[old].base if old in drafts else None
        target = await _moved_version(reading, reading.sides.ours, (old, mine))
        incoming = await _moved_version(reading, reading.sides.theirs, (old, theirs))
        for path, side in ((mine, "target"), (theirs, "incoming"), (old, "base")):
            if path in drafts:
                setattr(drafts[path], side, None)
                if drafts[path].sides == (None, None, None):
                    del drafts[path]
        drafts[old] = _Draft(
            old,
            ConflictKind.RENAME_RENAME,
            base=base,
            target=target,
            incoming=incoming,
        )


async def _moved_version(reading: _Reading, side: str, names: tuple[bytes, bytes]) -> _Seen | None:
    """Return a side's own version of a file that it moved, under the name that the merge gives it.

    That is another name than the side's where the other side moved the folder it was moved to.
    """
    old, new = names
    entry = (await reading.entries(side, [new])).get(new)
    if entry is None:
        moved = await moves(reading.repo, reading.sides.base, side, reading.where)
        own = [path for path, before in moved.items() if before == old]
        entry = next(iter((await reading.entries(side, own)).values()), None)
    if entry is None:
        stages = next((c for c in reading.merged.conflicts if c.path == new), None)
        stage = stages and (stages.ours if side == reading.sides.ours else stages.theirs)
        entry = (stage.mode, stage.oid) if stage else None
    return _Seen(new, *entry) if entry else None


async def _collided(reading: _Reading) -> None:
    """Handle a moved file that met another of the same name and whose text conflicts too.

    Git nests one conflict's markers in the other's. Here the two are two: what is to lie at the
    new path, and what becomes of the change that was made at the old one.
    """
    for message in _about(reading, ConflictKind.RENAME_ADD):
        new, old = message.paths[0], message.paths[-1]
        mine = await reading.entries(reading.sides.ours, [new, old])
        theirs = await reading.entries(reading.sides.theirs, [new, old])
        before = await reading.entries(reading.sides.base, [old])
        draft = reading.drafts.get(new)
        if draft is None and (new in mine or new in theirs):
            # Git may leave its markers there and name no version of the path.
            draft = reading.drafts[new] = _Draft(new, ConflictKind.RENAME_ADD)
        if draft is not None:
            draft.target = _Seen(new, *mine[new]) if new in mine else draft.target
            draft.incoming = _Seen(new, *theirs[new]) if new in theirs else draft.incoming
        if old != new and old not in reading.drafts and old in before:
            reading.drafts[old] = _Draft(
                old,
                ConflictKind.MODIFY_DELETE,
                # The base of crossed sides stands in for git's own: it may hold markers.
                base=None if reading.sides.is_crossed else _Seen(old, *before[old]),
                target=_Seen(old, *mine[old]) if old in mine else None,
                incoming=_Seen(old, *theirs[old]) if old in theirs else None,
            )


async def _moved_along(reading: _Reading) -> None:
    """Add the old names that a message tells and the stages do not."""
    for message in _about(reading, ConflictKind.RENAME_DELETE):
        draft = reading.drafts.get(message.paths[0])
        if draft is not None and draft.base is not None:
            draft.base = draft.base._replace(path=message.paths[-1])
    for message in _about(reading, ConflictKind.DIRECTORY_RENAME):
        draft, old = reading.drafts.get(message.paths[0]), message.paths[-1]
        if draft is None:
            continue
        if old in await reading.entries(reading.sides.ours, [old]) and draft.target:
            draft.target = draft.target._replace(path=old)
        if old in await reading.entries(reading.sides.theirs, [old]) and draft.incoming:
            draft.incoming = draft.incoming._replace(path=old)


async def _directories(reading: _Reading) -> None:
    """Return the files of each folder that stands where a file should be."""
    for draft in reading.drafts.values():
        if draft.kind is ConflictKind.DIRECTORY_FILE:
            tree = reading.merged.tree
            draft.below = await entries_below(reading.repo, tree, draft.path, reading.where)


async def _held(reading: _Reading) -> None:
    """Find names of a file at which the merge has another one, or a folder, by no conflict."""
    open_ = {*reading.drafts, *(one.path for one in reading.merged.conflicts)}
    named = {
        draft.path: {seen.path for seen in draft.sides if seen} for draft in reading.drafts.values()
    }
    asked = sorted({path for paths in named.values() for path in paths} - open_)
    tree = reading.merged.tree
    there = {*await reading.entries(tree, asked)}
    for path in asked:
        if path not in there:
            below = await entries_below(reading.repo, tree, path, reading.where)
            there.update({path} if {*below} - open_ - {*reading.invented} else ())
    for draft in reading.drafts.values():
        draft.held = tuple(sorted(named[draft.path] & there))


def _pathless(reading: _Reading, invented: Mapping[bytes, bytes]) -> None:
    """Return conflicts without any stage in git, such as a folder that was split in two."""
    told = {path for message in reading.merged.messages for path in _named(reading, message)}
    for message in reading.merged.messages:
        names = [invented.get(path, path) for path in message.paths]
        if message.is_conflict and names and not told.intersection(names):
            reading.drafts.setdefault(names[0], _Draft(names[0], kind_named(message.kind)))


def _named(reading: _Reading, message: MergeMessage) -> Iterator[bytes]:
    """Yield the paths of a message that some draft covers."""
    known = set(reading.drafts)
    for draft in reading.drafts.values():
        known.update(seen.path for seen in draft.sides if seen)
    known.update(one.path for one in reading.merged.conflicts)
    yield from known.intersection(message.paths)


async def _finished(reading: _Reading) -> tuple[FileConflict, ...]:
    """Return the drafts with contents, classified as exactly as their versions allow."""
    drafts = [reading.drafts[path] for path in sorted(reading.drafts)]
    wanted = {s.oid for d in drafts for s in d.sides if s and s.mode != _SUBMODULE}
    contents = await contents_of(reading.repo, sorted(wanted), reading.where)
    files = [
        FileConflict(
            path=draft.path,
            kind=draft.kind,
            base=_side(draft.base, contents),
            target=_side(draft.target, contents),
            incoming=_side(draft.incoming, contents),
            names=reading.names,
            held=draft.held,
            below=draft.below,
        ).told_exactly()
        for draft in drafts
    ]
    return tuple(await _with_places(reading, files))


def _side(seen: _Seen | None, contents: Mapping[str, bytes]) -> FileSide | None:
    if seen is None:
        return None
    content = None if seen.mode == _SUBMODULE else contents.get(seen.oid)
    return FileSide(path=seen.path, mode=seen.mode, blob=seen.oid, content=content)


async def _with_places(reading: _Reading, files: list[FileConflict]) -> list[FileConflict]:
    """Add free paths for both versions, and where a deleted file's text has gone."""
    trees = (reading.merged.tree, reading.sides.ours, reading.sides.theirs)
    both = [one.path for one in files if one.kind in _KEEPS_BOTH]
    free = await free_paths(
        reading.repo, trees, both, name=reading.names.incoming, where=reading.where
    )
    found = [replace(one, free_path=free.get(one.path)) for one in files]
    for number, one in enumerate(found):
        if one.kind is ConflictKind.MODIFY_DELETE and one.base and one.base.content is not None:
            side = reading.sides.ours if one.target is None else reading.sides.theirs
            moved = (reading.sides.base, side)
            home = await moved_home(reading.repo, moved, one.base, reading.where)
            found[number] = replace(one, moved_to=home)
    return found


async def free_paths(
    repo: Repo,
    trees: Sequence[str],
    paths: Sequence[bytes],
    *,
    name: str,
    where: Where = HERE,
) -> Mapping[bytes, bytes]:
    """Return a free name beside each path, such as `logo.feature.png`."""
    if not paths:
        return {}
    offered = {path: [_beside(path, name, n) for n in range(1, _TRIES + 1)] for path in paths}
    every = [candidate for candidates in offered.values() for candidate in candidates]
    taken: set[bytes] = set()
    for tree in dict.fromkeys(trees):
        taken.update(await entries_of(repo, tree, every, where))
        for candidate in every:
            if await entries_below(repo, tree, candidate, where):
                taken.add(candidate)
    found: dict[bytes, bytes] = {}
    for path, candidates in offered.items():
        free = next((one for one in candidates if one not in taken), None)
        if free is not None:
            found[path] = free
            taken.add(free)
    return found


def _beside(path: bytes, name: str, number: int) -> bytes:
    folder, slash, file = path.rpartition(b"/")
    stem, dot, suffix = file.rpartition(b".")
    if not stem:
        stem, dot, suffix = file, b"", b""
    word = _UNFIT.sub("-", name).strip("-.") or "incoming"
    again = f"-{number}" if number > 1 else ""
    return folder + slash + stem + f".{word}{again}".encode() + dot + suffix


async def moved_home(
    repo: Repo, trees: tuple[str, str], lost: FileSide, where: Where = HERE
) -> FileSide | None:
    """Return the file that received most of a deleted file's text, if any.

    Git's own rename detection looks for a whole file that resembles it; this looks for its lines
    in whatever that side added or changed.
    """
    lines = _telling(lost.content or b"")
    if not lines:
        return None
    changed = await _changed(repo, trees, where)
    oids = [oid for _, _, before, after in changed for oid in (before, after) if oid.strip("0")]
    contents = await contents_of(repo, list(dict.fromkeys(oids)), where)
    best: tuple[float, FileSide] | None = None
    for path, mode, before, after in changed:
        gained = _telling(contents.get(after, b"")) - _telling(contents.get(before, b""))
        share = len(lines & gained) / len(lines)
        if share >= _SHARE and (best is None or share > best[0]):
            best = share, FileSide(path=path, mode=mode, blob=after, content=contents.get(after))
    return best[1] if best else None


def _telling(content: bytes) -> set[bytes]:
    """Return the lines that carry meaning."""
    return {stripped for line in split_lines(content) if len(stripped := line.strip()) > 1}


async def _changed(
    repo: Repo, trees: tuple[str, str], where: Where
) -> list[tuple[bytes, str, str, str]]:
    """Return files that a side added or changed: path, mode, old object, new object."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AM")
    fields = (await repo.read(*words, *trees, "--", where=where)).split(b"\0")
    found: list[tuple[bytes, str, str, str]] = []
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, before, after, _ = head.decode().removeprefix(":").split(" ")
        if mode.startswith("100"):
            found.append((path, mode, before, after))
    return found if len(found) <= _MOST_FILES else []
