"""Paths of trees that must not be published, and the attributes that trees bring along."""

import os
from collections.abc import Hashable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

from anyio import to_thread

from engine.errors import GitFailed
from engine.git.objects import TreeEntry, read_blobs
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.touched import Touched, touched_paths
from engine.git.unsafe import is_unsafe

_FILES = frozenset({"100644", "100755"})


def unsafe_paths(touched: Iterable[Touched]) -> tuple[bytes, ...]:
    """Paths that must not be published, among those that a merge brings."""
    return tuple(
        one.path for one in touched if one.new is not None and is_unsafe(one.path, one.new.mode)
    )


class Attributes:
    """The `.gitattributes` files of trees, each set laid out in a folder of ours.

    Git reads attributes from the working tree it is given: pointing it to such a folder puts
    exactly one tree's attributes in force, whatever is checked out where.
    """

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    async def folder(self, tree: str, where: Where = HERE) -> str:
        """The folder for a tree; the empty one for a tree that sets no attributes."""
        known = self._known(tree) or await self._as_before(tree, where)
        if known is None:
            entries = [entry for entry in await self._listed(tree, where) if entry.mode in _FILES]
            blobs = await read_blobs(self._repo, [entry.oid for entry in entries], where)
            paths = [entry.path for entry in entries]
            files = dict(zip(paths, blobs, strict=True))
            known = await to_thread.run_sync(self._lay_out, tree, files)
        self._learn(tree, known)
        self._repo.cache.put(_latest(where), tree)
        return known

    async def _as_before(self, tree: str, where: Where) -> str | None:
        """Return the folder of the tree before, where the two differ in no attributes."""
        before = self._repo.cache.known(_latest(where))
        if not isinstance(before, str):
            return None
        with suppress(GitFailed):  # that one may be gone
            self.follow(before, tree, await touched_paths(self._repo, before, tree, where))
        return self._known(tree)

    def follow(self, tree: str, later: str, touched: Iterable[Touched]) -> None:
        """A tree made from one that is known has its attributes, if no file of them differs."""
        known = self._known(tree)
        is_same = not any(one.path.rpartition(b"/")[2] == b".gitattributes" for one in touched)
        if is_same and known is not None:
            self._learn(later, known)

    def _known(self, tree: str) -> str | None:
        return cast("str | None", self._repo.cache.known(("attributes", tree)))

    def _learn(self, tree: str, folder: str) -> None:
        self._repo.cache.put(("attributes", tree), folder)

    async def _listed(self, tree: str, where: Where) -> list[TreeEntry]:
        """The attribute files of a tree, found by git: in a large tree they are few."""
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
        every = (*words, self._repo.empty_tree, tree, "--", ":(top,glob)**/.gitattributes")
        call = Call(env={"GIT_LITERAL_PATHSPECS": "0"})
        fields = (await self._repo.read(*every, call=call, where=where)).split(b"\0")
        pairs = [
            (head.split(b" "), path) for head, path in zip(fields[::2], fields[1::2], strict=False)
        ]
        return [
            TreeEntry(path, head[1].decode(), head[3].decode())
            for head, path in pairs
            if not is_unsafe(path)
        ]

    def _lay_out(self, tree: str, files: dict[bytes, bytes]) -> str:
        if not files:
            return self._repo.void
        folder = self._repo.plait_dir / "git" / f"attributes-{tree[:16]}"
        for path, content in files.items():
            file = folder / os.fsdecode(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = Path(f"{file}.{os.getpid()}")
            partial.write_bytes(content)
            partial.replace(file)
        return str(folder)


def _latest(where: Where) -> Hashable:
    """Under this the tree is known that was asked for last, among objects of the same folder."""
    return "attributes of", where.objects
