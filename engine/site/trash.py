"""Move what may go into the trash, with a label by which it can be brought back."""

import os
import secrets
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.git.removal import RemovalVerdict, remove
from engine.git.runner import Repo
from engine.store.codec import to_json
from engine.store.files import write_atomically
from engine.store.layout import Layout

LABEL = "removed.json"


async def discard(repo: Repo, layout: Layout, verdict: RemovalVerdict) -> None:
    """Move a workspace that may go into a folder of its own in the trash.

    Raises:
        WorkspaceError: It may not go.
    """
    # A folder for each: what is removed twice, or by two at once, must not meet.
    name = str(verdict.workspace.attempt).replace("/", ".").replace("@", ".")
    trash = layout.trash / f"{name}-{secrets.token_hex(3)}"
    removed = await remove(repo, verdict, trash)
    label = partial(write_atomically, trash / LABEL, to_json(removed).encode())
    await anyio.to_thread.run_sync(label)


def drop_empty(folder: Path) -> None:
    """Remove a folder and those below it that hold nothing at all."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # something is in it
            Path(path).rmdir()
