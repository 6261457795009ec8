"""The workspaces of this disk, with git and without: made, looked at, collected, released."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from engine.beneath import (
    EntryKind,
    PathRefused,
    copy_tree,
    list_tree,
    remove_file,
    remove_tree,
)
from engine.errors import EngineError, StoreError, WorkspaceError
from engine.git.collection import CollectRefused, CollectRequest, collect, lead_inside
from engine.git.inside import Wrap
from engine.git.nested import quiet_repositories
from engine.git.private import sight
from engine.git.radar import Snapshot, snapshot
from engine.git.removal import RemovalVerdict, drop_missing, examine, forget
from engine.git.runner import Repo
from engine.git.strays import examine_stray
from engine.git.submodules import has_submodules
from engine.git.workspace import (
    NOTE,
    Spare,
    Strategy,
    Workspace,
    WorkspaceRequest,
    complete,
    prepare,
    recall,
)
from engine.ids import AGENT, AttemptId, RunId, WorkerId
from engine.messages.questions import CleanItem
from engine.plan.model import IsolationStrategy
from engine.private import private_folder
from engine.site.artifacts import artifacts_folder, give_all, keep_artifacts, refusal
from engine.site.place import Place
from engine.site.seam import Brought, Collecting, FilledSpace, Filling, SpaceAddress, Workplace
from engine.site.shelter import GitPlaces, Job, Shelter
from engine.site.trash import discard, drop_empty, lend
from engine.store.codec import from_json, to_json
from engine.store.files import write_atomically
from engine.store.layout import workspace


def spaces_at(
    place: Place, shelter: Shelter
) -> "Mapping[IsolationStrategy, GitSpaces | FolderSpaces]":
    """Return the kinds of workspaces that can be made at a place."""
    folders = FolderSpaces(place)
    if place.repo is None:
        return {IsolationStrategy.DIRECTORY: folders}
    git = GitSpaces(place.repo, place, shelter)
    return dict.fromkeys(IsolationStrategy, git) | {IsolationStrategy.DIRECTORY: folders}


class GitSpaces:
    """Worktrees and clones of one repository."""

    def __init__(self, repo: Repo, place: Place, shelter: Shelter) -> None:
        self._repo = repo
        self._root = place.workspaces
        self._layout = place.layout
        self._shelter = shelter
        self._spaces: dict[AttemptId, Workspace] = {}
        self._ahead: dict[AttemptId, _Ahead | None] = {}
        self._turns: dict[AttemptId, anyio.Lock] = {}
        self._looking: dict[WorkerId, anyio.Lock] = {}

    async def prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        """Make a worktree or clone and fill it from a commit; making it again is harmless.

        One that was made ahead is taken if it is as it would be made now.
        """
        wanted = self._request(at, filling)
        async with self._turn(at.attempt):
            early = await self._claim(wanted) if at.attempt in self._ahead else None
            space = early or await self._made(wanted)
        self._spaces[at.attempt] = space
        give = partial(give_all, self._layout, at.attempt.run, filling.givers, Path(space.path))
        notes = await anyio.to_thread.run_sync(give) if filling.givers else ()
        address = SpaceAddress(attempt=at.attempt, path=space.path)
        return FilledSpace(address=address, branch=space.branch, notes=notes)

    def _request(self, at: Workplace, filling: Filling) -> WorkspaceRequest:
        runtime = at.terms.runtime
        return WorkspaceRequest(
            attempt=at.attempt,
            base=filling.commit,
            path=workspace(self._root, at.attempt),
            directory=self._layout.attempt(at.attempt),
            strategy=Strategy(runtime.isolation),
            branch_prefix=runtime.branch_prefix,
            includes=at.terms.workspace.include,
            brought=filling.brought,
            is_mounted=self._shelter.mounts,
            folders=filling.holds.folders if filling.holds else None,
        )

    async def _made(self, wanted: WorkspaceRequest) -> Workspace:
        async with self._lending(wanted) as spare:
            return await prepare(self._repo, replace(wanted, spare=spare))

    @asynccontextmanager
    async def _turn(self, attempt: AttemptId) -> AsyncIterator[None]:
        """Let one at a time make, take or remove the workspace of an attempt."""
        lock = self._turns.setdefault(attempt, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._turns.pop(attempt, None)

    async def prepare_ahead(
        self, at: Workplace, filling: Filling, *, is_wanted: Callable[[], bool]
    ) -> None:
        """Make the workspace of an attempt that has not begun; `prepare` takes it when it does.

        A note in a folder of ours says until then that nobody works there, so that the next engine
        can remove what this one leaves if it is killed.

        Raises:
            EngineError: It could not be made; nothing of it is left.
        """
        wanted = replace(self._request(at, filling), is_ahead=True)
        may_write = partial(self._shelter.may_write, at.terms.runtime, self._root)
        # Others could write into it behind the back of everybody, or it stands on more than refs.
        if await anyio.to_thread.run_sync(may_write) or await has_submodules(
            self._repo, wanted.base
        ):
            return
        async with self._turn(at.attempt):
            if not is_wanted() or await anyio.Path(wanted.directory, NOTE).exists():
                return  # it has begun meanwhile, or will not begin
            self._ahead[at.attempt] = None
            is_made = False
            try:
                await anyio.to_thread.run_sync(self._announce, _draft_of(wanted))
                seen = await sight(self._repo, wanted.branch_prefix)
                space = await self._made(wanted)
                self._ahead[at.attempt] = _Ahead(space, seen)
                is_made = True
            finally:
                if not is_made:
                    with anyio.CancelScope(shield=True):
                        await self._drop(_draft_of(wanted))

    async def give_back(self, at: Workplace) -> None:
        """Remove what was made ahead for an attempt that does not begin, unless it has begun."""
        async with self._turn(at.attempt):
            if at.attempt in self._ahead:
                await self._drop(_draft_of(self._request(at, Filling())))

    async def clear_ahead(self) -> None:
        """Remove what engines before this one made ahead and nobody took."""
        for draft in await anyio.to_thread.run_sync(self._announced):
            self._ahead[draft.attempt] = None
            with suppress(EngineError, OSError):  # whoever prepares it tries again
                await self._drop(draft)

    def _note_of(self, attempt: AttemptId) -> Path:
        return self._layout.ahead / str(attempt).replace("/", ".").replace("@", ".")

    def _announce(self, draft: Workspace) -> None:
        self._layout.make(self._layout.ahead)
        write_atomically(self._note_of(draft.attempt), to_json(draft).encode())

    def _announced(self) -> list[Workspace]:
        """Return what notes name, as far as it lies where this engine would make it."""
        folder, found = self._layout.ahead, []
        for file in folder.iterdir() if folder.is_dir() else ():
            # Nobody can say what a damaged note names, and it keeps no engine from opening.
            with suppress(StoreError, OSError, UnicodeError):
                if file.name.startswith("."):
                    file.unlink()  # a note that was never whole: nothing had been made yet
                else:
                    found.append(from_json(Workspace, file.read_text()))
        return [draft for draft in found if self._is_ours(draft)]

    def _is_ours(self, draft: Workspace) -> bool:
        places = str(workspace(self._root, draft.attempt)), str(self._layout.attempt(draft.attempt))
        return (draft.path, draft.directory) == places

    async def _claim(self, wanted: WorkspaceRequest) -> Workspace | None:
        """Take what was made ahead for an attempt that begins now; remove it if it does not fit."""
        early = self._ahead[wanted.attempt]
        rules, refs = await sight(self._repo, wanted.branch_prefix)
        if early is not None and (
            early.space.base,
            early.space.folders,
            early.seen[0],
        ) == (wanted.base, wanted.folders, rules):
            has_old_refs = early.seen[1] != refs
            space = await complete(self._repo, wanted, early.space, has_old_refs=has_old_refs)
            if await anyio.to_thread.run_sync(self._is_taken, space):
                del self._ahead[wanted.attempt]
                return space
        await self._drop(_draft_of(wanted))
        return None

    def _is_taken(self, space: Workspace) -> bool:
        """Remove the note that nobody works in a workspace, unless somebody removed its tree."""
        is_there = Path(space.path, ".git").exists()
        if is_there:
            self._note_of(space.attempt).unlink()
        return is_there

    async def _drop(self, draft: Workspace) -> None:
        """Remove a workspace that nobody has worked in; whole ones go where others may use them."""
        path, directory = Path(draft.path), Path(draft.directory)
        made = await anyio.to_thread.run_sync(recall, draft.attempt, directory)
        await anyio.to_thread.run_sync(remove_tree, _spare(path))
        if made is not None and await anyio.Path(path).is_dir():
            verdict = RemovalVerdict(workspace=made, files=made.base)
            await discard(self._repo, self._layout, verdict)
        await forget(self._repo, made or draft, with_branch=True, with_base=True)
        if made is None:
            for folder in (path, directory):
                await anyio.to_thread.run_sync(remove_tree, folder)
        unlink = partial(self._note_of(draft.attempt).unlink, missing_ok=True)
        await anyio.to_thread.run_sync(unlink)
        self._ahead.pop(draft.attempt, None)

    @asynccontextmanager
    async def _lending(self, wanted: WorkspaceRequest) -> AsyncIterator[Spare | None]:
        """Yield a released tree to begin a new worktree with, if one fits.

        Only where agents live behind mounts: no process of an earlier one can write to it then,
        unless a sandbox is still there, and nothing is lent from under that.
        """
        is_new = not await anyio.Path(wanted.directory, NOTE).exists()
        is_whole = wanted.strategy is Strategy.WORKTREE and wanted.folders is None
        if not (is_new and wanted.is_mounted and is_whole):
            yield None
            return
        place = _spare(wanted.path)
        await anyio.to_thread.run_sync(remove_tree, place)  # an engine died before it was used
        try:
            yield await lend(self._repo, self._layout, wanted.base, place)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove_tree, place)

    async def resume(self, at: Workplace) -> FilledSpace:
        """Make a workspace that is there ready for another attempt."""
        space = await self._space(at)
        await anyio.to_thread.run_sync(_unlock, space.git_dir)
        await anyio.to_thread.run_sync(lead_inside, space)
        return FilledSpace(address=replace(at.address, path=space.path), branch=space.branch)

    async def places(self, address: SpaceAddress) -> GitPlaces | None:
        """Return where a workspace's private repository lies; None if it has none."""
        made = await self._recalled(address)
        return None if made is None else _places(made)

    async def _space(self, at: Workplace) -> Workspace:
        """Return a workspace under the name of the attempt that uses it.

        Raises:
            WorkspaceError: It was never whole.
        """
        made = await self._recalled(at.address)
        if made is None:
            raise WorkspaceError(f"there is no record of the workspace of {at.address.attempt}")
        return replace(made, attempt=replace(at.attempt, role=AGENT))

    async def _recalled(self, address: SpaceAddress) -> Workspace | None:
        attempt = address.attempt
        if attempt not in self._spaces:
            directory = self._layout.attempt(attempt)
            found = await anyio.to_thread.run_sync(recall, attempt, directory)
            if found is None:
                return None
            self._spaces[attempt] = found
        return self._spaces[attempt]

    @asynccontextmanager
    async def _reading(
        self, at: Workplace, space: Workspace, wanted: Collecting, *, role: str = "git"
    ) -> AsyncIterator[CollectRequest]:
        """Yield a request whose git commands run in the worker's own view of the machine."""
        folder = Path(space.collect_dir)
        await anyio.to_thread.run_sync(private_folder, folder)
        job = Job(
            attempt=replace(space.attempt, role=role),
            workspace=space.path,
            terms=at.terms,
            # Our own git must not fail by limits that are meant for the agent.
            limits=replace(at.limits, memory_mb=None, pids=None),
            git=_places(space),
        )
        async with self._shelter.looking(job, writable=(folder,)) as words:
            yield CollectRequest(
                author=wanted.author,
                message=wanted.message,
                most_new=wanted.most_new,
                most_refs=wanted.most_refs,
                wrap=_wrapping(words),
            )

    async def look(self, at: Workplace, wanted: Collecting, objects: Path) -> Snapshot | None:
        """Take a running worker's tree as it is now, inside its sandbox, one at a time."""
        space = await self._space(at)
        # `_tidy` empties the same folder: a snapshot must not lose its files half-way.
        async with self._lock(space), self._reading(at, space, wanted, role="radar") as request:
            return await snapshot(self._repo, space, request, objects=objects)

    def _lock(self, space: Workspace) -> anyio.Lock:
        return self._looking.setdefault(space.attempt.worker, anyio.Lock())

    async def collect(self, at: Workplace, wanted: Collecting) -> Brought:
        """Import everything that the attempt left onto its refs."""
        space = await self._space(at)
        kept = artifacts_folder(self._layout, space.attempt)
        take = partial(keep_artifacts, Path(space.path), wanted.artifacts, kept)
        artifacts = await anyio.to_thread.run_sync(take)
        try:
            async with self._reading(at, space, wanted) as request:
                found = await collect(self._repo, space, request)
        finally:  # whatever came of it, the user may go there and type `git status`
            with anyio.CancelScope(shield=True):
                quieted = await quiet_repositories(
                    self._repo, space.path, admin=space.admin, private=space.git_dir
                )
        if isinstance(found, CollectRefused):
            return Brought(change=found, artifacts=artifacts)
        await self._tidy(space)
        change = replace(found, notes=(*found.notes, *quieted))
        return Brought(change=change, artifacts=artifacts)

    async def examine(self, at: Workplace, wanted: Collecting) -> tuple[str, ...]:
        """Return why a worktree has to stay; nothing if it may go."""
        return (await self._verdict(at, wanted, is_asked=True)).reasons

    async def release(
        self,
        at: Workplace,
        wanted: Collecting,
        *,
        is_kept: Callable[[], Awaitable[bool]] | None = None,
    ) -> bool:
        """Remove a worktree whose every byte is proved to be kept elsewhere, unless it has gone.

        `is_kept` is asked last, once all of it has been collected.
        """
        if not await anyio.Path(at.address.path).is_dir():
            return True
        verdict = await self._verdict(at, wanted)
        is_going = verdict.is_safe and (is_kept is None or await is_kept())
        if is_going:
            await discard(self._repo, self._layout, verdict)
        return is_going

    async def _verdict(
        self, at: Workplace, wanted: Collecting, *, is_asked: bool = False
    ) -> RemovalVerdict:
        space = await self._space(at)
        async with self._reading(at, space, wanted) as request:
            verdict = await examine(self._repo, space, request, is_asked=is_asked)
        if verdict.is_safe:
            await self._tidy(space)
        return verdict

    async def abandon(self, at: Workplace, *, with_branch: bool) -> None:
        """Remove a half-made worktree."""
        await self.give_back(at)
        self._spaces.pop(at.attempt, None)
        space = _draft_of(self._request(at, Filling()))
        space = replace(space, base=space.refs.base)
        await anyio.to_thread.run_sync(remove_tree, _spare(Path(space.path)))
        if await anyio.Path(space.path).is_dir():
            await discard(self._repo, self._layout, RemovalVerdict(workspace=space))
        await forget(self._repo, space, with_branch=with_branch)

    async def clear_strays(self, known: Sequence[RunId], *, is_dry: bool) -> tuple[CleanItem, ...]:
        """Remove workspaces of vanished runs, and registered worktrees without a folder."""
        items = []
        if not is_dry:
            await anyio.to_thread.run_sync(_remove_spares, self._root, known)
        for attempt, path in await anyio.to_thread.run_sync(_strays, self._root, known):
            verdict = await examine_stray(self._repo, attempt, path)
            is_going = verdict.is_safe and not is_dry
            if is_going:
                await discard(self._repo, self._layout, verdict)
                await anyio.to_thread.run_sync(drop_empty, self._root / attempt.run)
            items.append(
                CleanItem(
                    run=attempt.run,
                    worker=str(attempt.worker),
                    path=str(path),
                    reasons=verdict.reasons,
                    was_removed=is_going,
                )
            )
        if not is_dry:
            await drop_missing(self._repo, self._root)
        return tuple(items)

    async def _tidy(self, space: Workspace) -> None:
        """Remove what reading a workspace wrote beside it: all of it has been imported."""
        async with self._lock(space):
            await anyio.to_thread.run_sync(_empty, Path(space.collect_dir))


