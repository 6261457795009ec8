"""Python functions as agents, in processes of their own and in threads."""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import Asked, Progressed, Raw, ToolCalled
from engine.agents.call_program import CallContext
from engine.agents.calling import CallableAdapter, reference_of
from engine.agents.contract import LaunchRequest
from engine.errors import AgentError
from engine.plan.model import AgentChoice
from tests.support.agent_runs import RunningAgent, launch_request

pytestmark = pytest.mark.anyio


def greet(prompt: str, context: CallContext) -> str:
    """Do a little of everything."""
    print("half a line", end="")  # noqa: T201 - what an agent prints is output
    context.progress(0.5, "half")
    context.tool("Write", "hello.txt")("done")
    Path(context.workspace, "hello.txt").write_text(prompt)
    context.spend(input_tokens=5)
    context.spend(input_tokens=5, usd=0.1)
    return f"{context.worker}: {context.ask('Sure?', ('yes', 'no'))}"


async def slowly() -> dict[str, int]:
    return {"answer": 42}


def where() -> str:
    return f"{Path.cwd()} {os.getpid()}"


def fails(_prompt: str) -> None:
    raise ValueError("it does not work")


def request(tmp_path: Path, call: str, **options: str) -> LaunchRequest:
    path = ":".join([str(Path(__file__).parents[2]), *(p for p in sys.path if p)])
    choice = AgentChoice(
        name="mine", adapter="callable", options={"call": call, "path": path, **options}
    )
    return launch_request(tmp_path, choice=choice)


def test_a_function_tells_asks_and_returns(tmp_path: Path) -> None:
    running = RunningAgent(CallableAdapter(), request(tmp_path, reference_of(greet)))
    asked = running.until(Asked)
    assert asked.choices == ("yes", "no")
    running.write(running.parser.answer(asked.id, "yes"))
    outcome = running.end()
    assert outcome.ok, outcome.error
    assert outcome.text == "task/worker_1: yes"
    assert (outcome.usage.input_tokens, outcome.usage.usd) == (10, 0.1)
    assert (tmp_path / "work/hello.txt").read_text() == "Fix the parser"
    assert running.told(Raw) == [Raw("half a line")]
    assert running.told(Progressed) == [Progressed(0.5, "half")]
    assert running.told(ToolCalled)[0].title == "hello.txt"


def test_an_async_function_and_a_value_that_is_no_text_are_fine(tmp_path: Path) -> None:
    outcome = RunningAgent(CallableAdapter(), request(tmp_path, reference_of(slowly))).end()
    assert json.loads(outcome.text) == {"answer": 42}


def test_it_runs_in_its_workspace_and_in_another_process(tmp_path: Path) -> None:
    folder, pid = (
        RunningAgent(CallableAdapter(), request(tmp_path, reference_of(where))).end().text.split()
    )
    assert folder == str(tmp_path / "work")
    assert int(pid) != os.getpid()


def test_what_it_raises_is_its_failure(tmp_path: Path) -> None:
    running = RunningAgent(CallableAdapter(), request(tmp_path, reference_of(fails)))
    outcome = running.end()
    assert outcome.error == "ValueError: it does not work"
    assert any("Traceback" in event.line for event in running.told(Raw))


def test_a_name_that_leads_nowhere_is_a_failure_too(tmp_path: Path) -> None:
    outcome = RunningAgent(CallableAdapter(), request(tmp_path, "nowhere.at_all:work")).end()
    assert "ModuleNotFoundError" in outcome.error


def test_a_function_of_a_script_is_found_by_its_file(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text("def work(prompt):\n    return prompt.upper()\n")
    outcome = RunningAgent(CallableAdapter(), request(tmp_path, f"{script}:work")).end()
    assert outcome.text == "FIX THE PARSER"


@pytest.mark.parametrize(
    "function", [lambda prompt: prompt, functools.partial(fails, ""), "text".upper]
)
def test_what_cannot_be_found_again_is_refused_with_the_reason(function: Any) -> None:
    with pytest.raises(AgentError, match="no importable name") as caught:
        reference_of(function)
    assert "thread" in caught.value.hint
