"""Open an engine in this process, and use the runs it works on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from os import PathLike, environ
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.api.errors_out import plain_errors
from engine.api.histories import count_attempts, open_shared
from engine.api.plans import plan_from
from engine.api.tried import noted_try
from engine.bus import Bus
from engine.clock import SystemClock
from engine.core.report import report
from engine.git.recovery import recover_repository
from engine.history.feeder import feeding
from engine.host.local import LocalHost
from engine.host.seam import Host
from engine.ids import RunId, WorkerId
from engine.messages import commands as c
from engine.messages.diffs import ChangeDiff
from engine.messages.events import Landed, Told
from engine.messages.logs import LogChunk
from engine.messages.questions import (
    A,
    Ask,
    ListRuns,
    ReadDiff,
    ReadEngine,
    ReadLog,
    ReadRun,
    RunSummary,
    WaitIdle,
)
from engine.messages.results import EngineView, RunReport, RunView, StepResult
from engine.patterns.background import Background
from engine.plan.make import PlanDefaults
from engine.plan.model import Plan
from engine.port.as_heard import AsHeard
from engine.port.port import EnginePort
from engine.port.server import Door, serving
from engine.private import tightened
from engine.proof.tampering import Proof
from engine.review.landing import finish_undoing
from engine.run.coordinator import Coordinator
from engine.run.journal import read_told
from engine.run.live_run import LiveRun
from engine.run.runs import Runs
from engine.sandbox.probe import probe
from engine.site.child import ChildSite
from engine.site.cluster import RaySite
from engine.site.line import NAME as CHILD
from engine.site.local import LocalSite
from engine.site.place import Place, find_place
from engine.site.shelter import Shelter
from engine.site.sites import Sites
from engine.speaking import this_process
from engine.store.files import EngineLock
from engine.store.layout import ASIDE, make_state_home
from engine.work.kept_answers import KeptAnswers
from engine.work.ledger import Ledger
from engine.work.logins import Logins
from engine.work.serving import sweep
from engine.work.tools import Tools
from engine.work.workshops import Workshops

_SITE = "PLAIT_SITE"
"""The variable that names the site of runs whose manifest chooses none."""


class Run:
    """One run of an engine: wait for it, or read its results."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self._live.run

    async def wait(self) -> RunReport:
        """Wait until every worker has settled or a human is needed; return the report."""
        return await self._live.wait_end()

    def report(self) -> RunReport:
        """Return its results so far."""
        return report(self._live.state)

    def step(self, name: str) -> StepResult:
        """Return one step's results so far."""
        return self.report().steps[name]


