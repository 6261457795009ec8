"""Figures that were cut to what is allowed, gathered while a plan is made."""

from engine.plan.model import Clamp
from engine.spec.words import HINT_CAP, WORKER_CAP


class Clamps:
    """Cuts figures and remembers what it cut."""

    def __init__(self, asked_workers: int) -> None:
        self.made: list[Clamp] = []
        self.workers = self.cut(
            "runtime.max_concurrent_workers",
            asked_workers,
            WORKER_CAP,
            f"an engine runs at most {WORKER_CAP} workers at once",
        )

    def cut(self, where: str, asked: int, most: int, reason: str) -> int:
        """The figure, or the most that is allowed."""
        if asked <= most:
            return asked
        self.made.append(Clamp(where=where, asked=asked, given=most, reason=reason))
        return most

    def cut_to_workers(self, where: str, asked: int) -> int:
        """The figure, or as many workers as may run at once."""
        reason = f"runtime.max_concurrent_workers is {self.workers}"
        return self.cut(where, asked, self.workers, reason)

    def hint(self, where: str, asked: int | None) -> int | None:
        """The sub-agents an agent is told it may spawn; None where there is nothing to say."""
        if asked is None or asked <= 1:
            return None
        reason = f"an agent is told at most {HINT_CAP} sub-agents"
        return self.cut(where, asked, HINT_CAP, reason)
