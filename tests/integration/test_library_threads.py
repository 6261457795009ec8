"""Functions in threads: closures as agents, stopped, timed, asked; nothing is claimed of them."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine import Agent, AgentRunFailed, CallContext
from engine.errors import MechanismMissing
from engine.limits import Level, Limits
from engine.messages.events import Told, WorkerMoved
from engine.phases import Phase, StopCause
from tests.support.library import Workbench

pytestmark = pytest.mark.anyio
LET_GO_S = 30.0


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    return Workbench(tmp_path, monkeypatch)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    made = threading.Event()
    yield made
    made.set()


def in_thread(bench: Workbench, call: Any, **words: Any) -> Agent:
    return Agent(call=call, repo=bench.project, execution_mode="thread", **words)


async def test_a_closure_works_in_its_workspace_with_its_tools(bench: Workbench) -> None:
    here = threading.get_ident()
    seen: list[int] = []

    def double(number: int) -> int:
        return number * 2

    def work(prompt: str, context: CallContext) -> str:
        seen.append(threading.get_ident())
        Path(context.workspace, "made.txt").write_text(prompt)
        context.spend(input_tokens=7)
        return str(context.tools["double"](21))

    async with in_thread(bench, work, tools=[double]) as agent:
        reply = await agent.prompt("hello")
        assert reply.text == "42"
        assert reply.usage.input_tokens == 7
        assert reply.change is not None
        assert bench.shown(reply.change.head, "made.txt") == "hello"
        assert {row.level for row in reply.result.limits} == {Level.NONE, Level.SAMPLED}
        assert seen[0] != here
        again = await agent.continue_turn("and again")
        assert again.text == "42"


async def test_questions_failures_and_time_reach_a_thread(
    bench: Workbench, gate: threading.Event
) -> None:
    words: dict[str, Any] = {"isolation": "directory"}

    def ask(_: str, context: CallContext) -> str:
        return context.ask("which?", ("left", "right"))

    async with in_thread(bench, ask, answer=lambda q: q.choices[0], **words) as agent:
        assert (await agent.prompt("x")).text == "left"

    def fail(prompt: str) -> None:
        raise ValueError(prompt)

    async with in_thread(bench, fail, **words) as agent:
        with pytest.raises(AgentRunFailed, match="ValueError: because"):
            await agent.prompt("because")

    def wait(_: str) -> None:
        gate.wait(LET_GO_S)

    async with in_thread(bench, wait, limits=Limits(time_seconds=0.1), **words) as agent:
        with pytest.raises(AgentRunFailed) as caught:
            await agent.prompt("x")
    assert caught.value.result.cause is StopCause.TIMEOUT


async def test_a_stopped_function_ends_at_the_next_thing_it_tells(
    bench: Workbench, gate: threading.Event
) -> None:
    ended = threading.Event()

    def wait(_: str, context: CallContext) -> None:
        try:
            gate.wait(LET_GO_S)
            context.say("I am still there")
        except Exception:  # noqa: BLE001 - a function that holds everything up
            return
        finally:
            ended.set()

    with anyio.CancelScope() as scope:

        def when_running(told: Told) -> None:
            if isinstance(told.event, WorkerMoved) and told.event.after is Phase.RUNNING:
                scope.cancel()

        async with in_thread(bench, wait, subscribers=[when_running]) as agent:
            await agent.prompt("x")
    assert scope.cancelled_caught
    assert bench.worktrees() == []
    gate.set()
    assert await anyio.to_thread.run_sync(ended.wait, LET_GO_S)


async def test_what_a_thread_cannot_hold_is_not_promised(bench: Workbench) -> None:
    manifest = "runtime: {require: [memory]}\npipelines:\n- name: p\n  steps:\n"
    (bench.project / "plait.yaml").write_text(manifest + "  - {name: s, run: 'true'}\n")
    async with in_thread(bench, lambda prompt: prompt) as agent:
        with pytest.raises(MechanismMissing, match="memory"):
            await agent.prompt("x")
