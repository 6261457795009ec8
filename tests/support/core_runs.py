"""Drive a run of the core by hand: short words for facts, and the effects of the last one.

Workers are named as a reader would: `a` or `a1` is the first worker of step `a`, `a2` the second.
"""

from dataclasses import dataclass, field
from typing import Any

from engine.core import effects as e
from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.advance import advance
from engine.core.invariants import check_invariants
from engine.core.state import RunState, StepState, Worker, initial_state
from engine.ids import RunId, WorkerId
from engine.messages.asked import Question
from engine.messages.events import MustArrive
from engine.messages.results import Change, CheckResult, Outcome
from engine.phases import Phase, StopCause
from engine.plan.model import PlannedStep
from tests.support.plans import a_plan

CHANGE = Change(head="c1", base="c0", tree="t1", files=2, insertions=3, deletions=1)
PASSED = CheckResult(command="test", passed=True)
FAILED = CheckResult(command="test", passed=False, summary="2 tests failed")


def who(name: str) -> WorkerId:
    step = name.rstrip("0123456789")
    return WorkerId(step, int(name[len(step) :] or 1))


@dataclass
class Told:
    """A run, the time in it, and the effects of the last fact."""

    state: RunState
    at: float = 1_000.0
    effects: list[e.Effect] = field(default_factory=list)
    history: list[MustArrive] = field(default_factory=list)

    def feed(self, fact: f.Fact) -> list[e.Effect]:
        before = self.state
        self.state, self.effects = advance(before, fact)
        check_invariants(before, self.state)
        self.history.extend(self.events)
        return self.effects

    @property
    def acts(self) -> list[e.Effect]:
        """Return the effects, without the events."""
        return [effect for effect in self.effects if not isinstance(effect, e.Publish)]

    @property
    def events(self) -> list[MustArrive]:
        return [effect.event for effect in self.effects if isinstance(effect, e.Publish)]

    def worker(self, name: str) -> Worker:
        return self.state.workers[who(name)]

    def phase(self, name: str) -> Phase:
        return self.worker(name).phase

    def phases(self, *names: str) -> list[Phase]:
        return [self.phase(name) for name in names]

    def step(self, name: str) -> StepState:
        return self.state.steps[name]

    def outcome(self, step: str) -> Outcome:
        return self.state.steps[step].told

    def about(self, name: str) -> f.About:
        return self.worker(name).about(self.at)

    # -------------------------------------------------------------------- the world's words

    def ready(self, *names: str) -> None:
        for name in names:
            about = self.about(name)
            self.feed(f.WorkspaceReady(**about, workspace="/w", prompt="do it", branch="b"))

    def ended(self, name: str, *, ok: bool = True, **more: Any) -> None:
        self.feed(f.AttemptEnded(**self.about(name), ok=ok, **more))

    def collected(
        self, name: str, change: Change | None = CHANGE, error: str | None = None
    ) -> None:
        self.feed(f.Collected(**self.about(name), change=change, error=error))

    def passed(self, name: str) -> None:
        self.feed(f.CheckPassed(**self.about(name), check=PASSED))

    def checked_red(self, name: str) -> None:
        self.feed(f.CheckFailed(**self.about(name), check=FAILED))

    def wait_over(self, name: str) -> None:
        self.at = max(self.at, self.worker(name).next.not_before or 0.0)
        self.feed(f.BackoffElapsed(**self.about(name)))

    def landed(self, name: str) -> None:
        self.feed(f.LandPrepared(**self.about(name), target="main", old="1", new="2", detail="d"))
        self.feed(f.Landed(**self.about(name), target="main", old="1", new="2"))

    # -------------------------------------------------------------------- a human's words

    def tell(self, fact: type[Any], name: str, **more: Any) -> None:
        self.feed(fact(**self.about(name), **more))

    def stop(self, name: str, cause: StopCause = StopCause.USER, *, is_kill: bool = False) -> None:
        self.tell(f.StopRequested, name, cause=cause, is_kill=is_kill)

    def ask(self, name: str, question: str = "q1") -> None:
        self.tell(f.AgentAsked, name, question=Question(id=question, text="May I?"))

    # -------------------------------------------------------------------- whole stretches

    def does(self, *names: str, change: Change | None = CHANGE) -> None:
        """From PREPARING to REVIEWING, or FINISHED without a change; a check passes."""
        for name in names:
            self.ready(name)
            self.ended(name)
            self.collected(name, change)
            if self.phase(name) is Phase.CHECKING:
                self.passed(name)

    def fails(self, *names: str, **more: Any) -> None:
        """From PREPARING to a failed end."""
        for name in names:
            self.ready(name)
            self.ended(name, ok=False, **{"error": "it broke", **more})
            self.collected(name, None)

    def is_stopped(self, name: str) -> None:
        """The end that a stop leads to, whatever it stopped."""
        worker = self.worker(name)
        if (
            worker.history.ran == worker.attempt.number
            and worker.history.collected < worker.attempt.number
        ):
            self.ended(
                name, ok=False, cause=worker.attempt.stop.cause if worker.attempt.stop else None
            )
            self.collected(name)
        else:
            self.feed(f.ActivityEnded(**self.about(name)))


def a_run(*steps: PlannedStep, **runtime: Any) -> Told:
    """A run of these steps that has just begun."""
    told = Told(initial_state(RunId("r1"), a_plan(*steps, **runtime)))
    told.feed(rf.RunBegan(at=told.at))
    return told
