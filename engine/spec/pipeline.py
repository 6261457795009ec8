"""The keys of `agents`, `personas` and `pipelines`, and the manifest itself."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.policies import spellings
from engine.spec.runtime import LimitsSpec, PermissionsSpec, ReviewSpec, RuntimeSpec, WorkspaceSpec
from engine.spec.words import (
    Adapter,
    Count,
    InsidePath,
    Name,
    PolicyText,
    Positive,
    Section,
    SparseFolders,
    StepName,
    Text,
    Variable,
    either,
)

_POLICIES = f"Decides when the step succeeds: {either([f'`{word}`' for word in spellings('(N)')])}."


class AgentSpec(Section):
    """One agent under a name of your own: which program, which model, which options."""

    adapter: Adapter
    """The adapter that drives it. An adapter's name is also an agent, which needs no entry."""
    model: Text | None = None
    """The model, as the agent itself calls it."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """`command`, `terminal` and `acp`: the program and its arguments; `{prompt}` is one of them."""
    env: Mapping[Variable, str] = Field(default_factory=dict)
    """Environment variables of this agent."""
    script: Any = None
    """`scripted` only: the path of a script, relative to the manifest, or the script itself."""
    prompt_via: Literal["argument", "stdin", "file", "typed"] | None = None
    """`command` and `terminal`: how the prompt reaches the program; `typed` is for `terminal`."""
    terminal: bool | None = None
    """`command` only: give the program a terminal of its own."""
    events: bool | None = None
    """`command` only: read its output as events, one JSON object per line."""
    options: Mapping[Name, str] = Field(default_factory=dict)
    """Other settings that the adapter understands, as text."""
    user_settings: Literal["all", "instructions", "none"] = "all"
    """The settings of this client on your machine that plait copies to workers."""
    user_code: bool = False
    """Also copy settings that run code by themselves: your hooks, plugins and extensions."""
    day_budget_usd: Positive | None = None
    """The most that this agent's login may cost on one day in all runs, in US dollars."""
    day_budget_tokens: Count | None = None
    """The same in tokens, not counting those that a cache served."""


class PersonaSpec(Section):
    """A role: an agent with instructions of its own."""

    agent: Name | None = None
    """The agent in this role: a name from `agents`, or an adapter."""
    prompt: Text | None = None
    """Instructions before every prompt. plait fills no placeholders in them."""
    prompt_file: InsidePath | None = None
    """The same, in a file of the repository."""
    permissions: PermissionsSpec | None = None
    """Replaces `runtime.permissions`."""


class VariantSpec(Section):
    """One kind of replica: another agent or model for the same prompt."""

    agent: Name | None = None
    """The agent; by default the step's."""
    model: Text | None = None
    """The model. By default, one replica with each of the step's `models`, or the agent's model."""
    models: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Several models instead of `model`: `n` replicas with each."""
    n: Count = 1
    """The number of replicas of this kind."""


class MatrixSpec(Section):
    """One worker for each item."""

    items: Annotated[tuple[Text, ...], Field(min_length=1, max_length=1000)]
    """The items. Each cell gets one of them as `{item}` in its prompt."""
    max_concurrency: Count | None = None
    """The most cells that run at once; by default `max_concurrent_workers`."""


class StrategySpec(Section):
    """Split a step into workers by items instead of replicas."""

    matrix: MatrixSpec
    """One worker for each item."""


class IntensitySpec(Section):
    """Stop retrying when a step retries too often in a short time."""

    restarts: Count = 5
    """The most retries of all workers of the step together."""
    per_minutes: Positive = 10.0
    """The minutes in which plait counts these retries."""


class RetrySpec(Section):
    """Try a failed worker again without a human."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 1
    """The most attempts, including the first one. 1 means no retry."""
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    """The growth of the wait before each retry."""
    delay_seconds: Positive = 2.0
    """The first wait."""
    max_delay_seconds: Positive = 300.0
    """The longest wait."""
    mode: Literal["fresh", "continue", "resume"] = "fresh"
    """`fresh`: a new worktree from the base. `continue`: a new worktree with the last files.
    `resume`: the same worktree. The last two continue the session if the agent can."""
    feedback: bool = True
    """Tell the next attempt what went wrong."""
    intensity: IntensitySpec = IntensitySpec()
    """The most retries in a short time."""


