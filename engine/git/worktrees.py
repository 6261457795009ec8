"""The linked worktrees of a repository: which there are, what is checked out, and dropping ours."""

import os
import shutil
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from engine.beneath import Taken, remove_tree, write_file
from engine.errors import BranchTaken, WorkspaceError
from engine.git.objects import resolve
from engine.git.plumbing.cache import stamp
from engine.git.runner import READ, WRITE, Repo, Where

_UNDER_WAY = (
    "rebase-merge",
    "rebase-apply",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
)
_HOLDERS = (("rebase-merge", "head-name"), ("rebase-apply", "head-name"), ("BISECT_START",))
"""The files that name the branch that such a one comes back to."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """One working tree of the repository, the main one included.

    Attributes:
        path: Where it is.
        git_dir: Its own git directory.
        branch: The branch it is on, in full; None when detached.
        under_way: A rebase, merge or bisect that has not ended, by the name of git's own file.
        held: Branches that such a rebase or bisect will come back to.
        index: Which version of its index is there, where that is known because it is locked.
    """

    path: str
    git_dir: str
    branch: str | None
    under_way: str | None
    held: tuple[str, ...] = ()
    index: Hashable = None


def admin_dir(path: Path) -> str:
    """The folder in the shared `.git` that belongs to a linked worktree."""
    content = os.fsdecode((path / ".git").read_bytes())
    if not content.startswith("gitdir: "):
        raise WorkspaceError(f"{path}/.git does not name its repository")
    return content.removeprefix("gitdir: ").rstrip("\n")


def put_in_place(tree: Path, path: Path) -> None:
    """Rename a tree to where a linked worktree is registered, whose `.git` file stays."""
    content = (path / ".git").read_bytes()
    remove_tree(path)
    tree.rename(path)
    if not remove_tree(path, ".git"):
        write_file(path, ".git", content, taken=Taken.KEEP)


async def checkouts(repo: Repo) -> list[Checkout]:
    """Every working tree that git knows of and that still exists."""

    async def ask() -> bytes:
        return await repo.read("worktree", "list", "--porcelain", "-z", call=READ)

    def look() -> tuple[Hashable, list[Checkout] | None]:
        key = _heads(repo.common_dir)
        known = repo.cache.known(("worktrees", key)) if key is not None else None
        return key, _checkouts(repo, known) if isinstance(known, bytes) else None

    key, found = await to_thread.run_sync(look)
    if found is not None:
        return found
    listing = await (ask() if key is None else repo.cache.of(("worktrees", key), ask))
    return await to_thread.run_sync(_checkouts, repo, listing)


def _heads(common_dir: str) -> Hashable:
    """The files from which git knows working trees and their branches, each in its version.

    None where that cannot be known from outside: refs kept in tables, or one name for
    another.
    """
    common = Path(common_dir)
    linked = common / "worktrees"
    folders = _listed(linked)
    files = [common / "config", common / "config.worktree", common / "HEAD"]
    files += [folder / name for folder in folders for name in ("HEAD", "gitdir")]
    heads = [_first_line(common / "HEAD"), *(_first_line(folder / "HEAD") for folder in folders)]
    if any(_is_elsewhere(common, head) for head in heads) or any(map(Path.is_symlink, files)):
        return None
    return (*heads, *((str(file), stamp(file)) for file in files))


def _is_elsewhere(common: Path, head: str) -> bool:
    """Say if this HEAD does not tell the whole truth."""
    ref = head.removeprefix("ref: ")
    return ref == "refs/heads/.invalid" or _first_line(common / ref).startswith("ref: ")


def _checkouts(repo: Repo, listing: bytes) -> list[Checkout]:
    records = [record.split("\0") for record in os.fsdecode(listing).split("\0\0")]
    entries = _entries_by_gitfile(repo.common_dir)
    found = (
        _checkout(repo, entries, [line for line in lines if line])
        for lines in records
        if any(lines) and "bare" not in lines
    )
    return [seen for seen in found if seen is not None]


def _entries_by_gitfile(common_dir: str) -> dict[str, str]:
    """The folders of linked worktrees in the shared `.git`, by the `.git` file each belongs to."""
    entries = Path(common_dir, "worktrees")
    each = _listed(entries)
    return {_first_line(entry / "gitdir"): str(entry) for entry in each}


def _checkout(repo: Repo, entries: Mapping[str, str], lines: list[str]) -> Checkout | None:
    said = dict(line.partition(" ")[::2] for line in lines)
    place = _place_of(repo, entries, said["worktree"])
    if place is None:
        return None
    path, git_dir = place
    there = _names_in(git_dir)
    under_way = next((name for name in _UNDER_WAY if name in there), None)
    held = [_first_line(Path(git_dir, *names)) for names in _HOLDERS if names[0] in there]
    full = (name if name.startswith("refs/") else f"refs/heads/{name}" for name in held if name)
    return Checkout(
        path=path,
        git_dir=git_dir,
        branch=said.get("branch"),
        under_way=under_way,
        held=tuple(full),
    )


def _place_of(repo: Repo, entries: Mapping[str, str], path: str) -> tuple[str, str] | None:
    """A working tree and its own git directory, looked up from the shared side.

    The working tree's `.git` may be foreign. For the main one of a submodule, or of a repository
    that lies apart, git names the git directory itself.
    """
    entry = entries.get(f"{path}/.git")
    if entry is not None:
        return (path, entry) if Path(path).is_dir() else None
    is_main_open = repo.git_dir == repo.common_dir and repo.worktree is not None
    main = repo.worktree if is_main_open else path
    if main is None or not Path(main).is_dir() or Path(main) == Path(repo.common_dir):
        return None
    return main, repo.common_dir


def _names_in(folder: str) -> frozenset[str]:
    try:
        with os.scandir(folder) as inner:
            return frozenset(one.name for one in inner)
    except OSError:
        return frozenset()


def _first_line(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).split("\n", 1)[0]
    except OSError:
        return ""


def our_entries(common_dir: str) -> list[str]:
    """The git directories of linked worktrees that are ours: their lock says so."""
    entries = Path(common_dir, "worktrees")
    return [
        str(entry)
        for entry in _listed(entries)
        if _first_line(entry / "locked").startswith("plait ")
    ]


async def held_elsewhere(repo: Repo, branch: str) -> str | None:
    """Return where the user has a branch of ours checked out: it must not move under them."""
    return await _held(repo, branch, await checkouts(repo))


async def _held(repo: Repo, branch: str, places: list[Checkout]) -> str | None:
    held = [place for place in places if branch in {place.branch, *place.held}]
    if not held:
        return None
    ours = await to_thread.run_sync(our_entries, repo.common_dir)
    return next((place.path for place in held if place.git_dir not in ours), None)


async def detach_others(repo: Repo, branch: str) -> None:
    """Let a branch of ours go from the worktrees of earlier attempts; they keep their commit.

    Those whose folder is gone count too: they are locked, so that git keeps them, and it would let
    nobody else have the branch.

    Raises:
        BranchTaken: The user has it checked out.
    """
    places = await checkouts(repo)
    path = await _held(repo, branch, places)
    if path is not None:
        name = branch.removeprefix("refs/heads/")
        hint = "Switch to another branch there."
        raise BranchTaken(name, why=f"is checked out in {path}", hint=hint)
    gone = await to_thread.run_sync(_on_branch, repo.common_dir, branch)
    holding = {*gone, *(place.git_dir for place in places if place.branch == branch)}
    commit = await resolve(repo, branch) if holding else None
    for git_dir in sorted(holding) if commit is not None else ():
        words = ("update-ref", "--no-deref", "-m", "plait: a newer attempt", "HEAD", str(commit))
        await repo.run(*words, call=WRITE, where=Where(git_dir=git_dir))


def _on_branch(common_dir: str, branch: str) -> list[str]:
    """Return those of our entries whose HEAD names a branch, whether their folder is there or not.

    A HEAD in a table of refs names none here; such a branch is then on two worktrees.
    """
    said = f"ref: {branch}"
    return [entry for entry in our_entries(common_dir) if _first_line(Path(entry, "HEAD")) == said]


async def drop_entry(repo: Repo, path: Path) -> None:
    """Forget a worktree of ours whose folder is gone already, however half-made its entry is.

    The caller holds the lock of the repository. Git could do it, in ten times the time.
    """
    await to_thread.run_sync(_drop_entry, repo.common_dir, path)


def _entries(common_dir: str, path: Path) -> list[Path]:
    wanted = f"{path}/.git"
    entries = _listed(Path(common_dir, "worktrees"))
    return [entry for entry in entries if _first_line(entry / "gitdir") == wanted]


def _listed(folder: Path) -> list[Path]:
    """Return what lies in a folder; git takes the one of the worktrees away with the last."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _drop_entry(common_dir: str, path: Path) -> None:
    """Remove the entry, the file by which it is found last; and the folder of entries if empty."""
    for entry in _entries(common_dir, path):
        for inner in _listed(entry):  # nothing, if the user's git has just pruned it
            if inner.name != "gitdir":
                remove_tree(entry, inner.name)
        shutil.rmtree(entry, ignore_errors=True)
    with suppress(OSError):
        Path(common_dir, "worktrees").rmdir()
