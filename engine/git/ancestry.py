"""The ancestry of two commits, read from their parents where few commits have to be read.

It only ever says what it has proved; for everything else git is asked.
"""

from collections.abc import Mapping

from engine.git.diff import is_ancestor
from engine.git.objects import parents_at_once
from engine.git.runner import Repo

_MOST = 512
_NEAR = 8
_LONGEST = 4096


async def line_from(repo: Repo, base: str, head: str) -> tuple[str, ...] | None:
    """Return the commits of the line from a base to a head, oldest first.

    None where there is no such line: a commit on the way has several parents, or the way down
    never comes to the base. A line of more than a few thousand commits is not looked at.
    """
    found: list[str] = []
    known: Mapping[str, tuple[str, ...]] | None = None
    at = head
    while at != base:
        if len(found) == _LONGEST:
            return None
        read = known if known is not None else await parents_at_once(repo, [at])
        if read is None:
            known = await _listed(repo, base, at)
            continue
        parents = read.get(at)
        if parents is None or len(parents) != 1:
            return None
        found.append(at)
        at = parents[0]
    return tuple(reversed(found))


async def holds(repo: Repo, tip: str, commit: str) -> bool:
    """Tell whether a commit is in the history of a tip."""
    if not (repo.is_shallow or repo.has_grafts) and await above(repo, commit, tip) is not None:
        return True
    return await is_ancestor(repo, commit, tip)


async def part_at(repo: Repo, base: str, one: str, other: str) -> bool:
    """Both commits stand on the base, and have nothing else in common that the base has not.

    False also where that would take too long to tell.
    """
    if repo.is_shallow or repo.has_grafts:
        return False  # what git takes for the parents is not what the commits say
    here = await above(repo, base, one)
    beside = await above(repo, base, other) if here is not None else None
    return here is not None and beside is not None and not here & beside


async def base_of(repo: Repo, one: str, other: str) -> str | None:
    """The only best common ancestor of two commits, where it lies near and that can be proved."""
    sides = [{one}, {other}]
    fronts = [{one}, {other}]
    for _ in range(_NEAR):
        common = sides[0] & sides[1]
        if common:
            base = common.pop()
            return base if await part_at(repo, base, one, other) else None
        for side, front in enumerate(fronts):
            parents = await _parents(repo, front) if front else set()
            if parents is None:
                return None
            fronts[side] = parents - sides[side]
            sides[side] |= parents
    return None


async def above(repo: Repo, base: str, tip: str) -> set[str] | None:
    """Return the commits from a tip down to the base; None where a line of them passes it by."""
    found: set[str] = set()
    front = {tip} - {base}
    while front:
        found |= front
        if len(found) > _MOST:
            return None
        parents = await _parents(repo, front)
        if parents is None:
            return None
        front = parents - found - {base}
    return found


async def _listed(repo: Repo, base: str, head: str) -> Mapping[str, tuple[str, ...]]:
    """Return the commits above a base with their parents, by one git."""
    words = ("rev-list", "--parents", f"--max-count={_LONGEST + 1}", head, f"^{base}", "--")
    listing = (await repo.read(*words)).decode()
    rows = (row.split(" ") for row in listing.splitlines())
    return {commit: tuple(parents) for commit, *parents in rows}


async def _parents(repo: Repo, commits: set[str]) -> set[str] | None:
    """Return all parents of some commits; None where one has none, or cannot be read at once."""
    known = await parents_at_once(repo, list(commits))
    if known is None or not all(known.values()):
        return None
    return {parent for parents in known.values() for parent in parents}
