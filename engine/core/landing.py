"""Apply the facts of a review and a landing."""

from dataclasses import replace

from engine.core import facts as f
from engine.core.effects import RevertLanding
from engine.core.lifecycle import want_review
from engine.core.outcome import is_despite_check
from engine.core.state import Conflict, Landing, ResolvedTree, Reviewed, Worker
from engine.core.turn import CoreTurn
from engine.errors import IllegalTransition
from engine.messages.commands import LandWish
from engine.messages.events import (
    CheckFinished,
    ConflictsFound,
    Landed,
    LandingDelayed,
    LandingUndone,
    UndoRefused,
)
from engine.messages.results import Badge, Outcome
from engine.phases import Phase, StopCause


def approved(turn: CoreTurn, w: Worker, fact: f.Approved) -> None:
    """Begin to land what a human wants on the target."""
    badges = (w.badges | {Badge.APPROVED}) - {Badge.CHECK_FAILED, Badge.LAND_REFUSED}
    after = replace(w, landing=Landing(wish=fact.wish), error=None, badges=badges)
    turn.tell(after, Phase.LANDING)


def approval_noted(turn: CoreTurn, w: Worker, _fact: f.ApprovalNoted) -> None:
    """Show a badge until it lands."""
    if w.phase is Phase.REVIEWING:
        turn.change(replace(w, badges=w.badges | {Badge.APPROVED}))


def rejected(turn: CoreTurn, w: Worker, _fact: f.Rejected) -> None:
    """Discard what a human gave up; the change stays on its ref."""
    after = replace(w, outcome=Outcome.CANCELLED, cause=StopCause.USER)
    turn.tell(after, Phase.DISCARDED)


def chosen(turn: CoreTurn, w: Worker, _fact: f.Chosen) -> None:
    """Make it the step's choice; the joint rules see to the others."""
    if not w.outcome.is_well:
        raise IllegalTransition(turn.story(w.id))
    turn.change_step(w.id.step, replace(turn.state.steps[w.id.step], chosen=w.id))
    landing = replace(w.landing, is_by_hand=False)
    turn.change(replace(w, landing=landing, badges=w.badges | {Badge.CHOSEN}))


def land_prepared(turn: CoreTurn, w: Worker, fact: f.LandPrepared) -> None:
    """Remember the landing: from here on it only goes forward."""
    if w.phase is Phase.LANDING:
        turn.change(replace(w, landing=replace(w.landing, prepared=fact.detail)))
    else:
        turn.drop()


def landed(turn: CoreTurn, w: Worker, fact: f.Landed) -> None:
    """Settle it as landed."""
    landing = replace(w.landing, in_the_way=(), landed=fact.new, is_undone=False)
    turn.tell(replace(w, landing=landing), Phase.LANDED)
    turn.publish(
        Landed(
            **w.told,
            target=fact.target,
            old=fact.old,
            new=fact.new,
            is_despite_check=is_despite_check(turn.state, w),
            note=fact.note,
        )
    )


def conflicts_found(turn: CoreTurn, w: Worker, fact: f.ConflictsFound) -> None:
    """Wait for a human to merge it with the target."""
    after = replace(
        w,
        review=replace(w.review, conflict=Conflict(paths=fact.paths), resolution=None),
        landing=replace(w.landing, prepared=None),
        error=fact.reason or None,
    )
    turn.tell(after, Phase.CONFLICTED)
    turn.publish(ConflictsFound(**w.told, paths=fact.paths))


def land_refused(turn: CoreTurn, w: Worker, fact: f.LandRefused) -> None:
    """Go back to review: nothing was moved, and a human sees why."""
    after = replace(
        w,
        landing=replace(
            w.landing,
            wish=None,
            prepared=None,
            in_the_way=fact.in_the_way,
            is_carry_refused=fact.is_carry_refused,
        ),
        error=fact.reason,
        badges=(w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED},
    )
    turn.tell(after, Phase.REVIEWING)


