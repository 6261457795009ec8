"""Which function hears which fact of a worker."""

from collections.abc import Callable, Mapping
from typing import Any

from engine.core import dialogue, landing, lifecycle, stopping
from engine.core import facts as f
from engine.core.state import Worker
from engine.core.turn import Turn

TELLERS: Mapping[type[f.WorkerFact], Callable[[Turn, Worker, Any], None]] = {
    f.WorkspaceReady: lifecycle.workspace_ready,
    f.BaseConflicted: lifecycle.base_conflicted,
    f.PrepareFailed: lifecycle.prepare_failed,
    f.AttemptEnded: lifecycle.attempt_ended,
    f.ActivityEnded: lifecycle.activity_ended,
    f.Collected: lifecycle.collected,
    f.CheckPassed: lifecycle.check_passed,
    f.CheckFailed: lifecycle.check_failed,
    f.Approved: landing.approved,
    f.ApprovalNoted: landing.approval_noted,
    f.Rejected: landing.rejected,
    f.Chosen: landing.chosen,
    f.LandPrepared: landing.land_prepared,
    f.Landed: landing.landed,
    f.UndoRequested: landing.undo_requested,
    f.LandingUndone: landing.landing_undone,
    f.UndoRefused: landing.undo_refused,
    f.ConflictsFound: landing.conflicts_found,
    f.LandRefused: landing.land_refused,
    f.LandDelayed: landing.land_delayed,
    f.Resolved: landing.resolved,
    f.Rechecked: landing.rechecked,
    f.HunksLeftOut: landing.hunks_left_out,
    f.RetryRequested: stopping.retry_requested,
    f.BackoffElapsed: stopping.backoff_elapsed,
    f.StopRequested: stopping.stop_requested,
    f.AgentAsked: dialogue.agent_asked,
    f.HumanAnswered: dialogue.human_answered,
    f.QuestionWithdrawn: dialogue.question_withdrawn,
    f.AgentSteered: dialogue.agent_steered,
    f.SteerHeard: dialogue.steer_heard,
    f.SteerUnheard: dialogue.steer_unheard,
    f.AgentInterrupted: dialogue.agent_interrupted,
    f.RateLimitSeen: dialogue.rate_limit_seen,
    f.StallSeen: dialogue.stall_seen,
    f.ViolationSeen: dialogue.violation_seen,
    f.WorkerPaused: dialogue.worker_paused,
    f.WorkerResumed: dialogue.worker_resumed,
    f.LimitsSet: dialogue.limits_set,
}
"""Which function hears which fact; a test holds it to be complete."""
