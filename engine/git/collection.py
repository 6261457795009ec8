"""Collect the work of an attempt, whatever the agent did to its own repository.

Whatever reads the agent's files runs inside its sandbox (`engine.git.inside`). What arrives is
imported by a fetch that checks every object, under refs of the attempt's own, before anything is
said about it. Collecting twice gives the same commits. What is found late, once the work has been
recorded, is kept beside it and moves nothing.
"""

import os
import re
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from engine.beneath import Why, open_up
from engine.errors import GitFailed
from engine.git.arrivals import ARRIVING, LOST, MOST_REFS, name_arrivals, offer, salvage
from engine.git.conversion import attributes_of
from engine.git.disk_moment import DiskMoment
from engine.git.embedded import Embedded, keep_embedded
from engine.git.inside import (
    AgentRefs,
    InsideGit,
    Source,
    TreeOf,
    Wrap,
    outside,
    read_refs,
    require_room,
)
from engine.git.large_files import take_large_files
from engine.git.names import RefNames
from engine.git.nested import point_to
from engine.git.objects import (
    RefMove,
    RefMoved,
    TreeEntry,
    Wording,
    commit_bytes,
    few_refs_below,
    move_refs,
    parse_entry,
    refs_below,
    resolve,
    set_refs,
    tree_of,
)
from engine.git.runner import HERE, WRITE, Call, Repo, Where
from engine.git.seen_before import keep_index, note_sight, sight_of
from engine.git.settings import Signature
from engine.git.sparse import kept_note, mark_left_out
from engine.git.staging import BIG_FILE, MOST_NEW, UNREADABLE, Intake, SetAside, Staged, stage_all
from engine.git.stumbling import clear_objects, past_obstacles
from engine.git.submodules import hide_links
from engine.git.unsafe import is_unsafe
from engine.git.workspace import Workspace
from engine.git.worktrees import held_elsewhere
from engine.private import private_folder
from engine.values import dataclass

_MOST_REFUSALS = 8
_MOST_SINGLE = 30
"""So many refs are fetched one by one where fetching all of them is refused."""


