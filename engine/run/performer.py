"""Perform effects: do what each asks, and report its end as a fact."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from engine.core import effects as e
from engine.core import facts as f
from engine.core.state import Worker
from engine.errors import EngineBug, EngineError, HostLost, whole_of
from engine.host.threads import REPORT
from engine.ids import AttemptId, WorkerId
from engine.limits import Enforcement
from engine.messages.diffs import ChangeDiff
from engine.messages.logs import LogKind
from engine.messages.results import CheckResult
from engine.phases import Phase, StopCause
from engine.proof.tampering import tell
from engine.review.comparing import DiffWanted
from engine.run.stalls import is_stall_question
from engine.site.in_thread import is_in_thread
from engine.site.seam import Site, SpaceAddress, Workplace
from engine.work.activities import Activities, Activity
from engine.work.agent_work import run_agent
from engine.work.briefing import feedback_for, prompt_for, wants_prior_diff
from engine.work.checking import Checking
from engine.work.landing_work import LandingWork
from engine.work.replay import story_before
from engine.work.run_ports import RunPort
from engine.work.tools import Tools
from engine.work.watch import Watch
from engine.work.workplace import address_of, workplace
from engine.work.workshop import BaseClash, Made, Workshop

_AGAIN_S = 2.0
_NOT_AGAIN = e.StartTimer | e.ReleaseWorkspace
"""A timer is no deed; a workspace that cannot be released now is taken away by the next clean."""


class Performer:
    """Performs the effects of one run."""

    def __init__(self, run: RunPort, tools: Tools, activities: Activities) -> None:
        self._run = run
        self._tools = tools
        self._activities = activities
        self._landings = LandingWork(run, tools)

    @property
    def _workshop(self) -> Workshop:
        return self._tools.workshops.of(self._run.state.plan)

    def _site(self, worker: WorkerId) -> Site:
        return self._tools.sites.of(self._run.state, worker)

    def begin(self, effect: e.EntryEffect | e.SmallEffect) -> None:
        """Start performing an effect."""
        if isinstance(effect, e.RevertLanding):
            self._aside(effect, partial(self._landings.undo, effect))
        elif isinstance(effect, e.StopActivity):
            # What is meant is what runs now, not what may have begun before it is this task's turn.
            self._aside(effect, partial(self._stop, effect, self._activities.of(effect.worker)))
        elif isinstance(effect, e.EntryEffect):
            self._activities.begin(effect, self._perform)
        else:
            self._aside(effect, partial(self._say, effect))

    async def _perform(self, activity: Activity) -> None:
        await self._insist(activity, partial(self._do, activity))

    async def _insist(self, activity: Activity, act: Callable[[], Awaitable[None]]) -> None:
        """Do what an effect asks for, again while the storage fails; report any other failure."""
        try:
            await _tried(
                act,
                partial(self._fail, activity.effect),
                partial(self._is_to_be_tried_again, activity),
            )
        finally:
            self._run.troubles.passed(activity)

    async def _is_to_be_tried_again(self, activity: Activity, error: Exception) -> bool:
        """Wait a moment where only the storage kept an effect from being performed."""
        if isinstance(activity.effect, _NOT_AGAIN):
            return False
        trouble = await self._tools.trouble_behind(error)
        if trouble is None:
            return False
        self._run.troubles.met(activity, trouble)
        await self._tools.clock.sleep(_AGAIN_S)
        return True

    def _aside(
        self, effect: e.EntryEffect | e.SmallEffect, act: Callable[[], Awaitable[None]]
    ) -> None:
        tried = partial(_tried, act, partial(self._regret, effect))
        self._activities.aside(effect.worker, tried)

    async def _regret(self, effect: e.EntryEffect | e.SmallEffect, error: Exception) -> None:
        """Report that a small act failed: it ends nobody."""
        why = whole_of(error)
        if isinstance(effect, e.RevertLanding):
            self._run.feed(f.UndoRefused(**self._about(effect), reason=why))
            return
        activity = self._activities.of(effect.worker)
        if activity is not None and activity.watch is not None:
            note = f"{type(effect).__name__} failed: {why}"
            activity.watch.logbook.remark(LogKind.ERROR, note, self._tools.clock.now())

    async def _fail(self, effect: e.EntryEffect, error: Exception) -> None:
        """Report that an effect could not be performed, unless its end is reported."""
        if isinstance(effect, (e.StartAgent, e.StopActivity)):
            w = self._worker(effect)
            if w.attempt.number != effect.attempt or w.phase not in {Phase.RUNNING, Phase.STOPPING}:
                return
            # An agent whose output cannot be followed must not work on behind its own retry.
            attempt = AttemptId(self._run.state.run, w.id, w.attempt.number)
            try:
                await self._site(w.id).end(attempt)
            except (EngineError, OSError) as unended:  # the run goes on: it can be ended by hand
                note = f"plait could not end its remaining processes: {whole_of(unended)}"
                self._run.note(w.id, w.attempt.number, note)
        if isinstance(effect, e.PrepareWorkspace):
            await self._abandon(effect)
        fact = _failure(effect, error, at=self._tools.clock.now())
        if fact is not None:
            self._run.feed(fact)

    async def _do(self, activity: Activity) -> None:
        acts: dict[type[Any], Callable[[Any], Awaitable[None]]] = {
            e.PrepareWorkspace: self._prepare,
            e.Collect: self._collect,
            e.RunCheck: self._check,
            e.PerformLanding: self._landings.land,
            e.StartTimer: self._wait,
            e.ReleaseWorkspace: self._release,
        }
        effect = activity.effect
        if isinstance(effect, e.StartAgent):
            await run_agent(self._tools, self._run, activity, adopt=False)
        else:
            await acts[type(effect)](effect)

    def _worker(self, effect: e.EntryEffect | e.SmallEffect) -> Worker:
        return self._run.state.workers[effect.worker]

    def _attempt(self, effect: e.EntryEffect) -> AttemptId:
        return AttemptId(self._run.state.run, effect.worker, effect.attempt)

    def _about(self, effect: e.EntryEffect | e.SmallEffect) -> f.About:
        return effect.about(self._tools.clock.now())

    async def _prepare(self, effect: e.PrepareWorkspace) -> None:
        await self._tools.served.stop(self._run.state.run, effect.worker)  # it shows earlier work
        made = await self._workshop.prepare(self._run.state, effect)
        if isinstance(made, BaseClash):
            self._run.feed(f.BaseConflicted(**self._about(effect), paths=made.paths))
            return
        # A resumed workspace has been set up already.
        if made.address.path != self._worker(effect).begun.workspace:
            error = await self._set_up(effect, made)
            if error is not None:
                await self._abandon(effect)
                self._run.feed(f.PrepareFailed(**self._about(effect), error=error))
                return
        for note in made.notes:
            self._run.note(effect.worker, effect.attempt, note)
        w = self._worker(effect)
        story = await story_before(self._tools, self._run.state, w)
        feedback = feedback_for(w, await self._prior_diff(effect), story)
        await self._tools.logins.keep_fresh(self._run.state.agent_of(effect.worker))
        # Before `WorkspaceReady`, which starts the agent: its changes count from here.
        await self._tools.proof.begin(self._run.state, self._attempt(effect))
        self._run.feed(
            f.WorkspaceReady(
                **self._about(effect),
                workspace=made.address.path,
                made=made.address.attempt.number,
                site=made.address.site,
                prompt=prompt_for(self._run.state, effect.worker),
                feedback=feedback,
                branch=made.branch,
                base=made.base,
                holds=made.holds,
                enforcement=await self._enforcement(effect, made.address),
            )
        )

    async def _abandon(self, effect: e.EntryEffect) -> None:
        """Remove a workspace that no agent has reached: nobody would find it again."""
        if self._worker(effect).history.ran < effect.attempt:
            with suppress(EngineError, OSError):
                await self._workshop.abandon(self._run.state, effect)

    async def _set_up(self, effect: e.PrepareWorkspace, made: Made) -> str | None:
        """Run the manifest's setup, on top of what it made earlier of the user's own files."""
        if self._run.state.plan.workspace.setup is None:
            return None
        at = self._workplace(effect, made.address)
        site = self._tools.sites.at(self._run.state, made.address)
        await site.sow(at, is_users=made.is_users)
        error: str | None = "it was interrupted"
        try:
            error = await Checking(self._run, self._tools, effect).setup(made.address)
        finally:
            # Also when cancelled: otherwise nobody else could ever make this seed.
            with anyio.CancelScope(shield=True):
                await site.reap(at, is_well=error is None)
        return error

    def _workplace(self, effect: e.PrepareWorkspace, address: SpaceAddress) -> Workplace:
        return workplace(self._run.state, effect.worker, number=effect.attempt, address=address)

    async def _enforcement(
        self, effect: e.PrepareWorkspace, address: SpaceAddress
    ) -> tuple[Enforcement, ...]:
        if is_in_thread(self._run.state, effect.worker):
            return REPORT
        site = self._tools.sites.at(self._run.state, address)
        return await site.report(self._workplace(effect, address))

    async def _prior_diff(self, effect: e.PrepareWorkspace) -> ChangeDiff | None:
        w = self._worker(effect)
        if not wants_prior_diff(w) or w.next.previous is None:
            return None
        with suppress(EngineError):
            wanted = DiffWanted(attempt=w.next.previous)
            return await self._workshop.diff(self._run.state, w, wanted)
        return None

    async def _collect(self, effect: e.Collect) -> None:
        attempt = self._attempt(effect)
        found = await self._tools.proof.end(self._run, attempt)
        tell(self._run, found, attempt, at=self._tools.clock.now())
        kept = await self._workshop.collect(self._run.state, effect)
        self._run.feed(f.Collected(**self._about(effect), change=kept.change, error=kept.error))

    async def _check(self, effect: e.RunCheck) -> None:
        w = self._worker(effect)
        tree = w.change.tree if w.change else None
        checker = Checking(self._run, self._tools, effect)
        if w.begun.holds is not None:
            result = await self._check_whole(w, checker)
        else:
            result = await checker.check(tree or "")
        fact = f.CheckPassed if result.passed else f.CheckFailed
        self._run.feed(fact(**self._about(effect), check=result))

    async def _check_whole(self, w: Worker, checker: Checking) -> CheckResult:
        """Run the check on all files of a change whose worktree holds only some of them."""
        async with self._tools.landing:  # it needs the tree in which landings are checked
            found = await self._workshop.landings.check_again(
                self._run.state, w, checker, is_own=True
            )
        if isinstance(found, CheckResult):
            return found
        tree = w.change.tree if w.change else None
        return CheckResult(command=checker.command, passed=False, tree=tree, summary=found.reason)

    async def _wait(self, effect: e.StartTimer) -> None:
        if effect.is_for_login:
            w = self._worker(effect)
            agent = self._run.state.agent_of(w.id)
            await self._tools.logins.wait_renewed(agent, since=w.begun.at or 0.0)
        else:
            await self._tools.clock.sleep_until(effect.until)
        if self._worker(effect).phase is Phase.BACKING_OFF:  # else a human was quicker
            self._run.feed(f.BackoffElapsed(**self._about(effect)))

    async def _release(self, effect: e.ReleaseWorkspace) -> None:
        w = self._worker(effect)
        await self._end_served(w)
        await self._site(w.id).free_ports(self._run.state.run, w.id)
        with suppress(EngineError, OSError):
            has_teardown = self._run.state.plan.workspace.teardown is not None
            address = address_of(self._run.state, w)
            if has_teardown and await self._tools.sites.is_there(self._run.state, address):
                await Checking(self._run, self._tools, effect).teardown()
            await self._workshop.release(self._run.state, effect)

    async def release_unsettled(self, activity: Activity) -> None:
        """Release a workspace that nothing works in, whatever its work still waits for."""
        w = self._worker(activity.effect)
        effect = e.ReleaseWorkspace(**w.who)
        if not w.phase.holds_slot and w.phase is not Phase.LANDING:
            await self._end_served(w)
            with suppress(EngineError, OSError):
                await self._workshop.release_unsettled(self._run.state, effect)

    async def _end_served(self, w: Worker) -> None:
        """End the program that is served from a workspace which is about to go."""
        if w.begun.workspace:
            served, run = self._tools.served, self._run.state.run
            await served.stop(run, w.id, workspace=w.begun.workspace)

    async def _stop(self, effect: e.StopActivity, activity: Activity | None) -> None:
        """End what runs for a worker; an agent reports its own end, the rest is reported here."""
        w = self._worker(effect)
        if w.attempt.number != effect.attempt:
            return
        if w.phase is not Phase.STOPPING:
            if activity is not None:
                await activity.end()
            return
        # An agent ran and is not collected yet: let it report its own end, to keep its work.
        if w.history.ran == w.attempt.number and w.history.collected < w.attempt.number:
            await self._stop_agent(effect, activity)
            return
        if activity is not None:
            await activity.end()
        await self._abandon(effect)  # only now: it may have been made whole, too late to be told
        now = self._worker(effect)
        # Who is told to stop and then to stop at once is stopped twice, and ends once.
        if now.phase is Phase.STOPPING and now.attempt.number == effect.attempt:
            self._run.feed(f.ActivityEnded(**self._about(effect)))

    async def _stop_agent(self, effect: e.StopActivity, activity: Activity | None) -> None:
        if activity is None:
            # After a crash nobody follows the agent yet: adopt it, then stop it.
            activity = self._activities.begin(effect, self._adopt)
        await activity.wait_watched()
        if activity.watch is not None:
            with suppress(HostLost):
                await activity.watch.stop(effect.cause, is_kill=effect.is_kill)

    async def _adopt(self, activity: Activity) -> None:
        adopt = partial(run_agent, self._tools, self._run, activity, adopt=True)
        await self._insist(activity, adopt)

    async def _say(self, effect: e.SmallEffect) -> None:
        """Perform a small act on an agent; do nothing if the agent has gone."""
        activity = self._activities.of(effect.worker)
        watch = activity.watch if activity else None
        if watch is None or watch.attempt.number != effect.attempt:
            self._keep_words(effect)
            return
        # Words wait for the start; all else the watch catches up on by itself.
        if not watch.is_started and not isinstance(effect, e.SendSteer):
            return
        with suppress(HostLost):
            await self._say_to(effect, watch)
            match effect:
                case e.SendAnswer() if not is_stall_question(effect.question):
                    await watch.answer(effect.question, effect.answer)
                case e.SendSteer():
                    await watch.steer(effect.text)
                case e.SendInterrupt():
                    await watch.interrupt()
                case _:
                    return

    def _keep_words(self, effect: e.SmallEffect) -> None:
        if isinstance(effect, e.SendSteer):
            # Told as unheard, so that the next attempt's prompt carries the words.
            self._run.feed(f.SteerUnheard(**self._about(effect), text=effect.text))

    async def _say_to(self, effect: e.SmallEffect, watch: Watch) -> None:
        host, attempt = watch.host, watch.attempt
        match effect:
            case e.SendAnswer() if is_stall_question(effect.question):
                if effect.answer == "stop":
                    self._run.feed(f.StopRequested(**self._about(effect), cause=StopCause.STALLED))
            case e.HoldClocks():
                await host.hold_clock(attempt, held=effect.is_held)
            case e.FreezeAttempt():
                await host.freeze(attempt)
            case e.ThawAttempt():
                await host.thaw(attempt)
            case e.ChangeLimits():
                await watch.set_limits(effect.limits)
            case _:
                return


async def _tried(
    act: Callable[[], Awaitable[None]],
    failed: Callable[[Exception], Awaitable[None]],
    is_passing: Callable[[Exception], Awaitable[bool]] | None = None,
) -> None:
    """Do it; report any failure but a bug of ours.

    What `is_passing` says of an error decides if it is done once more.
    """
    while True:
        try:
            return await act()
        except EngineBug:
            raise
        except Exception as error:  # noqa: BLE001  the one place: no failure ends an engine
            if is_passing is None or not await is_passing(error):
                return await failed(error)


def _failure(effect: e.EntryEffect, error: Exception, *, at: float) -> f.Fact | None:
    """Return the fact that an effect could not be performed; None if nobody waits for it."""
    about = effect.about(at)
    why = whole_of(error)
    match effect:
        case e.PrepareWorkspace():
            return f.PrepareFailed(**about, error=why)
        case e.StartAgent() | e.StopActivity():
            return f.AttemptEnded(**about, ok=False, error=why)
        case e.Collect():
            return f.Collected(**about, error=f"the work could not be collected: {why}")
        case e.RunCheck():
            result = CheckResult(command="", passed=False, summary=f"could not be run: {why}")
            return f.CheckFailed(**about, check=result)
        case e.PerformLanding():
            return f.LandRefused(**about, reason=why)
        case e.StartTimer():
            return f.BackoffElapsed(**about)
        case e.ReleaseWorkspace():
            return None
