"""From a manifest to a plan: the pipeline chosen, its steps ordered, its workers expanded."""

from collections.abc import Sequence
from dataclasses import replace

from engine.errors import ConcurrencyWithMatrix, PlanError
from engine.ids import WorkerId
from engine.limits import DEFAULT_LIMITS, Limits
from engine.plan.agents import agent_of, permissions_of, persona_of
from engine.plan.model import (
    AgentChoice,
    Clamp,
    Permissions,
    Plan,
    PlannedStep,
    PlannedWorker,
    RetryMode,
    RetryRule,
)
from engine.plan.order import check_policy, ordered
from engine.plan.runtime import review_of, runtime_of, workspace_of
from engine.policies import Backoff, ChooseBy, MergeMode, Policy, spellings
from engine.spec.nearest import nearest
from engine.spec.pipeline import Manifest, PipelineSpec, RetrySpec, StepSpec
from engine.spec.placeholders import placeholders
from engine.spec.words import HINT_CAP, WORKER_CAP
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class PlanDefaults:
    """Values for a plan: `limits` fills gaps in a manifest, all others override it.

    Attributes:
        limits: The limits if neither the step nor the runtime sets them.
        policy: Replaces the policy of every step with several workers.
        check: Replaces the check of every step whose changes can land.
        auto_merge: Replaces the value of the runtime, as do `target` and `base`.
        permissions: Replaces the permissions of every step and persona.
        timeout_minutes: Replaces the time limit of every step.
    """

    limits: Limits = DEFAULT_LIMITS
    policy: str | None = None
    check: str | None = None
    auto_merge: bool | None = None
    target: str | None = None
    base: str | None = None
    permissions: Permissions | None = None
    timeout_minutes: float | None = None


class _Clamps:
    """Cuts figures to what is allowed, and remembers what it cut."""

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
        """The sub-agents an agent hears it may spawn; None where there is nothing to say."""
        if asked is None or asked <= 1:
            return None
        reason = f"an agent may have at most {HINT_CAP} sub-agents"
        return self.cut(where, asked, HINT_CAP, reason)


@dataclass(frozen=True)
class _Making:
    """The common parts from which every step of one plan is made."""

    manifest: Manifest
    defaults: PlanDefaults
    clamps: _Clamps


def make_plan(
    manifest: Manifest,
    *,
    pipeline: str | None = None,
    defaults: PlanDefaults | None = None,
    source: str = "",
) -> Plan:
    """The plan of one pipeline.

    Args:
        manifest: What was read.
        pipeline: Its name; needed where there are several.
        defaults: What stands where the manifest is silent, and what overrules it.
        source: Where it was read, for whoever looks at the plan later.

    Raises:
        PlanError: Where no plan can be made; CyclicDependency, UnknownDependency and
            ConcurrencyWithMatrix among them.
    """
    defaults = defaults or PlanDefaults()
    if defaults.policy is not None:
        parse_policy(defaults.policy)  # one that is none is told also where no step would hear it
    chosen = _pipeline(manifest, pipeline)
    clamps = _Clamps(manifest.runtime.max_concurrent_workers)
    making = _Making(manifest, defaults, clamps)
    steps = {step.name: step for step in chosen.steps}
    if len(steps) < len(chosen.steps):
        raise PlanError(f"two steps of the pipeline {chosen.name!r} have the same name")
    names = ordered({step.name: step.dependencies for step in chosen.steps})
    planned = tuple(_step(steps[name], making) for name in names)
    runtime = runtime_of(manifest.runtime, workers=clamps.workers)
    overruled = {
        key: value
        for key in ("auto_merge", "target", "base")
        if (value := getattr(defaults, key)) is not None
    }
    return Plan(
        name=chosen.name,
        steps=planned,
        runtime=replace(runtime, **overruled),
        workspace=workspace_of(manifest.workspace),
        review=review_of(manifest),
        clamps=tuple(clamps.made),
        source=source,
    )


def _pipeline(manifest: Manifest, name: str | None) -> PipelineSpec:
    there = {pipeline.name: pipeline for pipeline in manifest.pipelines}
    names = ", ".join(there)
    if not there:
        raise PlanError(
            "there is no pipeline here",
            hint="Write one under `pipelines`, or give a prompt: `plait run -p TEXT`.",
        )
    if name is None and len(there) == 1:
        return manifest.pipelines[0]
    if name is None:
        raise PlanError("there are several pipelines", hint=f"Name one of them: {names}.")
    if name not in there:
        guess = nearest(name, there)
        meant = f"Did you mean {guess!r}? " if guess else ""
        raise PlanError(f"there is no pipeline {name!r}", hint=f"{meant}Pipelines here: {names}.")
    return there[name]


