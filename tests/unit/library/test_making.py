"""From a description in Python to a plan: what is said by whom holds, and histories stay short."""

from typing import Any

import pytest

from engine.errors import AgentError, PlanError
from engine.library.making import (
    AgentSource,
    Brief,
    WorkSettings,
    as_command,
    check_who,
    option_texts,
)
from engine.library.replies import ConversationState, Turn, TurnHistory
from engine.limits import DEFAULT_LIMITS, Limits
from engine.plan.model import ExecutionMode, IsolationStrategy, Plan, Runtime
from engine.policies import MergeMode
from engine.spec.load import manifest_from
from engine.spec.pipeline import Manifest


def manifest(**runtime: Any) -> Manifest:
    return manifest_from(
        {
            "runtime": {"limits": {"memory_mb": 111, "pids": 22}, "auto_merge": True, **runtime},
            "agents": {"mine": {"adapter": "scripted", "script": []}},
            "pipelines": [{"name": "p", "steps": [{"name": "s", "run": "true"}]}],
        }
    )


def plan(
    who: AgentSource,
    how: WorkSettings | None = None,
    read: Manifest | None = None,
    standing: ConversationState | None = None,
) -> Plan:
    brief = Brief(who=who, how=how or WorkSettings(), manifest=read)
    return brief.plan("do {item}", standing=standing or ConversationState())


def test_what_nobody_says_is_as_for_any_run() -> None:
    made = plan(AgentSource(command=("true",)))
    (step,) = made.steps
    assert made.runtime == Runtime()
    assert step.limits == DEFAULT_LIMITS
    assert step.workers[0].prompt == "do {{item}}"
    assert step.merge is MergeMode.CHOOSE


def test_the_caller_stands_over_the_manifest_and_that_over_the_defaults() -> None:
    made = plan(AgentSource(name="mine"), WorkSettings(limits=Limits(memory_mb=333)), manifest())
    (step,) = made.steps
    assert (step.limits.memory_mb, step.limits.pids) == (333, 22)
    assert step.limits.time_seconds == DEFAULT_LIMITS.time_seconds
    assert made.runtime.auto_merge
    assert step.workers[0].agent is not None
    assert step.workers[0].agent.adapter == "scripted"


def test_a_standing_is_base_and_start() -> None:
    who = AgentSource(command=("true",), execution_mode=None)
    made = plan(
        who, WorkSettings(base="HEAD~3"), standing=ConversationState(base="b" * 40, start="s" * 40)
    )
    assert (made.runtime.base, made.runtime.start) == ("b" * 40, "s" * 40)
    assert plan(who, WorkSettings(base="HEAD~3")).runtime.base == "HEAD~3"


def test_a_plain_folder_has_nothing_to_merge_and_threads_are_said() -> None:
    who = AgentSource(call=lambda prompt: prompt, execution_mode="thread")
    made = plan(who, WorkSettings(isolation="directory"))
    assert made.steps[0].merge is MergeMode.NONE
    assert made.runtime.isolation is IsolationStrategy.DIRECTORY
    assert made.runtime.execution_mode is ExecutionMode.THREAD


def test_nobody_named_is_the_manifests_own_or_an_error() -> None:
    assert Brief(who=AgentSource(), how=WorkSettings(), manifest=manifest()).choice.name == "mine"
    with pytest.raises(PlanError, match="does not name an agent"):
        _ = Brief(who=AgentSource(), how=WorkSettings(), manifest=None).choice


@pytest.mark.parametrize(
    ("who", "why"),
    [
        (AgentSource(name="a", command=("b",)), "give only one"),
        (AgentSource(call=3), "cannot be called"),  # type: ignore[arg-type]
        (AgentSource(name="a", tools=(print,)), "only Agent"),
        (AgentSource(name="a", execution_mode="thread"), "thread"),
    ],
)
def test_who_contradicts_itself_is_refused(who: AgentSource, why: str) -> None:
    with pytest.raises(AgentError, match=why):
        check_who(who)


def test_options_are_texts_and_an_argv_is_no_text() -> None:
    assert option_texts({"a": "b", "c": {"d": [1]}}) == {"a": "b", "c": '{"d": [1]}'}
    assert as_command(["a", "b"]) == ("a", "b")
    for wrong in ("a b", []):
        with pytest.raises(AgentError, match="not an argv"):
            as_command(wrong)


def test_a_history_is_told_newest_first_in_mind_and_short() -> None:
    history = TurnHistory()
    for number in range(20):
        history = history.with_turn(Turn(f"question {number} " + "x" * 9000, f"answer {number}"))
    told = history.told("and now?")
    assert told.endswith("User:\nand now?")
    assert "answer 19" in told
    assert "answer 0" not in told
    assert "left out" in told
    assert len(told) < 32 * 1024
    assert "left out" not in TurnHistory((Turn("a", "b"),)).told("c")
