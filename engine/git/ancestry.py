"""How two commits are related, told from their own parents where few of them have to be looked at.

It only ever says what it has proved; for everything else git is asked.
"""

from engine.git import asking
from engine.git.objects import learn_commit
from engine.git.runner import HERE, Repo

_MOST = 512
_NEAR = 8


async def part_at(repo: Repo, base: str, one: str, other: str) -> bool:
    """Both commits stand on the base, and have nothing else in common that the base has not.

    False also where that would take too long to tell.
    """
    if repo.is_shallow or repo.has_grafts:
        return False  # what git takes for the parents is not what the commits say
    above = await _above(repo, base, one)
    beside = await _above(repo, base, other) if above is not None else None
    return above is not None and beside is not None and not above & beside


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


async def _above(repo: Repo, base: str, tip: str) -> set[str] | None:
    """The commits from a tip down to the base; None where a line of them passes it by."""
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


async def _parents(repo: Repo, commits: set[str]) -> set[str] | None:
    """All parents of some commits; None where one has none, or cannot be read at once."""
    known = {commit: repo.memory.parents(commit) for commit in commits}
    unknown = [commit for commit, parents in known.items() if parents is None]
    read = await asking.objects(repo, unknown, HERE) if unknown else []
    if read is None or None in read:
        return None
    known |= {one[0]: learn_commit(repo, *one) for one in read if one is not None}
    if not all(known.values()):
        return None
    return {parent for parents in known.values() for parent in parents or ()}
