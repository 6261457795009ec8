"""Events and reports as the outside reads them: the JSON that scripts rely on.

Names are only ever added. `v` grows when one goes.
"""

from datetime import UTC, datetime
from typing import Any

from engine.messages.events import Told, public_name
from engine.messages.results import RunReport, RunView, StepResult
from engine.store.codec import dump

VERSION = 1


def event_json(told: Told) -> dict[str, Any]:
    """One event as a flat object."""
    event = dump(told.event)
    place = {"after": told.after} if told.seq is None else {"seq": told.seq}
    head = {"v": VERSION, **place, "at": timestamp(told.at), "run": told.run}
    body = {name: _plain(value) for name, value in event.items() if name != "type"}
    report = getattr(told.event, "report", None)
    if isinstance(report, RunReport):
        body["report"] = report_json(report)
    return {**head, "type": public_name(type(told.event)), **body}


def report_json(report: RunReport) -> dict[str, Any]:
    """A run's report."""
    found: dict[str, Any] = _plain(dump(report))
    found["steps"] = {name: step_json(step) for name, step in report.steps.items()}
    return found


def step_json(step: StepResult) -> dict[str, Any]:
    """A step's results, with their counts."""
    return {
        **_plain(dump(step)),
        "worker_workspaces": list(step.worker_workspaces),
        "total_workers": step.total_workers,
        "success_count": step.success_count,
        "fail_count": step.fail_count,
        "cancelled_count": step.cancelled_count,
    }


def view_json(view: RunView) -> dict[str, Any]:
    """A run as it stands."""
    found: dict[str, Any] = _plain(dump(view))
    return found


def timestamp(at: float) -> str:
    """A moment in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """Without the names of our own classes."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if name != "type"}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