@dataclass(frozen=True, kw_only=True)
class CollectedChange:
    """The commits of one attempt, now in the user's repository.

    Attributes:
        base: The commit the attempt started from.
        head: The commit it came to; the base itself when it changed nothing.
        tree: The head's tree.
        found_on: Where HEAD stood: a branch in full, `detached`, or `lost`.
        has_left_over: The head is a commit of ours, holding what the agent left uncommitted.
        refs: The agent's other refs, by the names they are now kept under.
        set_aside: Files that were not committed, and why; they are still in the workspace.
        ignored: What the repository's rules keep out of commits; folders end with a slash.
        embedded: Repositories inside the workspace, each kept as a bundle.
        notes: What a reviewer should know, as whole sentences.
    """

    base: str
    head: str
    tree: str
    found_on: str
    has_left_over: bool = False
    refs: tuple[tuple[str, str], ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    ignored: tuple[bytes, ...] = ()
    embedded: tuple[Embedded, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing was changed."""
        return self.head == self.base


@dataclass(frozen=True, kw_only=True)
class CollectRefused:
    """A refusal of what arrived; clone and worktree are as they were."""

    reason: str
    workspace: str
    git_dir: str


@dataclass(frozen=True, kw_only=True)
class CollectRequest:
    """A request to collect: the signer of left-over work and the (fixed) time, as the module says.

    `wrap` must let its command write `Workspace.collect_dir`, and read `path`, `git_dir` and
    `objects`; nothing else is needed.
    """

    author: Signature
    message: str = "Work left uncommitted\n"
    wrap: Wrap = outside
    big_file: int = BIG_FILE
    most_new: int = MOST_NEW
    most_refs: int = MOST_REFS


async def collect(
    repo: Repo, workspace: Workspace, request: CollectRequest, *, is_late: bool = False
) -> CollectedChange | CollectRefused:
    """Import everything an attempt made, under its own refs, and put its branch there.

    With `is_late`, neither its branch nor any ref of it moves: what none of them keeps comes
    below `RefNames.left`.

    Raises:
        GitFailed: Git could not even try; nothing is lost, and trying again is harmless.
    """
    if workspace.git_dir is None:
        tree = await tree_of(repo, workspace.base)
        return CollectedChange(base=workspace.base, head=workspace.base, tree=tree, found_on="none")
    source = await _source(repo, workspace, workspace.git_dir)
    await to_thread.run_sync(clear_objects, source.agent_git)
    sight = await to_thread.run_sync(sight_of, source.agent_git)
    async with InsideGit.opened(repo, source, request.wrap) as git:
        began = await to_thread.run_sync(DiskMoment.now, workspace.path)
        known = await _recorded(repo, workspace) if is_late else None
        change, arrivals = await _gather(git, workspace, request, sight.refs, known=known)
        await to_thread.run_sync(keep_index, git, workspace)
        embedded = await keep_embedded(
            repo, workspace, request.wrap, found=change.embedded, author=request.author
        )
        change = replace(change, embedded=embedded)
        take = partial(_import, repo, git, workspace, is_late=is_late)
        refused, found = await take(arrivals)
        is_recorded = known is not None and change.head == known.commit
        if refused is not None and not is_recorded:
            flat = await _flattened(git, workspace, (change, request, refused), take)
            if flat is None:
                return CollectRefused(
                    reason=refused, workspace=workspace.path, git_dir=workspace.git_dir
                )
            change, found = flat
    await to_thread.run_sync(take_large_files, (source.agent_git, git.git_dir), repo.common_dir)
    tip = found.pop(workspace.refs.branch_ref, None)
    is_whole = refused is None and not (change.set_aside or change.embedded)
    if is_whole and workspace.refs.head in found:
        head = (change.head, change.tree)
        await to_thread.run_sync(partial(note_sight, workspace, sight, head, found, began=began))
    if is_late:
        return change
    change = _arrived(workspace, change, arrivals, found)
    note = await settle(repo, workspace, change.head, tip=tip)
    return replace(change, notes=(*change.notes, note)) if note else change


async def _source(repo: Repo, workspace: Workspace, git_dir: str) -> Source:
    return Source(
        worktree=await to_thread.run_sync(_tree_to_read, workspace),
        agent_git=git_dir,
        folder=Path(workspace.collect_dir, "git"),
        index=Path(workspace.directory, "index"),
        start=Path(workspace.directory, "start"),
        attributes=await attributes_of(repo, workspace.base),
        cone=workspace.cone,
    )


async def _flattened(
    git: InsideGit,
    workspace: Workspace,
    what: tuple[CollectedChange, CollectRequest, str],
    take: "_Take",
) -> tuple[CollectedChange, dict[str, str]] | None:
    """Import the files as one commit, because the history was not accepted.

    Files that are the reason for a refusal are left out, and named. None where nothing helps.
    """
    change, request, refused = what
    note = f"plait did not accept the agent's history ({_first(refused)}); "
    note += "its files arrived as one commit."
    for _ in range(_MOST_REFUSALS):
        head = await commit_inside(git, change.tree, workspace.base, request)
        arrivals, _ = await name_arrivals(git, head, {}, author=request.author)
        again, found = await take(arrivals)
        if again is None:
            notes = (*change.notes, note)
            return replace(change, head=head, has_left_over=True, notes=notes), found
        less = await _without(git, workspace, change, again)
        if less is None:
            return None
        change = less
    return None


async def _without(
    git: InsideGit, workspace: Workspace, change: CollectedChange, refused: str
) -> CollectedChange | None:
    """Leave the files out that a refusal is about; the base's own versions stay.

    Those are the files whose objects it names. Where it names a folder, they are the paths that
    git accepts from nobody: an agent's own git may commit them all the same. A tree that is not
    written as git writes one is written again.
    """
    named = set(re.findall(r"\b[0-9a-f]{40,64}\b", refused))
    paths = [one.path for one in await _listed(git, change.tree) if _is_refused(one, named)]
    await git("read-tree", "--reset", change.tree)
    gone = b"".join(b"0 %040d\t%s\0" % (0, path) for path in paths)
    await git("update-index", "-z", "--index-info", stdin=gone)
    before = await _listed(git, workspace.base, *(os.fsdecode(path) for path in paths))
    kept = [one for one in before if not _is_refused(one, named)]
    stdin = b"".join(f"{one.mode} {one.oid}\t".encode() + one.path + b"\0" for one in kept)
    if kept:
        await git("update-index", "-z", "--index-info", stdin=stdin)
    tree = (await git("write-tree")).decode().strip()
    if tree == change.tree:
        return None
    aside = tuple(SetAside(path, 0, f"git refuses it: {_first(refused)}") for path in paths)
    return replace(change, tree=tree, set_aside=(*change.set_aside, *aside))


async def _listed(git: InsideGit, tree: str, *paths: str) -> list[TreeEntry]:
    """List the files of a tree, all or those at some paths."""
    listing = await git("ls-tree", "-r", "-z", tree, "--", *paths)
    return [parse_entry(record) for record in listing.split(b"\0") if record]


def _is_refused(entry: TreeEntry, named: Container[str]) -> bool:
    return entry.oid in named or is_unsafe(entry.path, entry.mode)


def _first(refused: str) -> str:
    """Return the line of a refusal that says why."""
    lines = [line for line in refused.split("\n") if line.startswith(("error: ", "fatal: "))]
    return (lines or [refused])[0].removeprefix("error: ").removeprefix("fatal: ")


def _tree_to_read(workspace: Workspace) -> str:
    """The worker's tree; where an agent removed it as a whole, an empty one of ours."""
    if Path(workspace.path).is_dir() and not Path(workspace.path).is_symlink():
        return workspace.path
    empty = Path(workspace.collect_dir, "empty")
    private_folder(empty)
    return str(empty)


def _is_empty(worktree: str) -> bool:
    return all(path.name == ".git" for path in Path(worktree).iterdir())


async def _recorded(repo: Repo, workspace: Workspace) -> TreeOf | None:
    """Return the head that is recorded, with its tree."""
    head = await resolve(repo, workspace.refs.head)
    return None if head is None else TreeOf(head, await tree_of(repo, head))


async def _gather(
    git: InsideGit,
    workspace: Workspace,
    request: CollectRequest,
    seen: AgentRefs,
    *,
    known: TreeOf | None,
) -> tuple[CollectedChange, dict[str, str]]:
    """Commit what was left over; the change, and what is to be imported for it, by name.

    Files that a known commit has are not committed again, under another name or time.
    """
    before = await to_thread.run_sync(read_refs, Path(workspace.directory, "start"))
    own = {ref: oid for ref, oid in seen.refs.items() if before.refs.get(ref) != oid}
    usable, kinds = await git.head_and_kinds(seen.head, list(own.values()))
    notes = [f"The agent had not finished its {what}." for what in _under_way(own)]
    stock = await _stock(git, workspace, request, usable)
    start, staged = stock.start, stock.staged
    head = arriving = start
    if known is not None and staged.tree == known.tree:
        head = known.commit
    elif staged.tree != stock.had:
        head = arriving = await commit_inside(git, staged.tree, start, request)
    kept = {ref: oid for ref, oid in own.items() if oid in kinds}
    missing = sorted(own.keys() - kept.keys())
    notes += [f"The agent's {ref} named an object that does not exist." for ref in missing[:20]]
    reached = [arriving, workspace.base, *kept.values(), *before.refs.values()]
    lost = await _lost(git, seen, reached)
    refs = kept | {f"{LOST}{oid[:12]}": oid for oid in lost}
    arrivals, said = await name_arrivals(
        git, arriving, refs, author=request.author, most=request.most_refs
    )
    notes += (*staged.notes, *seen.notes, *said)
    links = await _known_links(git, workspace.base) if staged.links else frozenset()
    change = CollectedChange(
        base=workspace.base,
        head=head,
        tree=staged.tree,
        found_on=seen.found_on,
        has_left_over=arriving != start,
        set_aside=staged.set_aside,
        ignored=staged.ignored,
        embedded=(
            *(Embedded(path=path) for path in staged.embedded),
            *(
                Embedded(path=path, link=oid if (path, oid) in links else None)
                for path, oid in staged.links
            ),
        ),
        notes=tuple(notes),
    )
    return change, arrivals


async def _ignored(git: InsideGit) -> tuple[bytes, ...]:
    """List what the repository's rules keep out of commits; folders end with a slash."""
    listing = await git("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
    return tuple(name for name in listing.split(b"\0") if name)


async def _forced(git: InsideGit, ignored: Sequence[bytes]) -> bytes:
    """List the ignored files that the agent put into its index all the same (`git add -f`)."""
    folders = {name.rstrip(b"/") for name in ignored}
    names = (await git.in_agents_index()).split(b"\0")
    taken = (name for name in names if _lies_in(name, folders) and not is_unsafe(name))
    return b"".join(name + b"\0" for name in taken)


class _Stock(NamedTuple):
    """A commit to build on, its tree, and the working tree staged on top of it."""

    start: str
    had: str
    staged: Staged


async def _stock(
    git: InsideGit, workspace: Workspace, request: CollectRequest, head: TreeOf | None
) -> _Stock:
    """Stage the tree on the agent's own commit, and name what no commit can hold.

    Git and the search for what it stumbles over go on beside each other. Where something was in
    git's way, or was closed and can be opened, all is looked at once more.
    """
    worktree = git.source.worktree
    work = partial(_stage, git, workspace.base, request, head)
    found, stock = await past_obstacles(worktree, work)
    notes = found.notes
    is_closed = found.is_closed or any(one.reason == UNREADABLE for one in stock.staged.set_aside)
    if is_closed and await to_thread.run_sync(_open_up, worktree):
        found, stock = await past_obstacles(worktree, work)
        notes += found.notes
    ignored = {name.rstrip(b"/") for name in stock.staged.ignored}
    odd = tuple(
        SetAside(one.path, 0, one.reason, is_empty=one.why is Why.NOT_A_FILE)
        for one in found.odd
        if not _lies_in(one.path, ignored)
    )
    staged = replace(
        stock.staged,
        set_aside=(*stock.staged.set_aside, *odd),
        notes=(*notes, *stock.staged.notes),
    )
    return stock._replace(staged=staged)


def _open_up(worktree: str) -> bool:
    return bool(open_up(worktree))


async def _stage(git: InsideGit, base: str, request: CollectRequest, head: TreeOf | None) -> _Stock:
    """Stage on the agent's commit, or on the base where that cannot be used."""
    notes: tuple[str, ...] = ()
    try:
        if head is not None:
            await git("read-tree", "--reset", head.tree)
    except GitFailed:  # objects are missing, or its tree reaches into a git directory
        head = None
    if head is None:
        had = (await git("rev-parse", f"{base}^{{tree}}")).decode().strip()
        head = TreeOf(base, had)
        await git("read-tree", "--reset", had)
        notes = ("The agent's HEAD was not usable, so plait put its files on the base.",)
    start, had = head
    if await to_thread.run_sync(_is_empty, git.source.worktree):
        note = "The working tree was empty, so only the commits are here."
        return _Stock(start, had, Staged(tree=had, notes=(*notes, note)))
    ignored = await _ignored(git)
    forced = await _forced(git, ignored) if ignored else b""
    intake = Intake(
        big_file=request.big_file,
        most_new=request.most_new,
        forced=forced,
        left_out=git.left_out,
    )
    staged = await stage_all(git, git.source.worktree, intake=intake, conversions=git)
    notes += kept_note(await git.not_deleted())
    if forced or staged.has_gone:
        ignored = await _ignored(git)
    return _Stock(start, had, replace(staged, ignored=ignored, notes=(*notes, *staged.notes)))


def _lies_in(path: bytes, folders: Container[bytes]) -> bool:
    parts = path.split(b"/")
    return any(b"/".join(parts[: n + 1]) in folders for n in range(len(parts)))


def _under_way(refs: Mapping[str, str]) -> list[str]:
    """Name what git was in the middle of, by the marks that it leaves."""
    marks = {"MERGE_HEAD": "merge", "rebase-": "rebase", "CHERRY_PICK": "cherry-pick"}
    return [
        what
        for mark, what in marks.items()
        if any(ref.startswith(f"refs/pseudo/{mark}") for ref in refs)
    ]


async def _known_links(git: InsideGit, base: str) -> frozenset[tuple[bytes, str]]:
    """The links of the base to commits of submodules: the user has those."""
    listing = (await git("ls-tree", "-r", "-z", base)).split(b"\0")
    entries = [parse_entry(record) for record in listing if record.startswith(b"160000")]
    return frozenset((entry.path, entry.oid) for entry in entries)


async def commit_inside(git: InsideGit, tree: str, parent: str, request: CollectRequest) -> str:
    """A commit of ours, written where the agent's objects are."""
    wording = Wording(message=request.message, author=request.author)
    content = commit_bytes(tree, [parent], wording)
    words = ("hash-object", "-t", "commit", "-w", "--stdin")
    return (await git(*words, stdin=content)).decode().strip()


async def _lost(git: InsideGit, seen: AgentRefs, kept: Sequence[str]) -> list[str]:
    """Commits that the agent once made and then dropped, by their newest ones."""
    kinds = await git.kinds(seen.logged)
    logged = [oid for oid, kind in kinds.items() if kind == "commit"]
    if not logged:
        return []
    names = (*logged, *(f"^{oid}" for oid in dict.fromkeys(kept)))
    stdin = "".join(f"{name}\n" for name in names).encode()
    try:
        listing = await git("rev-list", "--parents", "--stdin", stdin=stdin)
    except GitFailed:
        return []  # a history with holes in it: its named refs still arrive, or are refused
    lines = [line.split() for line in listing.decode().split("\n") if line]
    parents = {parent for line in lines for parent in line[1:]}
    return [line[0] for line in lines if line[0] not in parents]


_Imported = tuple[str | None, dict[str, str]]
"""The reason if not even the head arrived, and the workspace's refs and branch as they are then."""
_Take = Callable[[Mapping[str, str]], Awaitable[_Imported]]


async def _import(
    repo: Repo,
    git: InsideGit,
    workspace: Workspace,
    arrivals: Mapping[str, str],
    *,
    is_late: bool,
) -> _Imported:
    """Bring everything here; where a side ref is refused, at least the head."""
    names = workspace.refs
    pinned, branch = names.pinned, names.branch_ref
    had = await few_refs_below(repo, pinned, branch)
    folder = names.left if is_late else pinned
    if is_late:
        kept = {oid for ref, oid in had.items() if ref != branch}
        arrivals = {name: oid for name, oid in arrivals.items() if oid not in kept}
        await offer(git, arrivals)
    if set(arrivals.values()) <= set(had.values()):  # no object is new, as when looking once more
        due = {f"{folder}/{name}": oid for name, oid in arrivals.items()}
        with suppress(GitFailed):  # one stands where the folder of another would be
            await set_refs(repo, sorted(due.items() - had.items()), say="plait: collect")
            return None, await _once(repo, names, had | due)
    refused = await fetch_from(repo, git, f"+{ARRIVING}/*:{folder}/*")
    if refused is not None:
        refused = await _fetched(repo, git, folder, "head") if "head" in arrivals else None
        for name in sorted(arrivals.keys() - {"head"})[:_MOST_SINGLE]:
            await _fetched(repo, git, folder, name)
        here = await refs_below(repo, pinned)
        missing = sorted(set(arrivals.values()) - set(here.values()))
        await salvage(git, missing, workspace.base, partial(_fetched, repo, git, folder))
    found = await refs_below(repo, pinned, branch)
    if refused is None and arrivals.get("head") not in {None, found.get(f"{folder}/head")}:
        refused = "the head commit did not arrive"
    return refused, await _once(repo, names, found)


async def _once(repo: Repo, names: RefNames, found: Mapping[str, str]) -> dict[str, str]:
    """Delete what was left late and is recorded by now; return the refs that stand then."""
    late = f"{names.left}/"
    recorded = {
        oid for ref, oid in found.items() if ref != names.branch_ref and not ref.startswith(late)
    }
    gone = {ref: oid for ref, oid in found.items() if ref.startswith(late) and oid in recorded}
    for ref, oid in gone.items():
        with suppress(RefMoved):
            await move_refs(repo, [RefMove(ref, None, oid)], say="plait: recorded")
    return {ref: oid for ref, oid in found.items() if ref not in gone}


def _arrived(
    workspace: Workspace,
    change: CollectedChange,
    arrivals: Mapping[str, str],
    found: Mapping[str, str],
) -> CollectedChange:
    """Return the change with the agent's other refs as they are kept now.

    Those that were not accepted are named.
    """
    names = workspace.refs
    refs = tuple((ref, found[ref]) for ref in sorted(found) if ref not in {names.head, names.base})
    lost = [name for name in sorted(arrivals) if f"{names.pinned}/{name}" not in found]
    notes = tuple(f"plait did not accept the agent's {name}." for name in lost if name != "head")
    return replace(change, refs=refs, notes=(*change.notes, *notes[:_MOST_SINGLE]))


async def _fetched(repo: Repo, git: InsideGit, pinned: str, name: str) -> str | None:
    return await fetch_from(repo, git, f"+{ARRIVING}/{name}:{pinned}/{name}")


async def fetch_from(
    repo: Repo, git: InsideGit, refspec: str, *, where: Where = HERE
) -> str | None:
    """Fetch from our git directory inside the sandbox; why it was refused, or None."""
    words = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
    words += ["--no-auto-maintenance", f"--upload-pack={git.upload_pack}", git.git_dir, refspec]
    call = Call(
        writes=True,
        ok=tuple(range(256)),
        flags=("-c", "protocol.file.allow=always", "-c", "fetch.fsckObjects=true"),
        timeout_s=1800,
    )
    async with repo.lock.held():
        done = await repo.run(*words, call=call, where=where)
    if not done.exit_code:
        return None
    said = done.stderr.decode(errors="replace").strip()
    await require_room(["fetch"], said, Path(repo.common_dir))
    return said


async def settle(repo: Repo, workspace: Workspace, head: str, *, tip: str | None) -> str:
    """Put the branch on the head, and let the linked worktree say so; what was left undone."""
    branch, admin = workspace.refs.branch_ref, workspace.admin
    async with repo.lock.held():
        held = await held_elsewhere(repo, branch)
        is_there = admin is not None and await to_thread.run_sync(os.path.isdir, admin)
        is_due = held is None and tip != head
        if admin is not None and is_there and is_due:
            where = Where(git_dir=admin, worktree=repo.void)
            await repo.run("read-tree", "--reset", head, call=WRITE, where=where)
            await mark_left_out(repo, workspace.cone, where, workspace.path)
            await hide_links(repo, admin)
        if is_due:  # last: a branch that stands there says that all of this was done
            await set_refs(repo, [(branch, head)], say="plait: collect")
    if is_there and admin is not None and workspace.gitfile is None:
        await to_thread.run_sync(point_to, workspace.path, admin)
    return f"{workspace.branch} is checked out in {held}, so plait did not move it." if held else ""


def lead_inside(workspace: Workspace) -> None:
    """Let the workspace's own `.git` lead to the private repository, where nothing hides it.

    Collecting leads it back to the user's, which the next piece of work cannot see.
    """
    if workspace.admin is not None and workspace.gitfile is None and workspace.git_dir is not None:
        point_to(workspace.path, workspace.git_dir)
