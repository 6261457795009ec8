"""Apply the facts of an attempt's own life: prepared, ended, collected, checked."""

from dataclasses import replace

from engine.core import facts as f
from engine.core.dialogue import refuse_words
from engine.core.outcome import LOST, has_commit
from engine.core.state import Begun, Conflict, Hold, RunState, Session, Worker
from engine.core.turn import CoreTurn, requeued
from engine.errors import IllegalTransition
from engine.limits import Usage, summed
from engine.messages.events import CheckFinished, ConflictsFound, LimitHitSeen, ReviewWanted
from engine.messages.results import Badge, CheckResult
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode

_UNTIL_NETWORK_S = 10.0
"""The time that a machine gets after it woke to find its network again."""


def workspace_ready(turn: CoreTurn, w: Worker, fact: f.WorkspaceReady) -> None:
    """Start the agent."""
    begun = Begun(
        at=fact.at,
        workspace=fact.workspace,
        branch=fact.branch,
        base=fact.base,
        prompt=fact.prompt,
        feedback=fact.feedback,
        enforcement=fact.enforcement,
        made=fact.made or _made(fact),
        site=fact.site,
        holds=fact.holds,
    )
    history = replace(w.history, ran=w.attempt.number)
    review = replace(w.review, resolution=None)
    turn.tell(replace(w, begun=begun, history=history, review=review), Phase.RUNNING)


def _made(fact: f.WorkspaceReady) -> int:
    """Return which attempt a workspace was made for, as its path tells in an older journal."""
    number = fact.workspace.rpartition("/attempt_")[2]
    return int(number) if number.isdigit() else fact.attempt


def base_conflicted(turn: CoreTurn, w: Worker, fact: f.BaseConflicted) -> None:
    """Wait for a human to merge the changes that this worker builds on."""
    conflict = Conflict(paths=fact.paths, is_of_base=True)
    turn.tell(replace(w, review=replace(w.review, conflict=conflict)), Phase.CONFLICTED)
    turn.publish(ConflictsFound(**w.told, paths=fact.paths, is_of_base=True))


def prepare_failed(turn: CoreTurn, w: Worker, fact: f.PrepareFailed) -> None:
    """Count the try, although no agent ran."""
    _failed(turn, w, StopCause.SETUP, fact.error)


def attempt_ended(turn: CoreTurn, w: Worker, fact: f.AttemptEnded) -> None:
    """Collect its work, however it ended."""
    if fact.limit is not None:
        turn.publish(LimitHitSeen(**w.told, hit=fact.limit))
    since, used = w.begun.at, w.history.used
    worked = fact.at - since if since is not None else 0.0
    after = replace(
        w,
        badges=w.badges - {Badge.ASKS, Badge.PAUSED, Badge.STALLED, Badge.RATE_LIMITED},
        attempt=replace(w.attempt, ended=fact, questions=()),
        history=replace(
            w.history,
            worked_s=w.history.worked_s + max(0.0, worked),
            used=(*used, (w.attempt.number, fact.usage)) if fact.usage else used,
        ),
        session=_session(w, fact),
    )
    turn.tell(after, Phase.COLLECTING)


def _session(w: Worker, fact: f.AttemptEnded) -> Session:
    if not fact.session:
        return w.session
    workspace, usage = w.begun.workspace or "", _session_usage(w, fact)
    return Session(id=fact.session, workspace=workspace, usage=usage)


def _session_usage(w: Worker, fact: f.AttemptEnded) -> Usage | None:
    """Return what the session has used by now; an attempt that took it up tells its own part."""
    known = w.session.usage
    if fact.usage is None:
        return known
    if fact.session != w.session.id or known is None:
        return fact.usage
    return summed((known, fact.usage))


def activity_ended(turn: CoreTurn, w: Worker, _fact: f.ActivityEnded) -> None:
    """Bring a worker to rest whose preparation or check has stopped."""
    stop = w.attempt.stop
    cause = stop.cause if stop else StopCause.USER
    turn.tell(replace(w, cause=cause), cause.settles_as)


def collected(turn: CoreTurn, w: Worker, fact: f.Collected) -> None:
    """Decide what becomes of a worker whose work is kept."""
    history = replace(w.history, collected=w.attempt.number)
    w = turn.change(replace(w, change=fact.change, history=history))
    ended, stop = w.attempt.ended, w.attempt.stop
    if ended is None:
        raise IllegalTransition(turn.story(w.id))
    cause = (stop.cause if stop else None) or ended.cause
    waiting = None if cause else _waiting(turn, w, ended, is_kept=fact.error is None)
    if waiting is not None:
        _hold_login(turn, w, ended)
        turn.tell(waiting, Phase.BACKING_OFF)
        return
    refuse_words(turn, w)
    if cause is not None:
        _stopped(turn, w, cause, ended)
    elif not ended.ok or fact.error is not None:
        error = ended.error if not ended.ok else fact.error
        _failed(turn, w, StopCause.AGENT, error or "the agent failed without saying why")
    else:
        _ended_well(turn, w, ended)


