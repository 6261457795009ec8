"""Resolve the user's own merges, without a run, with the decisions a worker's merge has.

What git goes on with afterwards is offered and never done.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

from anyio import to_thread

from engine.errors import WorkspaceError
from engine.git.merge3 import ConflictedPath, MergedTrees, MergeMessage, Merger, Sides
from engine.git.plumbing.contents import FileVersion
from engine.git.runner import Repo
from engine.git.unfinished import (
    Doing,
    Unfinished,
    edited_files,
    lines_of,
    put,
    remove_dead_locks,
    settled_tree,
    unfinished,
)
from engine.merge import (
    FileConflict,
    Pick,
    ResolutionSession,
    SideNames,
    adopted,
    has_markers,
    last_picks,
)
from engine.messages.merging import ConflictView
from engine.review.alone.help import Help
from engine.review.alone.local import MergeReview, layout_of
from engine.review.reading import contents_of, entries_of
from engine.review.review import Review
from engine.store.layout import Layout

_UNCLEAR = "?"
"""Before the object of an edit of the user's of which nothing could be taken over."""


class OwnMerge(MergeReview):
    """The unfinished operation in a working tree: merge, rebase, cherry-pick, revert, stash."""

    def __init__(self, repo: Repo, layout: Layout) -> None:
        super().__init__(repo, layout, f"index {repo.git_dir}")
        self._merger = Merger(repo)
        self._known: tuple[object, Unfinished, Review] | None = None
        self._seen: dict[str, str] = {}
        self._before: tuple[Pick | None, ...] = ()

    @classmethod
    async def begin(
        cls, folder: str | PathLike[str], environment: Mapping[str, str] | None = None
    ) -> Self:
        """Return the conflicts of the working tree that holds a folder.

        Raises:
            WorkspaceError: There are no conflicts.
        """
        env = os.environ if environment is None else environment
        repo = await Repo.open(Path(folder), env)
        await remove_dead_locks(repo)
        merge = cls(repo, await layout_of(repo))
        await merge._load()  # a merge without conflicts is no review
        return merge

    def take_help(self, given: Help) -> None:
        """Let commands and an agent help with the conflicts."""
        self.help = given
        if self._known is not None:
            self._known[2].rules = given.rules

    async def _load(self) -> Review:
        before = self._known
        if before is not None and before[0] == await to_thread.run_sync(self._signs, before[1]):
            return before[2]
        state = await unfinished(self.repo)
        if not state.conflicts:
            is_under_way = state.doing is not Doing.INDEX
            hint = f"`{state.next_step}` continues." if is_under_way else "Nothing is being merged."
            raise WorkspaceError("there is no open conflict here", hint=hint)
        review = await self._review(state)
        review.rules = self.rules
        written = await self._written()
        is_same = written.get("merge") == _name(state)
        self._seen = dict(written.get("seen") or {}) if is_same else {}
        is_going_on = bool(state.series) and written.get("series") == state.series
        self._before = _picks(written.get("picked") or ()) if is_going_on else ()
        review.picked_before = self._before
        if is_same and "session" in written:
            await review.take_over(written)
            if before is None:  # whoever asked is gone
                review.give_up_asking()
        signs = await to_thread.run_sync(self._signs, state)
        self._known = (signs, state, review)
        if await self._adopt(state, review):
            await self._save(review, review.session)
        review.moved = self._is_unseen = before is not None
        return review

    def _signs(self, state: Unfinished) -> object:
        """Return a value that changes when git or the user has changed something."""
        top = Path(self.repo.worktree or "")
        files = [Path(self.repo.git_dir, "index"), Path(self.repo.git_dir, "HEAD")]
        files += [top / os.fsdecode(one.path) for one in state.conflicts]
        return [_sign(file) for file in files]

    async def _review(self, state: Unfinished) -> Review:
        names = SideNames(state.target, state.incoming)
        here = state.sides or Sides(state.head, state.head, state.head)
        told = await self._merger.merge(here) if state.sides is not None else None
        merged = as_index(state, told, await settled_tree(self.repo))
        return await Review.of(self.repo, merged, here, names)

    async def _adopt(self, state: Unfinished, review: Review) -> bool:
        """Adopt what the user has made of conflicted files; return whether anything was new."""
        paths = [conflict.path for conflict in review.session.conflicts]
        wrote = await entries_of(self.repo, state.wrote, paths) if state.wrote else {}
        there = [path for path in paths if path in {one.path for one in state.conflicts}]
        asked = [(path, FileVersion(*wrote[path]) if path in wrote else None) for path in there]
        edited = await edited_files(self.repo, asked)
        oids_now = {path: version.oid if version else "" for path, version in edited.items()}
        known = {path: self._seen.get(path.hex(), "-") for path in edited}
        unclear = [path for path in edited if known[path] == f"{_UNCLEAR}{oids_now[path]}"]
        review.to_look_at = (*review.to_look_at, *map(os.fsdecode, sorted(unclear)))
        new = {
            path: version
            for path, version in edited.items()
            if path not in unclear and known[path] != oids_now[path]
        }
        oids = [wrote[path][1] for path in new if path in wrote]
        oids += [version.oid for version in new.values() if version]
        contents = await contents_of(self.repo, list(dict.fromkeys(oids)))
        for path, version in new.items():
            before = contents.get(wrote[path][1]) if path in wrote else None
            now = contents.get(version.oid) if version else None
            session = await to_thread.run_sync(
                partial(taken_over, review.session, path, before, now, is_gone=version is None)
            )
            self._seen[path.hex()] = f"{'' if session else _UNCLEAR}{oids_now[path]}"
            if session is None:
                review.to_look_at = (*review.to_look_at, os.fsdecode(path))
            else:
                review.session = session
        return bool(new)

    def _more(self) -> Mapping[str, Any]:
        state = self._known[1] if self._known else None
        return {"merge": _name(state) if state else "", "seen": self._seen, **self._series()}

    def _series(self) -> Mapping[str, Any]:
        """Return what was picked in the commits before this one of the same rebase."""
        series = self._known[1].series if self._known else ""
        return {"series": series, "picked": self._before} if series else {}

    async def _forget(self, review: Review) -> None:
        """Drop the decisions; the next commit of a rebase goes by what was picked last."""
        self._before = last_picks(review.session, self._before)
        if self._series():
            await self._write(self._series())
        else:
            await super()._forget(review)
        self._known = None

    def _dressed(self, view: ConflictView) -> ConflictView:
        self._is_unseen = False
        state = self._known[1] if self._known else None
        if state is None:
            return view
        return replace(view, doing=str(state.doing), next_step=state.next_step)

    async def _left(
        self, review: Review, state: Unfinished, paths: Sequence[bytes]
    ) -> dict[bytes, FileVersion | None]:
        """Return these files as git left them, where it says so."""
        open_ = {one.path for one in state.conflicts}
        tree = review.merged.tree
        left = await entries_of(self.repo, tree, [path for path in paths if path not in open_])
        found = _versions(left, [path for path in paths if path not in open_])
        if state.wrote is not None:
            wrote = await entries_of(self.repo, state.wrote, sorted(open_))
            found |= _versions(wrote, sorted(open_))
        return found

    async def _put(self, review: Review, tree: str) -> None:
        if self._known is None:
            raise WorkspaceError("there is no open conflict here")
        results = {one.path for one in review.session.results() or ()}
        paths = sorted(results | {one.path for one in self._known[1].conflicts})
        entries = await entries_of(self.repo, tree, paths)
        await put(
            self.repo,
            _versions(entries, paths),
            trash=self._layout.trash,
            before=await self._left(review, self._known[1], paths),
        )


