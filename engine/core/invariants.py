"""Check the invariants of a run: in tests after every turn, and after a recovery."""

from collections.abc import Iterator

from engine.core.state import Attempt, RunState, Worker
from engine.errors import InvariantBroken
from engine.messages.results import Outcome
from engine.phases import Phase
from engine.plan.model import RetryMode

_UNCOLLECTED = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})
_OPEN = frozenset({Phase.WAITING, Phase.QUEUED, Phase.BACKING_OFF})


def check_invariants(before: RunState | None, after: RunState) -> None:
    """Raise `InvariantBroken` naming every rule that a turn has broken."""
    broken = [*_of_run(before, after)]
    for w in after.workers.values():
        broken.extend(f"{w.id}: {rule}" for rule in _of_worker(before, w))
    if broken:
        raise InvariantBroken(f"run {after.run}: " + "; ".join(broken))


def _of_run(before: RunState | None, after: RunState) -> Iterator[str]:
    used = before.slots_in_use if before else 0
    if after.slots_in_use > max(after.cap, used):
        yield f"{after.slots_in_use} slots in use, {after.cap} allowed"
    for step in after.plan.steps:
        if not after.steps[step.name].has_failed_fast:
            continue
        workers = [w for w in after.workers_of(step.name) if not w.history.is_by_hand]
        open_ = [str(w.id) for w in workers if w.phase in _OPEN]
        if open_:
            yield f"{step.name} has failed fast, and {', '.join(open_)} still waits"


def _of_worker(before: RunState | None, w: Worker) -> Iterator[str]:
    attempt, history = w.attempt, w.history
    if w.phase not in _UNCOLLECTED and history.ran > history.collected:
        yield f"attempt {history.ran} ran and was not collected before {w.phase}"
    if w.phase.is_settled and w.outcome is Outcome.PENDING:
        yield f"settled as {w.phase} without an outcome"
    if w.phase in _OPEN and w.outcome is not Outcome.PENDING:
        yield f"{w.phase} with the outcome {w.outcome}"
    if w.phase is Phase.STOPPING and attempt.stop is None:
        yield "stopping for no cause"
    if attempt.questions and w.phase is not Phase.RUNNING:
        yield f"asks while {w.phase}"
    old = before.workers.get(w.id) if before else None
    if old is not None:
        yield from _of_attempts(old.attempt, w)


def _of_attempts(old: Attempt, w: Worker) -> Iterator[str]:
    attempt = w.attempt
    if not old.number <= attempt.number <= old.number + 1:
        yield f"attempt {old.number} became {attempt.number}"
    goes_on = w.phase is Phase.PREPARING and w.next.mode is RetryMode.RESUME
    if goes_on and old.bases != attempt.bases:
        yield "continues in a tree that has another base"
