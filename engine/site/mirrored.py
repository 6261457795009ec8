"""The workspaces with git that a child keeps on its mirror: all that they need is brought there.

What is done in them is brought home: commits as a pack, files beside them span by span.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from engine.beneath import EntryKind, remove_tree
from engine.errors import GitFailed
from engine.git.collection import (
    CollectedChange,
    CollectRefused,
)
from engine.git.large_files import LARGE_FILES, take_large_files
from engine.git.names import RefNames
from engine.git.objects import refs_below
from engine.git.parcel import bring_home, pack_of, parcel_of, pin, unpack
from engine.git.radar import Snapshot
from engine.git.removal import forget
from engine.git.runner import Repo, Where
from engine.git.workspace import Strategy, Workspace, copy_includes
from engine.ids import AGENT, AttemptId, RunId
from engine.messages.questions import CleanItem
from engine.private import private_folder
from engine.site.artifacts import BOUNDS, artifacts_folder
from engine.site.crossing import (
    CrossingEntry,
    arriving_at,
    begin,
    listed,
    pieces,
    read_pieces,
    settle,
    write_pieces,
)
from engine.site.far import Far, Shelf
from engine.site.line import Line
from engine.site.seam import Brought, Collecting, FilledSpace, Filling, Workplace
from engine.site.spaces import GitSpaces
from engine.site.sweeping import recorded
from engine.store.layout import Layout


class ChildSpaces:
    """The workspaces with git that a child keeps on its mirror."""

    def __init__(self, line: Line, repo: Repo, layout: Layout) -> None:
        self._line = line
        self._repo = repo
        self._layout = layout
        self._supplying = anyio.Lock()
        self._leaving = anyio.Lock()
        self._making = 0

    async def prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        """Bring what the workspace needs, and have it made."""
        async with self._leaving:
            self._making += 1  # from now on nobody takes the mirror away
        try:
            return await self._prepare(at, filling)
        finally:
            self._making -= 1

    async def _prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        repo, hide = self._repo, at.terms.runtime.branch_prefix
        await pin(repo, RefNames(at.attempt, hide), filling.commit)
        async with self._supplying:
            parcel = await parcel_of(repo, filling.commit, hide=hide)
            tips = await self._line.call(Far.tips, parcel.shallow)
            pack = await pack_of(repo, [filling.commit, *parcel.refs.values()], tips)
            await self._line.call(Far.supply, parcel, pack)
        await self._bring_includes(at)
        for worker, number in filling.givers:
            await self._bring_artifacts(AttemptId(at.attempt.run, worker, number))
        made = await self._line.call(Far.prepare, at, filling)
        return replace(made, address=replace(made.address, site=self._line.name))

    async def _bring_includes(self, at: Workplace) -> None:
        draft = self._layout.attempt(at.attempt) / "includes"
        await anyio.to_thread.run_sync(private_folder, draft)
        try:
            if await copy_includes(self._repo, at.terms.workspace.include, str(draft)):
                await self._send(at.attempt, Shelf.INCLUDES, draft)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_tree, draft)

    async def _bring_artifacts(self, giver: AttemptId) -> None:
        """Bring what an earlier attempt kept, if it is not there: it may have lived elsewhere."""
        kept = artifacts_folder(self._layout, giver)
        is_here = await anyio.Path(kept).is_dir()
        if is_here and not await self._line.call(Far.holds, giver, Shelf.ARTIFACTS, ()):
            await self._send(giver, Shelf.ARTIFACTS, kept)

    async def _send(self, attempt: AttemptId, shelf: Shelf, root: Path) -> None:
        """Send what a folder holds."""
        entries = await anyio.to_thread.run_sync(partial(listed, root, bounds=BOUNDS))
        await self._line.call(Far.expect, attempt, shelf, entries)
        for some in pieces(entries):
            data = await anyio.to_thread.run_sync(read_pieces, root, some)
            await self._line.call(Far.take, attempt, shelf, some, data)
        await self._line.call(Far.keep, attempt, shelf, entries)

    async def _fetch(
        self, attempt: AttemptId, shelf: Shelf, entries: tuple[CrossingEntry, ...], root: Path
    ) -> None:
        """Fetch what was listed of a shelf there; it becomes a folder here."""
        draft = arriving_at(root)
        await anyio.to_thread.run_sync(begin, draft, entries)
        for some in pieces(entries):
            _, data = await self._line.call(Far.give, attempt, shelf, some)
            await anyio.to_thread.run_sync(write_pieces, draft, some, data)
        await anyio.to_thread.run_sync(settle, draft, entries, root)

    async def resume(self, at: Workplace) -> FilledSpace:
        """Make a workspace that is there ready for another attempt."""
        made = await self._line.call(GitSpaces.resume, at)
        return replace(made, address=replace(made.address, site=self._line.name))

    async def look(self, at: Workplace, wanted: Collecting, objects: Path) -> Snapshot | None:
        """Take the tree as it is now, and bring what is new of it into a folder."""
        taken, pack = await self._line.call(Far.look, at, wanted, await self._base(at))
        if taken is not None:
            await anyio.to_thread.run_sync(private_folder, objects)
            await unpack(self._repo, pack, where=Where(objects=str(objects)))
        return taken

    async def _base(self, at: Workplace) -> str:
        made = replace(at.address.attempt, role=AGENT)
        names = RefNames(made, at.terms.runtime.branch_prefix)
        return (await refs_below(self._repo, names.base))[names.base]

    async def collect(self, at: Workplace, wanted: Collecting) -> Brought:
        """Have everything collected there, and bring it home."""
        work, pack = await self._line.call(Far.collect, at, wanted, await self._base(at))
        change = work.brought.change
        kept = await self._line.call(Far.holds, at.attempt, Shelf.ARTIFACTS, ())
        if kept:
            await self._fetch(
                at.attempt, Shelf.ARTIFACTS, kept, artifacts_folder(self._layout, at.attempt)
            )
        if not isinstance(change, CollectedChange):
            return work.brought
        await self._fetch_large(at.attempt)
        change = await self._fetch_bundles(at, change)
        names = RefNames(at.attempt, at.terms.runtime.branch_prefix)
        try:
            note = await bring_home(self._repo, names, work.refs, pack)
        except GitFailed as failed:
            reason = failed.stderr.strip()
            refused = CollectRefused(reason=reason, workspace=at.address.path, git_dir="")
            return replace(work.brought, change=refused)
        notes = (*change.notes, *([note] if note else []))
        return replace(work.brought, change=replace(change, notes=notes))

    async def _fetch_large(self, attempt: AttemptId) -> None:
        """Fetch contents of LFS that are not here; each is proved by its name."""
        common = Path(self._repo.common_dir)
        found = await self._line.call(Far.holds, attempt, Shelf.LARGE, ())
        lacking = await anyio.to_thread.run_sync(_lacking, common / LARGE_FILES, found)
        if lacking:
            root = self._layout.attempt(attempt) / "large"
            await self._fetch(attempt, Shelf.LARGE, lacking, root / LARGE_FILES)
            await anyio.to_thread.run_sync(take_large_files, [str(root)], str(common))
            await anyio.to_thread.run_sync(remove_tree, root)

    async def _fetch_bundles(self, at: Workplace, change: CollectedChange) -> CollectedChange:
        """Fetch the bundles of repositories inside the workspace, and say where they are here."""
        names = tuple(Path(one.bundle).name for one in change.embedded if one.bundle)
        if not names:
            return change
        made = replace(at.address.attempt, role=AGENT)
        wanted = tuple(os.fsencode(name) for name in names)
        found = await self._line.call(Far.holds, made, Shelf.BUNDLES, wanted)
        root = self._layout.attempt(made) / "embedded"
        await self._fetch(made, Shelf.BUNDLES, found, root)
        embedded = tuple(
            replace(one, bundle=one.bundle and str(root / Path(one.bundle).name))
            for one in change.embedded
        )
        return replace(change, embedded=embedded)

    async def _at_home(self, at: Workplace) -> Mapping[str, str]:
        names = RefNames(at.attempt, at.terms.runtime.branch_prefix)
        return await refs_below(self._repo, names.pinned)

    async def examine(self, at: Workplace, wanted: Collecting) -> tuple[str, ...]:
        """Return why a workspace has to stay; nothing where all of it is kept here."""
        return await self._line.call(Far.examine, at, wanted, await self._at_home(at))

    async def release(self, at: Workplace, wanted: Collecting) -> bool:
        """Remove a workspace if every byte of it is proved to be kept here."""
        worker = self._layout.worker(at.attempt.run, at.attempt.worker)
        told = await anyio.to_thread.run_sync(recorded, worker)
        return await self._line.call(Far.release, at, wanted, await self._at_home(at), told)

    async def abandon(self, at: Workplace, *, with_branch: bool) -> None:
        """Remove a half-made workspace in which nothing has worked yet."""
        await self._line.call(Far.abandon, at, with_branch=with_branch)
        names = RefNames(at.attempt, at.terms.runtime.branch_prefix)
        space = Workspace(
            attempt=at.attempt,
            strategy=Strategy.CLONE,
            path=str(self._layout.attempt(at.attempt) / "elsewhere"),
            directory=str(self._layout.attempt(at.attempt)),
            base=names.base,
            branch_prefix=names.prefix,
        )
        await forget(self._repo, space, with_branch=with_branch)

    async def clear_strays(self, known: Sequence[RunId], *, is_dry: bool) -> tuple[CleanItem, ...]:
        """Remove provably safe workspaces of runs that are not known, and all else kept of them.

        The mirror goes with the last of them, and the child that works on it.
        """
        if not await self._line.has_lived():
            return ()
        refs = (await refs_below(self._repo, "refs/plait")).items()
        own = tuple(f"refs/plait/{run}/" for run in known)
        at_home = {ref: oid for ref, oid in refs if not ref.startswith(own)}
        async with self._leaving:
            wanted = (tuple(known), at_home)
            items, is_empty = await self._line.call(Far.clear, *wanted, is_dry=True)
            if not is_dry:  # said first: an answer that a dying child takes with it names nothing
                found, is_empty = await self._line.call(Far.clear, *wanted, is_dry=False)
                items = tuple(_done(item, found) for item in items)
            if not is_empty or self._making:
                return items
            home = str(self._line.opening.home)
            if not is_dry:
                await self._line.leave()
        return (
            *items,
            CleanItem(worker=self._line.name, path=home, was_removed=not is_dry, is_for_good=True),
        )


def _done(item: CleanItem, found: Collection[CleanItem]) -> CleanItem:
    """Return what came of an item: what is not found any more has gone."""
    same = (
        one
        for one in found
        if (one.run, one.worker, one.path) == (item.run, item.worker, item.path)
    )
    return next(same, replace(item, was_removed=item.is_safe))


def _lacking(root: Path, found: Collection[CrossingEntry]) -> tuple[CrossingEntry, ...]:
    files = (one for one in found if one.kind is EntryKind.FILE)
    return tuple(one for one in files if not (root / os.fsdecode(one.path)).exists())
