"""One run that goes on: facts come in, are journaled and thought about, and effects begin."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio
import anyio.to_thread

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance, is_idle
from engine.core.entry import current_effects
from engine.core.report import report
from engine.core.state import RunState, Worker
from engine.errors import HostLost, StoreError, UnstorableValue, whole_of
from engine.ids import AttemptId, RunId, WorkerId
from engine.messages.events import (
    EgressDecided,
    HistoryDelayed,
    LatestWins,
    Told,
    TroubleSeen,
)
from engine.messages.logs import LogKind
from engine.messages.results import Badge, HistoryDelay, LoginView, RunReport, Trouble
from engine.messages.served import Served
from engine.patterns.background import Background, contained
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice
from engine.run.journal import Journal
from engine.run.performer import Performer
from engine.run.stalls import stall_facts
from engine.site.egress import EgressLog
from engine.store.codec import to_json
from engine.work.activities import Activities
from engine.work.ledger import logins_of
from engine.work.logbook import Logbook, Remark
from engine.work.remarks import Remarks
from engine.work.tools import Tools
from engine.work.trouble import Troubles
from engine.work.watch import Watch
from engine.work.workplace import address_of

_TICK_S = 1.0
_TROUBLE_S = 1.0


class LiveRun:
    """A run of this engine.

    Attributes:
        troubles: What keeps it from going on at the moment: the journal, or an effect of a worker.
        on_change: Called after every fact, for those who share slots between runs.
    """

    def __init__(
        self, journal: Journal, state: RunState, *, tools: Tools, tasks: Background
    ) -> None:
        self._journal = journal
        self._state = state
        self._tools = tools
        self._tasks = tasks
        self._activities = Activities(tasks, self.note_failure)
        self._performer = Performer(self, tools, self._activities)
        self._backlog: deque[tuple[f.Fact, str]] = deque()
        self._is_draining = False
        self._seq = 0
        self._is_closed = False
        self._held: dict[str, float] = {}
        tools.ledger.observers.append(self.look_at_logins)
        self.troubles = Troubles(self._tell_trouble)
        self.history: HistoryDelay | None = None
        self._unwritten: StoreError | None = None
        self._egress: dict[AttemptId, EgressLog] = {}
        self.logbooks: dict[tuple[WorkerId, int], Logbook] = {}
        self._remarks = Remarks(partial(tools.store.agent, state.run), self._activities.aside)
        self._early: dict[tuple[WorkerId, int], list[Remark]] = {}
        self._found = {
            (w.id, w.history.ran)
            for w in state.workers.values()
            if w.history.ran > w.history.collected
        }
        self.on_change: Callable[[], None] = lambda: None

    @property
    def run(self) -> RunId:
        """Its id."""
        return self._state.run

    @property
    def state(self) -> RunState:
        """Return the state of the run as it stands now."""
        return self._state

    @property
    def seq(self) -> int:
        """The number of its newest journaled event."""
        return self._seq

    def begin(self, share: int) -> None:
        """Start a new run with a share of the engine's slots."""
        self._tasks.start_soon(self._tick, failed=partial(self.met, "clock"))
        self._set_share(share)
        self.look_at_logins()
        self._feed_begin()

    def _feed_begin(self) -> None:
        rules = self._tools.answers.read()
        self.feed(rf.RunBegan(at=self._tools.clock.now(), rules=rules))

    def _set_share(self, share: int) -> None:
        is_share = share != self._state.wanted_cap
        self.feed(rf.CapSet(cap=share, is_share=is_share, at=self._tools.clock.now()))

    def go_on(self, told: Sequence[Told], share: int, *, is_told: bool = False) -> None:
        """Resume a run that another engine left: only what each worker stands at is done again.

        Args:
            told: The events of its journal.
            share: Its slots in this engine; what it had in the last one does not count.
            is_told: Observers of this engine have had them already.
        """
        self._seq = told[-1].seq or 0 if told else 0
        if not is_told:
            self._tools.bus.tell(told)
        self._tasks.start_soon(self._tick, failed=partial(self.met, "clock"))
        self.look_at_logins()
        if self._state.started_at is None:
            self._feed_begin()
        for effect in current_effects(self._state):
            self._performer.begin(effect)
        self._set_share(share)

    def feed(self, fact: f.Fact) -> None:
        """Tell the core what happened: journaled first, then acted upon.

        While the journal cannot be written, facts wait in order and nothing is done. One that comes
        while the engine closes is found again by the next engine.

        Raises:
            UnstorableValue: The fact cannot be written at any time; it changes nothing.
        """
        if self._is_closed:
            return
        self._backlog.append((fact, to_json(fact)))
        if not self._is_draining and self._unwritten is None:
            self._drain()

    def _drain(self) -> None:
        self._is_draining = True
        lost: UnstorableValue | None = None
        try:
            while self._backlog:
                try:
                    self._take(*self._backlog[0])
                except UnstorableValue as error:  # an event of it: the facts behind it do not wait
                    lost = error
                self._backlog.popleft()
        except StoreError as error:
            self._unwritten = error
            self._tasks.start_soon(self._try_again, failed=partial(self.met, "journal"))
        else:
            self.troubles.passed(self)
        finally:
            self._is_draining = False
        if lost is not None:
            raise lost

    async def _try_again(self) -> None:
        """Say what keeps the journal from being written, wait a moment, go on in order."""
        error = self._unwritten
        if error is not None:
            await self._show(self, error)
        await self._tools.clock.sleep(_TROUBLE_S)
        self._unwritten = None
        if not self._is_closed:
            with suppress(UnstorableValue):  # whoever fed it is gone
                self._drain()

    async def _show(self, who: object, error: Exception) -> None:
        """Show why something of the run itself cannot go on."""
        trouble = await self._tools.trouble_behind(error)
        if trouble is None:
            self.met(who, error)
        else:
            self.troubles.met(who, trouble)

    def met(self, who: object, error: Exception) -> None:
        """Show that something of the run itself failed; nothing else ends by that."""
        help_, now = getattr(error, "hint", ""), self._tools.clock.now()
        what = str(error) or type(error).__name__
        self.troubles.met(who, Trouble(what=what, help=help_, since=now))

    def note_failure(self, worker: WorkerId, error: Exception) -> None:
        """Show in a worker's log that something failed for it; its attempt goes on."""
        said = f"plait could not do something for this worker: {whole_of(error)}"
        self.note(worker, self._state.workers[worker].attempt.number, said)

    def _tell_trouble(self, trouble: Trouble | None) -> None:
        self.mention(TroubleSeen(trouble=trouble))
        self._activities.changed()

    def tell_history(self, delay: HistoryDelay | None) -> None:
        """Tell observers that the shared history is delayed, or is not any more."""
        self.history = delay
        self.mention(HistoryDelayed(delay=delay))

    @property
    def served(self) -> Mapping[WorkerId, Served]:
        """Return the programs of its workers that are served."""
        return self._tools.served.of(self._state.run)

    @property
    def is_unwritable(self) -> bool:
        """Return True while nothing can be journaled; what is fed meanwhile waits in order."""
        return self._unwritten is not None

    @property
    def is_stopping(self) -> bool:
        """Return True if somebody wants all of it to end, journaled or not."""
        wanted = any(isinstance(fact, rf.RunStopRequested) for fact, _ in self._backlog)
        return wanted or self._state.stop is not None

    def end_agents(self, workers: Iterable[WorkerId]) -> None:
        """End the agents of workers at once, before that can be written down."""
        for worker in workers:
            activity = self._activities.of(worker)
            if activity is not None and activity.watch is not None:
                site = self._tools.sites.of(self._state, worker)
                failed = partial(self.note_failure, worker)
                self._tasks.start_soon(site.stop, activity.watch.attempt, failed=failed)

    def watch_of(self, worker: WorkerId) -> Watch | None:
        """Return what follows a worker's agent, while it runs."""
        activity = self._activities.of(worker)
        return activity.watch if activity is not None else None

    def _take(self, fact: f.Fact, written: str) -> None:
        state, effects = advance(self._state, fact)
        events = [effect.event for effect in effects if isinstance(effect, e.Publish)]
        at = fact.at or self._tools.clock.now()
        if state.rules is not self._state.rules and not isinstance(fact, rf.RunBegan):
            self._tools.answers.follow(self._state.rules, state.rules)
        told = self._journal.append(fact, events, at=at, written=written)
        before, self._state = self._state, state
        self._activities.end_timers(self._is_waited_for)
        if told:
            self._seq = told[-1].seq or self._seq
        for effect in effects:
            if not isinstance(effect, e.Publish):
                self._performer.begin(effect)
        self._tools.bus.tell(told)
        self._activities.changed()
        self.on_change()
        self._tell_of_refusals(before)

    def _is_waited_for(self, timer: e.StartTimer) -> bool:
        w = self._state.workers[timer.worker]
        if w.phase is not Phase.BACKING_OFF or timer.is_for_login != _wants_login(w):
            return False
        return timer.is_for_login or w.next.not_before == timer.until

    def mention(self, event: LatestWins) -> None:
        """Tell observers something of which only the newest counts."""
        self._tools.bus.mention(self.run, event, at=self._tools.clock.now(), after=self._seq)

    def spoke_at(self, worker: WorkerId) -> float | None:
        """Return when a worker's attempt wrote last."""
        logbook = self.logbooks.get((worker, self._state.workers[worker].attempt.number))
        return logbook.last_output_at if logbook else None

    def note(self, worker: WorkerId, attempt: int, text: str) -> None:
        """Write a remark of ours into an attempt's log."""
        now = self._tools.clock.now()
        logbook = self.logbooks.get((worker, attempt))
        if logbook is not None:
            logbook.write(LogKind.NOTE, text, now)
        else:  # it is being prepared: its log begins with this
            self._early.setdefault((worker, attempt), []).append(Remark(now, LogKind.NOTE, text))
        self._remarks.keep(worker, attempt, Remark(now, LogKind.NOTE, text))

    async def recall(self, logbook: Logbook, worker: WorkerId) -> None:
        """Give a log back what an engine before this one remarked, if the attempt was its."""
        if (worker, logbook.attempt) in self._found:
            logbook.recall(await self._remarks.found(worker, logbook.attempt))

    def new_logbook(self, worker: WorkerId, attempt: int) -> Logbook:
        """A fresh log for an attempt that is being watched; only the newest few are kept."""
        logbook = Logbook(attempt, on_remark=partial(self._remarks.keep, worker, attempt))
        self.logbooks[worker, attempt] = logbook
        for remark in self._early.pop((worker, attempt), ()):
            logbook.write(remark.kind, remark.text, remark.at)
        for old in range(1, attempt - 1):
            self.logbooks.pop((worker, old), None)
        return logbook

    @property
    def is_at_rest(self) -> bool:
        """Nothing is under way but what waits for a human."""
        awaited = sum(
            bool(w.attempt.questions) or _is_frozen(w) or _wants_login(w)
            for w in self._state.workers.values()
        )
        return (
            not self._backlog
            and self._activities.under_way <= awaited
            and (is_idle(self._state) or awaited > 0 or self._state.is_paused)
        )

    @property
    def may_be_left(self) -> bool:
        """Nothing is under way, or it was stopped and that cannot be written down."""
        return self.is_at_rest or (self.is_stopping and self.troubles.told is not None)

    async def wait_rest(self) -> None:
        """Return when nothing is under way but what waits for a human."""
        while not self.is_at_rest:
            await self._activities.wait_changed()

    async def wait_nothing(self) -> None:
        """Return when nothing at all is under way, not even what waits for an answer."""
        while self._backlog or self._activities.under_way:
            await self._activities.wait_changed()

    def move_away(self, worker: WorkerId) -> bool:
        """End a worker's agent as if its host were lost: its work is collected, and it goes on.

        Return False where it has none, or one that ends already.
        """
        activity = self._activities.of(worker)
        watch = activity.watch if activity else None
        if watch is None or watch.stop_cause is not None:
            return False
        self._activities.aside(worker, partial(_leave, watch))
        return True

    async def wait_phase(self, worker: WorkerId, is_so: Callable[[Phase], bool]) -> Worker:
        """A worker, as soon as its phase is one of those."""
        while not is_so(self._state.workers[worker].phase):
            await self._activities.wait_changed()
        return self._state.workers[worker]

    async def release(self, worker: WorkerId) -> bool:
        """Give a worker's workspace back, as far as that is provably safe; whether it is gone.

        Waits until nothing works in it.
        """
        w = await self.wait_phase(worker, lambda p: not p.holds_slot and p is not Phase.LANDING)
        effect = e.ReleaseWorkspace(worker=worker, attempt=w.attempt.number)
        await self._activities.begin(effect, self._performer.release_unsettled).done.wait()
        return not await self._tools.sites.is_there(self._state, address_of(self._state, w))

    async def wait_end(self) -> RunReport:
        """The report, once every worker has settled or a human is waited for."""
        while not is_idle(self._state):
            await self._activities.wait_changed()
        return report(self._state)

    async def know_logins(self) -> None:
        """Learn what other engines know of the logins of this run's agents."""
        await self._tools.ledger.share(self.logins().values())
        self.look_at_logins()

    def logins(self) -> dict[str, AgentChoice]:
        """The logins of this run's agents, and by which budget of the day each is held."""
        state = self._state
        if all(w.agent is None for w in state.workers.values()):  # nobody was given another one
            return logins_of(state.plan.agents)
        agents = [state.agent_of(worker) for worker in state.workers]
        rule = state.plan.review.assist
        agents += [rule.agent] if rule else []
        return logins_of(agent for agent in agents if agent is not None)

    def login_views(self) -> tuple[LoginView, ...]:
        """Return today's use of this run's logins, over all runs, and which of them are held."""
        known = self.logins()
        names: dict[str, dict[str, None]] = {login: {} for login in known}
        for worker in self._state.workers:
            if (agent := self._state.agent_of(worker)) is not None:
                names[agent.login][agent.name] = None
        if (rule := self._state.plan.review.assist) is not None:
            names[rule.agent.login][rule.agent.name] = None
        return tuple(
            self._tools.ledger.view(choice, tuple(names[login])) for login, choice in known.items()
        )

    def look_at_logins(self) -> None:
        """Let nobody begin whose login is refused or has spent its day, whoever found that out."""
        for login, choice in self.logins().items():
            hold = self._tools.ledger.hold(choice)
            if hold is None or self._held.get(login) == hold.until:
                continue  # a human who lifted it is not held by the same again
            self._held[login] = hold.until
            self.feed(
                rf.LoginHeld(
                    login=login,
                    until=hold.until,
                    cause=hold.cause,
                    reason=hold.reason,
                    at=self._tools.clock.now(),
                )
            )

    def _tell_of_refusals(self, before: RunState) -> None:
        """Tell every run and engine that works by a login what one of our agents met."""
        if self._state.holds is before.holds:
            return
        logins = self.logins()
        for login, hold in self._state.holds.items():
            if hold.cause is None and before.holds.get(login) != hold and login in logins:
                self._held[login] = hold.until
                self._tools.ledger.refuse(logins[login], hold.until)

    async def _stop_for_day(self) -> None:
        """End agents whose login has spent its day, though it was others that spent it."""
        for login, choice in self.logins().items():
            hit = self._tools.ledger.hit(choice)
            for worker in self._state.workers if hit is not None else ():
                activity = self._activities.of(worker)
                agent = self._state.agent_of(worker)
                watch = activity.watch if activity is not None else None
                if hit and watch and agent and agent.login == login:
                    with suppress(HostLost):  # it has gone already
                        await watch.stop_for_day(hit)

    async def _tick(self) -> None:
        """Look at what no event announces: standing still, and the run's own time limit."""
        while not self._is_closed:
            await self._tools.clock.sleep(_TICK_S)
            if self._is_closed:
                return
            self._tools.clock.has_just_woken()  # looked at often, it knows when that was
            if not is_idle(self._state):
                await self._look(self.know_logins)
                await self._look(self._stop_for_day)
            self._look_for_stalls()
            await self._look(self._end_what_is_done)
            await self._look(self._look_outside)
            self._look_at_the_clock()

    async def _look(self, look: Callable[[], Awaitable[None]]) -> None:
        """Look once; show what is in the way, and try again at the next tick."""
        failures: list[Exception] = []
        await contained(look, failures.append)
        if failures:
            await self._show(look, failures[0])
        else:
            self.troubles.passed(look)

    def _look_for_stalls(self) -> None:
        stall_s = self._state.plan.runtime.stall_s
        for worker in list(self._state.workers.values()):
            activity = self._activities.of(worker.id)
            if stall_s and activity is not None and activity.watch is not None:
                for fact in stall_facts(worker, activity.watch, stall_s=stall_s):
                    self.feed(fact)

    async def _end_what_is_done(self) -> None:
        for worker in list(self._state.workers):
            activity = self._activities.of(worker)
            if activity is not None and activity.watch is not None:
                await activity.watch.end_what_is_done()

    async def _look_outside(self) -> None:
        """Tell of connections that agents under an allow-list tried."""
        if self._state.plan.runtime.holes.network.mode != "allow":
            return
        for worker in list(self._state.workers.values()):
            activity = self._activities.of(worker.id)
            if activity is None or activity.watch is None:
                continue
            attempt = activity.watch.attempt
            path = self._tools.layout.attempt(attempt) / "egress.log"
            log = self._egress.setdefault(attempt, EgressLog(path))
            for host, is_allowed in await anyio.to_thread.run_sync(log.news):
                self.mention(
                    EgressDecided(
                        worker=str(worker.id),
                        attempt=attempt.number,
                        host=host,
                        is_allowed=is_allowed,
                    )
                )
                word = "reached" if is_allowed else "was refused"
                now = self._tools.clock.now()
                activity.watch.logbook.remark(LogKind.NOTE, f"{word} {host}", now, is_once=True)

    def _look_at_the_clock(self) -> None:
        state = self._state
        limit, began, now = (
            state.plan.runtime.run_timeout_s,
            state.timed_since,
            self._tools.clock.now(),
        )
        if limit is None or began is None or state.stop is not None or is_idle(state):
            return
        if now - began > limit:
            self.feed(rf.RunStopRequested(cause=StopCause.TIMEOUT, at=now))

    def close(self) -> None:
        """Give the journal back; nothing more can be fed."""
        if not self._is_closed:
            self._tools.ledger.observers.remove(self.look_at_logins)
        self._is_closed = True
        self._journal.close()


def _is_frozen(w: Worker) -> bool:
    return Badge.PAUSED in w.badges and w.phase is Phase.RUNNING


def _wants_login(w: Worker) -> bool:
    return Badge.NEEDS_LOGIN in w.badges and w.phase is Phase.BACKING_OFF


async def _leave(watch: Watch) -> None:
    with suppress(HostLost):  # it has gone already
        await watch.stop(StopCause.HOST_LOST, is_kill=False)
