"""What has to be merged for a worker: its change into the target, or what it builds on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.composition import merged_since
from engine.git.diff import is_ancestor, merge_base
from engine.git.merge3 import Merger, Sides
from engine.git.objects import Wording, resolve, write_commit
from engine.git.runner import Repo
from engine.merge import Names
from engine.plan.model import MergeMode

Settled = Mapping[str, str]
"""Trees that a human made of earlier conflicts on the way to one base, by what was merged."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One merge that a human has to decide.

    Attributes:
        onto: The commit that the result will stand on: where the target was, or the base so far.
        key: What was merged, for keeping the answer.
    """

    sides: Sides
    names: Names
    onto: str
    key: str
    is_of_base: bool = False


@dataclass(frozen=True)
class NothingLeft:
    """Every conflict on the way is decided; the base is this tree."""

    tree: str


async def landing_question(
    repo: Repo, state: RunState, w: Worker, *, target: str | None = None
) -> Question:
    """The merge of a worker's change into the branch that it is to land on, as that is now.

    Raises:
        WorkspaceError: There is no such branch, or nothing to merge into it.
    """
    wish = w.land.to if w.land else None
    branch = target or wish or state.plan.runtime.target or ""
    change = w.change
    if change is None or change.head is None or change.base is None:
        raise WorkspaceError(f"{w.id} has no change that could be merged")
    old = await resolve(repo, f"refs/heads/{branch}")
    if old is None:
        raise WorkspaceError(f"there is no branch {branch!r} to merge into")
    since = await merged_since(repo, old, base=change.base, head=change.head)
    sides = Sides(since, old, change.head)
    names = Names(branch, str(w.id))
    return Question(sides=sides, names=names, onto=old, key=f"{old}..{change.head}")


async def sides_of(repo: Repo, w: Worker, *, old: str, tree: str) -> Sides:
    """The merge of a worker's change into a tree that the target, at `old`, has come to.

    Raises:
        WorkspaceError: It has nothing to land.
    """
    if w.change is None or w.change.head is None or w.change.base is None:
        raise WorkspaceError(f"{w.id} has no change that could be landed")
    since = await merged_since(repo, old, base=w.change.base, head=w.change.head)
    return Sides(since, tree, w.change.head)


async def base_question(
    repo: Repo, merger: Merger, state: RunState, w: Worker, *, settled: Settled
) -> Question | NothingLeft:
    """The next conflict among the changes that a worker builds on, with earlier ones decided.

    Raises:
        WorkspaceError: One of the changes is gone.
    """
    heads = base_heads(state, w)
    if not heads:
        raise WorkspaceError(f"{w.id} builds on no changes that could conflict")
    author = repo.settings.sign(int(state.started_at or 0))
    wording = Wording(message="Stacked base\n", author=author)
    (first, onto), *others = heads
    held = [first]
    for name, head in others:
        if not await is_ancestor(repo, head, onto):
            key = f"{onto}..{head}"
            tree = settled.get(key)
            if tree is None:
                since = await merge_base(repo, onto, head) or state.plan.runtime.base or onto
                merged = await merger.merge3(since, onto, head)
                if not merged.is_clean:
                    names = Names(" + ".join(held), name)
                    sides = Sides(since, onto, head)
                    return Question(sides=sides, names=names, onto=onto, key=key, is_of_base=True)
                tree = merged.tree
            onto = await write_commit(repo, tree, [onto, head], wording)
        held.append(name)
    tree = await resolve(repo, onto, "tree")
    if tree is None:
        raise WorkspaceError(f"{onto} is gone")
    return NothingLeft(tree)


def base_heads(state: RunState, w: Worker) -> Sequence[tuple[str, str]]:
    """The changes that a worker builds on, by the names of those who made them."""
    return [
        (str(worker), change.head)
        for worker, _ in w.bases
        if (change := state.workers[worker].change) is not None
        and change.head is not None
        and state.plan.step(worker.step).merge is not MergeMode.NONE
    ]
