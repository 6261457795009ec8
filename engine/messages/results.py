"""Describe runs to the outside: the report of the results, and the views for consoles.

A report is kept by the outside (its JSON is public); views are what consoles draw, read-only.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property

from engine.limits import Enforcement, LimitHit, Limits, Usage
from engine.messages.asked import KeptAnswer, Question
from engine.messages.deeds import Deed
from engine.messages.served import Served
from engine.phases import Phase, StopCause
from engine.values import dataclass


class Outcome(StrEnum):
    """The result of a worker, a step or a run. It does not say whether a change has landed.

    UNCHANGED: its agent ended well where a change was to be made, and there is none.
    """

    SUCCESS = "success"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    PENDING = "pending"

    @property
    def is_well(self) -> bool:
        """Return whether nothing failed, with a change or without."""
        return self in {Outcome.SUCCESS, Outcome.UNCHANGED}


@dataclass(frozen=True, kw_only=True)
class Change:
    """An attempt's change: its commits, imported into the user's repository, or its artifacts.

    Attributes:
        head: The commit that holds the work; None where there is no git (artifacts only).
        base: The commit that it started from.
        set_aside: What plait set aside for review, in words: embedded repositories, large files.
        binary: The number of files without lines that a diff could show.
        hunks: The number of hunks that a human can leave out; None if they were not counted.
        is_cut: Its diff is too long to be shown in full.
    """

    head: str | None = None
    base: str | None = None
    tree: str | None = None
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    artifacts: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    binary: int = 0
    hunks: int | None = None
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of a check, with the tree and the environment that it ran in.

    Attributes:
        tree: The tree this is said of.
        batch: The tree the check ran on, where that is the result of a whole batch of landings.
        is_clean: It ran with an empty HOME, empty temporary and cache folders, ports of its own,
            and no file beside the tree but those that setup made of the user's commits.
        is_exact: The tree is the one that would land, not the worker's own.
        output: The end of what it printed, where it passed; else `summary` has it.
    """

    command: str
    passed: bool
    tree: str | None = None
    exit_code: int | None = None
    summary: str = ""
    duration_s: float = 0.0
    batch: str | None = None
    is_clean: bool = False
    is_exact: bool = False
    output: str = ""

    def speaks_for(self, tree: str) -> bool:
        """Return whether a landing of this tree may rely on it: no agent had a hand in it."""
        return self.is_clean and self.tree == tree


class Verdict(StrEnum):
    """The proof of a worker's success. plait uses these words everywhere."""

    CLAIMED = "claimed"
    OWN_TREE = "passed in its own tree"
    PROVED = "proved on the exact tree"


def verdict_of(check: CheckResult | None, *, is_stale: bool, has_claimed: bool) -> Verdict | None:
    """Return the strongest verdict that holds; None if the check failed or nothing is known."""
    if check is None or is_stale:
        return Verdict.CLAIMED if has_claimed else None
    if not check.passed:
        return None
    is_proof = check.is_clean and check.is_exact and check.batch is None
    return Verdict.PROVED if is_proof else Verdict.OWN_TREE


@dataclass(frozen=True, kw_only=True)
class WorkerResult:
    """One worker's result.

    Attributes:
        outcome: The result with its check. It does not say whether the change has landed.
        usage: The usage of all attempts together; `attempt_usages` has each, oldest first.
        ending: How it ended without a change; empty if there is a change, or none was expected.
        is_despite_check: A human landed it although the check of the merged tree failed.
    """

    worker: str
    phase: Phase
    cause: StopCause | None
    outcome: Outcome
    attempts: int
    label: str = ""
    agent: str = ""
    model: str = ""
    branch: str | None = None
    commit: str | None = None
    workspace: str | None = None
    usage: Usage = field(default_factory=Usage)
    attempt_usages: tuple[Usage, ...] = ()
    limits: tuple[Enforcement, ...] = ()
    limit_hit: LimitHit | None = None
    check: CheckResult | None = None
    verdict: Verdict | None = None
    output: str = ""
    ending: str = ""
    duration_s: float = 0.0
    error: str | None = None
    is_despite_check: bool = False


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The results of a step's workers, in the order of the workers, including failures."""

    name: str
    outcome: Outcome
    worker_results: tuple[WorkerResult, ...]
    chosen: str | None = None

    @property
    def results(self) -> tuple[WorkerResult, ...]:
        """Return `worker_results`, under a shorter name."""
        return self.worker_results

    @property
    def worker_workspaces(self) -> tuple[str | None, ...]:
        """Return each worker's workspace, in worker order."""
        return tuple(result.workspace for result in self.worker_results)

    @property
    def total_workers(self) -> int:
        """Return how many workers the step has."""
        return len(self.worker_results)

    @property
    def success_count(self) -> int:
        """Return how many workers ended well and passed their check."""
        return self._count(Outcome.SUCCESS)

    @property
    def fail_count(self) -> int:
        """Return how many workers failed for good."""
        return self._count(Outcome.FAILED)

    @property
    def cancelled_count(self) -> int:
        """Return how many workers were stopped by somebody or by a policy."""
        return self._count(Outcome.CANCELLED)

    def _count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.worker_results)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The results of a run: its steps in plan order."""

    run: str
    name: str
    outcome: Outcome
    steps: Mapping[str, StepResult]
    waits_for: tuple[str, ...] = ()
    duration_s: float = 0.0


class Badge(StrEnum):
    """A mark that a console shows beside a phase."""

    ASKS = "asks"
    PAUSED = "paused"
    STALLED = "stalled"
    RATE_LIMITED = "rate_limited"
    APPROVED = "approved"
    CHECK_FAILED = "check_failed"
    LAND_REFUSED = "land_refused"
    BASE_OUTDATED = "base_outdated"
    VIOLATION = "violation"
    CHOSEN = "chosen"
    NEEDS_LOGIN = "needs_login"


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """The means to start a program inside a worker's sandbox, in the human's terminal.

    Attributes:
        argv: Words to put before the program; whoever starts them must wait for their end.
        env: The program's whole environment.
        folder: Where it begins.
        note: What its user should know beforehand.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    folder: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Clash:
    """A predicted conflict with another worker (or `you`, or the target)."""

    other: str
    paths: tuple[str, ...]
    hunks: int


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A worker's files as they once were, in `commit`: a change of `base` to begin again from."""

    attempt: int
    at: float
    commit: str
    base: str


