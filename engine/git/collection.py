"""Taking in what an attempt came to, whatever the agent did to its own repository.

Whatever reads the agent's files runs inside its sandbox (`engine.git.inside`). What arrives is
imported by a fetch that checks every object, under refs of the attempt's own, before anything is
said about it. Collecting twice gives the same commits.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed
from engine.git.embedded import Embedded, keep_embedded
from engine.git.inside import AgentRefs, InsideGit, Site, Wrap, outside, read_refs, sane_name
from engine.git.large import take_large_files
from engine.git.objects import (
    Wording,
    commit_bytes,
    parse_entry,
    refs_below,
    resolve,
    set_refs,
    tree_of,
)
from engine.git.runner import HERE, WRITE, Call, Repo, Where
from engine.git.settings import Signature
from engine.git.staging import BIG_FILE, SetAside, Staged, stage_all
from engine.git.submodules import hide_links
from engine.git.workspace import Workspace
from engine.git.worktrees import held_elsewhere

_ARRIVING = "refs/collect"


@dataclass(frozen=True, kw_only=True)
class Change:
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
    """What arrived was not accepted; clone and worktree are as they were."""

    reason: str
    workspace: str
    git_dir: str


@dataclass(frozen=True, kw_only=True)
class CollectRequest:
    """How to collect: who signs the left-over work, and when (a fixed time: see the module).

    `wrap` must let its command write `Workspace.collect_dir`, and read `path`, `git_dir` and
    `objects`; nothing else is needed.
    """

    author: Signature
    message: str = "Work left uncommitted\n"
    wrap: Wrap = outside
    big_file: int = BIG_FILE


async def collect(
    repo: Repo, workspace: Workspace, request: CollectRequest
) -> Change | CollectRefused:
    """Import everything an attempt made, under its own refs, and put its branch there.

    Raises:
        GitFailed: Git could not even try; nothing is lost, and trying again is harmless.
    """
    if workspace.git_dir is None:
        tree = await tree_of(repo, workspace.base)
        return Change(base=workspace.base, head=workspace.base, tree=tree, found_on="none")
    site = Site(
        worktree=await to_thread.run_sync(_tree_to_read, workspace),
        agent_git=workspace.git_dir,
        folder=Path(workspace.collect_dir, "git"),
        index=Path(workspace.directory, "index"),
        start=Path(workspace.directory, "start"),
    )
    async with InsideGit.opened(repo, site, request.wrap) as git:
        change, arrivals = await _gather(git, workspace, request)
        embedded = await keep_embedded(
            repo, workspace, request.wrap, found=change.embedded, author=request.author
        )
        change = replace(change, embedded=embedded)
        refused = await _import(repo, git, workspace, arrivals)
        if refused is not None:
            change = await _flattened(git, workspace, (change, request), refused)
            if await _import(repo, git, workspace, await _name_arrivals(git, change.head, {}, ())):
                return CollectRefused(
                    reason=refused, workspace=workspace.path, git_dir=workspace.git_dir
                )
    large = (site.agent_git, git.git_dir)
    await to_thread.run_sync(take_large_files, large, repo.common_dir)
    change, tip = await _arrived(repo, workspace, change)
    note = await _settle(repo, workspace, change.head, tip=tip)
    return replace(change, notes=(*change.notes, note)) if note else change


async def _flattened(
    git: InsideGit, workspace: Workspace, what: tuple[Change, CollectRequest], refused: str
) -> Change:
    """The change as one commit of its files, because its history was not accepted."""
    change, request = what
    head = await commit_inside(git, change.tree, workspace.base, request)
    note = f"Its history was not accepted ({refused}); its files arrived as one commit."
    return replace(change, head=head, has_left_over=True, notes=(*change.notes, note))


def _tree_to_read(workspace: Workspace) -> str:
    """The worker's tree; where an agent removed it as a whole, an empty one of ours."""
    if Path(workspace.path).is_dir() and not Path(workspace.path).is_symlink():
        return workspace.path
    empty = Path(workspace.collect_dir, "empty")
    empty.mkdir(parents=True, exist_ok=True)
    return str(empty)


def _is_empty(worktree: str) -> bool:
    return all(path.name == ".git" for path in Path(worktree).iterdir())


