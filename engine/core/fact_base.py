"""What every fact about a worker names: the worker, the attempt, and when."""

from dataclasses import dataclass

from engine.ids import WorkerId


@dataclass(frozen=True, kw_only=True)
class WorkerFactBase:
    """Whom a fact speaks of; one about an older attempt is dropped."""

    worker: WorkerId
    attempt: int
    at: float = 0.0
