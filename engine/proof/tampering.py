"""Prove after every attempt that nothing changed but what is its own.

What counts is what an attempt could have done where it ran. What git executes is looked at after
every attempt. If the sandbox could not prevent the write, a change is a violation; otherwise it is
somebody else's, and plait only mentions it. Branches, the user's checkout and the trees of workers
at rest are looked at only where an attempt could have written there; the user works in them as
well, so what changed there is mentioned and accuses nobody. A change of what only engines write is
always a violation.

It cannot tell what was written into a tree in which somebody else was working at the time.
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from engine.core.facts import ViolationSeen
from engine.core.feed import RunFeed
from engine.core.state import RunState
from engine.git.objects import refs_below
from engine.ids import AttemptId, RunId, WorkerId
from engine.messages.events import OutsideChanged
from engine.proof.looking import Before, Known, Sight, TreeAnswer, TreeQuestion, Walk
from engine.proof.resting import RestingTrees
from engine.proof.written_once import EndedAttempts
from engine.sandbox.tamper import News
from engine.site.place import Place
from engine.site.shelter import Shelter
from engine.site.sites import Sites

_FILE = "before.json"
_MOST_NAMED = 20
_REST, _LONGEST_REST_S = 4.0, 0.02
"""After a look so many times as long nobody looks: what ends meanwhile shares the next one. Whoever
has a large checkout to be looked at waits long enough for that."""
_ELSEWHERE = "its sandbox cannot write there: you, another program or plait itself wrote it"
_NOBODY_KNOWS = (
    "nothing prevents it from writing there, so plait cannot know if it was the worker or you"
)
_FORGOTTEN = "the snapshot from before its start is lost, so plait compared nothing"
_TOO_MUCH = "there were too many files to check them all"
Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, kw_only=True)
class Found:
    """The changes: those that accuse the worker, and those only mentioned, and why."""

    violations: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    remark: str = ""


class _Question(NamedTuple):
    """A question about changes since a worker's work began; None if only its note knows."""

    run: RunFeed
    worker: WorkerId
    before: Before | None
    note: Path | None = None


