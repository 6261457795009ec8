"""Compare a worker's change with its base, the target, another attempt or any revision.

A worker that still runs is shown as it stands: a picture of its tree, taken inside its sandbox and
kept in an object folder of its own, so that nothing unfinished enters the user's repository.
"""

import secrets
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.landing import LandPrepared
from engine.git.merge3 import Merger
from engine.git.names import RefNames
from engine.git.objects import resolve, scratch_folder
from engine.git.radar import Snapshot
from engine.git.runner import Call, Repo, Where
from engine.ids import AttemptId, WorkerId
from engine.messages.diffs import ChangeDiff, FileSides
from engine.phases import Phase
from engine.private import private_folder
from engine.review.conflicts import conflict_paths
from engine.review.diffs import change_diff, whole_sides
from engine.review.names import short
from engine.store.codec import from_json

Snap = Callable[[RunState, WorkerId, Path], Awaitable[Snapshot | None]]
TARGET = "target"
_ATTEMPT = "@"
_UNFINISHED = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})


@dataclass(frozen=True, kw_only=True)
class DiffWanted:
    """A request for one diff.

    Attributes:
        attempt: Which attempt's work.
        against: Nothing for where it began; `target` for what landing it now would change there;
            `@2` for another attempt; else a commit, a branch, or a tree that was shown before.
        context: Lines round every change.
        decided: The tree that a human's decisions about its conflicts make, where they are
            complete.
        paths: The files that are wanted whole.
    """

    attempt: int
    against: str = ""
    context: int = 3
    decided: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Work:
    """An attempt's work as a commit or tree, on what it began from."""

    base: str
    head: str
    is_live: bool = False


class _Held(NamedTuple):
    """Two revisions held against each other, and what the old one is called.

    `is_result` says that the new one is the very tree that landing would make.
    """

    old: str
    new: str
    said: str
    is_result: bool = False


