"""The state of a run: frozen, and changed by `advance` alone."""

from collections.abc import Mapping
from dataclasses import field

from engine.core.crew import Crew
from engine.core.facts import About, AttemptEnded, Shown, Who
from engine.ids import RunId, WorkerId
from engine.limits import Enforcement, Limits, Usage
from engine.messages.asked import KeptAnswer, Question
from engine.messages.commands import LandWish
from engine.messages.events import Delivery
from engine.messages.results import Badge, Change, CheckResult, Holding, Moment, Outcome
from engine.messages.roles import Speaker
from engine.phases import Phase, StopCause
from engine.plan.model import AgentChoice, Plan, PlannedStep, PlannedWorker, RetryMode
from engine.values import dataclass

Bases = tuple[tuple[WorkerId, int], ...]
"""The upstream attempts whose changes a worker builds on."""


@dataclass(frozen=True, kw_only=True)
class Next:
    """The beginning of the next attempt, and what it hears of the last one.

    Attributes:
        previous: The attempt that `continue` and `resume` start from.
        words: A human's feedback, in their words.
        carried: What of it was said to an agent that did not hear it, until this attempt does.
        prompt: What it is asked in place of what was planned; kept until something else is asked.
        is_turn: That prompt is new, so that this is no second try at the last one.
        failure: What went wrong last time, in ours.
        check_output: What the failed check said.
        output_tail: The last words of the attempt before.
        start: What a fresh one begins from, in place of its base.
        not_before: When its back-off or its vendor's rate limit ends.
    """

    mode: RetryMode = RetryMode.FRESH
    previous: int | None = None
    words: str = ""
    carried: tuple[str, ...] = ()
    prompt: str | None = None
    is_turn: bool = False
    failure: str = ""
    check_output: str = ""
    output_tail: str = ""
    start: Moment | None = None
    not_before: float | None = None


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A stop that was asked for and has not come to its end."""

    cause: StopCause
    is_kill: bool = False


@dataclass(frozen=True, kw_only=True)
class HumanWords:
    """Something a human said to the running attempt: an answer, or, without a question, a steer."""

    text: str
    question: str | None = None
    is_heard: bool = True
    delivery: Delivery = Delivery.QUEUED


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The newest attempt and what has happened in it; another request for work ends it.

    Attributes:
        number: It only grows, and 0 means that none was begun.
        bases: What it was dispatched on; compared with what its dependencies offer now.
        stop: Asked for, first cause kept, cleared when the worker comes to rest.
        said: The messages that it got, in order: sent again to one that is re-adopted.
        violations: What changed that it must not reach; kept while its tree is gone on with.
        so_far: Its change when its files were last looked at, in figures alone.
        ended: How its agent ended.
    """

    number: int = 0
    bases: Bases = ()
    stop: Stop | None = None
    questions: tuple[Question, ...] = ()
    said: tuple[HumanWords, ...] = ()
    violations: tuple[str, ...] = ()
    rate_limited_until: float | None = None
    so_far: Change | None = None
    ended: AttemptEnded | None = None


@dataclass(frozen=True, kw_only=True)
class Begun:
    """The surroundings of the newest attempt that was made ready, until the next one is.

    Attributes:
        at: When it was ready.
        workspace: Its path at its site.
        made: The number of the attempt that the workspace was made for.
        site: The name of the workspace's site; empty for the engine's own machine.
        holds: The folders of its worktree; None where it holds the whole repository.
        prompt: What its agent is asked.
        feedback: What its agent hears of the attempt before.
    """

    at: float | None = None
    workspace: str | None = None
    branch: str | None = None
    base: str | None = None
    prompt: str = ""
    feedback: str = ""
    enforcement: tuple[Enforcement, ...] = ()
    made: int = 0
    site: str = ""
    holds: Holding | None = None


