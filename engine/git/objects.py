"""Objects and refs by themselves: read many, write one, move a ref only from where it was seen."""

import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp

import anyio
from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.plumbing import asking
from engine.git.plumbing.loose import keep_commit
from engine.git.refs import has_ref_files, refs_in_files
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.settings import Signature

_ID = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHARED_REF = re.compile(r"refs/(?:heads|plait)/[\w@./-]+", re.ASCII)
"""The name of a ref that all worktrees share, and of nothing else."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One file of a tree: its path, mode (`100644`, `120000`, `160000` …) and object."""

    path: bytes
    mode: str
    oid: str


@dataclass(frozen=True, slots=True)
class RefMove:
    """A ref to be moved from `old` to `new`; None is absence."""

    ref: str
    new: str | None
    old: str | None


class RefMoved(GitFailed):
    """A ref was no longer where it had been seen, so nothing was moved."""


def is_id(name: str) -> bool:
    """It is an object's whole id, and so means the same forever."""
    return bool(_ID.fullmatch(name))


async def resolve(repo: Repo, revision: str, kind: str = "commit") -> str | None:
    """The object that a revision names, followed to a kind; None when it names none."""
    is_in_files = kind == "commit" and has_ref_files(await repo.configuration())
    ref = await to_thread.run_sync(_ref_in, repo, revision) if is_in_files else None
    if ref is not None:
        return await read_ref(repo, ref)
    words = ("rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{{kind}}}")
    here = Where(git_dir=repo.git_dir)
    done = await repo.run(*words, call=Call(ok=(0, 1, 128)), where=here)
    return done.stdout.decode().strip() if done.exit_code == 0 else None


def _ref_in(repo: Repo, revision: str) -> str | None:
    """Return the ref that a revision is the whole name of, be it the one that HEAD stands on."""
    if revision == "HEAD":
        try:
            head = Path(repo.git_dir, "HEAD").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        revision = head.removeprefix("ref: ").removesuffix("\n")
    return revision if _SHARED_REF.fullmatch(revision) and ".." not in revision else None


async def commit_of(repo: Repo, revision: str) -> str:
    """The commit that a revision names.

    Raises:
        WorkspaceError: It names none.
    """
    found = await resolve(repo, revision)
    if found is None:
        raise WorkspaceError(f"{revision!r} is not a commit of this repository")
    return found


async def commits_of(repo: Repo, *revisions: str) -> tuple[str, ...]:
    """The commits that revisions name where the repository was opened; their trees become known.

    Raises:
        WorkspaceError: One names none.
    """
    own = None if repo.git_dir == repo.common_dir else repo.git_dir
    names = [f"{revision}^{{commit}}".replace("\n", " ") for revision in revisions]
    found = await read_objects(repo, names, Where(git_dir=own))
    for revision, one in zip(revisions, found, strict=True):
        if one is None:
            raise WorkspaceError(f"{revision!r} is not a commit of this repository")
        learn_commit(repo, *one)
    return tuple(one[0] for one in found if one is not None)


async def tree_of(repo: Repo, revision: str) -> str:
    """The tree of a commit.

    Raises:
        WorkspaceError: It names none.
    """
    found = repo.cache.trees.get(revision) or await resolve(repo, revision, "tree")
    if found is None:
        raise WorkspaceError(f"{revision!r} is not a tree of this repository")
    if is_id(revision):
        repo.cache.learn_tree(revision, found)
    return found


@asynccontextmanager
async def scratch_folder(
    repo: Repo,
    fill: Callable[[Path], None] | None = None,
    harvest: Callable[[Path], None] | None = None,
) -> AsyncIterator[Path]:
    """A folder of ours, filled by the caller, gone afterwards, on the repository's file system.

    What came of it is harvested if all went well.
    """
    folder = await to_thread.run_sync(_scratch, repo.plait_dir / "git", fill)
    is_ripe = False
    try:
        yield folder
        is_ripe = True
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_clear, folder, harvest if is_ripe else None)


