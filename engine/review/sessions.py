"""Keep resolutions under way: one durable session per conflicted worker.

What is kept is a journal of decisions and nothing else; the conflicts are made again from git. So
a session survives the crash of any process, and a target that moved: decisions are carried to the
merge made again, wherever they still fit.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import Lock, to_thread

from engine.core.state import RunState, Worker
from engine.errors import StoreError, WorkspaceError
from engine.git.merge3 import Merger
from engine.git.objects import set_refs
from engine.git.runner import Repo
from engine.ids import RunId, WorkerId
from engine.merge import Formatted, HunkKey, OutsideAnswer, ResolutionSession
from engine.messages import commands as c
from engine.messages.merging import ConflictView
from engine.plan.model import ReviewRules
from engine.review.assisting import Assisted, Spent
from engine.review.inquiry import Inquiry
from engine.review.memory import MemoryFile
from engine.review.questions import (
    MergeQuestion,
    NothingLeft,
    base_question,
    landing_question,
)
from engine.review.review import Regeneration, Review, Unformatted
from engine.store.files import write_atomically
from engine.store.layout import Layout

_VERSION = 1
_FILE = "resolution.json"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Everything is decided.

    Attributes:
        tree: What the decisions make.
        onto: The commit of the target that they were made against; None for a base.
    """

    tree: str
    onto: str | None = None


@dataclass(kw_only=True)
class _Open:
    """The review of a worker's merge."""

    attempt: int
    question: MergeQuestion
    review: Review
    settled: dict[str, str]


