"""Merge two branches in memory: show the conflicts and make the decided tree."""

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from anyio import create_task_group, to_thread
from anyio.from_thread import start_blocking_portal
from anyio.lowlevel import checkpoint

from engine.errors import EngineError, WorkspaceError
from engine.git.common import common_sides
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.objects import commits_of
from engine.git.runner import Repo
from engine.merge import (
    Choice,
    ConflictHunk,
    ConflictKind,
    FileConflict,
    FilePlace,
    HunkKey,
    Lessons,
    Memory,
    Option,
    Proposal,
    ResolutionSession,
    SideNames,
    Whole,
    lessons,
    options,
    propose,
    reads_still,
    with_lessons,
)
from engine.review.conflicts import Conflicts, read_conflicts
from engine.review.memory import MemoryFile
from engine.review.results import result_tree
from engine.store.layout import Layout

T = TypeVar("T")


@dataclass(frozen=True)
class Previewed:
    """Two branches merged in memory."""

    sides: Sides
    merged: MergedTrees
    conflicts: Conflicts

    @property
    def is_clean(self) -> bool:
        """Return whether nothing needs a decision and nothing is unsafe to publish."""
        return not self.conflicts.files and self.merged.is_clean


async def preview(repo: Repo, target: str, incoming: str) -> Previewed:
    """Return the result of `git merge INCOMING` on TARGET; write nothing but objects.

    Raises:
        WorkspaceError: A name is not a commit, or the two have no common ancestor.
    """
    mine, theirs = await commits_of(repo, target, incoming)
    merger = Merger(repo)
    sides = await common_sides(repo, merger, mine, theirs)
    merged = await merger.merge(sides)
    if merged.is_clean:
        return Previewed(sides, merged, Conflicts(()))
    names = SideNames(target, incoming)
    return Previewed(sides, merged, await read_conflicts(repo, merged, sides, names))


class OpenConflict:
    """One conflict of an open merge, with its proposals."""

    def __init__(
        self, file: FileConflict, memory: Memory, learned: Mapping[tuple[bytes, HunkKey], Lessons]
    ) -> None:
        self.file = file
        self._memory = memory
        self._lessons = learned

    @property
    def path(self) -> bytes:
        """Return the conflict's path; it stays the same whatever happens to the files."""
        return self.file.path

    @property
    def kind(self) -> ConflictKind:
        """Return the kind of conflict."""
        return self.file.kind

    @property
    def hunks(self) -> tuple[ConflictHunk, ...]:
        """Return the places where both sides differ; none if only whole files can be chosen."""
        return self.file.open.hunks

    @property
    def proposals(self) -> tuple[tuple[Proposal, ...], ...]:
        """Return the proposals for each hunk, surest first; none is applied by itself."""
        accepts = reads_still(self.file)
        offers = (propose(hunk, memory=self._memory, accepts=accepts) for hunk in self.hunks)
        return tuple(
            with_lessons(offered, hunk, self._lessons.get((self.path, hunk.key), Lessons()))
            for offered, hunk in zip(offers, self.hunks, strict=True)
        )

    @property
    def options(self) -> tuple[Option, ...]:
        """Return the choices for the whole path, with what each would do."""
        return options(self.file)


