"""Try a worker's merged result in the user's own checkout, and take it back byte for byte.

HEAD, branches and the index never move; only files do. Everything that stands where the result
writes is copied into a folder of ours first, and the user's edits also onto a ref. Before the first
file changes, a note says what is under way. So a crash at any moment is repaired by taking it back.
"""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
from anyio import to_thread

from engine.beneath import remove_tree
from engine.errors import EngineError, GitFailed, WorkspaceError
from engine.git.carrying import keep_files, keep_tree
from engine.git.checkout import check_out, keep_copies, locked_index
from engine.git.landing import checkout_of
from engine.git.objects import Wording, set_refs, write_commit
from engine.git.plumbing.lock import RepositoryLock
from engine.git.runner import Call, Repo, Where
from engine.git.shifts import (
    Goal,
    Kind,
    Shift,
    full,
    keep,
    plan_shifts,
    put,
    remove_drafts,
    stand_of,
)
from engine.git.staging import copy_index, private_index
from engine.git.touched import Touched, differing, left_out, touched_paths
from engine.git.worktrees import Checkout, our_entries
from engine.legible import legible_name
from engine.messages.merging import MergedResult
from engine.private import private_folder
from engine.store.codec import from_json, to_json
from engine.store.files import sync_folder, write_atomically
from engine.store.layout import TRY_NOTE

_FOLDER = "tries"
_LOCK = "try"
_PIN = "refs/plait/@try"
_SUBMODULE = "160000"
_UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisect",
}
BACK = "`plait try --back` restores your files."


@dataclass(frozen=True, kw_only=True)
class OpenTry:
    """A try that is on, with all that takes it back.

    Attributes:
        result: The result that is tried.
        worktree: The checkout that it is put into.
        git_dir: The checkout's own git directory.
        head: The commit that is checked out; None before the first one.
        since: When it began.
        shifts: Every path that it touches.
        aside: Own edits that are put aside for as long as it is on.
        edits: The ref that keeps those edits; nothing where there is none.
        has_index: The checkout had an index.
        is_whole: All of it is there; else it was cut short, on its way there or back.
        skipped: Files of the result that a sparse checkout leaves out.
    """

    id: str
    result: MergedResult
    worktree: str
    git_dir: str
    head: str | None
    since: float
    shifts: tuple[Shift, ...] = ()
    aside: tuple[bytes, ...] = ()
    edits: str = ""
    has_index: bool = True
    is_whole: bool = False
    skipped: int = 0

    @property
    def name(self) -> str:
        """Return the worker's name, as people say it."""
        return f"{self.result.run}/{self.result.worker}"

    @property
    def written(self) -> int:
        """Count the files and links that it changes."""
        return sum(
            one.before != one.after and (one.before.is_leaf or one.after.is_leaf)
            for one in self.shifts
        )


@dataclass(frozen=True, kw_only=True)
class TakenBack:
    """A try that is over.

    Attributes:
        trial: What was tried.
        edited: Files that were edited while it was on.
        ref: The ref that keeps these edits, if there are any.
        copies: The folder that keeps copies of them.
        staged: The ref or file that keeps what was staged meanwhile, if anything was.
    """

    trial: OpenTry
    edited: tuple[bytes, ...] = ()
    ref: str = ""
    copies: str = ""
    staged: str = ""


