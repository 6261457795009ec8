"""All runs of one engine: started, taken up, shown and steered through one port."""

import secrets
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.core import facts as f
from engine.core.state import RunState, Worker
from engine.errors import EngineError, WorkspaceError
from engine.host.threads import REPORT
from engine.ids import RunId
from engine.messages import commands as c
from engine.messages.events import Landed
from engine.phases import HOLDING, Phase
from engine.plan.model import Plan
from engine.run.allotment import admitted, allot
from engine.run.journal import Journal
from engine.run.judge import find_worker, judge
from engine.run.live_run import LiveRun
from engine.run.questions import Questions, split_run
from engine.site.in_thread import has_threads
from engine.speaking import speaker, this_process
from engine.store.codec import to_json
from engine.store.history import Standing
from engine.work.cleaning import CleanItem, bring_back, clean
from engine.work.tools import Tools

_AT_WORK = HOLDING | {Phase.QUEUED, Phase.BACKING_OFF, Phase.LANDING}


class Coordinator(Questions):
    """The runs of one engine, and the one way in."""

    def __init__(
        self,
        tools: Tools,
        tasks: TaskGroup,
        *,
        cap: int | None = None,
        guests: set[RunId] | None = None,
    ) -> None:
        """Begin without runs.

        Args:
            tools: The rooms to work with.
            tasks: Where everything goes on.
            cap: Of all runs together.
            guests: Is told which runs other processes brought in.
        """
        super().__init__(tools, tasks)
        self._guests = set() if guests is None else guests
        self._cap = cap
        self._let_go: set[RunId] = set()
        self._is_sharing = False
        self._taking_up = anyio.Lock()

    @property
    def guests(self) -> tuple[RunId, ...]:
        """The runs that other processes brought in and that are at work."""
        found = (run for run in self._runs if run in self._guests)
        return tuple(run for run in found if self._runs[run].state.crew.count(_AT_WORK))

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
        meta = {
            "project": str(self._tools.project),
            "started": str(self._tools.clock.now()),
            "by": to_json(speaker()),
        }
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
        before = self._find(split_run(command)[0])
        after = before.seq if before is not None else 0
        reply = await self.command(command)
        if isinstance(reply, c.Refused):
            return reply
        live, found = await self._of(command.worker, run=command.run)
        w = await live.wait_phase(found.id, lambda phase: phase is not Phase.LANDING)
        if w.phase is Phase.CONFLICTED and w.review.conflict is not None:
            return c.Conflicted(worker=str(w.id), paths=w.review.conflict.paths)
        if w.phase is not Phase.LANDED:
            return c.Refused(w.error or f"{w.id} is {w.phase}: it did not land")
        async with aclosing(self._tools.bus.subscribe(live.run, after)) as news:
            async for told in news:
                if isinstance(told.event, Landed) and told.event.worker == str(w.id):
                    return told.event
        return c.Refused("the engine was closed", hint=f"{w.id} has landed.")

    async def _of(self, worker: str, *, run: str = "") -> tuple[LiveRun, Worker]:
        """The living run and the worker that a name means, `run/step/worker_1` for example."""
        run, command = split_run(c.Approve(worker=worker, run=run))
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
        if speaker() != this_process():
            self._guests.add(state.run)
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

    async def command(self, command: c.Command) -> c.Reply:
        """Carry a command out, or say why not."""
        name, command = split_run(command)
        live = self._find(name)
        if live is None:
            name = name or next((summary.id for summary in await self.history()), "")
            if not name:
                return c.Refused("there is no run", hint="Start one: plait run")
            try:
                live = await self.take_up(RunId(name))
            except EngineError as error:
                return c.Refused(str(error), hint=error.hint)
        if live.is_unwritable and not isinstance(command, c.StopRun | c.StopWorker):
            trouble = live.troubles.told
            why = trouble.what if trouble is not None else "its journal cannot be written"
            return c.Refused(
                f"nothing can be written down: {why}", hint=trouble.help if trouble else ""
            )
        moments = await self._moments_for(live, command)
        verdict = judge(live.state, command, at=self._tools.clock.now(), moments=moments)
        if isinstance(verdict, c.Refused):
            return verdict
        self._note_command(live, type(command).__name__, getattr(command, "worker", None) or "")
        for fact in verdict.facts:
            live.feed(fact)
        if live.is_unwritable:  # what was fed waits, and nobody would tell the agents
            stopped = [one.worker for one in verdict.facts if isinstance(one, f.StopRequested)]
            live.end_agents(stopped or live.state.workers)
            return c.Accepted(f"{verdict.note}; that is written down once it can be")
        return c.Accepted(verdict.note)

    async def clean(self, *, dry_run: bool = False) -> list[CleanItem]:
        """Take away every workspace that is provably not needed; the rest with the reason."""
        states = []
        for summary in await self.history():
            with suppress(EngineError):
                live = self._runs.get(summary.id)
                states.append(live.state if live else await self._read_state(summary.id))
        return await clean(self._tools, states, dry_run=dry_run)

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
