"""The linked worktrees of a repository: registered, listed with what is checked out, and dropped.

Where files are all there is to it, git is not asked. Ours is made whole beside the others and then
renamed to its place: no git ever sees half of it, and a crash leaves the whole of it or none.
"""

import os
import re
import secrets
import shutil
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio import to_thread

from engine.beneath import Taken, remove_tree, write_file
from engine.errors import BranchTaken, WorkspaceError
from engine.git.objects import resolve
from engine.git.refs import has_ref_files
from engine.git.runner import READ, WRITE, Repo, Where
from engine.git.settings import Entries

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
_NAME = re.compile(r"[0-9A-Za-z_-]+")
_NO = {"false", "no", "off", "0", ""}
_HEAD = re.compile("ref: (?P<branch>refs/heads/.+)|[0-9a-f]{40}(?:[0-9a-f]{24})?")


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


def is_plain(entries: Entries) -> bool:
    """Say if `git worktree add` copies nothing into a worktree's entry and sets no modes there."""
    settings = dict(entries)
    is_sparse = settings.get("core.sparsecheckout", "false").lower() not in _NO
    return has_ref_files(entries) and not is_sparse and "core.sharedrepository" not in settings


def register(repo: Repo, path: Path, branch: str, reason: str) -> str | None:
    """Register an empty folder as a worktree on a branch, locked; return its own git directory.

    The caller holds the lock of the repository and knows that nobody has the branch checked out.
    None where it cannot be done: nothing is left of it, and git can say what is wrong.
    """
    place = os.path.realpath(path)
    entries = f"{os.path.realpath(repo.common_dir)}/worktrees"
    if not _NAME.fullmatch(path.name) or "\n" in place + entries:
        return None
    # Nobody else takes such a name, so nothing of anybody's is replaced.
    entry = f"{entries}/{path.name}-{secrets.token_hex(4)}"
    gitfile = Path(place, ".git")
    contents = {
        "locked": reason,
        "gitdir": str(gitfile),
        "commondir": "../..",
        "HEAD": f"ref: refs/heads/{branch}",
    }
    ours = f"{repo.plait_dir}/git"
    try:
        with TemporaryDirectory(prefix="scratch-", dir=ours, ignore_cleanup_errors=True) as folder:
            draft = Path(folder, "entry")
            draft.mkdir()
            for name, content in contents.items():
                (draft / name).write_bytes(os.fsencode(f"{content}\n"))
            gitfile.write_bytes(os.fsencode(f"gitdir: {entry}\n"))
            with suppress(FileExistsError):
                Path(entries).mkdir()
            draft.rename(entry)
    except OSError:
        with suppress(OSError):
            gitfile.unlink()
        return None
    return entry


async def checkouts(repo: Repo) -> list[Checkout]:
    """Every working tree that git knows of and that still exists.

    Read from the files that git reads for it, where those are all there is to it.
    """
    configuration = await repo.configuration()
    found = await to_thread.run_sync(_read, repo, configuration)
    if found is not None:
        return found
    listing = await repo.read("worktree", "list", "--porcelain", "-z", call=READ)
    return await to_thread.run_sync(_listed_by_git, repo, listing)


def _read(repo: Repo, configuration: Entries) -> list[Checkout] | None:
    """Return what `git worktree list` would say; None where that takes more than a few files."""
    is_bare = dict(configuration).get("core.bare", "false")
    if is_bare not in {"true", "false"} or not has_ref_files(configuration):
        return None
    common = Path(repo.common_dir)
    places = [(_main(repo, repo.common_dir.removesuffix("/.git")), repo.common_dir)]
    for entry in _listed(common / "worktrees"):
        gitfile = _first_line(entry / "gitdir")
        if gitfile and not (gitfile.startswith("/") and gitfile.endswith("/.git")):
            return None
        places.append((gitfile.removesuffix("/.git") or None, str(entry)))
    found: list[Checkout] = []
    for path, git_dir in places[is_bare == "true" :]:
        head = _HEAD.fullmatch(_first_line(Path(git_dir, "HEAD")))
        if path is None or not Path(path).is_dir():
            continue
        if head is None or Path(git_dir, "HEAD").is_symlink():
            return None
        branch = head["branch"]
        if branch and _first_line(common / branch).startswith("ref: "):
            return None  # one name for another: git follows it
        found.append(_checkout(path, git_dir, branch))
    return found


