"""The keys of `agents`, `personas` and `pipelines`, and the manifest itself."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.policies import spellings
from engine.spec.runtime import LimitsSpec, PermissionsSpec, RuntimeSpec, WorkspaceSpec
from engine.spec.words import (
    Adapter,
    Count,
    InsidePath,
    Name,
    PolicyText,
    Positive,
    Section,
    StepName,
    Text,
    Variable,
    either,
)

_POLICIES = f"When the step has succeeded: {either([f'`{word}`' for word in spellings('(N)')])}."


class AgentSpec(Section):
    """One agent under a name of your own: which program, which model, which options."""

    adapter: Adapter
    """The adapter that drives it. Each is also an agent of that name that needs no entry here."""
    model: Text | None = None
    """The model, in the agent's own words."""
    argv: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """`command` and `acp` only: the program and its arguments; `{prompt}` is put in as one."""
    env: Mapping[Variable, str] = Field(default_factory=dict)
    """Environment variables of this agent."""
    script: Any = None
    """`scripted` only: the path of a script, relative to the manifest, or the script itself."""
    prompt_via: Literal["argument", "stdin", "file"] | None = None
    """`command` only: how the prompt reaches the program."""
    terminal: bool | None = None
    """`command` only: give the program a terminal of its own."""
    events: bool | None = None
    """`command` only: read its output as events, one JSON object a line."""
    options: Mapping[Name, str] = Field(default_factory=dict)
    """Whatever else the adapter understands, as text."""
    user_settings: Literal["all", "instructions", "none"] = "all"
    """Choose which of your own settings of this client its workers get copies of."""
    user_code: bool = False
    """Let also go along what runs code by itself: your hooks, plugins and extensions."""
    day_budget_usd: Positive | None = None
    """The most that this agent's login may cost on one day, in US dollars, over all runs."""
    day_budget_tokens: Count | None = None
    """The same in tokens, what a cache held not counted."""


class PersonaSpec(Section):
    """A role: an agent with instructions of its own."""

    agent: Name | None = None
    """The agent that plays it: a name from `agents`, or an adapter's."""
    prompt: Text | None = None
    """Instructions that go before every prompt, taken literally."""
    prompt_file: InsidePath | None = None
    """The same, in a file of the repository."""
    permissions: PermissionsSpec | None = None
    """In place of `runtime.permissions`."""


class VariantSpec(Section):
    """One kind of replica: another agent or model for the same prompt."""

    agent: Name | None = None
    """The agent; by default the step's."""
    model: Text | None = None
    """The model; by default one of each of the step's `models`, else the agent's."""
    models: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Several models in place of `model`: `n` replicas of each."""
    n: Count = 1
    """The number of replicas of this kind."""


class MatrixSpec(Section):
    """One worker for each item."""

    items: Annotated[tuple[Text, ...], Field(min_length=1, max_length=1000)]
    """The items; `{item}` in the prompt is filled with one of them."""
    max_concurrency: Count | None = None
    """The most cells that run at once; by default as many as workers may."""


class StrategySpec(Section):
    """Spread a step into workers, other than by replicas."""

    matrix: MatrixSpec
    """One worker for each item."""


class IntensitySpec(Section):
    """Stop retrying after so many restarts of the step in so many minutes."""

    restarts: Count = 5
    """At most so many restarts of the step's workers together."""
    per_minutes: Positive = 10.0
    """Within so many minutes."""


class RetrySpec(Section):
    """Try a failed worker again without a human."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 1
    """All attempts together; 1 means no retry."""
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    """The growth of the wait before each retry."""
    delay_seconds: Positive = 2.0
    """The first wait."""
    max_delay_seconds: Positive = 300.0
    """The longest wait."""
    mode: Literal["fresh", "continue", "resume"] = "fresh"
    """`fresh` from the base, `continue` from the last tree, `resume` in the same worktree."""
    feedback: bool = True
    """Tell the next attempt what went wrong."""
    intensity: IntensitySpec = IntensitySpec()
    """Bounds at which retrying gives up."""


class StepSpec(Section):
    """One step: a prompt for agents, or a command."""

    name: StepName
    """The step's name; its workers are `NAME/worker_1` and so on."""
    persona: Name | None = None
    """The persona that works here."""
    agent: Name | None = None
    """The agent; it goes before the persona's."""
    site: Name | None = None
    """The site where its workers live; by default `runtime.sites.default`."""
    dependencies: tuple[StepName, ...] = ()
    """Steps whose (chosen, checked) change this one begins from."""
    files: tuple[InsidePath, ...] = ()
    """Files named to the agent as its input; `{files}` in the prompt says where."""
    prompt: Text | None = None
    """The task of the agent. Known placeholders are filled, other braces are literal."""
    prompt_file: InsidePath | None = None
    """The same, in a file of the repository."""
    run: Text | None = None
    """A shell command in place of an agent, taken literally; values are in its environment."""
    concurrency: Count | None = None
    """The number of replicas of the step, each with the same prompt; not with `strategy.matrix`."""
    variants: Annotated[tuple[VariantSpec, ...], Field(min_length=1)] | None = None
    """Replicas of different kinds; together they are the replicas."""
    models: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """One replica for each model: of the step's agent, or of each variant that names none."""
    strategy: StrategySpec | None = None
    """The way in which the step spreads into workers, other than by replicas."""
    max_concurrent_agents: Count | None = None
    """The hint to each agent how many sub-agents it may spawn; said when above 1, at most 10."""
    policy: Annotated[PolicyText, Field(description=_POLICIES)] = "all"
    choose: Literal["human", "check", "agent"] | None = None
    """The chooser between candidates: `human` (default), or `check`: the first that passes it."""
    retry: RetrySpec = RetrySpec()
    """Rules by which a failed worker is tried again by itself."""
    timeout_minutes: Positive | None = None
    """The same as `limits.time_seconds`, in minutes."""
    limits: LimitsSpec = LimitsSpec()
    """In place of `runtime.limits`, key by key."""
    permissions: PermissionsSpec | None = None
    """In place of the persona's and of `runtime.permissions`."""
    check: Text | None = None
    """A shell command that must pass: on the worker's tree, and on the tree to be landed."""
    merge: Literal["choose", "each", "none"] | None = None
    """`choose` one of the replicas (default), land `each` (a matrix), or `none` (a command)."""
    artifacts: tuple[InsidePath, ...] = ()
    """Files kept as results of the run."""

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
    """The pipeline's name, for `plait run --pipeline NAME`."""
    steps: Annotated[tuple[StepSpec, ...], Field(min_length=1)]
    """The steps; their order breaks ties between those that could run at once."""


class Manifest(Section):
    """The whole of a `plait.yaml`."""

    runtime: RuntimeSpec = RuntimeSpec()
    """Settings of the whole run."""
    workspace: WorkspaceSpec = WorkspaceSpec()
    """Settings that make every worker's workspace ready and put it away."""
    agents: Mapping[Name, AgentSpec] = Field(default_factory=dict)
    """Agents under names of your own."""
    personas: Mapping[Name, PersonaSpec] = Field(default_factory=dict)
    """Roles: agents with instructions of their own."""
    pipelines: tuple[PipelineSpec, ...] = ()
    """The pipelines; a run of the file is one of them. Prompts need none."""
