"""The one merge under everything: three trees to one, with conflicts as values.

Stacking, landing, weaving, rebasing, previews and the radar all use it. Git does the merging; the
three trees are dressed as commits whose dates never change, so the same question has one answer.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.objects import (
    Wording,
    commit_bytes,
    is_id,
    object_id,
    read_objects,
    scratch_folder,
)
from engine.git.plumbing import asking
from engine.git.plumbing.loose import write_commits
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.settings import Signature
from engine.git.touched import touched_paths
from engine.git.trees import Attributes, unsafe_paths
from engine.private import private_folder

_STDIN_SINCE = (2, 39)
_ABORTED = -6
_LET_LIE = "merge.directoryRenames=false"
_MILDER = (
    (
        (_LET_LIE,),
        "plait left new files where they are, even if the other side moved the folder.",
    ),
    ((_LET_LIE, "merge.renames=false"), "plait merged without following moved files."),
)
"""Ways to merge where git dies of a failed assertion, the one that leaves out least first."""
_NOBODY = Signature("plait", "plait@localhost", 0)
_CLEAN = b"1"


@dataclass(frozen=True, slots=True)
class Stage:
    """One side's version of a conflicting path."""

    mode: str
    oid: str


@dataclass(frozen=True, kw_only=True)
class ConflictedPath:
    """A path that git left open, with the versions there are; a missing one is None."""

    path: bytes
    base: Stage | None = None
    ours: Stage | None = None
    theirs: Stage | None = None


@dataclass(frozen=True, slots=True)
class MergeMessage:
    """A message of git about paths: its own stable kind (`CONFLICT (contents)`) and sentence."""

    kind: str
    paths: tuple[bytes, ...]
    text: str

    @property
    def is_conflict(self) -> bool:
        """It names a conflict, and not merely what was done."""
        return self.kind.startswith("CONFLICT")


@dataclass(frozen=True, kw_only=True)
class MergedTrees:
    """The result of a merge.

    Attributes:
        tree: The result; where there are conflicts it holds marker text and must not be landed.
        unsafe: Paths that the result must not hold (see `engine.git.trees`); never landed either.
        caveat: What was left out of the merge because git died of it, in a sentence for people.
    """

    tree: str
    conflicts: tuple[ConflictedPath, ...] = ()
    messages: tuple[MergeMessage, ...] = ()
    unsafe: tuple[bytes, ...] = ()
    caveat: str = ""

    @property
    def is_clean(self) -> bool:
        """The result may be landed as it is."""
        has_conflict = any(message.is_conflict for message in self.messages)
        return not self.conflicts and not self.unsafe and not has_conflict


@dataclass(frozen=True, slots=True)
class Sides:
    """Three trees (or commits) to merge: `ours` is the target, whose attributes are in force.

    Crossed sides are two commits with several common ancestors. Git then makes a base of its own
    of these, which it does not name; `base` stands for it where a tree is looked at.
    """

    base: str
    ours: str
    theirs: str
    is_crossed: bool = False