@dataclass(frozen=True, kw_only=True)
class History:
    """The sum of a worker's attempts.

    Attributes:
        tries: How many attempts failed since a human last asked for one.
        losses: When attempts of it were lost by no fault of its agent's, and begun again.
        is_given_up: It failed for good: no rule tries it again, however much time passes.
        is_by_hand: A human asked for its newest attempts: a sibling's failure does not stop it.
        ran: The newest attempt whose agent was started.
        collected: The newest attempt whose work was kept; never behind `ran` when at rest.
        used: What each attempt that has ended used, by its number.
    """

    tries: int = 0
    losses: tuple[float, ...] = ()
    is_given_up: bool = False
    is_by_hand: bool = False
    ran: int = 0
    collected: int = 0
    worked_s: float = 0.0
    used: tuple[tuple[int, Usage], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Session:
    """The session of a worker's agent, as its newest attempt that had one left it.

    Attributes:
        id: Its name; None where there is none that can be resumed.
        workspace: Where it last worked; some agents resume only there.
        usage: What it had used by then; some agents count on from it.
    """

    id: str | None = None
    workspace: str = ""
    usage: Usage | None = None


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """A merge that a human has to make: with the target, or of the changes it builds on."""

    paths: tuple[str, ...]
    is_of_base: bool = False


@dataclass(frozen=True, kw_only=True)
class ResolvedTree:
    """The tree that a human made of a conflict.

    Attributes:
        tree: The result.
        onto: The commit of the target that it was made against.
    """

    tree: str
    onto: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """The judgment of checks and humans on the change that was collected.

    Attributes:
        whole: What was collected or edited, where a human took it in hand; `Worker.change` is the
            same without the hunks that are left out.
        left_out: Those hunks, by their keys.
        edited: The files that a human edited; `whole` has their edits.
        is_check_stale: `check` speaks of the change as it was before hunks were left out or back.
        resolution: What a human made of the conflict.
    """

    whole: Change | None = None
    left_out: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    check: CheckResult | None = None
    is_check_stale: bool = False
    conflict: Conflict | None = None
    resolution: ResolvedTree | None = None

    @property
    def is_conflict_of_base(self) -> bool:
        """Return whether what the worker builds on conflicts, not its change with the target."""
        return self.conflict is not None and self.conflict.is_of_base


@dataclass(frozen=True, kw_only=True)
class Landing:
    """The change on its way to the target.

    Attributes:
        wish: How a human wants it landed.
        prepared: The journaled detail of a landing that can only be rolled forward.
        landed: The commit that the target came to by it.
        is_undone: Its last landing was taken back, and it has not been landed since.
        undoing: Who wants it taken back, or took it back, where that is known.
        undone_on: The branch that it was taken back from.
        is_by_hand: A human took the landing back, or hunks of the change in hand: nothing lands it
            by itself any more.
        in_the_way: The user's own files that its last landing met with edits in them.
        is_carry_refused: These edits conflict with the change, so it cannot land under them.
    """

    wish: LandWish | None = None
    prepared: str | None = None
    landed: str | None = None
    is_undone: bool = False
    undoing: Speaker | None = None
    undone_on: str = ""
    is_by_hand: bool = False
    in_the_way: tuple[str, ...] = ()
    is_carry_refused: bool = False


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One worker of the run.

    Another request for work replaces `attempt`, `review`, `landing` and `next` as wholes. The rest
    lasts: `begun` until the next attempt is ready, `change` until its work is collected.

    Attributes:
        change: What was collected last, without the hunks that are left out.
        limits: Those a human set for it, in place of the plan's.
        agent: The one a human set for it, in place of the plan's.
    """

    id: WorkerId
    phase: Phase = Phase.WAITING
    phase_since: float = 0.0
    outcome: Outcome = Outcome.PENDING
    cause: StopCause | None = None
    error: str | None = None
    badges: frozenset[Badge] = frozenset()
    attempt: Attempt = Attempt()
    next: Next = Next()
    begun: Begun = Begun()
    change: Change | None = None
    review: Reviewed = Reviewed()
    landing: Landing = Landing()
    history: History = History()
    session: Session = Session()
    limits: Limits | None = None
    agent: AgentChoice | None = None

    @property
    def who(self) -> Who:
        """Return the beginning of an effect for its newest attempt."""
        return Who(worker=self.id, attempt=self.attempt.number)

    @property
    def told(self) -> Shown:
        """Return the beginning of an event about its newest attempt."""
        return Shown(worker=str(self.id), attempt=self.attempt.number)

    def about(self, at: float) -> About:
        """Return the beginning of a fact about its newest attempt."""
        return About(worker=self.id, attempt=self.attempt.number, at=at)


def usages_of(w: Worker, now: Usage | None = None) -> tuple[Usage, ...]:
    """Return what each attempt of a worker used, oldest first; `now` is of the newest."""
    known, newest = dict(w.history.used), w.attempt.number
    if now is not None and newest:
        known[newest] = now
    return tuple(known.get(number, Usage()) for number in range(1, newest + 1))


@dataclass(frozen=True, kw_only=True)
class StepState:
    """The decisions about a step as a whole.

    Attributes:
        has_failed_fast: Its policy gave up: only what a human retries still waits or is queued.
        chosen: The candidate that a human or the policy chose.
        restarts: When its workers were restarted, for the restart intensity.
        told: The outcome that was last published.
    """

    has_failed_fast: bool = False
    chosen: WorkerId | None = None
    restarts: tuple[float, ...] = ()
    told: Outcome = Outcome.PENDING
    choice_told: tuple[WorkerId, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A login of which nobody begins before that time; by its vendor where there is no cause."""

    until: float
    cause: StopCause | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """A whole run at one moment.

    Attributes:
        cap: How many workers may hold a slot now.
        wanted_cap: How many a human wants; `cap` is less while other runs have slots too.
        workers: Everybody, in plan order; kept as a `Crew` whatever it is given as.
        holds: Logins of which nobody begins, by their names; also some whose time has passed.
        timed_since: When the run's own time limit began to count; time at rest is left out.
        idle_since: When the run came to rest, while it rests.
        dropped: How many facts came too late to mean anything.
        rules: The answers to permissions that are kept, oldest first.
        rules_made: How many there ever were.
    """

    run: RunId
    plan: Plan
    cap: int
    wanted_cap: int
    workers: Mapping[WorkerId, Worker]
    steps: Mapping[str, StepState]
    now: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
    timed_since: float | None = None
    idle_since: float | None = None
    is_paused: bool = False
    stop: Stop | None = None
    is_waiting_told: bool = False
    is_finished_told: bool = False
    dropped: int = 0
    rules: tuple[KeptAnswer, ...] = ()
    rules_made: int = 0
    holds: Mapping[str, Hold] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.workers, Crew):
            object.__setattr__(self, "workers", Crew(self.workers))

    @property
    def crew(self) -> Crew[Worker]:
        """Return the workers, counted."""
        if not isinstance(self.workers, Crew):
            raise TypeError
        return self.workers

    @property
    def slots_in_use(self) -> int:
        """Return the number of workers that hold a slot."""
        return self.crew.holding

    def planned(self, worker: WorkerId) -> PlannedWorker:
        """Return a worker as the plan has it."""
        return self.plan.step(worker.step).worker(worker)

    def agent_of(self, worker: WorkerId) -> AgentChoice | None:
        """Return the agent a worker runs: the one a human set for it, else the plan's."""
        return self.workers[worker].agent or self.planned(worker).agent

    def label_of(self, worker: WorkerId) -> str:
        """Return the item or the agent that tells a worker from its siblings."""
        planned = self.planned(worker)
        is_agents = planned.agent is not None and planned.label == planned.agent.name
        agent = self.agent_of(worker)
        return agent.name if is_agents and agent is not None else planned.label

    def limits_of(self, worker: WorkerId) -> Limits:
        """Return the limits of a worker: those a human set for it, else the plan's."""
        return self.workers[worker].limits or self.plan.step(worker.step).limits

    def workers_of(self, step: str) -> tuple[Worker, ...]:
        """Return a step's workers, in worker order."""
        return self.crew.of(step)


def initial_state(run: RunId, plan: Plan) -> RunState:
    """Return the state of a run that has not begun: every worker waits."""
    workers = {p.id: Worker(id=p.id) for step in plan.steps for p in step.workers}
    return RunState(
        run=run,
        plan=plan,
        cap=plan.runtime.max_concurrent_workers,
        wanted_cap=plan.runtime.max_concurrent_workers,
        workers=workers,
        steps={step.name: StepState() for step in plan.steps},
    )


def dependents(plan: Plan, step: str) -> tuple[PlannedStep, ...]:
    """Return the steps that directly depend on one."""
    return tuple(other for other in plan.steps if step in other.dependencies)
