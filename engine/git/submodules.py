"""Submodules in a workspace: those the user has, at the commits of the base, in clones of our own.

Nothing is fetched: a submodule that the user never initialized stays the empty folder that git
makes. Each one's git directory lies in the private clone, where the agent may ruin it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.git.cone import Cone
from engine.git.objects import list_tree, resolve
from engine.git.private import PrivateClone, make_private
from engine.git.runner import Call, Repo, Where
from engine.git.unsafe import is_unsafe

LINK = "160000"
_LINK_MODE = int(LINK, 8).to_bytes(4)
_ELSEWHERE = b"link"
"""The extension of an index whose entries lie in another file."""


@dataclass(frozen=True, slots=True)
class _Submodule:
    name: str
    path: str
    commit: str


async def fill_submodules(
    repo: Repo, base: str, *, worktree: Path, private: Path, cone: Cone | None = None
) -> tuple[str, ...]:
    """Fill the submodules of a commit, or of a part of it; the object folders they borrow from."""
    borrowed: list[str] = []
    for one in await _listed(repo, base):
        if cone is not None and not cone.holds(os.fsencode(one.path)):
            continue
        source = Path(repo.common_dir, "modules", one.name)
        if not await to_thread.run_sync((source / "objects").is_dir):
            continue
        inner = repo.inner(str(source))
        if await resolve(inner, one.commit) is None:
            continue
        target = private / "modules" / one.name
        branch = "refs/heads/plait-base"
        clone = PrivateClone(path=target, branch=branch, base=one.commit, hide="plait")
        borrowed += await make_private(inner, clone)
        place = worktree / one.path
        await to_thread.run_sync(_prepare, place, target, one.commit)
        where = Where(git_dir=str(target), worktree=str(place), index=f"{target}/index")
        call = Call(writes=True, timeout_s=1800)
        words = ("read-tree", "--reset", "-u", "--no-recurse-submodules", one.commit)
        await inner.run(*words, call=call, where=where)
    return tuple(borrowed)


async def has_submodules(repo: Repo, base: str) -> bool:
    """Return whether a commit names submodules, filled or not."""
    return bool(await _listed(repo, base))


def _prepare(place: Path, target: Path, commit: str) -> None:
    """A detached HEAD, as a submodule has it, and the file that leads to it."""
    (target / "HEAD").write_text(f"{commit}\n", encoding="utf-8")
    place.mkdir(parents=True, exist_ok=True)
    (place / ".git").write_bytes(b"gitdir: " + os.fsencode(target) + b"\n")


async def missing_links(repo: Repo, head: str, links: Mapping[bytes, str]) -> tuple[bytes, ...]:
    """Those of some links of a commit whose own commit the user has nowhere."""
    if not links:
        return ()
    names = {os.fsencode(one.path): one.name for one in await _listed(repo, head)}
    return tuple(
        [path for path, oid in links.items() if not await _has(repo, names.get(path), oid)]
    )


async def _has(repo: Repo, name: str | None, commit: str) -> bool:
    source = Path(repo.common_dir, "modules", name or "")
    if name is None or not await to_thread.run_sync((source / "objects").is_dir):
        return False
    return await resolve(repo.inner(str(source)), commit) is not None


async def _listed(repo: Repo, base: str) -> list[_Submodule]:
    """The submodules that a commit names, and links to, by safe names and paths."""
    ask = partial(repo.read, "ls-tree", "-z", base, "--", ".gitmodules")
    if not await repo.cache.of(("gitmodules", base), ask):
        return []  # asked first: a large tree takes long to list
    entries = await list_tree(repo, base)
    blob = next((entry.oid for entry in entries if entry.path == b".gitmodules"), None)
    links = {os.fsdecode(entry.path): entry.oid for entry in entries if entry.mode == LINK}
    if blob is None or not links:
        return []
    call = Call(ok=(0, 1, 128))
    words = ("config", f"--blob={blob}", "--list", "-z")
    listing = os.fsdecode((await repo.run(*words, call=call)).stdout)
    said = dict(entry.partition("\n")[::2] for entry in listing.split("\0") if entry)
    names = {
        path: key.removeprefix("submodule.").removesuffix(".path")
        for key, path in said.items()
        if key.startswith("submodule.") and key.endswith(".path")
    }
    return [
        _Submodule(name, path, links[path])
        for path, name in names.items()
        if path in links and not any(is_unsafe(os.fsencode(text)) for text in (path, name))
    ]


def _may_hold_links(index: Path) -> bool:
    """Say if the bytes of an index can have a link in them, or lead to another index."""
    content = index.read_bytes()
    return _LINK_MODE in content or _ELSEWHERE in content


async def hide_links(repo: Repo, admin: str) -> None:
    """Let nobody's `git status` in this working tree look into repositories that agents can write.

    Git asks a submodule's own git for its state, with the configuration it finds there. Entries
    marked as not checked out are not asked.

    Args:
        repo: The user's repository.
        admin: The worktree's own folder in it.
    """
    if not await to_thread.run_sync(_may_hold_links, Path(admin, "index")):
        return
    where = Where(git_dir=admin, worktree=repo.void)
    listing = await repo.read("ls-files", "-s", "-z", where=where)
    records = (record.split(b"\t", 1) for record in listing.split(b"\0") if record)
    links = [path for head, path in records if head.startswith(LINK.encode())]
    if links:
        stdin = b"".join(path + b"\0" for path in links)
        call = Call(stdin=stdin, writes=True)
        await repo.run("update-index", "--skip-worktree", "-z", "--stdin", call=call, where=where)