def try_in(plait_dir: Path) -> OpenTry | None:
    """Return the try that is on in a repository, if there is one.

    Raises:
        StoreError: Its note cannot be read.
    """
    try:
        return from_json(OpenTry, (plait_dir / TRY_NOTE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


async def why_not_while_trying(repo: Repo, ref: str) -> str:
    """Return why a branch cannot be moved now; nothing if no try is on where it is checked out."""
    trial = await to_thread.run_sync(try_in, repo.plait_dir)
    if trial is None:
        return ""
    place = await checkout_of(repo, ref)
    if not isinstance(place, Checkout) or place.git_dir != trial.git_dir:
        return ""
    return f"{trial.worktree} has the result of {trial.name}. {BACK}"


async def put_on(
    repo: Repo, result: MergedResult, *, now: float
) -> tuple[OpenTry, TakenBack | None]:
    """Put a result into the checkout; a try that is on there is taken back first.

    Raises:
        WorkspaceError: It cannot be done safely, and why; no file was touched.
        WorktreeBusy: Another git works there.
    """
    async with _alone(repo):
        place = await _usable(repo)
        earlier = await to_thread.run_sync(try_in, repo.plait_dir)
        if earlier is not None and earlier.git_dir != place.git_dir:
            raise WorkspaceError(f"{earlier.worktree} has the result of {earlier.name}", hint=BACK)
        back = await _take_back(repo, earlier) if earlier is not None else None
        trial = await _prepared(repo, place, result, now)
        return await _put_on(repo, place, trial), back


async def take_back(repo: Repo) -> TakenBack | None:
    """Take the try back that is on; None where none is.

    Raises:
        WorkspaceError: It cannot be done safely, and why; no file was touched.
        WorktreeBusy: Another git works there.
    """
    async with _alone(repo):
        trial = await to_thread.run_sync(try_in, repo.plait_dir)
        return await _take_back(repo, trial) if trial is not None else None


async def leave_on(repo: Repo) -> OpenTry | None:
    """End the try and leave its files as the user's own edits; own edits put aside stay on refs.

    Raises:
        WorkspaceError: It was cut short, so its files are no whole result.
    """
    async with _alone(repo):
        trial = await to_thread.run_sync(try_in, repo.plait_dir)
        if trial is None:
            return None
        if not trial.is_whole and await to_thread.run_sync(Path(trial.worktree).is_dir):
            raise WorkspaceError(f"the try of {trial.name} was interrupted", hint=BACK)
        await to_thread.run_sync(_forget, repo.plait_dir, trial)
        return trial


@asynccontextmanager
async def _alone(repo: Repo) -> AsyncIterator[None]:
    """Hold off every other process that tries something here."""
    async with RepositoryLock(repo.plait_dir / "try.lock").held():
        await to_thread.run_sync(_sweep, repo.plait_dir)
        yield


def _sweep(plait_dir: Path) -> None:
    """Remove what a killed process had made before its note, or had not removed after it."""
    trial = try_in(plait_dir)
    for folder in (plait_dir / _FOLDER).glob("*"):
        if trial is None or folder.name != trial.id:
            remove_tree(folder)
    for draft in plait_dir.glob(f".{TRY_NOTE}.*"):
        draft.unlink()


async def _usable(repo: Repo) -> Checkout:
    """Return the checkout, if it can be tried in.

    Raises:
        WorkspaceError: It cannot, and why.
    """
    if repo.worktree is None:
        raise WorkspaceError(
            "a bare repository has no files to try a result in",
            hint="Run it in a working tree of the repository.",
        )
    reason = await to_thread.run_sync(_why_not, repo.common_dir, repo.git_dir)
    if reason is not None:
        raise WorkspaceError(reason[0], hint=reason[1])
    return Checkout(path=repo.worktree, git_dir=repo.git_dir, branch=None, under_way=None)


def _why_not(common_dir: str, git_dir: str) -> tuple[str, str] | None:
    if git_dir in our_entries(common_dir):
        return "this is a worker's own workspace", "Run it in your own checkout."
    found = next((what for name, what in _UNDER_WAY.items() if Path(git_dir, name).exists()), None)
    if found is not None:
        return f"{found} is under way here", "Finish or abort it, then try again."
    if any(Path(git_dir).glob("sharedindex.*")):
        hint = "`git update-index --no-split-index` makes it one file."
        return "the index here is split, so plait cannot copy it as one file", hint
    return None


async def _prepared(repo: Repo, place: Checkout, result: MergedResult, now: float) -> OpenTry:
    """Plan a try and keep aside all that it would write over; no file of the user's is touched."""
    head = await _head(repo, place.git_dir)
    touched = await touched_paths(repo, head or repo.empty_tree, result.tree)
    links = [
        one.path
        for one in touched
        if any(version and version.mode == _SUBMODULE for version in (one.old, one.new))
    ]
    if links:
        raise WorkspaceError(
            f"the result changes the submodule {legible_name(os.fsdecode(links[0]))}, and plait "
            "cannot restore submodules safely",
            hint="Look at it with `plait diff`, or land it on a branch of its own (`--to`).",
        )
    skipped = await left_out(repo, place)
    moves = [one for one in touched if one.path not in skipped]
    trial = OpenTry(
        id=token_hex(4),
        result=result,
        worktree=place.path,
        git_dir=place.git_dir,
        head=head,
        since=now,
        skipped=len(touched) - len(moves),
    )
    folder = _folder_of(repo.plait_dir, trial)
    try:
        return await _kept(repo, place, trial, moves)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)
        raise


async def _kept(repo: Repo, place: Checkout, trial: OpenTry, moves: Sequence[Touched]) -> OpenTry:
    """Make the files of the result in a folder of ours, and keep those that they replace."""
    folder = _folder_of(repo.plait_dir, trial)
    await to_thread.run_sync(_make_folders, folder)
    await _make_files(repo, place, trial, [one.path for one in moves if one.new is not None])
    plan = partial(plan_shifts, place.path, str(folder / "made"))
    shifts = await to_thread.run_sync(plan, [(one.path, one.new is not None) for one in moves])
    dirty = await differing(repo, place, [(one.path, one.old) for one in moves])
    known = {one.path for one in moves}
    aside = tuple(
        one.path
        for one in shifts
        if one.before != one.after
        and (one.path in dirty or (one.path not in known and one.before.is_leaf))
    )
    shifts = await to_thread.run_sync(keep, place.path, shifts, folder / "kept")
    has_index = await to_thread.run_sync(_keep_index, place.git_dir, folder / "index")
    trial = replace(trial, shifts=tuple(shifts), aside=aside, has_index=has_index)
    if aside:
        entries = [(one.path, one.before, folder / "kept" / one.kept) for one in shifts]
        mine = [entry for entry in entries if entry[0] in set(aside)]
        wording = _wording(repo, trial, f"Edits set aside while trying {trial.name}\n")
        trial = replace(trial, edits=await keep_files(repo, trial.head, mine, wording))
    await _pin(repo, trial)
    return trial


def _make_folders(folder: Path) -> None:
    for name in ("made", "kept"):
        private_folder(folder / name)


def _folder_of(plait_dir: Path, trial: OpenTry) -> Path:
    return plait_dir / _FOLDER / trial.id


async def _make_files(repo: Repo, place: Checkout, trial: OpenTry, paths: Sequence[bytes]) -> None:
    """Write files of the result as git would write them there, with the attributes in force."""
    if not paths:
        return
    made = _folder_of(repo.plait_dir, trial) / "made"
    async with private_index(repo) as index:
        where = Where(git_dir=place.git_dir, worktree=str(made), index=index)
        await repo.run("read-tree", trial.result.tree, where=where)
        words = ("ls-files", "-z", "--", ".gitattributes", "**/.gitattributes")
        rules = [name for name in (await repo.read(*words, where=where)).split(b"\0") if name]
        for names in (rules, paths):
            if names:
                await check_out(repo, where, b"".join(name + b"\0" for name in names))


def _keep_index(git_dir: str, copy: Path) -> bool:
    try:
        copy_index(Path(git_dir, "index"), copy)
    except FileNotFoundError:
        return False
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(copy.parent)
    return True


async def _pin(repo: Repo, trial: OpenTry) -> None:
    """Keep the result from `git gc` while it is tried."""
    result = trial.result
    wording = _wording(repo, trial, f"The result of {trial.name}, being tried\n")
    commit = await write_commit(repo, result.tree, [result.onto], wording)
    await set_refs(repo, [(_PIN, commit)], say="plait: try")


def _wording(repo: Repo, trial: OpenTry, message: str) -> Wording:
    return Wording(message=message, author=repo.settings.sign(int(trial.since)))


async def _put_on(repo: Repo, place: Checkout, trial: OpenTry) -> OpenTry:
    """Write the note, then the files; where that fails, go back and leave nothing behind."""
    await to_thread.run_sync(_note, repo.plait_dir, trial)
    is_begun = False
    try:
        async with locked_index(repo, place, _LOCK) as guard:
            await to_thread.run_sync(_require_same, trial)
            guard.is_kept = is_begun = True
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_apply, repo.plait_dir, trial)
            guard.is_kept = False
    except BaseException:
        with anyio.CancelScope(shield=True):
            if is_begun:
                with suppress(EngineError, OSError):  # the note stays, and so does the way back
                    await _take_back(repo, trial)
            else:
                await to_thread.run_sync(_forget, repo.plait_dir, trial)
        raise
    done = replace(trial, is_whole=True)
    await to_thread.run_sync(_note, repo.plait_dir, done)
    return done


