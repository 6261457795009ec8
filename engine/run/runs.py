"""Hold the runs of one engine: begin, resume, share out, find by name, unload.

The workers of all runs share one cap; free memory may lower the cap of a run. A run that no engine
works on is read from its journal.
"""

import math
import secrets
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from engine.core import run_facts as rf
from engine.core.state import RunState, Worker
from engine.errors import EngineError, SiteSilent, WorkspaceError
from engine.host.seam import Capacity
from engine.host.threads import REPORT
from engine.ids import AttemptId, RunId
from engine.messages import commands as c
from engine.messages.questions import RunSummary, Standing
from engine.messages.results import RunView
from engine.patterns.background import Background
from engine.phases import HOLDING, Phase
from engine.plan.model import Clamp, IsolationStrategy, Plan
from engine.review.radar import Radar
from engine.run.journal import Journal
from engine.run.judge import find_worker
from engine.run.live_run import LiveRun
from engine.run.past import replayed, run_named
from engine.run.view import Views, run_view
from engine.site.in_thread import has_threads
from engine.speaking import speaker, this_process
from engine.store.codec import to_json
from engine.values import dataclass
from engine.work.ahead import Ahead
from engine.work.aside import Asides
from engine.work.explaining import Explaining
from engine.work.head_start import HeadStart
from engine.work.logbook import Logbook
from engine.work.replay import read_log
from engine.work.tools import Tools
from engine.work.trouble import silence_trouble
from engine.work.watch import Watch
from engine.work.workplace import terms_of

_RESERVE = 0.1
"""The part of the free memory that stays with the machine."""
_AT_WORK = HOLDING | {Phase.QUEUED, Phase.BACKING_OFF, Phase.LANDING}


