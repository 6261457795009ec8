"""Putting a composed commit on its target: the target is at the old commit or at the new one.

A branch that nobody has checked out is moved by compare-and-swap. One that is checked out has its
files, index and ref brought along (`engine.git.checkout`), after proof that the user has no edits
there; killed anywhere, `recover_landing` finishes it.
"""

import os
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import anyio
from anyio import to_thread

from engine.errors import DirtyTarget, EngineError, GitFailed, WorktreeBusy
from engine.git.checkout import IndexGuard, Trashed, keep_copies, locked_index, write_files
from engine.git.composition import Composed
from engine.git.objects import (
    RefMove,
    RefMoved,
    move_refs,
    own_file,
    resolve,
    set_refs,
    stands_at,
)
from engine.git.plumbing.contents import has_exactly
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.touched import (
    IndexMove,
    Moves,
    differing,
    follow_index,
    index_at,
    index_of,
    staged_paths,
    touched_paths,
)
from engine.git.worktrees import Checkout, checkouts
from engine.legible import legible_name
from engine.values import dataclass

_SAY = "plait: land"
_SHOWN = 80


class RefusalReason(StrEnum):
    """The reason why a target was left as it was."""

    MOVED = "the target has moved"
    TWICE = "the target is checked out in more than one working tree"
    UNDER_WAY = "a rebase, merge or bisect of the target has not ended"
    TOO_LONG = "the file system of the target's checkout does not allow this name:"
    CHECKED_OUT = "somebody switched to or from the target branch after plait prepared the landing"


@dataclass(frozen=True, kw_only=True)
class LandPrepared:
    """A landing about to happen, for the journal; with it, anybody can finish the landing.

    Attributes:
        target: The ref, in full.
        old: Where it stands; None if it is to be created.
        new: Where it goes; None when undoing removes it.
        worktree: Where the target is checked out, if it is.
        git_dir: That working tree's own git directory.
        paths: The files that will be written there.
        edits: A commit of the user's edits there, where they are carried along.
        carried: The tree of files that the working tree has afterwards, edits included.
        leads_on: It only makes the edits a commit of the user's; what is to land comes after it.
        note: Why its history is not the one that was asked for, if it is not.
    """

    target: str
    old: str | None
    new: str | None
    worktree: str | None = None
    git_dir: str | None = None
    paths: tuple[bytes, ...] = ()
    edits: str | None = None
    carried: str | None = None
    leads_on: bool = False
    note: str = ""

    @property
    def name(self) -> str:
        """Name what the index lock is held for."""
        return f"{self.target} {self.old}..{self.new}"