def land_delayed(turn: CoreTurn, w: Worker, fact: f.LandDelayed) -> None:
    """Note the files in its way; it goes on by itself, and a human may stop it until then."""
    if w.phase is Phase.LANDING:
        turn.change(replace(w, landing=replace(w.landing, in_the_way=fact.in_the_way)))
        told = LandingDelayed(**w.told, in_the_way=fact.in_the_way)
        turn.publish(told)
    else:
        turn.drop()


def resolved(turn: CoreTurn, w: Worker, fact: f.Resolved) -> None:
    """Go back to where the conflict was met; work on a base waits for a slot again.

    A check that was overruled before was another tree's: what counts is what is said of this one.
    """
    is_of_base = w.review.is_conflict_of_base
    wish = replace(
        w.landing.wish or LandWish(),
        is_despite_check=fact.is_despite_check,
        result=fact.tree if fact.is_seen else None,
    )
    resolution = ResolvedTree(tree=fact.tree, onto=fact.onto)
    after = replace(
        w,
        review=replace(w.review, conflict=None, resolution=resolution),
        landing=replace(w.landing, wish=None if is_of_base else wish),
        error=None,
    )
    turn.tell(after, Phase.QUEUED if is_of_base else Phase.LANDING)


def rechecked(turn: CoreTurn, w: Worker, fact: f.Rechecked) -> None:
    """Keep the newest result of a check on the tree under review or about to land."""
    if w.phase not in {Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING}:
        return
    passed = w.badges - {Badge.CHECK_FAILED}
    badges = passed if fact.check.passed else passed | {Badge.CHECK_FAILED}
    review = replace(w.review, check=fact.check, is_check_stale=False)
    turn.change(replace(w, review=review, badges=badges))
    turn.publish(CheckFinished(**w.told, check=fact.check, is_for_landing=fact.is_for_landing))


def hunks_left_out(turn: CoreTurn, w: Worker, fact: f.HunksLeftOut) -> None:
    """Review another change now: nothing that was said of the last one holds."""
    if w.phase is not Phase.REVIEWING:
        turn.drop()
        return
    known = w.review.check
    edited = w.review.edited if fact.edited is None else fact.edited
    whole = fact.whole or w.review.whole or w.change
    review = Reviewed(
        whole=whole if fact.hunks or edited else None,
        left_out=fact.hunks,
        edited=edited,
        check=known,
        is_check_stale=known is not None and known.tree != fact.change.tree,
    )
    after = replace(
        w,
        change=fact.change,
        review=review,
        landing=replace(w.landing, wish=None, is_by_hand=True),
        error=None,
        badges=w.badges - {Badge.APPROVED, Badge.CHECK_FAILED, Badge.LAND_REFUSED},
    )
    want_review(turn, turn.change(after))


def undo_requested(turn: CoreTurn, w: Worker, fact: f.UndoRequested) -> None:
    """Move the target back; the worker follows once it has been."""
    prepared = w.landing.prepared
    if w.phase is Phase.LANDED and prepared is not None:
        turn.change(replace(w, landing=replace(w.landing, undoing=fact.by), error=None))
        undo = RevertLanding(**w.who, prepared=prepared)
        turn.effects.append(undo)


def landing_undone(turn: CoreTurn, w: Worker, fact: f.LandingUndone) -> None:
    """Go back to review, and stay there until a human lands it again."""
    after = replace(
        w,
        landing=Landing(
            is_undone=True,
            undoing=w.landing.undoing,
            undone_on=fact.target,
            is_by_hand=True,
        ),
        error=f"its landing on {fact.target} was undone",
        badges=(w.badges | {Badge.LAND_REFUSED}) - {Badge.APPROVED},
    )
    turn.tell(after, Phase.REVIEWING)
    turn.publish(LandingUndone(**w.told, target=fact.target, new=fact.new, is_added=fact.is_added))


def undo_refused(turn: CoreTurn, w: Worker, fact: f.UndoRefused) -> None:
    """Say why it stays landed."""
    turn.change(replace(w, error=fact.reason))
    turn.publish(UndoRefused(**w.told, reason=fact.reason))
