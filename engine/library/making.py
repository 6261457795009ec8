"""From an agent as a program describes it to the plan of its run."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import anyio.to_thread

from engine.agents.calling import in_this_process, reference_of
from engine.api import Engine, read_inside
from engine.errors import AgentError
from engine.library.replies import ConversationState
from engine.limits import DEFAULT_LIMITS, Limits
from engine.plan.agents import agent_of, choose_agent, permissions_of
from engine.plan.from_prompts import plan_of, step
from engine.plan.model import AgentChoice, ExecutionMode, IsolationStrategy, Plan, Runtime
from engine.plan.runtime import review_of, runtime_of, workspace_of
from engine.policies import MergeMode
from engine.spec.load import load_manifest
from engine.spec.pipeline import Manifest, PipelineSpec, StepSpec
from engine.spec.placeholders import escaped
from engine.spec.runtime import RuntimeSpec
from engine.values import dataclass

MANIFEST = "plait.yaml"
CALLABLE = "callable"
_EMPTY = Manifest(
    pipelines=(PipelineSpec(name="none", steps=(StepSpec(name="none", run="true"),)),)
)

_NOWHERE = ConversationState()

Tool = Callable[..., Any]
"""A Python function that an agent may call."""


@dataclass(frozen=True, kw_only=True)
class AgentSource:
    """The one who does the work, as a program says it: exactly one of name, argv, function."""

    name: str | None = None
    command: tuple[str, ...] = ()
    call: Callable[..., Any] | None = None
    model: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    execution_mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """The settings of its work."""

    limits: Limits = field(default_factory=Limits)
    system: str = ""
    check: str | None = None
    base: str | None = None
    target: str | None = None
    isolation: str | None = None


def option_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return an agent's options as texts for adapters; lists and mappings become JSON."""
    return {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in options.items()
    }


def check_who(who: AgentSource) -> None:
    """Refuse what cannot be: several kinds of agent at once, or tools that it could not be given.

    Raises:
        AgentError: It says which, and what to do.
    """
    if bool(who.name) + bool(who.command) + (who.call is not None) > 1:
        raise AgentError(
            "an agent is a name, a command or a function: give only one",
            hint='Write Agent("claude"), Agent(command=[…]) or Agent(call=function).',
        )
    if who.call is not None and not callable(who.call):
        raise AgentError(f"{who.call!r} cannot be called", hint="Pass the function itself.")
    if who.tools and who.call is None:
        raise AgentError(
            "only Agent(call=function) can be given Python functions as tools",
            hint="An agent with its own program runs in another process: put a command on its "
            "PATH, or name an MCP server in its configuration.",
        )
    if who.execution_mode == ExecutionMode.THREAD and who.call is None:
        raise AgentError("only a Python function can run in a thread")


async def manifest_of(engine: Engine) -> Manifest | None:
    """Return the repository's own plait.yaml, if it has one.

    Raises:
        SpecError: It is wrong.
    """
    return await anyio.to_thread.run_sync(_read, engine.project)


def _read(folder: Path) -> Manifest | None:
    path = folder / MANIFEST
    if not path.is_file():
        return None
    return load_manifest(path.read_bytes(), file=str(path), read=partial(read_inside, folder))


def choice_of(who: AgentSource, manifest: Manifest | None) -> AgentChoice:
    """Return the agent that is meant.

    Raises:
        AgentNotFound: No agent and no adapter is called so.
        PlanError: None is named, and the manifest names none for all.
        AgentError: A function cannot be found again by another process.
    """
    if who.call is not None:
        return _callable_choice(who, who.call, manifest)
    if who.command:
        options = {"proof": "exit", **who.options}
        return AgentChoice(
            name=Path(who.command[0]).name,
            adapter="command",
            argv=who.command,
            env=who.env,
            options=options,
        )
    agents = manifest.agents if manifest else {}
    if who.name is None:
        found = agent_of(manifest or _EMPTY, StepSpec(name="prompt", prompt="prompt"))
    else:
        found = choose_agent(who.name, agents, model=who.model)
    return replace(
        found,
        model=who.model or found.model,
        env={**found.env, **who.env},
        options={**found.options, **who.options},
    )


