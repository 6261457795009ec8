"""Turn a worker's change into a diff for people, from what was imported of it."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from typing import NamedTuple

from engine.git.diff import (
    MOST_BYTES,
    FileChange,
    FileHunk,
    FilePatch,
    PatchLine,
    changed_files,
    file_patches,
)
from engine.git.objects import read_blobs
from engine.git.runner import HERE, Call, Repo, Where
from engine.messages.diffs import (
    ChangeDiff,
    DiffLine,
    FileDiff,
    FileKind,
    FileSides,
    Hunk,
    Sign,
)
from engine.messages.pictures import PICTURE_ENDS, Picture, picture_of

_KINDS = {"A": FileKind.ADDED, "D": FileKind.DELETED, "R": FileKind.RENAMED, "C": FileKind.ADDED}
_SIGNS = {" ": Sign.KEPT, "+": Sign.ADDED, "-": Sign.REMOVED}
_LINK, _SUBMODULE = "120000", "160000"
_GENERATED = (
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock*"),
    *("poetry.lock", "uv.lock", "Pipfile.lock", "pdm.lock", "Cargo.lock", "composer.lock"),
    *("Gemfile.lock", "go.sum", "flake.lock", "Podfile.lock", "mix.lock", "gradle.lockfile"),
    *("*.min.js", "*.min.css", "*.map", "*.pb.go", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py"),
    *("*.snap", "*.generated.*", "*.g.dart", "*.designer.cs"),
)
"""Names of files that programs write."""
_MOST_TEXT = 8 << 20
_MOST_TEXTS = 32 << 20
"""So many bytes are read at most to look into files, all of them together."""
LEAST_CONTEXT = 3

_HEADING = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|static|async|abstract|final|override|unsafe"
    r"|pub(?:\([\w:]+\))?|extern|inline|const|virtual) +)*"
    r"(?:def|class|function|func|fn|fun|impl|struct|enum|trait|interface|module|namespace|object)\b"
    r"|#{1,6} \S"
)
"""The first line of what people call a place by: a function, a class, a section."""
_BEFORE_HEADING = re.compile(r"\s*(?:[@#/*].*)?\Z")
"""A line that may stand between the change and the heading that it begins: a decorator, say."""


def heading_of(lines: Sequence[DiffLine]) -> str:
    """Return the heading that a hunk's own lines show for its change; empty where they show none.

    Git names the heading above the first line of context, which is often that of the place before.
    """
    changed = next((at for at, line in enumerate(lines) if line.sign is not Sign.KEPT), 0)
    wanted = Sign.ADDED if any(line.sign is Sign.ADDED for line in lines) else Sign.REMOVED
    for line in lines[changed:]:
        if line.sign in {wanted, Sign.KEPT} and _HEADING.match(line.text):
            return line.text.strip()
        if line.sign is wanted and not _BEFORE_HEADING.match(line.text):
            break
    above = (line.text for line in reversed(lines[:changed]) if _HEADING.match(line.text))
    return next(above, "").strip()


async def change_diff(
    repo: Repo,
    base: str,
    head: str,
    *,
    against: str,
    context: int = LEAST_CONTEXT,
    where: Where = HERE,
) -> ChangeDiff:
    """Return everything that differs between two commits or trees, file by file.

    More context never makes hunks grow together: what a hunk is known by must not depend on how
    much is shown round it.
    """
    files = await changed_files(repo, base, head, where)
    patches = await file_patches(repo, files, (base, head), max_bytes=MOST_BYTES, where=where)
    binary = [file for file in files if file.is_binary]
    sizes = await _sizes(repo, [oid for f in binary for oid in (f.old_oid, f.new_oid)], where)
    pictures = await _pictures(repo, binary, where)
    if context > LEAST_CONTEXT:
        texts = await _texts(repo, [f.new_oid for f in files if _has_text(f)], where)
        patches = tuple(
            replace(patch, hunks=widened(patch.hunks, texts.get(file.new_oid), context))
            for file, patch in zip(files, patches, strict=True)
        )
    pairs = zip(files, patches, strict=True)
    return ChangeDiff(
        against=against,
        files=tuple(_file(file, patch, _Known(sizes, pictures)) for file, patch in pairs),
        head=head,
        context=context,
    )


async def whole_sides(
    repo: Repo, sides: tuple[str, str], paths: Sequence[str], *, where: Where = HERE
) -> tuple[FileSides, ...]:
    """Return files that differ between two commits or trees, whole; large ones are left out."""
    files = [
        file
        for file in await changed_files(repo, *sides, where)
        if os.fsdecode(file.path) in paths and _SUBMODULE not in {file.old_mode, file.new_mode}
    ]
    texts = await _texts(repo, [oid for f in files for oid in (f.old_oid, f.new_oid)], where)
    return tuple(_whole(file, texts) for file in files)


def _whole(file: FileChange, texts: Mapping[str, bytes]) -> FileSides:
    old, new = texts.get(file.old_oid), texts.get(file.new_oid)
    oids = [oid for oid in (file.old_oid, file.new_oid) if oid.strip("0")]
    is_cut = any(oid not in texts for oid in oids)
    return FileSides(path=os.fsdecode(file.path), old=old, new=new, is_cut=is_cut)


async def _pictures(repo: Repo, files: Sequence[FileChange], where: Where) -> Mapping[str, Picture]:
    """Return what is known of the pictures among these files, by their objects."""
    named = [f for f in files if os.fsdecode(f.path).lower().endswith(PICTURE_ENDS)]
    texts = await _texts(repo, [oid for f in named for oid in (f.old_oid, f.new_oid)], where)
    found = {oid: picture_of(data) for oid, data in texts.items()}
    return {oid: picture for oid, picture in found.items() if picture is not None}


class _Known(NamedTuple):
    """Hold what objects are, by their ids: their sizes, and what is a picture."""

    sizes: Mapping[str, int]
    pictures: Mapping[str, Picture]


def _has_text(file: FileChange) -> bool:
    return not file.is_binary and file.kind != "D" and file.new_mode != _SUBMODULE


async def _sizes(repo: Repo, oids: Sequence[str], where: Where) -> Mapping[str, int]:
    """Return the sizes of those objects that exist."""
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(oids) if oid.strip("0"))
    if not asked:
        return {}
    words = ("cat-file", "--batch-check=%(objectname) %(objectsize)")
    answer = await repo.read(*words, call=Call(stdin=asked.encode()), where=where)
    pairs = (line.split(" ") for line in answer.decode().split("\n") if line)
    return {oid: int(size) for oid, size in pairs if size.isdigit()}


async def _texts(repo: Repo, oids: Sequence[str], where: Where) -> Mapping[str, bytes]:
    """Return the content of these objects; big ones are left out, and what is beyond all bounds."""
    sizes = await _sizes(repo, oids, where)
    room, small = _MOST_TEXTS, []
    for oid, size in sizes.items():
        if size <= min(_MOST_TEXT, room):
            small.append(oid)
            room -= size
    return dict(zip(small, await read_blobs(repo, small, where), strict=True)) if small else {}


def widened(hunks: Sequence[FileHunk], content: bytes | None, context: int) -> tuple[FileHunk, ...]:
    """Widen the context of each hunk; lines between two hunks are shown once."""
    if content is None or not hunks:
        return tuple(hunks)
    lines = content.split(b"\n")
    count = len(lines) - (not lines[-1])
    extra = context - LEAST_CONTEXT
    found: list[FileHunk] = []
    free_from = 0
    for hunk, after in zip(hunks, [*hunks[1:], None], strict=True):
        start, end = _span(hunk)
        room = count - end if after is None else (_span(after)[0] - end + 1) // 2
        above = lines[max(free_from, start - extra) : start]
        below = lines[end : end + max(min(extra, room), 0)]
        free_from = end + len(below)
        found.append(_with(hunk, above, below))
    return tuple(found)


def _span(hunk: FileHunk) -> tuple[int, int]:
    """Return a hunk's first and last line in the new file, counted from 0."""
    first, count = hunk.new
    start = first - 1 if count else first
    return start, start + count


