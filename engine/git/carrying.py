"""Landing under edits of the user's: they are kept in a commit, and lie on top again afterwards."""

from engine.errors import WorkspaceError
from engine.git.base import stage_place
from engine.git.composition import Composed
from engine.git.landing import LandPrepared, LandRefused, checkout_of, prove
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, set_refs, write_commit
from engine.git.runner import Repo, Where


async def prepare_carrying(
    repo: Repo,
    merger: Merger,
    composed: Composed,
    wording: Wording,
    *,
    resolved: str | None = None,
) -> LandPrepared | LandRefused | MergedTrees:
    """A landing that takes the user's uncommitted edits along; the edits are pinned first.

    Afterwards the working tree holds the new commit with the edits on top, uncommitted as before;
    what of them was staged and touched is no longer staged. Where both changed the same lines the
    conflicts come back, to be asked again with the tree that a human made of them.

    Raises:
        WorkspaceError: Nobody has the target checked out, so no edits are in the way.
    """
    found = await checkout_of(repo, composed.ref)
    if isinstance(found, LandRefused):
        return found
    if found is None or composed.old is None:
        raise WorkspaceError(f"{composed.target!r} is not checked out: it has no edits")
    where = Where(git_dir=found.git_dir, worktree=found.path)
    staged = await stage_place(repo, composed.old, where)
    edits = await write_commit(repo, staged.tree, [composed.old], wording)
    await set_refs(repo, [(f"refs/plait/edits/{edits[:16]}", edits)], say="plait: keep edits")
    carried = resolved
    if carried is None:
        merged = await merger.merge3(composed.old, composed.new, edits)
        if not merged.is_clean:
            return merged
        carried = merged.tree
    return await prove(
        repo,
        LandPrepared(
            target=composed.ref, old=composed.old, new=composed.new, edits=edits, carried=carried
        ),
    )
