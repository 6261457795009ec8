"""Resolutions under way: one durable session per conflicted worker, written after every step.

What is kept is a journal of decisions and nothing else; the conflicts are made again from git. So
a session survives the death of any process, and a target that moved: decisions are carried to the
merge made again, wherever they still fit.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import Lock, to_thread

from engine import commands as c
from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.git.merge3 import MergedTrees, Merger
from engine.git.runner import Repo
from engine.ids import RunId, WorkerId
from engine.merge import Hunk, HunkKey, Memory, Proposal, ResolutionSession, propose
from engine.store.files import write_atomically
from engine.store.layout import Layout
from engine.supervisor.merging.actions import decided
from engine.supervisor.merging.conflicts import Conflicts, read_conflicts
from engine.supervisor.merging.memory import MemoryFile
from engine.supervisor.merging.questions import (
    NothingLeft,
    Question,
    base_question,
    landing_question,
)
from engine.supervisor.merging.results import result_tree
from engine.supervisor.merging.views import ConflictView, file_views, shown_path

_VERSION = 1
_FILE = "resolution.json"
_THINKS_S = 0.3


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
    """A worker's merge and what is decided about it, as long as its sides stay what they are."""

    attempt: int
    question: Question
    merged: MergedTrees
    conflicts: Conflicts
    session: ResolutionSession
    settled: dict[str, str]
    clean: int = 0
    opened: tuple[str, ...] = ()
    to_look_at: tuple[str, ...] = ()
    trees: dict[tuple[object, ...], str] = field(default_factory=dict)
    offers: dict[HunkKey, tuple[Proposal, ...]] = field(default_factory=dict)


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
        """To be held by whoever changes what is decided for a worker."""
        return self._locks.setdefault((run, worker), Lock())

    async def view(self, state: RunState, w: Worker, *, path: str = "") -> ConflictView:
        """The conflicts and decisions of a worker; with the text of one file if it is named.

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
        match action:
            case c.ForgetAnswer():
                await self.memory.forget(action.key)
                opened.offers.clear()
            case c.ConfirmAnswer():
                await self.memory.confirm(action.key)
                opened.offers.clear()
            case _:
                session = await to_thread.run_sync(decided, opened.session, action)
                await self._save(state, w, replace(opened, session=session))
                opened.session = session
        return await self._shown(state, w, opened)

    async def finish(self, state: RunState, w: Worker) -> Finished | None:
        """What the decisions make; None where another conflict comes to light behind this one.

        Raises:
            WorkspaceError: Something is still open.
        """
        opened = await self._load(state, w)
        tree = await self._tree(opened)
        await self.memory.learn(opened.session, note=f"in {state.run}/{w.id}")
        question = opened.question
        if not question.is_of_base:
            return Finished(tree=tree, onto=question.onto)
        settled = {**opened.settled, question.key: tree}
        left = await base_question(self._repo, self._merger, state, w, settled=settled)
        if isinstance(left, NothingLeft):
            return Finished(tree=left.tree)
        fresh = replace(opened, settled=settled, session=ResolutionSession(()))
        await self._save(state, w, fresh)
        self._open.pop((state.run, w.id), None)
        return None

    async def again(self, state: RunState, w: Worker, *, target: str) -> str | tuple[str, ...]:
        """The tree that a worker's decisions make on a target that has moved, or what is open.

        Raises:
            WorkspaceError: There is nothing to merge any more.
        """
        question = await landing_question(self._repo, state, w, target=target)
        async with self.lock(state.run, w.id):
            opened = await self._load(state, w, question=question)
            if opened.session.is_resolved:
                return await self._tree(opened)
            left = [c.path for c in opened.session.conflicts]
            is_open = [path for path in left if not opened.session.is_file_resolved(path)]
            return tuple(map(shown_path, is_open))

    async def tree(self, state: RunState, w: Worker) -> Finished:
        """What would be landed (or built on) now, without going on.

        Raises:
            WorkspaceError: Something is still open.
        """
        opened = await self._load(state, w)
        return Finished(tree=await self._tree(opened), onto=opened.question.onto)

    async def _tree(self, opened: _Open) -> str:
        session = opened.session
        results = session.results()
        if results is None:
            paths = [one.path for one in session.conflicts]
            left = [shown_path(path) for path in paths if not session.is_file_resolved(path)]
            raise WorkspaceError(f"still to be decided: {', '.join(left)}")
        key = session.journal
        if key not in opened.trees:
            made = await result_tree(self._repo, opened.merged, opened.conflicts, results)
            opened.trees = {key: made}
        return opened.trees[key]

    async def _load(self, state: RunState, w: Worker, *, question: Question | None = None) -> _Open:
        """The session over the merge as it is now; made again where its sides have changed."""
        known = self._open.get((state.run, w.id))
        if known is None or known.attempt != w.attempt:
            written = await to_thread.run_sync(_read, self._path(state, w), w.attempt)
        else:
            written = _data(known)
        settled = _settled(written)
        if question is None:
            question = await self._question(state, w, settled)
        if known and known.attempt == w.attempt and known.question == question:
            return known
        opened = await self._make(w, question, written, settled=settled)
        self._open[state.run, w.id] = opened
        return opened

    async def _question(self, state: RunState, w: Worker, settled: dict[str, str]) -> Question:
        if not w.is_conflict_of_base:
            return await landing_question(self._repo, state, w)
        found = await base_question(self._repo, self._merger, state, w, settled=settled)
        if isinstance(found, NothingLeft):
            raise WorkspaceError(
                f"what {w.id} builds on has no conflict any more", hint="Finish it, or retry."
            )
        return found

    async def _make(
        self, w: Worker, question: Question, written: Mapping[str, Any], *, settled: dict[str, str]
    ) -> _Open:
        sides = question.sides
        merged = await self._merger.merge3(sides.base, sides.ours, sides.theirs)
        conflicts = await read_conflicts(self._repo, merged, sides, question.names)
        words = ("diff-tree", "-r", "-z", "--name-only", sides.ours, merged.tree, "--")
        names = (await self._repo.read(*words)).count(b"\0")
        opened = _Open(
            attempt=w.attempt,
            question=question,
            merged=merged,
            conflicts=conflicts,
            session=ResolutionSession(conflicts.files),
            settled=settled,
            clean=max(0, names - len(merged.conflicts)),
        )
        if "session" in written and written.get("is_of_base") is question.is_of_base:
            read = partial(ResolutionSession.from_json, written["session"], conflicts.files)
            opened.session, carried = await to_thread.run_sync(read)
            paths = (at if isinstance(at, bytes) else at.path for at in carried.opened)
            opened.opened = tuple(map(shown_path, dict.fromkeys(paths)))
            opened.to_look_at = tuple(map(shown_path, carried.to_look_at))
        return opened

    async def _shown(
        self, state: RunState, w: Worker, opened: _Open, *, path: str = ""
    ) -> ConflictView:
        memory = await self.memory.read()
        session, question = opened.session, opened.question
        offers = _Offers(opened.offers, memory)
        text_of = path.encode(errors="surrogateescape") or None
        files = await to_thread.run_sync(partial(file_views, session, offers.of, with_text=text_of))
        tree, problem = None, ""
        if session.is_resolved:
            try:
                tree = await self._tree(opened)
            except WorkspaceError as error:
                problem = f"{error} {error.hint}".strip()
        return ConflictView(
            run=state.run,
            worker=str(w.id),
            attempt=w.attempt,
            target=question.names.target,
            incoming=question.names.incoming,
            files=files,
            is_of_base=question.is_of_base,
            is_resolved=session.is_resolved,
            can_undo=bool(session.journal),
            can_redo=bool(session.undone),
            tree=tree,
            check=w.check if w.check and tree and w.check.tree == tree else None,
            clean=opened.clean,
            opened=opened.opened,
            to_look_at=opened.to_look_at,
            problem=problem,
            is_thinking=offers.is_cut,
        )

    def _path(self, state: RunState, w: Worker) -> Path:
        return self._layout.worker(state.run, w.id) / _FILE

    async def _save(self, state: RunState, w: Worker, opened: _Open) -> None:
        path = self._path(state, w)
        data = json.dumps(_data(opened), separators=(",", ":")).encode()
        await to_thread.run_sync(self._layout.make, path.parent)
        await to_thread.run_sync(partial(write_atomically, path, data))


class _Offers:
    """What is offered for each hunk, thought out once; no look may take long over it."""

    def __init__(self, known: dict[HunkKey, tuple[Proposal, ...]], memory: Memory) -> None:
        self._known = known
        self._memory = memory
        self._until = time.monotonic() + _THINKS_S
        self.is_cut = False

    def of(self, hunk: Hunk) -> tuple[Proposal, ...]:
        """The proposals for a hunk; none where there is no time left to think."""
        if hunk.key not in self._known:
            if time.monotonic() > self._until:
                self.is_cut = True
                return ()
            self._known[hunk.key] = propose(hunk, memory=self._memory)
        return self._known[hunk.key]


def _data(opened: _Open) -> dict[str, Any]:
    """What is written down of a session."""
    return {
        "version": _VERSION,
        "attempt": opened.attempt,
        "is_of_base": opened.question.is_of_base,
        "settled": opened.settled,
        "session": opened.session.to_json(),
    }


def _read(path: Path, attempt: int) -> Mapping[str, Any]:
    """What was written for this attempt; nothing where there is none, or another version's."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"the decisions in {path} cannot be read: {error}",
            hint="Move that file away to begin the resolution anew.",
        ) from error
    is_ours = isinstance(data, dict) and data.get("version") == _VERSION
    return data if is_ours and data.get("attempt") == attempt else {}


def _settled(written: Mapping[str, Any]) -> dict[str, str]:
    return dict(written.get("settled") or {})
