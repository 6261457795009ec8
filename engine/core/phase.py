"""List the moves between phases: two literal tables, and nothing else changes a phase.

`TOLD` lists what facts may do, `RULED` what the joint rules may do afterwards. A move that stands
in neither is a bug of ours. ARCHITECTURE.md's diagram is drawn from these tables.
"""

from collections.abc import Mapping

from engine.phases import Phase

WAITING, QUEUED, PREPARING, RUNNING = Phase.WAITING, Phase.QUEUED, Phase.PREPARING, Phase.RUNNING
STOPPING, COLLECTING, CHECKING = Phase.STOPPING, Phase.COLLECTING, Phase.CHECKING
REVIEWING, LANDING, CONFLICTED = Phase.REVIEWING, Phase.LANDING, Phase.CONFLICTED
BACKING_OFF, LANDED, FINISHED = Phase.BACKING_OFF, Phase.LANDED, Phase.FINISHED
DISCARDED, FAILED, CANCELLED, SKIPPED = (
    Phase.DISCARDED,
    Phase.FAILED,
    Phase.CANCELLED,
    Phase.SKIPPED,
)

TOLD: Mapping[Phase, Mapping[str, frozenset[Phase]]] = {
    WAITING: {"StopRequested": frozenset({CANCELLED})},
    QUEUED: {"StopRequested": frozenset({CANCELLED})},
    PREPARING: {
        "WorkspaceReady": frozenset({RUNNING}),
        "BaseConflicted": frozenset({CONFLICTED}),
        "PrepareFailed": frozenset({FAILED}),
        "StopRequested": frozenset({STOPPING}),
    },
    RUNNING: {
        "AttemptEnded": frozenset({COLLECTING}),
        "StopRequested": frozenset({STOPPING}),
    },
    STOPPING: {
        "AttemptEnded": frozenset({COLLECTING}),
        "ActivityEnded": frozenset({CANCELLED, FAILED}),
    },
    COLLECTING: {
        "Collected": frozenset({CHECKING, REVIEWING, FINISHED, FAILED, CANCELLED, BACKING_OFF}),
    },
    CHECKING: {
        "CheckPassed": frozenset({REVIEWING, FINISHED}),
        "CheckFailed": frozenset({FAILED}),
        "StopRequested": frozenset({STOPPING}),
    },
    REVIEWING: {
        "Approved": frozenset({LANDING}),
        "Rejected": frozenset({DISCARDED}),
        "RetryRequested": frozenset({QUEUED}),
        "StopRequested": frozenset({CANCELLED}),
    },
    LANDING: {
        "Landed": frozenset({LANDED}),
        "ConflictsFound": frozenset({CONFLICTED}),
        "CheckFailed": frozenset({REVIEWING}),
        "LandRefused": frozenset({REVIEWING}),
        "StopRequested": frozenset({REVIEWING}),
    },
    CONFLICTED: {
        "Resolved": frozenset({LANDING, QUEUED}),
        "Rejected": frozenset({DISCARDED}),
        "RetryRequested": frozenset({QUEUED}),
        "StopRequested": frozenset({CANCELLED}),
    },
    BACKING_OFF: {
        "BackoffElapsed": frozenset({QUEUED}),
        "RetryRequested": frozenset({QUEUED}),
        "StopRequested": frozenset({CANCELLED}),
    },
    FAILED: {"RetryRequested": frozenset({QUEUED})},
    CANCELLED: {"RetryRequested": frozenset({QUEUED})},
    DISCARDED: {"RetryRequested": frozenset({QUEUED})},
    SKIPPED: {"RetryRequested": frozenset({WAITING})},
    LANDED: {"LandingUndone": frozenset({REVIEWING})},
    FINISHED: {"RetryRequested": frozenset({QUEUED})},
}

RULED: Mapping[Phase, frozenset[Phase]] = {
    WAITING: frozenset({QUEUED, SKIPPED, CANCELLED}),
    QUEUED: frozenset({PREPARING, WAITING, BACKING_OFF, CANCELLED}),
    PREPARING: frozenset({STOPPING}),
    RUNNING: frozenset({STOPPING}),
    CHECKING: frozenset({STOPPING}),
    REVIEWING: frozenset({DISCARDED, LANDING}),
    LANDING: frozenset({REVIEWING}),
    CONFLICTED: frozenset({DISCARDED}),
    BACKING_OFF: frozenset({CANCELLED}),
    FAILED: frozenset({BACKING_OFF}),
    CANCELLED: frozenset({BACKING_OFF, WAITING}),
    SKIPPED: frozenset({WAITING}),
}

QUIET: Mapping[Phase, frozenset[str]] = {
    STOPPING: frozenset(
        {"WorkspaceReady", "BaseConflicted", "PrepareFailed", "CheckPassed", "CheckFailed"}
    ),
    REVIEWING: frozenset({"LandPrepared", "ConflictsFound", "CheckFailed", "LandRefused"}),
} | {phase: frozenset({"BackoffElapsed"}) for phase in (QUEUED, CANCELLED, WAITING, SKIPPED)}
"""Facts that were on their way when the phase changed: expected there, and without effect."""

FINDS_ACTIVITY = frozenset({PREPARING, RUNNING, CHECKING})
"""Phases in which a stop must first end something that runs."""

STOPPED_BY_POLICY = frozenset({WAITING, QUEUED, PREPARING, RUNNING, CHECKING, BACKING_OFF})
"""The phases that fail-fast and a run's stop act on; finished work stays for a human to land."""
STOPPED_BY_POLICY_WHILE_COLLECTING = STOPPED_BY_POLICY | {COLLECTING}


def is_told(phase: Phase, fact: str, to: Phase) -> bool:
    """Return whether a fact may move a worker from one phase to another."""
    return to in TOLD[phase].get(fact, frozenset())


def is_ruled(phase: Phase, to: Phase) -> bool:
    """Return whether a joint rule may move a worker from one phase to another."""
    return to in RULED.get(phase, frozenset())