@dataclass(frozen=True, kw_only=True)
class UndoneLanding:
    """A landing that was taken back, and whose change waits for review again.

    Attributes:
        target: The branch that it was on.
        by: The user who took it back; empty where nobody knows.
    """

    target: str
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """The part of a repository that a sparse worktree holds.

    Attributes:
        folders: The folders that are there whole; files above them are there too.
        held: How many folders these are, with those below them.
        of: How many folders the repository has.
    """

    folders: tuple[str, ...]
    held: int
    of: int


@dataclass(frozen=True, kw_only=True)
class WorkerView:
    """One worker as a console draws it. Times are wall-clock seconds.

    Attributes:
        hears: When its agent hears what is said to it while it works: now, after_turn, by_resume,
            or no; empty where that is not known.
        ending: How it ended without a change; empty where there is one, or none was to be made.
        exit_code: That of its program, once the attempt has ended; None where nobody knows it.
        attempts_allowed: How many attempts there may be in all, with those before a human's retry.
        model: The model that it says it works with; until then, the one it was asked to.
        has_screen: Its agent draws on a terminal that a human can take over.
        tool_since: When the tool that runs now began.
        context: How many tokens its newest request held, of a `context_window` of so many; None
            where its agent tells neither.
        turns: How many answers its model gave in this attempt.
        served: Its program that a human looks at; None where none was started.
        settings: Which settings of the user's own its agent got, and which stayed behind, as lines.
        lately: What it did last, oldest first.
        so_far: The change of its running attempt when its files were last looked at, in figures;
            None where nobody has looked.
        usage: What all attempts used together.
        attempt_usages: What each attempt used, oldest first.
        left_out: The hunks, by their keys, that a human left out of the change before it lands.
        edited: The files of its change that a human edited before it lands.
        landed: The commit that the target came to by its landing.
        undone: How its last landing was taken back, if that is why it waits for review.
        checkpoint_at: When the files of its running attempt were kept last, as they were then.
        holds: The folders of its worktree; None where it holds the whole repository.
    """

    worker: str
    step: str
    phase: Phase
    label: str = ""
    agent: str = ""
    model: str = ""
    has_screen: bool = False
    attempt: int = 0
    attempts_allowed: int = 1
    cause: StopCause | None = None
    outcome: Outcome = Outcome.PENDING
    ending: str = ""
    exit_code: int | None = None
    phase_since: float = 0.0
    attempt_since: float | None = None
    worked_s: float = 0.0
    retry_at: float | None = None
    rate_limited_until: float | None = None
    last_output_at: float | None = None
    badges: frozenset[Badge] = frozenset()
    questions: tuple[Question, ...] = ()
    hears: str = ""
    tool: str | None = None
    tool_since: float | None = None
    context: int | None = None
    context_window: int | None = None
    turns: int | None = None
    settings: tuple[str, ...] = ()
    progress: float | None = None
    last_lines: tuple[str, ...] = ()
    lately: tuple[Deed, ...] = ()
    prompt: str = ""
    error: str | None = None
    limit_hit: LimitHit | None = None
    limits: Limits = field(default_factory=Limits)
    enforcement: tuple[Enforcement, ...] = ()
    usage: Usage = field(default_factory=Usage)
    attempt_usages: tuple[Usage, ...] = ()
    change: Change | None = None
    so_far: Change | None = None
    check: CheckResult | None = None
    verdict: Verdict | None = None
    claimed_done: bool = False
    is_check_stale: bool = False
    left_out: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    landed: str | None = None
    undone: UndoneLanding | None = None
    behind: int = 0
    clashes: tuple[Clash, ...] = ()
    is_radar_seen: bool = False
    checkpoint_at: float | None = None
    branch: str | None = None
    workspace: str | None = None
    site: str = ""
    holds: Holding | None = None
    conflicts: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    is_carry_refused: bool = False
    violations: tuple[str, ...] = ()
    served: Served | None = None

    @property
    def own_usage(self) -> Usage:
        """Return the newest attempt's usage: limits hold for each attempt by itself."""
        return self.attempt_usages[-1] if self.attempt_usages else self.usage

    @property
    def is_live(self) -> bool:
        """Return whether something of it runs or will run by itself."""
        return self.phase.holds_slot or self.phase is Phase.BACKING_OFF

    @property
    def needs_you(self) -> bool:
        """Return whether it waits for a human."""
        return bool(self.questions) or self.phase in {
            Phase.REVIEWING,
            Phase.CONFLICTED,
            Phase.FAILED,
        }


