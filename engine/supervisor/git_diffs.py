"""A worker's change as a diff for people, from what was imported of it."""

import os

from engine.diffs import ChangeDiff, DiffLine, FileDiff, FileKind, Hunk, Sign
from engine.git.diff import FileChange, FilePatch, changed_files, file_patch
from engine.git.diff import Hunk as GitHunk
from engine.git.runner import Repo

_KINDS = {"A": FileKind.ADDED, "D": FileKind.DELETED, "R": FileKind.RENAMED, "C": FileKind.ADDED}
_SIGNS = {" ": Sign.KEPT, "+": Sign.ADDED, "-": Sign.REMOVED}
_LINK, _SUBMODULE = "120000", "160000"
_GENERATED = ("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock")
_MOST_BYTES = 8 << 20


async def change_diff(repo: Repo, base: str, head: str, *, against: str) -> ChangeDiff:
    """Everything that differs between two commits, file by file."""
    files = await changed_files(repo, base, head)
    patches = [await file_patch(repo, file, max_bytes=_MOST_BYTES) for file in files]
    pairs = zip(files, patches, strict=True)
    return ChangeDiff(against=against, files=tuple(_file(f, patch) for f, patch in pairs))


def _file(file: FileChange, patch: FilePatch) -> FileDiff:
    return FileDiff(
        path=os.fsdecode(file.path),
        kind=_kind(file),
        old_path=os.fsdecode(file.old_path) if file.old_path else "",
        hunks=tuple(_hunk(hunk) for hunk in patch.hunks),
        is_generated=file.path.decode(errors="replace").endswith(_GENERATED),
        note=_note(file, patch),
    )


def _kind(file: FileChange) -> FileKind:
    if _SUBMODULE in {file.old_mode, file.new_mode}:
        return FileKind.SUBMODULE
    if file.is_mode_only:
        return FileKind.MODE
    if file.is_binary and file.kind != "D":
        return FileKind.BINARY
    return _KINDS.get(file.kind, FileKind.MODIFIED)


def _note(file: FileChange, patch: FilePatch) -> str:
    notes = []
    if file.old_mode != file.new_mode and file.kind == "M":
        notes.append(f"mode {file.old_mode} → {file.new_mode}")
    if _LINK in {file.old_mode, file.new_mode}:
        notes.append("symbolic link")
    if file.is_binary:
        notes.append("binary")
    if patch.is_cut:
        notes.append("too long to be shown whole")
    return ", ".join(notes)


def _hunk(hunk: GitHunk) -> Hunk:
    old, new = hunk.old[0], hunk.new[0]
    lines: list[DiffLine] = []
    for line in hunk.lines:
        sign = _SIGNS[line.mark]
        text = line.text.decode(errors="replace")
        at_old = old if sign is not Sign.ADDED else None
        at_new = new if sign is not Sign.REMOVED else None
        lines.append(DiffLine(sign=sign, text=text, old=at_old, new=at_new))
        old += sign is not Sign.ADDED
        new += sign is not Sign.REMOVED
    return Hunk(lines=tuple(lines), where=hunk.heading.decode(errors="replace"))