def _callable_choice(
    who: AgentSource, function: Callable[..., Any], manifest: Manifest | None
) -> AgentChoice:
    mode = who.execution_mode or (manifest.runtime.execution_mode if manifest else "process")
    refer = in_this_process if mode == ExecutionMode.THREAD else reference_of
    options = {"call": refer(function), **who.options}
    if who.tools:
        options["tools"] = " ".join(map(refer, who.tools))
    name = getattr(function, "__name__", type(function).__name__)
    return AgentChoice(name=name, adapter=CALLABLE, env=who.env, options=options)


@dataclass(frozen=True, kw_only=True)
class Brief:
    """A worker, the settings of its work, and what the repository's manifest says besides."""

    who: AgentSource
    how: WorkSettings
    manifest: Manifest | None

    @classmethod
    async def read(cls, engine: Engine, who: AgentSource, how: WorkSettings) -> Self:
        """Return a brief with what the manifest says now.

        Raises:
            SpecError: The manifest is wrong.
        """
        return cls(who=who, how=how, manifest=await manifest_of(engine))

    @cached_property
    def choice(self) -> AgentChoice:
        """Return the agent that is meant.

        Raises:
            AgentError: It is not known, or a function cannot be found by another process.
            PlanError: None is named, and the manifest names none for all.
        """
        return choice_of(self.who, self.manifest)

    def plan(
        self,
        text: str,
        *,
        name: str = "prompt",
        standing: ConversationState = _NOWHERE,
        keeps_workspace: bool = False,
    ) -> Plan:
        """Return the plan of a run with one worker, which is asked this, literally.

        Args:
            text: The prompt.
            name: The step's name.
            standing: Earlier work that belongs to the change.
            keeps_workspace: Leave the workspace where it is, whatever comes out.
        """
        manifest = self.manifest or _EMPTY
        runtime = self._runtime(manifest.runtime, standing)
        if keeps_workspace:
            runtime = replace(runtime, cleanup_on_complete=False)
        is_plain = runtime.isolation is IsolationStrategy.DIRECTORY
        planned = step(
            name,
            agents=[self.choice],
            prompt=escaped(text),
            limits=_limits(self.how.limits, manifest),
            check=self.how.check,
            merge=MergeMode.NONE if is_plain else MergeMode.CHOOSE,
        )
        permissions = permissions_of(manifest, StepSpec(name="prompt", prompt="prompt"))
        workers = tuple(
            replace(worker, persona_prompt=self.how.system, permissions=permissions)
            for worker in planned.workers
        )
        return plan_of(
            replace(planned, workers=workers),
            name=name,
            runtime=runtime,
            workspace=workspace_of(manifest.workspace),
            review=review_of(manifest),
        )

    def _runtime(self, spec: RuntimeSpec, standing: ConversationState) -> Runtime:
        runtime = runtime_of(spec, workers=spec.max_concurrent_workers)
        how, mode = self.how, self.who.execution_mode
        return replace(
            runtime,
            base=standing.base or how.base or runtime.base,
            start=standing.start,
            target=how.target or runtime.target,
            isolation=IsolationStrategy(how.isolation or runtime.isolation),
            execution_mode=ExecutionMode(mode or runtime.execution_mode),
        )


def _limits(own: Limits, manifest: Manifest) -> Limits:
    """Return the caller's over the manifest's over the defaults, key by key."""
    return own.over(manifest.runtime.limits.said()).over(DEFAULT_LIMITS)


def as_command(words: str | Sequence[str]) -> tuple[str, ...]:
    """Return an argv; a single text is none, because nobody says which shell splits it.

    Raises:
        AgentError: It is a single text, or empty.
    """
    if isinstance(words, str) or not words:
        raise AgentError(
            f"{words!r} is not an argv", hint='Write command=["./agent.sh", "{prompt}"].'
        )
    return tuple(map(str, words))
