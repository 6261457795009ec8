"""Import the commits that git accepts, of a history that it does not accept as a whole.

A single object that git refuses makes it refuse all commits that have it below them. Those below
that one are sound; an agent's branch that ends badly must not take them along.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed
from engine.git.arrivals import ARRIVING, LOST
from engine.git.inside import InsideGit

_MOST_COMMITS = 5_000
_MOST_TRIES = 60
Fetch = Callable[[str], Coroutine[object, object, str | None]]
"""Fetches a pattern of our refs; tells why that was refused."""


async def salvage(git: InsideGit, tips: Sequence[str], base: str, fetch: Fetch) -> None:
    """Import what can be had below some refused commits, under refs of what was lost."""
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

    async def take(self, commits: Sequence[str]) -> None:
        """Import these, oldest first, in halves where git refuses them together."""
        sound = [oid for oid in commits if self._is_sound(oid)]
        if not sound or not self.tries:
            return
        self.tries -= 1
        below = {parent for oid in sound for parent in self.parents[oid]}
        newest = [oid for oid in sound if oid not in below]
        lines = "".join(f"{oid} {ARRIVING}/{LOST}{oid[:12]}\n" for oid in newest)
        await to_thread.run_sync(Path(self.git.git_dir, "packed-refs").write_text, lines)
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