class _Ahead(NamedTuple):
    """A workspace that was made before its attempt has begun, and what it was made by."""

    space: Workspace
    seen: tuple[Hashable, Hashable]


def _draft_of(wanted: WorkspaceRequest) -> Workspace:
    """Return a workspace as it is before anything of it is made."""
    return Workspace(
        attempt=wanted.attempt,
        strategy=wanted.strategy,
        path=str(wanted.path),
        directory=str(wanted.directory),
        base=wanted.base,
        branch_prefix=wanted.branch_prefix,
    )


def _wrapping(words: tuple[str, ...]) -> Wrap:
    return lambda argv: [*words, *argv]


def _strays(root: Path, known: Sequence[RunId]) -> list[tuple[AttemptId, Path]]:
    found = []
    for path in sorted(root.glob("*/*/worker_*/attempt_*")):
        run, step, worker, attempt = path.relative_to(root).parts
        number = attempt.removeprefix("attempt_")
        if run not in known and number.isdigit() and path.is_dir() and not path.is_symlink():
            found.append((AttemptId.parse(f"{run}/{step}/{worker}@{number}"), path))
    return found


def _spare(path: Path) -> Path:
    """Return where the tree lies that a worktree is going to begin with."""
    return path.with_name(f".{path.name}.spare")