class Proof:
    """Looks before and after; what this engine itself moves in the meantime is reported to it.

    What ends during a look is looked after together, by the next one.
    """

    def __init__(self, place: Place, shelter: Shelter, sites: Sites) -> None:
        self._place = place
        self._sites = sites
        self._sight = Sight(place, shelter)
        self._before: dict[AttemptId, Before] = {}
        self._known: dict[RunId, Known] = {}
        self._looks: Together[_Question, Found] = Together(self._answer)

    def moved(self, branch: str) -> None:
        """Note that this engine has just moved a branch, and whatever is checked out of it."""
        self._sight.moved(f"refs/heads/{branch.removeprefix('refs/heads/')}")

    def forget(self, run: RunId) -> None:
        """Forget a run that this engine no longer holds; another one may work on it."""
        self._known.pop(run, None)

    def _of(self, state: RunState) -> Known:
        known = self._known.get(state.run)
        if known is None:  # several may look for the first time at once: one of them is kept
            ended = EndedAttempts(self._place.layout.run(state.run))
            known = self._known.setdefault(state.run, Known(ended, RestingTrees(state)))
        return known

    def _note(self, attempt: AttemptId) -> Path:
        return self._place.layout.attempt(attempt) / _FILE

    # ------------------------------------------------------------------ before

    async def begin(self, state: RunState, attempt: AttemptId) -> None:
        """Look before anything of an attempt runs; keep the result for whoever sees its end."""
        note = self._note(attempt)
        begun = await anyio.to_thread.run_sync(self._begin, state, attempt, note)
        if begun is None:
            return
        before, is_whole = begun
        if not is_whole:
            before = replace(before, refs=_users(state, await self._refs()))
            await anyio.to_thread.run_sync(self._keep, note, before)
        self._before[attempt] = before

    def _begin(self, state: RunState, attempt: AttemptId, note: Path) -> tuple[Before, bool] | None:
        """Return how things are, and whether that is complete and kept; None if noted before."""
        if note.exists():
            return None
        before, is_open = self._look(state, attempt)
        is_whole = not is_open or self._place.repo is None
        if is_whole:
            self._keep(note, before)
        return before, is_whole

    def _keep(self, note: Path, before: Before) -> None:
        self._place.layout.make(note.parent)
        note.write_text(json.dumps(vars(before)))

    async def look(self, state: RunState, attempt: AttemptId) -> Before:
        """Return how things are before this attempt begins; it may be one of a command's."""
        before, is_open = await anyio.to_thread.run_sync(self._look, state, attempt)
        return replace(before, refs=_users(state, await self._refs())) if is_open else before

    def _look(self, state: RunState, attempt: AttemptId) -> tuple[Before, bool]:
        """Take a snapshot without refs; also say whether refs must be compared."""
        known = self._of(state)
        known.ended.add(self._place.layout.attempt(attempt))
        return self._sight.before(state, attempt.worker, known)

    # ------------------------------------------------------------------ after

    async def end(self, run: RunFeed, attempt: AttemptId) -> Found:
        """Return what changed since the attempt began."""
        before = self._before.pop(attempt, None)
        return await self._looks.ask(_Question(run, attempt.worker, before, self._note(attempt)))

    async def compare(self, run: RunFeed, worker: WorkerId, before: Before) -> Found:
        """Return what changed since then."""
        return await self._looks.ask(_Question(run, worker, before))

    async def _answer(self, several: Sequence[_Question]) -> list[Found]:
        """Answer all questions, run by run: mostly there is one run."""
        found: dict[int, Found] = {}
        for run in {id(each.run): each.run for each in several}.values():
            asked = [n for n, each in enumerate(several) if each.run is run]
            answers = await self._answer_of(run.state, [several[n] for n in asked])
            found |= zip(asked, answers, strict=True)
        return [found[n] for n in range(len(several))]

    async def _answer_of(self, state: RunState, several: Sequence[_Question]) -> list[Found]:
        seen, spent_s = await anyio.to_thread.run_sync(self._see, state, several)
        if self._place.repo is not None and any(map(self._may_be_half_made, seen)):
            async with self._place.repo.lock.held():  # no engine makes or removes a worktree now
                seen, spent_s = await anyio.to_thread.run_sync(self._see, state, several)
        self._looks.not_before = anyio.current_time() + min(_REST * spent_s, _LONGEST_REST_S)
        is_open = any(isinstance(each, tuple) and each[1].rewritten is not None for each in seen)
        refs = _users(state, await self._refs()) if is_open else {}
        return [each if isinstance(each, Found) else self._judged(*each, refs) for each in seen]

    def _may_be_half_made(self, each: "Found | tuple[Before, TreeAnswer]") -> bool:
        """Return whether what changed may be a worktree that an engine just makes or removes."""
        return isinstance(each, tuple) and any(map(self._sight.is_of_worktree, each[1].executed))

    def _see(
        self, state: RunState, several: Sequence[_Question]
    ) -> tuple[list[Found | tuple[Before, TreeAnswer]], float]:
        """Return what is seen of each question, and the time that looking cost."""
        began = time.thread_time()
        known = self._of(state)
        noted = [self._noted(state, known, each) for each in several]
        told = [found for found in noted if not isinstance(found, Found)]
        seen = iter(self._sight.after(state, known, told, self._walk(state)) if told else ())
        answers = [each if isinstance(each, Found) else (each.before, next(seen)) for each in noted]
        return answers, time.thread_time() - began

    def _walk(self, state: RunState) -> Walk | None:
        """Return a function that looks into the trees at other sites; call it in a thread."""
        lives = {
            w.begun.workspace: w
            for w in state.workers.values()
            if w.begun.workspace and w.begun.site
        }
        if not lives:
            return None

        def walk(trees: Mapping[str, int]) -> News:
            by_site: dict[str, dict[str, int]] = {}
            for tree, since_ns in trees.items():
                site = lives[tree].begun.site if tree in lives else ""
                by_site.setdefault(site, {})[tree] = since_ns
            news = [self._sight.walk(by_site.pop("", {}))]
            for some in by_site.values():
                worker = lives[next(iter(some))].id
                news.append(anyio.from_thread.run(self._written_at, state, worker, some))
            paths = tuple(path for each in news for path in each.paths)
            return News(paths=paths, is_whole=all(each.is_whole for each in news))

        return walk

    async def _written_at(
        self, state: RunState, worker: WorkerId, trees: Mapping[str, int]
    ) -> News:
        """Return what was written in trees of the site of a worker."""
        return await self._sites.of(state, worker).written_since(state.plan.runtime, trees)

    def _noted(self, state: RunState, known: Known, question: _Question) -> TreeQuestion | Found:
        """Return how things were; for an attempt only if its note is still intact."""
        _, worker, before, note = question
        tree = state.workers[worker].begun.workspace
        if note is not None and tree is not None:  # from now on nobody has business there
            known.trees.add(worker, tree)
        try:
            if note is not None:
                kept: dict[str, Any] = json.loads(note.read_text())
                before = before or Before(**kept)
        except (OSError, ValueError, TypeError):
            return self._gone(state, worker, note)
        if before is None or before.ended > known.ended.known:
            return self._gone(state, worker, known.ended.file)
        return TreeQuestion(worker, before)

    def _gone(self, state: RunState, worker: WorkerId, file: Path | None) -> Found:
        if self._sight.is_open(state, worker):
            return Found(violations=(str(file),))
        return Found(mentioned=(str(file),), remark=_FORGOTTEN)

    def _judged(self, before: Before, seen: TreeAnswer, refs: Mapping[str, str]) -> Found:
        written = tuple(map(str, seen.trees.paths))
        if seen.rewritten is None:
            mentioned = (*seen.executed, *written)
            return _found((), mentioned, _ELSEWHERE, is_whole=seen.trees.is_whole)
        mentioned = (*self._moved_refs(before, refs), *written)
        accused = (*seen.executed, *seen.rewritten)
        return _found(accused, mentioned, _NOBODY_KNOWS, is_whole=seen.trees.is_whole)

    async def _refs(self) -> dict[str, str]:
        if self._place.repo is None:
            return {}
        return await refs_below(self._place.repo, "refs/heads", "refs/tags")

    def _moved_refs(self, before: Before, now: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            ref
            for ref in sorted(before.refs.keys() | now.keys())
            if before.refs.get(ref) != now.get(ref)
            and not self._sight.has_moved(ref, before.since_ns)
        )


