"""A plan: every step and worker of a run, ordered, clamped and expanded. Plain frozen data.

A plan is journaled as JSON with its run, so every field here can be written down and read back.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property

from engine.ids import WorkerId
from engine.limits import Limits
from engine.policies import Backoff, ChooseBy, MergeMode, Policy
from engine.values import dataclass


class RetryMode(StrEnum):
    """The start of a new attempt: at the base, at the last tree, or in the same worktree."""

    FRESH = "fresh"
    CONTINUE = "continue"
    RESUME = "resume"


@dataclass(frozen=True, kw_only=True)
class RetryRule:
    """The rule by which a failed worker is tried again by itself.

    Attributes:
        attempts: All attempts together; 1 means no retry.
        delay_s: The first wait; the others grow from it up to `longest_s`.
        restarts: At most this many restarts of the step within `per_s`; then it gives up.
    """

    attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    delay_s: float = 2.0
    longest_s: float = 300.0
    mode: RetryMode = RetryMode.FRESH
    has_feedback: bool = True
    restarts: int = 5
    per_s: float = 600.0


class PermissionMode(StrEnum):
    """The one who answers an agent that asks for permission."""

    AUTO = "auto"
    ASK = "ask"
    RULES = "rules"


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """The permissions of an agent; `allow` and `deny` are patterns for the mode `rules`."""

    mode: PermissionMode = PermissionMode.AUTO
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class SettingsWish(StrEnum):
    """The part of the user's own settings of a client that its workers get copies of."""

    ALL = "all"
    INSTRUCTIONS = "instructions"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """A worker's agent with its options; `name` is the name that the user gave it.

    Attributes:
        adapter: The adapter that drives it: `scripted`, `command`, `claude`, ….
        argv: For the command adapter, with `{prompt}` where the prompt goes, if anywhere.
        options: Whatever else this adapter understands, as text.
        user_settings: What of the user's own settings of this client its workers get.
        user_code: Their hooks, plugins and extensions too, where all settings go along.
        day_budget_usd: What all work by its login may cost on one day, whichever run it is of.
        day_budget_tokens: The same in tokens.
    """

    name: str
    adapter: str
    model: str | None = None
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    user_settings: SettingsWish = SettingsWish.ALL
    user_code: bool = False
    day_budget_usd: float | None = None
    day_budget_tokens: int | None = None

    @property
    def has_vendor(self) -> bool:
        """It works by a login with a vendor that we know, not by whatever the user starts."""
        return self.adapter not in _OF_NO_VENDOR

    @property
    def login(self) -> str:
        """By whose allowance it works: one vendor's agents share it, whatever name and model."""
        if not self.has_vendor:
            return self.name
        return f"{self.adapter.removesuffix('-acp')} {sorted(self.env.items())}"


_OF_NO_VENDOR = frozenset({"scripted", "command", "acp", "jsonl", "callable", "terminal"})