class Engine:
    """An engine in this process; open it with `async with Engine.open(…)`."""

    def __init__(self, coordinator: Coordinator, place: Place, door: Door) -> None:
        self._coordinator = coordinator
        self._place = place
        self._door = door

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        folder: str | PathLike[str] = ".",
        *,
        max_workers: int | None = None,
        detach: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Self]:
        """Open an engine on a repository or plain folder: one engine at a time can be open there.

        Args:
            folder: Anywhere inside the repository.
            max_workers: The cap for all runs together; None means that each run has its own.
            detach: Leave the agents running when the engine closes. Without it, they end. Agents of
                runs that other processes started here keep running in any case.
            environment: The environment, instead of this process's.

        Raises:
            LockHeld: Another engine works there; the message names it.
            WorkspaceError: The folder cannot be used.
        """
        env = dict(environ if environment is None else environment)
        place = await find_place(Path(folder), env)
        with plain_errors():
            async with AsyncExitStack() as stack:
                await anyio.to_thread.run_sync(place.layout.make)
                engine = await cls._assemble(
                    stack, place, env, max_workers=max_workers, detach=detach
                )
                yield engine

    @classmethod
    async def _assemble(
        cls,
        stack: AsyncExitStack,
        place: Place,
        env: Mapping[str, str],
        *,
        max_workers: int | None,
        detach: bool,
    ) -> Self:
        door = await stack.enter_async_context(serving(place.layout, env))
        take = partial(EngineLock.take, place.layout.engine_lock, socket=door.socket)
        stack.enter_context(await anyio.to_thread.run_sync(take))
        await anyio.to_thread.run_sync(this_process)
        await _recover(place)
        home = await anyio.to_thread.run_sync(make_state_home, env)
        await anyio.to_thread.run_sync(tightened, place.workspaces)
        machine = await anyio.to_thread.run_sync(probe, env, home / "machine")
        clock = SystemClock()
        host = LocalHost(place.layout.root)
        guests: set[RunId] = set()
        stack.push_async_callback(let_go := partial(_close_host, detach=detach, stay=guests), host)

        def tethers(run: RunId) -> bool:
            return run.startswith(ASIDE) or (not detach and run not in guests)

        shelter = Shelter(machine=machine, layout=place.layout, project=place.project, environ=env)
        near = LocalSite(place, host=host, shelter=shelter, environment=env, tethers=tethers)
        await near.recover()
        child = ChildSite.opened(place, home, env, tethers=tethers, can_confine=near.can_confine)
        opens = partial(RaySite, place=place, home=home, environment=env, tethers=tethers)
        bus = Bus(partial(read_told, place.store))
        fed = feeding(place, partial(open_shared, env), bus=bus, clock=clock)
        feeder = await stack.enter_async_context(fed)
        sites = await stack.enter_async_context(
            _all(Sites(near, default=env.get(_SITE, "")), child, let_go, opens)
        )
        tools = Tools(
            sites=sites,
            workshops=Workshops(place, sites=sites, clock=clock, seeds=near.seeds),
            layout=place.layout,
            store=place.store,
            bus=bus,
            clock=clock,
            project=place.project,
            workspaces=place.workspaces,
            environ=env,
            logins=Logins(env, folder=home / "logins", clock=clock),
            ledger=Ledger(env, folder=home / "logins", place=place.layout.root, clock=clock),
            repo=place.repo,
            proof=Proof(place, shelter, sites),
            feeder=feeder,
            answers=KeptAnswers(place.layout.answers_json),
            count=partial(count_attempts, place, env),
        )
        tasks = await _tasks_of(place, stack)
        await sweep(tools)
        coordinator = Coordinator(Runs(tools, tasks, cap=max_workers, guests=guests))
        stack.callback(coordinator.runs.close)
        stack.callback(tasks.cancel_scope.cancel)
        stack.push_async_callback(coordinator.runs.head_start.aclose)
        await door.open(coordinator, tasks)
        return cls(coordinator, place, door)

    @property
    def port(self) -> EnginePort:
        """Return the interface that consoles use, here without a socket."""
        return self._coordinator

    @property
    def guests(self) -> tuple[str, ...]:
        """Return the runs that other processes gave to this engine; their agents outlive it."""
        return self._coordinator.runs.guests

    @property
    def project(self) -> Path:
        """Return the folder of its project."""
        return self._place.project

    def run_commands(self, runs: Callable[[Any, Mapping[str, Any]], Awaitable[Any]]) -> None:
        """Let shells send command lines to this engine, as `plait serve` does.

        Args:
            runs: A function that runs one command line. It takes the engine's port and the shell's
                request, and returns the output. If it returns None, the shell runs the command.
        """
        heard = AsHeard(self._coordinator, partial(noted_try, self._place.layout))
        self._door.runs_command = partial(runs, heard)

    def database(self, run: str, worker: str) -> Path:
        """Return the path of a worker's own SQLite database: its events, usage and notes."""
        return self._place.layout.agent_db(RunId(run), WorkerId.parse(worker))

    async def start(
        self,
        plan: str | PathLike[str] | Mapping[str, Any] | Plan,
        *,
        pipeline: str | None = None,
        defaults: PlanDefaults | None = None,
    ) -> Run:
        """Start a run from a manifest's path or text, a dict, or a plan.

        Raises:
            SpecError: The manifest is wrong; the message lists every problem.
            PlanError: No plan can be made from it.
            MechanismMissing: This machine cannot enforce something that it requires.
        """
        if not isinstance(plan, Plan):
            read = partial(plan_from, plan, folder=self._place.project, pipeline=pipeline)
            plan = await anyio.to_thread.run_sync(partial(read, defaults=defaults))
        return Run(await self._coordinator.runs.begin(plan))

    async def resume(self, run: str) -> Run:
        """Resume a run that was interrupted."""
        return Run(await self._coordinator.runs.resume(RunId(run)))

    async def resume_unfinished(self) -> list[str]:
        """Resume every interrupted run; return their ids."""
        return [str(run) for run in await self._coordinator.runs.resume_unfinished()]

    async def command(self, command: c.Command) -> c.Reply:
        """Send a command; it is accepted, or refused with a reason."""
        return await self._coordinator.command(command)

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """Yield the events after `after_seq`, then each new one."""
        return self._coordinator.events(after_seq, run=run)

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to any question of `engine.messages`.

        Raises:
            EngineError: There is no answer; the message says why.
        """
        return await self._coordinator.ask(question)

    async def snapshot(self) -> EngineView:
        """Return everything that a console shows now."""
        return await self.ask(ReadEngine())

    async def land(
        self,
        worker: str,
        *,
        to: str | None = None,
        style: str | None = None,
        despite_check: bool = False,
        edits: c.Edits = c.Edits.REFUSE,
        seen: c.Seen | None = None,
    ) -> Landed | c.Conflicted | c.Refused:
        """Land a worker's change on its target, and return the outcome.

        Args:
            worker: `step/worker_1` of the latest run, or `run/step/worker_1`.
            to: Another branch than the run's target.
            style: `merge`, `squash` or `rebase`; by default the run's.
            despite_check: Land although the check is known to fail on exactly this tree.
            edits: How to treat your uncommitted edits that are in the way.
            seen: The change that you looked at; plait refuses any other.
        """
        command = c.Land(
            worker=worker,
            to=to,
            style=style,
            is_despite_check=despite_check,
            edits=edits,
            seen=seen,
        )
        return await self._coordinator.land(command)

    async def release(self, worker: str) -> bool:
        """Remove a workspace if every byte of it is provably kept; return True if it is removed.

        Its change stays on its ref: you can still review, retry and land it.

        Raises:
            WorkspaceError: There is no such worker.
        """
        return await self._coordinator.release(worker)

    async def unload(self, run: str) -> None:
        """Drop a run from memory, if nothing of it is running.

        Nothing is lost: a command that names the run loads it from its journal again.
        """
        await self._coordinator.runs.unload(RunId(run))

    async def view(self, run: str = "") -> RunView:
        """Return the current state of a run (default: the latest)."""
        return await self.ask(ReadRun(run))

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        """Return a worker's log after line `after`; with `most`, only the newest lines."""
        return await self.ask(ReadLog(run, worker, attempt, after, most))

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """Return the changes of a worker's attempt; while it runs, the changes so far.

        The diff compares the attempt with its base. `against` can be `target` (what landing would
        change there now), another attempt (`@2`) or any revision. `context` is the number of lines
        around every change.
        """
        return await self.ask(ReadDiff(run, worker, attempt, against, context))

    async def history(self) -> list[RunSummary]:
        """Return every run of the repository, newest first."""
        return list(await self.ask(ListRuns()))

    async def wait_idle(self) -> None:
        """Wait until everything has ended or waits for a human."""
        await self.ask(WaitIdle())

    async def wait_unneeded(self, *, patience_s: float = 60.0) -> None:
        """Return when somebody stops the engine, or nobody has used it for `patience_s` seconds."""
        while not self._door.asked_to_leave.is_set():
            with anyio.move_on_after(patience_s):
                await self._door.asked_to_leave.wait()
            is_resting = all(live.may_be_left for live in self._coordinator.runs.living.values())
            is_seen = self._coordinator.runs.tools.served.is_any_alive
            if is_resting and not is_seen and not self._door.clients:
                return


