"""Find the file of a change that a path names, in a log or in the call of a tool."""

from collections.abc import Sequence


def named_file(paths: Sequence[str], said: str) -> int | None:
    """Return the place of the file that is named.

    It may be named as it is, by a path that begins outside the worktree, or by its last parts.
    """
    if said in paths:
        return paths.index(said)
    outside = [at for at, path in enumerate(paths) if said.endswith(f"/{path}")]
    if outside:
        return max(outside, key=lambda at: len(paths[at]))
    return next((at for at, path in enumerate(paths) if path.endswith(f"/{said}")), None)
