"""Say whether an idea can be done to a worker now, and if not, why: it makes keys gray."""

from collections.abc import Callable, Mapping

from engine.messages.results import Badge, StepView, WorkerView
from engine.phases import Phase
from tui.words.standing import is_in_plain_folder

_CAN_STOP = frozenset(Phase) - {
    Phase.LANDED,
    Phase.FINISHED,
    Phase.DISCARDED,
    Phase.FAILED,
    Phase.CANCELLED,
    Phase.SKIPPED,
}
_CAN_RETRY = frozenset(
    {
        Phase.REVIEWING,
        Phase.CONFLICTED,
        Phase.BACKING_OFF,
        Phase.FAILED,
        Phase.CANCELLED,
        Phase.DISCARDED,
        Phase.SKIPPED,
    }
)
NOT_OPENED = "you have not opened its diff yet"
_Reason = Callable[[WorkerView, StepView], str]


def why_not(idea: str, worker: WorkerView, step: StepView, *, is_opened: bool) -> str:
    """Return why this idea cannot be done to this worker now; empty where it can.

    `is_opened` says that the diff of its change has been opened: only then may it be approved.
    """
    rule = _RULES.get(idea)
    reason = rule(worker, step) if rule else ""
    if idea == "yes" and not (reason or is_opened or worker.questions):
        return NOT_OPENED
    return reason


_STANDS = {
    Phase.BACKING_OFF: "it waits for its next attempt",
    Phase.REVIEWING: "it waits for review",
    Phase.CONFLICTED: "it has a conflict",
    Phase.LANDED: "it has landed",
    Phase.FINISHED: "it has finished",
    Phase.FAILED: "it has failed",
    Phase.CANCELLED: "it was cancelled",
    Phase.DISCARDED: "it was discarded",
    Phase.SKIPPED: "it was skipped",
}


def _is(worker: WorkerView) -> str:
    return _STANDS.get(worker.phase) or f"it is {worker.phase.lower()}"


def _allow(worker: WorkerView, step: StepView) -> str:
    if worker.questions:
        return ""
    if worker.phase is not Phase.REVIEWING:
        return f"there is nothing to approve; {_is(worker)}"
    if Badge.APPROVED in worker.badges and not step.is_choice_due:
        return "it is approved already"
    return ""


def _allow_for_run(worker: WorkerView, _: StepView) -> str:
    return "" if worker.questions else "it has no question"


def _stop(worker: WorkerView, _: StepView) -> str:
    if worker.questions or worker.phase in _CAN_STOP:
        return ""
    return f"it is not running; {_is(worker)}"


def _retry(worker: WorkerView, _: StepView) -> str:
    if worker.phase in _CAN_RETRY:
        return ""
    return f"{_is(worker)}; stop it first" if worker.phase.holds_slot else _is(worker)


def _steer(worker: WorkerView, _: StepView) -> str:
    if worker.questions or worker.phase is Phase.RUNNING:
        return ""
    return f"only a running agent reads messages; {_is(worker)}"


def _checkpoint(worker: WorkerView, _: StepView) -> str:
    if worker.phase is Phase.RUNNING:
        return ""
    return f"plait saves files only while an agent runs; {_is(worker)}"


def _pause(worker: WorkerView, _: StepView) -> str:
    return "" if worker.phase.holds_slot else f"it is not running; {_is(worker)}"


def _land(worker: WorkerView, step: StepView) -> str:
    if worker.phase is not Phase.REVIEWING:
        return f"it has no approved change to land; {_is(worker)}"
    if step.is_choice_due:
        return "a candidate must be chosen first"
    if worker.change is None:
        return "it has no change"
    return "" if Badge.APPROVED in worker.badges else "it is not approved yet"


def _diff(worker: WorkerView, _: StepView) -> str:
    if is_in_plain_folder(worker):
        return f"it works in a plain folder, which has no diff; look in {worker.workspace}"
    return "" if worker.attempt or worker.change else "it has not started"


def _reject(worker: WorkerView, _: StepView) -> str:
    return "" if worker.phase in {Phase.REVIEWING, Phase.CONFLICTED} else _is(worker)


def _review(worker: WorkerView, _: StepView) -> str:
    return (
        ""
        if worker.phase is Phase.CONFLICTED or worker.in_the_way
        else f"it has no conflicts; {_is(worker)}"
    )


_RULES: Mapping[str, _Reason] = {
    "yes": _allow,
    "yes_wide": _allow_for_run,
    "no": _stop,
    "retry": _retry,
    "retry_with": _retry,
    "steer": _steer,
    "comment": _steer,
    "pause": _pause,
    "checkpoint": _checkpoint,
    "land": _land,
    "diff": _diff,
    "reject": _reject,
    "merge": _review,
}