@asynccontextmanager
async def _all(
    sites: Sites,
    child: AbstractAsyncContextManager[ChildSite],
    let_go: Callable[[Host], Awaitable[None]],
    opens: Callable[..., RaySite],
) -> AsyncIterator[Sites]:
    """Open the sites beside this machine's own disk; only a repository has any."""
    if sites.near.repo is None:
        yield sites
        return
    async with child as site, anyio.create_task_group() as tasks:
        sites.known[CHILD] = site
        sites.open_cluster = partial(opens, tasks=tasks)
        try:
            yield sites
        finally:
            await let_go(site.host)
            for cluster in sites.clusters.values():
                await cluster.close(let_go)
            tasks.cancel_scope.cancel()


async def _tasks_of(place: Place, stack: AsyncExitStack) -> TaskGroup:
    """Return the tasks of an engine; when they are over, what it knows of the runs is kept."""
    # Pushed before what closes the journals, so done after it.
    stack.push_async_callback(anyio.to_thread.run_sync, place.store.keep_summaries)
    tasks = await stack.enter_async_context(anyio.create_task_group())
    if place.repo is not None:
        # Without standing gits, each question starts its own.
        Background(tasks).start_soon(place.repo.standing.serve, failed=None)
    return tasks


async def _recover(place: Place) -> None:
    """Finish what an engine that was killed had begun in the repository."""
    if place.repo is not None:
        await recover_repository(place.repo)
        await finish_undoing(place.repo, place.layout)


async def _close_host(host: Host, *, detach: bool, stay: Container[RunId]) -> None:
    with anyio.CancelScope(shield=True):
        await host.aclose(detach=detach, stay=stay)