@dataclass(frozen=True, kw_only=True)
class StepView:
    """One step as a console draws it."""

    name: str
    dependencies: tuple[str, ...]
    outcome: Outcome
    workers: tuple[WorkerView, ...]
    is_choice_due: bool = False
    chosen: str | None = None
    policy: str = "all"
    merge: str = "choose"
    check: str | None = None
    command: str | None = None


@dataclass(frozen=True, kw_only=True)
class LoginUse:
    """The usage of one login on one day, over all runs of all engines of this user.

    Attributes:
        without_usd: How many of the attempts reported no cost: then `usd` is the least it can be.
        without_tokens: The same of tokens.
    """

    usd: float = 0.0
    tokens: int = 0
    attempts: int = 0
    without_usd: int = 0
    without_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class LoginView:
    """One login of a run's agents, today.

    Attributes:
        agents: Those of the run's agents that work by it.
        held_until: Nobody of it begins before that time, and why.
    """

    agents: tuple[str, ...]
    use: LoginUse = field(default_factory=LoginUse)
    budget_usd: float | None = None
    budget_tokens: int | None = None
    held_until: float | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Storage cannot be written, or a site does not answer: a run stands still until that passes.

    Attributes:
        what: What is wrong: `/mnt is full: 0 bytes free`.
        help: What helps, and that nothing is lost.
        since: When that was met first, in seconds since 1970.
    """

    what: str
    help: str
    since: float


@dataclass(frozen=True, kw_only=True)
class HistoryDelay:
    """The shared history cannot be written; the run goes on, and the rest is delivered later.

    Attributes:
        what: What is wrong, as a whole sentence.
        help: What helps.
        since: When that was met first, in seconds since 1970.
    """

    what: str
    help: str
    since: float


@dataclass(frozen=True, kw_only=True)
class RunView:
    """One run as a console shows it.

    Attributes:
        rules: The answers to permissions that are kept.
        radar_share: The part of the time that looking for clashes takes.
        trouble: What keeps it from going on; None while nothing does.
        is_stopping: Somebody wants all of it to end.
        history: What keeps the shared history from having all of it; None while nothing does.
    """

    run: str
    name: str
    outcome: Outcome
    started_at: float
    ended_at: float | None = None
    is_paused: bool = False
    is_waiting: bool = False
    cap: int = 10
    target: str | None = None
    steps: tuple[StepView, ...] = ()
    seq: int = 0
    rules: tuple[KeptAnswer, ...] = ()
    auto_merge: bool = False
    logins: tuple[LoginView, ...] = ()
    radar_share: float = 0.0
    trouble: Trouble | None = None
    is_stopping: bool = False
    history: HistoryDelay | None = None

    def worker(self, worker: str) -> WorkerView:
        """Return the worker of that name."""
        return next(w for step in self.steps for w in step.workers if w.worker == worker)

    @cached_property
    def workers(self) -> tuple[WorkerView, ...]:
        """Return every worker in plan order."""
        return tuple(worker for step in self.steps for worker in step.workers)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine as a console draws it."""

    cores: int = 1
    cpu_used: float = 0.0
    memory_mb: int = 0
    memory_available_mb: int = 0
    disk_free_mb: int = 0


@dataclass(frozen=True, kw_only=True)
class Trying:
    """A result that lies in the user's own checkout, to be tried.

    Attributes:
        worktree: The checkout.
        is_whole: All of it is there; else it was cut short, on its way there or back.
    """

    run: str
    worker: str
    worktree: str
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class EngineView:
    """Everything that a console shows at one moment.

    Attributes:
        trying: The result that is tried now, if one is.
    """

    repository: str
    runs: tuple[RunView, ...] = ()
    machine: Machine = field(default_factory=Machine)
    is_read_only: bool = False
    at: float = 0.0
    trying: Trying | None = None
