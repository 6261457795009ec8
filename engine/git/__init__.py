"""Do all that plait does with git: workspaces, collecting, merging, landing, removal.

This is the only room that touches git. It knows how to call git so that no file of an agent makes
git run anything, and how to leave a repository whole when it is killed. It knows nothing of agents,
phases or screens; dates, ids and identities come in as values.

    repo = await Repo.open(place, environment)               the user's repository, hardened
    base = await resolve_base(repo, "HEAD", signature)       HEAD, a revision, or WORKTREE
    space = await prepare(repo, WorkspaceRequest(…))         where one attempt works
    change = await collect(repo, space, CollectRequest(…))   what it came to, under its own refs
    files = await changed_files(repo, change.base, change.head)
    merged = await Merger(repo).merge3(base, ours, theirs)   three trees to one, conflicts as values
    made = await compose(repo, merger, LandRequest(…))       the commit to land, made and not moved
    plan = await prepare_landing(repo, made)                 for the journal; proves that it can
    done = await land(repo, plan)                            or `recover_landing` after a death
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "base": "WORKTREE Base dirty_paths resolve_base stage_worktree",
    "carrying": "edited_paths prepare_carrying prepare_committing",
    "collection": "CollectedChange CollectRefused CollectRequest collect",
    "composition": "Composed LandRequest LandingStyle compose",
    "diff": "FileChange FileHunk FilePatch PatchLine changed_files file_patches"
    " is_ancestor is_patch_cut merge_base patch_bytes",
    "landing": "LandPrepared LandingDone LandingRefused RefusalReason land unpin prepare_landing"
    " recover_landing",
    "merge3": "ConflictedPath MergeMessage MergedTrees Merger Sides Stage",
    "names": "PREFIX RefNames check_prefix",
    "objects": "RefMove RefMoved Wording read_blobs resolve tree_of write_blob write_commit",
    "radar": "Snapshot snapshot",
    "recovery": "recover_repository",
    "removal": "RemovalVerdict Removed drop_missing examine is_contained remove remove_branch"
    " restore",
    "checktree": "CheckTree Filled fill_check_tree holds",
    "undo": "undo_landing",
    "runner": "Call Repo Where",
    "stacking": "Record StackConflict stack_base",
    "strays": "examine_stray",
    "settings": "Signature UserSettings",
    "workspace": "Strategy Workspace WorkspaceRequest check_space prepare",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = tuple(_HOME_OF)


def __getattr__(name: str) -> Any:
    """Bring a public name's module when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
