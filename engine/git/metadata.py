"""The branches of a repository, read with GitPython.

Only the main repository and only names: no object is read and nothing of an agent's is opened, so
one object per call is enough, and it is closed before the call returns.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import WorkspaceError

if TYPE_CHECKING:
    import git


def branch_names(place: str | Path) -> tuple[str, ...]:
    """The local branches of the repository that holds a place; none where there is no commit."""
    with _opened(place) as repo:
        return tuple(sorted(head.name for head in repo.heads))


def current_branch(place: str | Path) -> str | None:
    """The branch that is checked out, born or not; None with a detached HEAD."""
    with _opened(place) as repo:
        return None if repo.head.is_detached else repo.head.reference.name


@contextmanager
def _opened(place: str | Path) -> Iterator["git.Repo"]:
    import git  # noqa: PLC0415  loading it costs 50 ms, and most commands need no names

    try:
        repo = git.Repo(place, search_parent_directories=True, expand_vars=False)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        hint = "Unset GIT_OBJECT_DIRECTORY and GIT_COMMON_DIR if they are set."
        raise WorkspaceError(f"no repository can be read at {place}", hint=hint) from error
    with repo:
        yield repo
