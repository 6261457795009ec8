"""A change's effect on files, as plain data: counts, modes, renames, hunks.

Everything is compared commit to commit in the user's repository; nothing of a worker's is read.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.git.plumbing.process import Completed
from engine.git.runner import HERE, Call, Repo, Where

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)", re.DOTALL)
_QUIET = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_RAW = (*_QUIET, "-r", "-z", "--no-abbrev", "-M", "--raw", "--numstat")
_ALIKE = ("-c", "diff.algorithm=histogram", "-c", "diff.suppressBlankEmpty=false")
"""Patches that are counted and those that are shown have the same hunks."""
_HEAD = b"diff --git "
_FIRST_HUNK = re.compile(rb"\n\+\+\+ [^\n]*\n@@ -")
MOST_BYTES = 64 << 20
"""No more of a patch than this is shown or taken apart."""
_Numbers = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file that differs.

    Attributes:
        path: Where it is now, or where it was when it is gone.
        old_path: Where it was, when it was renamed or copied.
        kind: Git's letter: A, C, D, M, R or T (its type changed).
        similarity: Percent, for a rename or copy.
        added: Lines added; None for a file that is not text.
    """

    path: bytes
    kind: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str
    old_path: bytes | None = None
    similarity: int | None = None
    added: int | None = None
    removed: int | None = None

    @property
    def is_binary(self) -> bool:
        """It has no lines to count."""
        return self.added is None

    @property
    def is_mode_only(self) -> bool:
        """Its content is the same."""
        return self.old_oid == self.new_oid and self.old_mode != self.new_mode


@dataclass(frozen=True, slots=True)
class PatchLine:
    """One line of a hunk: its mark (` `, `-`, `+`), its bytes, and whether a line end follows."""

    mark: str
    text: bytes
    has_newline: bool = True


@dataclass(frozen=True, slots=True)
class FileHunk:
    """A run of lines that differ, with their surroundings.

    `old` and `new` are the first line, counted from 1, and how many there are on that side.
    """

    old: tuple[int, int]
    new: tuple[int, int]
    heading: bytes
    lines: tuple[PatchLine, ...]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The hunks of one file; `is_cut` when there were more than were asked for."""

    path: bytes
    hunks: tuple[FileHunk, ...]
    is_binary: bool = False
    is_cut: bool = False


async def changed_files(
    repo: Repo, old: str, new: str, where: Where = HERE
) -> tuple[FileChange, ...]:
    """Every file that differs between two commits or trees, in git's order."""
    return _files(await repo.read("diff-tree", *_RAW, old, new, "--", where=where))


def _files(answer: bytes) -> tuple[FileChange, ...]:
    """Return the files of `--raw --numstat -z`."""
    fields = iter(answer.split(b"\0"))
    found: list[FileChange] = []
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    for field in fields:
        if field.startswith(b":"):
            found.append(_raw(field, fields))
        elif field:
            path, count = _count(field, fields)
            counts[path] = count
    return tuple(_counted(change, counts.get(change.path, (None, None))) for change in found)


def _raw(field: bytes, fields: Iterator[bytes]) -> FileChange:
    """One record of `--raw -z`: modes, ids and letter, then one path or two."""
    old_mode, new_mode, old_oid, new_oid, letter = field[1:].decode().split(" ")
    first = next(fields)
    is_moved = letter[0] in "RC"
    return FileChange(
        path=next(fields) if is_moved else first,
        old_path=first if is_moved else None,
        kind=letter[0],
        similarity=int(letter[1:]) if is_moved else None,
        old_mode=old_mode,
        new_mode=new_mode,
        old_oid=old_oid,
        new_oid=new_oid,
    )


def _count(field: bytes, fields: Iterator[bytes]) -> tuple[bytes, tuple[int | None, int | None]]:
    """One record of `--numstat -z`: two numbers or dashes, then a path, or nothing and two."""
    added, removed, path = field.split(b"\t", 2)
    if not path:
        next(fields)
        path = next(fields)
    count = (None, None) if added == b"-" else (int(added), int(removed))
    return path, count


def _counted(change: FileChange, count: tuple[int | None, int | None]) -> FileChange:
    return replace(change, added=count[0], removed=count[1])


async def file_patches(
    repo: Repo,
    changes: Sequence[FileChange],
    sides: tuple[str, str],
    *,
    max_bytes: int = MOST_BYTES,
    where: Where = HERE,
) -> tuple[FilePatch, ...]:
    """The hunks of every one of these changes between two commits or trees, in one process.

    They are all that `changed_files` found, in its order: git writes one section for each, and two
    where a file's type changed. What a section may hold is known from its hunks' own numbers, so
    that nothing in a file can pass for the head of the next.
    """
    done = await _patch(repo, sides, max_bytes, where)
    sections = iter(_sections(done.stdout))
    found: list[FilePatch] = []
    for change in changes:
        parts = [next(sections, None) for _ in range(2 if change.kind == "T" else 1)]
        hunks = tuple(hunk for part in parts for hunk in part or ())
        is_cut = done.is_cut and None in parts
        if change.is_binary:
            found.append(FilePatch(change.path, (), is_binary=True))
        else:
            found.append(FilePatch(change.path, hunks, is_cut=is_cut))
    if done.is_cut and found:
        last = max((at for at, one in enumerate(found) if not one.is_cut), default=0)
        found[last] = replace(found[last], hunks=found[last].hunks[:-1], is_cut=True)
    return tuple(found)