def _with(hunk: FileHunk, above: Sequence[bytes], below: Sequence[bytes]) -> FileHunk:
    grown = len(above) + len(below)
    if not grown:
        return hunk
    more = [[PatchLine(" ", text) for text in texts] for texts in (above, below)]
    sides = [
        (first + (not count) - len(above), count + grown) for first, count in (hunk.old, hunk.new)
    ]
    lines = (*more[0], *hunk.lines, *more[1])
    return replace(hunk, old=sides[0], new=sides[1], lines=lines)


def _file(file: FileChange, patch: FilePatch, known: _Known) -> FileDiff:
    name = os.fsdecode(file.path)
    return FileDiff(
        path=name,
        kind=_kind(file),
        old_path=os.fsdecode(file.old_path) if file.old_path else "",
        hunks=tuple(_hunk(hunk) for hunk in patch.hunks),
        is_generated=any(fnmatch(name.rpartition("/")[2], each) for each in _GENERATED),
        is_binary=file.is_binary,
        is_picture=not known.pictures.keys().isdisjoint({file.old_oid, file.new_oid}),
        is_cut=patch.is_cut,
        note=_note(file, patch, known),
        added_in_all=file.added if patch.is_cut else None,
        removed_in_all=file.removed if patch.is_cut else None,
    )