def _listed_by_git(repo: Repo, listing: bytes) -> list[Checkout]:
    records = [record.split("\0") for record in os.fsdecode(listing).split("\0\0")]
    entries = _entries_by_gitfile(repo.common_dir)
    found: list[Checkout] = []
    for lines in records:
        said = dict(line.partition(" ")[::2] for line in lines if line)
        place = _place_of(repo, entries, said["worktree"]) if said and "bare" not in said else None
        if place is not None:
            found.append(_checkout(*place, said.get("branch")))
    return found


def _entries_by_gitfile(common_dir: str) -> dict[str, str]:
    """The folders of linked worktrees in the shared `.git`, by the `.git` file each belongs to."""
    entries = Path(common_dir, "worktrees")
    each = _listed(entries)
    return {_first_line(entry / "gitdir"): str(entry) for entry in each}


def _checkout(path: str, git_dir: str, branch: str | None) -> Checkout:
    there = _names_in(git_dir)
    under_way = next((name for name in _UNDER_WAY if name in there), None)
    held = [_first_line(Path(git_dir, *names)) for names in _HOLDERS if names[0] in there]
    full = (name if name.startswith("refs/") else f"refs/heads/{name}" for name in held if name)
    return Checkout(
        path=path, git_dir=git_dir, branch=branch, under_way=under_way, held=tuple(full)
    )


def _place_of(repo: Repo, entries: Mapping[str, str], path: str) -> tuple[str, str] | None:
    """A working tree and its own git directory, looked up from the shared side."""
    entry = entries.get(f"{path}/.git")
    if entry is not None:
        return (path, entry) if Path(path).is_dir() else None
    main = _main(repo, path)
    return (main, repo.common_dir) if main is not None and Path(main).is_dir() else None


def _main(repo: Repo, named: str) -> str | None:
    """Return the main working tree, where git would name this one.

    Its `.git` may be foreign. For that of a submodule, or of a repository that lies apart, git
    names the git directory itself.
    """
    is_open = repo.git_dir == repo.common_dir and repo.worktree is not None
    main = repo.worktree if is_open else named
    return main if main is not None and Path(main) != Path(repo.common_dir) else None


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
    path = await _held(repo, branch, places) or await to_thread.run_sync(_away, repo, branch)
    if path is not None:
        name = branch.removeprefix("refs/heads/")
        hint = "Switch to another branch there; if it is gone for good, run `git worktree prune`."
        raise BranchTaken(name, why=f"is checked out in {path}", hint=hint)
    gone = await to_thread.run_sync(_on_branch, repo.common_dir, branch)
    holding = {*gone, *(place.git_dir for place in places if place.branch == branch)}
    commit = await resolve(repo, branch) if holding else None
    for git_dir in sorted(holding) if commit is not None else ():
        words = ("update-ref", "--no-deref", "-m", "plait: a newer attempt", "HEAD", str(commit))
        await repo.run(*words, call=WRITE, where=Where(git_dir=git_dir))


def _away(repo: Repo, branch: str) -> str | None:
    """Return where the user has a branch checked out on a disk that is away; git counts it too."""
    ours = set(our_entries(repo.common_dir))
    theirs = (one for one in _listed(Path(repo.common_dir, "worktrees")) if str(one) not in ours)
    holding = (one for one in theirs if _first_line(one / "HEAD") == f"ref: {branch}")
    return next((_first_line(one / "gitdir").removesuffix("/.git") for one in holding), None)


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
