"""The core as a machine that Hypothesis drives: any plan, any order of the world, any human.

Where the simulator tells long stories by seed, this one searches for short ones and shrinks them.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import Phase as Phases
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance, is_idle
from engine.core.entry import current_effects
from engine.core.invariants import check_invariants
from engine.core.outcome import candidates, must_land_first
from engine.core.report import report
from engine.core.rules import RULES, dispatch, follow_upstream
from engine.core.state import RunState, Worker, initial_state
from engine.errors import EngineBug
from engine.ids import RunId, WorkerId
from engine.limits import Usage
from engine.messages.asked import Question
from engine.messages.events import RunFinished, RunStarted, RunWaiting
from engine.messages.results import Change, CheckResult, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import Plan, PlannedStep, RetryMode, RetryRule
from engine.policies import ChooseBy, MergeMode, Policy, PolicyKind
from tests.support.plans import a_plan, a_step

ENTRY = e.EntryEffect
RETRIABLE = {
    Phase.REVIEWING,
    Phase.CONFLICTED,
    Phase.BACKING_OFF,
    Phase.FAILED,
    Phase.CANCELLED,
    Phase.DISCARDED,
    Phase.SKIPPED,
    Phase.FINISHED,
}
CAUSES = [None, None, StopCause.MEMORY, StopCause.KEEPER_LOST, StopCause.SHUTDOWN, StopCause.BUDGET]


@st.composite
def steps(draw: st.DrawFn, name: str, known: list[str]) -> PlannedStep:
    workers = draw(st.integers(1, 3))
    return a_step(
        name,
        workers,
        dependencies=tuple(draw(st.lists(st.sampled_from(known), unique=True))) if known else (),
        policy=Policy(draw(st.sampled_from(PolicyKind)), draw(st.integers(1, workers))),
        merge=draw(st.sampled_from(MergeMode)),
        choose=draw(st.sampled_from(ChooseBy)),
        retry=RetryRule(attempts=draw(st.integers(1, 2)), delay_s=1.0),
        check=draw(st.sampled_from([None, "test"])),
    )


def _ends(w: Worker, about: f.About) -> list[f.Fact]:
    """Return the ends of an agent: by itself, by a limit, without its keeper or its vendor."""
    usage = Usage(usd=0.25 * w.attempt.number, input_tokens=w.attempt.number)
    ended = partial(f.AttemptEnded, **about, usage=usage)
    well = [ended(ok=True), ended(ok=True, needs_proof=True)]
    badly = [ended(ok=False, cause=cause) for cause in CAUSES]
    return [*well, *badly, ended(ok=False, retry_at=about["at"] + 60)]


def _stops(w: Worker, about: f.About) -> list[f.Fact]:
    """An agent that is stopped may still end in any way; the rest just ends."""
    is_agent = w.history.ran == w.attempt.number and w.history.collected < w.attempt.number
    return _ends(w, about) if is_agent else [f.ActivityEnded(**about)]


def _prepares(_: Worker, about: f.About) -> list[f.Fact]:
    return [
        f.WorkspaceReady(**about, workspace="/w", prompt="p"),
        f.PrepareFailed(**about, error="x"),
        f.BaseConflicted(**about, paths=("x",)),
    ]


def _collects(_: Worker, about: f.About) -> list[f.Fact]:
    change = Change(head="c", base="b")
    found = [f.Collected(**about, change=change), f.Collected(**about)]
    return [*found, f.Collected(**about, error="x")]


def _checks(_: Worker, about: f.About) -> list[f.Fact]:
    return [f.CheckPassed(**about, check=GREEN), f.CheckFailed(**about, check=RED)]


def _lands(_: Worker, about: f.About) -> list[f.Fact]:
    return [
        f.Landed(**about, target="main", old="1", new="2"),
        f.ConflictsFound(**about, paths=("x",)),
        f.LandRefused(**about, reason="dirty"),
        f.CheckFailed(**about, check=RED),
    ]


GREEN = CheckResult(command="test", passed=True)
RED = CheckResult(command="test", passed=False)
ANSWERS: dict[type[ENTRY], Callable[[Worker, f.About], list[f.Fact]]] = {
    e.PrepareWorkspace: _prepares,
    e.StartAgent: _ends,
    e.StopActivity: _stops,
    e.Collect: _collects,
    e.RunCheck: _checks,
    e.PerformLanding: _lands,
    e.StartTimer: lambda _, about: [f.BackoffElapsed(**about)],
}
"""The possible answers of the world to each effect."""


class Core(RuleBasedStateMachine):
    """One run; its world answers the effects that are pending, in any order."""

    state: RunState

    @initialize(data=st.data(), cap=st.integers(1, 3), auto=st.booleans())
    def begin(self, data: st.DataObject, cap: int, auto: bool) -> None:  # noqa: FBT001  drawn
        names: list[str] = []
        planned = []
        for n in range(data.draw(st.integers(1, 3))):
            planned.append(data.draw(steps(f"s{n}", list(names))))
            names.append(f"s{n}")
        self.start(a_plan(*planned, max_concurrent_workers=cap, auto_merge=auto))

    def start(self, plan: Plan) -> None:
        self.state = initial_state(RunId("m"), plan)
        self.journal: list[f.Fact] = []
        self.pending: dict[WorkerId, ENTRY] = {}
        self.by_hand: set[WorkerId] = set()
        self.spent: dict[WorkerId, list[Usage]] = {}
        self.at = 1_000.0
        self.has_told = False
        self.feed(rf.CapSet(cap=plan.runtime.max_concurrent_workers, at=self.at))
        self.feed(rf.RunBegan(at=self.at))

    def feed(self, fact: f.Fact) -> None:
        before = self.state
        self.state, effects = advance(before, fact)
        self.journal.append(fact)
        check_invariants(before, self.state)
        self.check_retries(before, fact)
        if isinstance(fact, f.AttemptEnded) and self.state.dropped == before.dropped:
            self.spent.setdefault(fact.worker, []).append(fact.usage or Usage())
        told = [effect.event for effect in effects if isinstance(effect, e.Publish)]
        assert self.has_told or not told or isinstance(told[0], RunStarted), "it starts with that"
        self.has_told = self.has_told or bool(told)
        ends = [event for event in told if isinstance(event, (RunWaiting, RunFinished))]
        assert len(ends) <= 1
        assert not ends or told[-1] is ends[0], "the end of a run is told last"
        for effect in effects:
            if isinstance(effect, ENTRY):
                self.take(effect)

    def check_retries(self, before: RunState, fact: f.Fact) -> None:
        """A worker that a human retries ends by a human or by itself, and restarts no other."""
        for worker in sorted(self.by_hand):
            w = self.state.workers[worker]
            cause = w.attempt.stop.cause if w.attempt.stop else w.cause
            if w.phase.is_settled or w.phase is Phase.REVIEWING:
                self.by_hand.discard(worker)
            assert cause is not StopCause.FAIL_FAST, "a sibling's failure stopped a human's retry"
        if isinstance(fact, f.RetryRequested):
            for old in before.workers_of(fact.worker.step):
                if old.id != fact.worker and old.cause is StopCause.FAIL_FAST:
                    assert self.state.workers[old.id].phase is old.phase, "it was not named"

    def take(self, effect: ENTRY) -> None:
        is_over = isinstance(effect, e.ReleaseWorkspace) or (
            isinstance(effect, e.StopActivity)
            and self.state.workers[effect.worker].phase is not Phase.STOPPING
        )
        if is_over:
            self.pending.pop(effect.worker, None)
        else:
            self.pending[effect.worker] = effect

    def some(self, data: st.DataObject, *phases: Phase) -> Worker | None:
        found = [w for w in self.state.workers.values() if w.phase in phases]
        return data.draw(st.sampled_from(sorted(found, key=lambda w: w.id))) if found else None

    @staticmethod
    def about(w: Worker) -> f.About:
        return w.about(0.0)

    # ---------------------------------------------------------------- the world

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(sorted(self.pending)))
        effect = self.pending.pop(worker)
        w = self.state.workers[worker]
        if isinstance(effect, e.StartTimer):
            self.at = max(self.at, effect.until)
        about = effect.about(self.at)
        self.feed(data.draw(st.sampled_from(ANSWERS[type(effect)](w, about))))

    @precondition(lambda self: len(self.journal) > 3)
    @rule(data=st.data())
    def a_late_fact_comes(self, data: st.DataObject) -> None:
        """One of an attempt that is over: whatever it says, nobody moves."""
        old = [
            fact
            for fact in self.journal
            if isinstance(fact, f.WorkerFact)
            and fact.attempt < self.state.workers[fact.worker].attempt.number
        ]
        if old:
            before = self.state
            self.feed(data.draw(st.sampled_from(old)))
            assert self.state.workers == before.workers
            assert self.state.dropped == before.dropped + 1

    @rule()
    def the_engine_dies(self) -> None:
        state = initial_state(self.state.run, self.first_plan())
        for fact in self.journal:
            state, _ = advance(state, fact)
        assert state == self.state
        again = [x for x in current_effects(state) if not isinstance(x, e.ReleaseWorkspace)]
        self.pending = {effect.worker: effect for effect in again}

    def first_plan(self) -> Any:
        added = {fact.step.name for fact in self.journal if isinstance(fact, rf.StepAdded)}
        joined = {fact.planned.id for fact in self.journal if isinstance(fact, rf.WorkerAdded)}
        kept = tuple(
            replace(step, workers=tuple(w for w in step.workers if w.id not in joined))
            for step in self.state.plan.steps
            if step.name not in added
        )
        return replace(self.state.plan, steps=kept)

    @rule(seconds=st.sampled_from([1.0, 100.0, 1000.0]))
    def time_passes(self, seconds: float) -> None:
        self.at += seconds

    # ---------------------------------------------------------------- humans

    @rule(data=st.data(), is_kill=st.booleans())
    def stop(self, data: st.DataObject, is_kill: bool) -> None:  # noqa: FBT001  drawn
        w = data.draw(st.sampled_from([self.state.workers[i] for i in sorted(self.state.workers)]))
        cause = data.draw(st.sampled_from([StopCause.USER, StopCause.STALLED]))
        self.feed(f.StopRequested(**self.about(w), cause=cause, is_kill=is_kill))

    @rule(data=st.data(), mode=st.sampled_from(RetryMode))
    def retry(self, data: st.DataObject, mode: RetryMode) -> None:
        if w := self.some(data, *RETRIABLE):
            self.by_hand.add(w.id)
            self.feed(f.RetryRequested(**self.about(w), mode=mode, is_alone=True))

    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        w = self.some(data, Phase.REVIEWING)
        if w and w.outcome is Outcome.SUCCESS and not must_land_first(self.state, w.id):
            self.feed(f.Approved(**self.about(w)))

    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        if w := self.some(data, Phase.REVIEWING, Phase.CONFLICTED):
            self.feed(f.Rejected(**self.about(w)))

    @rule(data=st.data())
    def resolve(self, data: st.DataObject) -> None:
        if w := self.some(data, Phase.CONFLICTED):
            self.feed(f.Resolved(**self.about(w), tree="t"))

    @rule(data=st.data())
    def choose(self, data: st.DataObject) -> None:
        for step in self.state.plan.steps:
            able = candidates(self.state, step)
            if able and self.state.steps[step.name].chosen is None:
                w = self.state.workers[data.draw(st.sampled_from(able))]
                self.feed(f.Chosen(**self.about(w)))
                return

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        if w := self.some(data, Phase.RUNNING):
            self.feed(f.AgentAsked(**self.about(w), question=Question(id="q", text="?")))

    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        if (w := self.some(data, Phase.RUNNING)) and w.attempt.questions:
            self.feed(f.HumanAnswered(**self.about(w), question="q", answer="x"))

    @rule(is_paused=st.booleans())
    def pause(self, is_paused: bool) -> None:  # noqa: FBT001  drawn
        self.feed((rf.PauseRequested if is_paused else rf.ResumeRequested)(at=self.at))

    @rule(stops_landings=st.booleans())
    def stop_all(self, stops_landings: bool) -> None:  # noqa: FBT001  drawn
        self.feed(rf.RunStopRequested(at=self.at, stops_landings=stops_landings))
        landing = [w for w in self.state.workers.values() if w.phase is Phase.LANDING]
        assert not stops_landings or all(w.landing.prepared is not None for w in landing)

    @rule(cap=st.integers(1, 4))
    def set_cap(self, cap: int) -> None:
        self.feed(rf.CapSet(cap=cap, at=self.at))

    @precondition(lambda self: self.state.stop is None and len(self.state.plan.steps) < 5)
    @rule(data=st.data())
    def add_step(self, data: st.DataObject) -> None:
        names = [step.name for step in self.state.plan.steps]
        self.feed(rf.StepAdded(step=data.draw(steps(f"s{len(names)}", names)), at=self.at))

    @precondition(lambda self: self.state.stop is None and len(self.state.workers) < 9)
    @rule(data=st.data())
    def add_worker(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(list(self.state.plan.steps)))
        last = step.workers[-1]
        new = replace(last, id=WorkerId(step.name, last.id.index + 1))
        self.feed(rf.WorkerAdded(planned=new, at=self.at))

    # ---------------------------------------------------------------- what always holds

    @invariant()
    def something_goes_on_or_a_human_is_told(self) -> None:
        if not hasattr(self, "state") or self.pending:
            return
        held = self.state.is_paused or self.state.stop is not None
        assert is_idle(self.state) or held or self.waits_for_slots(), report(self.state)

    def waits_for_slots(self) -> bool:
        """Only frozen or asking workers hold what others wait for."""
        return any(w.attempt.questions for w in self.state.workers.values())

    @invariant()
    def a_report_counts_every_attempt(self) -> None:
        if not hasattr(self, "state"):
            return
        for step in report(self.state).steps.values():
            for result in step.worker_results:
                told = self.spent.get(WorkerId.parse(result.worker), [])
                assert (result.usage.usd or 0.0) == sum(usage.usd or 0.0 for usage in told)
                assert result.usage.input_tokens == (sum(t.input_tokens or 0 for t in told) or None)
                assert len(result.attempt_usages) == result.attempts

    @invariant()
    def whoever_runs_has_an_effect_under_way(self) -> None:
        if hasattr(self, "state"):
            busy = {w.id for w in self.state.workers.values() if w.phase.holds_slot}
            assert busy <= set(self.pending)


TestCore = Core.TestCase
TestCore.settings = settings(
    max_examples=3_000 if os.environ.get("PLAIT_THOROUGH") else 120,
    stateful_step_count=60,
    suppress_health_check=list(HealthCheck),
)


def test_the_machine_notices_a_retry_that_restarts_siblings_and_is_stopped_by_one():
    machine = Core()
    machine.start(a_plan(a_step("a", 2), max_concurrent_workers=2))
    one, other = machine.state.workers

    def tell(kind: Any, worker: WorkerId, **more: Any) -> None:
        machine.feed(kind(**Core.about(machine.state.workers[worker]), **more))

    def fail(worker: WorkerId) -> None:
        tell(f.AttemptEnded, worker, ok=False)
        tell(f.Collected, worker)

    for worker in (one, other):
        tell(f.WorkspaceReady, worker, workspace="/w", prompt="p")
    fail(one)
    fail(other)
    with pytest.raises(AssertionError, match="it was not named"):
        tell(f.RetryRequested, one)  # as older journals hold it
    machine.by_hand.add(one)
    for worker in (one, other):
        tell(f.WorkspaceReady, worker, workspace="/w", prompt="p")
    tell(f.AttemptEnded, other, ok=False)
    with pytest.raises(AssertionError, match="stopped a human's retry"):
        tell(f.Collected, other)


@pytest.mark.parametrize("missing", [dispatch, follow_upstream])
def test_the_machine_notices_a_rule_that_is_missing(missing: Any, monkeypatch: pytest.MonkeyPatch):
    rules = tuple(rule for rule in RULES if rule is not missing)
    monkeypatch.setattr("engine.core.advance.RULES", rules)
    quick = settings(
        TestCore.settings,
        max_examples=400,
        database=None,
        derandomize=True,
        phases=[Phases.generate],
    )
    with pytest.raises((AssertionError, EngineBug)):
        run_state_machine_as_test(Core, settings=quick)
