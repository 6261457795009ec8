"""Resolve merges that no run and no index holds: two branches, the files of `git mergetool`."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Self

from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git.common import common_sides
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.objects import commit_of, write_blob
from engine.git.runner import Repo
from engine.merge import ConflictKind, FileConflict, FileSide, ResolutionSession, SideNames
from engine.messages.merging import ConflictView
from engine.review.alone.local import MergeReview, layout_of
from engine.review.alone.own import taken_over
from engine.review.conflicts import Conflicts
from engine.review.review import Review
from engine.store.files import write_atomically
from engine.store.layout import Layout


class BranchMerge(MergeReview):
    """The merge of any two revisions in memory; its result is a tree that no ref names."""

    def __init__(self, repo: Repo, layout: Layout, names: SideNames) -> None:
        super().__init__(repo, layout, f"branches {names.target}\0{names.incoming}")
        self._names = names
        self._merger = Merger(repo)
        self._known: Review | None = None

    @classmethod
    async def begin(
        cls,
        repo: str | PathLike[str],
        *,
        target: str,
        incoming: str,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Merge two revisions in memory.

        Raises:
            WorkspaceError: One of them names no commit, or they have none in common.
        """
        env = os.environ if environment is None else environment
        found = await Repo.open(Path(repo), env)
        merge = cls(found, await layout_of(found), SideNames(target, incoming))
        await merge._load()
        return merge

    async def _load(self) -> Review:
        mine = await commit_of(self.repo, self._names.target)
        theirs = await commit_of(self.repo, self._names.incoming)
        known = self._known
        if known is not None and (known.sides.ours, known.sides.theirs) == (mine, theirs):
            return known
        sides = await common_sides(self.repo, self._merger, mine, theirs)
        review = await Review.begin(self.repo, self._merger, sides, self._names)
        written = await self._written()
        if "session" in written:
            await review.take_over(written)
        review.moved = known is not None
        self._known = review
        return review

    def _dressed(self, view: ConflictView) -> ConflictView:
        names = self._names
        step = f"git commit-tree {view.tree} -p {names.target} -p {names.incoming} -m Merge"
        return replace(view, doing="preview", next_step=step if view.tree else "")

    async def _put(self, review: Review, tree: str) -> None:
        """Do nothing: the result is an object already."""


@dataclass(frozen=True, kw_only=True)
class ToolFiles:
    """The files that `git mergetool` names: three versions, and where the result is to go."""

    base: Path
    local: Path
    remote: Path
    merged: Path


class ToolMerge(MergeReview):
    """One file for `git mergetool`."""

    def __init__(
        self, repo: Repo, layout: Layout, files: ToolFiles, texts: tuple[bytes, bytes, bytes]
    ) -> None:
        digest = hashlib.blake2b(b"\0".join(texts)).hexdigest()
        super().__init__(repo, layout, f"tool {files.merged.name} {digest}")
        self._files = files
        self._texts = texts
        self._known: Review | None = None

    @classmethod
    async def begin(cls, files: ToolFiles, environment: Mapping[str, str] | None = None) -> Self:
        """Open the merge of these files.

        Raises:
            WorkspaceError: One of them cannot be read.
        """
        env = os.environ if environment is None else environment
        repo = await Repo.open(files.merged.parent, env)
        texts = await to_thread.run_sync(_texts, files)
        merge = cls(repo, await layout_of(repo), files, texts)
        await merge._load()
        return merge

    async def _load(self) -> Review:
        if self._known is None:
            self._known = await self._begun()
        return self._known

    async def _begun(self) -> Review:
        path = os.fsencode(self._files.merged.name)
        blobs = [await write_blob(self.repo, text) for text in self._texts]
        sides = [
            FileSide(path=path, mode="100644", blob=blob, content=text)
            for blob, text in zip(blobs, self._texts, strict=True)
        ]
        base = sides[0] if self._texts[0] else None
        conflict = FileConflict(
            path=path,
            kind=ConflictKind.CONTENTS,
            base=base,
            target=sides[1],
            incoming=sides[2],
            names=SideNames("local", "remote"),
        ).told_exactly()
        empty = self.repo.empty_tree
        review = Review(
            repo=self.repo,
            sides=Sides(empty, empty, empty),
            names=conflict.names,
            merged=MergedTrees(tree=empty),
            conflicts=Conflicts((conflict,)),
            session=ResolutionSession((conflict,)),
        )
        written = await self._written()
        if "session" in written:
            await review.take_over(written)
            return review
        now = await to_thread.run_sync(_content, self._files.merged)
        if now:
            begun = taken_over(review.session, path, None, now, is_gone=False)
            review.session = begun or review.session
        return review

    def _dressed(self, view: ConflictView) -> ConflictView:
        return replace(view, doing="mergetool")

    async def _put(self, review: Review, tree: str) -> None:
        del tree
        results = review.session.results() or ()
        content = next((one.content for one in results if one.mode is not None), None)
        if content is None:
            raise WorkspaceError(
                "your choices delete the file", hint="Delete it yourself with `git rm`."
            )
        await to_thread.run_sync(_write, self._files.merged, content)


def _write(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode if path.exists() else None
    write_atomically(path, content)
    if mode is not None:
        path.chmod(mode & 0o7777)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _texts(files: ToolFiles) -> tuple[bytes, bytes, bytes]:
    try:
        return _content(files.base), files.local.read_bytes(), files.remote.read_bytes()
    except OSError as error:
        raise WorkspaceError(f"{error.filename} cannot be read: {error.strerror}") from error
