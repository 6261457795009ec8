"""The part of an engine's port that is about merges: conflicts, checks, orders, clashes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from anyio.abc import TaskGroup

from engine.core import effects as e
from engine.core import facts as f
from engine.core.state import RunState, Worker
from engine.errors import EngineError, WorkspaceError
from engine.ids import RunId, WorkerId
from engine.merge import Asked
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff
from engine.messages.events import LatestWins
from engine.messages.results import Change, CheckResult, Moment, RunView
from engine.phases import Phase
from engine.plan.model import IsolationStrategy, PlannedStep
from engine.review.batch import BatchCheck
from engine.review.landing_results import Refusal
from engine.review.queue import LandingOrder, PlannedLanding
from engine.review.radar import Radar
from engine.review.sight import require_all_seen, require_seen
from engine.review.views import ConflictView
from engine.review.weaving import CandidateTable, Wove
from engine.run.judge import agent_named, find_worker
from engine.run.live_run import LiveRun
from engine.run.view import run_view
from engine.speaking import speaker
from engine.work.asking import ask_agent
from engine.work.checking import Checking
from engine.work.tools import Tools


class Merges(ABC):
    """What may be asked of an engine about merging; who knows its runs completes it."""

    def __init__(self, tools: Tools, tasks: TaskGroup) -> None:
        self._tools = tools
        self._tasks = tasks
        self._radars: dict[RunId, Radar] = {}

    @abstractmethod
    async def _of(self, worker: str, *, run: str = "") -> tuple[LiveRun, Worker]:
        """The living run and the worker that a name means."""

    @abstractmethod
    async def _state_of(self, run: str) -> RunState:
        """A run's state, living or read from its journal."""

    @abstractmethod
    async def _seen(self, run: str, worker: str) -> tuple[RunState, Worker]:
        """A run's state, living or not, and the worker that a name means there."""

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        """A worker's conflicts and what is decided; with the text of one file if it is named.

        Raises:
            WorkspaceError: There is no such worker, or it has no conflicts.
        """
        state, found = await self._seen(run, worker)
        return await self._tools.workshop.merging(state).conflicts(state, found.id, path)

    async def resolve(self, run: str, worker: str, action: c.ResolutionAction) -> ConflictView:
        """Decide something about a worker's conflicts, or go on when all is decided.

        Raises:
            WorkspaceError: It cannot be done, and why; nothing was changed.
        """
        live, found = await self._of(worker, run=run)
        if isinstance(action, c.AskAgent):
            return await self._ask(live, found, action)
        view = await self._tools.workshop.merging(live.state).resolve(live, found.id, action)
        if isinstance(action, c.FinishResolving):
            self._note_command(live, "FinishResolving", str(found.id))
        return view

    def _note_command(self, live: LiveRun, command: str, worker: str) -> None:
        """Write down who gave a command that was accepted."""
        found = find_worker(live.state, worker) if worker else None
        worker = worker if found is None or isinstance(found, c.Refused) else str(found.id)
        at = self._tools.clock.now()
        live.feed(f.CommandTaken(command=command, worker=worker, by=speaker(), at=at))

    async def _ask(self, live: LiveRun, w: Worker, action: c.AskAgent) -> ConflictView:
        """Let an agent be asked about a hunk; its answer is told when it comes."""
        choice = live.state.agent_of(w.id)
        if action.agent:
            choice = agent_named(live.state, action.agent)
        if choice is None:
            raise WorkspaceError(
                f"there is no agent {action.agent!r}" if action.agent else f"{w.id} has no agent",
                hint="Name one of the manifest's agents, or an adapter.",
            )
        desk = self._tools.workshop.merging(live.state)
        inquiry, view = await desk.ask(live, w.id, action, by=choice.name)

        async def listen() -> None:
            found: Asked | str
            try:
                text = await ask_agent(self._tools, live.state, w, choice=choice, inquiry=inquiry)
                found = Asked(choice.name, text.encode(errors="surrogateescape"))
            except (EngineError, OSError) as error:
                found = f"{choice.name}: {error}"
            await desk.answered(live, w.id, inquiry.key, found)

        self._tasks.start_soon(listen)
        return view

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: c.Seen | None = None
    ) -> CheckResult:
        """Run the check again: on the exact tree that would land now, or on the worker's own.

        Raises:
            ChangeMoved: The change is not the one that was seen, or became another meanwhile.
            WorkspaceError: There is nothing to check, or the tree is not decided yet.
        """
        live, w = await self._of(worker, run=run)
        require_seen(w, seen)
        if w.phase not in {Phase.REVIEWING, Phase.CONFLICTED}:
            raise WorkspaceError(f"{w.id} is {w.phase}: there is no finished work to check")
        if live.state.plan.step(w.id.step).check is None:
            raise WorkspaceError(f"{w.id.step} has no check", hint="Give its step a `check:`.")
        checking = Checking(live, self._tools, e.RunCheck(worker=w.id, attempt=w.attempt.number))
        async with self._tools.landing:
            found = await self._tools.workshop.check_again(live.state, w, checking, is_own=is_own)
        if isinstance(found, Refusal):
            raise WorkspaceError(found.reason)
        checked = c.Seen(tree=(w.change.tree or "") if w.change else "", attempt=w.attempt.number)
        require_seen(live.state.workers[w.id], checked)  # else it says nothing of what is there now
        live.feed(
            f.Rechecked(
                worker=w.id,
                attempt=w.attempt.number,
                check=found,
                is_for_landing=not is_own,
                at=self._tools.clock.now(),
            )
        )
        return found

    async def check_batch(self, run: str, workers: Sequence[str]) -> BatchCheck:
        """Run the check once, on what the target would be with all these changes that fit.

        Where it passes, each of them lands on just these trees without being checked alone; the
        commits say that they were checked together.

        Raises:
            WorkspaceError: One has nothing to land, or they have different checks.
        """
        found = [await self._of(worker, run=run) for worker in workers]
        if not found:
            return BatchCheck()
        live = found[0][0]
        ids = [w.id for _, w in found]
        commands = {live.state.plan.step(worker.step).check for worker in ids}
        if len(commands) > 1:
            raise WorkspaceError("these have different checks: they cannot be checked as one")
        batch = await self._tools.workshop.merging(live.state).batch(live.state, ids)
        fits = tuple(map(str, batch.trees))
        if not fits or commands == {None}:
            return BatchCheck(fits=fits, tree=batch.tree or None)
        w = live.state.workers[ids[0]]
        checker = Checking(live, self._tools, e.RunCheck(worker=w.id, attempt=w.attempt.number))
        async with self._tools.landing:
            check = await self._tools.workshop.check_commit(
                live.state, batch.commit, batch.tree, checker
            )
        if isinstance(check, Refusal):
            raise WorkspaceError(check.reason)
        is_told = check.passed or len(fits) == 1  # a batch that fails says nothing of each
        for worker, tree in batch.trees.items() if is_told else ():
            is_exact = tree == batch.tree
            own = replace(
                check, tree=tree, batch=None if is_exact else batch.tree, is_exact=is_exact
            )
            attempt = live.state.workers[worker].attempt.number
            live.feed(
                f.Rechecked(worker=worker, attempt=attempt, check=own, at=self._tools.clock.now())
            )
        return BatchCheck(fits=fits, tree=batch.tree, check=check)

    async def landing_order(
        self, run: str, workers: Sequence[str], by: LandingOrder = LandingOrder.PLAN
    ) -> tuple[PlannedLanding, ...]:
        """The order in which workers are to land, with the conflicts expected of each.

        Raises:
            WorkspaceError: One of them has nothing to land, or nowhere.
        """
        found = [await self._seen(run, worker) for worker in workers]
        if not found:
            return ()
        state, ids = found[0][0], [w.id for _, w in found]
        return await self._tools.workshop.merging(state).landing_order(state, ids, by)

    async def candidates(self, run: str, step: str) -> CandidateTable:
        """The candidates of a step beside each other: figures, consensus, every hunk of all.

        Raises:
            WorkspaceError: There is no such step.
        """
        state, planned = await self._step(run, step)
        return await self._tools.workshop.merging(state).candidates(state, planned)

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff:
        """What differs between the changes of any two workers.

        Raises:
            WorkspaceError: There is no such worker, or nothing of it to compare.
        """
        state, first = await self._seen(run, one)
        second = (await self._seen(run, other))[1]
        return await self._tools.workshop.merging(state).compare(first, second)

    async def leave_out(
        self, run: str, worker: str, hunks: Sequence[str], *, seen: c.Seen | None = None
    ) -> Change:
        """Let exactly these hunks stay behind when a change lands; what is left of it.

        Raises:
            ChangeMoved: The change is not the one that was seen.
            WorkspaceError: It cannot be done now, or there is no such hunk.
        """
        live, w = await self._of(worker, run=run)
        desk = self._tools.workshop.merging(live.state)
        left = await desk.leave_out(live, w.id, hunks, seen=seen)
        self._note_command(live, "LeaveOut", str(w.id))
        return left

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, c.Seen] | None = None,
    ) -> Wove:
        """Make a composite of hunks of a step's candidates, check it, and let it be reviewed.

        Args:
            run: The run; the latest where it is empty.
            step: The step.
            hunks: The keys of the hunks to take.
            seen: What was on screen of each candidate.

        Raises:
            ChangeMoved: The change of a candidate is not the one that was seen.
            WorkspaceError: There can be none now, or a hunk is not there.
        """
        state, planned = await self._step(run, step)
        live, first = await self._of(str(planned.workers[0].id), run=state.run)
        require_all_seen(live.state, seen)
        desk = self._tools.workshop.merging(live.state)
        woven = await desk.woven(live.state, planned, hunks)
        if isinstance(woven, str):
            return Wove(reason=woven)
        self._note_command(live, "Weave", "")
        check: CheckResult | None = None
        if planned.check is not None:
            effect = e.RunCheck(worker=first.id, attempt=first.attempt.number)
            checker = Checking(live, self._tools, effect)
            async with self._tools.landing:
                found = await self._tools.workshop.check_commit(
                    live.state, woven.head, woven.tree, checker
                )
            if isinstance(found, Refusal):
                raise WorkspaceError(found.reason)
            check = found
        if check is not None and not check.passed:
            return Wove(tree=woven.tree, check=check, taken=woven.taken, reason="its check failed")
        require_all_seen(live.state, seen)
        worker = await desk.weave_in(live, planned, woven, check)
        return Wove(worker=str(worker), tree=woven.tree, check=check, taken=woven.taken)

    async def _step(self, run: str, step: str) -> tuple[RunState, PlannedStep]:
        state = await self._state_of(run)
        if step not in state.steps:
            names = ", ".join(state.steps)
            raise WorkspaceError(f"{step!r} is no step of {state.run}", hint=f"Name one: {names}.")
        return state, state.plan.step(step)

    async def moments(self, run: str, worker: str) -> tuple[Moment, ...]:
        """The points in time that a worker can be begun again from, oldest first.

        Raises:
            WorkspaceError: There is no such worker.
        """
        state, found = await self._seen(run, worker)
        if state.plan.runtime.isolation is IsolationStrategy.DIRECTORY:
            return ()
        return await self._tools.workshop.merging(state).moments(state.run).of(found.id)

    async def _moments_for(self, live: LiveRun, command: c.Command) -> tuple[Moment, ...]:
        """What a command may choose from, if it is one that does."""
        if not isinstance(command, c.RetryWorker) or command.at is None:
            return ()
        with suppress(WorkspaceError):  # the name means nobody, or several: told where it is judged
            return await self.moments(live.run, command.worker)
        return ()

    def _watch_for_clashes(self, live: LiveRun, *, is_over: Callable[[], bool]) -> None:
        """Let a radar look at a run until it is over; plain folders never meet."""
        if live.state.plan.runtime.isolation is not IsolationStrategy.DIRECTORY:
            radar = self._tools.workshop.merging(live.state).radar(_Blips(live))
            self._radars[live.run] = radar
            self._tasks.start_soon(radar.watch, is_over)

    def _forget_clashes(self, run: RunId) -> None:
        """A run was let go: what was predicted is no longer kept."""
        self._radars.pop(run, None)

    def _viewed(self, live: LiveRun) -> RunView:
        """A run of this engine, with what its radar predicts."""
        view, radar = run_view(live), self._radars.get(live.run)
        return view if radar is None else radar.shown(view)


class _Blips:
    """A run as its radar sees it."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def state(self) -> RunState:
        return self._live.state

    def mention(self, event: LatestWins) -> None:
        self._live.mention(event)

    def spoke_at(self, worker: WorkerId) -> float | None:
        logbook = self._live.logbooks.get((worker, self._live.state.workers[worker].attempt.number))
        return logbook.last_output_at if logbook else None