def admitted(plan: Plan, capacity: Capacity) -> Plan:
    """Return the plan with no more workers at once than free memory allows."""
    most = max((step.limits.memory_mb or 0 for step in plan.steps), default=0)
    asked = plan.runtime.max_concurrent_workers
    free = int(capacity.memory_available_mb * (1 - _RESERVE))
    given = max(1, min(asked, free // most)) if most else asked
    if given == asked:
        return plan
    clamp = Clamp(
        where="max_concurrent_workers",
        asked=asked,
        given=given,
        reason=f"memory: {free} MB free, and each worker can use {most} MB",
    )
    runtime = replace(plan.runtime, max_concurrent_workers=given)
    return replace(plan, runtime=runtime, clamps=(*plan.clamps, clamp))


@dataclass(frozen=True)
class Share:
    """The slots that a run may hold now."""

    run: str
    cap: int


def allot(states: Sequence[RunState], wanted: Sequence[int], total: int) -> list[Share]:
    """Return each run's share: its held slots, then one more at a time while work is queued.

    Args:
        states: The runs, oldest first.
        wanted: The cap each run would have alone.
        total: How many workers the engine may run at once.
    """
    held = [state.slots_in_use for state in states]
    queued = [state.crew.count((Phase.QUEUED,)) for state in states]
    caps = list(held)
    free = total - sum(held)
    while free > 0:
        able = [n for n in range(len(states)) if caps[n] < min(wanted[n], held[n] + queued[n])]
        if not able:
            break
        least = min(able, key=lambda n: caps[n])
        caps[least] += 1
        free -= 1
    if len(states) == 1:
        return [Share(states[0].run, min(wanted[0], total))]
    return [Share(state.run, cap) for state, cap in zip(states, caps, strict=True)]


class Runs:
    """The runs that one engine works on, and those that it can read.

    Attributes:
        radars: The radar of each run that it works on; one in plain folders has none.
    """

    def __init__(
        self,
        tools: Tools,
        tasks: TaskGroup,
        *,
        cap: int | None = None,
        guests: set[RunId] | None = None,
    ) -> None:
        """Start without runs.

        Args:
            tools: The rooms to work with.
            tasks: Where everything goes on.
            cap: Of all runs together.
            guests: Hears which runs other processes brought in.
        """
        self.tools = tools
        self.tasks = Background(tasks)
        self._runs: dict[RunId, LiveRun] = {}
        self.radars: dict[RunId, Radar] = {}
        self._read: tuple[RunId, Hashable, RunState] | None = None
        self._guests = set() if guests is None else guests
        self._cap = cap
        self._let_go: set[RunId] = set()
        self._is_sharing = False
        self._taking_up = anyio.Lock()
        self.ahead = Ahead(tools, self.tasks)
        self.head_start = HeadStart(tools, self.tasks)
        self.explaining = Explaining(tools)
        self.asides = Asides(tools)
        tools.sites.heard_late = self._note_late
        tools.sites.heard_silence = self._note_silence
        tools.sites.heard_leaving = self._move_away

    @property
    def living(self) -> Mapping[RunId, LiveRun]:
        """Return the runs this engine works on, oldest first."""
        return self._runs

    @property
    def guests(self) -> tuple[RunId, ...]:
        """Return the runs that other processes brought in and that are at work."""
        found = (run for run in self._runs if run in self._guests)
        return tuple(run for run in found if self._runs[run].state.crew.count(_AT_WORK))

    # Begun, taken up, let go.

    async def begin(self, plan: Plan) -> LiveRun:
        """Start a run.

        Raises:
            MechanismMissing: Something the plan requires cannot be enforced here.
            AgentError: One of its agents cannot be started here.
            StoreError: The run cannot be written down.
        """
        rows = REPORT if has_threads(plan) else None
        plan = self.tools.sites.chosen(plan)
        sites = self.tools.sites.used_by(plan)
        for site, agents in sites.items():
            await site.admit(terms_of(plan), rows)
            await site.check_agents(agents, plan.runtime, str(self.tools.project))
        plan = await self.tools.workshops.of(plan).begin(plan)
        if any(site in self.tools.sites.known.values() for site in sites):
            plan = admitted(plan, await self.tools.sites.near.host.capacity())
        await self.tools.ledger.share(plan.agents)
        run = RunId(secrets.token_hex(3))
        meta = {
            "project": str(self.tools.project),
            "started": str(self.tools.clock.now()),
            "by": to_json(speaker()),
        }
        create = partial(Journal.create, run, self.tools.store, plan, meta)
        with anyio.CancelScope(shield=True):  # a journal that nobody works on would be taken up
            journal = await anyio.to_thread.run_sync(create)
            state = await anyio.to_thread.run_sync(journal.replay)
        live = self._admit(journal, state)
        live.begin(self._shares()[live.run])
        return live

    def _note_late(self, attempt: AttemptId, ref: str) -> None:
        """Write into a worker's log that work came after another attempt had followed."""
        live = self._runs.get(attempt.run)
        if live is not None:
            number = live.state.workers[attempt.worker].attempt.number
            said = f"the work of attempt {attempt.number} arrived late; it is kept under {ref}"
            live.note(attempt.worker, number, f"{said}, and plait does not merge it")

    def _note_silence(self, site: str, why: SiteSilent | None) -> None:
        """Tell the runs whose workers live at a site that it does not answer, or does again."""
        for live in self._runs.values():
            if why is None:
                live.troubles.passed(site)
            elif any(
                w.begun.site == site for w in live.state.workers.values() if w.phase.holds_slot
            ):
                live.troubles.met(site, silence_trouble(why, at=self.tools.clock.now()))

    def _move_away(self, site: str) -> None:
        """Let the workers of a site that is to go come home, and go on elsewhere."""
        for live in self._runs.values():
            for w in live.state.workers.values():
                is_there = w.begun.site == site and w.phase is Phase.RUNNING
                if is_there and live.move_away(w.id):
                    said = (
                        f"{site} is being drained: the work so far is kept and continues elsewhere"
                    )
                    live.note(w.id, w.attempt.number, said)

    async def resume(self, run: RunId) -> LiveRun:
        """Resume a run that no engine works on any more.

        Raises:
            NoSuchRun: There is none of that name.
            StoreError: Its journal cannot be replayed.
        """
        async with self._taking_up:  # two consoles at once must not make two runs of one journal
            if run in self._runs:
                return self._runs[run]
            open_journal = partial(Journal.open, run, self.tools.store)
            journal = await anyio.to_thread.run_sync(open_journal)
            try:
                state = await anyio.to_thread.run_sync(journal.replay)
                told = await anyio.to_thread.run_sync(lambda: list(journal.events()))
                await self.tools.ledger.share(state.plan.agents)
            except BaseException:
                journal.close()
                raise
            live = self._admit(journal, state)
            live.go_on(told, self._shares()[run], is_told=run in self._let_go)
            return live

    async def unload(self, run: RunId) -> None:
        """Unload a run; the next command that names it reloads it from its journal."""
        live = self._runs.get(run)
        if live is None:
            return
        await live.wait_nothing()
        await self.tools.served.stop_run(run)
        if self._runs.pop(run, None) is not None:
            self.radars.pop(run, None)
            self.ahead.forget(run)
            self.head_start.forget(run)
            # Observers have had its events: resuming it must not publish them again.
            self._let_go.add(run)
            self.tools.proof.forget(run)
            live.close()
            self._share()

    async def resume_unfinished(self) -> list[RunId]:
        """Resume every interrupted run; leave unreadable ones alone."""
        taken: list[RunId] = []
        for summary in reversed(await self.summaries()):
            if summary.standing in {Standing.UNFINISHED, Standing.WAITING}:
                with suppress(EngineError):
                    await self.resume(summary.id)
                    taken.append(summary.id)
        return taken

    def _admit(self, journal: Journal, state: RunState) -> LiveRun:
        # Another process asked for it, so its agents must not end with this engine.
        if speaker() != this_process():
            self._guests.add(state.run)
        live = LiveRun(journal, state, tools=self.tools, tasks=self.tasks)
        self._runs[live.run] = live
        self._watch_for_clashes(live, is_over=lambda: self._runs.get(live.run) is not live)
        live.on_change = partial(self._changed, live)
        shared = state.plan.runtime.history
        self.tools.feeder.follow(live.run, shared, live.tell_history)
        return live

    def _changed(self, live: LiveRun) -> None:
        self._share()
        self.ahead.look(live)
        self.head_start.look(live)

    def _share(self) -> None:
        """Keep all runs together below the engine's cap."""
        # Feeding a cap changes a run, which calls this again.
        if self._is_sharing or not self._runs:
            return
        self._is_sharing = True
        try:
            for run, cap in self._shares().items():
                live = self._runs[run]
                if cap != live.state.cap:
                    live.feed(rf.CapSet(cap=cap, is_share=True, at=self.tools.clock.now()))
        finally:
            self._is_sharing = False

    def _shares(self) -> Mapping[RunId, int]:
        """Return how many slots each run may have now."""
        states = [live.state for live in self._runs.values()]
        wanted = [state.wanted_cap for state in states]
        shares = allot(states, wanted, self._cap or max(wanted))
        return {run: share.cap for run, share in zip(self._runs, shares, strict=True)}

    def _watch_for_clashes(self, live: LiveRun, *, is_over: Callable[[], bool]) -> None:
        """Let a radar watch a run until it is over; plain folders never clash."""
        if live.state.plan.runtime.isolation is not IsolationStrategy.DIRECTORY:
            radar = self.tools.workshops.of(live.state.plan).merging(live.state).radar(live)
            self.radars[live.run] = radar
            self.tasks.start_soon(radar.watch, is_over, failed=partial(live.met, "radar"))

    async def wait_idle(self) -> None:
        """Return when nothing goes on in any run but what waits for a human."""
        while busy := [live for live in self._runs.values() if not live.is_at_rest]:
            for live in busy:  # meanwhile those before it may have begun anew
                await live.wait_rest()

    def close(self) -> None:
        """Close all journals."""
        self.tools.bus.close()
        for live in self._runs.values():
            live.close()

    # Found by name.

    def find(self, name: str) -> LiveRun | None:
        """Return the living run of a name; the one that was begun last where none is named."""
        if name:
            return self._runs.get(RunId(name))
        return max(self._runs.values(), key=_began, default=None)

    async def summaries(self) -> list[RunSummary]:
        """Return every run of the repository at a glance, newest first."""
        return await anyio.to_thread.run_sync(self.tools.store.runs)

    async def name_of(self, run: str) -> str:
        """Return the run that an id or a title means; the newest run if none is named.

        Nothing is returned where there is none.

        Raises:
            NoSuchRun: Several have that title.
        """
        return run if run in self._runs else run_named(run, await self.summaries())

    async def worker(self, worker: str, *, run: str = "") -> tuple[LiveRun, Worker]:
        """Return the worker that a name means, `run/step/worker_1` for example, and its living run.

        Raises:
            WorkspaceError: There is no such worker.
        """
        run, worker = split_worker(run, worker)
        live = self.find(run) or await self.resume(RunId(await self.name_of(run)))
        return live, _meant(live.state, worker)

    async def seen_worker(self, run: str, worker: str) -> tuple[RunState, Worker]:
        """Return a run's state, living or read, and the worker that a name means there.

        Raises:
            WorkspaceError: There is no such worker.
        """
        run, worker = split_worker(run, worker)
        state = await self.state(run)
        return state, _meant(state, worker)

    async def logbook(
        self, state: RunState, found: Worker, attempt: int | None
    ) -> tuple[Logbook | None, Callable[..., Awaitable[Logbook]]]:
        """Return the log of an attempt, None before the first, and how it is read anew.

        Raises:
            WorkspaceError: There is no such attempt.
        """
        if not 0 <= (attempt or 0) <= found.attempt.number:
            raise WorkspaceError(f"{found.id} has no attempt {attempt}")
        number = attempt or found.attempt.number
        read = partial(read_log, self.tools, state, AttemptId(state.run, found.id, number))
        if not number:
            return None, read
        kept = live.logbooks if (live := self.living.get(state.run)) else {}
        logbook = kept.get((found.id, number)) or await read()
        return kept.setdefault((found.id, number), logbook), read  # or begun by now

    def watch_of(self, state: RunState, found: Worker) -> Watch | None:
        """Return what follows a worker's agent, while it runs."""
        live = self.living.get(state.run)
        return live.watch_of(found.id) if live else None

    async def state(self, run: str) -> RunState:
        """Return a run's state, living or read from its journal."""
        live = self.find(run and await self.name_of(run))
        return live.state if live else await self.read_state(run)

    def viewed(self, live: LiveRun) -> RunView:
        """Return a run of this engine as consoles see it, with what its radar predicts."""
        return run_view(live, self.radars.get(live.run))

    def views(self) -> Views:
        """Return the views of a new observer, who has seen nothing yet."""
        return Views(self._runs, self.radars, self.tools.clock)

    def note_command(self, live: LiveRun, command: str, worker: str) -> None:
        """Write down who gave a command that was accepted."""
        found = find_worker(live.state, worker) if worker else None
        worker = worker if found is None or isinstance(found, c.Refused) else str(found.id)
        at = self.tools.clock.now()
        live.feed(rf.CommandTaken(command=command, worker=worker, by=speaker(), at=at))

    async def read_state(self, run: str) -> RunState:
        """Return a run's state from its journal; the newest run where none is named."""
        name = RunId(await self.name_of(run))
        store = self.tools.store
        stamp = await anyio.to_thread.run_sync(store.stamp, name)
        # Whoever asks about one worker mostly asks about the next: a journal is replayed once.
        if self._read is not None and self._read[:2] == (name, stamp):
            return self._read[2]
        state = await anyio.to_thread.run_sync(replayed, name, store)
        self._read = (name, stamp, state)
        return state


def _began(live: LiveRun) -> float:
    return math.inf if live.state.started_at is None else live.state.started_at


def _meant(state: RunState, name: str) -> Worker:
    found = find_worker(state, name)
    if isinstance(found, c.Refused):
        raise WorkspaceError(found.reason, hint=found.hint)
    return found


def split_worker(run: str, worker: str) -> tuple[str, str]:
    """Return a worker's run and name; the run may stand before the name: `run/step/worker_1`."""
    if run or worker.count("/") < 2:  # noqa: PLR2004  run/step/worker
        return run, worker
    run, _, worker = worker.partition("/")
    return run, worker


def split_run(command: c.Command) -> tuple[str, c.Command]:
    """Return a command's run, and the command without the run in its worker's name."""
    worker = getattr(command, "worker", None)
    if worker is None:
        return command.run, command
    run, short = split_worker(command.run, worker)
    fields: Any = {} if short == worker else {"worker": short}
    return run, replace(command, **fields)
