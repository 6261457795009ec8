"""What the facts of an attempt's own life do: prepared, ended, collected, checked."""

from typing import Any

from engine.core import facts as f
from engine.core.dialogue import refuse_words
from engine.core.outcome import LOST, has_commit
from engine.core.state import Hold, RunState, Worker
from engine.core.turn import Turn
from engine.errors import IllegalTransition
from engine.limits import Usage, summed
from engine.messages.events import CheckFinished, ConflictsFound, LimitHitSeen, ReviewWanted
from engine.messages.results import Badge, CheckResult
from engine.phases import Phase, StopCause
from engine.plan.model import RetryMode

_UNTIL_NETWORK_S = 10.0
"""How long a machine that just woke is given to find its network again."""


def workspace_ready(turn: Turn, w: Worker, fact: f.WorkspaceReady) -> None:
    """The agent can start."""
    turn.tell(
        w.id,
        Phase.RUNNING,
        workspace=fact.workspace,
        prompt=fact.prompt,
        feedback=fact.feedback,
        branch=fact.branch,
        base=fact.base,
        enforcement=fact.enforcement,
        attempt_since=fact.at,
        ran=w.attempt,
        resolved=None,
    )


def base_conflicted(turn: Turn, w: Worker, fact: f.BaseConflicted) -> None:
    """A human has to merge what this worker builds on."""
    turn.tell(w.id, Phase.CONFLICTED, conflicts=fact.paths, is_conflict_of_base=True)
    turn.publish(
        ConflictsFound(worker=str(w.id), attempt=w.attempt, paths=fact.paths, is_of_base=True)
    )


def prepare_failed(turn: Turn, w: Worker, fact: f.PrepareFailed) -> None:
    """No agent ran; the try is counted all the same."""
    turn.tell(w.id, Phase.FAILED, cause=StopCause.SETUP, error=fact.error, tries=w.tries + 1)


def attempt_ended(turn: Turn, w: Worker, fact: f.AttemptEnded) -> None:
    """However it ended, its work is collected."""
    worked = fact.at - w.attempt_since if w.attempt_since is not None else 0.0
    if fact.limit is not None:
        turn.publish(LimitHitSeen(worker=str(w.id), attempt=w.attempt, hit=fact.limit))
    turn.tell(
        w.id,
        Phase.COLLECTING,
        ended=fact,
        session=fact.session or w.session,
        session_workspace=(w.workspace or "") if fact.session else w.session_workspace,
        session_usage=_session_usage(w, fact),
        used=(*w.used, (w.attempt, fact.usage)) if fact.usage else w.used,
        limit_hit=fact.limit,
        worked_s=w.worked_s + max(0.0, worked),
        questions=(),
        badges=w.badges - {Badge.ASKS, Badge.PAUSED, Badge.STALLED, Badge.RATE_LIMITED},
    )


def _session_usage(w: Worker, fact: f.AttemptEnded) -> Usage | None:
    """Return what the session has used by now; an attempt that took it up tells its own part."""
    if not fact.session or fact.usage is None:
        return w.session_usage
    if fact.session != w.session or w.session_usage is None:
        return fact.usage
    return summed((w.session_usage, fact.usage))


def activity_ended(turn: Turn, w: Worker, fact: f.ActivityEnded) -> None:
    """A preparation or a check has stopped: the worker comes to rest."""
    del fact
    cause = w.stop.cause if w.stop else StopCause.USER
    turn.tell(w.id, cause.settles_as, cause=cause)


def collected(turn: Turn, w: Worker, fact: f.Collected) -> None:
    """The work is kept; what the worker comes to is decided now."""
    w = turn.change(w.id, change=fact.change, collected=w.attempt)
    ended = w.ended
    if ended is None:
        raise IllegalTransition(turn.story(w.id))
    cause = (w.stop.cause if w.stop else None) or ended.cause
    wait = None if cause else _wait_of(turn, w, ended, is_kept=fact.error is None)
    if wait is not None:
        _hold_login(turn, w, ended)
        turn.tell(w.id, Phase.BACKING_OFF, **wait)
        return
    refuse_words(turn, w)
    if cause is not None:
        _stopped(turn, w, cause, ended)
    elif not ended.ok or fact.error is not None:
        error = ended.error if not ended.ok else fact.error
        _failed(turn, w, StopCause.AGENT, error or "the agent failed without saying why")
    else:
        _ended_well(turn, w, ended)


