"""One turn of the core: the working copy that `advance` changes and then freezes.

Every move of a worker goes through `CoreTurn.tell` or `CoreTurn.rule`, which hold it against the
tables of `phase`. A move is given the worker as it will be, and sets its phase and what follows.
"""

from dataclasses import dataclass, field, replace

from engine.core.crew import Crew
from engine.core.effects import Effect, Publish
from engine.core.entry import entry_effect
from engine.core.phase import is_ruled, is_told
from engine.core.state import (
    Attempt,
    Hold,
    Landing,
    Next,
    Reviewed,
    RunState,
    StepState,
    Stop,
    Worker,
)
from engine.errors import IllegalTransition
from engine.ids import WorkerId
from engine.messages.events import Delivery, MustArrive, WorkerMoved, WorkerSettled
from engine.messages.results import Badge, Outcome
from engine.phases import SETTLED, Phase, StopCause
from engine.plan.model import RetryMode

_OUTCOMES = {
    Phase.REVIEWING: Outcome.SUCCESS,
    Phase.FINISHED: Outcome.SUCCESS,
    Phase.FAILED: Outcome.FAILED,
    Phase.CANCELLED: Outcome.CANCELLED,
    Phase.SKIPPED: Outcome.SKIPPED,
    Phase.WAITING: Outcome.PENDING,
    Phase.QUEUED: Outcome.PENDING,
    Phase.PREPARING: Outcome.PENDING,
    Phase.BACKING_OFF: Outcome.PENDING,
}
"""The outcome that a phase decides by itself; the other phases leave it as it was."""

_RESTING = SETTLED | {Phase.REVIEWING, Phase.CONFLICTED}
"""Phases in which no attempt is stopped or asks anything any more."""

_TOLD_TEXT = 4096
"""The most of its last words that an attempt hands to the next one."""


@dataclass
class CoreTurn:
    """The working copy of a state, and what this turn wants done.

    Its workers are copied once, at the first change, and then changed in place until the turn ends.

    Attributes:
        changes: How often anything of it was changed by `change` or `change_step`.
    """

    state: RunState
    fact: str
    effects: list[Effect] = field(default_factory=list)
    moved: dict[WorkerId, None] = field(default_factory=dict)
    changes: int = 0
    _own: Crew[Worker] | None = None

    def worker(self, worker: WorkerId) -> Worker:
        """Return the worker as it stands in this turn."""
        return self.state.workers[worker]

    def change(self, after: Worker) -> Worker:
        """Take in how a worker is now; its phase is not changed by this."""
        crew = self.state.crew
        if crew is not self._own:
            crew = self._own = crew.copy()
            self.state = replace(self.state, workers=crew)
        crew.put(after)
        self.changes += 1
        return after

    def change_step(self, step: str, after: StepState) -> StepState:
        """Take in how a step is now."""
        self.state = replace(self.state, steps={**self.state.steps, step: after})
        self.changes += 1
        return after

    def hold(self, login: str, hold: Hold | None) -> None:
        """Let nobody of a login begin for a while, or no longer hold it."""
        others = {name: held for name, held in self.state.holds.items() if name != login}
        holds = others if hold is None else {**others, login: hold}
        self.state = replace(self.state, holds=holds)

    def publish(self, event: MustArrive) -> None:
        """Tell observers."""
        self.effects.append(Publish(event=event))

    def drop(self) -> None:
        """Count a fact that came too late to mean anything."""
        self.state = replace(self.state, dropped=self.state.dropped + 1)

    def tell(self, after: Worker, to: Phase) -> None:
        """Move a worker because the fact says so."""
        if not is_told(self.worker(after.id).phase, self.fact, to):
            raise IllegalTransition(self.story(after.id, to))
        self._move(after, to)

    def rule(self, after: Worker, to: Phase) -> None:
        """Move a worker because a joint rule says so."""
        if not is_ruled(self.worker(after.id).phase, to):
            raise IllegalTransition(self.story(after.id, to))
        self._move(after, to)

    def story(self, worker: WorkerId, to: Phase | None = None) -> str:
        """Return what is known of a worker, for the report of a bug."""
        w = self.worker(worker)
        aim = f" to {to}" if to else ""
        return (
            f"{self.state.run}/{worker}@{w.attempt.number}: {self.fact} met {w.phase}{aim} "
            f"(tries {w.history.tries}, ran {w.history.ran}, collected {w.history.collected}, "
            f"stop {w.attempt.stop}, cause {w.cause}, badges {sorted(w.badges)})"
        )

    def _move(self, after: Worker, to: Phase) -> None:
        before, attempt = self.worker(after.id).phase, after.attempt
        if to in _RESTING and (attempt.stop is not None or attempt.questions):
            attempt = replace(attempt, stop=None, questions=())
        after = replace(
            after,
            phase=to,
            phase_since=self.state.now,
            outcome=self._outcome(after, to),
            attempt=attempt,
        )
        self.change(after)
        self.moved[after.id] = None
        self.publish(
            WorkerMoved(
                worker=str(after.id),
                attempt=attempt.number,
                before=before,
                after=to,
                cause=after.cause or (attempt.stop.cause if attempt.stop else None),
            )
        )

    def _outcome(self, w: Worker, to: Phase) -> Outcome:
        """Return the outcome of a worker that comes to stand in a phase."""
        step = self.state.plan.step(w.id.step)
        if to is Phase.FINISHED and step.wants_change and w.change is None:
            is_proved = w.review.check is not None and w.review.check.passed
            return Outcome.SUCCESS if is_proved else Outcome.UNCHANGED
        return _OUTCOMES.get(to, w.outcome)

    def settle(self) -> None:
        """Tell of every worker that came to rest in this turn."""
        for worker in self.moved:
            w = self.worker(worker)
            if w.phase.is_settled:
                self.publish(
                    WorkerSettled(
                        worker=str(worker),
                        attempt=w.attempt.number,
                        phase=w.phase,
                        outcome=w.outcome,
                        cause=w.cause,
                        error=w.error,
                    )
                )

    def finish(self) -> tuple[RunState, list[Effect]]:
        """Return the frozen result: entry effects of wherever each moved worker came to stand."""
        for worker in self.moved:
            effect = entry_effect(self.state, self.worker(worker))
            if effect is not None:
                self.effects.append(effect)
        return self.state, self.effects