async def _gather(
    git: InsideGit, workspace: Workspace, request: CollectRequest
) -> tuple[Change, dict[str, str]]:
    """Commit what was left over; the change, and what is to be imported for it, by name."""
    seen = await to_thread.run_sync(read_refs, Path(git.site.agent_git))
    before = await to_thread.run_sync(read_refs, Path(workspace.directory, "start"))
    own = {ref: oid for ref, oid in seen.refs.items() if before.refs.get(ref) != oid}
    kinds = await git.kinds([*({seen.head} if seen.head else ()), *own.values()])
    notes = [f"The agent had not ended its {what}." for what in _under_way(own)]
    start = await _start(git, seen, kinds)
    if start is None:
        start = workspace.base
        notes.append("The agent's HEAD could not be used, so its files were put on the base.")
        await git("read-tree", "--reset", start)
    head = start
    had = (await git("rev-parse", f"{start}^{{tree}}")).decode().strip()
    if await to_thread.run_sync(_is_empty, git.site.worktree):
        staged = Staged(tree=had)
        notes.append("The working tree was empty, so only what was committed is here.")
    else:
        staged = await stage_all(git, git.site.worktree, big_file=request.big_file)
    if staged.tree != had:
        head = await commit_inside(git, staged.tree, start, request)
    kept = {ref: oid for ref, oid in own.items() if oid in kinds}
    missing = sorted(own.keys() - kept.keys())
    notes += [f"The agent's {ref} named an object that is not there." for ref in missing[:20]]
    known = [head, workspace.base, *kept.values(), *before.refs.values()]
    lost = await _lost(git, seen, known)
    arrivals = await _name_arrivals(git, head, kept, lost)
    links = await _known_links(git, workspace.base) if staged.links else frozenset()
    ignored = await git("ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory")
    change = Change(
        base=workspace.base,
        head=head,
        tree=staged.tree,
        found_on=seen.found_on,
        has_left_over=head != start,
        set_aside=staged.set_aside,
        ignored=tuple(name for name in ignored.split(b"\0") if name),
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


def _under_way(refs: Mapping[str, str]) -> list[str]:
    """What git was in the middle of, by the marks that it leaves."""
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


async def _start(git: InsideGit, seen: AgentRefs, kinds: dict[str, str]) -> str | None:
    """The agent's own commit, laid into our index; None if there is none that can be."""
    if seen.head is None or kinds.get(seen.head) != "commit":
        return None
    try:
        await git("read-tree", "--reset", seen.head)
    except GitFailed:
        return None  # objects are missing, or its tree reaches into a git directory
    return seen.head


async def commit_inside(git: InsideGit, tree: str, parent: str, request: CollectRequest) -> str:
    """A commit of ours, written where the agent's objects are."""
    wording = Wording(message=request.message, author=request.author)
    content = commit_bytes(tree, [parent], wording)
    words = ("hash-object", "-t", "commit", "-w", "--stdin")
    return (await git(*words, stdin=content)).decode().strip()


async def _lost(git: InsideGit, seen: AgentRefs, kept: Sequence[str]) -> list[str]:
    """Commits that the agent once made and then let go, by their newest ones."""
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


async def _name_arrivals(
    git: InsideGit, head: str, kept: dict[str, str], lost: Sequence[str]
) -> dict[str, str]:
    """Name what is to be fetched, by refs in our own git directory; the ends of those names."""
    named = {"head": head}
    for ref, oid in kept.items():
        plain = hashlib.sha256(ref.encode(errors="surrogateescape")).hexdigest()[:12]
        named[ref if sane_name(ref) else f"refs/odd/{plain}"] = oid
    named |= {f"lost/{oid[:12]}": oid for oid in lost}
    lines = "".join(f"{oid} {_ARRIVING}/{name}\n" for name, oid in sorted(named.items()))
    await to_thread.run_sync(Path(git.git_dir, "packed-refs").write_text, lines)
    return named


async def _import(
    repo: Repo, git: InsideGit, workspace: Workspace, arrivals: Mapping[str, str]
) -> str | None:
    """Bring everything here; where a side ref is refused, at least the head. Why not even that."""
    pinned = workspace.refs.pinned
    had = await refs_below(repo, pinned)
    if set(arrivals.values()) <= set(had.values()):  # no object is new, as when looking once more
        moved = {f"{pinned}/{name}": oid for name, oid in arrivals.items()}.items() - had.items()
        with suppress(GitFailed):  # one stands where the folder of another would be
            await set_refs(repo, sorted(moved), say="plait: collect")
            return None
    refused = await fetch_from(repo, git, f"+{_ARRIVING}/*:{pinned}/*")
    if refused is not None:
        refused = await fetch_from(repo, git, f"+{_ARRIVING}/head:{pinned}/head")
    if refused is None and await resolve(repo, workspace.refs.head) != arrivals["head"]:
        return "the head did not arrive"
    return refused


async def _arrived(repo: Repo, workspace: Workspace, change: Change) -> tuple[Change, str | None]:
    """The change with the agent's other refs as they are kept now; where its branch stands."""
    names = workspace.refs
    found = await refs_below(repo, names.pinned, names.branch_ref)
    tip = found.pop(names.branch_ref, None)
    refs = tuple((ref, found[ref]) for ref in sorted(found) if ref not in {names.head, names.base})
    return replace(change, refs=refs), tip


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
    return done.stderr.decode(errors="replace").strip() if done.exit_code else None


async def _settle(repo: Repo, workspace: Workspace, head: str, *, tip: str | None) -> str:
    """Put the branch on the head, and let the linked worktree say so; what was left undone."""
    branch, admin = workspace.refs.branch_ref, workspace.admin
    async with repo.lock.held():
        held = await held_elsewhere(repo, branch)
        is_there = admin is not None and await to_thread.run_sync(os.path.isdir, admin)
        is_due = held is None and tip != head
        if admin is not None and is_there and is_due:
            where = Where(git_dir=admin, worktree=repo.void)
            await repo.run("read-tree", "--reset", head, call=WRITE, where=where)
            await hide_links(repo, admin)
        if is_due:  # last: a branch that stands there says that all of this was done
            await set_refs(repo, [(branch, head)], say="plait: collect")
    if is_there and admin is not None and workspace.gitfile is None:
        await to_thread.run_sync(_point_to, Path(workspace.path, ".git"), admin)
    return f"{workspace.branch} is checked out in {held}, so it was not moved." if held else ""


def _point_to(gitfile: Path, admin: str) -> None:
    """Let the workspace's own `.git` lead to the user's repository again."""
    if not gitfile.parent.is_dir() or (gitfile.is_dir() and not gitfile.is_symlink()):
        return  # the agent removed the tree, or made a repository there: that is kept, and listed
    # Not by renaming: a file left beside it by a death would be taken for the agent's. A death
    # here is repaired by collecting again. A link that lies there is removed, never followed.
    gitfile.unlink(missing_ok=True)
    with gitfile.open("xb") as written:
        written.write(b"gitdir: " + os.fsencode(admin) + b"\n")
