"""Edit a change before it lands: leave hunks of it out, and edit files of it.

Hunks are known by the keys that the diff of the whole change has. What is left is a commit of its
own on the change's base, so that nothing left out comes into the target's history. An edit
replaces the whole change. What was collected stays on the attempt's refs.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.diff import FileChange, FileHunk, changed_files, file_patches
from engine.git.merge3 import MergedTrees
from engine.git.names import RefNames
from engine.git.objects import Wording, read_blobs, resolve, set_refs, tree_of, write_commit
from engine.git.runner import Repo
from engine.ids import AttemptId, WorkerId
from engine.merge import FileResult, split_lines
from engine.messages.diffs import ChangeDiff, file_key
from engine.messages.merging import FileText
from engine.messages.results import Change
from engine.phases import Phase
from engine.review.conflicts import Conflicts
from engine.review.diffs import change_diff
from engine.review.reading import entries_of
from engine.review.results import result_tree
from engine.review.weaving import change_of

_NOT_FINISHED = "it has no finished change to edit"
_WHY_NOT = {
    Phase.LANDED: "its whole change is on the target; undo the landing first",
    Phase.LANDING: "it is about to land",
    Phase.CONFLICTED: "resolve its conflicts in Review instead",
}


_MOST_TEXT = 8 << 20
_PLAIN = frozenset({"100644", "100755"})


@dataclass(frozen=True, kw_only=True)
class EditedChange:
    """A change after an edit.

    Attributes:
        change: What would land.
        whole: The same with the hunks that are left out.
        left_out: The hunks that are still left out, by their keys.
        paths: The files in which the whole is not what was collected.
    """

    change: Change
    whole: Change
    left_out: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def in_review(state: RunState, worker: WorkerId, *, attempt: int | None = None) -> Worker:
    """Return the worker if its change may be taken in hand now.

    Raises:
        WorkspaceError: It is not finished, it has landed, or others build on it.
    """
    w = state.workers[worker]
    if w.phase is not Phase.REVIEWING or w.change is None or w.change.head is None:
        raise WorkspaceError(f"{w.id} is {w.phase}: {_WHY_NOT.get(w.phase, _NOT_FINISHED)}")
    if attempt not in {None, w.attempt.number}:
        raise WorkspaceError(
            f"{w.id} is already at attempt {w.attempt.number}", hint="Look at its diff again."
        )
    above = [
        str(other.id)
        for other in state.workers.values()
        if (w.id, w.attempt.number) in other.attempt.bases and other.phase is not Phase.DISCARDED
    ]
    if above:
        raise WorkspaceError(
            f"{', '.join(above)} builds on this change as it is",
            hint="Retry this one with a comment instead.",
        )
    return w


def whole_of(w: Worker) -> Change:
    """Return the change with all of its hunks, as it was collected or edited.

    Raises:
        WorkspaceError: There is none.
    """
    whole = w.review.whole or w.change
    if whole is None or whole.head is None or whole.base is None:
        raise WorkspaceError(f"{w.id} has no change")
    return whole


async def read_text_of(repo: Repo, w: Worker, path: str) -> FileText:
    """Return a file of the whole change as a text that an editor can be given.

    Raises:
        WorkspaceError: There is no such file, or it is no text.
    """
    whole = whole_of(w)
    name = os.fsencode(path)
    entry = (await entries_of(repo, whole.head or "", [name])).get(name)
    if entry is None:
        raise WorkspaceError(f"the change has no file {path}")
    if entry[0] not in _PLAIN:
        raise WorkspaceError(f"{path} is not a file that you can edit")
    (content,) = await read_blobs(repo, [entry[1]])
    if b"\0" in content or len(content) > _MOST_TEXT:
        raise WorkspaceError(f"{path} is not text, so an editor cannot keep it intact")
    return FileText(path=path, text=content.decode(errors="surrogateescape"), mode=entry[0])


async def edited(repo: Repo, state: RunState, w: Worker, file: FileText) -> EditedChange:
    """Return the change with another text in one of its files; without a text the file goes.

    Raises:
        WorkspaceError: It cannot be written there, or nothing would be left of the change.
    """
    whole = whole_of(w)
    base, name = whole.base or "", os.fsencode(file.path)
    entry = (await entries_of(repo, whole.head or "", [name])).get(name)
    if entry is not None and entry[0] not in _PLAIN:
        raise WorkspaceError(f"{file.path} is not a file that you can edit")
    mode = entry[0] if entry else file.mode
    content = None if file.text is None else file.text.encode(errors="surrogateescape")
    result = FileResult(name) if content is None else FileResult(name, mode, content)
    merged = MergedTrees(tree=await tree_of(repo, whole.head or ""))
    tree = await result_tree(repo, merged, Conflicts(()), [result])
    if tree == await tree_of(repo, base):
        raise WorkspaceError(
            f"this would leave nothing of {w.id}", hint="Reject the change instead."
        )
    names = _names(state, w)
    collected = await resolve(repo, names.head) or whole.head or ""
    differing = await changed_files(repo, await tree_of(repo, collected), tree)
    paths = tuple(os.fsdecode(one.path) for one in differing)
    head = await _keep(repo, state, w, (base, tree), said="edited by hand", ref=names.edited)
    made = replace(
        await change_of(repo, base=base, head=head, tree=tree),
        artifacts=whole.artifacts,
        set_aside=whole.set_aside,
    )
    diff = await change_diff(repo, base, head, against="")
    known = {key for of_file in diff.keys for key in of_file} | set(map(file_key, diff.files))
    left_out = tuple(key for key in w.review.left_out if key in known)
    now = replace(w, review=replace(w.review, whole=made))
    change = await trimmed(repo, state, now, left_out)
    return EditedChange(change=change, whole=made, left_out=left_out, paths=paths)


def _names(state: RunState, w: Worker) -> RefNames:
    attempt = AttemptId(state.run, w.id, w.attempt.number)
    return RefNames(attempt, state.plan.runtime.branch_prefix)


async def _keep(
    repo: Repo, state: RunState, w: Worker, made: tuple[str, str], *, said: str, ref: str
) -> str:
    """Write a tree on its base as one commit of the user's, and keep that on a ref."""
    base, tree = made
    author = repo.settings.sign(int(w.begun.at or state.started_at or 0))
    head = await write_commit(
        repo, tree, [base], Wording(message=f"{w.id}, {said}\n", author=author)
    )
    await set_refs(repo, [(ref, head)], say=f"plait: {said}")
    return head