class Comparisons:
    """Comparisons of the changes of one repository's workers with other revisions."""

    def __init__(self, repo: Repo, snap: Snap) -> None:
        self._repo = repo
        self._snap = snap
        self._lookers: Counter[Path] = Counter()
        self._going: set[Path] = set()
        self._moving = anyio.Lock()

    async def diff(
        self, state: RunState, w: Worker, wanted: DiffWanted, folder: Path
    ) -> ChangeDiff:
        """Compare one attempt's work with what is wanted; snapshots of live trees lie in `folder`.

        Raises:
            WorkspaceError: There is no such work, or nothing of that name to hold it against.
        """
        async with self._room(w, folder) as room:
            where = Where(objects=str(room))
            work, held = await self._held(state, w, wanted, room)
            sides = (held.old, held.new)
            found = await change_diff(
                self._repo, *sides, against=held.said, context=wanted.context, where=where
            )
        result = held.new if held.is_result and not work.is_live else ""
        return replace(found, head=work.head, is_live=work.is_live, result=result)

    async def sides(
        self, state: RunState, w: Worker, wanted: DiffWanted, folder: Path
    ) -> tuple[FileSides, ...]:
        """Return files of the same comparison whole, as they were and as they are.

        Raises:
            WorkspaceError: There is no such work, or nothing of that name to hold it against.
        """
        async with self._room(w, folder) as room:
            _, held = await self._held(state, w, wanted, room)
            where = Where(objects=str(room))
            return await whole_sides(self._repo, (held.old, held.new), wanted.paths, where=where)

    @asynccontextmanager
    async def _room(self, w: Worker, folder: Path) -> AsyncIterator[Path]:
        """Yield a folder for the objects of one look, kept only while snapshots may follow."""
        async with self._moving:
            self._lookers[folder] += 1  # from here on nobody moves the folder away
        try:
            if w.phase.is_settled and not await anyio.Path(folder).is_dir():
                async with scratch_folder(self._repo) as scratch:
                    yield scratch
                return
            await to_thread.run_sync(private_folder, folder)
            yield folder
        finally:
            self._lookers[folder] -= 1
            if not self._lookers[folder]:
                del self._lookers[folder]
                if folder in self._going:
                    with anyio.CancelScope(shield=True):
                        await self.forget(folder)

    async def forget(self, folder: Path) -> None:
        """Delete all snapshots of a tree that has come to its end, after the last look at them."""
        async with self._moving:
            if folder in self._lookers:
                self._going.add(folder)
                return
            self._going.discard(folder)
            gone = await to_thread.run_sync(_moved_away, folder)
        if gone is not None:
            await to_thread.run_sync(partial(shutil.rmtree, gone, ignore_errors=True))

    async def _held(
        self, state: RunState, w: Worker, wanted: DiffWanted, folder: Path
    ) -> tuple[_Work, _Held]:
        """Return an attempt's work, and what of it is held against what."""
        work = await self._work(state, w, wanted.attempt, folder)
        # Hunks that a human left out do not land, so a preview of the landing omits them too.
        if wanted.against != TARGET:
            old, said = await self._old(state, w, wanted, work, where=Where(objects=str(folder)))
            return work, _Held(old, work.head, said)
        if w.review.left_out and w.change and w.change.head and wanted.attempt == w.attempt.number:
            work = replace(work, head=w.change.head)
        landed = w.landing.prepared if w.phase is Phase.LANDED else None
        made = from_json(LandPrepared, landed) if landed else None
        if made is not None and made.old and made.new:
            return work, _Held(made.old, made.new, f"{short(made.target)} before it landed")
        return work, await self._landed(state, work, folder, wanted.decided)

    async def _work(self, state: RunState, w: Worker, attempt: int, folder: Path) -> _Work:
        base, head = await self._refs(state, w, attempt)
        is_newest = attempt == w.attempt.number
        if is_newest and w.begun.base is not None:
            base = w.begun.base
        # While work is collected, the record is still that of the attempt before.
        whole = w.review.whole if w.phase not in _UNFINISHED else None
        if is_newest and head is not None and whole is not None:
            head = whole.head or head  # what a human judges, with their edits
        if base is not None and head is not None:
            return _Work(base=base, head=head)
        if is_newest and base is not None and w.phase in _UNFINISHED:
            taken = await self._snap(state, w.id, folder)
            if taken is not None:
                return _Work(base=base, head=taken.tree, is_live=True)
        raise WorkspaceError(
            f"plait has not collected attempt {attempt} of {w.id} yet",
            hint="You can see its diff while it runs, and after it ends.",
        )

    async def _refs(
        self, state: RunState, w: Worker, attempt: int
    ) -> tuple[str | None, str | None]:
        names = RefNames(AttemptId(state.run, w.id, attempt), state.plan.runtime.branch_prefix)
        return await resolve(self._repo, names.base), await resolve(self._repo, names.head)

    async def _old(
        self, state: RunState, w: Worker, wanted: DiffWanted, work: _Work, *, where: Where
    ) -> tuple[str, str]:
        """Return the revision to compare the work with, and its name for people."""
        against = wanted.against
        if not against:
            return work.base, "base"
        if against.startswith(_ATTEMPT) and against[1:].isdigit():
            head = (await self._refs(state, w, int(against[1:])))[1]
            if head is None:
                raise WorkspaceError(f"attempt {against[1:]} of {w.id} left no work")
            return head, f"attempt {against[1:]}"
        there = replace(where, git_dir=self._repo.git_dir)
        words = ("rev-parse", "--verify", "-q", "--end-of-options", f"{against}^{{tree}}")
        done = await self._repo.run(*words, call=Call(ok=(0, 1, 128)), where=there)
        found = done.stdout.decode().strip()
        if done.exit_code or not found:
            raise WorkspaceError(
                f"there is no {against!r} in this repository",
                hint="Name a branch, a tag or a commit.",
            )
        return found, against

    async def _landed(self, state: RunState, work: _Work, folder: Path, decided: str) -> "_Held":
        """Return the target as it is, and as it would be with the work merged into it.

        Where they conflict, this is what was decided; until all is, git's merge with its markers.
        """
        branch = state.plan.runtime.target or ""
        old = await resolve(self._repo, f"refs/heads/{branch}") if branch else None
        if old is None:
            raise WorkspaceError(f"there is no branch {branch!r} to compare with")
        if decided:
            return _Held(old, decided, f"{branch} as it is now", is_result=True)
        merged = await Merger(self._repo, objects=folder).merge3(work.base, old, work.head)
        if merged.is_clean:
            return _Held(old, merged.tree, f"{branch} as it is now", is_result=True)
        open_files = len(conflict_paths(merged))
        said = f"{open_files} file{'s' if open_files > 1 else ''} still in conflict"
        return _Held(old, merged.tree, f"{branch} as it is now, {said}")


def _moved_away(folder: Path) -> Path | None:
    """Rename a folder that goes, so that nobody finds half of it; None if there is none."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(3)}")
    try:
        folder.rename(gone)
    except OSError:
        return None
    return gone
