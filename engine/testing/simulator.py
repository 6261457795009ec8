"""Simulate a whole run: one seed is one story, and the same seed tells it again.

The world answers the core's effects in any order and with any outcome. Humans interfere at any
moment. The engine dies between any two turns and goes on from its journal.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance
from engine.core.entry import current_effects
from engine.core.invariants import check_invariants
from engine.core.outcome import candidates, must_land_first
from engine.core.phase import TOLD
from engine.core.state import RunState, Worker, initial_state
from engine.ids import RunId, WorkerId
from engine.messages.asked import Question
from engine.messages.results import Change, CheckResult
from engine.phases import Phase, StopCause
from engine.plan.model import Plan, RetryMode

_ENTRY = e.EntryEffect
_MOST_WORKERS = 12
"""Nothing joins a run that has so many: stories are to stay short."""


@dataclass
class Story:
    """A run being simulated.

    Attributes:
        journal: Every fact so far: replaying it gives the same state.
        fails_at: The effect of this number, counted over the whole story, fails.
        pending: The effect each worker's world is still busy with.
        trace: What happened, a line each; equal for equal seeds.
    """

    plan: Plan
    seed: int
    crash_chance: float = 0.02
    fails_at: int | None = None
    state: RunState = field(init=False)
    journal: list[f.Fact] = field(default_factory=list)
    pending: dict[WorkerId, _ENTRY] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    clock: float = 1_000.0
    answered: int = 0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)  # noqa: S311  a story, not a secret
        self.state = initial_state(RunId("sim"), self.plan)
        self.feed(rf.RunBegan(at=self.clock))

    def feed(self, fact: f.Fact) -> None:
        """Take one turn: journal the fact, advance, check, and note the wanted effects."""
        before = self.state
        self.journal.append(fact)
        self.state, effects = advance(before, fact)
        check_invariants(before, self.state)
        self.trace.append(f"{fact!r} → {len(effects)}")
        for effect in effects:
            if isinstance(effect, _ENTRY):
                self._take(effect)

    def _take(self, effect: _ENTRY) -> None:
        is_stop = isinstance(effect, e.StopActivity)
        has_left = is_stop and self.state.workers[effect.worker].phase is not Phase.STOPPING
        if has_left or isinstance(effect, e.ReleaseWorkspace):
            self.pending.pop(effect.worker, None)
        else:
            self.pending[effect.worker] = effect

    def run(self, *, meddling: int) -> None:
        """Let the world and humans act at random `meddling` times, then the world alone."""
        for _ in range(meddling):
            self.clock += self.dice.random() * 5
            if self.dice.random() < self.crash_chance:
                self.crash()
            elif self.pending and self.dice.random() < 0.75:  # noqa: PLR2004  mostly the world
                self.answer_one()
            else:
                self.meddle()
        self.feed(rf.ResumeRequested(at=self.clock))
        self.feed(rf.CapSet(cap=max(1, self.state.cap), at=self.clock))
        while self.pending:
            self.clock += self.dice.random() * 5
            self.answer_one()

    def crash(self) -> None:
        """Kill the engine: everything in memory is gone, the journal is read again."""
        self.state = replay(self.plan, self.journal)
        self.pending = {
            effect.worker: effect
            for effect in current_effects(self.state)
            if not isinstance(effect, e.ReleaseWorkspace)
        }
        self.trace.append("crash")

    def answer_one(self) -> None:
        """Bring some wanted effect to an end."""
        worker = self.dice.choice(sorted(self.pending))
        effect = self.pending.pop(worker)
        self.answered += 1
        failed = self._failure(effect) if self.answered == self.fails_at else None
        for fact in self._outcome(effect) if failed is None else (failed,):
            self.feed(fact)

    def _failure(self, effect: _ENTRY) -> f.Fact | None:
        """Return the fact that an effect could not even be tried; None if it cannot fail."""
        about = effect.about(self.clock)
        why = "no space left"
        match effect:
            case e.PrepareWorkspace():
                return f.PrepareFailed(**about, error=why)
            case e.StartAgent():
                return f.AttemptEnded(**about, ok=False, error=why)
            case e.Collect():
                return f.Collected(**about, error=why)
            case e.RunCheck():
                check = CheckResult(command="test", passed=False, summary=why)
                return f.CheckFailed(**about, check=check)
            case e.PerformLanding():
                return f.LandRefused(**about, reason=why)
            case _:
                return None

    def _outcome(self, effect: _ENTRY) -> Iterator[f.Fact]:
        who = effect.worker
        w = self.state.workers[who]
        about = effect.about(self.clock)
        match effect:
            case e.PrepareWorkspace():
                yield self._prepared(about, len(effect.bases))
            case e.StartAgent():
                yield self._ended(about)
            case e.StopActivity():
                yield self._stopped(w, about)
            case e.Collect():
                yield f.Collected(**about, change=self._change())
            case e.RunCheck():
                yield self._checked(about)
            case e.PerformLanding():
                yield from self._landed(about)
            case e.StartTimer() | e.ReleaseWorkspace():
                self.clock = max(self.clock, getattr(effect, "until", 0.0))
                yield f.BackoffElapsed(**effect.about(self.clock))

    def _prepared(self, about: f.About, bases: int) -> f.Fact:
        if self._is(0.05):
            return f.PrepareFailed(**about, error="no space left")
        if bases > 1 and self._is(0.1):
            return f.BaseConflicted(**about, paths=("a",))
        return f.WorkspaceReady(**about, workspace="/w", prompt="p")

    def _ended(self, about: f.About) -> f.Fact:
        if self._is(0.05):
            return f.AttemptEnded(**about, ok=False, retry_at=self.clock + 60)
        if self._is(0.05):
            return f.AttemptEnded(**about, ok=False, cause=StopCause.KEEPER_LOST)
        if self._is(0.1):
            return f.AttemptEnded(**about, ok=False, cause=StopCause.MEMORY)
        return f.AttemptEnded(**about, ok=self._is(0.7), needs_proof=self._is(0.3))

    def _stopped(self, w: Worker, about: f.About) -> f.Fact:
        if w.history.ran == w.attempt.number and w.history.collected < w.attempt.number:
            stop = w.attempt.stop
            return f.AttemptEnded(**about, ok=False, cause=stop.cause if stop else None)
        return f.ActivityEnded(**about)

    def _checked(self, about: f.About) -> f.Fact:
        passed = self._is(0.8)
        check = CheckResult(command="test", passed=passed)
        return (f.CheckPassed if passed else f.CheckFailed)(**about, check=check)

    def _landed(self, about: f.About) -> Iterator[f.Fact]:
        if self._is(0.2):
            yield f.ConflictsFound(**about, paths=("a",))
        elif self._is(0.1):
            yield f.LandRefused(**about, reason="your edits are in the way")
        elif self._is(0.1):
            yield f.CheckFailed(**about, check=CheckResult(command="t", passed=False))
        else:
            yield f.LandPrepared(**about, target="main", old="1", new="2", detail="d")
            yield f.Landed(**about, target="main", old="1", new="2")

    def _change(self) -> Change | None:
        return Change(head="c", base="b", files=1) if self._is(0.8) else None

    def _is(self, chance: float) -> bool:
        return self.dice.random() < chance

    def meddle(self) -> None:
        """Act as a human does, within what the console allows."""
        choices = [*self._run_wishes()]
        for w in self.state.workers.values():
            choices.extend(self._worker_wishes(w))
        if choices:
            self.feed(self.dice.choice(choices))

    def _run_wishes(self) -> Iterator[f.Fact]:
        yield rf.CapSet(cap=self.dice.randint(1, 6), at=self.clock)
        yield rf.PauseRequested(at=self.clock)
        yield rf.ResumeRequested(at=self.clock)
        if self._is(0.1):
            yield rf.RunStopRequested(at=self.clock, stops_landings=self._is(0.5))
        if self.state.stop is None and len(self.state.workers) < _MOST_WORKERS:
            yield self._joining()
        late = self._late()
        if late is not None:
            yield late

    def _joining(self) -> f.Fact:
        """Return a fact by which a step, or a worker of a step, joins the run."""
        step = self.dice.choice(self.state.plan.steps)
        last = step.workers[-1]
        if self._is(0.5):
            new = replace(last, id=WorkerId(step.name, last.id.index + 1))
            return rf.WorkerAdded(planned=new, at=self.clock)
        name = f"joined{len(self.state.plan.steps)}"
        workers = (replace(last, id=WorkerId(name, 1)),)
        below = tuple(s.name for s in self.state.plan.steps if self._is(0.3))
        joining = replace(step, name=name, workers=workers, dependencies=below)
        return rf.StepAdded(step=joining, at=self.clock)

    def _late(self) -> f.Fact | None:
        """Return an earlier fact again, of an attempt that is over."""
        fact = self.dice.choice(self.journal)
        if not isinstance(fact, f.WorkerFact):
            return None
        return fact if fact.attempt < self.state.workers[fact.worker].attempt.number else None

    def _worker_wishes(self, w: Worker) -> Iterator[f.Fact]:
        about = w.about(self.clock)
        yield f.StopRequested(**about, is_kill=self._is(0.3))
        if w.phase is Phase.RUNNING:
            yield f.AgentAsked(**about, question=Question(id="q1", text="?"))
            yield f.WorkerPaused(**about)
        if w.attempt.questions:
            yield f.HumanAnswered(**about, question=w.attempt.questions[0].id, answer="allow")
        yield from self._review_wishes(w, about)

    def _review_wishes(self, w: Worker, about: f.About) -> Iterator[f.Fact]:
        if "RetryRequested" in TOLD[w.phase]:
            mode = self.dice.choice(list(RetryMode))
            yield f.RetryRequested(**about, mode=mode, is_alone=self._is(0.8))
        if w.phase is Phase.REVIEWING and not must_land_first(self.state, w.id):
            yield f.Approved(**about)
        if w.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            yield f.Rejected(**about)
        if w.phase is Phase.CONFLICTED:
            yield f.Resolved(**about, tree="t")
        own = self.state.steps[w.id.step]
        if own.chosen is None and w.id in candidates(self.state, self.state.plan.step(w.id.step)):
            yield f.Chosen(**about)


def replay(plan: Plan, journal: list[f.Fact]) -> RunState:
    """Return the state that a journal leads to."""
    state = initial_state(RunId("sim"), plan)
    for fact in journal:
        state, _ = advance(state, fact)
    return state
