"""The agents of workers: names of a manifest, or adapters, made into choices."""

import json
from collections.abc import Mapping

from engine.errors import AgentNotFound, PlanError
from engine.plan.model import AgentChoice, PermissionMode, Permissions, SettingsWish
from engine.spec.nearest import nearest
from engine.spec.pipeline import AgentSpec, Manifest, PersonaSpec, StepSpec, VariantSpec
from engine.spec.runtime import PermissionRules
from engine.spec.words import ADAPTERS, NEEDS_ARGV


def choose_agent(
    name: str, agents: Mapping[str, AgentSpec], *, model: str | None = None
) -> AgentChoice:
    """The agent of that name: an entry of `agents`, else the adapter that is called so.

    Raises:
        AgentNotFound: Where nothing is called so.
    """
    spec = agents.get(name)
    if spec is None:
        return AgentChoice(name=name, adapter=_adapter(name, agents), model=model)
    return AgentChoice(
        name=name,
        adapter=spec.adapter,
        model=model or spec.model,
        argv=spec.argv or (),
        env=dict(spec.env),
        options=_options(spec),
        user_settings=SettingsWish(spec.user_settings),
        user_code=spec.user_code,
        day_budget_usd=spec.day_budget_usd,
        day_budget_tokens=spec.day_budget_tokens,
    )


def _adapter(name: str, agents: Mapping[str, AgentSpec]) -> str:
    if name in NEEDS_ARGV:
        hint = (
            f"Give it a name and an `argv` under `agents` in plait.yaml: `{name}` has no program."
        )
        raise AgentNotFound(name, hint=hint)
    if name in ADAPTERS:
        return name
    known = list(dict.fromkeys([*agents, *(a for a in ADAPTERS if a not in NEEDS_ARGV)]))
    guess = nearest(name, known)
    meant = f"Did you mean {guess!r}? " if guess else ""
    raise AgentNotFound(name, hint=f"{meant}Known agents: {', '.join(known)}.")


def _options(spec: AgentSpec) -> dict[str, str]:
    """Return the adapter's options as text; a script that was written in place becomes JSON."""
    options = dict(spec.options)
    for key in ("prompt_via", "terminal", "events"):
        value = getattr(spec, key)
        if value is not None:
            options[key] = str(value).lower() if isinstance(value, bool) else value
    if spec.script is not None:
        is_text = isinstance(spec.script, str)
        options["script"] = spec.script if is_text else json.dumps(spec.script, ensure_ascii=False)
    return options


def agent_of(manifest: Manifest, step: StepSpec, variant: VariantSpec | None = None) -> AgentChoice:
    """The agent of one worker: variant, step, persona, runtime, or the only one there is."""
    persona = persona_of(manifest, step)
    only = next(iter(manifest.agents)) if len(manifest.agents) == 1 else None
    name = (
        (variant and variant.agent)
        or step.agent
        or (persona and persona.agent)
        or manifest.runtime.agent
        or only
    )
    if not name:
        there = ", ".join(manifest.agents or ADAPTERS)
        raise PlanError(
            f"step {step.name!r} does not name an agent",
            hint=f"Name one with `agent:` or `-a`: {there}. `plait agents` lists installed agents.",
        )
    return choose_agent(name, manifest.agents, model=variant.model if variant else None)


def persona_of(manifest: Manifest, step: StepSpec) -> PersonaSpec | None:
    """The persona that works in a step.

    Raises:
        PlanError: Where the step names one that is not there.
    """
    if step.persona is None:
        return None
    if step.persona not in manifest.personas:
        raise PlanError(
            f"step {step.name!r} names the persona {step.persona!r}, which does not exist"
        )
    return manifest.personas[step.persona]


def permissions_of(manifest: Manifest, step: StepSpec) -> Permissions:
    """Return who answers the agents of a step: the step's word, the persona's, or the run's."""
    persona = persona_of(manifest, step)
    said = step.permissions or (persona and persona.permissions) or manifest.runtime.permissions
    if isinstance(said, PermissionRules):
        return Permissions(mode=PermissionMode.RULES, allow=said.allow, deny=said.deny)
    return Permissions(mode=PermissionMode(said))
