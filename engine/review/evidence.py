"""Show the evidence behind a merge: who changed what, and what git merged by itself.

Read from commits and trees alone. A merge that is clean is not thereby right: files that both sides
changed can be looked at piece by piece, and places where their changes lie close are counted.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from anyio import to_thread

from engine.git.diff import FileChange, changed_files
from engine.git.merge3 import Sides
from engine.git.runner import Repo
from engine.merge import Lines, Origin, Piece, TextMerge, merge_texts, split_lines
from engine.messages.merging import CommitView, MergedFileView, PieceView
from engine.review.reading import contents_of, entries_of

NEAR = 3
"""Changes of two sides with fewer unchanged lines than this between them are told."""

_MOST_COMMITS = 50
_MOST_OF_A_FILE = 5
_MOST_FILES = 1000
_MOST_READ = 200
_RECORD = re.compile(rb"(?:\A|\0)\x01(?=[0-9a-f]{40,64}\0)")


@dataclass(frozen=True, kw_only=True)
class Side:
    """The commits that one side has and the other has not, and which paths each touched."""

    commits: tuple[CommitView, ...] = ()
    touched: Mapping[bytes, tuple[CommitView, ...]] = field(default_factory=dict)

    def of(self, path: bytes | None) -> tuple[CommitView, ...]:
        """Return the commits that touched a path."""
        return self.touched.get(path or b"", ())[:_MOST_OF_A_FILE]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The facts about one merge beside its conflicts."""

    target: Side = field(default_factory=Side)
    incoming: Side = field(default_factory=Side)
    merged: tuple[MergedFileView, ...] = ()


async def commits_of(repo: Repo, here: str, there: str) -> Side:
    """Return the commits that `here` has and `there` has not, newest first."""
    form = "--format=%x01%H%x00%an%x00%at%x00%s"
    words = ("log", "-z", "--name-only", "--no-renames", f"-n{_MOST_COMMITS}", form)
    listing = await repo.read(*words, here, f"^{there}", "--")
    found: list[CommitView] = []
    touched: dict[bytes, list[CommitView]] = {}
    for record in _RECORD.split(listing)[1:]:
        commit = _commit(record)
        if commit is None:
            continue  # a file that is named like the beginning of a record
        found.append(commit)
        for path in {name.removeprefix(b"\n") for name in record.split(b"\0")[4:]}:
            touched.setdefault(path, []).append(commit)
    return Side(commits=tuple(found), touched={path: tuple(many) for path, many in touched.items()})


def _commit(record: bytes) -> CommitView | None:
    words = [word.decode(errors="replace") for word in record.split(b"\0", 4)[:4]]
    if len(words) < 4 or not words[2].isdigit():  # noqa: PLR2004 - id, author, time, subject
        return None
    return CommitView(id=words[0], author=words[1], at=float(words[2]), subject=words[3])


async def merged_files(
    repo: Repo, sides: Sides, tree: str, conflicted: frozenset[bytes]
) -> tuple[MergedFileView, ...]:
    """Return the files that the merge changes in the target without asking anybody."""
    changes = await changed_files(repo, sides.ours, tree)
    clean = [one for one in changes if not conflicted.intersection((one.path, one.old_path))]
    words = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", sides.base, sides.ours, "--")
    mine = frozenset((await repo.read(*words)).split(b"\0"))
    both = [one for one in clean if one.path in mine or one.old_path in mine]
    near = await _near_in(repo, sides, [one.path for one in both[:_MOST_READ]])
    return tuple(_merged(one, near, is_both=one in both) for one in clean[:_MOST_FILES])


def _merged(change: FileChange, near: Mapping[bytes, int], *, is_both: bool) -> MergedFileView:
    return MergedFileView(
        path=os.fsdecode(change.path),
        by="both" if is_both else "incoming",
        kind=change.kind,
        added=change.added,
        removed=change.removed,
        near=near.get(change.path, 0),
    )


async def _near_in(repo: Repo, sides: Sides, paths: Sequence[bytes]) -> dict[bytes, int]:
    if not paths:
        return {}
    trees = [await entries_of(repo, tree, paths) for tree in (sides.base, sides.ours, sides.theirs)]
    whole = [path for path in paths if all(path in tree for tree in trees)]
    oids = {tree[path][1] for tree in trees for path in whole}
    contents = await contents_of(repo, sorted(oids))
    found: dict[bytes, int] = {}
    for path in whole:
        texts = [contents.get(tree[path][1]) for tree in trees]
        if None not in texts:
            count = partial(_count_near, *(text or b"" for text in texts))
            found[path] = await to_thread.run_sync(count)
    return found


def _count_near(base: bytes, target: bytes, incoming: bytes) -> int:
    return sum(near_parts(merge_texts(base, target, incoming)))


def near_parts(text: TextMerge) -> list[bool]:
    """Return, per part, whether git merged it by itself near a change of the other side."""
    found = [False] * len(text.parts)
    before: int | None = None
    for at, part in enumerate(text.parts):
        if part.origin is Origin.SAME:
            if part.base_end - part.base >= NEAR and 0 < at < len(text.parts) - 1:
                before = None
            continue
        if before is not None and text.parts[before].origin is not part.origin:
            for near in (before, at):
                found[near] = text.parts[near].origin in {Origin.TARGET, Origin.INCOMING}
        before = at
    return found


async def merged_text(repo: Repo, sides: Sides, tree: str, path: bytes) -> TextMerge | bytes | None:
    """Return a merged file: its three aligned versions or its bytes; None if absent.

    Where git did not make it of three versions at that path, it is held against the target's.
    """
    trees = (sides.base, sides.ours, sides.theirs, tree)
    entries = [(await entries_of(repo, one, [path])).get(path) for one in trees]
    contents = await contents_of(repo, sorted({entry[1] for entry in entries if entry}))
    base, target, incoming, merged = (
        contents.get(entry[1]) if entry else None for entry in entries
    )
    if merged is None:
        return None
    if b"\0" in merged:
        return merged
    if base is not None and target is not None and incoming is not None:
        text = await to_thread.run_sync(merge_texts, base, target, incoming)
        if not text.hunks and text.render(lambda _: b"") == merged:
            return text
    return await to_thread.run_sync(merge_texts, target or b"", target or b"", merged)


def piece_views(text: TextMerge | None, pieces: Sequence[Piece]) -> Iterator[PieceView]:
    """Return the pieces of a file as it stands now, in order."""
    aligned = text is not None and len(text.parts) == len(pieces)
    near = near_parts(text) if text is not None and aligned else [False] * len(pieces)
    line = 1
    for at, piece in enumerate(pieces):
        old: Lines = ()
        if text is not None and aligned and piece.origin is not Origin.SAME:
            part = text.parts[at]
            old = text.base[part.base : part.base_end]
        yield PieceView(
            origin=str(piece.origin),
            line=line,
            lines=_shown(piece.lines),
            old=_shown(old),
            hunk=piece.hunk.key if piece.hunk else "",
            is_near=near[at],
        )
        line += len(piece.lines)


def _shown(lines: Lines) -> tuple[str, ...]:
    return tuple(line.decode(errors="surrogateescape") for line in lines)


def whole_piece(content: bytes, origin: Origin = Origin.SAME) -> Piece:
    """Return a whole text as one piece."""
    return Piece(origin, split_lines(content))
