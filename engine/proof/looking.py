"""Look once at what no attempt may change, for all attempts of a run that have just ended.

What costs much (trees, files of all that are over) is looked at once for all of them, and for each
by itself only if the joint look finds something. This module knows where to look and what is new
there; the caller decides which attempt is responsible. All of it belongs in a thread.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.core.state import RunState
from engine.ids import WorkerId
from engine.proof.resting import Resting, RestingTrees
from engine.proof.written_once import EndedAttempts, Rewritten
from engine.sandbox.tamper import (
    MOST_LOOKED_AT,
    News,
    PathChange,
    changed_since,
    executed_by_git,
    fingerprint,
    violations,
    was_empty,
)
from engine.site.in_thread import is_in_thread
from engine.site.place import Place
from engine.site.shelter import Shelter
from engine.values import dataclass

_TICK_NS = 10_000_000
"""The clock of a file system may be that far behind."""
_MOST_READ = 1 << 16
_PLACE = re.compile(r"\s*(?:bare|worktree)\b")
_NO_NEWS = News(paths=(), is_whole=True)


@dataclass(frozen=True, kw_only=True)
class Before:
    """The state of things when something of a worker's began.

    Attributes:
        since_ns: When that was, as a file system whose clock is behind would say.
        digests: What git executes, by path.
        refs: The user's branches and tags; empty where nobody could have moved them.
        ended: How many attempts were over, and so will never be written to again.
    """

    since_ns: int
    digests: dict[str, str]
    refs: dict[str, str]
    ended: int = 0


class Known(NamedTuple):
    """The engine's memory of one run, while it works on it."""

    ended: EndedAttempts
    trees: RestingTrees


Walk = Callable[[Mapping[str, int]], News]
"""Says what was written in trees since a moment for each."""


class Rest(NamedTuple):
    """The trees in which nobody works, and who looks into them."""

    trees: Resting
    walk: Walk


class TreeQuestion(NamedTuple):
    """A worker and a moment: what changed since then?"""

    worker: WorkerId
    before: Before


class TreeAnswer(NamedTuple):
    """The findings after an attempt; no file is rewritten by one that could not reach it."""

    executed: tuple[str, ...]
    trees: News
    rewritten: tuple[str, ...] | None