def _waiting(turn: CoreTurn, w: Worker, ended: f.AttemptEnded, *, is_kept: bool) -> Worker | None:
    """Return it as one that waits to be resumed where it stopped; None if it is not.

    None of this is the agent's failure, so no try is counted.
    """
    until, resume = ended.retry_at, RetryMode.RESUME
    if until is not None:
        why = "the provider's rate limit was reached"
        again = requeued(w, mode=resume, failure=why, not_before=until)
        return replace(again, attempt=replace(again.attempt, rate_limited_until=until))
    if ended.needs_login and not ended.ok:
        again = requeued(w, mode=resume, failure="its login had expired")
        return replace(again, badges=again.badges | {Badge.NEEDS_LOGIN}, error=ended.error)
    if ended.is_asleep and not ended.ok:
        until = turn.state.now + _UNTIL_NETWORK_S
        why = "the network was lost while the machine slept"
        return requeued(w, mode=resume, failure=why, not_before=until)
    if ended.ok and is_kept and _has_unheard_words(w):
        return requeued(w, mode=resume, not_before=turn.state.now)
    return None


def _hold_login(turn: CoreTurn, w: Worker, ended: f.AttemptEnded) -> None:
    """Hold everybody who works by the login whose limit was met."""
    agent = turn.state.agent_of(w.id)
    if ended.retry_at is not None and agent is not None:
        known = turn.state.holds.get(agent.login)
        if known is None or known.until < ended.retry_at:
            turn.hold(agent.login, Hold(until=ended.retry_at))


def _has_unheard_words(w: Worker) -> bool:
    """Return whether a human said something that is heard only in a resumed session."""
    return w.session.id is not None and any(not said.is_heard for said in w.attempt.said)


def _stopped(turn: CoreTurn, w: Worker, cause: StopCause, ended: f.AttemptEnded) -> None:
    if cause.settles_as is Phase.FAILED:
        _failed(turn, w, cause, ended.error or str(ended.limit or cause))
    else:
        turn.tell(replace(w, cause=cause), Phase.CANCELLED)


def _failed(turn: CoreTurn, w: Worker, cause: StopCause, error: str) -> None:
    history = w.history
    if cause not in LOST:
        history = replace(history, tries=history.tries + 1)
    turn.tell(replace(w, cause=cause, error=error, history=history), Phase.FAILED)


def _ended_well(turn: CoreTurn, w: Worker, ended: f.AttemptEnded) -> None:
    step = turn.state.plan.step(w.id.step)
    if step.check is not None and step.run is None:
        turn.tell(w, Phase.CHECKING)
    elif w.change is None and ended.needs_proof and step.merge.lands:
        why = "the agent changed nothing, and its step has no check to confirm that this is right"
        _failed(turn, w, StopCause.NO_CHANGE, why)
    else:
        review_or_finish(turn, w)


def check_passed(turn: CoreTurn, w: Worker, fact: f.CheckPassed) -> None:
    """Go on to review with proved work, or finish where there is nothing to merge."""
    turn.publish(CheckFinished(**w.told, check=fact.check))
    review = replace(w.review, check=fact.check)
    review_or_finish(turn, turn.change(replace(w, review=review)))


def check_failed(turn: CoreTurn, w: Worker, fact: f.CheckFailed) -> None:
    """Fail the worker for its own tree; show a badge for the tree to be landed."""
    is_landing = w.phase is Phase.LANDING
    turn.publish(CheckFinished(**w.told, check=fact.check, is_for_landing=is_landing))
    review = replace(w.review, check=fact.check)
    if is_landing:
        after = replace(
            w,
            review=replace(review, is_check_stale=False, resolution=None),
            landing=replace(w.landing, wish=None, prepared=None),
            error=_why_not_landed(w, fact.check),
            badges=(w.badges | {Badge.CHECK_FAILED}) - {Badge.APPROVED},
        )
        turn.tell(after, Phase.REVIEWING)
        return
    error = fact.check.summary or f"the check failed: {fact.check.command}"
    _failed(turn, replace(w, review=review), StopCause.CHECK, error)


def _why_not_landed(w: Worker, found: CheckResult) -> str:
    """Say that the exact tree is red, why that may surprise, and what a human may do."""
    said = [
        f"{found.summary or 'the check failed'}\n\nThe check ran on the exact tree that would land."
    ]
    known, wish = w.review.check, w.landing.wish
    if known is not None and known.passed and not known.is_clean:
        said.append(
            "The check passed in the worker's own tree. Files that the worker installed or built"
            " but did not commit are missing here. Create them in `workspace.setup`."
        )
    if wish is not None and wish.is_despite_check:
        said.append(
            "You had not seen this failure, so --despite-check did not apply to it."
            " Land with --despite-check again to overrule it."
        )
    return " ".join(said)


def review_or_finish(turn: CoreTurn, w: Worker) -> None:
    """Wait for review if there is a commit that is meant to be merged, else finish."""
    if not is_mergeable(turn.state, w):
        turn.tell(w, Phase.FINISHED)
        return
    turn.tell(w, Phase.REVIEWING)
    want_review(turn, w)


def want_review(turn: CoreTurn, w: Worker) -> None:
    """Tell observers what waits for review."""
    change = w.change
    if change is not None:
        turn.publish(
            ReviewWanted(
                **w.told,
                files=change.files,
                insertions=change.insertions,
                deletions=change.deletions,
            )
        )


def is_mergeable(state: RunState, w: Worker) -> bool:
    """Return whether there is a commit, and its step means to merge it."""
    return has_commit(w) and state.plan.step(w.id.step).merge.lands