def _scratch(parent: Path, fill: Callable[[Path], None] | None) -> Path:
    folder = Path(mkdtemp(prefix="scratch-", dir=parent))
    if fill is not None:
        try:
            fill(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def _clear(folder: Path, harvest: Callable[[Path], None] | None) -> None:
    try:
        if harvest is not None:
            harvest(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def read_blobs(repo: Repo, oids: Sequence[str], where: Where = HERE) -> list[bytes]:
    """The bytes of many objects, in order, by one process.

    Raises:
        WorkspaceError: One of them is missing.
    """
    found: list[bytes] = []
    for oid, known in zip(oids, await read_objects(repo, oids, where), strict=True):
        if known is None:
            raise WorkspaceError(f"the object {oid} is missing from the repository")
        found.append(known[1])
    return found


async def read_objects(
    repo: Repo, names: Sequence[str], where: Where = HERE
) -> list[tuple[str, bytes] | None]:
    """Ids and bytes of what some names mean, in order; None for one that means nothing."""
    if not names:
        return []
    known = await asking.objects(repo.standing, names, where)
    if known is not None:
        return known
    asked = "".join(f"{name}\n" for name in names).encode()
    answer = await repo.read("cat-file", "--batch", call=Call(stdin=asked), where=where)
    found: list[tuple[str, bytes] | None] = []
    place = 0
    for _ in names:
        end = answer.index(b"\n", place)
        words = answer[place:end].split(b" ")
        if len(words) != 3 or not words[2].isdigit():  # noqa: PLR2004 (id, kind, size)
            found.append(None)
            place = end + 1
            continue
        size = int(words[2])
        found.append((words[0].decode(), answer[end + 1 : end + 1 + size]))
        place = end + 2 + size
    return found


async def read_sizes(repo: Repo, oids: Sequence[str], where: Where = HERE) -> list[int | None]:
    """Return the sizes of objects in bytes, in order; None for one that is missing."""
    known = await asking.sizes(repo.standing, oids, where) if oids else []
    if known is not None:
        return known
    asked = "".join(f"{oid}\n" for oid in oids).encode()
    words = ("cat-file", "--batch-check=%(objectname) %(objectsize)")
    listing = await repo.read(*words, call=Call(stdin=asked), where=where)
    return [asking.size_in(line) for line in listing.split(b"\n") if line]


async def read_ref(repo: Repo, ref: str, *commits: str) -> str | None:
    """The commit that a ref names, if it names one.

    By the same process its tree becomes known, and those of some more commits, for what is asked
    next. The tree is read from the commit itself: asked apart, the ref may have moved in between.
    """
    unknown = [commit for commit in commits if repo.cache.trees.get(commit) is None]
    said = await to_thread.run_sync(own_file, repo, ref)
    if not unknown and repo.cache.trees.get(said) is not None:
        return said
    found = await read_objects(repo, [f"{name}^{{commit}}" for name in (ref, *unknown)])
    for one in found:
        if one is not None:
            learn_commit(repo, *one)
    return found[0][0] if found[0] is not None else None


def learn_commit(repo: Repo, oid: str, content: bytes) -> tuple[str, ...]:
    """Keep in mind what a commit says of its tree and its parents; the parents."""
    lines = content.split(b"\n\n", 1)[0].decode(errors="replace").split("\n")
    parents = tuple(line[7:] for line in lines if line.startswith("parent "))
    repo.cache.learn_commit(oid, lines[0].removeprefix("tree "), parents)
    return parents


async def parents_at_once(repo: Repo, commits: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Return the parents of commits without starting a git; None where that cannot be done."""
    known = {commit: repo.cache.parents.get(commit) for commit in commits}
    unknown = [commit for commit, parents in known.items() if parents is None]
    read = await asking.objects(repo.standing, unknown, HERE) if unknown else []
    if read is None or None in read:
        return None
    known |= {one[0]: learn_commit(repo, *one) for one in read if one is not None}
    return {commit: parents for commit, parents in known.items() if parents is not None}


async def tree_difference(repo: Repo, old: str, new: str, where: Where = HERE) -> bytes:
    """Return what `diff-tree -r -z --raw` says of two trees or commits, renames unfollowed."""
    answer = await asking.difference(repo.standing, old, new, where)
    if answer is None:
        answer = await repo.read(*asking.DIFF, old, new, "--", where=where)
    return answer


async def stands_at(repo: Repo, ref: str, commit: str | None) -> bool:
    """A ref is at a commit, or absent."""
    said = await to_thread.run_sync(own_file, repo, ref)
    return (commit is not None and said == commit) or await resolve(repo, ref) == commit


def own_file(repo: Repo, ref: str) -> str:
    """Return the content of the file that git may keep for this ref alone; it comes first."""
    try:
        return Path(repo.common_dir, ref).read_bytes().decode(errors="replace").strip()
    except OSError:
        return ""


async def write_blob(repo: Repo, content: bytes, where: Where = HERE) -> str:
    """Store bytes as they are; their id."""
    words = ("hash-object", "-w", "--stdin", "--no-filters")
    if not content:
        return await repo.line(*words, where=where)  # stdin is the empty device
    return await repo.line(*words, call=Call(stdin=content), where=where)


async def list_tree(repo: Repo, tree: str, where: Where = HERE) -> list[TreeEntry]:
    """Every file of a tree, submodules included, in git's order."""
    listing = await repo.read("ls-tree", "-r", "-z", "--full-tree", tree, where=where)
    return [parse_entry(record) for record in listing.split(b"\0") if record]


def parse_entry(record: bytes) -> TreeEntry:
    """One record of `ls-tree -z`: mode, kind, id, tab, path."""
    head, path = record.split(b"\t", 1)
    mode, _, oid = head.decode().split(" ")[:3]
    return TreeEntry(path, mode, oid)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """The message of a commit and who signs it; the committer is the author unless said."""

    message: str
    author: Signature
    committer: Signature | None = None


def commit_bytes(tree: str, parents: Sequence[str], wording: Wording) -> bytes:
    """A commit as git stores it."""
    committer = wording.committer or wording.author
    lines = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in parents)]
    lines += [b"author " + wording.author.line, b"committer " + committer.line, b""]
    return b"\n".join(lines) + b"\n" + wording.message.encode(errors="surrogateescape")


def object_id(repo: Repo, kind: str, content: bytes) -> str:
    """The id that git will give to these bytes."""
    name = "sha256" if repo.object_format == "sha256" else "sha1"
    return hashlib.new(name, b"%s %d\0" % (kind.encode(), len(content)) + content).hexdigest()


async def write_commit(
    repo: Repo, tree: str, parents: Sequence[str], wording: Wording, *, where: Where = HERE
) -> str:
    """Store an unsigned commit; the same arguments always give the same id."""
    content = commit_bytes(tree, parents, wording)
    oid = object_id(repo, "commit", content)
    try:
        if repo.settings.is_shared:
            raise PermissionError("git knows who is to read it")
        folder = Path(where.objects or f"{repo.common_dir}/objects")
        await to_thread.run_sync(keep_commit, folder, oid, content)
    except OSError:
        words = ("hash-object", "-t", "commit", "-w", "--stdin")
        oid = await repo.line(*words, call=Call(stdin=content), where=where)
    repo.cache.learn_commit(oid, tree, parents)
    return oid


async def sign_commit(repo: Repo, tree: str, parents: Sequence[str], wording: Wording) -> str:
    """Store a commit, signed where the user's configuration says so.

    Raises:
        GitFailed: The signing program refused.
    """
    signing = repo.settings.signing
    if signing is None:
        return await write_commit(repo, tree, parents, wording)
    committer = wording.committer or wording.author
    env = {
        **repo.settings.environment,
        **wording.author.environment("AUTHOR"),
        **committer.environment("COMMITTER"),
    }
    words = ["commit-tree", "-S", tree, "-F", "-"]
    words += [word for parent in parents for word in ("-p", parent)]
    call = Call(stdin=wording.message.encode(), flags=signing.flags, env=env)
    return await repo.line(*words, call=call)


async def move_refs(
    repo: Repo,
    moves: Iterable[RefMove],
    *,
    say: str,
    drops: Iterable[str] = (),
    where: Where = HERE,
    is_one_of_many: bool = False,
) -> None:
    """Move refs together, each only from where it was seen, or none of them.

    `drops` are refs of ours that go in the same moment, wherever they stand, if they are there.
    One of many such moves is left to a standing git, if there may be one.

    Raises:
        RefMoved: One was somewhere else.
    """
    zero = repo.zero
    steps = [
        f"update {move.ref}\0{move.new or zero}\0{move.old or zero}\0"
        if move.new
        else f"delete {move.ref}\0{move.old or zero}\0"
        for move in moves
        if move.new or move.old
    ]
    if not steps:
        return
    steps += [f"delete {ref}\0\0" for ref in drops]
    told = "".join(steps).encode()
    if is_one_of_many and await _move_at_once(repo, told, say, where):
        return
    call = Call(stdin=told, writes=True)
    try:
        await repo.run("update-ref", "--stdin", "-z", "-m", say, call=call, where=where)
    except GitFailed as failed:
        raise RefMoved(failed.argv, failed.exit_code, failed.stderr) from failed


async def _move_at_once(repo: Repo, steps: bytes, say: str, where: Where) -> bool:
    if where.git_dir == repo.common_dir:
        where = replace(where, git_dir=None)  # one standing git for both ways of saying it
    return await asking.moves(repo.standing, steps, say, where)


async def set_refs(
    repo: Repo, refs: Iterable[tuple[str, str]], *, say: str, is_one_of_many: bool = False
) -> None:
    """Point refs of ours where they belong, wherever they were."""
    steps = "".join(f"update {ref}\0{new}\0\0" for ref, new in refs).encode()
    if steps and not (is_one_of_many and await _move_at_once(repo, steps, say, HERE)):
        call = Call(stdin=steps, writes=True)
        await repo.run("update-ref", "--stdin", "-z", "-m", say, call=call)


async def refs_below(repo: Repo, *prefixes: str, where: Where = HERE) -> dict[str, str]:
    """Refs that are or lie below the prefixes, with the objects they name; no symbolic ones."""
    words = ("for-each-ref", "--format=%(objectname) %(refname)%(if)%(symref)%(then) @%(end)")
    listing = (await repo.read(*words, *prefixes, where=where)).decode(errors="surrogateescape")
    pairs = [line.split(" ", 1) for line in listing.split("\n") if line]
    return {ref: oid for oid, ref in pairs if not ref.endswith(" @")}


async def few_refs_below(repo: Repo, *prefixes: str) -> dict[str, str]:
    """Return what `refs_below` does, for names of ours: without git, where refs are files."""
    if has_ref_files(await repo.configuration()):
        found = await to_thread.run_sync(refs_in_files, repo.common_dir, prefixes)
        if found is not None:
            return found
    return await refs_below(repo, *prefixes)
