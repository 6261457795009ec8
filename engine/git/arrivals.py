"""The names under which what an attempt made arrives in the user's repository.

Each ref is a file there. So only the first few have one of their own; all others are kept together
by one commit, which has what they name as ancestors, and says their names in a file.
"""

import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from engine.errors import GitFailed
from engine.git.inside import InsideGit, sane_name
from engine.git.objects import Wording, commit_bytes
from engine.git.settings import Signature

ARRIVING = "refs/collect"
MOST_REFS = 200
"""Most refs of one attempt that keep a name of their own."""
TOGETHER = "others"
"""The ref that keeps what has none."""
LOST = "lost/"
"""Before what no ref names any more, and the agent once had."""
LIST = "refs.txt"
_PARENTS = 100
_FIRST = ("refs/heads/", "refs/tags/", "refs/stash", "refs/pseudo/")
_MOST_COMMITS = 5_000
_MOST_TRIES = 60
_LONGEST_SALVAGE_S = 60.0
Fetch = Callable[[str], Coroutine[object, object, str | None]]
"""Fetches a pattern of our refs; tells why that was refused."""


async def name_arrivals(
    git: InsideGit,
    head: str,
    refs: Mapping[str, str],
    *,
    author: Signature,
    most: int = MOST_REFS,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Name what is to be fetched, by refs in our own git directory.

    Returns the ends of those names with what they name, and what a reviewer should know.
    """
    named = {"head": head}
    ordered = sorted(refs, key=lambda ref: (_rank(ref), ref.count("/"), ref))
    named |= {_kept_as(ref): refs[ref] for ref in ordered[:most]}
    notes: tuple[str, ...] = ()
    rest = {ref: refs[ref] for ref in ordered[most:]}
    if rest:
        commit, left = await _together(git, rest, author)
        named[TOGETHER] = commit
        notes = (
            f"{len(rest) - left} more refs are kept together; {LIST} in `{TOGETHER}` names them.",
        )
        if left:
            notes += (f"{left} more refs do not name a commit and are not kept.",)
    await offer(git, named)
    return named, notes


async def offer(git: InsideGit, named: Mapping[str, str]) -> None:
    """Let our own git directory have these refs to be fetched, and no others."""
    lines = "".join(f"{oid} {ARRIVING}/{name}\n" for name, oid in sorted(named.items()))
    await to_thread.run_sync(Path(git.git_dir, "packed-refs").write_text, lines)


def _rank(ref: str) -> int:
    return next((rank for rank, start in enumerate(_FIRST) if ref.startswith(start)), len(_FIRST))


def _kept_as(ref: str) -> str:
    plain = hashlib.sha256(ref.encode(errors="surrogateescape")).hexdigest()[:12]
    return ref if sane_name(ref) or ref.startswith(LOST) else f"refs/odd/{plain}"


async def _together(git: InsideGit, refs: Mapping[str, str], author: Signature) -> tuple[str, int]:
    """Make one commit that keeps what many refs name; tell how many name no commit."""
    asked = "".join(f"{oid}^{{commit}}\n" for oid in refs.values()).encode()
    said = await git("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    found = [line.split(" ") for line in said.decode().splitlines()]
    commits = dict.fromkeys(line[0] for line in found if line[1:] == ["commit"])
    text = "".join(f"{oid} {ref}\n" for ref, oid in refs.items())
    content = text.encode(errors="surrogateescape")
    blob = (await git("hash-object", "-w", "--stdin", stdin=content)).decode().strip()
    row = f"100644 blob {blob}\t{LIST}\n".encode()
    tree = (await git("mktree", stdin=row)).decode().strip()
    tips = list(commits)
    while True:
        groups = [tips[n : n + _PARENTS] for n in range(0, len(tips), _PARENTS)] or [[]]
        tips = await _commits(git, tree, groups, author)
        if len(tips) == 1:
            return tips[0], sum(line[1:] != ["commit"] for line in found)


async def _commits(
    git: InsideGit, tree: str, groups: Sequence[Sequence[str]], author: Signature
) -> list[str]:
    """Write a commit for each group of parents, by one git."""
    wording = Wording(message="Refs of an attempt, kept together\n", author=author)
    contents = [commit_bytes(tree, parents, wording) for parents in groups]
    names = await to_thread.run_sync(_put, git.source.folder / "together", contents)
    made = await git("hash-object", "-t", "commit", "-w", "--stdin-paths", stdin=names)
    return made.decode().split()


def _put(folder: Path, contents: Sequence[bytes]) -> bytes:
    folder.mkdir(mode=0o700, exist_ok=True)
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)
    return b"".join(f"{folder}/{number}\n".encode() for number in range(len(contents)))


async def salvage(git: InsideGit, tips: Sequence[str], base: str, fetch: Fetch) -> None:
    """Import what can be had below some refused commits, under refs of what was lost.

    Git refuses every commit that has a bad object in its history. The commits below the bad one
    are sound; a branch that ends badly must not take them along.
    """
    words = ("rev-list", "--topo-order", "--parents", f"--max-count={_MOST_COMMITS}", "--stdin")
    stdin = "".join(f"{oid}\n" for oid in (*tips, f"^{base}")).encode()
    try:
        listing = (await git(*words, stdin=stdin)).decode().splitlines()
    except GitFailed:  # a history with holes in it
        return
    rows = [line.split() for line in reversed(listing)]
    await _Salvage(git, fetch, {row[0]: row[1:] for row in rows}).take([row[0] for row in rows])


@dataclass
class _Salvage:
    git: InsideGit
    fetch: Fetch
    parents: dict[str, list[str]]
    refused: set[str] = field(default_factory=set)
    tries: int = _MOST_TRIES
    until: float = field(default_factory=lambda: anyio.current_time() + _LONGEST_SALVAGE_S)

    async def take(self, commits: Sequence[str]) -> None:
        """Import these, oldest first, in halves where git refuses them together."""
        sound = [oid for oid in commits if self._is_sound(oid)]
        if not sound or not self.tries or anyio.current_time() > self.until:
            return
        self.tries -= 1
        below = {parent for oid in sound for parent in self.parents[oid]}
        newest = [oid for oid in sound if oid not in below]
        await offer(self.git, {f"{LOST}{oid[:12]}": oid for oid in newest})
        if await self.fetch(f"{LOST}*") is None:
            return
        if len(sound) == 1:
            self.refused.add(sound[0])
            return
        middle = len(sound) // 2
        await self.take(sound[:middle])
        await self.take(sound[middle:])

    def _is_sound(self, oid: str) -> bool:
        """Tell whether none is refused below this commit; parents come before it."""
        if not self.refused.isdisjoint(self.parents[oid]):
            self.refused.add(oid)
        return oid not in self.refused
