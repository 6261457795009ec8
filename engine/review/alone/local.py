"""Decide a merge in this process, without a run, by the same questions as a worker's.

Where it comes from and where its result goes is for those who make one of it.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CancelScope, Lock, create_task_group, to_thread

from engine.errors import EngineError, WorkspaceError
from engine.git.runner import Repo
from engine.limits import Limits, Usage
from engine.merge import Formatted, HunkKey, OutsideAnswer, ResolutionSession
from engine.messages import commands as c
from engine.messages.merging import ConflictView
from engine.patterns.background import Background
from engine.plan.model import ReviewRules
from engine.review.alone.help import Help
from engine.review.assisting import Spent, is_over
from engine.review.inquiry import Inquiry
from engine.review.memory import MemoryFile
from engine.review.review import Review
from engine.store.files import write_atomically
from engine.store.layout import Layout

_VERSION = 1
Tell = Callable[[ConflictView], None]
"""Hears the view after help has come."""


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
        self.help: Help | None = None
        self._tasks: Background | None = None
        self._tell: Tell = lambda _: None
        self._asking: tuple[HunkKey, CancelScope] | None = None

    @property
    def rules(self) -> ReviewRules:
        """Return what the manifest says about help."""
        return self.help.rules if self.help else ReviewRules()

    @asynccontextmanager
    async def helped(self, tell: Tell) -> AsyncIterator[None]:
        """Fetch help ahead as long as this is entered; `tell` hears the view that it leads to."""
        async with create_task_group() as tasks:
            self._tasks, self._tell = Background(tasks), tell
            tasks.start_soon(self._fetch)
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

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
        if isinstance(action, c.Regenerate):
            return await self._regenerated(action.path)
        if isinstance(action, c.AskAgent):
            return await self._ask(action)
        async with self._lock:
            review = await self._load()
            if await self.memory.heeded(action):
                review.offers.clear()
                return await self._shown(review)
            if isinstance(action, c.FinishResolving):
                return await self._finished(review)
            await self._decide(review, await review.after(action))
            view = await self._shown(review)
        if self._asking and is_over(view, self._asking[0]):
            self._asking[1].cancel()
        return view

    async def _decide(self, review: Review, session: ResolutionSession) -> None:
        await self._save(review, session)
        review.session, review.moved, review.opened = session, False, ()

    # Help.

    def _helper(self) -> Help:
        if self.help is None:
            raise WorkspaceError(
                "nothing can be run for this merge",
                hint="Take a side here. Run the command yourself after the merge.",
            )
        return self.help

    async def _regenerated(self, path: str) -> ConflictView:
        """Make a file anew, by its command and in the sandbox, and decide it by that."""
        helper = self._helper()
        async with self._lock:
            wanted = await (await self._load()).regeneration(path)
        content = await helper.make(wanted)
        async with self._lock:
            review = await self._load()
            await self._decide(review, await review.made(wanted, content))
            return await self._shown(review)

    async def _ask(self, action: c.AskAgent) -> ConflictView:
        """Ask an agent about a hunk; without anybody who waits for news, wait for its answer."""
        inquiry, by = await self._begin(action)
        if self._tasks is not None:
            # An answer that cannot be saved is offered; the next decision says what is wrong.
            self._tasks.start_soon(self._answer, inquiry, by, failed=None)
        else:
            await self._answer(inquiry, by)
        return await self.conflicts()

    async def _begin(self, action: c.AskAgent, *, is_ahead: bool = False) -> tuple[Inquiry, str]:
        """Note that an agent is being asked, before it is."""
        assist = self._helper().rules.assist
        by = action.agent or (assist.agent.name if assist else "")
        if not by:
            raise WorkspaceError(
                "the manifest names no agent to ask",
                hint="Name one: `review: {assist: {agent: NAME}}`.",
            )
        async with self._lock:
            review = await self._load()
            with review.asking_about(action, by=by, is_ahead=is_ahead) as inquiry:
                await self._save(review, review.session)
            self._tell(await self._shown(review))
        return inquiry, by

    async def _answer(self, inquiry: Inquiry, by: str, bounds: Limits | None = None) -> None:
        """Wait for an agent's answer, and keep it; with bounds, it is counted as asked ahead."""
        found: OutsideAnswer | str = ""
        spent = Spent(Usage(), 0.0)
        try:
            found, spent = await self._helper().ask(inquiry, agent=by, bounds=bounds or Limits())
        except (EngineError, OSError) as error:
            found = f"{by}: {error}"
        finally:
            with CancelScope(shield=True):
                await self._answered(inquiry.key, found, spent if bounds else None)

    async def _answered(
        self, key: HunkKey, found: OutsideAnswer | str, spent: Spent | None
    ) -> None:
        async with self._lock:
            with suppress(WorkspaceError):  # the merge may have ended without it
                review = await self._load()
                if spent is not None:
                    review.assisted = review.assisted.ended(
                        spent, is_answer=not isinstance(found, str)
                    )
                    found = found if isinstance(found, str) else found._replace(is_ahead=True)
                review.answered(key, found)
                self._tell(await self._shown(review))
                await self._save(review, review.session)

    async def _fetch(self) -> None:
        """Fetch help ahead; whatever keeps it away, the conflicts can be decided without."""
        with suppress(EngineError, OSError):
            if self.rules.has_help:
                await self._format()
                await self._assist()

    async def _format(self) -> None:
        async with self._lock:
            review = await self._load()
            commit, files = review.sides.ours, review.unformatted
        if not files:
            return
        found: dict[bytes, Formatted | None] = {one.path: None for one in files}
        with suppress(EngineError, OSError):  # it is not tried again
            found |= await self._helper().format(commit, files)
        async with self._lock:
            review = await self._load()
            known = {one.path for one in review.session.conflicts}
            await review.take_formatted({p: one for p, one in found.items() if p in known})
            self._tell(await self._shown(review))

    async def _assist(self) -> None:
        """Ask about one hunk after the other, until all are decided or the budget is used up."""
        while (rule := self.rules.assist) is not None:
            async with self._lock:
                review = await self._load()
                so_far = review.assisted
                if so_far.spent(rule):
                    return
                memory = await self.memory.read()
                question, is_cut = await to_thread.run_sync(review.unsure, memory)
            if is_cut:  # whoever looks at these conflicts meanwhile gets the lock in between
                continue
            if question is None:
                return
            inquiry, by = await self._begin(question, is_ahead=True)
            left = None if rule.usd is None else rule.usd - so_far.usd
            bounds = Limits(time_seconds=rule.seconds - so_far.seconds, budget_usd=left)
            self._asking = (inquiry.key, CancelScope())
            try:
                with self._asking[1]:
                    await self._answer(inquiry, by, bounds)
            finally:
                self._asking = None

    async def _finished(self, review: Review) -> ConflictView:
        tree = await review.tree()
        if self._is_unseen:
            await self._shown(review)
            raise WorkspaceError(
                "files or the index have changed since plait showed them",
                hint="Look at the conflicts again, then continue.",
            )
        view = await self._shown(review)
        # First: if it fails, the error says truly that nothing was changed.
        await self.memory.learn(review.session, note=f"in {view.doing} of {view.incoming}")
        await self._put(review, tree)
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