@dataclass(frozen=True, kw_only=True)
class PlannedWorker:
    """One worker of a step.

    Attributes:
        agent: None for a command step.
        label: The matrix item or the agent's name, shown beside the worker.
        item: The matrix item that fills `{item}`.
        prompt: The template; placeholders are filled when the workspace is prepared.
        persona_prompt: Put before the prompt, or into the system prompt where there is one.
        hint: How many sub-agents it may spawn; None when nothing is said.
    """

    id: WorkerId
    agent: AgentChoice | None
    label: str = ""
    item: str | None = None
    prompt: str = ""
    persona_prompt: str = ""
    hint: int | None = None
    permissions: Permissions = field(default_factory=Permissions)


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One step and its workers, in worker order.

    Attributes:
        run: The shell command of a command step; None where agents work.
        max_parallel: How many of its workers may hold a slot at once; None for no limit of its own.
        files: Inputs named to the agent.
        artifacts: Files kept as results, relative to the workspace.
        check: The command that must pass; None for no check.
        wants_change: Its agents are to change something that lands, so ending well without a change
            is no success. Old journals do not say so.
        site: The name of the site where its workers live; empty where that is the run's.
        sparse_checkout: Patterns of the folders of its worktrees; None where they are the run's.
    """

    name: str
    dependencies: tuple[str, ...] = ()
    workers: tuple[PlannedWorker, ...]
    run: str | None = None
    policy: Policy = field(default_factory=Policy)
    merge: MergeMode = MergeMode.CHOOSE
    choose: ChooseBy = ChooseBy.HUMAN
    retry: RetryRule = field(default_factory=RetryRule)
    max_parallel: int | None = None
    limits: Limits = field(default_factory=Limits)
    files: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    check: str | None = None
    wants_change: bool = False
    site: str = ""
    sparse_checkout: tuple[str, ...] | None = None

    def worker(self, worker: WorkerId) -> PlannedWorker:
        """The worker of that name."""
        return self._by_id[worker]

    @cached_property
    def _by_id(self) -> dict[WorkerId, PlannedWorker]:
        return {planned.id: planned for planned in self.workers}

    @property
    def has_candidates(self) -> bool:
        """Several replicas of which one is to be chosen."""
        return self.merge.has_choice and len(self.workers) > 1


class IsolationStrategy(StrEnum):
    """The kind of a worker's workspace."""

    WORKTREE = "worktree"
    CLONE = "clone"
    DIRECTORY = "directory"


class ExecutionMode(StrEnum):
    """The place where Python-callable agents run."""

    PROCESS = "process"
    THREAD = "thread"


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network of an agent: everything, nothing, or the hosts named."""

    mode: str = "open"
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Holes:
    """Everything of the user's machine that is opened to agents, on purpose."""

    network: Network = field(default_factory=Network)
    env: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    has_docker: bool = False
    has_ssh_agent: bool = False


@dataclass(frozen=True, kw_only=True)
class SharedHistory:
    """The history that others read too: its address is in the variable `url_env`."""

    url_env: str = "PLAIT_DATABASE_URL"