def requeued(
    w: Worker,
    *,
    mode: RetryMode,
    words: str = "",
    failure: str = "",
    prompt: str | None = None,
    not_before: float | None = None,
) -> Worker:
    """Return a worker that is ready for another attempt, or for another prompt."""
    old, is_fresh = w.attempt, mode is RetryMode.FRESH
    unheard = [s.text for s in old.said if not (s.question or s.delivery is Delivery.DELIVERED)]
    carried = (*w.next.carried, *unheard)
    check = w.review.check
    return replace(
        w,
        cause=None,
        error=None,
        badges=frozenset() if is_fresh else w.badges & {Badge.VIOLATION},
        attempt=Attempt(
            number=old.number, bases=old.bases, violations=() if is_fresh else old.violations
        ),
        review=Reviewed(),
        landing=Landing(in_the_way=w.landing.in_the_way),
        history=replace(w.history, is_given_up=False),
        next=Next(
            mode=mode,
            previous=old.number or None,
            words="\n\n".join(filter(None, (*carried, words))),
            carried=carried,
            prompt=w.next.prompt if prompt is None else prompt,
            start=None if w.cause is StopCause.BASE_GONE else w.next.start,
            is_turn=prompt is not None,
            failure=failure,
            check_output=check.summary if failure and check else "",
            output_tail=old.ended.text[-_TOLD_TEXT:] if failure and old.ended else "",
            not_before=not_before,
        ),
    )


_LASTING = frozenset({StopCause.RACE_LOST, StopCause.NOT_CHOSEN})
"""Causes of stops that no rule undoes."""


def under_stop(w: Worker, cause: StopCause, *, is_kill: bool) -> Attempt:
    """Return the attempt under a stop: the first cause is kept, a kill is never undone.

    Only a human's own stop comes before causes that the rules follow with another attempt: what a
    human ends is not begun again.
    """
    old = w.attempt.stop
    if old is None:
        return replace(w.attempt, stop=Stop(cause=cause, is_kill=is_kill))
    is_overruled = cause is StopCause.USER and old.cause not in _LASTING
    kept = cause if is_overruled else old.cause
    return replace(w.attempt, stop=Stop(cause=kept, is_kill=old.is_kill or is_kill))
