"""The common ancestors of two commits, as the sides of a merge."""

from engine.errors import WorkspaceError
from engine.git.ancestry import base_of
from engine.git.merge3 import Merger, Sides
from engine.git.runner import Call, Repo

_MAY_BE_NONE = Call(ok=(0, 1))


async def common_sides(repo: Repo, merger: Merger, ours: str, theirs: str) -> Sides:
    """Return two commits as the sides of a merge, with what they have in common.

    Raises:
        WorkspaceError: They have no common ancestor.
    """

    async def ask() -> list[str]:
        near = await base_of(repo, ours, theirs)
        if near is not None:
            return [near]
        words = ("merge-base", "--all", ours, theirs)
        return (await repo.read(*words, call=_MAY_BE_NONE)).decode().split()

    # What a shallow repository has in common changes when more of it is fetched.
    key = ("bases", ours, theirs)
    bases = await (ask() if repo.is_shallow else repo.cache.of(key, ask))
    if not bases:
        raise WorkspaceError(
            f"{ours[:12]} and {theirs[:12]} have no commit in common",
            hint="They are separate histories, so there is no base to compare with.",
        )
    if len(bases) == 1:
        return Sides(bases[0], ours, theirs)
    return Sides(await _one_of(repo, merger, bases), ours, theirs, is_crossed=True)


async def _one_of(repo: Repo, merger: Merger, bases: list[str]) -> str:
    """Return a tree much like what git makes of several ancestors: the same names of files.

    Git decides conflicts between ancestors by rules that it offers for nothing else; so versions
    are never read from this tree, only under which names files were known before.
    """
    oldest, *others = reversed(bases)
    tree = oldest
    for other in others:
        since = await repo.run("merge-base", oldest, other, call=_MAY_BE_NONE)
        base = since.stdout.decode().strip() or repo.empty_tree
        tree = (await merger.merge3(base, tree, other)).tree
    return tree
