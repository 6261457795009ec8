"""Find the state of a repository as git would, without git, and with nothing loaded.

It knows the ways in which nearly all repositories lie. All others, and all that git would refuse,
are left to git.
"""

from __future__ import annotations

import os

_POINTER = "gitdir: "


def state_around(folder: str) -> str | None:
    """Return where plait keeps what it knows of the repository around a folder.

    Nothing need be there yet. None where only git can tell.
    """
    try:
        common = _common_dir(os.path.abspath(folder))
    except (OSError, ValueError):
        return None
    is_whole = common is not None and os.path.isfile(f"{common}/HEAD")
    return f"{common}/plait" if is_whole else None


def _common_dir(folder: str) -> str | None:
    """Return the git directory that all worktrees share, where git would find it from a folder.

    Raises:
        OSError: Something is missing, or belongs to somebody else.
        ValueError: git has not written it.
    """
    folder = os.path.realpath(folder)
    device = os.stat(folder).st_dev
    while os.stat(folder).st_dev == device:  # git stays on one file system, too
        if (found := _git_dir(folder)) is not None:
            return found
        is_bare = os.path.exists(f"{folder}/HEAD") and os.path.exists(f"{folder}/objects")
        above = os.path.dirname(folder)
        if is_bare or above == folder:
            return None
        folder = above
    return None


def _git_dir(folder: str) -> str | None:
    """Return the shared git directory that a folder's `.git` is, or leads to."""
    git = f"{folder}/.git"
    if not os.path.lexists(git):
        return None
    if os.stat(git).st_uid != os.getuid():
        raise PermissionError(git)
    if not os.path.isdir(git):
        pointer = _line(git)
        if not pointer.startswith(_POINTER):
            raise ValueError(git)
        git = os.path.join(folder, pointer.removeprefix(_POINTER))
    try:
        return os.path.join(git, _line(f"{git}/commondir"))
    except FileNotFoundError:  # it is the common one, or a submodule's own
        return git


def _line(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().removesuffix("\n")