def _wait_of(
    turn: Turn, w: Worker, ended: f.AttemptEnded, *, is_kept: bool
) -> dict[str, Any] | None:
    """What it waits for before it is taken up where it stopped; None if it is not.

    None of this is the agent's failure, so no try is counted.
    """
    if ended.retry_at is not None:
        until = ended.retry_at
        fields = turn.requeue(w.id, mode=RetryMode.RESUME, failure="the vendor's limit was met")
        return {**fields, "not_before": until, "rate_limited_until": until}
    if ended.needs_login and not ended.ok:
        fields = turn.requeue(w.id, mode=RetryMode.RESUME, failure="its login had run out")
        return {**fields, "badges": fields["badges"] | {Badge.NEEDS_LOGIN}, "error": ended.error}
    if ended.is_asleep and not ended.ok:
        fields = turn.requeue(w.id, mode=RetryMode.RESUME, failure="the network was lost in sleep")
        return {**fields, "not_before": turn.state.now + _UNTIL_NETWORK_S}
    if ended.ok and is_kept and _has_unheard_words(w):
        return {**turn.requeue(w.id, mode=RetryMode.RESUME), "not_before": turn.state.now}
    return None


def _hold_login(turn: Turn, w: Worker, ended: f.AttemptEnded) -> None:
    """Its vendor's limit is that of everybody who works by the same login."""
    agent = turn.state.agent_of(w.id)
    if ended.retry_at is not None and agent is not None:
        known = turn.state.holds.get(agent.login)
        if known is None or known.until < ended.retry_at:
            turn.hold(agent.login, Hold(until=ended.retry_at))


def _has_unheard_words(w: Worker) -> bool:
    """A human said something to an agent that hears only when its session is taken up again."""
    return w.session is not None and any(not said.is_heard for said in w.said)


def _stopped(turn: Turn, w: Worker, cause: StopCause, ended: f.AttemptEnded) -> None:
    if cause.settles_as is Phase.FAILED:
        _failed(turn, w, cause, ended.error or str(ended.limit or cause))
    else:
        turn.tell(w.id, Phase.CANCELLED, cause=cause)


def _failed(turn: Turn, w: Worker, cause: StopCause, error: str) -> None:
    tries = w.tries if cause in LOST else w.tries + 1
    turn.tell(w.id, Phase.FAILED, cause=cause, error=error, tries=tries)


def _ended_well(turn: Turn, w: Worker, ended: f.AttemptEnded) -> None:
    step = turn.state.plan.step(w.id.step)
    if step.check is not None and step.run is None:
        turn.tell(w.id, Phase.CHECKING)
    elif w.change is None and ended.needs_proof and step.merge.lands:
        _failed(turn, w, StopCause.NO_CHANGE, "the agent changed nothing, and no check proves it")
    else:
        review_or_finish(turn, w)


def check_passed(turn: Turn, w: Worker, fact: f.CheckPassed) -> None:
    """The work is proved; now it waits for review, if there is anything to merge."""
    turn.publish(CheckFinished(worker=str(w.id), attempt=w.attempt, check=fact.check))
    turn.change(w.id, check=fact.check)
    review_or_finish(turn, turn.worker(w.id))


def check_failed(turn: Turn, w: Worker, fact: f.CheckFailed) -> None:
    """On the worker's own tree it is a failure; on the tree to be landed, a badge."""
    is_landing = w.phase is Phase.LANDING
    turn.publish(
        CheckFinished(
            worker=str(w.id), attempt=w.attempt, check=fact.check, is_for_landing=is_landing
        )
    )
    if is_landing:
        turn.tell(
            w.id,
            Phase.REVIEWING,
            check=fact.check,
            is_check_stale=False,
            land=None,
            prepared=None,
            resolved=None,
            resolved_onto=None,
            error=_why_not_landed(w, fact.check),
            badges=(w.badges | {Badge.CHECK_FAILED}) - {Badge.APPROVED},
        )
        return
    turn.tell(
        w.id,
        Phase.FAILED,
        check=fact.check,
        cause=StopCause.CHECK,
        error=fact.check.summary or f"the check failed: {fact.check.command}",
        tries=w.tries + 1,
    )


def _why_not_landed(w: Worker, found: CheckResult) -> str:
    """Say that the exact tree is red, why that may surprise, and what a human may do."""
    said = [f"{found.summary or 'the check failed'}\n\nThis was the exact tree that would land."]
    if w.check is not None and w.check.passed and not w.check.is_clean:
        said.append(
            "In the worker's own tree the check passed: what the worker installed or built outside"
            " of the commit is not here. Let `workspace.setup` make it."
        )
    if w.land is not None and w.land.is_despite_check:
        said.append(
            "Nobody had seen this result yet, so nothing was overruled."
            " Land with --despite-check again to overrule it."
        )
    return " ".join(said)


def review_or_finish(turn: Turn, w: Worker) -> None:
    """To review if there is a commit that is meant to be merged, else done."""
    if not is_mergeable(turn.state, w):
        turn.tell(w.id, Phase.FINISHED)
        return
    turn.tell(w.id, Phase.REVIEWING)
    change = w.change
    if change is not None:
        turn.publish(
            ReviewWanted(
                worker=str(w.id),
                attempt=w.attempt,
                files=change.files,
                insertions=change.insertions,
                deletions=change.deletions,
            )
        )


def is_mergeable(state: RunState, w: Worker) -> bool:
    """There is a commit, and its step means to merge it."""
    return has_commit(w) and state.plan.step(w.id.step).merge.lands
