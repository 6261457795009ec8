"""Find the folders that a worktree is to hold, and mark the rest in an index as left out."""

import os
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath

from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git.cone import Cone
from engine.git.objects import tree_of
from engine.git.runner import Call, Repo, Where
from engine.git.staging import present_of
from engine.legible import legible_line, legible_name
from engine.messages.results import Holding
from engine.values import dataclass

_GLOB = frozenset("*?[")
_KEY = "sparse_checkout"


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """The folders of a commit that some patterns name."""

    found: tuple[str, ...]
    missed: tuple[str, ...]
    all: tuple[str, ...]


async def check_folders(repo: Repo, commit: str, wanted: Collection[str]) -> None:
    """Refuse patterns that name no folder of a commit.

    Raises:
        WorkspaceError: The first such pattern, and what to write instead.
    """
    if wanted:
        missed = (await _listed(repo, commit, wanted)).missed
        if missed:
            raise await _no_folder(repo, commit, missed[0])


async def _no_folder(repo: Repo, commit: str, pattern: str) -> WorkspaceError:
    said = legible_line(pattern)
    here = f"in the commit {commit[:12]} that the run starts from"
    if not _is_glob(pattern) and await repo.read("ls-tree", commit, "--", _plain(pattern)):
        up = str(PurePosixPath(_plain(pattern)).parent)
        hint = (
            f"Name its folder, `{legible_line(up)}`."
            if up != "."
            else ("Leave it out: every worktree holds the files at the top of the repository.")
        )
        return WorkspaceError(f"{_KEY}: {said!r} is a file {here}, not a folder", hint=hint)
    return WorkspaceError(
        f"{_KEY}: {said!r} matches no folder {here}",
        hint="Name folders that are committed, such as `src/parser` or `services/*/api`.",
    )


async def held(
    repo: Repo, commit: str, wanted: Collection[str], *, since: str | None = None
) -> Holding | None:
    """Return the folders of a commit that a worktree holds; None for all of them.

    Folders in which files have changed since another commit belong to them: earlier work of the
    run, which a worker may build on.
    """
    if not wanted:
        return None
    listed = await _listed(repo, commit, wanted)
    cone = Cone(folders=_outermost(listed.found))
    changed = await _changed(repo, since, commit) if since else []
    there = frozenset(listed.all)
    more = {os.fsdecode(path.rpartition(b"/")[0]) for path in changed if not cone.holds(path)}
    folders = _outermost((*listed.found, *(more & there)))
    whole = frozenset(folders)
    count = sum(not whole.isdisjoint(_with_above(one)) for one in listed.all)
    return Holding(folders=folders, held=count, of=len(listed.all))


async def _changed(repo: Repo, earlier: str, later: str) -> list[bytes]:
    trees = await tree_of(repo, earlier), await tree_of(repo, later)
    if trees[0] == trees[1]:
        return []
    listing = await repo.read("diff-tree", "-r", "-z", "--name-only", *trees)
    return [name for name in listing.split(b"\0") if name]


async def _listed(repo: Repo, commit: str, wanted: Collection[str]) -> _Listed:
    """List the folders of a commit, submodules among them, and those that patterns name."""
    listing = await repo.read("ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", commit)
    return await to_thread.run_sync(_match, listing, tuple(wanted))


def _match(listing: bytes, wanted: Sequence[str]) -> _Listed:
    names = [os.fsdecode(name) for name in listing.split(b"\0") if name]
    there = frozenset(names)
    found: set[str] = set()
    missed = []
    for pattern in wanted:
        plain = _plain(pattern)
        if plain in there:
            some = {plain}
        else:
            parts = tuple(plain.split("/"))
            some = {name for name in names if _fits(tuple(name.split("/")), parts)}
        found |= some
        missed += [pattern] if not some else []
    return _Listed(found=tuple(sorted(found)), missed=tuple(missed), all=tuple(names))


def _plain(pattern: str) -> str:
    """Return a pattern as git names folders: without `./` before it, and no slash behind it."""
    return str(PurePosixPath(pattern))


def _is_glob(pattern: str) -> bool:
    return not _GLOB.isdisjoint(pattern)


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tell if the parts of a path match those of a pattern; `**` stands for any number of them."""
    reached = {0}
    for part in (*parts, None):
        reached = _past_stars(reached, pattern)
        if part is None:
            return len(pattern) in reached
        reached = {
            at if pattern[at] == "**" else at + 1
            for at in reached
            if at < len(pattern) and (pattern[at] == "**" or fnmatchcase(part, pattern[at]))
        }
    return False


def _past_stars(reached: Iterable[int], pattern: Sequence[str]) -> set[int]:
    """Return where a match can stand, if every `**` may stand for nothing."""
    found = set(reached)
    for at, part in enumerate(pattern):
        if part == "**" and at in found:
            found.add(at + 1)
    return found


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    whole = frozenset(folders)
    return tuple(sorted(one for one in whole if whole.isdisjoint(_with_above(one)[:-1])))


def _with_above(folder: str) -> tuple[str, ...]:
    """Return a folder and all that it lies in, the outermost first."""
    parts = folder.split("/")
    return tuple("/".join(parts[: n + 1]) for n in range(len(parts)))


async def mark_left_out(repo: Repo, cone: Cone | None, where: Where, worktree: str) -> None:
    """Let an index that was read from a commit say what a worktree does not hold.

    Otherwise the user's `git status` there would name thousands of deleted files. What is there
    although no folder of the worktree has it, is no longer marked.
    """
    if cone is None:
        return
    listing = await repo.read("ls-files", "-t", "-z", where=where)
    found = partial(_marks, cone, listing, worktree)
    for flag, names in zip(
        ("--skip-worktree", "--no-skip-worktree"), await to_thread.run_sync(found), strict=True
    ):
        if names:
            call = Call(stdin=b"".join(name + b"\0" for name in names), writes=True)
            await repo.run("update-index", flag, "-z", "--stdin", call=call, where=where)


def _marks(cone: Cone, listing: bytes, worktree: str) -> tuple[list[bytes], list[bytes]]:
    """Return what is to be marked as left out, and what is no longer to be."""
    records = [one for one in listing.split(b"\0") if one and not cone.holds(one[2:])]
    there = frozenset(present_of(worktree, [one[2:] for one in records]))
    marked = [one[2:] for one in records if one[:1] == b"S" and one[2:] in there]
    return [one[2:] for one in records if one[:1] == b"H" and one[2:] not in there], marked


def kept_note(names: Sequence[bytes]) -> tuple[str, ...]:
    """Say which files stay although the agent's index takes them for deleted."""
    if not names:
        return ()
    first = legible_name(os.fsdecode(names[0]))
    files, them = f"{first} is", "it"
    if len(names) > 1:
        files, them = f"{first} and {len(names) - 1} more files are", "them"
    why = f"only a commit can delete {them}"
    return (f"{files} outside this sparse worktree, and plait keeps {them}: {why}.",)