class Merger:
    """Merges in one repository; new objects go to the folder `objects`, or to the repository.

    A radar gives a folder of its own: its objects are then seen by nobody else.
    """

    def __init__(self, repo: Repo, *, objects: Path | None = None) -> None:
        self._repo = repo
        self._attributes = Attributes(repo)
        self._folder = objects
        self.where = Where(objects=str(objects)) if objects else HERE

    async def merge3(self, base: str, ours: str, theirs: str) -> MergedTrees:
        """Return the merge of three trees or commits, as `merge` does."""
        return await self.merge(Sides(base, ours, theirs))

    async def merge(self, asked: Sides) -> MergedTrees:
        """Return the merge of two sides.

        Raises:
            WorkspaceError: One of them does not exist.
            GitFailed: Git could not merge them at all.
        """
        (sides,) = await self._trees([asked])
        where = await self._where(sides.ours)
        contents: dict[str, bytes] = {}
        pair = (asked.ours, asked.theirs) if asked.is_crossed else self._dress(sides, contents)
        fields = await asking.merge(self._repo.standing, pair, where, contents)
        if fields is None:
            async with self._lent(contents) as lent:
                merged = await self._single(pair, replace(where, lent=lent))
        else:
            merged = _parse(iter(fields))
        touched = await touched_paths(self._repo, sides.ours, merged.tree, self.where)
        self._attributes.follow(sides.ours, merged.tree, touched)
        return replace(merged, unsafe=unsafe_paths(touched))

    async def preview(self, questions: Sequence[Sides]) -> list[MergedTrees | GitFailed]:
        """Many merges in few processes, each its own answer; unsafe paths are not looked for."""
        trees = await self._trees(questions)
        places = [await self._where(sides.ours) for sides in trees]
        found: list[MergedTrees | GitFailed | None] = [None] * len(questions)
        contents: dict[str, bytes] = {}
        pairs = [
            (asked.ours, asked.theirs) if asked.is_crossed else self._dress(sides, contents)
            for asked, sides in zip(questions, trees, strict=True)
        ]
        async with self._lent(contents) as lent:
            for place in dict.fromkeys(places):
                numbers = [number for number, where in enumerate(places) if where == place]
                asked = [pairs[number] for number in numbers]
                answers = await self._batch(asked, replace(place, lent=lent))
                for number, answer in zip(numbers, answers, strict=True):
                    found[number] = answer
        return [answer for answer in found if answer is not None]

    async def _batch(
        self, pairs: Sequence[tuple[str, str]], where: Where
    ) -> list[MergedTrees | GitFailed]:
        if self._repo.version >= _STDIN_SINCE:
            stdin = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode()
            words = ("merge-tree", "--write-tree", "-z", "--messages", "--stdin")
            try:
                answer = await self._repo.read(*words, call=Call(stdin=stdin), where=where)
                return list(_parse_many(answer))
            except GitFailed:
                pass  # one of them cannot be merged: the others get their answers singly
        return [await self._tried(pair, where) for pair in pairs]

    async def _tried(self, pair: tuple[str, str], where: Where) -> MergedTrees | GitFailed:
        try:
            return await self._single(pair, where)
        except GitFailed as failed:
            return failed

    async def _single(self, pair: tuple[str, str], where: Where) -> MergedTrees:
        """Return one merge by a git of its own, in a milder way where git dies of a mistake."""
        words = ("merge-tree", "--write-tree", "-z", "--messages", *pair)
        ways = iter(_MILDER)
        settings, caveat = tuple[str, ...](), ""
        while True:
            flags = tuple(word for setting in settings for word in ("-c", setting))
            try:
                call = Call(ok=(0, 1), flags=flags)
                answer = await self._repo.read(*words, call=call, where=where)
            except GitFailed as failed:
                way = next(ways, None) if failed.exit_code == _ABORTED else None
                if way is None:
                    raise
                settings, caveat = way[0], f"Git itself crashes in this merge. {way[1]}"
            else:
                return replace(_parse(iter(answer.split(b"\0"))), caveat=caveat)

    async def _where(self, ours: str) -> Where:
        """The target's attributes in force, and no index to find others in."""
        folder = await self._attributes.folder(ours, self.where)
        no_index = f"{self._repo.void}/none"
        return Where(worktree=folder, index=no_index, objects=self.where.objects)

    async def _trees(self, questions: Sequence[Sides]) -> list[Sides]:
        if self._folder is not None:
            folder = self._folder
            await to_thread.run_sync(private_folder, folder)
        every = dict.fromkeys(n for q in questions for n in (q.base, q.ours, q.theirs))
        trees = {name: tree for name in every if (tree := self._repo.cache.trees.get(name))}
        names = [name for name in every if name not in trees]
        trees.update(zip(names, await self._asked(names), strict=True))
        return [Sides(trees[q.base], trees[q.ours], trees[q.theirs]) for q in questions]

    async def _asked(self, names: Sequence[str]) -> list[str]:
        if not names:
            return []
        found = await read_objects(self._repo, [f"{name}^{{tree}}" for name in names], self.where)
        trees = [one[0] for one in found if one is not None]
        if len(trees) < len(names):
            name = names[found.index(None)]
            raise WorkspaceError(f"{name!r} is not a tree of this repository")
        for name, tree in zip(names, trees, strict=True):
            if is_id(name):
                self._repo.cache.learn_tree(name, tree)
        return trees

    def _dress(self, sides: Sides, contents: dict[str, bytes]) -> tuple[str, str]:
        """Both sides as commits on a common base, by their ids; their bytes join `contents`."""

        def commit(tree: str, parents: list[str]) -> str:
            wording = Wording(message="merge\n", author=_NOBODY)
            content = commit_bytes(tree, parents, wording)
            oid = object_id(self._repo, "commit", content)
            contents[oid] = content
            return oid

        base = commit(sides.base, [])
        return commit(sides.ours, [base]), commit(sides.theirs, [base])

    @asynccontextmanager
    async def _lent(self, contents: Mapping[str, bytes]) -> AsyncIterator[str]:
        """A folder to lend, with some commits in it."""
        async with scratch_folder(self._repo) as folder:
            await to_thread.run_sync(write_commits, folder, contents)
            yield str(folder)


def _parse_many(answer: bytes) -> Iterator[MergedTrees]:
    fields = iter(answer.split(b"\0"))
    for status in fields:
        if status:
            merged = _parse(fields)
            if (status == _CLEAN) and merged.conflicts:
                raise WorkspaceError("git called a merge clean and listed conflicts in it")
            yield merged


def _parse(fields: Iterator[bytes]) -> MergedTrees:
    """One answer of `merge-tree -z --messages`: tree, entries, an empty field, messages."""
    tree = next(fields).decode()
    stages: dict[bytes, dict[str, Stage]] = {}
    for field in fields:
        if not field:
            break
        head, path = field.split(b"\t", 1)
        mode, oid, number = head.decode().split(" ")
        stages.setdefault(path, {})[number] = Stage(mode, oid)
    messages: list[MergeMessage] = []
    for field in fields:
        if not field.isdigit():
            break  # the end, or git's long advice about submodules, which no option turns off
        paths = tuple(next(fields) for _ in range(int(field)))
        kind, text = next(fields).decode(), next(fields).decode(errors="replace").strip("\n")
        messages.append(MergeMessage(kind, paths, text))
    conflicts = tuple(
        ConflictedPath(path=path, base=found.get("1"), ours=found.get("2"), theirs=found.get("3"))
        for path, found in stages.items()
    )
    return MergedTrees(tree=tree, conflicts=conflicts, messages=tuple(messages))
