"""Merge several changes in memory, one after another, so that one check covers them all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.merge3 import Merger
from engine.git.objects import Wording, resolve, write_commit
from engine.git.runner import Repo
from engine.ids import WorkerId
from engine.review.questions import sides_of


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The result of each landing of a batch, as trees, and the last one as a commit."""

    trees: Mapping[WorkerId, str] = field(default_factory=dict)
    commit: str = ""
    tree: str = ""


async def composed(repo: Repo, state: RunState, workers: Sequence[Worker], *, target: str) -> Batch:
    """Merge these changes onto a branch in this order; leave out those that conflict.

    Raises:
        WorkspaceError: There is no such branch, or nothing to land.
    """
    old = await resolve(repo, f"refs/heads/{target}")
    if old is None:
        raise WorkspaceError(f"there is no branch {target!r} to land on")
    merger, tree = Merger(repo), old
    trees: dict[WorkerId, str] = {}
    for w in workers:
        sides = sides_of(w, onto=tree)
        merged = await merger.merge3(sides.base, sides.ours, sides.theirs)
        if merged.is_clean:
            trees[w.id] = tree = merged.tree
    if not trees:
        return Batch()
    author = repo.settings.sign(int(state.started_at or 0))
    wording = Wording(message="A batch to be checked\n", author=author)
    return Batch(trees=trees, commit=await write_commit(repo, tree, [old], wording), tree=tree)
