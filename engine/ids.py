"""Name runs, steps, workers and attempts, and write and parse those names.

Knows names only; it never looks whether the thing named exists.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType, Self

RunId = NewType("RunId", str)
"""The id of a run."""

STEP_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_WORKER = re.compile(r"(?P<step>[a-z0-9][a-z0-9_-]{0,39})/(?:worker_(?P<index>[1-9][0-9]*)|woven)")
WOVEN = 0
"""The index of a step's composite, woven from the hunks of its candidates: `step/woven`."""


@dataclass(frozen=True, order=True, slots=True)
class WorkerId:
    """One worker of one step: `implement/worker_2`, or `implement/woven`."""

    step: str
    index: int

    def __post_init__(self) -> None:
        if not STEP_NAME.fullmatch(self.step) or self.index < WOVEN:
            raise ValueError(f"not a worker's name: {self.step!r}, {self.index!r}")

    def __str__(self) -> str:
        return f"{self.step}/{self.short}"

    @property
    def short(self) -> str:
        """Return the part after the step: `worker_2`."""
        return "woven" if self.index == WOVEN else f"worker_{self.index}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the worker that `step/worker_2` or `step/woven` names."""
        match = _WORKER.fullmatch(text)
        if match is None:
            raise ValueError(f"not a worker's name: {text!r}")
        return cls(match["step"], int(match["index"] or WOVEN))


AGENT = "agent"
"""The role of an attempt's own agent; `setup`, `check` and the like run beside it."""


@dataclass(frozen=True, order=True, slots=True)
class AttemptId:
    """One attempt of one worker in one run: `a1b2/implement/worker_2@1`.

    Commands that run on an attempt's behalf have the same number and another role:
    `a1b2/implement/worker_2@1+check`.
    """

    run: RunId
    worker: WorkerId
    number: int
    role: str = AGENT

    def __str__(self) -> str:
        return f"{self.run}/{self.worker}@{self.number}{self._suffix}"

    @property
    def path(self) -> str:
        """Return the path of this attempt's files below a folder of runs."""
        return f"{self.run}/{self.worker}/attempt_{self.number}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.role == AGENT else f"+{self.role}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the attempt that `run/step/worker_2@1` names."""
        run, _, rest = text.partition("/")
        worker, _, tail = rest.rpartition("@")
        number, _, role = tail.partition("+")
        return cls(RunId(run), WorkerId.parse(worker), int(number), role or AGENT)


def meant(labels: Mapping[WorkerId, str], name: str) -> list[WorkerId]:
    """Return the workers a name can mean: `step/worker_1`, a tail of it, a step or a label."""
    exact = [worker for worker in labels if str(worker) == name]
    return exact or [
        worker
        for worker, label in labels.items()
        if str(worker).endswith(f"/{name}") or name in {worker.step, label}
    ]