def _kind(file: FileChange) -> FileKind:
    if _SUBMODULE in {file.old_mode, file.new_mode}:
        return FileKind.SUBMODULE
    if _LINK in {file.old_mode, file.new_mode} and file.kind in "MT":
        return FileKind.LINK
    if file.is_mode_only and file.kind != "R":
        return FileKind.MODE
    if file.is_binary and file.kind not in "DA":
        return FileKind.BINARY
    return _KINDS.get(file.kind, FileKind.MODIFIED)


def _note(file: FileChange, patch: FilePatch, known: _Known) -> str:
    notes = []
    if file.old_mode != file.new_mode and file.kind in "MRT":
        notes.append(f"{_TYPES[file.old_mode]} → {_TYPES[file.new_mode]}")
    elif file.new_mode == "100755" and file.kind == "A":
        notes.append(_TYPES["100755"])
    elif _LINK in {file.old_mode, file.new_mode}:
        notes.append(_TYPES[_LINK])
    if file.kind == "R" and file.similarity is not None and file.similarity < 100:  # noqa: PLR2004 - percent
        notes.append(f"{file.similarity}% alike")
    if file.is_binary:
        notes.append(_looks(file, known.pictures) or "binary")
        notes.append(_size(file, known.sizes))
    if patch.is_cut:
        notes.append("too long to show in full")
    return ", ".join(notes)


def _looks(file: FileChange, pictures: Mapping[str, Picture]) -> str:
    """Return a picture's kind and size, now and before."""
    old, new = pictures.get(file.old_oid), pictures.get(file.new_oid)
    if new is None:
        return f"{old.kind} picture, was {_pixels(old)} pixels" if old else ""
    if old is None:
        return f"{new.kind} picture, {_pixels(new)} pixels"
    kind = f"{new.kind} picture" if new.kind == old.kind else f"{new.kind} picture, was {old.kind}"
    was = "as before" if _pixels(old) == _pixels(new) else f"was {_pixels(old)}"
    return f"{kind}, {_pixels(new)} pixels, {was}"


def _pixels(picture: Picture) -> str:
    return f"{picture.width} × {picture.height}"  # noqa: RUF001 - the sign for it


_TYPES = {
    "100644": "file (100644)",
    "100664": "file (100664)",
    "100755": "executable (100755)",
    _LINK: "symbolic link",
    _SUBMODULE: "submodule",
}


def _size(file: FileChange, sizes: Mapping[str, int]) -> str:
    """Return a size as text, such as `2.1 KB, was 1.8 KB`."""
    old, new = sizes.get(file.old_oid), sizes.get(file.new_oid)
    if new is None:
        return f"was {_figure(old or 0)}"
    return _figure(new) if old is None else f"{_figure(new)}, was {_figure(old)}"


def _figure(size: int) -> str:
    kib = 1024
    if size < kib:
        return f"{size} B"
    return f"{size / kib:.1f} KB" if size < kib * kib else f"{size / kib / kib:.1f} MB"


def _hunk(hunk: FileHunk) -> Hunk:
    old, new = hunk.old[0], hunk.new[0]
    lines: list[DiffLine] = []
    for line in hunk.lines:
        sign = _SIGNS[line.mark]
        text = line.text.decode(errors="surrogateescape")
        at_old = old if sign is not Sign.ADDED else None
        at_new = new if sign is not Sign.REMOVED else None
        lines.append(DiffLine(sign, text, at_old, at_new, has_newline=line.has_newline))
        old += sign is not Sign.ADDED
        new += sign is not Sign.REMOVED
    heading = hunk.heading.decode(errors="replace")
    return Hunk(lines=tuple(lines), where=heading_of(lines) or heading)
