"""Facts of what is said between a running agent and its human, and of what is noticed meanwhile."""

from dataclasses import dataclass

from engine.core.fact_base import WorkerFactBase
from engine.limits import Limits
from engine.messages.results import Question


@dataclass(frozen=True, kw_only=True)
class AgentAsked(WorkerFactBase):
    """The agent waits for an answer."""

    question: Question


@dataclass(frozen=True, kw_only=True)
class HumanAnswered(WorkerFactBase):
    """A human, or a rule, answered; `by` says who, `is_for_run` that it holds from now on."""

    question: str
    answer: str
    by: str = "human"
    is_for_run: bool = False


@dataclass(frozen=True, kw_only=True)
class QuestionWithdrawn(WorkerFactBase):
    """The agent no longer waits for this answer."""

    question: str


@dataclass(frozen=True, kw_only=True)
class AgentSteered(WorkerFactBase):
    """A human said something to the running agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SteerHeard(WorkerFactBase):
    """What a human said has reached the agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SteerUnheard(WorkerFactBase):
    """What a human said did not reach the agent: it hears it when its session is taken up again.

    Attributes:
        is_refused: It hears nothing as long as it works, whatever is taken up.
    """

    text: str
    is_refused: bool = False


@dataclass(frozen=True, kw_only=True)
class AgentInterrupted(WorkerFactBase):
    """A human broke off what the agent was doing."""


@dataclass(frozen=True, kw_only=True)
class RateLimitSeen(WorkerFactBase):
    """The agent waits for its vendor; None means it no longer does."""

    until: float | None


@dataclass(frozen=True, kw_only=True)
class StallSeen(WorkerFactBase):
    """Nothing has moved for long (or again does): first a badge, then a question."""

    is_stalled: bool = True


@dataclass(frozen=True, kw_only=True)
class ViolationSeen(WorkerFactBase):
    """Something changed that this worker must not reach."""

    path: str


@dataclass(frozen=True, kw_only=True)
class WorkerPaused(WorkerFactBase):
    """A human froze the worker where it stands."""


@dataclass(frozen=True, kw_only=True)
class WorkerResumed(WorkerFactBase):
    """A human let a frozen worker go on."""


@dataclass(frozen=True, kw_only=True)
class LimitsSet(WorkerFactBase):
    """A human changed a worker's limits."""

    limits: Limits