def _users(state: RunState, refs: Mapping[str, str]) -> dict[str, str]:
    """Return the user's branches and tags, without those that engines make."""
    ours = f"refs/heads/{state.plan.runtime.branch_prefix}/"
    return {ref: oid for ref, oid in refs.items() if not ref.startswith(ours)}


def tell(run: RunFeed, found: Found, attempt: AttemptId, *, at: float) -> None:
    """Tell the run what was found of an attempt."""
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


@dataclass(eq=False)
class _Asked(Generic[Q, A]):
    question: Q
    answer: tuple[A] | None = None


class Together(Generic[Q, A]):
    """A question and its answer, where the answers to several cost hardly more than one.

    Attributes:
        not_before: When the next may be looked for, on the event loop's clock. Whoever answers may
            ask for a rest, so that more come together; then it never is always at work.
    """

    def __init__(self, answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        """Begin; `answer` gets one question or more, and answers in their order."""
        self._answer = answer
        self._waiting: list[_Asked[Q, A]] = []
        self._answering = anyio.Lock()
        self.not_before = 0.0

    async def ask(self, question: Q) -> A:
        """Return the answer; an error in finding it is raised to one of those who asked."""
        asked: _Asked[Q, A] = _Asked(question)
        self._waiting.append(asked)
        try:
            async with self._answering:
                if asked.answer is None:
                    await anyio.sleep_until(self.not_before)
                    several = list(self._waiting)
                    answers = await self._answer([each.question for each in several])
                    for each, found in zip(several, answers, strict=True):
                        each.answer = (found,)
        finally:  # one that failed or was cancelled goes; others whom it was to answer ask again
            self._waiting = [
                each for each in self._waiting if each is not asked and each.answer is None
            ]
        if asked.answer is None:
            raise AssertionError  # answered above, or an error was raised
        return asked.answer[0]
