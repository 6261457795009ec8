"""What it does to a run that a composite was woven from a step's candidates."""

from dataclasses import replace

from engine.core import facts as f
from engine.core.state import Reviewed, Worker
from engine.core.turn import Turn
from engine.messages.events import ReviewWanted
from engine.messages.results import Badge, Outcome
from engine.phases import Phase


def woven(turn: Turn, fact: f.CompositeWoven) -> None:
    """The composite stands among the candidates, its check behind it; woven anew, it is another.

    It is born where finished work waits for review, and moves from there like any other.
    """
    worker = fact.planned.id
    old = turn.state.workers.get(worker)
    if old is not None and old.phase is not Phase.REVIEWING:
        turn.drop()
        return
    if old is None:
        _plan(turn, fact)
    turn.change(_woven(turn.worker(worker), fact))
    turn.publish(
        ReviewWanted(
            worker=str(worker),
            attempt=fact.attempt,
            files=fact.change.files,
            insertions=fact.change.insertions,
            deletions=fact.change.deletions,
        )
    )


def _plan(turn: Turn, fact: f.CompositeWoven) -> None:
    state, new = turn.state, fact.planned
    steps = tuple(
        replace(step, workers=(*step.workers, new)) if step.name == new.id.step else step
        for step in state.plan.steps
    )
    born = Worker(id=new.id, phase=Phase.REVIEWING, phase_since=state.now, outcome=Outcome.SUCCESS)
    turn.state = replace(
        state,
        plan=replace(state.plan, steps=steps),
        workers={**state.workers, new.id: born},
    )


def _woven(w: Worker, fact: f.CompositeWoven) -> Worker:
    return replace(
        w,
        attempt=replace(w.attempt, number=fact.attempt, bases=fact.bases),
        begun=replace(w.begun, at=fact.at, base=fact.change.base, branch=fact.branch),
        change=fact.change,
        review=Reviewed(check=fact.check),
        landing=replace(w.landing, wish=None),
        error=None,
        badges=w.badges - {Badge.APPROVED, Badge.CHECK_FAILED, Badge.LAND_REFUSED},
    )