def _note(plait_dir: Path, trial: OpenTry) -> None:
    write_atomically(plait_dir / TRY_NOTE, to_json(trial).encode())


def _require_same(trial: OpenTry) -> None:
    """Look once more, under the lock: what was kept aside must be what is there.

    Raises:
        WorkspaceError: Somebody has changed one of the files meanwhile.
    """
    for shift in trial.shifts:
        if stand_of(trial.worktree, shift.path) != shift.before:
            name = legible_name(os.fsdecode(shift.path))
            raise WorkspaceError(f"{name} has just changed", hint="Try again.")


def _apply(plait_dir: Path, trial: OpenTry) -> None:
    """Put the result's files.

    Raises:
        OSError: One of them cannot be written.
    """
    made = _folder_of(plait_dir, trial) / "made"
    goals = [
        Goal(one.path, one.after, full(made, one.path) if one.after.kind is Kind.FILE else None)
        for one in trial.shifts
        if one.after != one.before
    ]
    put(trial.worktree, goals, _draft(plait_dir, trial))


def _draft(plait_dir: Path, trial: OpenTry) -> Path:
    return _folder_of(plait_dir, trial) / f".plait-try-{trial.id}"


async def _take_back(repo: Repo, trial: OpenTry) -> TakenBack:
    """Keep what was edited meanwhile, then put everything as it was, and make sure that it is."""
    if not await to_thread.run_sync(Path(trial.worktree).is_dir):
        raise WorkspaceError(f"{trial.worktree} is gone", hint="`plait try --keep` ends this try.")
    place = Checkout(path=trial.worktree, git_dir=trial.git_dir, branch=None, under_way=None)
    async with locked_index(repo, place, _LOCK) as guard:
        guard.is_kept = guard.was_left  # files half written stay locked until they are whole
        await _require_head(repo, trial)
        with anyio.CancelScope(shield=True):
            done = await _keep_edited(repo, trial)
            done = replace(done, staged=await _keep_staged(repo, place, trial))
            guard.is_kept = True
            await to_thread.run_sync(_note, repo.plait_dir, replace(trial, is_whole=False))
            await to_thread.run_sync(_restore, repo.plait_dir, trial)
            guard.is_kept = False
    # Not earlier: a process that is killed before leaves the note, and with it the way back.
    await to_thread.run_sync(_forget, repo.plait_dir, trial)
    with suppress(GitFailed):  # only a pin of ours: the next try moves it
        call = Call(stdin=f"delete {_PIN}\0\0".encode(), writes=True)
        await repo.run("update-ref", "--stdin", "-z", call=call)
    return done


