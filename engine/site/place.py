"""The place an engine works at: the project, its state and its workspaces.

Who only reads journals loads neither git nor an event loop.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import WorkspaceError
from engine.private import private_folder
from engine.store.layout import Layout, state_home, workspace_root

if TYPE_CHECKING:
    from engine.git.runner import Repo
    from engine.store.store import Store
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Place:
    """A project as an engine finds it; `repo` is None for a plain folder."""

    project: Path
    layout: Layout
    workspaces: Path
    repo: Repo | None

    @property
    def store(self) -> Store:
        """Return the store of its runs."""
        return store_of(self.layout)


def store_of(layout: Layout) -> Store:
    """Return the store of a repository. No other module chooses which kind of store it is."""
    from engine.store.sqlite import SqliteStore  # noqa: PLC0415 - a place costs no database

    return SqliteStore(layout)


async def find_place(start: Path, environ: Mapping[str, str]) -> Place:
    """Find the repository that holds `start`, or take `start` itself as a plain folder.

    Raises:
        WorkspaceError: There is no such folder, or its repository cannot be used.
    """
    from anyio import to_thread  # noqa: PLC0415  see above

    from engine.git.runner import Repo  # noqa: PLC0415

    home = state_home(environ)
    folder = await to_thread.run_sync(_plain_folder, start, home)
    if folder is not None:
        return folder
    repo = await Repo.open(start, environ)
    return await to_thread.run_sync(_repository, repo, home)


def _repository(repo: Repo, home: Path) -> Place:
    common = Path(repo.common_dir)
    return Place(
        project=Path(repo.worktree) if repo.worktree else common,
        layout=Layout(common),
        workspaces=workspace_root(common, home),
        repo=repo,
    )


def _plain_folder(start: Path, home: Path) -> Place | None:
    """Return a folder that no repository holds; its state lies elsewhere, never in it."""
    if not start.is_dir():
        raise WorkspaceError(f"there is no folder {start}", hint="Name a folder that exists.")
    start = start.resolve()
    if any(_is_repository(folder) for folder in (start, *start.parents)):
        return None
    from hashlib import sha256  # noqa: PLC0415  OpenSSL costs 3 ms

    digest = sha256(os.fsencode(start)).hexdigest()[:10]
    common = home / "folders" / f"{start.name or 'root'}-{digest}"
    private_folder(common)
    root = workspace_root(start, home)
    return Place(project=start, layout=Layout(common), workspaces=root, repo=None)


def _is_repository(folder: Path) -> bool:
    """Return whether git finds a repository here: a `.git`, or a bare one's own files."""
    is_bare = (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    return is_bare or (folder / ".git").exists()
