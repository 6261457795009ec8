"""Find the merge that a worker needs: its change into the target, or its base changes."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.merge3 import Merger, Sides
from engine.git.objects import Wording, resolve, write_commit
from engine.git.runner import Repo
from engine.git.stacking import Record, counted_from, standing_head
from engine.merge import SideNames

Settled = Mapping[str, str]
"""Trees that a human made of earlier conflicts on the way to one base, by what was merged."""


@dataclass(frozen=True, kw_only=True)
class MergeQuestion:
    """One merge that a human has to decide.

    Attributes:
        onto: The commit that the result will stand on: where the target was, or the base so far.
        key: What was merged, for keeping the answer.
    """

    sides: Sides
    names: SideNames
    onto: str
    key: str
    is_of_base: bool = False


@dataclass(frozen=True)
class NothingLeft:
    """Every conflict on the way is decided; the base is this tree."""

    tree: str


async def landing_question(
    repo: Repo, state: RunState, w: Worker, *, target: str | None = None
) -> MergeQuestion:
    """Return the merge of a worker's change into its target as that is now.

    Raises:
        WorkspaceError: There is no such branch, or nothing to merge into it.
    """
    wish = w.landing.wish.to if w.landing.wish else None
    branch = target or wish or state.plan.runtime.target or ""
    old = await resolve(repo, f"refs/heads/{branch}")
    if old is None:
        raise WorkspaceError(f"there is no branch {branch!r} to merge into")
    sides = sides_of(w, onto=old)
    names = SideNames(branch, str(w.id))
    return MergeQuestion(sides=sides, names=names, onto=old, key=f"{old}..{sides.theirs}")


def sides_of(w: Worker, *, onto: str) -> Sides:
    """Return the merge that brings a worker's change to a tree: whatever lands it, asks this one.

    A change is what leads from the recorded base to what was collected. The history between the
    two is the agent's own affair, and nothing is counted from it.

    Raises:
        WorkspaceError: The worker has no change.
    """
    if w.change is None or w.change.head is None or w.change.base is None:
        raise WorkspaceError(f"{w.id} has no change to merge")
    return Sides(w.change.base, onto, w.change.head)


async def base_question(
    repo: Repo, merger: Merger, state: RunState, w: Worker, *, settled: Settled
) -> MergeQuestion | NothingLeft:
    """Return the next conflict among the changes a worker builds on, earlier ones decided.

    Raises:
        WorkspaceError: One of the changes is gone.
    """
    below = await beneath(repo, state, w)
    if not below.heads:
        raise WorkspaceError(f"{w.id} does not build on changes that can conflict")
    names, heads = list(below.heads), list(below.heads.values())
    onto = heads[0]
    for at, head in enumerate(heads[1:], 1):
        since = await counted_from(repo, below.record, heads[:at], head)
        if since is None:
            continue
        key = f"{onto}..{head}"
        tree = settled.get(key)
        if tree is None:
            merged = await merger.merge3(since, onto, head)
            if not merged.is_clean:
                sides, held = Sides(since, onto, head), SideNames(" + ".join(names[:at]), names[at])
                return MergeQuestion(sides=sides, names=held, onto=onto, key=key, is_of_base=True)
            tree = merged.tree
        # Stands for the merge so far, so that the next change can be merged on top of it.
        onto = await write_commit(repo, tree, [onto, head], below.wording)
    tree = await resolve(repo, onto, "tree")
    if tree is None:
        raise WorkspaceError(f"{onto} is gone")
    return NothingLeft(tree)


@dataclass(frozen=True, kw_only=True)
class Beneath:
    """The changes that a worker builds on.

    Attributes:
        heads: A commit of each, by the name of the worker that made it.
        record: What stands on what.
        wording: What a commit says that puts them together.
    """

    heads: Mapping[str, str]
    record: Record
    wording: Wording


async def beneath(repo: Repo, state: RunState, w: Worker) -> Beneath:
    """Return the changes that a worker builds on, as commits to stand on."""
    author = repo.settings.sign(int(state.started_at or 0))
    wording = Wording(message="Stacked base\n", author=author)
    heads: dict[str, str] = {}
    for worker, _ in w.attempt.bases:
        change = state.workers[worker].change
        if change is None or change.head is None or change.base is None:
            continue
        if state.plan.step(worker.step).merge.lands:
            said = Wording(message=f"{worker}\n", author=author)
            heads[str(worker)] = await standing_head(repo, change.base, change.head, said)
    bases: dict[str, tuple[str, ...]] = {}
    for other in state.workers.values() if len(heads) > 1 else ():
        change = other.change
        if change is not None and change.head is not None and change.base is not None:
            bases[change.head] = (*bases.get(change.head, ()), change.base)
    root = state.plan.runtime.base or next(iter(heads.values()), "")
    return Beneath(heads=heads, record=Record(root=root, bases=bases), wording=wording)