class Sight:
    """The places to look at, in one engine."""

    def __init__(self, place: Place, shelter: Shelter) -> None:
        self._place = place
        self._shelter = shelter
        self._common = place.layout.common_dir
        self._moved: dict[str, int] = {}

    def moved(self, ref: str) -> None:
        """Note that this engine has just moved a ref, and whatever is checked out of it."""
        self._moved[ref] = time.time_ns()

    def has_moved(self, ref: str, since_ns: int) -> bool:
        """Return whether this engine has moved the ref since."""
        return self._moved.get(ref, 0) >= since_ns

    def is_open(self, state: RunState, worker: WorkerId) -> bool:
        """Return whether nothing keeps this worker's attempts from writing in the repository."""
        return self._is_open(state, worker, self._common)

    def _is_open(self, state: RunState, worker: WorkerId, path: Path) -> bool:
        return is_in_thread(state, worker) or self._shelter.may_write(state.plan.runtime, path)

    def before(self, state: RunState, worker: WorkerId, known: Known) -> tuple[Before, bool]:
        """Take a snapshot without refs; also say whether refs must be compared."""
        now_ns = time.time_ns()
        since_ns, digests, is_open = now_ns - _TICK_NS, self._digests(), self.is_open(state, worker)
        if self._may_reach(state, worker):
            known.trees.at(state, now_ns)
        ended = known.ended.count() if is_open else 0
        return Before(since_ns=since_ns, digests=digests, refs={}, ended=ended), is_open

    def after(
        self,
        state: RunState,
        known: Known,
        several: Sequence[TreeQuestion],
        walk: Walk | None = None,
    ) -> list[TreeAnswer]:
        """Return what changed since each of these; `walk` looks where the workers live elsewhere.

        It says nothing of trees that no agent could reach there.
        """
        first = min(before.since_ns for _, before in several)
        changed = known.ended.rewritten(max(before.ended for _, before in several), first)
        resting = Rest(known.trees.at(state, time.time_ns()), walk or self.walk)
        digests = self._digests()
        # Mostly nothing changed at all: then one walk says so for everybody.
        is_calm = len(several) > 1 and self._is_calm(state, several, resting)
        return [
            TreeAnswer(
                executed=self._executed(before, digests),
                trees=_NO_NEWS
                if is_calm
                else self._news(state, TreeQuestion(worker, before), resting),
                rewritten=_since(before, changed) if self.is_open(state, worker) else None,
            )
            for worker, before in several
        ]

    def _may_reach(self, state: RunState, worker: WorkerId) -> bool:
        """Return whether this worker's attempts may reach trees; of another site it alone knows."""
        return self.is_open(state, worker) or bool(state.workers[worker].begun.site)

    @staticmethod
    def _is_beside(state: RunState, one: WorkerId, other: WorkerId) -> bool:
        """Return whether two workers live at the same site: no tree elsewhere can be reached."""
        return state.workers[one].begun.site == state.workers[other].begun.site

    def _is_calm(self, state: RunState, several: Sequence[TreeQuestion], resting: Rest) -> bool:
        first = min(before.since_ns for _, before in several)
        may_reach = any(self._may_reach(state, worker) for worker, _ in several)
        reached = resting.trees if may_reach else {}
        tops = {tree: max(first, since_ns) for tree, (_, since_ns) in reached.items()}
        is_open = any(self._is_open(state, worker, self._place.project) for worker, _ in several)
        checkout = self._checkout(first) if is_open else {}
        return self.walk(checkout) == _NO_NEWS and (not tops or resting.walk(tops) == _NO_NEWS)

    def _news(self, state: RunState, asked: TreeQuestion, resting: Rest) -> News:
        """Return what was written since in the user's checkout and in trees where nobody worked."""
        since_ns = asked.before.since_ns
        tops = {
            tree: max(since_ns, rests_ns)
            for tree, (worker, rests_ns) in resting.trees.items()
            if worker != asked.worker
            and rests_ns <= since_ns + _TICK_NS
            and self._is_beside(state, worker, asked.worker)
        }
        if not self._may_reach(state, asked.worker):
            tops.clear()
        is_open = self._is_open(state, asked.worker, self._place.project)
        here = self.walk(self._checkout(since_ns) if is_open else {})
        trees = resting.walk(tops) if tops else _NO_NEWS
        return News(paths=trees.paths + here.paths, is_whole=trees.is_whole and here.is_whole)

    def _checkout(self, since_ns: int) -> Mapping[str, int]:
        """Return the user's checkout, and since when what changes there is not of this engine."""
        return {str(self._place.project.resolve()): max((since_ns, *self._moved.values()))}

    def walk(self, tops: Mapping[str, int]) -> News:
        """Return what was written in trees of this disk since a moment for each."""
        left_out = {self._common, self._place.workspaces.resolve()}
        news = [
            changed_since([Path(top)], since_ns, leave_out=left_out, at_most=MOST_LOOKED_AT)
            for top, since_ns in tops.items()
        ]
        paths = tuple(path for each in news for path in each.paths)
        return News(paths=paths, is_whole=all(each.is_whole for each in news))

    def _digests(self) -> dict[str, str]:
        if self._place.repo is None:
            return {}
        found = fingerprint(executed_by_git(self._common))
        return {os.fsdecode(path): digest.hex() for path, digest in found.items()}

    def _executed(self, before: Before, digests: Mapping[str, str]) -> tuple[str, ...]:
        """Return what git executes and what has changed; worktrees come and go by themselves."""
        if digests == before.digests:
            return ()
        written = {  # git had made these of a worktree, and not yet written a word into them
            path: digest
            for path, digest in before.digests.items()
            if not (self.is_of_worktree(path) and was_empty(Path(path), bytes.fromhex(digest)))
        }
        then, now = (
            {os.fsencode(path): bytes.fromhex(digest) for path, digest in digests.items()}
            for digests in (written, digests)
        )
        both = {
            path.removesuffix("/gitdir")
            for path in written
            if self.is_of_worktree(path) and path.endswith("/gitdir") and Path(path).exists()
        }
        changed = ((os.fsdecode(found.path), found.change) for found in violations(then, now))
        return tuple(
            path
            for path, change in changed
            if not self.is_of_worktree(path)
            or (str(Path(path).parent) in both and not self._is_rest(path, change))
        )

    def is_of_worktree(self, path: str) -> bool:
        """Return whether a path belongs to what git notes of a linked worktree."""
        return path.startswith(f"{self._common}/worktrees/")

    def _is_rest(self, path: str, change: PathChange) -> bool:
        """Return whether a file is what `git worktree add` itself writes after the first look.

        Git gives the entry of a worktree that has gone to the next one: then it leads elsewhere.
        """
        name = path.rpartition("/")[2]
        said = _lines(path)
        if name == "gitdir" and change is PathChange.CHANGED:
            return len(said) == 1 and self._is_workspace(Path(said[0]))
        if change is not PathChange.ADDED:
            return False
        if name == "commondir":
            return said == ["../.."]
        common = _without_place(_lines(f"{self._common}/config.worktree"))
        return name == "config.worktree" and bool(common) and _without_place(said) == common

    def _is_workspace(self, gitfile: Path) -> bool:
        """Return whether a path is that of the `.git` of a worktree that this engine could make."""
        top = self._place.workspaces.resolve()
        return gitfile.name == ".git" and ".." not in gitfile.parts and top in gitfile.parents


def _lines(path: str) -> list[str]:
    """Return the content of a small file of git's; nothing if it is no file of ours to read."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - no link is followed
            return os.fsdecode(file.read(_MOST_READ)).splitlines()
    except OSError:
        return []


def _without_place(lines: Sequence[str]) -> list[str]:
    """Leave out what git leaves out when it copies the settings of another worktree."""
    kept = [line for line in lines if not _PLACE.match(line)]
    following = [*kept[1:], "["]
    return [
        line
        for line, after in zip(kept, following, strict=True)
        if not (line.startswith("[") and after.startswith("["))
    ]


def _since(before: Before, changed: Iterable[Rewritten]) -> tuple[str, ...]:
    return tuple(
        each.path
        for each in changed
        if each.place < before.ended and each.changed_ns > before.since_ns
    )
