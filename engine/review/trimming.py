"""Leave hunks out of a worker's change before it lands.

Hunks are known by the keys that the diff of the whole change has. What is left is a commit of its
own on the change's base, so that nothing left out comes into the target's history; the whole stays
on the attempt's refs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.diff import FileChange, FileHunk, changed_files, file_patches
from engine.git.merge3 import MergedTrees
from engine.git.names import RefNames
from engine.git.objects import Wording, read_blobs, set_refs, tree_of, write_commit
from engine.git.runner import Repo
from engine.ids import AttemptId, WorkerId
from engine.merge import FileResult, split_lines
from engine.messages.diffs import ChangeDiff, file_key
from engine.messages.results import Change
from engine.phases import Phase
from engine.review.conflicts import Conflicts
from engine.review.diffs import change_diff
from engine.review.results import result_tree
from engine.review.weaving import change_of


def may_be_trimmed(state: RunState, worker: WorkerId, *, attempt: int | None = None) -> Worker:
    """Return the worker if its change may lose hunks now.

    Raises:
        WorkspaceError: It is not finished, it has landed, or others build on it.
    """
    w = state.workers[worker]
    if w.phase is not Phase.REVIEWING or w.change is None or w.change.head is None:
        raise WorkspaceError(f"{w.id} is {w.phase}: {_WHY_NOT.get(w.phase, _NOT_FINISHED)}")
    if attempt not in {None, w.attempt.number}:
        raise WorkspaceError(f"{w.id} is at attempt {w.attempt.number} by now")
    above = [
        str(other.id)
        for other in state.workers.values()
        if (w.id, w.attempt.number) in other.attempt.bases and other.phase is not Phase.DISCARDED
    ]
    if above:
        raise WorkspaceError(
            f"{', '.join(above)} builds on it as it is",
            hint="Retry this one with a comment instead.",
        )
    return w


_NOT_FINISHED = "it has no finished change to leave hunks out of"
_WHY_NOT = {
    Phase.LANDED: "all of it is on the target; undo the landing first",
    Phase.LANDING: "it is about to land",
    Phase.CONFLICTED: "decide its conflicts in Review instead",
}


async def trimmed(repo: Repo, state: RunState, w: Worker, keys: Sequence[str]) -> Change:
    """Return the change without these hunks, kept on a ref of its own.

    Raises:
        WorkspaceError: There is no such hunk, or nothing would be left.
    """
    # Always cut from the whole change: a hunk left out before can come back.
    whole = w.review.whole or w.change
    if whole is None or whole.head is None or whole.base is None:
        raise WorkspaceError(f"{w.id} has no change")
    if not keys:
        return whole
    results = await _reverted(repo, (whole.base, whole.head), frozenset(keys))
    merged = MergedTrees(tree=await tree_of(repo, whole.head))
    tree = await result_tree(repo, merged, Conflicts(()), results)
    if tree == await tree_of(repo, whole.base):
        raise WorkspaceError(f"nothing would be left of {w.id}", hint="Give it up instead.")
    author = repo.settings.sign(int(w.begun.at or state.started_at or 0))
    wording = Wording(message=f"{w.id}, with {len(keys)} left out\n", author=author)
    head = await write_commit(repo, tree, [whole.base], wording)
    names = RefNames(AttemptId(state.run, w.id, w.attempt.number), state.plan.runtime.branch_prefix)
    await set_refs(repo, [(names.trimmed, head)], say="plait: hunks left out")
    left = await change_of(repo, base=whole.base, head=head, tree=tree)
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
