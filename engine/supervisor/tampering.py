"""The proof after every attempt that nothing changed but what is its own.

What counts is what an attempt could have done where it ran. What git executes is looked at after
every attempt: where nothing kept the attempt from it a change is a violation, and else somebody
else's doing, which is mentioned. Branches, the user's checkout and the trees of workers at rest are
looked at only where an attempt could have written there; the user works in them as well, so what
changed there is mentioned and accuses nobody. What engines alone ever write accuses.

It cannot tell what was written into a tree in which somebody else was working at the time.
"""

import json
import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread

from engine.core.state import RunState
from engine.core.talk_facts import ViolationSeen
from engine.events import OutsideChanged
from engine.git.objects import refs_below
from engine.ids import AttemptId, RunId, WorkerId
from engine.phases import Phase
from engine.sandbox.tamper import (
    News,
    changed_since,
    executed_by_git,
    fingerprint,
    violations,
)
from engine.supervisor.in_thread import is_in_thread
from engine.supervisor.place import Place
from engine.supervisor.run_ports import RunPort
from engine.supervisor.shelter import Shelter
from engine.supervisor.written_once import EndedAttempts, rewritten

_FILE = "before.json"
_TICK_NS = 10_000_000
"""The clock of a file system may be that far behind."""
_MOST_LOOKED_AT = 100_000
_MOST_NAMED = 20
_ELSEWHERE = "its sandbox does not reach there: it was you, or another program"
_NOBODY_KNOWS = "nothing keeps it from there, and nothing tells whether it was the worker or you"
_FORGOTTEN = "what was noted before it began is lost, so nothing was compared"
_TOO_MUCH = "there was too much to look at all of it"


