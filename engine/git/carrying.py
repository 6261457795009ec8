"""Landing under edits of the user's: carried along uncommitted, or made a commit of theirs first.

Either way they are kept in a commit, pinned, before any file is written.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.errors import DirtyTarget, WorkspaceError
from engine.git.base import stage_place
from engine.git.composition import Composed
from engine.git.landing import LandingRefused, LandPrepared, checkout_of, prove
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, resolve, set_refs, sign_commit, tree_of, write_commit
from engine.git.plumbing.contents import FileVersion
from engine.git.runner import Call, Repo, Where
from engine.git.shifts import Kind, Stand
from engine.git.staging import private_index
from engine.git.touched import differing, index_lines, staged_paths, touched_paths
from engine.git.worktrees import Checkout


async def prepare_carrying(
    repo: Repo, merger: Merger, composed: Composed, wording: Wording
) -> LandPrepared | LandingRefused | MergedTrees:
    """A landing that takes the user's uncommitted edits along; the edits are pinned first.

    Afterwards the working tree holds the new commit with the edits on top, uncommitted as before;
    what of them was staged and touched is no longer staged. Where both changed the same lines the
    conflicts come back.

    Raises:
        WorkspaceError: Nobody has the target checked out, so no edits are in the way.
        DirtyTarget: Some edits cannot be carried: huge or ignored files in the way.
    """
    place = await _place(repo, composed)
    if isinstance(place, LandingRefused):
        return place
    old = composed.old or repo.empty_tree
    tree = (await stage_place(repo, old, _where(place))).tree
    edits = await write_commit(repo, tree, [composed.old] if composed.old else [], wording)
    await _pin(repo, edits)
    merged = await merger.merge3(old, composed.new, edits)
    if not merged.is_clean:
        return merged
    plan = LandPrepared(
        target=composed.ref, old=composed.old, new=composed.new, edits=edits, carried=merged.tree
    )
    return await prove(repo, plan)


async def prepare_committing(
    repo: Repo, composed: Composed, wording: Wording, *, paths: Sequence[bytes]
) -> LandPrepared | LandingRefused:
    """Prepare a commit of the user's edits on the target; a landing can follow it.

    It holds what `git commit --all` would, and those of `paths` that git does not know yet. No file
    is written: the index and the target are brought to what is there.

    Raises:
        WorkspaceError: Nobody has the target checked out, so no edits are in the way.
        DirtyTarget: Some edits cannot be committed: huge or ignored files in the way.
    """
    place = await _place(repo, composed)
    if isinstance(place, LandingRefused):
        return place
    old = composed.old or repo.empty_tree
    staged = await stage_place(repo, old, _where(place))
    tree = await _known_part(repo, place, (old, staged.tree), paths)
    # What such a commit cannot hold would be in the way of the landing after it, forever.
    left = await _unlike(repo, place, tree, frozenset(paths))
    if left:
        raise DirtyTarget(sorted(left))
    edits = await sign_commit(repo, tree, [composed.old] if composed.old else [], wording)
    await _pin(repo, edits)
    plan = LandPrepared(
        target=composed.ref,
        old=composed.old,
        new=edits,
        edits=edits,
        carried=edits,
        leads_on=True,
    )
    return await prove(repo, plan)


async def edited_paths(repo: Repo, target: str, paths: Sequence[bytes]) -> frozenset[bytes]:
    """Those of some paths that the user has edits in, staged or not, where a ref is checked out."""
    place = await checkout_of(repo, target)
    at = await resolve(repo, target)
    if not isinstance(place, Checkout) or at is None:
        return frozenset()
    wanted = frozenset(paths)
    dirty = await _unlike(repo, place, at, wanted)
    return (dirty | await staged_paths(repo, place, at)) & wanted


async def _unlike(
    repo: Repo, place: Checkout, tree: str, paths: frozenset[bytes]
) -> frozenset[bytes]:
    """Those of some paths at which the working tree holds something else than a tree."""
    listing = await repo.read("ls-tree", "-r", "-z", "--full-tree", tree, "--", *_words(paths))
    versions: dict[bytes, FileVersion] = {}
    for record in listing.split(b"\0"):
        if record:
            head, path = record.split(b"\t", 1)
            mode, _, oid = head.decode().split(" ")
            versions[path] = FileVersion(mode, oid)
    return await differing(repo, place, [(path, versions.get(path)) for path in paths])


async def _place(repo: Repo, composed: Composed) -> Checkout | LandingRefused:
    found = await checkout_of(repo, composed.ref)
    if found is None:
        raise WorkspaceError(f"{composed.target!r} is not checked out, so it has no edits")
    return found


def _where(place: Checkout) -> Where:
    return Where(git_dir=place.git_dir, worktree=place.path)


async def keep_files(
    repo: Repo,
    head: str | None,
    files: Iterable[tuple[bytes, Stand, Path]],
    wording: Wording,
) -> str:
    """Keep files byte for byte in a commit on top of another; return the ref that names it.

    Each file is a path, what stands there, and where its bytes are.
    """
    entries: list[tuple[bytes, FileVersion | None]] = []
    for path, stand, source in files:
        version = None
        if stand.is_leaf:
            is_file = stand.kind is Kind.FILE
            words = ("--no-filters", "--", str(source)) if is_file else ("--stdin",)
            call = Call(stdin=stand.leads_to)
            oid = await repo.line("hash-object", "-w", *words, call=call)
            version = FileVersion(stand.git_mode, oid)
        entries.append((path, version))
    async with private_index(repo) as index:
        where = Where(index=index)
        if head is not None:
            await repo.run("read-tree", head, where=where)
        call = Call(stdin=index_lines(entries, repo.zero))
        await repo.run("update-index", "--replace", "-z", "--index-info", call=call, where=where)
        tree = await repo.line("write-tree", where=where)
    return await keep_tree(repo, head, tree, wording)


async def keep_tree(repo: Repo, head: str | None, tree: str, wording: Wording) -> str:
    """Keep a tree of edits in a commit on top of another; return the ref that names it."""
    commit = await write_commit(repo, tree, [head] if head else [], wording)
    return await _pin(repo, commit)


async def _pin(repo: Repo, edits: str) -> str:
    ref = f"refs/plait/edits/{edits[:16]}"
    await set_refs(repo, [(ref, edits)], say="plait: keep edits")
    return ref


def _words(paths: Iterable[bytes]) -> list[str]:
    return [path.decode(errors="surrogateescape") for path in paths]


async def _known_part(
    repo: Repo, place: Checkout, trees: tuple[str, str], paths: Sequence[bytes]
) -> str:
    """The first tree with what the second changes in it, files left out that git does not know."""
    old, staged = trees
    listing = await repo.read("ls-files", "-z", where=_where(place))
    known = {*listing.split(b"\0"), *paths}
    moves = [
        (one.path, one.new)
        for one in await touched_paths(repo, old, staged)
        if one.old is not None or one.path in known
    ]
    if not moves:
        return await tree_of(repo, old)
    async with private_index(repo) as index:
        where = Where(index=index)
        await repo.run("read-tree", old, where=where)
        call = Call(stdin=index_lines(moves, repo.zero))
        await repo.run("update-index", "-z", "--index-info", call=call, where=where)
        return await repo.line("write-tree", where=where)
