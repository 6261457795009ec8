"""Taking a landing back: by going back where nothing came after it, else by its opposite."""

from dataclasses import replace

from engine.errors import DirtyTarget, WorkspaceError
from engine.git.carrying import prepare_carrying
from engine.git.composition import Composed
from engine.git.landing import LandingRefused, LandPrepared, prepare_landing, prepare_move
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, resolve, sign_commit
from engine.git.runner import Repo


async def undo_landing(
    repo: Repo, merger: Merger, landed: LandPrepared, wording: Wording
) -> LandPrepared | LandingRefused | MergedTrees | None:
    """Make what takes a landing back, to be journaled and landed like any other.

    If the target still stands where the landing put it, it goes back to where it was. If others
    have landed since, their work stays and a commit that undoes this one is added; where that
    conflicts, the conflicts come back. Edits that the landing carried along are carried back. None
    where nothing of the landing is on the target any more.

    Raises:
        DirtyTarget: The user's own edits are in the way.
        WorkspaceError: The target is gone.
    """
    at = await resolve(repo, landed.target)
    if at is None or landed.new is None:
        raise WorkspaceError(f"{landed.target} no longer exists")
    branch = landed.target.removeprefix("refs/heads/")
    if at == landed.new:
        try:
            return await prepare_move(repo, landed.target, at, landed.old)
        except DirtyTarget as dirty:
            if landed.old is None:
                raise
            back = Composed(target=branch, old=at, new=landed.old, tree="")
            return await _carried_back(repo, merger, landed, (back, wording, dirty))
    merged = await merger.merge3(landed.new, at, landed.old or repo.empty_tree)
    if not merged.is_clean:
        return merged
    if merged.tree == await resolve(repo, f"{at}^{{tree}}"):
        return None
    new = await sign_commit(repo, merged.tree, [at], wording)
    back = Composed(target=branch, old=at, new=new, tree=merged.tree)
    try:
        return await prepare_landing(repo, back)
    except DirtyTarget as dirty:
        return await _carried_back(repo, merger, landed, (back, wording, dirty))


async def _carried_back(
    repo: Repo, merger: Merger, landed: LandPrepared, what: tuple[Composed, Wording, DirtyTarget]
) -> LandPrepared | LandingRefused:
    """The same with the user's edits on top, as they lay on top when it landed.

    Raises:
        DirtyTarget: The landing carried none, or they do not fit what was before it.
    """
    back, wording, dirty = what
    if landed.edits is None or landed.leads_on:
        raise dirty
    edits = replace(wording, message="Edits under way when a landing was undone\n")
    plan = await prepare_carrying(repo, merger, back, edits)
    if isinstance(plan, MergedTrees):
        raise DirtyTarget([one.path for one in plan.conflicts])
    return plan