class Resolutions:
    """The sessions of one repository's conflicted workers."""

    def __init__(self, repo: Repo, layout: Layout) -> None:
        self._repo = repo
        self._layout = layout
        self._merger = Merger(repo)
        self._open: dict[tuple[RunId, WorkerId], _Open] = {}
        self._locks: dict[tuple[RunId, WorkerId], Lock] = {}
        self.memory = MemoryFile.of(layout)

    def lock(self, run: RunId, worker: WorkerId) -> Lock:
        """Return the lock to hold while changing a worker's decisions."""
        return self._locks.setdefault((run, worker), Lock())

    async def view(self, state: RunState, w: Worker, *, path: str = "") -> ConflictView:
        """Return a worker's conflicts and decisions; with one file's text if it is named.

        Raises:
            WorkspaceError: There is nothing to merge.
        """
        return await self._shown(state, w, await self._load(state, w), path=path)

    async def act(self, state: RunState, w: Worker, action: c.ResolutionAction) -> ConflictView:
        """Decide something, and write it down before it counts.

        Raises:
            WorkspaceError: It cannot be done; nothing was changed.
        """
        opened = await self._load(state, w)
        review = opened.review
        if await self.memory.heeded(action):
            review.offers.clear()
        else:
            session = await review.after(action)
            # Saved first: a decision that a human has seen must survive a crash.
            await self._save(state, w, _data(opened, session))
            review.session, review.moved = session, False
        return await self._shown(state, w, opened)

    async def regeneration(self, state: RunState, w: Worker, path: str) -> Regeneration:
        """Return what a generated file of a worker's merge is made anew from.

        Raises:
            WorkspaceError: Nothing makes it, or another decision comes first.
        """
        return await (await self._load(state, w)).review.regeneration(path)

    async def regenerated(
        self, state: RunState, w: Worker, wanted: Regeneration, content: bytes
    ) -> ConflictView:
        """Decide a file by what its command made, if that was made from what is decided now.

        Raises:
            WorkspaceError: It was not, or it is no text; nothing was changed.
        """
        opened = await self._load(state, w)
        review = opened.review
        session = await review.made(wanted, content)
        await self._save(state, w, _data(opened, session))
        review.session, review.moved = session, False
        return await self._shown(state, w, opened)

    async def unformatted(self, state: RunState, w: Worker) -> tuple[str, tuple[Unformatted, ...]]:
        """Return a commit of the target's, and the files that a formatter has not seen yet.

        Raises:
            WorkspaceError: There is nothing to merge any more.
        """
        review = (await self._load(state, w)).review
        return review.sides.ours, review.unformatted

    async def formatted(
        self, state: RunState, w: Worker, found: Mapping[bytes, Formatted | None]
    ) -> ConflictView:
        """Propose what formatted files come to.

        Raises:
            WorkspaceError: There is nothing to decide any more.
        """
        opened = await self._load(state, w)
        known = {one.path for one in opened.review.session.conflicts}
        await opened.review.take_formatted({p: one for p, one in found.items() if p in known})
        return await self._shown(state, w, opened)

    async def unsure(self, state: RunState, w: Worker) -> tuple[c.AskAgent | None, bool, Assisted]:
        """Return the next question to ask ahead, if it is to be sought on, and the account so far.

        Raises:
            WorkspaceError: There is nothing to merge any more.
        """
        review = (await self._load(state, w)).review
        rule = review.rules.assist
        if rule is None or review.assisted.spent(rule):
            return None, False, review.assisted
        memory = await self.memory.read()
        question, is_cut = await to_thread.run_sync(review.unsure, memory)
        return question, is_cut, review.assisted

    async def asked(
        self, state: RunState, w: Worker, action: c.AskAgent, *, by: str, is_ahead: bool = False
    ) -> Inquiry:
        """Note that an agent is being asked about a hunk; return its inquiry.

        Raises:
            WorkspaceError: There is no such hunk, or it is being asked about already.
        """
        opened = await self._load(state, w)
        review = opened.review
        with review.asking_about(action, by=by, is_ahead=is_ahead) as found:
            await self._save(state, w, _data(opened, review.session))
        return found

    async def answered(
        self,
        state: RunState,
        w: Worker,
        key: HunkKey,
        answer: OutsideAnswer | str,
        *,
        spent: Spent | None = None,
    ) -> ConflictView:
        """Take the result of asking: one more proposal, or the reason why there is none.

        It is shown at once, and `keep` writes it down: what is offered needs no file.

        Raises:
            WorkspaceError: There is nothing to decide any more.
        """
        opened = await self._load(state, w)
        review = opened.review
        review.answered(key, answer)
        if spent is not None:
            review.assisted = review.assisted.ended(spent, is_answer=not isinstance(answer, str))
        return await self._shown(state, w, opened)

    async def keep(self, state: RunState, w: Worker) -> None:
        """Write down what is decided and answered.

        Raises:
            StoreError: It cannot be written.
        """
        opened = await self._load(state, w)
        await self._save(state, w, _data(opened, opened.review.session))

    async def finish(self, state: RunState, w: Worker) -> Finished | None:
        """Return what the decisions make; None if another conflict appears behind this one.

        Raises:
            WorkspaceError: Something is still open.
        """
        opened = await self._load(state, w)
        tree = await opened.review.tree()
        await self._keep(state, tree)
        await self.memory.learn(opened.review.session, note=f"in {state.run}/{w.id}")
        question = opened.question
        if not question.is_of_base:
            return Finished(tree=tree, onto=question.onto)
        settled = {**opened.settled, question.key: tree}
        left = await base_question(self._repo, self._merger, state, w, settled=settled)
        if isinstance(left, NothingLeft):
            await self._keep(state, left.tree)
            return Finished(tree=left.tree)
        begun_anew = _data(replace(opened, settled=settled), ResolutionSession(()))
        await self._save(state, w, begun_anew)
        self._open.pop((state.run, w.id), None)
        return None

    async def _keep(self, state: RunState, tree: str) -> None:
        """Pin the decided tree: until it lands or is built on, nothing else refers to it."""
        ref = f"refs/plait/{state.run}/@resolved/{tree[:16]}"
        await set_refs(self._repo, [(ref, tree)], say="plait: decided")

    async def again(self, state: RunState, w: Worker, *, target: str) -> str | tuple[str, ...]:
        """Redo a worker's decisions on a target that has moved: the tree, or what is open.

        Raises:
            WorkspaceError: There is nothing to merge any more.
        """
        question = await landing_question(self._repo, state, w, target=target)
        async with self.lock(state.run, w.id):
            opened = await self._load(state, w, question=question)
            if await to_thread.run_sync(lambda: opened.review.is_resolved):
                return await opened.review.tree()
            return tuple(opened.review.open_paths)

    async def paths(self, state: RunState, w: Worker) -> tuple[str, ...]:
        """Return every path that conflicts, decided or not.

        Raises:
            WorkspaceError: There is nothing to merge any more.
        """
        opened = await self._load(state, w)
        return tuple(os.fsdecode(one.path) for one in opened.review.session.conflicts)

    async def tree(self, state: RunState, w: Worker) -> Finished:
        """Return what would land (or be built on) now, without finishing.

        Raises:
            WorkspaceError: Something is still open.
        """
        opened = await self._load(state, w)
        return Finished(tree=await opened.review.tree(), onto=opened.question.onto)

    async def _load(
        self, state: RunState, w: Worker, *, question: MergeQuestion | None = None
    ) -> _Open:
        """Return the session on the merge as it is now; rebuild it if a side has changed."""
        known = self._open.get((state.run, w.id))
        if known is None or known.attempt != w.attempt.number:
            written = await to_thread.run_sync(_read, self._path(state, w), w.attempt.number)
        else:
            written = _data(known, known.review.session)
        settled = _settled(written)
        if question is None:
            question = await self._question(state, w, settled)
        if known and known.attempt == w.attempt.number and known.question == question:
            return known
        rules = state.plan.review
        opened = await self._make(w, question, written, settled=settled, rules=rules)
        # An engine before this one may have died while an agent was being asked.
        if known is None:
            opened.review.give_up_asking()
        self._open[state.run, w.id] = opened
        return opened

    async def _question(self, state: RunState, w: Worker, settled: dict[str, str]) -> MergeQuestion:
        if not w.review.is_conflict_of_base:
            return await landing_question(self._repo, state, w)
        found = await base_question(self._repo, self._merger, state, w, settled=settled)
        if isinstance(found, NothingLeft):
            raise WorkspaceError(
                f"the base of {w.id} no longer has conflicts",
                hint=f"`plait retry {w.id}` starts it.",
            )
        return found

    async def _make(
        self,
        w: Worker,
        question: MergeQuestion,
        written: Mapping[str, Any],
        *,
        settled: dict[str, str],
        rules: ReviewRules,
    ) -> _Open:
        review = await Review.begin(self._repo, self._merger, question.sides, question.names)
        review.rules = rules
        if "session" in written and written.get("is_of_base") is question.is_of_base:
            await review.take_over(written)
            onto = written.get("onto", question.onto)
            review.moved = bool(review.session.journal or review.opened) and onto != question.onto
        return _Open(attempt=w.attempt.number, question=question, review=review, settled=settled)

    async def _shown(
        self, state: RunState, w: Worker, opened: _Open, *, path: str = ""
    ) -> ConflictView:
        view = await opened.review.view(await self.memory.read(), path=path)
        check = w.review.check
        return replace(
            view,
            run=state.run,
            worker=str(w.id),
            attempt=w.attempt.number,
            is_of_base=opened.question.is_of_base,
            check=check if check and view.tree and check.speaks_for(view.tree) else None,
        )

    def _path(self, state: RunState, w: Worker) -> Path:
        return self._layout.worker(state.run, w.id) / _FILE

    async def _save(self, state: RunState, w: Worker, written: Mapping[str, Any]) -> None:
        path = self._path(state, w)
        data = json.dumps(written, separators=(",", ":")).encode()
        try:
            await to_thread.run_sync(self._layout.make, path.parent)
        except OSError as error:
            raise StoreError(f"{path.parent} cannot be created: {error.strerror}") from error
        await to_thread.run_sync(partial(write_atomically, path, data))


def _data(opened: _Open, session: ResolutionSession) -> dict[str, Any]:
    """Return the data to write for a review with this session."""
    return {
        "version": _VERSION,
        "attempt": opened.attempt,
        "is_of_base": opened.question.is_of_base,
        "onto": opened.question.onto,
        "settled": opened.settled,
        **opened.review.written(session),
    }


def _read(path: Path, attempt: int) -> Mapping[str, Any]:
    """Return what was written for this attempt; nothing if absent or of another version."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"the choices in {path} cannot be read: {error}",
            hint="Move that file away to start the resolution again.",
        ) from error
    is_ours = isinstance(data, dict) and data.get("version") == _VERSION
    return data if is_ours and data.get("attempt") == attempt else {}


def _settled(written: Mapping[str, Any]) -> dict[str, str]:
    return dict(written.get("settled") or {})
