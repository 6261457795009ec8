"""The choices for a whole conflicted path, and what each would leave in the tree.

Knows one conflict at a time. Choices for single hunks are `engine.merge.choices`.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from engine.merge.both_sides import union
from engine.merge.conflict import PLACED_KINDS, FileConflict, FileSide
from engine.merge.kinds import STYLE_KINDS, ConflictKind, merged_plainly
from engine.merge.linediff import diff
from engine.merge.styles import Style
from engine.merge.text import is_binary, split_lines


class Whole(StrEnum):
    """One choice for a whole path."""

    TARGET = "target"
    INCOMING = "incoming"
    BASE = "base"
    UNION = "union"
    MERGED = "merged"
    TARGET_STYLE = "merged, in the target's style"
    INCOMING_STYLE = "merged, in the incoming style"
    BOTH = "both"
    MOVE = "move"
    DELETE = "delete"


class FilePlace(StrEnum):
    """The path for a file that both sides moved."""

    TARGET = "target"
    INCOMING = "incoming"
    BOTH = "both"


class FileResult(NamedTuple):
    """The merged tree's entry at a path; without a mode the path is gone.

    Where `content` is None and there is a mode, `blob` names the content.
    """

    path: bytes
    mode: str | None = None
    content: bytes | None = None
    blob: str | None = None


class Option(NamedTuple):
    """A choice for a whole path: a word for it, what it would do, and the tree it would leave."""

    choice: Whole
    label: str
    effect: str
    results: tuple[FileResult, ...]


def options(conflict: FileConflict) -> tuple[Option, ...]:
    """Every choice for the whole path that can be carried out, the two sides first."""
    return tuple(_options(conflict))


def option(conflict: FileConflict, choice: Whole) -> Option | None:
    """The option of that name, if this conflict has it."""
    return next((found for found in _options(conflict) if found.choice is choice), None)


def _options(conflict: FileConflict) -> Iterator[Option]:
    """One after the other, because merging a large file only to show a side would be felt."""
    if conflict.is_complaint:
        for choice in (Whole.TARGET, Whole.INCOMING):
            effect = "every file stays where the merge put it; nothing is removed"
            yield Option(choice, "leave as merged", effect, ())
        return
    yield from _sides(conflict)
    yield from _merges(conflict)
    yield from _other_places(conflict)


def result_of(side: FileSide, path: bytes | None = None) -> FileResult:
    """A version as it would stand in the merged tree, under its own name or another."""
    return FileResult(side.path if path is None else path, side.mode, side.content, side.blob)


def gone(conflict: FileConflict, *kept: bytes) -> tuple[FileResult, ...]:
    """Return the paths of this conflict that are not kept, as deletions."""
    sides = (conflict.base, conflict.target, conflict.incoming)
    paths = {conflict.path, *(side.path for side in sides if side), *conflict.below}
    return tuple(FileResult(path) for path in sorted(paths.difference(kept, conflict.held)))


def shown(path: bytes) -> str:
    """A path for a sentence."""
    return path.decode(errors="replace")


def owned(name: str) -> str:
    """Return the name of a side as an owner's: `main's`, but `theirs'`."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _sides(conflict: FileConflict) -> Iterator[Option]:
    names = conflict.names
    yield _side(conflict, Whole.TARGET, conflict.target, names.target)
    yield _side(conflict, Whole.INCOMING, conflict.incoming, names.incoming)
    if conflict.base and not (conflict.below or conflict.is_base_made):
        path = _home(conflict, conflict.base)
        results = (result_of(conflict.base, path), *gone(conflict, path))
        effect = f"{shown(path)} as it was before both; neither change is taken"
        yield Option(Whole.BASE, "as it was", effect, results)
    if conflict.target and conflict.incoming:
        effect = f"{shown(conflict.path)} is gone; both versions stay in their branches"
        yield Option(Whole.DELETE, "delete", effect, gone(conflict, *conflict.below))


def _files(conflict: FileConflict) -> str:
    count = len(conflict.below)
    return f"{count} file{'s' if count != 1 else ''}"


def _side(conflict: FileConflict, choice: Whole, side: FileSide | None, name: str) -> Option:
    if side is None and conflict.below:
        kept = (conflict.path + b"/", *conflict.below)
        effect = f"the folder {shown(conflict.path)} stays, with {_files(conflict)}"
        return Option(choice, f"the folder of {name}", effect, gone(conflict, *kept))
    if side is None:
        effect = f"{shown(conflict.path)} is deleted, as on {name}"
        other = conflict.incoming if choice is Whole.TARGET else conflict.target
        lost = _size_of_change(conflict.base, other)
        effect += f"; the change {lost} is not taken" if lost else ""
        return Option(choice, f"delete, as {name}", effect, gone(conflict))
    effect = f"{shown(side.path)} as {name} has it{_described(conflict, side)}"
    if conflict.below:
        effect += f"; this also removes {_files(conflict)} of the folder"
    path = _home(conflict, side)
    results = (result_of(side, path), *gone(conflict, path))
    return Option(choice, f"keep {owned(name)}", effect, results)


def _home(conflict: FileConflict, side: FileSide) -> bytes:
    """Return the path of a chosen version: the merged path, unless that is in question."""
    merged = conflict.target and conflict.incoming and conflict.kind not in PLACED_KINDS
    return conflict.path if merged else conflict.home_of(side)