def _picks(written: Sequence[str | None]) -> tuple[Pick | None, ...]:
    """Return picks that were written down; what is none counts as text of one's own."""
    return tuple(Pick(name) if name and name in {*Pick} else None for name in written)


def _versions(
    entries: Mapping[bytes, tuple[str, str]], paths: Sequence[bytes]
) -> dict[bytes, FileVersion | None]:
    return {path: FileVersion(*entries[path]) if path in entries else None for path in paths}


def _name(state: Unfinished) -> str:
    """Return a merge's name, so that decisions about one never count for another."""
    theirs = state.sides.theirs if state.sides else "\n".join(lines_of(state.conflicts))
    return hashlib.blake2b(f"{state.doing} {state.head} {theirs}".encode()).hexdigest()[:32]


def _sign(path: Path) -> object:
    try:
        seen = path.lstat()
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_mode


def as_index(state: Unfinished, told: MergedTrees | None, tree: str) -> MergedTrees:
    """Return the merge as the user's index has it, with git's messages where they agree.

    Git names colliding files, and labels the markers in merged texts, after what the sides are
    called. Those names differ here, and so do the objects of such texts.
    """
    there = {one.path: one for one in state.conflicts}
    if told is None:
        told = MergedTrees(tree=tree)
    elif _is_same(told.conflicts, there):
        as_there = tuple(there.get(one.path, one) for one in told.conflicts)
        return replace(told, tree=tree, conflicts=as_there)
    open_ = {one.path for one in told.conflicts}
    about = [(message, open_.intersection(message.paths)) for message in told.messages]
    known = [message for message, paths in about if paths and paths <= there.keys()]
    named = {path for message in known for path in message.paths}
    made = [_message(one) for one in state.conflicts if one.path not in named]
    return MergedTrees(tree=tree, conflicts=state.conflicts, messages=(*known, *made))