@dataclass(frozen=True, kw_only=True)
class Before:
    """How things were when something of a worker's began.

    Attributes:
        since_ns: When that was.
        digests: What git executes, by path.
        refs: The user's branches and tags; empty where nobody could have moved them.
        resting: Trees in which nobody worked.
        ended: Attempts that were over, and so will never be written to again.
    """

    since_ns: int
    digests: dict[str, str]
    refs: dict[str, str]
    resting: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is not as it was: what accuses the worker, and what is only mentioned, and why."""

    violations: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    remark: str = ""


class _Seen(NamedTuple):
    """What a look after an attempt found; nothing was rewritten by whom it could not be."""

    executed: tuple[str, ...]
    trees: News
    rewritten: tuple[str, ...] | None


class Proof:
    """Looks before and after; what this engine itself moves in the meantime is told to it."""

    def __init__(self, place: Place, shelter: Shelter) -> None:
        self._place = place
        self._shelter = shelter
        self._common = place.layout.common_dir
        self._before: dict[AttemptId, Before] = {}
        self._moved: dict[str, int] = {}
        self._ended: dict[RunId, EndedAttempts] = {}

    def moved(self, branch: str) -> None:
        """This engine has just moved a branch, and whatever is checked out of it."""
        self._moved[f"refs/heads/{branch.removeprefix('refs/heads/')}"] = time.time_ns()

    def forget(self, run: RunId) -> None:
        """This engine no longer holds a run; another one may work on it."""
        self._ended.pop(run, None)

    async def begin(self, state: RunState, attempt: AttemptId) -> None:
        """Look before anything of an attempt runs; kept for whichever engine sees its end."""
        file = Path(self._place.layout.attempt(attempt), _FILE)
        begun = await anyio.to_thread.run_sync(self._begin, state, attempt, file)
        if begun is None:
            return
        before, is_whole = begun
        if not is_whole:
            before = replace(before, refs=await self._refs(state))
            await anyio.to_thread.run_sync(self._keep, file, before)
        self._before[attempt] = before

    def _begin(self, state: RunState, attempt: AttemptId, file: Path) -> tuple[Before, bool] | None:
        """How things are, and whether that is all and kept; None if it was noted before."""
        if file.exists():
            return None
        before, is_open = self._look(state, attempt)
        is_whole = not is_open or self._place.repo is None
        if is_whole:
            self._keep(file, before)
        return before, is_whole

    def _keep(self, file: Path, before: Before) -> None:
        self._place.layout.make(file.parent)
        file.write_text(json.dumps(vars(before)))

    async def end(self, state: RunState, attempt: AttemptId) -> Found:
        """What is not as it was when the attempt began."""
        file = Path(self._place.layout.attempt(attempt), _FILE)
        known = self._before.pop(attempt, None)
        end = partial(self._end, state, attempt.worker, file, known)
        found = await anyio.to_thread.run_sync(end)
        return found if isinstance(found, Found) else await self._judged(state, *found)

    def _end(
        self, state: RunState, worker: WorkerId, file: Path, known: Before | None
    ) -> Found | tuple[Before, _Seen]:
        try:
            kept: dict[str, Any] = json.loads(file.read_text())
            before = known or Before(**kept)
        except (OSError, ValueError, TypeError):
            if self._is_open(state, worker, self._common):
                return Found(violations=(str(file),))
            return Found(mentioned=(str(file),), remark=_FORGOTTEN)
        return before, self._see(state, worker, before)

    async def look(self, state: RunState, attempt: AttemptId) -> Before:
        """How things are before this attempt begins, which may be one of a command's."""
        before, is_open = await anyio.to_thread.run_sync(self._look, state, attempt)
        return replace(before, refs=await self._refs(state)) if is_open else before

    def _look(self, state: RunState, attempt: AttemptId) -> tuple[Before, bool]:
        """How things are now, but for the refs, and whether those are to be looked at."""
        before = Before(since_ns=time.time_ns() - _TICK_NS, digests=self._digests(), refs={})
        ended = self._ended_of(state.run)
        ended.add(self._place.layout.attempt(attempt))
        if not self._is_open(state, attempt.worker, self._common):
            return before, False
        resting = _resting(state, attempt.worker)
        return replace(before, resting=resting, ended=ended.folders()), True

    def _ended_of(self, run: RunId) -> EndedAttempts:
        known = self._ended.get(run)
        if known is None:  # several may look for the first time at once: one of them is kept
            known = self._ended.setdefault(run, EndedAttempts(self._place.layout.run(run)))
        return known

    async def compare(self, state: RunState, worker: WorkerId, before: Before) -> Found:
        """What is not as it was then."""
        seen = await anyio.to_thread.run_sync(self._see, state, worker, before)
        return await self._judged(state, before, seen)

    async def _judged(self, state: RunState, before: Before, seen: _Seen) -> Found:
        written = tuple(map(str, seen.trees.paths))
        if seen.rewritten is None:
            mentioned = (*seen.executed, *written)
            return _found((), mentioned, _ELSEWHERE, is_whole=seen.trees.is_whole)
        mentioned = (*await self._moved_refs(state, before), *written)
        accused = (*seen.executed, *seen.rewritten)
        return _found(accused, mentioned, _NOBODY_KNOWS, is_whole=seen.trees.is_whole)

    def _see(self, state: RunState, worker: WorkerId, before: Before) -> _Seen:
        executed = self._executed(before)
        trees = self._trees(state, worker, before)
        is_open = self._is_open(state, worker, self._common)
        again = rewritten(before.ended, before.since_ns)
        return _Seen(executed, trees, tuple(again) if is_open else None)

    def _is_open(self, state: RunState, worker: WorkerId, path: Path) -> bool:
        """Whether nothing keeps this worker's attempts from writing there."""
        return is_in_thread(state, worker) or self._shelter.may_write(state, path)

    def _digests(self) -> dict[str, str]:
        found = fingerprint(executed_by_git(self._common))
        return {os.fsdecode(path): digest.hex() for path, digest in found.items()}

    def _executed(self, before: Before) -> tuple[str, ...]:
        """What git executes and is not as it was; worktrees come and go by themselves."""
        trees = f"{self._common}/worktrees/"
        then, now = (
            {os.fsencode(path): bytes.fromhex(digest) for path, digest in digests.items()}
            for digests in (before.digests, self._digests())
        )
        changed = (os.fsdecode(found.path) for found in violations(then, now))
        both = {
            path.removesuffix("/gitdir")
            for path in before.digests
            if path.startswith(trees) and path.endswith("/gitdir") and Path(path).exists()
        }
        return tuple(
            path for path in changed if not path.startswith(trees) or str(Path(path).parent) in both
        )

    async def _refs(self, state: RunState) -> dict[str, str]:
        """The user's branches and tags, without those that engines make."""
        if self._place.repo is None:
            return {}
        found = await refs_below(self._place.repo, "refs/heads", "refs/tags")
        ours = f"refs/heads/{state.plan.runtime.branch_prefix}/"
        return {ref: oid for ref, oid in found.items() if not ref.startswith(ours)}

    async def _moved_refs(self, state: RunState, before: Before) -> tuple[str, ...]:
        now = await self._refs(state)
        return tuple(
            ref
            for ref in sorted(before.refs.keys() | now.keys())
            if before.refs.get(ref) != now.get(ref) and self._moved.get(ref, 0) < before.since_ns
        )

    def _trees(self, state: RunState, worker: WorkerId, before: Before) -> News:
        """What was written since in the user's checkout, and in trees where nobody worked."""
        still = set(_resting(state, worker))
        tops = [(Path(tree), before.since_ns) for tree in before.resting if tree in still]
        if self._is_open(state, worker, self._place.project):
            since_ns = max((before.since_ns, *self._moved.values()))
            tops.append((self._place.project.resolve(), since_ns))
        left_out = {self._common, self._place.workspaces.resolve()}
        news = [
            changed_since([top], since, leave_out=left_out, at_most=_MOST_LOOKED_AT)
            for top, since in tops
        ]
        paths = tuple(path for each in news for path in each.paths)
        return News(paths=paths, is_whole=all(each.is_whole for each in news))


def tell(run: RunPort, found: Found, attempt: AttemptId, *, at: float) -> None:
    """Let the run know what was found of an attempt."""
    for path in found.violations:
        run.feed(ViolationSeen(worker=attempt.worker, attempt=attempt.number, at=at, path=path))
    if not found.remark:
        return
    event = OutsideChanged(
        worker=str(attempt.worker),
        attempt=attempt.number,
        paths=found.mentioned[:_MOST_NAMED],
        count=len(found.mentioned),
        remark=found.remark,
    )
    run.mention(event)
    run.note(attempt.worker, attempt.number, f"changed meanwhile: {event.path} ({event.remark})")


def _found(
    accused: tuple[str, ...], mentioned: tuple[str, ...], remark: str, *, is_whole: bool
) -> Found:
    if not is_whole:
        remark = f"{remark}; {_TOO_MUCH}"
    return Found(
        violations=accused, mentioned=mentioned, remark=remark if mentioned or not is_whole else ""
    )


def _resting(state: RunState, worker: WorkerId) -> tuple[str, ...]:
    """The trees of other workers in which nothing of ours works."""
    return tuple(
        w.workspace
        for w in state.workers.values()
        if w.id != worker
        and w.workspace is not None
        and not w.phase.holds_slot
        and w.phase is not Phase.LANDING
    )
