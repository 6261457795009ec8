"""All runs of one engine: started, taken up, shown and steered through one port."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine import commands as c
from engine.core import facts as f
from engine.core.report import report
from engine.core.state import RunState, Worker
from engine.diffs import ChangeDiff
from engine.errors import EngineError, NoSuchRun, WorkspaceError
from engine.events import Landed, Told
from engine.host.threads import REPORT
from engine.ids import AttemptId, RunId
from engine.logs import LogChunk
from engine.phases import Phase
from engine.plan.model import Plan
from engine.results import EngineView, Entrance, Machine, RunReport, RunView
from engine.store.history import RunSummary, Standing, list_runs
from engine.supervisor.allotment import admitted, allot
from engine.supervisor.cleaning import CleanItem, TrashItem, bring_back, clean, trash_items
from engine.supervisor.comparing import Wanted
from engine.supervisor.entering import entrance
from engine.supervisor.in_thread import has_threads
from engine.supervisor.journal import Journal
from engine.supervisor.judge import find_worker, judge
from engine.supervisor.live_run import LiveRun
from engine.supervisor.merges import Merges
from engine.supervisor.replay import read_log
from engine.supervisor.tools import Tools
from engine.supervisor.view import view_of


class Coordinator(Merges):
    """The runs of one engine, and the one way in."""

    def __init__(self, tools: Tools, tasks: TaskGroup, *, cap: int | None = None) -> None:
        super().__init__(tools, tasks)
        self._cap = cap
        self._runs: dict[RunId, LiveRun] = {}
        self._let_go: set[RunId] = set()
        self._is_sharing = False
        self._taking_up = anyio.Lock()

    @property
    def runs(self) -> Mapping[RunId, LiveRun]:
        """The runs this engine works on, oldest first."""
        return self._runs

    @property
    def tools(self) -> Tools:
        """The rooms this engine works with."""
        return self._tools

    async def start(self, plan: Plan) -> str:
        """Begin a run; its id."""
        return (await self.begin(plan)).run

    async def resume(self, run: str) -> str:
        """Take up a run that was interrupted; its id."""
        return (await self.take_up(RunId(run))).run

    async def begin(self, plan: Plan) -> LiveRun:
        """Begin a run.

        Raises:
            MechanismMissing: Something the plan requires cannot be enforced here.
            StoreError: The run cannot be written down.
        """
        rows = REPORT if has_threads(plan) else None
        await self._tools.starter.shelter.check_required(plan, rows)
        capacity = await self._tools.starter.host.capacity()
        plan = admitted(await self._tools.workshop.begin(plan), capacity)
        await self._tools.ledger.share(plan.agents)
        run = RunId(secrets.token_hex(3))
        layout = self._tools.layout
        await anyio.to_thread.run_sync(partial(layout.make, layout.run(run)))
        meta = {"project": str(self._tools.project), "started": str(self._tools.clock.now())}
        create = partial(Journal.create, run, layout.run_db(run), plan, meta)
        with anyio.CancelScope(shield=True):  # a journal that nobody works on would be taken up
            journal = await anyio.to_thread.run_sync(create)
            state = await anyio.to_thread.run_sync(journal.replay)
        live = self._admit(journal, state)
        live.begin(self._shares()[live.run])
        return live

    async def take_up(self, run: RunId) -> LiveRun:
        """Take up a run that no engine works on any more.

        Raises:
            NoSuchRun: There is none of that name.
            StoreError: Its journal cannot be replayed.
        """
        async with self._taking_up:  # two consoles at once must not make two runs of one journal
            if run in self._runs:
                return self._runs[run]
            path = await self._journal_path(run)
            journal = await anyio.to_thread.run_sync(partial(Journal.open, run, path))
            try:
                state = await anyio.to_thread.run_sync(journal.replay)
                told = await anyio.to_thread.run_sync(lambda: list(journal.events()))
            except BaseException:
                journal.close()
                raise
            await self._tools.ledger.share(state.plan.agents)
            live = self._admit(journal, state)
            live.go_on(told, self._shares()[run], is_told=run in self._let_go)
            return live

    async def let_go(self, run: RunId) -> None:
        """No longer hold a run; its journal says all, and whoever names the run takes it up."""
        live = self._runs.get(run)
        if live is None:
            return
        await live.wait_nothing()
        if self._runs.pop(run, None) is not None:
            self._forget_clashes(run)
            self._let_go.add(run)
            self._tools.proof.forget(run)
            live.close()
            self._share()

    async def put_away(self, worker: str) -> bool:
        """Give back a workspace whose every byte is provably kept; whether it is gone.

        Raises:
            WorkspaceError: There is no such worker.
        """
        live, found = await self._of(worker)
        return await live.put_away(found.id)

    async def land(self, command: c.Land) -> Landed | c.Conflicted | c.Refused:
        """Land a worker's change and wait for what becomes of it."""
        with suppress(EngineError):  # a run that nobody works on is taken up; else we are told why
            await self._of(command.worker, run=command.run)
        before = self._find(_split(command)[0])
        after = before.seq if before is not None else 0
        reply = await self.command(command)
        if isinstance(reply, c.Refused):
            return reply
        live, found = await self._of(command.worker, run=command.run)
        w = await live.wait_phase(found.id, lambda phase: phase is not Phase.LANDING)
        if w.phase is Phase.CONFLICTED:
            return c.Conflicted(worker=str(w.id), paths=w.conflicts)
        if w.phase is not Phase.LANDED:
            return c.Refused(w.error or f"{w.id} is {w.phase}: it did not land")
        async with aclosing(self._tools.bus.subscribe(live.run, after)) as news:
            async for told in news:
                if isinstance(told.event, Landed) and told.event.worker == str(w.id):
                    return told.event
        return c.Refused("the engine was closed", hint=f"{w.id} has landed.")

    async def _of(self, worker: str, *, run: str = "") -> tuple[LiveRun, Worker]:
        """The living run and the worker that a name means, `run/step/worker_1` for example."""
        run, command = _split(c.Approve(worker=worker, run=run))
        live = self._find(run)
        if live is None:
            name = run or next((summary.id for summary in await self.history()), "")
            live = await self.take_up(RunId(name))
        found = find_worker(live.state, getattr(command, "worker", worker))
        if isinstance(found, c.Refused):
            raise WorkspaceError(found.reason, hint=found.hint)
        return live, found

    async def resume_unfinished(self) -> list[RunId]:
        """Take up every run that was interrupted; those that cannot be read are left alone."""
        taken: list[RunId] = []
        for summary in reversed(await self.history()):
            if summary.standing in {Standing.UNFINISHED, Standing.WAITING}:
                with suppress(EngineError):
                    await self.take_up(summary.id)
                    taken.append(summary.id)
        return taken

    def _admit(self, journal: Journal, state: RunState) -> LiveRun:
        live = LiveRun(journal, state, tools=self._tools, tasks=self._tasks)
        self._runs[live.run] = live
        self._watch_for_clashes(live, is_over=lambda: self._runs.get(live.run) is not live)
        live.on_change = self._share
        return live

    def _share(self) -> None:
        """Keep all runs together below the engine's cap."""
        if self._is_sharing or not self._runs:
            return
        self._is_sharing = True
        try:
            for run, cap in self._shares().items():
                live = self._runs[run]
                if cap != live.state.cap:
                    live.feed(f.CapSet(cap=cap, is_share=True, at=self._tools.clock.now()))
        finally:
            self._is_sharing = False

    def _shares(self) -> Mapping[RunId, int]:
        """How many slots each run may have now."""
        states = [live.state for live in self._runs.values()]
        wanted = [state.wanted_cap for state in states]
        shares = allot(states, wanted, self._cap or max(wanted))
        return {run: share.cap for run, share in zip(self._runs, shares, strict=True)}

    def latest(self) -> LiveRun | None:
        """The run that was begun last."""
        return next(reversed(self._runs.values()), None)

    def _find(self, name: str) -> LiveRun | None:
        return self._runs.get(RunId(name)) if name else self.latest()

    async def command(self, command: c.Command) -> c.Reply:
        """Carry a command out, or say why not."""
        name, command = _split(command)
        live = self._find(name)
        if live is None:
            name = name or next((summary.id for summary in await self.history()), "")
            if not name:
                return c.Refused("there is no run", hint="Start one: plait run")
            try:
                live = await self.take_up(RunId(name))
            except EngineError as error:
                return c.Refused(str(error), hint=error.hint)
        if live.trouble is not None:
            return c.Refused(f"the run cannot be written down: {live.trouble}")
        moments = await self._moments_for(live, command)
        verdict = judge(live.state, command, at=self._tools.clock.now(), moments=moments)
        if isinstance(verdict, c.Refused):
            return verdict
        for fact in verdict.facts:
            live.feed(fact)
        return c.Accepted(verdict.note)

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """What happened behind a number, then what happens."""
        return self._tools.bus.subscribe(run, after_seq)

    async def snapshot(self) -> EngineView:
        """Everything a console shows at this moment."""
        capacity = await self._tools.starter.host.capacity()
        return EngineView(
            repository=str(self._tools.project),
            runs=tuple(self._viewed(live) for live in self._runs.values()),
            machine=Machine(
                cores=capacity.cores,
                memory_mb=capacity.memory_mb,
                memory_available_mb=capacity.memory_available_mb,
                disk_free_mb=capacity.disk_free_mb,
            ),
            at=self._tools.clock.now(),
        )

    async def log(
        self, run: str, worker: str, attempt: int | None = None, after: int = 0
    ) -> LogChunk:
        """A worker's log from a line on; an attempt of long ago is read from its recording.

        Raises:
            WorkspaceError: There is no such worker, or no such attempt of it.
        """
        state, found = await self._seen(run, worker)
        if not 0 <= (attempt or 0) <= found.attempt:
            raise WorkspaceError(f"{found.id} has had no attempt {attempt}")
        live = self._runs.get(state.run)
        number = attempt or found.attempt
        logbook = live.logbooks.get((found.id, number)) if live else None
        if logbook is None and number:
            logbook = await read_log(self._tools, state, AttemptId(state.run, found.id, number))
            if live is not None:
                logbook = live.logbooks.setdefault((found.id, number), logbook)  # or begun by now
        if logbook is not None:
            logbook.last_read = self._tools.clock.monotonic()
        return logbook.read(after) if logbook else LogChunk(next_offset=after)

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """What a worker's attempt has changed; of one that runs, so far.

        It is held against where it began; or against `target` (what landing it now would change
        there), another attempt (`@2`), or any revision.

        Raises:
            WorkspaceError: There is no such worker, or nothing of it to compare.
        """
        state, found = await self._seen(run, worker)
        wanted = Wanted(attempt=attempt or found.attempt, against=against, context=context)
        return await self._tools.workshop.diff(state, found, wanted)

    async def enter(self, run: str, worker: str) -> Entrance:
        """What starts a program inside a worker's sandbox.

        Raises:
            WorkspaceError: There is no such worker, or no way in.
        """
        state, found = await self._seen(run, worker)
        return await entrance(self._tools, state, found)

    async def _state_of(self, run: str) -> RunState:
        """A run's state, living or read from its journal."""
        live = self._find(run)
        return live.state if live else await self._read_state(run)

    async def _seen(self, run: str, worker: str) -> tuple[RunState, Worker]:
        """A run's state, living or read from its journal, and the worker that a name means there.

        Raises:
            WorkspaceError: There is no such worker.
        """
        run, command = _split(c.Approve(worker=worker, run=run))
        state = await self._state_of(run)
        found = find_worker(state, getattr(command, "worker", worker))
        if isinstance(found, c.Refused):
            raise WorkspaceError(found.reason, hint=found.hint)
        return state, found

    async def _journal_path(self, run: RunId) -> Path:
        try:
            path = self._tools.layout.run_db(run)
        except ValueError:
            raise NoSuchRun(run) from None
        if not await anyio.to_thread.run_sync(path.is_file):
            raise NoSuchRun(run)
        return path

    async def _read_state(self, run: str) -> RunState:
        name = RunId(run) if run else next((s.id for s in await self.history()), RunId(""))
        path = await self._journal_path(name)
        opened = partial(Journal.open, name, path, read_only=True)
        journal = await anyio.to_thread.run_sync(opened)
        try:
            return await anyio.to_thread.run_sync(journal.replay)
        finally:
            journal.close()

    async def view(self, run: str = "") -> RunView:
        """One run as it stands, living or read from its journal."""
        live = self._find(run)
        if live is not None:
            return self._viewed(live)
        return view_of(await self._read_state(run), {})

    async def report(self, run: str = "") -> RunReport:
        """What a run has come to so far, living or read from its journal."""
        live = self._find(run)
        return report(live.state if live is not None else await self._read_state(run))

    async def history(self) -> list[RunSummary]:
        """Every run of the repository, newest first."""
        return await anyio.to_thread.run_sync(list_runs, self._tools.layout)

    async def clean(self, *, dry_run: bool = False) -> list[CleanItem]:
        """Take away every workspace that is provably not needed; the rest with the reason."""
        states = []
        for summary in await self.history():
            with suppress(EngineError):
                live = self._runs.get(summary.id)
                states.append(live.state if live else await self._read_state(summary.id))
        return await clean(self._tools, states, dry_run=dry_run)

    async def trash(self) -> list[TrashItem]:
        """What was taken away and can be brought back."""
        return await anyio.to_thread.run_sync(trash_items, self._tools.layout.trash)

    async def restore(self, name: str) -> str:
        """Bring something back from the trash; its path."""
        return await bring_back(self._tools.repo, self._tools.layout.trash, name)

    async def wait_idle(self) -> None:
        """Return when nothing goes on in any run but what waits for a human."""
        while busy := [live for live in self._runs.values() if not live.is_at_rest]:
            for live in busy:  # meanwhile those before it may have begun anew
                await live.wait_rest()

    def close(self) -> None:
        """Give all journals back."""
        self._tools.bus.close()
        for live in self._runs.values():
            live.close()


def _split(command: c.Command) -> tuple[str, c.Command]:
    """A command's run, also where it stands before the worker's name: `run/step/worker_1`."""
    worker = getattr(command, "worker", None)
    if command.run or worker is None or worker.count("/") < 2:  # noqa: PLR2004  run/step/worker
        return command.run, command
    run, _, rest = worker.partition("/")
    return run, replace(command, worker=rest)
