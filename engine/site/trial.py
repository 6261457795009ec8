"""Try a site out: a worker is made, works, is brought home, stopped and removed there.

It is given a repository of its own, so that nothing of the user's is touched. What it shows is what
the contract of all sites asks for first; it stops at the first thing that is not so.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import anyio.to_thread

from engine.errors import EngineError, WorkspaceError, whole_of
from engine.git.collection import CollectedChange
from engine.git.objects import resolve
from engine.git.runner import Repo
from engine.git.settings import Signature
from engine.host.seam import AttemptExit, Stream
from engine.ids import AttemptId, RunId, WorkerId
from engine.limits import Limits
from engine.phases import StopCause
from engine.plan.model import Holes, IsolationStrategy, Runtime, WorkspaceRules
from engine.site.local import own_versions
from engine.site.place import Place
from engine.site.seam import Collecting, Filling, Site, SpaceAddress, Terms, Workplace
from engine.values import dataclass

PATIENCE_S = 60.0
"""The longest time that a site may take for one request."""
_RUN, _WORKER = RunId("trial"), WorkerId("try", 1)
_LIMITS = Limits(time_seconds=PATIENCE_S)
_WANTED = Collecting(author=Signature("plait", "plait@localhost", 0), message="trial\n")


FILE, TEXT = "trial", "here\n"
"""The content of the one commit of the repository."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One thing that was tried, how long it took, and what was wrong with it, if anything."""

    what: str
    seconds: float
    problem: str = ""


async def tried(site: Site, place: Place) -> tuple[Tried, ...]:
    """Try everything in its order; return it up to the first problem.

    Raises:
        WorkspaceError: The place is no repository with a commit.
    """
    base = await resolve(place.repo, "HEAD") if place.repo is not None else None
    if place.repo is None or base is None:
        raise WorkspaceError(f"there is no commit in {place.project}")
    trial = _Trial(site, place.repo, base)
    done: list[Tried] = []
    for what, act in trial.acts.items():
        done.append(await _timed(what, act))
        if done[-1].problem:
            break
    return tuple(done)


class _Trial:
    def __init__(self, site: Site, repo: Repo, base: str) -> None:
        self._site = site
        self._repo = repo
        self._base = base
        runtime = Runtime(isolation=IsolationStrategy.WORKTREE, base=base, holes=Holes())
        terms = Terms(runtime=runtime, workspace=WorkspaceRules())
        self._spaces = site.spaces(terms)
        attempt = AttemptId(_RUN, _WORKER, 1)
        address = SpaceAddress(attempt=attempt)
        self._at = Workplace(attempt=attempt, address=address, terms=terms, limits=_LIMITS)
        self.acts = {
            "it answers, with the same version": self._answer,
            "it makes a workspace from a commit": self._make,
            "a command runs there, and its output arrives": self._command,
            "an agent works there and is recorded": self._work,
            "the agent's work arrives here as a commit": self._collect,
            "an agent that does not end is stopped": self._stop,
            "the workspace is removed once all work has arrived": self._release,
        }

    async def _answer(self) -> None:
        found = (await self._site.describe()).versions
        own = await anyio.to_thread.run_sync(own_versions)
        _same("its version", found.get("plait"), own["plait"])

    async def _make(self) -> None:
        made = await self._spaces.prepare(self._at, Filling(commit=self._base))
        self._at = replace(self._at, address=made.address)

    async def _command(self) -> None:
        here = replace(self._at, attempt=replace(self._at.attempt, role="check"))
        end = await self._site.run(here, f"cat {FILE}")
        _same("the command", (end.is_ok, end.tail), (True, TEXT))

    async def _work(self) -> None:
        await self._site.launch(self._at, "echo said; echo made > made", {})
        out, end = await self._to_end(self._at.attempt)
        await self._site.forget(self._at.attempt)
        _same("the agent", (end.exit_code, end.not_started, out), (0, None, b"said\n"))

    async def _collect(self) -> None:
        change = (await self._spaces.collect(self._at, _WANTED)).change
        if not isinstance(change, CollectedChange):
            raise WorkspaceError(f"plait did not accept its work: {change and change.reason}")
        listed = await self._repo.read("diff", "--name-only", self._base, change.head)
        _same("the commit", listed, b"made\n")
        _same("the file", await self._repo.read("show", f"{change.head}:made"), b"made\n")

    async def _stop(self) -> None:
        again = replace(self._at, attempt=replace(self._at.attempt, number=2))
        made = await self._spaces.resume(again)
        again = replace(again, address=made.address)
        await self._site.launch(again, "trap '' TERM; echo ready; sleep 1000", {})
        await self._to_output(again.attempt)
        await self._site.stop(again.attempt)
        _, end = await self._to_end(again.attempt)
        await self._site.forget(again.attempt)
        _same("the end", end.cause, StopCause.USER)

    async def _release(self) -> None:
        reasons = await self._spaces.examine(self._at, _WANTED)
        _same("what keeps it", reasons, ())
        has_gone = await self._spaces.release(self._at, _WANTED)
        is_there = await self._site.is_there(self._at.address)
        _same("its removal", (has_gone, is_there), (True, False))

    async def _to_end(self, attempt: AttemptId) -> tuple[bytes, AttemptExit]:
        out, offset = b"", 0
        while True:
            chunk = await self._site.host.read(attempt, offset)
            out += b"".join(one.data for one in chunk.frames if one.stream is Stream.OUT)
            offset = chunk.next_offset
            if chunk.end is not None:
                return out, chunk.end

    async def _to_output(self, attempt: AttemptId) -> None:
        offset, has_said = 0, False
        while not has_said:
            chunk = await self._site.host.read(attempt, offset)
            offset = chunk.next_offset
            has_said = any(one.stream is Stream.OUT for one in chunk.frames)
            if chunk.end is not None and not has_said:
                raise WorkspaceError(f"it ended before it printed anything: {chunk.end}")


async def _timed(what: str, act: Callable[[], Awaitable[None]]) -> Tried:
    """Do something; return how long it took, and what went wrong."""
    begun, problem = time.monotonic(), ""
    try:
        with anyio.fail_after(PATIENCE_S):
            await act()
    except TimeoutError:
        problem = f"it was not done after {PATIENCE_S:g} seconds"
    except (EngineError, OSError) as error:
        problem = whole_of(error)
    return Tried(what=what, seconds=time.monotonic() - begun, problem=problem)


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise WorkspaceError(f"{what}: expected {expected!r}, found {found!r}")
