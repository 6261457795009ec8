"""Taking a landing back: by going back where nothing came after it, else by its opposite."""

from engine.errors import WorkspaceError
from engine.git.composition import Composed
from engine.git.landing import LandPrepared, LandRefused, prepare_landing, prepare_move
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, resolve, sign_commit
from engine.git.runner import Repo


async def undo_landing(
    repo: Repo, merger: Merger, landed: LandPrepared, wording: Wording
) -> LandPrepared | LandRefused | MergedTrees:
    """What takes a landing back, to be journalled and landed like any other.

    If the target still stands where the landing put it, it goes back to where it was. If others
    have landed since, their work stays and a commit that undoes this one is added; where that
    conflicts, the conflicts come back.

    Raises:
        DirtyTarget: The user's own edits are in the way.
        WorkspaceError: The target is gone.
    """
    at = await resolve(repo, landed.target)
    if at is None or landed.new is None:
        raise WorkspaceError(f"{landed.target} is not there any more")
    if at == landed.new:
        return await prepare_move(repo, landed.target, at, landed.old)
    merged = await merger.merge3(landed.new, at, landed.old or repo.empty_tree)
    if not merged.is_clean:
        return merged
    new = await sign_commit(repo, merged.tree, [at], wording)
    branch = landed.target.removeprefix("refs/heads/")
    return await prepare_landing(repo, Composed(target=branch, old=at, new=new, tree=merged.tree))