def _remove_spares(root: Path, known: Sequence[RunId]) -> None:
    """Remove what engines that died had lent and not used yet: the trash can make all of it."""
    for path in root.glob("*/*/worker_*/.attempt_*.spare"):
        run = path.relative_to(root).parts[0]
        if run not in known:
            remove_tree(path)
            drop_empty(root / run)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        remove_tree(entry)


def _places(space: Workspace) -> GitPlaces | None:
    if space.git_dir is None:
        return None
    return GitPlaces(
        private=Path(space.git_dir),
        git_file=Path(space.gitfile) if space.gitfile else None,
        objects=tuple(map(Path, space.objects)),
    )


def _unlock(git_dir: str | None) -> None:
    """Remove the locks of a killed git: nobody works there now, and they would block all."""
    for name in ("index.lock", "HEAD.lock", "config.lock") if git_dir else ():
        remove_file(git_dir or "", name)


class FolderSpaces:
    """Folders with what the manifest includes and earlier steps made."""

    def __init__(self, place: Place) -> None:
        self._project = place.project
        self._root = place.workspaces
        self._layout = place.layout

    async def prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        """Make and fill the folder, from the manifest's includes or from an earlier workspace."""
        notes: list[str] = []
        path = await anyio.to_thread.run_sync(self._fill, at, filling, notes)
        return FilledSpace(
            address=SpaceAddress(attempt=at.attempt, path=str(path)), notes=tuple(notes)
        )

    def _fill(self, at: Workplace, filling: Filling, notes: list[str]) -> Path:
        target = workspace(self._root, at.attempt)
        if target.exists():
            return target
        draft = _draft(target)
        remove_tree(draft)
        private_folder(draft)
        previous = Path(filling.previous.path) if filling.previous else None
        if previous is not None and previous.is_dir():
            notes += [refusal(one) for one in copy_tree(previous, [b""], draft).refused]
        else:
            notes += self._include(at.terms.workspace.include, draft)
        notes += give_all(self._layout, at.attempt.run, filling.givers, draft)
        draft.rename(target)
        return target

    def _include(self, patterns: Sequence[str], target: Path) -> list[str]:
        project = self._project.resolve()
        names: list[Path] = []
        for pattern in patterns:
            for source in sorted(project.glob(pattern)):
                if not source.resolve().is_relative_to(project):
                    raise WorkspaceError(
                        f"workspace.include: {pattern} points outside {self._project}",
                        hint="Include only files inside the project.",
                    )
                names.append(source.relative_to(project))
        return [refusal(one) for one in copy_tree(project, names, target).refused]

    async def resume(self, at: Workplace) -> FilledSpace:
        """Return the folder as it is: nothing has to be undone."""
        return FilledSpace(address=at.address)

    async def places(self, address: SpaceAddress) -> GitPlaces | None:
        """Return None: there is no repository."""
        del address
        return None

    async def look(self, at: Workplace, wanted: Collecting, objects: Path) -> Snapshot | None:
        """Return None: there are no commits without git."""
        del at, wanted, objects
        return None

    async def collect(self, at: Workplace, wanted: Collecting) -> Brought:
        """Copy the artifacts that the step names to where no agent reaches them."""
        kept = artifacts_folder(self._layout, at.attempt)
        take = partial(keep_artifacts, Path(at.address.path), wanted.artifacts, kept)
        return Brought(change=None, artifacts=await anyio.to_thread.run_sync(take))

    async def examine(self, at: Workplace, wanted: Collecting) -> tuple[str, ...]:
        """Return why the folder stays; only an empty one is provably not needed."""
        del wanted
        held = await anyio.to_thread.run_sync(_count, Path(at.address.path))
        files = "1 file in it is" if held == 1 else f"{held} files in it are"
        return (f"{files} without another copy",) if held else ()

    async def release(self, at: Workplace, wanted: Collecting) -> bool:
        """Remove the folder only if it is empty: nothing else is provably not needed."""
        del wanted
        return await anyio.to_thread.run_sync(_remove_if_empty, Path(at.address.path))

    async def abandon(self, at: Workplace, *, with_branch: bool) -> None:
        """Remove a half-filled folder: it holds copies and nothing else."""
        del with_branch
        target = workspace(self._root, at.attempt)
        for folder in (target, _draft(target)):
            await anyio.to_thread.run_sync(remove_tree, folder)

    async def clear_strays(self, known: Sequence[RunId], *, is_dry: bool) -> tuple[CleanItem, ...]:
        """Return nothing: what lies in a folder of a vanished run is kept nowhere else."""
        del known, is_dry
        return ()


def _draft(target: Path) -> Path:
    return target.with_name(f".{target.name}.making")


def _count(folder: Path) -> int:
    """Count what is no folder; what cannot be read counts too."""
    entries = list_tree(folder)
    return sum(isinstance(one, PathRefused) or one.kind is not EntryKind.FOLDER for one in entries)


def _remove_if_empty(folder: Path) -> bool:
    is_going = folder.is_dir() and not any(folder.iterdir())
    if is_going:
        folder.rmdir()
    return is_going
