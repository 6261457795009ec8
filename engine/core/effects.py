"""Define the effects that the core asks for: idempotent, performed by `engine.run`.

Each phase has one entry effect, issued again after a recovery; the rest are small acts on an
attempt that runs, or events to publish.
"""

from engine.core.facts import About
from engine.core.state import ResolvedTree
from engine.ids import WorkerId
from engine.limits import Limits
from engine.messages.commands import LandWish
from engine.messages.events import MustArrive
from engine.messages.results import Moment
from engine.phases import StopCause
from engine.plan.model import RetryMode
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class _WorkerEffect:
    worker: WorkerId
    attempt: int

    def about(self, at: float) -> About:
        """Return the beginning of a fact about what it was performed for."""
        return About(worker=self.worker, attempt=self.attempt, at=at)


@dataclass(frozen=True, kw_only=True)
class PrepareWorkspace(_WorkerEffect):
    """Make, fill and set up the workspace on top of `bases`, and fill the prompt.

    Attributes:
        bases: The upstream attempts whose changes this one builds on.
        previous: The attempt before, whose tree or worktree `continue` and `resume` start from.
        start: Where a fresh attempt begins in place of its base.
    """

    bases: tuple[tuple[WorkerId, int], ...]
    mode: RetryMode
    previous: int | None
    resolved_base: str | None = None
    start: Moment | None = None


@dataclass(frozen=True, kw_only=True)
class StartAgent(_WorkerEffect):
    """Start the agent, or find it already running, and report its end."""


@dataclass(frozen=True, kw_only=True)
class StopActivity(_WorkerEffect):
    """End whatever runs for this attempt, with all its processes."""

    cause: StopCause
    is_kill: bool


@dataclass(frozen=True, kw_only=True)
class Collect(_WorkerEffect):
    """Keep everything the attempt left."""


@dataclass(frozen=True, kw_only=True)
class RunCheck(_WorkerEffect):
    """Run the step's check on the worker's own tree."""


@dataclass(frozen=True, kw_only=True)
class PerformLanding(_WorkerEffect):
    """Merge, check and move the target; or roll a prepared landing forward.

    Attributes:
        resolution: What a human made of the conflicts.
        prepared: The journaled detail of the landing that is to be rolled forward.
    """

    wish: LandWish
    resolution: ResolvedTree | None = None
    prepared: str | None = None


@dataclass(frozen=True, kw_only=True)
class StartTimer(_WorkerEffect):
    """Say `BackoffElapsed` at this wall-clock time, or at once if it has passed.

    Attributes:
        is_for_login: Say it when the agent's login is another one, whatever the time.
    """

    until: float
    is_for_login: bool = False


@dataclass(frozen=True, kw_only=True)
class ReleaseWorkspace(_WorkerEffect):
    """Give back what the worker no longer needs, as far as that is provably safe."""


EntryEffect = (
    PrepareWorkspace
    | StartAgent
    | StopActivity
    | Collect
    | RunCheck
    | PerformLanding
    | StartTimer
    | ReleaseWorkspace
)


@dataclass(frozen=True, kw_only=True)
class SendAnswer(_WorkerEffect):
    """Tell the agent the answer to its question."""

    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class SendSteer(_WorkerEffect):
    """Say something to the running agent."""

    text: str


@dataclass(frozen=True, kw_only=True)
class SendInterrupt(_WorkerEffect):
    """Break off the agent's turn."""


@dataclass(frozen=True, kw_only=True)
class HoldClocks(_WorkerEffect):
    """Stop or restart the attempt's time limit: a human is awaited, or no longer."""

    is_held: bool


@dataclass(frozen=True, kw_only=True)
class FreezeAttempt(_WorkerEffect):
    """Freeze the attempt's whole tree."""


@dataclass(frozen=True, kw_only=True)
class ThawAttempt(_WorkerEffect):
    """Let the attempt's tree go on."""


@dataclass(frozen=True, kw_only=True)
class ChangeLimits(_WorkerEffect):
    """Change the limits of the running attempt."""

    limits: Limits


@dataclass(frozen=True, kw_only=True)
class RevertLanding(_WorkerEffect):
    """Take a landing back, as its journaled detail describes it."""

    prepared: str


SmallEffect = (
    RevertLanding
    | SendAnswer
    | SendSteer
    | SendInterrupt
    | HoldClocks
    | FreezeAttempt
    | ThawAttempt
    | ChangeLimits
)


@dataclass(frozen=True, kw_only=True)
class Publish:
    """Tell every observer; journaled together with the fact that caused it."""

    event: MustArrive


Effect = EntryEffect | SmallEffect | Publish