def _is_same(told: Sequence[ConflictedPath], there: Mapping[bytes, ConflictedPath]) -> bool:
    """Tell if both name the same conflicts; made-up paths count by their objects."""
    paths = {
        one.path for one in told if one.path in there and _modes(one) == _modes(there[one.path])
    }
    mine = sorted(_stages(one) for one in told if one.path not in paths)
    return mine == sorted(_stages(one) for path, one in there.items() if path not in paths)


def _modes(one: ConflictedPath) -> tuple[str | None, ...]:
    return tuple(stage.mode if stage else None for stage in (one.base, one.ours, one.theirs))


def _stages(one: ConflictedPath) -> str:
    return " ".join(f"{s.mode} {s.oid}" if s else "-" for s in (one.base, one.ours, one.theirs))


def _message(one: ConflictedPath) -> MergeMessage:
    """Return the message git would give for a path, judged by the versions that exist."""
    if one.ours is None or one.theirs is None:
        return MergeMessage("CONFLICT (modify/delete)", (one.path,), "")
    kind = "contents" if one.base else "add/add"
    return MergeMessage(f"CONFLICT ({kind})", (one.path,), "")


def taken_over(
    session: ResolutionSession,
    path: bytes,
    wrote: bytes | None,
    now: bytes | None,
    *,
    is_gone: bool,
) -> ResolutionSession | None:
    """Return the session with the user's edit of a file; None if the edit is unclear."""
    conflict = session.conflict(path)
    if is_gone:
        return session.set_file(path, None) if wrote is not None else session
    if now is None:
        return None
    sides = (conflict.base, conflict.target, conflict.incoming)
    if wrote is None:  # git did not say what it wrote: only what is plainly no work of its own
        is_gits = has_markers(now) or any(side and side.content == now for side in sides)
        return session if is_gits else session.set_file(path, now, mode=_mode_of(conflict))
    made = adopted(conflict, wrote, now)
    if made is None:
        return None
    if conflict.text is None:
        return session.set_file(path, made, mode=_mode_of(conflict))
    return session.edited(path, made)


def _mode_of(conflict: FileConflict) -> str:
    side = conflict.target or conflict.incoming
    return side.mode if side and side.is_file else "100644"