class StepSpec(Section):
    """One step: a prompt for agents, or a command."""

    name: StepName
    """The step's name; its workers are `NAME/worker_1` and so on."""
    persona: Name | None = None
    """The persona that works here."""
    agent: Name | None = None
    """The agent. It overrides the persona's."""
    site: Name | None = None
    """The site where its workers live; by default `runtime.sites.default`."""
    sparse_checkout: SparseFolders | None = None
    """Replaces `workspace.sparse_checkout`. An empty list means the whole repository."""
    dependencies: tuple[StepName, ...] = ()
    """Steps that this one waits for. It starts from their changes (the chosen ones)."""
    files: tuple[InsidePath, ...] = ()
    """Files that plait names to the agent as its input. `{files}` puts the list into the prompt."""
    prompt: Text | None = None
    """The task of the agent, with placeholders."""
    prompt_file: InsidePath | None = None
    """The same, in a file of the repository."""
    run: Text | None = None
    """A shell command instead of an agent. plait fills no placeholders in it."""
    concurrency: Count | None = None
    """The number of replicas, each with the same prompt. Not with `strategy.matrix`."""
    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=1)] | None = None
    """Replicas with different agents or models, instead of `concurrency`."""
    models: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """One replica with each model: for the step's agent, or for each variant without a model."""
    strategy: StrategySpec | None = None
    """Split the step into workers by items instead of replicas."""
    max_concurrent_agents: Count | None = None
    """The sub-agents that each agent may spawn, at most 10: a hint in its prompt when above 1."""
    policy: Annotated[PolicyText, Field(description=_POLICIES)] = "all"
    choose: Literal["human", "check", "agent"] | None = None
    """The choice between candidates: `human` (default), or `check` for the first that passes."""
    retry: RetrySpec = RetrySpec()
    """The rules by which plait retries a failed worker by itself."""
    timeout_minutes: Positive | None = None
    """The same as `limits.time_seconds`, in minutes."""
    limits: LimitsSpec = LimitsSpec()
    """Replaces `runtime.limits`, key by key."""
    permissions: PermissionsSpec | None = None
    """Replaces the permissions of the persona and of `runtime`."""
    check: Text | None = None
    """A shell command that must pass on the worker's tree, and again on the tree that lands."""
    merge: Literal["choose", "each", "none"] | None = None
    """`choose` one (default for replicas), `each` (for a matrix), or `none` (for a command)."""
    artifacts: tuple[InsidePath, ...] = ()
    """Files that plait keeps as results of the run."""

    @property
    def kinds(self) -> tuple[VariantSpec, ...]:
        """Return its variants with one model each; none where all replicas are alike."""
        variants = self.variants or ((VariantSpec(),) if self.models else ())
        return tuple(
            VariantSpec(agent=variant.agent, model=model, n=variant.n)
            for variant in variants
            for model in variant.models
            or (variant.model and (variant.model,))
            or self.models
            or (None,)
        )


class PipelineSpec(Section):
    """A pipeline: steps that depend on each other."""

    name: StepName
    """Its name, for `plait run --pipeline NAME`."""
    steps: Annotated[tuple[StepSpec, ...], Field(min_length=1)]
    """The steps. If several could start, the first in this list starts first."""


class Manifest(Section):
    """The top level of a `plait.yaml`."""

    runtime: RuntimeSpec = RuntimeSpec()
    """Settings for the whole run."""
    workspace: WorkspaceSpec = WorkspaceSpec()
    """Settings for the workspace of each worker."""
    review: ReviewSpec = ReviewSpec()
    """Help with conflicts."""
    agents: Mapping[Name, AgentSpec] = Field(default_factory=dict)
    """Agents under names of your own."""
    personas: Mapping[Name, PersonaSpec] = Field(default_factory=dict)
    """Roles: agents with instructions of their own."""
    pipelines: tuple[PipelineSpec, ...] = ()
    """The pipelines. A run executes one of them. A run of a prompt needs none."""
