"""One turn of the core: the working copy that `advance` changes and then freezes.

Every move of a worker goes through `Turn.move`, which holds it against the tables of `phase`.
"""

from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from typing import Any

from engine.core.crew import Crew
from engine.core.effects import Effect, Publish
from engine.core.entry import entry_effect
from engine.core.phase import is_ruled, is_told
from engine.core.state import Hold, Next, RunState, StepState, Stop, Worker
from engine.errors import IllegalTransition
from engine.ids import WorkerId
from engine.messages.events import Delivery, MustArrive, WorkerMoved, WorkerSettled
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause
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

_OF_ONE_ATTEMPT = frozenset(
    {
        Badge.ASKS,
        Badge.PAUSED,
        Badge.STALLED,
        Badge.RATE_LIMITED,
        Badge.APPROVED,
        Badge.CHOSEN,
        Badge.CHECK_FAILED,
        Badge.LAND_REFUSED,
        Badge.BASE_OUTDATED,
        Badge.NEEDS_LOGIN,
    }
)


_TOLD_TEXT = 4096
"""How much of its last words an attempt hands to the next one."""


@dataclass
class Turn:
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
        """The worker as it stands in this turn."""
        return self.state.workers[worker]

    def change(self, worker: WorkerId, **fields: Any) -> Worker:
        """Set fields of a worker that are not its phase."""
        crew = self.state.crew
        if crew is not self._own:
            crew = self._own = crew.copy()
            self.state = replace(self.state, workers=crew)
        changed = _altered(crew[worker], fields)
        crew.put(changed)
        self.changes += 1
        return changed

    def change_step(self, step: str, **fields: Any) -> StepState:
        """Set fields of a step."""
        changed = replace(self.state.steps[step], **fields)
        self.state = replace(self.state, steps={**self.state.steps, step: changed})
        self.changes += 1
        return changed

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

    def tell(self, worker: WorkerId, to: Phase, **fields: Any) -> None:
        """Move a worker because the fact says so."""
        before = self.worker(worker).phase
        if not is_told(before, self.fact, to):
            raise IllegalTransition(self.story(worker, to))
        self._move(worker, to, fields)

    def rule(self, worker: WorkerId, to: Phase, **fields: Any) -> None:
        """Move a worker because a joint rule says so."""
        if not is_ruled(self.worker(worker).phase, to):
            raise IllegalTransition(self.story(worker, to))
        self._move(worker, to, fields)

    def story(self, worker: WorkerId, to: Phase | None = None) -> str:
        """What is known of a worker, for the report of a bug."""
        w = self.worker(worker)
        aim = f" to {to}" if to else ""
        return (
            f"{self.state.run}/{worker}@{w.attempt}: {self.fact} met {w.phase}{aim} "
            f"(tries {w.tries}, ran {w.ran}, collected {w.collected}, stop {w.stop}, "
            f"cause {w.cause}, badges {sorted(w.badges)})"
        )

    def _move(self, worker: WorkerId, to: Phase, fields: dict[str, Any]) -> None:
        before = self.worker(worker)
        defaults = {"phase": to, "phase_since": self.state.now} | _settled(to)
        if to in _OUTCOMES:
            defaults["outcome"] = _OUTCOMES[to]
        after = self.change(worker, **(defaults | fields))
        self.moved[worker] = None
        cause = after.cause or (after.stop.cause if after.stop else None)
        self.publish(
            WorkerMoved(
                worker=str(worker),
                attempt=after.attempt,
                before=before.phase,
                after=to,
                cause=cause,
            )
        )

    def requeue(
        self,
        worker: WorkerId,
        *,
        mode: RetryMode,
        words: str = "",
        failure: str = "",
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """The fields that make a worker ready for another attempt, or for another prompt."""
        w = self.worker(worker)
        unheard = [s.text for s in w.said if not (s.question or s.delivery is Delivery.DELIVERED)]
        carried = (*w.next.carried, *unheard)
        is_fresh = mode is RetryMode.FRESH
        return {
            "outcome": Outcome.PENDING,
            "cause": None,
            "error": None,
            "limit_hit": None,
            "is_given_up": False,
            "stop": None,
            "ended": None,
            "check": None,
            "whole": None,
            "left_out": (),
            "is_check_stale": False,
            "questions": (),
            "said": (),
            "badges": w.badges - _OF_ONE_ATTEMPT - ({Badge.VIOLATION} if is_fresh else set()),
            "violations": () if is_fresh else w.violations,
            "land": None,
            "resolved": None,
            "prepared": None,
            "is_undone": False,
            "conflicts": (),
            "is_conflict_of_base": False,
            "not_before": None,
            "rate_limited_until": None,
            "next": Next(
                mode=mode,
                previous=w.attempt or None,
                words="\n\n".join(filter(None, (*carried, words))),
                carried=carried,
                prompt=w.next.prompt if prompt is None else prompt,
                start=None if w.cause is StopCause.BASE_GONE else w.next.start,
                is_turn=prompt is not None,
                failure=failure,
                check_output=w.check.summary if failure and w.check else "",
                output_tail=w.ended.text[-_TOLD_TEXT:] if failure and w.ended else "",
            ),
        }

    def settle(self) -> None:
        """Tell of every worker that came to rest in this turn."""
        for worker in self.moved:
            w = self.worker(worker)
            if w.phase.is_settled:
                self.publish(
                    WorkerSettled(
                        worker=str(worker),
                        attempt=w.attempt,
                        phase=w.phase,
                        outcome=w.outcome,
                        cause=w.cause,
                        error=w.error,
                    )
                )

    def finish(self) -> tuple[RunState, list[Effect]]:
        """The frozen result: entry effects of wherever each moved worker came to stand."""
        for worker in self.moved:
            effect = entry_effect(self.state, self.worker(worker))
            if effect is not None:
                self.effects.append(effect)
        return self.state, self.effects


_FIELDS = frozenset(each.name for each in dataclass_fields(Worker))


def _altered(worker: Worker, fields: dict[str, Any]) -> Worker:
    """What `replace` gives, without looking at each of the many fields that stay as they are."""
    if not fields.keys() <= _FIELDS:
        raise TypeError(f"a worker has no {fields.keys() - _FIELDS}")
    altered = object.__new__(Worker)
    altered.__dict__.update(worker.__dict__, **fields)
    return altered


def _settled(to: Phase) -> dict[str, Any]:
    if to.is_settled or to in {Phase.REVIEWING, Phase.CONFLICTED}:
        return {"stop": None, "questions": ()}
    return {}


_LASTING = frozenset({StopCause.RACE_LOST, StopCause.NOT_CHOSEN})
"""Causes of stops that no rule undoes."""


def stop_fields(worker: Worker, cause: StopCause, *, is_kill: bool) -> dict[str, Any]:
    """The stop a worker is under from now on: the first cause is kept, a kill is never undone.

    Only a human's own stop comes before causes that the rules follow with another attempt: what a
    human ends is not begun again.
    """
    if worker.stop is None:
        return {"stop": Stop(cause=cause, is_kill=is_kill)}
    is_overruled = cause is StopCause.USER and worker.stop.cause not in _LASTING
    kept = cause if is_overruled else worker.stop.cause
    return {"stop": Stop(cause=kept, is_kill=worker.stop.is_kill or is_kill)}