@dataclass(frozen=True, kw_only=True)
class LandingDone:
    """The target is at its new commit; `trashed` are copies made while recovering."""

    target: str
    commit: str | None
    trashed: tuple[Trashed, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LandingRefused:
    """The target is as it was."""

    reason: RefusalReason
    detail: str = ""
    trashed: tuple[Trashed, ...] = ()


async def prepare_landing(repo: Repo, composed: Composed) -> LandPrepared | LandingRefused:
    """Plan a landing and prove that it is possible; write nothing.

    Raises:
        DirtyTarget: The user's own edits are in the way (`engine.git.carrying` has ways out).
    """
    return await prepare_move(repo, composed.ref, composed.old, composed.new)


async def prepare_move(
    repo: Repo, target: str, old: str | None, new: str | None
) -> LandPrepared | LandingRefused:
    """The same for any move of a branch, back as well as forward.

    Raises:
        DirtyTarget: The user's own edits are in the way.
    """
    return await prove(repo, LandPrepared(target=target, old=old, new=new))


async def prove(repo: Repo, plan: LandPrepared) -> LandPrepared | LandingRefused:
    """A plan completed with where and what it will write, once it is proved that it can.

    Raises:
        DirtyTarget: Something there is not what the plan expects.
    """
    if not await stands_at(repo, plan.target, plan.old):
        return LandingRefused(reason=RefusalReason.MOVED)
    found = await checkout_of(repo, plan.target)
    if isinstance(found, LandingRefused):
        return found
    # No branch holds these yet: a `git gc --prune=now` of the user's would take them away.
    await set_refs(repo, _pins(plan), say=_SAY, is_one_of_many=True)
    if found is None:
        return plan
    moves = await _moves(repo, plan)
    long = await to_thread.run_sync(_too_long, found.path, moves)
    if long is not None:
        return LandingRefused(reason=RefusalReason.TOO_LONG, detail=legible_name(long))
    seen = await to_thread.run_sync(_look, repo, plan, found, moves)
    await _prove_clean(repo, plan, seen, moves)
    paths = tuple(sorted({one.path for one in (*moves.index, *moves.files)}))
    return replace(plan, worktree=found.path, git_dir=found.git_dir, paths=paths)


def _too_long(worktree: str, moves: Moves) -> str | None:
    """Return the begin of a name that git can hold, but no file in the working tree can have."""
    root = len(os.fsencode(worktree)) + 2
    name_max, path_max = (os.pathconf(worktree, f"PC_{one}_MAX") for one in ("NAME", "PATH"))
    for one in moves.files:
        longest = max(map(len, one.path.split(b"/")))
        if longest > name_max or root + len(one.path) > path_max:
            return os.fsdecode(one.path[:_SHOWN]) + "…"
    return None


def _pins(plan: LandPrepared) -> list[tuple[str, str]]:
    kept = {oid for oid in (plan.new, plan.carried) if oid is not None}
    return [(f"refs/plait/@landing/{oid[:16]}", oid) for oid in kept]


async def unpin(repo: Repo, plan: LandPrepared) -> None:
    """Drop the refs that keep the commits of a landing that will not happen."""
    drops = b"".join(b"delete %s\0\0" % ref.encode() for ref, _ in _pins(plan))
    if drops:
        call = Call(stdin=drops, writes=True)
        await repo.run("update-ref", "--stdin", "-z", call=call)


async def _moves(repo: Repo, plan: LandPrepared) -> Moves:
    empty = repo.empty_tree
    index = await touched_paths(repo, plan.old or empty, plan.new or empty)
    if plan.edits is None or plan.carried is None:
        return Moves(index, index)
    return Moves(index, await touched_paths(repo, plan.edits, plan.carried))


async def checkout_of(repo: Repo, target: str) -> Checkout | LandingRefused | None:
    """The one working tree that has the target checked out, if there is one and it is at rest."""
    every = await checkouts(repo)
    held = [place for place in every if target in place.held]
    if held:
        return LandingRefused(reason=RefusalReason.UNDER_WAY, detail=held[0].path)
    here = [place for place in every if place.branch == target]
    if len(here) > 1:
        return LandingRefused(
            reason=RefusalReason.TWICE, detail=", ".join(place.path for place in here)
        )
    if here and here[0].under_way:
        return LandingRefused(reason=RefusalReason.UNDER_WAY, detail=here[0].path)
    return here[0] if here else None


@dataclass(frozen=True, kw_only=True)
class _Look:
    """The findings of one look, in this order: the target, the working tree's index, its files.

    `stands` and `is_as_before` are proofs where they are true; else git has to be asked.
    """

    stands: bool
    place: Checkout
    is_as_before: bool


def _look(repo: Repo, plan: LandPrepared, place: Checkout, moves: Moves) -> _Look:
    return _Look(
        stands=plan.old is not None and own_file(repo, plan.target) == plan.old,
        place=replace(place, index=index_at(place.git_dir)),
        is_as_before=has_exactly(place.path, moves.before, repo.object_format),
    )


async def _prove_clean(repo: Repo, plan: LandPrepared, seen: _Look, moves: Moves) -> None:
    """No edit of the user's is in the way, staged or not, untracked or not.

    Where edits are carried along, the files are just those edits, and what was staged of them is
    theirs as well.

    Raises:
        DirtyTarget: There are some.
    """
    place, dirty = seen.place, frozenset[bytes]()
    if not seen.is_as_before:
        dirty = await differing(repo, place, moves.before)
    if plan.edits is None:
        wanted = {one.path for one in moves.index}
        dirty |= (await staged_paths(repo, place, plan.old or repo.empty_tree)) & wanted
    if dirty:
        raise DirtyTarget(sorted(dirty))


async def land(repo: Repo, prepared: LandPrepared) -> LandingDone | LandingRefused:
    """Put the target on its new commit, from exactly where it was.

    Raises:
        DirtyTarget: The user began to edit what it would write; nothing was written.
        WorktreeBusy: Another git holds the index; nothing was written.
    """
    try:
        done = await _land(repo, prepared)
    except (DirtyTarget, WorktreeBusy):
        await unpin(repo, prepared)
        raise
    if isinstance(done, LandingRefused):
        await unpin(repo, prepared)
    return done


async def _land(repo: Repo, prepared: LandPrepared) -> LandingDone | LandingRefused:
    if prepared.worktree is None:
        place = await checkout_of(repo, prepared.target)
        if place is not None:
            return LandingRefused(reason=RefusalReason.CHECKED_OUT)
        return await _swap(repo, prepared, HERE)
    found = await checkout_of(repo, prepared.target)
    if isinstance(found, LandingRefused):
        return found
    if found is None or found.git_dir != prepared.git_dir:
        return LandingRefused(reason=RefusalReason.CHECKED_OUT)
    moves = await _moves(repo, prepared)
    async with locked_index(repo, found, prepared.name) as guard:
        # Look again under the lock: the user may have edited or committed since `prove`.
        seen = await to_thread.run_sync(_look, repo, prepared, found, moves)
        if not (seen.stands or await stands_at(repo, prepared.target, prepared.old)):
            return LandingRefused(reason=RefusalReason.MOVED)
        await _prove_clean(repo, prepared, seen, moves)
        return await _write(repo, prepared, (seen.place, guard), moves)


async def _write(
    repo: Repo,
    prepared: LandPrepared,
    where: tuple[Checkout, IndexGuard],
    moves: Moves,
) -> LandingDone | LandingRefused:
    """Files, index, ref; back to the old files if it fails, or the ref was moved behind our back.

    Once begun it is not cancelled. Where it cannot go back either it leaves the index locked, so
    that nothing can be committed from a mixed tree before `recover_landing` has finished it.

    Raises:
        GitFailed: Some files cannot be written there.
        OSError: Some files cannot be taken away there.
    """
    place, guard = where
    guard.is_kept = True
    with anyio.CancelScope(shield=True):
        before = await index_of(place)
        try:
            after = await write_files(repo, place, moves, commit=prepared.new)
        except (GitFailed, OSError):
            with suppress(EngineError, OSError):
                await _take_back(repo, place, moves)
                guard.is_kept = False
            raise
        done = await _swap(repo, prepared, Where(git_dir=place.git_dir))
        if isinstance(done, LandingRefused):
            await write_files(repo, place, moves.reversed)
        else:
            paths = frozenset(one.path for one in moves.index)
            old, new = (commit or repo.empty_tree for commit in (prepared.old, prepared.new))
            move = IndexMove(old=old, new=new, paths=paths)
            await follow_index(repo, replace(place, index=after), before, move)
    guard.is_kept = False
    return done


async def _take_back(repo: Repo, place: Checkout, moves: Moves) -> None:
    """Bring the files that were written back to what they were; the others are not touched."""
    written = await differing(repo, place, moves.before)
    strangers = written & await differing(repo, place, moves.after)
    with suppress(EngineError, OSError):  # half a file of ours, or what somebody wrote just now
        await to_thread.run_sync(keep_copies, place.path, strangers, repo.plait_dir / "trash")
    back = tuple(one for one in moves.reversed.files if one.path in written)
    await write_files(repo, place, Moves(index=(), files=back))


async def _swap(repo: Repo, prepared: LandPrepared, where: Where) -> LandingDone | LandingRefused:
    move = RefMove(prepared.target, prepared.new, prepared.old)
    try:
        drops = [ref for ref, _ in _pins(prepared)]
        await move_refs(repo, [move], say=_SAY, drops=drops, where=where, is_one_of_many=True)
    except RefMoved as moved:
        at = await resolve(repo, prepared.target)
        if at == prepared.old:
            raise  # it stands where it stood: something else is wrong, and must be seen
        if at == prepared.new:  # a git that was killed had done it before
            await unpin(repo, prepared)
            return LandingDone(target=prepared.target, commit=at)
        return LandingRefused(reason=RefusalReason.MOVED, detail=moved.stderr.strip())
    return LandingDone(target=prepared.target, commit=prepared.new)


async def recover_landing(
    repo: Repo, prepared: LandPrepared, trash: Path
) -> LandingDone | LandingRefused:
    """Finish a landing that was cut short; doing it again, or after the end, changes nothing.

    It rolls forward: what is at neither the old nor the new version is copied to `trash` first.
    If the target has meanwhile gone elsewhere, the files written so far go back instead.
    """
    await repo.records.end_orphans()
    at = await resolve(repo, prepared.target)
    if prepared.worktree is None or prepared.git_dir is None:
        if at == prepared.new:
            return LandingDone(target=prepared.target, commit=at)
        return await land(repo, prepared)
    place = Checkout(
        path=prepared.worktree, git_dir=prepared.git_dir, branch=prepared.target, under_way=None
    )
    if not await to_thread.run_sync(Path(place.path).is_dir):
        return await _swap(repo, prepared, HERE)
    moves = await _moves(repo, prepared)
    async with locked_index(repo, place, prepared.name) as guard:
        if at == prepared.new:
            return LandingDone(target=prepared.target, commit=at)
        if at != prepared.old:
            if not guard.was_left:
                return LandingRefused(reason=RefusalReason.MOVED)
            return await _go_back(repo, place, moves, trash)
        strangers = await _strangers(repo, place, moves)
        if not guard.was_left:
            await _prove_untouched(repo, prepared, place, strangers)
        trashed = await to_thread.run_sync(keep_copies, place.path, strangers, trash)
        done = await _write(repo, prepared, (place, guard), moves)
    return replace(done, trashed=trashed)


async def _strangers(repo: Repo, place: Checkout, moves: Moves) -> frozenset[bytes]:
    """Paths whose file is neither as before nor as it will be."""
    not_old = await differing(repo, place, moves.before)
    return not_old & await differing(repo, place, moves.after)


async def _prove_untouched(
    repo: Repo, prepared: LandPrepared, place: Checkout, strangers: frozenset[bytes]
) -> None:
    """Without our lock nothing was being written when it ended: what is strange is the user's.

    What was staged of edits that are carried along is among them.

    Raises:
        DirtyTarget: There is something.
    """
    not_old = await staged_paths(repo, place, prepared.old or repo.empty_tree)
    not_new = await staged_paths(repo, place, prepared.new or repo.empty_tree)
    staged = not_old & not_new & set(prepared.paths)
    dirty = strangers | (staged if prepared.edits is None else frozenset())
    if dirty:
        raise DirtyTarget(sorted(dirty))


async def _go_back(repo: Repo, place: Checkout, moves: Moves, trash: Path) -> LandingRefused:
    """Take back what was written for a target that others have moved since."""
    written = await differing(repo, place, moves.before)
    strangers = await _strangers(repo, place, moves)
    trashed = await to_thread.run_sync(keep_copies, place.path, strangers & written, trash)
    if written:
        await write_files(repo, place, moves.reversed)
    return LandingRefused(reason=RefusalReason.MOVED, trashed=trashed)
