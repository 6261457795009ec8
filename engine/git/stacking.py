"""Several changes as one base; what stands on what is read from the record, never from history.

An agent may give its commits any parents. Counted from those, putting two changes together could
take back what one of them did; so only what the engine itself wrote down is followed.
"""

from collections.abc import Mapping, Sequence

from engine.git.ancestry import line_from
from engine.git.base import Base
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, learn_commit, read_objects, tree_of, write_commit
from engine.git.runner import Repo
from engine.values import dataclass

_MOST = 512


@dataclass(frozen=True, kw_only=True)
class Record:
    """The stack of a run: which commit stands on which.

    Attributes:
        root: The run's base.
        bases: The heads of changes, with the commits that these changes are counted from.
    """

    root: str
    bases: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class StackConflict:
    """Changes that a base should hold cannot be put together.

    Attributes:
        onto: A commit with those that could.
        head: The change that met a conflict with them.
    """

    onto: str
    head: str
    merged: MergedTrees


async def stack_base(
    repo: Repo, merger: Merger, record: Record, heads: Sequence[str], *, wording: Wording
) -> Base | StackConflict:
    """Make a base that holds several changes; one head is its own base, none is the run's."""
    onto = heads[0] if heads else record.root
    for at, head in enumerate(heads[1:], 1):
        since = await counted_from(repo, record, heads[:at], head)
        if since is None:
            continue
        merged = await merger.merge3(since, onto, head)
        if not merged.is_clean:
            return StackConflict(onto=onto, head=head, merged=merged)
        onto = await write_commit(repo, merged.tree, [onto, head], wording)
    return Base(commit=onto, tree=await tree_of(repo, onto))


async def standing_head(repo: Repo, base: str, head: str, wording: Wording) -> str:
    """Return a commit of a change's files that others may build on.

    It is the head itself where its history is a line from the base, and else a single commit.
    """
    if await line_from(repo, base, head) is not None:
        return head
    return await write_commit(repo, await tree_of(repo, head), [base], wording)


async def counted_from(repo: Repo, record: Record, held: Sequence[str], head: str) -> str | None:
    """Return what a change and those that are held have in common; None where it is held."""
    mine: set[str] = set()
    for one in held:
        mine |= await _under(repo, record, one)
    if head in mine:
        return None
    shared = [one for one in await _under(repo, record, head) if one in mine]
    below: set[str] = set()
    for one in shared:
        below |= await _under(repo, record, one) - {one}
    return min((one for one in shared if one not in below), default=record.root)


async def _under(repo: Repo, record: Record, commit: str) -> set[str]:
    """Return a commit and all that it stands on, down to the run's base."""
    found: set[str] = set()
    front = [commit]
    while front and len(found) < _MOST:
        one = front.pop()
        if one in found:
            continue
        found.add(one)
        if one in record.bases:
            front += record.bases[one]
        elif one != record.root:  # put together by the engine
            front += await _parents(repo, one)
    return found


async def _parents(repo: Repo, commit: str) -> tuple[str, ...]:
    known = repo.cache.parents.get(commit)
    if known is not None:
        return known
    (read,) = await read_objects(repo, [commit])
    return learn_commit(repo, *read) if read is not None else ()
