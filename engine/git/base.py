"""The start of an attempt: a commit, the user's uncommitted state, or an empty beginning."""

from dataclasses import replace

from engine.errors import WorkspaceError
from engine.git.objects import Wording, commit_of, resolve, tree_of, write_commit
from engine.git.runner import Call, Repo, Where
from engine.git.settings import Signature
from engine.git.staging import Staged, private_index, stage_all
from engine.values import dataclass

WORKTREE = "WORKTREE"
"""Asks for the user's working tree as it is, uncommitted edits included."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A commit to start from.

    Attributes:
        commit: Its id; it exists in the user's repository, but perhaps on no branch.
        tree: Its tree.
        left_out: Paths that the user has changed and that are *not* in the base.
        is_snapshot: It holds uncommitted edits of the user's.
    """

    commit: str
    tree: str
    left_out: tuple[bytes, ...] = ()
    is_snapshot: bool = False


async def resolve_base(repo: Repo, said: str, signature: Signature) -> Base:
    """The base that `said` names: a revision, `HEAD`, or `WORKTREE` for the user's edits too.

    Raises:
        WorkspaceError: It names nothing, or the repository is bare and has no edits.
    """
    if said == WORKTREE:
        return await _snapshot(repo, signature)
    commit = await resolve(repo, said)
    if commit is None and said == "HEAD":
        commit = await _beginning(repo, signature)
    elif commit is None:
        commit = await commit_of(repo, said)
    dirty = await dirty_paths(repo) if said == "HEAD" else ()
    return Base(commit=commit, tree=await tree_of(repo, commit), left_out=dirty)


async def _beginning(repo: Repo, signature: Signature) -> str:
    """A first commit with nothing in it, for a repository without any."""
    wording = Wording(message="Begin with an empty commit\n", author=signature)
    empty = await repo.line("mktree", call=Call())
    return await write_commit(repo, empty, [], wording)


async def dirty_paths(repo: Repo) -> tuple[bytes, ...]:
    """Return the paths that the user has changed and not committed, untracked files included."""
    if repo.worktree is None:
        return ()
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree)
    words = ("status", "--porcelain=v2", "-z", "--untracked-files=normal", "--no-renames")
    listing = await repo.read(*words, "--ignore-submodules=all", where=where)
    fields = {b"1": 8, b"u": 10, b"?": 1}
    records = [record for record in listing.split(b"\0") if record[:1] in fields]
    return tuple(record.split(b" ", fields[record[:1]])[-1] for record in records)


async def _snapshot(repo: Repo, signature: Signature) -> Base:
    """A commit of the user's working tree on top of HEAD; the user's index is not touched."""
    if repo.worktree is None:
        raise WorkspaceError("a bare repository has no uncommitted edits", hint="Name a revision.")
    head = await resolve(repo, "HEAD") or await _beginning(repo, signature)
    staged = await stage_worktree(repo, head)
    left_out = (*(file.path for file in staged.set_aside), *staged.embedded)
    if staged.tree == await tree_of(repo, head):
        return Base(commit=head, tree=staged.tree, left_out=left_out)
    wording = Wording(message="Uncommitted edits\n", author=signature)
    commit = await write_commit(repo, staged.tree, [head], wording)
    return Base(commit=commit, tree=staged.tree, left_out=left_out, is_snapshot=True)


async def stage_worktree(repo: Repo, head: str, *, objects: str | None = None) -> Staged:
    """The user's working tree as a tree, through an index of our own.

    New objects go to the repository, or to the folder `objects` alone.
    """
    if repo.worktree is None:
        raise WorkspaceError("a bare repository has no working tree")
    where = Where(git_dir=repo.git_dir, worktree=repo.worktree, objects=objects)
    return await stage_place(repo, head, where)


async def stage_place(repo: Repo, head: str, place: Where) -> Staged:
    """Any working tree of the user's as a tree; its own index is only read."""
    if place.worktree is None:
        raise WorkspaceError("there is no working tree")
    async with private_index(repo, copy_of=f"{place.git_dir}/index") as index:
        where = replace(place, index=index)
        await repo.run("read-tree", "--reset", head, where=where)

        async def git(*words: str, stdin: bytes = b"") -> bytes:
            call = Call(stdin=stdin, flags=repo.settings.lfs_flags)
            return await repo.read(*words, call=call, where=where)

        return await stage_all(git, place.worktree)
