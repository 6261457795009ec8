"""What the facts of a review and a landing do."""

from dataclasses import replace

from engine.core import facts as f
from engine.core.effects import UndoLanding
from engine.core.outcome import is_despite_check
from engine.core.state import Worker
from engine.core.turn import Turn
from engine.errors import IllegalTransition
from engine.messages.events import (
    CheckFinished,
    ConflictsFound,
    Landed,
    LandingDelayed,
    LandingUndone,
    ReviewWanted,
    UndoRefused,
)
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause


def approved(turn: Turn, w: Worker, fact: f.Approved) -> None:
    """A human wants it on the target."""
    gone = {Badge.CHECK_FAILED, Badge.LAND_REFUSED}
    turn.tell(
        w.id,
        Phase.LANDING,
        land=fact,
        prepared=None,
        error=None,
        in_the_way=(),
        is_undone=False,
        badges=(w.badges | {Badge.APPROVED}) - gone,
    )


def approval_noted(turn: Turn, w: Worker, fact: f.ApprovalNoted) -> None:
    """A badge until it lands."""
    del fact
    if w.phase is Phase.REVIEWING:
        turn.change(w.id, badges=w.badges | {Badge.APPROVED})


def rejected(turn: Turn, w: Worker, fact: f.Rejected) -> None:
    """A human gave it up; the change stays on its ref."""
    del fact
    turn.tell(w.id, Phase.DISCARDED, outcome=Outcome.CANCELLED, cause=StopCause.USER)


def chosen(turn: Turn, w: Worker, fact: f.Chosen) -> None:
    """The step's choice; the joint rules see to the others."""
    del fact
    if w.outcome is not Outcome.SUCCESS:
        raise IllegalTransition(turn.story(w.id))
    turn.change_step(w.id.step, chosen=w.id)
    turn.change(w.id, badges=w.badges | {Badge.CHOSEN})


def land_prepared(turn: Turn, w: Worker, fact: f.LandPrepared) -> None:
    """From here on the landing only goes forward."""
    if w.phase is Phase.LANDING:
        turn.change(w.id, prepared=fact.detail)
    else:
        turn.drop()


def landed(turn: Turn, w: Worker, fact: f.Landed) -> None:
    """It is on the target."""
    turn.tell(w.id, Phase.LANDED, in_the_way=(), landed=fact.new)
    turn.publish(
        Landed(
            worker=str(w.id),
            attempt=w.attempt,
            target=fact.target,
            old=fact.old,
            new=fact.new,
            is_despite_check=is_despite_check(turn.state, w),
            note=fact.note,
        )
    )


def conflicts_found(turn: Turn, w: Worker, fact: f.ConflictsFound) -> None:
    """A human has to merge it with the target."""
    turn.tell(
        w.id,
        Phase.CONFLICTED,
        conflicts=fact.paths,
        is_conflict_of_base=False,
        resolved=None,
        prepared=None,
        error=fact.reason or None,
    )
    turn.publish(ConflictsFound(worker=str(w.id), attempt=w.attempt, paths=fact.paths))


def land_refused(turn: Turn, w: Worker, fact: f.LandRefused) -> None:
    """Nothing was moved; a human sees why."""
    badges = (w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED}
    turn.tell(
        w.id,
        Phase.REVIEWING,
        land=None,
        prepared=None,
        error=fact.reason,
        badges=badges,
        in_the_way=fact.in_the_way,
    )


def land_delayed(turn: Turn, w: Worker, fact: f.LandDelayed) -> None:
    """It goes on by itself; a human may stop it until then."""
    if w.phase is Phase.LANDING:
        turn.change(w.id, in_the_way=fact.in_the_way)
        told = LandingDelayed(worker=str(w.id), attempt=w.attempt, in_the_way=fact.in_the_way)
        turn.publish(told)
    else:
        turn.drop()


def resolved(turn: Turn, w: Worker, fact: f.Resolved) -> None:
    """Back to where the conflict was met; work on a base waits for a slot again.

    A check that was overruled before was another tree's: what counts is what is said of this one.
    """
    to = Phase.QUEUED if w.is_conflict_of_base else Phase.LANDING
    wish = w.land or f.Approved(worker=w.id, attempt=w.attempt)
    turn.tell(
        w.id,
        to,
        land=None
        if w.is_conflict_of_base
        else replace(
            wish,
            is_despite_check=fact.is_despite_check,
            result=fact.tree if fact.is_seen else None,
        ),
        error=None,
        resolved=fact.tree,
        resolved_onto=fact.onto,
        conflicts=(),
        is_conflict_of_base=False,
    )


def rechecked(turn: Turn, w: Worker, fact: f.Rechecked) -> None:
    """Keep the newest result of a check on the tree under review or about to land."""
    if w.phase not in {Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING}:
        return
    passed = w.badges - {Badge.CHECK_FAILED}
    badges = passed if fact.check.passed else passed | {Badge.CHECK_FAILED}
    turn.change(w.id, check=fact.check, is_check_stale=False, badges=badges)
    turn.publish(
        CheckFinished(
            worker=str(w.id),
            attempt=w.attempt,
            check=fact.check,
            is_for_landing=fact.is_for_landing,
        )
    )


def hunks_left_out(turn: Turn, w: Worker, fact: f.HunksLeftOut) -> None:
    """What waits for review is another change now: whatever was said of the last one is void."""
    if w.phase is not Phase.REVIEWING:
        turn.drop()
        return
    gone = {Badge.APPROVED, Badge.CHECK_FAILED, Badge.LAND_REFUSED}
    turn.change(
        w.id,
        change=fact.change,
        whole=(w.whole or w.change) if fact.hunks else None,
        left_out=fact.hunks,
        is_check_stale=w.check is not None and w.check.tree != fact.change.tree,
        badges=w.badges - gone,
        error=None,
        land=None,
        resolved=None,
        resolved_onto=None,
    )
    turn.publish(
        ReviewWanted(
            worker=str(w.id),
            attempt=w.attempt,
            files=fact.change.files,
            insertions=fact.change.insertions,
            deletions=fact.change.deletions,
        )
    )


def undo_requested(turn: Turn, w: Worker, fact: f.UndoRequested) -> None:
    """The target is moved back; the worker follows once it has been."""
    del fact
    if w.phase is Phase.LANDED and w.prepared is not None:
        turn.change(w.id, error=None)
        turn.effects.append(UndoLanding(worker=w.id, attempt=w.attempt, prepared=w.prepared))


def landing_undone(turn: Turn, w: Worker, fact: f.LandingUndone) -> None:
    """Back to review, where it stays until a human lands it again."""
    turn.tell(
        w.id,
        Phase.REVIEWING,
        land=None,
        prepared=None,
        landed=None,
        is_undone=True,
        error=f"its landing on {fact.target} was undone",
        badges=(w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED},
    )
    turn.publish(
        LandingUndone(
            worker=str(w.id),
            attempt=w.attempt,
            target=fact.target,
            new=fact.new,
            is_added=fact.is_added,
        )
    )


def undo_refused(turn: Turn, w: Worker, fact: f.UndoRefused) -> None:
    """It stays landed, and says why."""
    turn.change(w.id, error=fact.reason)
    turn.publish(UndoRefused(worker=str(w.id), attempt=w.attempt, reason=fact.reason))