def _step(spec: StepSpec, making: _Making) -> PlannedStep:
    workers, max_parallel = _workers(spec, making)
    has_several = len(workers) > 1
    policy = parse_policy((has_several and making.defaults.policy) or spec.policy)
    check_policy(spec.name, policy, len(workers))
    merge = _merge(spec, making.manifest)
    check = (merge.lands and making.defaults.check) or spec.check
    return PlannedStep(
        name=spec.name,
        dependencies=spec.dependencies,
        workers=workers,
        run=spec.run,
        policy=policy,
        merge=merge,
        choose=ChooseBy(spec.choose or "human"),
        retry=_retry(spec.retry),
        max_parallel=max_parallel,
        limits=_limits(spec, making),
        files=spec.files,
        artifacts=spec.artifacts,
        check=check,
        wants_change=spec.run is None and merge.lands,
        site=spec.site or "",
        sparse_checkout=spec.sparse_checkout,
    )


def _workers(spec: StepSpec, making: _Making) -> tuple[tuple[PlannedWorker, ...], int | None]:
    if spec.strategy is None:
        return tuple(_replicas(spec, making)), None
    if spec.concurrency is not None or spec.kinds:
        raise ConcurrencyWithMatrix(spec.name)
    matrix = spec.strategy.matrix
    agent = None if spec.run else agent_of(making.manifest, spec)
    where = f"{spec.name}.strategy.matrix.max_concurrency"
    at_once = matrix.max_concurrency and making.clamps.cut_to_workers(where, matrix.max_concurrency)
    cells = [
        replace(_worker(spec, making, i, agent), label=item, item=item)
        for i, item in enumerate(matrix.items, 1)
    ]
    return tuple(_hinted(cells, spec, making)), at_once


def _replicas(spec: StepSpec, making: _Making) -> Sequence[PlannedWorker]:
    if spec.run:
        agents: Sequence[AgentChoice | None] = [None] * _count(spec, making)
    elif not spec.kinds:
        agents = [agent_of(making.manifest, spec)] * _count(spec, making)
    else:
        kinds = [(agent_of(making.manifest, spec, kind), kind.n) for kind in spec.kinds]
        where = f"{spec.name}.{'models' if spec.variants is None else 'variants'}"
        asked = sum(n for _, n in kinds)
        most = making.clamps.cut_to_workers(where, asked)
        agents = [agent for agent, n in kinds for _ in range(min(n, most))][:most]
    workers = [_worker(spec, making, i, agent) for i, agent in enumerate(agents, 1)]
    return _hinted(workers, spec, making)


def _count(spec: StepSpec, making: _Making) -> int:
    return making.clamps.cut_to_workers(f"{spec.name}.concurrency", spec.concurrency or 1)


def _hinted(
    workers: Sequence[PlannedWorker], spec: StepSpec, making: _Making
) -> Sequence[PlannedWorker]:
    where = f"{spec.name}.max_concurrent_agents"
    hint = making.clamps.hint(where, spec.max_concurrent_agents)
    return [replace(worker, hint=hint) for worker in workers]


def _worker(
    spec: StepSpec, making: _Making, index: int, agent: AgentChoice | None
) -> PlannedWorker:
    persona = persona_of(making.manifest, spec)
    label = f"{agent.name} {agent.model}" if agent and agent.model else agent.name if agent else ""
    return PlannedWorker(
        id=WorkerId(spec.name, index),
        agent=agent,
        label=label,
        prompt=_prompt(spec),
        persona_prompt=(persona and persona.prompt) or "",
        permissions=making.defaults.permissions or permissions_of(making.manifest, spec),
    )


def _prompt(spec: StepSpec) -> str:
    """The step's template, which names its files in one way or another."""
    prompt = spec.prompt or ""
    if not spec.files or "files" in placeholders(prompt):
        return prompt
    return f"{prompt.rstrip()}\n\nThe files this is about: {{files}}"


def _merge(spec: StepSpec, manifest: Manifest) -> MergeMode:
    if spec.merge is not None:
        return MergeMode(spec.merge)
    if spec.run or manifest.runtime.isolation_strategy == "directory":
        return MergeMode.NONE
    return MergeMode.EACH if spec.strategy else MergeMode.CHOOSE


def _limits(spec: StepSpec, making: _Making) -> Limits:
    """Step over runtime over defaults, key by key."""
    minutes = making.defaults.timeout_minutes or spec.timeout_minutes
    own = spec.limits.said()
    if minutes:
        own = replace(own, time_seconds=minutes * 60)
    return own.over(making.manifest.runtime.limits.said()).over(making.defaults.limits)


def _retry(spec: RetrySpec) -> RetryRule:
    return RetryRule(
        attempts=spec.attempts,
        backoff=Backoff(spec.backoff),
        delay_s=spec.delay_seconds,
        longest_s=spec.max_delay_seconds,
        mode=RetryMode(spec.mode),
        has_feedback=spec.feedback,
        restarts=spec.intensity.restarts,
        per_s=spec.intensity.per_minutes * 60,
    )


def parse_policy(words: str) -> Policy:
    """Return the policy that words such as `all`, `race`, `first(2)` or `first:2` say.

    Raises:
        PlanError: Where it says none.
    """
    policy = Policy.read(words)
    if policy is None:
        *others, last = spellings(":N")
        raise PlanError(
            f"{words!r:.60} is not a policy",
            hint=f"Policies are {', '.join(others)} and {last}, with N at least 1.",
        )
    return policy