@dataclass
class OpenMerge:
    """A merge that you resolve in memory; it writes only git objects.

    In async code, open it with `await OpenMerge.begin(…)` and write its tree with `await
    merge.write_tree()`. Otherwise, use `open_merge` and `tree()`.
    """

    repo: Repo
    previewed: Previewed
    session: ResolutionSession
    memory: Memory = field(default_factory=Memory)

    @classmethod
    async def begin(
        cls,
        repo: str | PathLike[str],
        *,
        target: str,
        incoming: str,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Open the merge of two branches, for async code."""
        env = os.environ if environment is None else environment
        found = await Repo.open(Path(repo), env)
        made = await _with_standing_gits(found, partial(preview, found, target, incoming))
        layout = await to_thread.run_sync(Layout, Path(found.common_dir))
        memory = await MemoryFile.of(layout).read()
        return cls(found, made, ResolutionSession(made.conflicts.files), memory)

    @property
    def conflicts(self) -> tuple[OpenConflict, ...]:
        """Return the conflicts, ordered by path."""
        learned = lessons(self.session, self._offered)
        return tuple(OpenConflict(file, self.memory, learned) for file in self.session.conflicts)

    def _offered(self, hunk: ConflictHunk) -> tuple[Proposal, ...]:
        return propose(hunk, memory=self.memory)

    @property
    def is_clean(self) -> bool:
        """Return True if the merge had no conflict from the start."""
        return self.previewed.is_clean

    @property
    def is_resolved(self) -> bool:
        """Return True if every conflict is resolved."""
        return self.session.is_resolved

    @property
    def unsafe(self) -> tuple[bytes, ...]:
        """Return paths of the incoming side that are unsafe to check out."""
        return self.previewed.merged.unsafe

    @property
    def caveat(self) -> str:
        """Return a sentence about what git left out of the merge; empty if it merged everything."""
        return self.previewed.merged.caveat

    @property
    def tree_now(self) -> str:
        """Return the tree that git left; it is the result only if the merge is clean."""
        return self.previewed.merged.tree

    def choose(self, path: bytes | str, hunk: HunkKey | int, choice: Choice | str | bytes) -> None:
        """Resolve one hunk, given by its number from 0 or its key.

        Raises:
            KeyError: There is no such path or hunk.
            ValueError: The choice does not fit, or the conflict has no hunks.
        """
        self.session = self.session.choose(os.fsencode(path), hunk, choice)

    def choose_whole(self, path: bytes | str, choice: Whole | str) -> None:
        """Choose one of the `options` for a whole path."""
        self.session = self.session.choose_whole(os.fsencode(path), choice)

    def choose_mode(self, path: bytes | str, mode: str) -> None:
        """Choose the mode of a file: `100644` or `100755`."""
        self.session = self.session.choose_mode(os.fsencode(path), mode)

    def choose_place(self, path: bytes | str, place: FilePlace | str) -> None:
        """Choose the place of a file that both sides moved."""
        self.session = self.session.choose_place(os.fsencode(path), place)

    def set_file(self, path: bytes | str, content: bytes | None, mode: str = "100644") -> None:
        """Write content at a path, in conflict or not; None deletes the file."""
        self.session = self.session.set_file(os.fsencode(path), content, mode=mode)

    def undo(self) -> None:
        """Undo the last choice."""
        self.session = self.session.undo()

    def redo(self) -> None:
        """Redo the last choice that you undid."""
        self.session = self.session.redo()

    async def write_tree(self) -> str:
        """Write the resulting tree; return its id.

        Raises:
            WorkspaceError: A conflict is still open.
        """
        results = self.session.results()
        if results is None:
            left = [c.path for c in self.conflicts if not self.session.is_file_resolved(c.path)]
            names = ", ".join(path.decode(errors="replace") for path in left)
            raise WorkspaceError(f"still to resolve: {names}")
        made = self.previewed
        return await result_tree(self.repo, made.merged, made.conflicts, results)

    def tree(self) -> str:
        """Return the id of the resulting tree, for code that is not async.

        Raises:
            WorkspaceError: A conflict is still open.
        """
        return _in_loop(self.write_tree)


async def _with_standing_gits(repo: Repo, work: Callable[[], Awaitable[T]]) -> T:
    """Do a piece of work in which one git answers all questions of a kind."""
    found: list[T] = []
    failed: EngineError | None = None
    async with create_task_group() as group:
        group.start_soon(repo.standing.serve)
        await checkpoint()
        try:
            found.append(await work())
        except EngineError as error:
            failed = error  # raised below: a task group would put it into an ExceptionGroup
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return found[0]


def open_merge(
    repo: str | PathLike[str],
    *,
    target: str,
    incoming: str,
    environment: Mapping[str, str] | None = None,
) -> OpenMerge:
    """Open the merge of two branches in memory, to inspect and resolve it.

    This call blocks while git works. In async code, use `await OpenMerge.begin(…)`.

    Raises:
        WorkspaceError: A name is not a commit, or the two have no common ancestor.
    """
    begin = partial(
        OpenMerge.begin, repo, target=target, incoming=incoming, environment=environment
    )
    return _in_loop(begin)


def _in_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it to its end in a loop of its own, in a thread of its own."""
    with start_blocking_portal() as portal:
        found: T = portal.call(work)
        return found
