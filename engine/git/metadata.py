"""The branches of a repository, read with GitPython.

Only the main repository and only names: no object is read and nothing of an agent's is opened, so
one object per call is enough, and it is closed before the call returns.
"""

from pathlib import Path


def branch_names(place: str | Path) -> tuple[str, ...]:
    """The local branches of the repository that holds a place; none where there is no commit."""
    import git  # noqa: PLC0415  loading it costs 50 ms, and most commands need no names

    with git.Repo(place, search_parent_directories=True, expand_vars=False) as repo:
        return tuple(sorted(head.name for head in repo.heads))


def current_branch(place: str | Path) -> str | None:
    """The branch that is checked out, born or not; None with a detached HEAD."""
    import git  # noqa: PLC0415  as above

    with git.Repo(place, search_parent_directories=True, expand_vars=False) as repo:
        return None if repo.head.is_detached else repo.head.reference.name