@dataclass(frozen=True, kw_only=True)
class ServeRule:
    """The program of a worker that a human looks at.

    Attributes:
        port: The variable that holds its port.
        ready: A page that answers, or text in its output, once it is ready; empty where it is as
            soon as it listens.
    """

    command: str
    port: str = "PORT"
    ready: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkspaceRules:
    """The rules for preparing and releasing a workspace.

    Attributes:
        sparse_checkout: Patterns of the folders that it holds; none for the whole repository.
    """

    include: tuple[str, ...] = ()
    setup: str | None = None
    teardown: str | None = None
    cwd: str = "."
    paths: tuple[str, ...] = ()
    sparse_checkout: tuple[str, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    serve: ServeRule | None = None


@dataclass(frozen=True, kw_only=True)
class AssistRule:
    """An agent that is asked ahead about conflicts, and what one merge may use of it."""

    agent: AgentChoice
    requests: int = 10
    usd: float | None = None
    seconds: float = 600.0


@dataclass(frozen=True, kw_only=True)
class ReviewRules:
    """The rules for help with conflicts.

    Attributes:
        regenerate: Commands that make generated files anew, by patterns of names or paths.
        format: Commands that read a file and print it formatted, likewise.
        assist: Who is asked ahead.
    """

    regenerate: Mapping[str, str] = field(default_factory=dict)
    format: Mapping[str, str] = field(default_factory=dict)
    assist: AssistRule | None = None

    @property
    def has_help(self) -> bool:
        """Return whether anything is to be fetched ahead for conflicts."""
        return bool(self.format or self.assist)

    def command_for(self, path: str) -> str:
        """Return the command that makes a file anew; empty where none is named."""
        return _first_fit(self.regenerate, path)

    def formatter_of(self, path: str) -> str:
        """Return the command that formats a file; empty where none is named."""
        return _first_fit(self.format, path)


def _first_fit(commands: Mapping[str, str], path: str) -> str:
    return next((said for pattern, said in commands.items() if _fits(path, pattern)), "")


def _fits(path: str, pattern: str) -> bool:
    """Tell if a path has a pattern's name, in any folder; a pattern with a `/` is a whole path."""
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A Ray cluster as a site.

    Attributes:
        address: Where its head listens.
        resources: What each worker reserves there beside its limits, by the cluster's own names.
        env: Names of variables of the user's that cross to its nodes.
        is_open: Nodes are used also where files and git are not enforced.
        lease_s: The longest time that agents go on there without an engine; 0 for what is usual.
    """

    name: str
    address: str
    resources: Mapping[str, float] = field(default_factory=dict)
    env: tuple[str, ...] = ()
    is_open: bool = False
    lease_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The settings of the whole run.

    Attributes:
        base: What every change is counted from.
        site: The name of the site where the workers live whose step names none; empty where nobody
            has chosen yet, and in old journals, whose workers live on this machine's own disk.
        start: A commit on top of the base at which the first workspaces begin: earlier work that
            is part of the change.
        history: The history that the run is delivered to as well; None for none.
        clusters: The sites that the manifest adds to those of every repository.
    """

    max_concurrent_workers: int = 10
    isolation: IsolationStrategy = IsolationStrategy.WORKTREE
    execution_mode: ExecutionMode = ExecutionMode.PROCESS
    site: str = ""
    workspace_root: str | None = None
    stall_s: float = 600.0
    run_timeout_s: float | None = None
    require: tuple[str, ...] = ()
    holes: Holes = field(default_factory=Holes)
    auto_merge: bool = False
    cleanup_on_complete: bool = True
    target: str | None = None
    base: str | None = None
    start: str | None = None
    branch_prefix: str = "plait"
    land_style: str = "merge"
    history: SharedHistory | None = None
    clusters: tuple[Cluster, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Clamp:
    """A value that was lowered to its maximum, and its place in the manifest."""

    where: str
    asked: int
    given: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A whole run, ready to start. The order of the steps respects their dependencies.

    Attributes:
        notes: Sentences for the person who starts it.
    """

    name: str
    steps: tuple[PlannedStep, ...]
    runtime: Runtime = field(default_factory=Runtime)
    workspace: WorkspaceRules = field(default_factory=WorkspaceRules)
    review: ReviewRules = field(default_factory=ReviewRules)
    clamps: tuple[Clamp, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    def step(self, name: str) -> PlannedStep:
        """Return the step with that name."""
        return self._by_name[name]

    def site_of(self, step: str) -> str:
        """Return the site where the workers of a step run; empty if nobody has chosen one."""
        return self.step(step).site or self.runtime.site

    def sparse_checkout_of(self, step: str) -> tuple[str, ...]:
        """Return the patterns of folders that a step checks out; empty if it checks out all."""
        own = self.step(step).sparse_checkout
        return self.workspace.sparse_checkout if own is None else own

    @property
    def clusters_used(self) -> tuple[Cluster, ...]:
        """Return the clusters where workers run."""
        used = {self.site_of(step.name) for step in self.steps}
        return tuple(one for one in self.runtime.clusters if one.name in used)

    @cached_property
    def agents(self) -> tuple[AgentChoice, ...]:
        """Return the agents of its workers, each once, and the one that helps with conflicts."""
        agents = (planned.agent for step in self.steps for planned in step.workers)
        found = {id(agent): agent for agent in agents if agent is not None}
        helper = self.review.assist.agent if self.review.assist else None
        if helper is not None and helper not in found.values():
            found[id(helper)] = helper
        return tuple(found.values())

    @cached_property
    def _by_name(self) -> dict[str, PlannedStep]:
        return {step.name: step for step in self.steps}
