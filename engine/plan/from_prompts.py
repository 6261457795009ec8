"""Plans without a pipeline: prompts and agents from a command line, or steps built in Python."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.errors import ConcurrencyWithMatrix, PlanError
from engine.ids import WorkerId
from engine.legible import legible_line
from engine.plan.make import PlanDefaults, make_plan
from engine.plan.model import (
    AgentChoice,
    Plan,
    PlannedStep,
    PlannedWorker,
    ReviewRules,
    Runtime,
    WorkspaceRules,
)
from engine.plan.order import check_policy, ordered
from engine.policies import MergeMode
from engine.spec.pipeline import Manifest, PipelineSpec, StepSpec, VariantSpec
from engine.spec.placeholders import escaped
from engine.spec.words import HINT_CAP, WORKER_CAP


def plan_from_prompts(
    prompts: Sequence[str],
    agents: Sequence[str] = (),
    *,
    models: Sequence[str] = (),
    replicas: int | None = None,
    manifest: Manifest | None = None,
    defaults: PlanDefaults | None = None,
) -> Plan:
    """The plan of `plait run -p PROMPT… -a AGENT[:N]… --models A,B -n N`: a step for each prompt.

    Several candidates are all let finish (policy `settled`) unless the defaults say otherwise.

    Args:
        prompts: Taken literally, placeholders or not.
        agents: `NAME` or `NAME:N`; none means the manifest's only or default agent.
        models: Several models for each agent; none means the agent's own.
        replicas: How many candidates of each agent, or agent and model, without its own number.
        manifest: Whose runtime, workspace and agents hold; its pipelines are not looked at.
        defaults: What stands where nothing is said, and what overrules.

    Raises:
        PlanError: Where no plan can be made; AgentNotFound where an agent is none.
    """
    if not prompts or not all(prompt.strip() for prompt in prompts):
        raise PlanError("there is no prompt", hint="Give a prompt: `plait run -p TEXT`.")
    variants = tuple(agent_variant(words, replicas) for words in agents)
    if models:
        alike = variants or (agent_variant("", replicas),)
        variants = tuple(_over(checked_models(models), variant) for variant in alike)
    count = sum(each.n * len(each.models or (each,)) for each in variants) or replicas or 1
    if count < 1:
        raise PlanError(f"{replicas} candidates cannot run", hint="Ask for at least 1.")
    steps = tuple(
        StepSpec(
            name=name,
            prompt=escaped(prompt),
            variants=variants or None,
            concurrency=None if variants else count,
            policy="settled" if count > 1 else "all",
        )
        for name, prompt in zip(_step_names(prompts), prompts, strict=True)
    )
    pipelines = (PipelineSpec(name="prompts", steps=steps),)
    base = manifest or Manifest()
    plan = make_plan(base.model_copy(update={"pipelines": pipelines}), defaults=defaults)
    more = f" and {len(prompts) - 1} more" if len(prompts) > 1 else ""
    return replace(plan, name=title_of(prompts[0]) + more)


def title_of(prompt: str) -> str:
    """Return a short title of a prompt: the beginning of its first line, cut at a word."""
    line = next((line for line in map(legible_line, prompt.split("\n")) if line), "")
    return _beginning(line, " ", _TITLE).rstrip(" .,;:")


def _step_names(prompts: Sequence[str]) -> Iterator[str]:
    """Yield a name for the step of each prompt, made of its first words; no two are the same."""
    used: set[str] = set()
    for i, prompt in enumerate(prompts, 1):
        plain = _NO_NAME.sub("-", title_of(prompt).lower()).strip("-")
        name = _beginning(plain, "-", _NAME) or "task"
        name = name if name not in used else f"{name}-{i}"
        used.add(name)
        yield name


def _beginning(text: str, between: str, most: int) -> str:
    """Return the whole words that fit; of one long word its beginning."""
    if len(text) <= most:
        return text
    return text[: most + 1].rpartition(between)[0] or text[:most]


def agent_variant(words: str, replicas: int | None = None) -> VariantSpec:
    """Return the variant that `claude` or `claude:2` asks for.

    Raises:
        PlanError: Where the number is none.
    """
    name, colon, number = words.partition(":")
    if colon and not (number.isascii() and number.isdigit() and 0 < len(number) < _DIGITS):
        raise PlanError(
            f"{words!r:.60} does not name an agent", hint="Write NAME or NAME:N, like claude:2."
        )
    count = int(number) if colon else 1 if replicas is None else replicas
    if count < 1:
        raise PlanError(f"{count} candidates of {name!r} cannot run", hint="Ask for at least 1.")
    return VariantSpec(agent=name or None, n=count)


def checked_models(models: Sequence[str]) -> tuple[str, ...]:
    """Return the names of models without the blanks around them.

    Raises:
        PlanError: One is empty, or is said twice.
    """
    names = tuple(name.strip() for name in models)
    if not all(names):
        raise PlanError("one of the models has no name", hint="Write `--models a,b,c`.")
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise PlanError(
            f"the model {twice[0]!r} is named twice", hint="Ask for more of each with `-n`."
        )
    return names


def _over(models: tuple[str, ...], variant: VariantSpec) -> VariantSpec:
    return VariantSpec(agent=variant.agent, models=models, n=variant.n)


_DIGITS = 10
_TITLE, _NAME = 40, 20
_NO_NAME = re.compile(r"[^a-z0-9]+")


def step(
    name: str,
    *,
    agents: Sequence[AgentChoice] = (),
    prompt: str = "",
    replicas: int | None = None,
    items: Sequence[str] = (),
    hint: int | None = None,
    **rest: Any,
) -> PlannedStep:
    """A step built in Python, its workers expanded.

    Args:
        name: The step's name.
        agents: One for all workers, or one for each; none for a command step (`run=`).
        prompt: A template, like a manifest's.
        replicas: How many workers; by default one for each agent.
        items: One worker for each; not with replicas.
        hint: The sub-agents each may spawn.
        rest: The other fields of PlannedStep.

    Raises:
        ConcurrencyWithMatrix: With both replicas and items.
        PlanError: Where agents and replicas do not agree.
    """
    if items and replicas is not None:
        raise ConcurrencyWithMatrix(name)
    count = len(items) or replicas or len(agents) or 1
    if len(agents) not in (0, 1, count):
        raise PlanError(f"step {name!r} has {len(agents)} agents for {count} workers")
    each = [None] * count if not agents else list(agents) * (count if len(agents) == 1 else 1)
    told = min(hint, HINT_CAP) if hint is not None and hint > 1 else None
    workers = tuple(
        PlannedWorker(
            id=WorkerId(name, i),
            agent=agent,
            label=items[i - 1] if items else agent.name if agent else "",
            item=items[i - 1] if items else None,
            prompt=prompt,
            hint=told,
        )
        for i, agent in enumerate(each, 1)
    )
    if items:
        rest.setdefault("merge", MergeMode.EACH)
    elif rest.get("run"):
        rest.setdefault("merge", MergeMode.NONE)
    planned = PlannedStep(name=name, workers=workers, **rest)
    return replace(planned, wants_change=planned.run is None and planned.merge.lands)


def plan_of(
    *steps: PlannedStep,
    name: str = "run",
    runtime: Runtime | None = None,
    workspace: WorkspaceRules | None = None,
    review: ReviewRules | None = None,
) -> Plan:
    """A plan of steps built in Python, put in order and held to the laws of every plan.

    Raises:
        PlanError: Where they are broken; CyclicDependency and UnknownDependency among them.
    """
    by_name = {planned.name: planned for planned in steps}
    if not steps or len(by_name) < len(steps):
        raise PlanError("a plan needs at least one step, and each name only once")
    for planned in steps:
        _check(planned)
    runtime = runtime or Runtime()
    if not 1 <= runtime.max_concurrent_workers <= WORKER_CAP:
        raise PlanError(f"an engine runs 1 to {WORKER_CAP} workers at once")
    names = ordered({planned.name: planned.dependencies for planned in steps})
    return Plan(
        name=name,
        steps=tuple(by_name[step_name] for step_name in names),
        runtime=runtime,
        workspace=workspace or WorkspaceRules(),
        review=review or ReviewRules(),
    )


def _check(planned: PlannedStep) -> None:
    expected = tuple(WorkerId(planned.name, i + 1) for i in range(len(planned.workers)))
    if not expected or tuple(worker.id for worker in planned.workers) != expected:
        raise PlanError(f"the workers of step {planned.name!r} are not numbered from 1")
    if planned.run is None and any(worker.agent is None for worker in planned.workers):
        raise PlanError(f"step {planned.name!r} has neither an agent nor a command to run")
    check_policy(planned.name, planned.policy, len(planned.workers))