async def _require_head(repo: Repo, trial: OpenTry) -> None:
    """Refuse to go back where another commit is checked out: the files before are not its own.

    Raises:
        WorkspaceError: It is another commit.
    """
    at = await _head(repo, trial.git_dir)
    if at == trial.head:
        return
    if trial.head is None:
        hint = "`plait try --keep` ends the try and keeps the files as they are."
    else:
        hint = (
            f"Go back to {trial.head[:10]} first: `git reset --soft {trial.head[:10]}` keeps all"
            " files, or switch to its branch. Or end the try and keep the files with `plait try"
            " --keep`."
        )
    raise WorkspaceError("another commit has been checked out or made since the try", hint=hint)


async def _head(repo: Repo, git_dir: str) -> str | None:
    words = ("rev-parse", "--verify", "-q", "HEAD^{commit}")
    here = Where(git_dir=git_dir)
    done = await repo.run(*words, call=Call(ok=(0, 1, 128)), where=here)
    return done.stdout.decode().strip() or None if done.exit_code == 0 else None


async def _keep_edited(repo: Repo, trial: OpenTry) -> TakenBack:
    """Keep what stands at paths of the try and is neither its own nor what stood there before."""
    paths = await to_thread.run_sync(_edited, trial)
    if not paths:
        return TakenBack(trial=trial)
    copies = await to_thread.run_sync(keep_copies, trial.worktree, paths, repo.plait_dir / "trash")
    stands = await to_thread.run_sync(lambda: [stand_of(trial.worktree, one) for one in paths])
    files = [
        (path, stand, full(trial.worktree, path)) for path, stand in zip(paths, stands, strict=True)
    ]
    leaves = [one for one in files if one[1].is_leaf]
    wording = _wording(repo, trial, f"Edits made while trying {trial.name}\n")
    ref = await keep_files(repo, trial.head, leaves, wording) if leaves else ""
    folder = str(Path(copies[0].copy[: -len(os.fsdecode(copies[0].path))])) if copies else ""
    return TakenBack(trial=trial, edited=tuple(paths), ref=ref, copies=folder)


