"""Judge a step: its outcome, its candidates, its choice, and what it offers to others."""

import re
from collections.abc import Mapping, Sequence

from engine.core.state import Bases, RunState, Worker, dependents
from engine.ids import WorkerId
from engine.messages.results import Outcome, Verdict, verdict_of
from engine.phases import Phase, StopCause
from engine.plan.model import PlannedStep, RetryRule

LOST = frozenset({StopCause.KEEPER_LOST, StopCause.HOST_LOST, StopCause.SHUTDOWN})
"""The machinery failed, not the agent: another attempt follows, and no try is counted."""
MAY_BE_RETRIED = (Phase.FAILED, Phase.CANCELLED)
"""The phases after which a rule may begin another attempt."""
_NEVER_RETRIED = frozenset({StopCause.BUDGET})
_OPEN_OUTCOMES = frozenset({Outcome.SUCCESS, Outcome.UNCHANGED, Outcome.PENDING})
_GIVES_UP = re.compile(
    r"\b(?:could not|can ?not|(?:could|ca)n.t|unable to|not able to|not possible|impossible)\b",
    re.IGNORECASE,
)


def step_outcome(state: RunState, step: PlannedStep) -> Outcome:
    """Return the outcome of a step by its policy; PENDING while it is open."""
    chosen = state.steps[step.name].chosen
    if chosen is not None and chosen in state.workers:
        outcome = state.workers[chosen].outcome
        return Outcome.SUCCESS if outcome.is_well else outcome
    came_to = state.crew.outcomes(step.name)
    needed = step.policy.needed(sum(came_to.values()))
    successes = came_to.get(Outcome.SUCCESS, 0) + _passed_over(state, step)
    is_over = not came_to.get(Outcome.PENDING, 0)
    if is_over or not step.policy.ends_early:  # nobody wins a race by changing nothing
        successes += came_to.get(Outcome.UNCHANGED, 0)
    if needed <= successes and (step.policy.ends_early or is_over):
        if not step.has_candidates or candidates(state, step):
            return Outcome.SUCCESS
        # Those that succeeded were rejected, or discarded for a choice that a human has undone.
        return _unsuccessful(came_to) if is_over else Outcome.PENDING
    if _is_out_of_reach(state, step, needed):
        return _unsuccessful(came_to)
    return Outcome.PENDING


def told_outcome(state: RunState, step: PlannedStep) -> Outcome:
    """Return the outcome that a step reports: a success without a change is none.

    The steps behind it go on all the same: they may want no more than its words.
    """
    outcome, chosen = step_outcome(state, step), state.steps[step.name].chosen
    if outcome is not Outcome.SUCCESS:
        return outcome
    if chosen is not None and chosen in state.workers:
        return state.workers[chosen].outcome
    has_change = state.crew.outcomes(step.name).get(Outcome.SUCCESS, 0)
    return Outcome.SUCCESS if has_change else Outcome.UNCHANGED


def ending(w: Worker) -> str:
    """Say how a worker ended without the change that was wanted; nothing where there is one."""
    if w.outcome is not Outcome.UNCHANGED:
        return ""
    said = w.attempt.ended.text if w.attempt.ended else ""
    return "says it could not do it" if _GIVES_UP.search(said) else "ended without a change"


def _passed_over(state: RunState, step: PlannedStep) -> int:
    """Count the candidates that succeeded and that a human rejected all the same.

    One of several is to be chosen: rejecting some narrows the choice, and the step still has what
    its policy asks for. Where enough successes stop the rest, a rejected one is not enough.
    """
    if not step.has_candidates or step.policy.ends_early:
        return 0
    discarded = state.crew.standing((Phase.DISCARDED,), step.name)
    return sum(w.cause is StopCause.USER and not w.review.is_conflict_of_base for w in discarded)


def _is_out_of_reach(state: RunState, step: PlannedStep, needed: int) -> bool:
    came_to = state.crew.outcomes(step.name)
    still_possible = sum(came_to.get(outcome, 0) for outcome in _OPEN_OUTCOMES)
    still_possible += _passed_over(state, step)
    if may_be_mended(state, step):
        still_possible += came_to.get(Outcome.CANCELLED, 0)
    if still_possible >= needed:
        return False
    return needed > still_possible + sum(
        worker.outcome not in _OPEN_OUTCOMES and is_to_be_retried(state, worker)
        for worker in state.crew.standing(MAY_BE_RETRIED, step.name)
    )


def may_be_mended(state: RunState, step: PlannedStep) -> bool:
    """Return whether a step that failed fast succeeds once what is open and stopped does.

    A human has retried what failed: nobody stands there who failed, or whom a human gave up.
    """
    own, came_to = state.steps[step.name], state.crew.outcomes(step.name)
    if not own.has_failed_fast or own.chosen is not None:
        return False
    if came_to.get(Outcome.FAILED, 0) or came_to.get(Outcome.SKIPPED, 0):
        return False
    stopped = state.crew.standing((Phase.CANCELLED,), step.name)
    by_policy = sum(w.cause is StopCause.FAIL_FAST for w in stopped)
    return by_policy == came_to.get(Outcome.CANCELLED, 0)


def is_to_be_retried(state: RunState, worker: Worker) -> bool:
    """Return whether the joint rules are about to follow its end with another attempt."""
    if worker.cause is StopCause.BASE_GONE:
        return worker.phase is Phase.CANCELLED
    has_ended = worker.phase is Phase.FAILED or (
        worker.phase is Phase.CANCELLED and worker.cause in LOST
    )
    return has_ended and not worker.history.is_given_up and may_retry(state, worker)