async def trimmed(repo: Repo, state: RunState, w: Worker, keys: Sequence[str]) -> Change:
    """Return the change without these hunks, kept on a ref of its own.

    Raises:
        WorkspaceError: There is no such hunk, or nothing would be left.
    """
    # Always cut from the whole change: a hunk left out before can come back.
    whole = whole_of(w)
    base = whole.base or ""
    if not keys:
        return whole
    results = await _reverted(repo, (base, whole.head or ""), frozenset(keys))
    merged = MergedTrees(tree=await tree_of(repo, whole.head or ""))
    tree = await result_tree(repo, merged, Conflicts(()), results)
    if tree == await tree_of(repo, base):
        raise WorkspaceError(
            f"this would leave nothing of {w.id}", hint="Reject the change instead."
        )
    said = f"with {len(keys)} left out"
    head = await _keep(repo, state, w, (base, tree), said=said, ref=_names(state, w).trimmed)
    left = await change_of(repo, base=base, head=head, tree=tree)
    return replace(left, artifacts=whole.artifacts, set_aside=whole.set_aside)


async def _reverted(repo: Repo, sides: tuple[str, str], keys: frozenset[str]) -> list[FileResult]:
    """Return every file that loses something, as it is without it."""
    diff = await change_diff(repo, *sides, against="")
    _refuse_unknown(diff, keys)
    files = await changed_files(repo, *sides)
    patches = await file_patches(repo, files, sides)
    found: list[FileResult] = []
    for n, (file, patch) in enumerate(zip(files, patches, strict=True)):
        named = [key in keys for key in diff.keys[n]]
        # A file whose type changed is two files: there is nothing in between.
        is_whole = (all(named) and not patch.is_cut) or (any(named) and file.kind == "T")
        if file_key(diff.files[n]) in keys or (named and is_whole):
            found += _as_before(file)
        elif any(named):
            (content,) = await read_blobs(repo, [file.new_oid])
            gone = [hunk for hunk, is_gone in zip(patch.hunks, named, strict=True) if is_gone]
            found.append(FileResult(file.path, file.new_mode, without(content, gone)))
    return found


def _refuse_unknown(diff: ChangeDiff, keys: frozenset[str]) -> None:
    known = {key for of_file in diff.keys for key in of_file} | set(map(file_key, diff.files))
    if keys - known:
        raise WorkspaceError(
            f"the change has no hunk {min(keys - known)}",
            hint="Look at its diff again: it may have been retried.",
        )


def _as_before(file: FileChange) -> Iterator[FileResult]:
    """Yield a file as if it had never been touched."""
    if file.kind in "AR":
        yield FileResult(file.path)
    if file.kind != "A":
        yield FileResult(file.old_path or file.path, file.old_mode, None, file.old_oid)


def without(content: bytes, hunks: Sequence[FileHunk]) -> bytes:
    """Return a file's new content with these of its hunks taken back, in their order."""
    lines = list(split_lines(content))
    # From the end, so that the line numbers of earlier hunks stay right.
    for hunk in reversed(hunks):
        first, count = hunk.new
        start = first - 1 if count else first
        lines[start : start + count] = [
            line.text + b"\n" * line.has_newline for line in hunk.lines if line.mark != "+"
        ]
    return b"".join(lines)