async def counted_files(
    repo: Repo, old: str, new: str, max_bytes: int = MOST_BYTES
) -> tuple[tuple[FileChange, ...], int | None]:
    """Return what `changed_files` does, and how many hunks there are, from one process.

    A file that differs without hunks counts as one. None where the patch is too long to be shown
    whole.
    """
    words = (*_RAW, "-p", "-U3", "--full-index", old, new, "--")
    done = await repo.run("diff-tree", *words, call=Call(max_bytes=max_bytes, flags=_ALIKE))
    if done.is_cut:
        return await changed_files(repo, old, new), None
    # No path is empty, so that no record has this. Lines of files have a mark before them.
    records, is_patch, patch = done.stdout.partition(b"\0\0" + _HEAD)
    heads = patch.count(b"\n" + _HEAD) + bool(is_patch)
    bare = heads - len(_FIRST_HUNK.findall(patch))
    return _files(records), patch.count(b"\n@@ -") + bare


async def _patch(repo: Repo, sides: tuple[str, str], most: int, where: Where) -> Completed:
    words = ("diff-tree", *_QUIET, "-p", "-r", "-M", "-U3", "--full-index", *sides, "--")
    return await repo.run(*words, call=Call(max_bytes=most, flags=_ALIKE), where=where)


def _sections(patch: bytes) -> Iterator[list[FileHunk]]:
    """The hunks of every file of a whole patch."""
    lines = patch.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    heads = _heads(lines)
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        yield list(hunks_of(lines[start:end]))


def _heads(lines: Sequence[bytes]) -> list[int]:
    """Return the lines at which files begin: heads that stand where no hunk has lines left."""
    found: list[int] = []
    old = new = at = 0
    while at < len(lines):
        line = lines[at]
        match = _HUNK.fullmatch(line) if old <= 0 and new <= 0 else None
        if match is not None:
            old, new = int(match[2] or 1), int(match[4] or 1)
        elif old <= 0 and new <= 0:
            if line.startswith(_HEAD):
                found.append(at)
        else:
            old -= line[:1] in b" -"
            new -= line[:1] in b" +"
        at += 1
    return found


def hunks_of(lines: Sequence[bytes]) -> Iterator[FileHunk]:
    """Yield the hunks of one file's patch, whose lines end at line feeds and nowhere else."""
    numbers: _Numbers | None = None
    heading = b""
    body: list[PatchLine] = []
    for line in lines:
        match = _HUNK.fullmatch(line)
        if match is not None and _is_full(numbers, body):
            if numbers:
                yield FileHunk(*numbers, heading, tuple(body))
            at = [int(number) if number else 1 for number in match.groups()[:4]]
            numbers = ((at[0], at[1]), (at[2], at[3]))
            heading, body = match[5], []
        elif numbers and line[:1] == b"\\" and body:
            body[-1] = replace(body[-1], has_newline=False)
        elif numbers:
            body.append(PatchLine(line[:1].decode(), line[1:]))
    if numbers:
        yield FileHunk(*numbers, heading, tuple(body))


def _is_full(numbers: _Numbers | None, body: Sequence[PatchLine]) -> bool:
    """All lines that the hunk's head announced have been read: what follows is no content."""
    if numbers is None:
        return True
    old = sum(line.mark in " -" for line in body)
    new = sum(line.mark in " +" for line in body)
    return (old, new) == (numbers[0][1], numbers[1][1])


async def patch_bytes(repo: Repo, old: str, new: str, *, max_bytes: int = 64 << 20) -> bytes | None:
    """Return a whole change as a patch that `git apply` takes; None where it is too long."""
    words = ("diff-tree", *_QUIET, "-p", "-r", "-M", "--binary", "--full-index", old, new, "--")
    done = await repo.run(*words, call=Call(max_bytes=max_bytes))
    return None if done.is_cut else done.stdout


async def is_ancestor(repo: Repo, older: str, newer: str) -> bool:
    """Everything in the older commit is in the newer one."""
    words = ("merge-base", "--is-ancestor", older, newer)
    return (await repo.run(*words, call=Call(ok=(0, 1)))).exit_code == 0


async def merge_base(repo: Repo, one: str, other: str) -> str | None:
    """The best common ancestor of two commits; None for unrelated ones."""
    done = await repo.run("merge-base", one, other, call=Call(ok=(0, 1)))
    return done.stdout.decode().split("\n", 1)[0] or None
