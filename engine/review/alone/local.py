"""Decide a merge in this process, without a run, by the same questions as a worker's.

Where it comes from and where its result goes is for those who make one of it.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import Lock, to_thread

from engine.errors import WorkspaceError
from engine.git.runner import Repo
from engine.merge import ResolutionSession
from engine.messages import commands as c
from engine.messages.merging import ConflictView
from engine.review.memory import MemoryFile
from engine.review.review import Review
from engine.store.files import write_atomically
from engine.store.layout import Layout

_VERSION = 1


class MergeReview(ABC):
    """A merge and the decisions about it, written down step by step."""

    def __init__(self, repo: Repo, layout: Layout, name: str) -> None:
        self.repo = repo
        digest = hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=10).hexdigest()
        self._layout = layout
        self._path = layout.root / "own" / f"{digest}.json"
        self._lock = Lock()
        self._is_unseen = False
        self.memory = MemoryFile.of(layout)

    @property
    def place(self) -> str:
        """Return the working tree, or the repository if there is none."""
        return self.repo.worktree or self.repo.common_dir

    async def conflicts(self, path: str = "") -> ConflictView:
        """Return the conflicts and decisions; with the text of one file if it is named.

        Raises:
            WorkspaceError: There is nothing to decide.
        """
        async with self._lock:
            return await self._shown(await self._load(), path)

    async def resolve(self, action: c.ResolutionAction) -> ConflictView:
        """Decide something, written down before it counts; or put the decided result in place.

        Raises:
            WorkspaceError: It cannot be done; nothing was changed.
        """
        async with self._lock:
            review = await self._load()
            if await self.memory.heeded(action):
                review.offers.clear()
                return await self._shown(review)
            match action:
                case c.FinishResolving():
                    return await self._finished(review)
                case c.Regenerate():
                    raise WorkspaceError(
                        f"only the merge of a run makes {action.path} anew, in its sandbox",
                        hint="Take a side, run the command yourself, then write what it made.",
                    )
                case c.AskAgent():
                    raise WorkspaceError("there is no agent here", hint="Only a run has agents.")
                case _:
                    session = await review.after(action)
                    await self._save(review, session)
                    review.session, review.moved, review.opened = session, False, ()
            return await self._shown(review)

    async def _finished(self, review: Review) -> ConflictView:
        tree = await review.tree()
        if self._is_unseen:
            await self._shown(review)
            raise WorkspaceError(
                "files or the index have changed since plait showed them",
                hint="Look at the conflicts again, then continue.",
            )
        view = await self._shown(review)
        await self._put(review, tree)
        await self.memory.learn(review.session, note=f"in {view.doing} of {view.incoming}")
        await self._forget(review)
        return replace(view, is_finished=True, tree=tree)

    async def _shown(self, review: Review, path: str = "") -> ConflictView:
        return self._dressed(await review.view(await self.memory.read(), path=path))

    async def _save(self, review: Review, session: ResolutionSession) -> None:
        await self._write({**self._more(), **review.written(session)})

    async def _forget(self, review: Review) -> None:
        """Drop the decisions that were put in place."""
        del review
        await to_thread.run_sync(lambda: self._path.unlink(missing_ok=True))

    async def _write(self, data: Mapping[str, Any]) -> None:
        await to_thread.run_sync(self._layout.make, self._path.parent)
        packed = json.dumps({"version": _VERSION, **data}, separators=(",", ":")).encode()
        await to_thread.run_sync(partial(write_atomically, self._path, packed))

    async def _written(self) -> Mapping[str, Any]:
        """Return the earlier decisions; nothing if they cannot be read."""
        try:
            data = json.loads(await to_thread.run_sync(self._path.read_bytes))
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) and data.get("version") == _VERSION else {}

    def _more(self) -> Mapping[str, Any]:
        """Return extra data to store beside the decisions."""
        return {}

    @abstractmethod
    async def _load(self) -> Review:
        """Return the review of the merge as it is now."""

    @abstractmethod
    def _dressed(self, view: ConflictView) -> ConflictView:
        """Add to a view where the merge came from."""

    @abstractmethod
    async def _put(self, review: Review, tree: str) -> None:
        """Put the result in its place."""


async def layout_of(repo: Repo) -> Layout:
    """Return the layout that holds the repository's decisions."""
    return await to_thread.run_sync(Layout, Path(repo.common_dir))