def _edited(trial: OpenTry) -> list[bytes]:
    """List what was edited while the try was on, and would be written over by taking it back."""
    found: list[bytes] = []
    for shift in trial.shifts:
        now = stand_of(trial.worktree, shift.path)
        if now.kind is Kind.FOLDER and shift.before.is_leaf:
            found += _inside(trial, shift.path)
        elif now.is_leaf and now not in {shift.before, shift.after}:
            found.append(shift.path)
    return found


def _inside(trial: OpenTry, folder: bytes) -> list[bytes]:
    """List files in a folder that gives way to a file, but for those of the result."""
    ours = {shift.path: shift.after for shift in trial.shifts}
    found: list[bytes] = []
    for inner, folders, names in os.walk(full(trial.worktree, folder)):
        links = [name for name in folders if Path(inner, name).is_symlink()]
        for name in (*names, *links):
            path = os.fsencode(Path(inner, name).relative_to(trial.worktree))
            if path not in ours:
                found.append(path)
    return found


async def _keep_staged(repo: Repo, place: Checkout, trial: OpenTry) -> str:
    """Keep the index where something was staged while the try was on; say where it is kept."""
    saved = _folder_of(repo.plait_dir, trial) / "index"
    now = Path(place.git_dir, "index")
    entries = [await _entries(repo, place, one) for one in (now, saved)]
    if entries[0] == entries[1]:
        return ""
    try:
        async with private_index(repo, copy_of=str(now)) as index:
            tree = await repo.line("write-tree", where=Where(index=index))
        wording = _wording(repo, trial, f"Staged while trying {trial.name}\n")
        return await keep_tree(repo, trial.head, tree, wording)
    except GitFailed:  # conflicts, which no tree can hold
        copy = repo.plait_dir / "trash" / f"index-{trial.id}"
        await to_thread.run_sync(private_folder, copy.parent)
        await to_thread.run_sync(copy_index, now, copy)
        return str(copy)


async def _entries(repo: Repo, place: Checkout, index: Path) -> bytes:
    if not await to_thread.run_sync(index.exists):
        return b""
    where = Where(git_dir=place.git_dir, worktree=place.path, index=str(index))
    return await repo.read("ls-files", "--stage", "-v", "-z", where=where)


def _restore(plait_dir: Path, trial: OpenTry) -> None:
    """Put files and index as they were before the try; doing it again changes nothing.

    Raises:
        OSError: One of them cannot be written.
        WorkspaceError: One of them is not as it was.
    """
    folder = _folder_of(plait_dir, trial)
    remove_drafts(trial.worktree, trial.shifts, _draft(plait_dir, trial))
    _clear_ways(trial)
    goals = [
        Goal(one.path, one.before, folder / "kept" / one.kept if one.kept else None)
        for one in trial.shifts
        if one.before != one.after or one.before.kind is Kind.FOLDER
    ]
    put(trial.worktree, goals, _draft(plait_dir, trial))
    _restore_index(trial, folder / "index")
    for shift in trial.shifts:
        now = stand_of(trial.worktree, shift.path)
        is_left = now.kind is Kind.FOLDER and shift.before.kind is Kind.NOTHING
        if now != shift.before and not is_left:
            name = legible_name(os.fsdecode(shift.path))
            raise WorkspaceError(
                f"{name} is not as it was before the try", hint=f"It is kept in {folder}."
            )


def _clear_ways(trial: OpenTry) -> None:
    """Remove what was left in folders that give way to files; all of it has been kept."""
    for shift in trial.shifts:
        now = stand_of(trial.worktree, shift.path)
        if shift.before.is_leaf and now.kind is Kind.FOLDER:
            remove_tree(trial.worktree, shift.path)


def _restore_index(trial: OpenTry, saved: Path) -> None:
    real = Path(trial.git_dir, "index")
    if not trial.has_index:
        real.unlink(missing_ok=True)
        return
    if real.exists() and real.read_bytes() == saved.read_bytes():
        return
    near = real.with_name("index.plait")
    copy_index(saved, near)
    with near.open("rb") as file:
        os.fsync(file.fileno())
    near.replace(real)
    sync_folder(real.parent)


def _forget(plait_dir: Path, trial: OpenTry) -> None:
    (plait_dir / TRY_NOTE).unlink(missing_ok=True)
    sync_folder(plait_dir)
    remove_tree(_folder_of(plait_dir, trial))
