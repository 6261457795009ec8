"""Filling prompts, and the hint."""

import pytest

from engine.plan.from_prompts import step
from engine.plan.model import AgentChoice
from engine.plan.prompts import (
    LONGEST_VALUE,
    StepOutput,
    command_environment,
    cut,
    fill,
    hint_sentence,
    holding_sentence,
    prompt_values,
)

AGENT = AgentChoice(name="claude", adapter="claude")
STEP = step("port", agents=[AGENT], prompt="x", items=["a.py", "b.py"], files=("f", "g"))


def test_the_hint_reads_exactly_so():
    assert hint_sentence(4) == (
        "You may spawn up to 4 concurrent sub-agents or workers for this step."
    )


def test_everything_a_prompt_may_name_has_a_value():
    values = prompt_values(
        STEP,
        STEP.workers[1],
        run="r1",
        outputs={"design": StepOutput(output="Do it so.", branch="plait/r1/design/worker_1")},
    )
    template = (
        "{run} {step} {worker} {replica} {files} {item} {steps.design.output} {steps.design.branch}"
    )
    assert fill(template, values) == (
        "r1 port port/worker_2 2 f, g b.py Do it so. plait/r1/design/worker_1"
    )


def test_a_value_that_looks_like_a_placeholder_stays_text():
    values = {"steps.a.output": "{item} {{run}} {steps.a.output}", "item": "no", "run": "no"}
    assert fill("{steps.a.output}", values) == values["steps.a.output"]


def test_what_has_no_value_stays():
    assert fill("{item} {steps.x.output} {other} {{item}}", {}) == (
        "{item} {steps.x.output} {other} {item}"
    )


@pytest.mark.parametrize("letter", ["a", "ä", "🧶"])
def test_a_long_value_is_cut_where_everyone_sees_it(letter: str):
    value = letter * LONGEST_VALUE
    filled = fill("<{item}>", {"item": value})[1:-1]
    if letter == "a":
        assert filled == value, "exactly as long as allowed"
        filled = fill("<{item}>", {"item": value + "a"})[1:-1]
    assert len(filled.encode()) <= LONGEST_VALUE
    kept, _, left = filled.partition("\n[… cut here: ")
    assert set(kept) == {letter}
    assert int(left.split()[0]) + len(kept.encode()) >= LONGEST_VALUE


def test_half_a_surrogate_does_not_break_the_cut():
    assert cut("\ud800" * (LONGEST_VALUE + 1)).endswith("bytes more]")


def test_a_command_finds_its_values_in_its_environment():
    assert command_environment(STEP, STEP.workers[0], run="r1") == {
        "PLAIT_RUN": "r1",
        "PLAIT_STEP": "port",
        "PLAIT_WORKER": "port/worker_1",
        "PLAIT_REPLICA": "1",
        "PLAIT_ITEM": "a.py",
    }
    plain = step("s", run="make")
    assert "PLAIT_ITEM" not in command_environment(plain, plain.workers[0], run="r1")


def test_an_agent_hears_which_folders_its_worktree_holds():
    assert holding_sentence(["src", "docs"]) == (
        "This worktree holds only some folders of the repository: `src`, `docs`. The other files "
        "are in git: read one with `git show HEAD:PATH`, or add its folder with "
        "`git sparse-checkout add FOLDER`. New files elsewhere need `git add --sparse`."
    )
    assert "`f19` and 5 more. " in holding_sentence([f"f{n}" for n in range(25)])
    assert "repository: none. " in holding_sentence([])