def _described(conflict: FileConflict, side: FileSide) -> str:
    """Describe in a few words how this version differs from the other."""
    match conflict.kind:
        case ConflictKind.SUBMODULE:
            return f", at commit {side.blob[:12]}"
        case ConflictKind.SYMLINK if side.content is not None:
            return f", pointing to {shown(side.content)}"
        case ConflictKind.MODE:
            return f", mode {side.mode}"
        case ConflictKind.EOL | ConflictKind.ENCODING | ConflictKind.NO_NEWLINE:
            return f", {Style.of(side.content or b'')}"
        case ConflictKind.BINARY if side.content is not None:
            return f", {len(side.content):,} bytes"
        case _:
            change = _size_of_change(conflict.base, side)
            return f", {change} since the base" if change else ""


def _size_of_change(base: FileSide | None, side: FileSide | None) -> str:
    """`+3 -1`, or nothing where lines cannot be compared."""
    if side is None or side.content is None or is_binary(side.content):
        return ""
    before = base.content if base else b""
    if before is None or is_binary(before):
        return ""
    changes = diff(split_lines(before), split_lines(side.content))
    added = sum(change.after_end - change.after for change in changes)
    removed = sum(change.before_end - change.before for change in changes)
    return f"+{added} -{removed}"


def _merges(conflict: FileConflict) -> Iterator[Option]:
    """Choices that put both texts together; they need one mode and one place."""
    text = conflict.text
    mode = conflict.mode.resolved
    if mode is None or conflict.kind in PLACED_KINDS:
        return
    if conflict.kind in STYLE_KINDS:
        yield from _styled(conflict, mode)
    if text is None:
        return
    path = conflict.path
    if not text.hunks:
        content = text.render(lambda hunk: b"".join(hunk.base))
        effect = "both changes; aligned line by line, they do not overlap"
        yield Option(Whole.MERGED, "both changes", effect, _only(conflict, path, mode, content))
    else:
        effect = "both sides of every conflict, target first, shared lines once"
        content = union(text, differ=conflict.differ)
        yield Option(Whole.UNION, "both sides", effect, _only(conflict, path, mode, content))


def _styled(conflict: FileConflict, mode: str) -> Iterator[Option]:
    """Return the text that both share, written as either writes it."""
    target = conflict.target.content if conflict.target else None
    incoming = conflict.incoming.content if conflict.incoming else None
    if target is None or incoming is None:
        return
    base = conflict.base.content if conflict.base else None
    words = merged_plainly(base, target, incoming)
    if words is None:
        return
    ways = (
        (Whole.TARGET_STYLE, target, conflict.names.target),
        (Whole.INCOMING_STYLE, incoming, conflict.names.incoming),
    )
    for choice, model, name in ways:
        style = Style.of(model)
        content = style.write(words)
        if content is not None:
            results = _only(conflict, conflict.path, mode, content)
            yield Option(choice, f"both, as {name} writes it", f"both changes in {style}", results)


def _only(conflict: FileConflict, path: bytes, mode: str, content: bytes) -> tuple[FileResult, ...]:
    return (FileResult(path, mode, content), *gone(conflict, path))


def _other_places(conflict: FileConflict) -> Iterator[Option]:
    """Choices that need a second path."""
    path, other = _two_homes(conflict)
    if other and conflict.target and conflict.incoming:
        results = (result_of(conflict.target, path), result_of(conflict.incoming, other))
        effect = (
            f"{owned(conflict.names.target)} stays at {shown(path)}, "
            f"{owned(conflict.names.incoming)} goes to {shown(other)}"
        )
        kept = (path, other)
        yield Option(Whole.BOTH, "keep both", effect, (*results, *gone(conflict, *kept)))
    side = conflict.target or conflict.incoming
    if conflict.free_path and conflict.below and side:
        effect = f"the folder stays, the file goes to {shown(conflict.free_path)}"
        yield Option(Whole.BOTH, "keep both", effect, (result_of(side, conflict.free_path),))
    moved = _moved(conflict)
    if moved:
        effect = f"the change is made in {shown(moved.path)}, where the text is now"
        moved_only = (moved, *gone(conflict, moved.path))
        yield Option(Whole.MOVE, f"move the change to {shown(moved.path)}", effect, moved_only)


def _two_homes(conflict: FileConflict) -> tuple[bytes, bytes | None]:
    """Return paths at which both versions can lie, if there are two."""
    path = _home(conflict, conflict.target) if conflict.target else conflict.path
    if conflict.incoming and conflict.kind in PLACED_KINDS:
        own = _home(conflict, conflict.incoming)
        is_apart = own != path and not (path + b"/").startswith(own + b"/")
        return path, own if is_apart and not own.startswith(path + b"/") else None
    return path, conflict.free_path


def _moved(conflict: FileConflict) -> FileResult | None:
    """The change of a deleted file made where its text went, if it can be made there."""
    home, side = conflict.moved_to, conflict.target or conflict.incoming
    if not (home and side and conflict.base) or (conflict.target and conflict.incoming):
        return None
    texts = conflict.base.content, home.content, side.content
    if any(text is None or is_binary(text) for text in texts):
        return None
    content = merged_plainly(*(text or b"" for text in texts))
    if content is None:
        return None
    written = Style.of(texts[1] or b"").write(content)
    return None if written is None else FileResult(home.path, home.mode, written)