def may_retry(state: RunState, worker: Worker) -> bool:
    """Return whether a failed worker has an attempt left that the rules allow."""
    rule = state.plan.step(worker.id.step).retry
    own = state.steps[worker.id.step]
    if (own.has_failed_fast and not worker.history.is_by_hand) or state.stop is not None:
        return False
    if worker.cause in _NEVER_RETRIED:
        return False
    if worker.cause in LOST:
        # A machine that dies takes all its workers at once, so each counts its own losses alone.
        return _recent(state, worker.history.losses, rule) < rule.restarts
    has_try = worker.history.tries < rule.attempts
    return has_try and _recent(state, own.restarts, rule) < rule.restarts


def _recent(state: RunState, restarts: Sequence[float], rule: RetryRule) -> int:
    return sum(at > state.now - rule.per_s for at in restarts)


def _unsuccessful(came_to: Mapping[Outcome, int]) -> Outcome:
    for outcome in (Outcome.FAILED, Outcome.CANCELLED):
        if came_to.get(outcome, 0):
            return outcome
    return Outcome.SKIPPED


def candidates(state: RunState, step: PlannedStep) -> tuple[WorkerId, ...]:
    """Return the workers of a step of which one is to be chosen: those with a change, if any."""
    if not step.has_candidates:
        return ()
    able = [
        worker
        for worker in state.workers_of(step.name)
        if worker.outcome.is_well and worker.phase is not Phase.DISCARDED
    ]
    changed = [worker for worker in able if worker.outcome is Outcome.SUCCESS]
    return tuple(worker.id for worker in changed or able)


def chosen_of(state: RunState, step: PlannedStep) -> WorkerId | None:
    """Return the candidate that counts: the chosen one, or the only one left."""
    chosen = state.steps[step.name].chosen
    if chosen is not None:
        return chosen
    if step_outcome(state, step) is not Outcome.SUCCESS:
        return None
    able = candidates(state, step)
    return able[0] if len(able) == 1 else step.choose.pick(able)


def is_choice_due(state: RunState, step: PlannedStep) -> bool:
    """Return whether a human has to choose between several candidates.

    If none of them changed anything, it matters only to a step that goes on from the chosen one.
    """
    if not step.has_candidates or step_outcome(state, step) is not Outcome.SUCCESS:
        return False
    able = candidates(state, step)
    if len(able) <= 1 or chosen_of(state, step) is not None:
        return False
    has_change = any(state.workers[one].outcome is Outcome.SUCCESS for one in able)
    return has_change or bool(dependents(state.plan, step.name))


def offers(state: RunState, step: PlannedStep) -> Bases | None:
    """Return the attempts a dependent step builds on; None while there is no answer yet."""
    if step_outcome(state, step) is not Outcome.SUCCESS:
        return None
    if step.has_candidates:
        chosen = chosen_of(state, step)
        return None if chosen is None else ((chosen, state.workers[chosen].attempt.number),)
    return tuple(
        (worker.id, worker.attempt.number)
        for worker in state.workers_of(step.name)
        if worker.outcome.is_well
    )


def bases_for(state: RunState, step: PlannedStep) -> Bases | None:
    """Return everything a step builds on, in plan order; None while something is missing."""
    if not step.dependencies:
        return ()
    found: list[tuple[WorkerId, int]] = []
    for upstream in state.plan.steps:
        if upstream.name not in step.dependencies:
            continue
        offered = offers(state, upstream)
        if offered is None:
            return None
        found.extend(offered)
    return tuple(found)


def is_impossible(state: RunState, step: PlannedStep) -> bool:
    """Return whether a dependency has ended without the change this step needs."""
    return any(
        step_outcome(state, state.plan.step(name)) not in _OPEN_OUTCOMES
        for name in step.dependencies
    )


def must_land_first(state: RunState, worker: WorkerId) -> tuple[WorkerId, ...]:
    """Return the upstream changes that this one is stacked on and that have not landed yet."""
    return tuple(
        base
        for base, _ in state.workers[worker].attempt.bases
        if state.plan.step(base.step).merge.lands
        and has_commit(state.workers[base])
        and state.workers[base].phase is not Phase.LANDED
    )


def has_commit(worker: Worker) -> bool:
    """Return whether its work is a commit that can be merged, not only artifacts."""
    return worker.change is not None and worker.change.head is not None


def run_outcome(state: RunState) -> Outcome:
    """Return the outcome of the run, by its steps."""
    outcomes = [told_outcome(state, step) for step in state.plan.steps]
    for outcome in (Outcome.FAILED, Outcome.CANCELLED, Outcome.PENDING, Outcome.SKIPPED):
        if outcome in outcomes:
            return outcome
    return Outcome.SUCCESS if Outcome.SUCCESS in outcomes else Outcome.UNCHANGED


def is_despite_check(state: RunState, w: Worker) -> bool:
    """Tell whether a human overruled a red check: the flag counts only where nothing is proved."""
    has_check = state.plan.step(w.id.step).check is not None
    check, wish = w.review.check, w.landing.wish
    is_proved = check is not None and check.passed and check.is_clean
    return has_check and not is_proved and wish is not None and wish.is_despite_check


def verdict(w: Worker) -> Verdict | None:
    """Return how far a worker's success is proved."""
    ended = w.attempt.ended
    has_claimed = ended is not None and ended.ok
    return verdict_of(w.review.check, is_stale=w.review.is_check_stale, has_claimed=has_claimed)
