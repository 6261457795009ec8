"""Agents from Python: prompted, gone on with, forked, run in parallel, described wrongly."""

import gc
import json
import weakref
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from engine import Agent, AgentRunFailed, Engine, Failure, Landed, Limits, Success
from engine.errors import AgentError, AgentNotFound, LockHeld, SpecError
from engine.messages.events import RunStarted, RunWaiting, Told, WorkerMoved
from engine.phases import Phase, StopCause
from tests.support.library import WRITES, Workbench, functions, script
from tests.support.processes import wait_until

__all__ = ["functions"]
pytestmark = [pytest.mark.anyio, pytest.mark.long]
QUICK = script({"result": "did {prompt}"})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    return Workbench(tmp_path, monkeypatch)


def agent(bench: Workbench, options: dict[str, Any] = QUICK, **words: Any) -> Agent:
    return Agent("scripted", repo=bench.project, options=options, **words)


async def test_a_conversation_goes_on_in_its_session_and_lands_whole(bench: Workbench) -> None:
    options = script(
        {"write": {"path": "b.txt", "text": "{prompt}\n"}},
        {"usage": {"input_tokens": 12, "output_tokens": 3, "usd": 0.5}},
        {"result": "did {prompt}"},
        resumed=[{"append": {"path": "b.txt", "text": "{prompt}\n"}}, {"result": "more {prompt}"}],
    )
    async with agent(bench, options) as one:
        first = await one.prompt("this")
        assert (first.text, first.usage.input_tokens) == ("did this", 12)
        assert first.change is not None
        assert bench.shown(first.change.head, "b.txt") == "this"

        second = await one.continue_turn("that {and} that")
        assert second.text == "more that {and} that"
        assert second.worker == first.worker
        assert second.result.workspace == first.result.workspace
        assert second.change is not None
        assert second.change.base == first.change.base
        assert [turn.prompt for turn in one.history] == ["this", "that {and} that"]

        assert isinstance(await one.land(), Landed)
    assert (bench.project / "b.txt").read_text() == "this\nthat {and} that\n"
    assert bench.worktrees() == []


async def test_who_cannot_resume_is_told_the_story_on_the_same_tree(bench: Workbench) -> None:
    argv = ["sh", "-c", "cat > heard.txt; date +%N >> tree.txt; wc -l < tree.txt"]
    async with Agent(command=argv, repo=bench.project) as one:
        assert (await one.prompt("first words")).text.strip() == "1"
        assert (await one.continue_turn("second words")).text.strip() == "2"
        reply = await one.continue_turn("third words")
    assert reply.text.strip() == "3"
    assert reply.change is not None
    heard = bench.shown(reply.change.head, "heard.txt")
    assert heard.index("first words") < heard.index("second words") < heard.index("third words")


async def test_a_prompt_begins_anew_and_a_landed_conversation_goes_on_from_there(
    bench: Workbench,
) -> None:
    async with agent(bench, WRITES) as one:
        await one.prompt("one")
        await one.land()
        reply = await one.continue_turn("two")
        assert reply.text.endswith("two")
        assert "did one" in reply.text
        assert bench.shown(reply.change.base, "b.txt") == "one"  # type: ignore[union-attr]
        assert (await one.prompt("three")).text == "did three"
        assert [turn.prompt for turn in one.history] == ["three"]


async def test_a_fork_goes_on_alone_with_history_tools_and_subscribers(bench: Workbench) -> None:
    heard: list[str] = []
    only_fork: list[str] = []
    async with agent(bench, WRITES, subscribers=[lambda told: heard.append(told.run)]) as one:
        first = await one.prompt("shared")
        async with one.fork() as fork:
            fork.subscribe(lambda told: only_fork.append(told.run))
            assert fork.history == one.history
            mine = await fork.continue_turn("mine")
            assert bench.shown(mine.change.base, "a.txt") == "one"  # type: ignore[union-attr]
            assert mine.run != first.run
            assert mine.run in heard
            assert [len(one.history), len(fork.history)] == [1, 2]
            yours = await one.continue_turn("yours")
            assert [len(one.history), len(fork.history)] == [2, 2]
        assert yours.run == first.run
        assert set(only_fork) == {mine.run}
        assert (await one.continue_turn("still here")).text == "did still here"


async def test_tools_are_inherited_and_told(bench: Workbench, functions: Any) -> None:
    used: list[str] = []

    def note(told: Told) -> None:
        if type(told.event).__name__ == "ToolUsed":
            used.append(told.event.tool)  # type: ignore[union-attr]

    one = Agent(call=functions.work, tools=[functions.shout], repo=bench.project)
    async with one, one.fork() as fork:
        fork.subscribe(note)
        reply = await fork.prompt("hello")
    assert reply.text.startswith("HELLO! by ")
    assert reply.change is not None
    assert bench.shown(reply.change.head, "made.txt") == "hello"
    assert used


async def test_parallel_prompts_keep_their_order_and_their_failures(bench: Workbench) -> None:
    prompts: list[Any] = ["slow a", "b", "bad c", "d", None]
    running, most, done = set[str](), [0], []

    def count(told: Told) -> None:
        if isinstance(told.event, WorkerMoved):
            busy = told.event.after.holds_slot
            (running.add if busy else running.discard)(told.run)
            most[0] = max(most[0], len(running))

    words: dict[str, Any] = {"isolation": "directory", "subscribers": [count]}
    branchy = [
        "sh",
        "-c",
        'case "$0" in bad*) exit 3;; slow*) sleep 0.4;; esac; echo "did $0"',
        "{prompt}",
    ]
    async with Agent(command=branchy, repo=bench.project, **words) as one:
        results = await one.run_parallel_prompts(
            prompts, max_parallel_runs=2, progress=lambda *told: done.append(told)
        )
        assert one.history == ()
        assert await one.run_parallel_prompts([]) == []
    texts = [r.value.text if isinstance(r, Success) else r.error for r in results]
    assert texts[:2] + texts[3:4] == ["did slow a", "did b", "did d"]
    assert isinstance(texts[2], AgentRunFailed)
    assert texts[2].result.phase is Phase.FAILED
    assert isinstance(results[4], Failure)
    assert isinstance(results[4].error, TypeError | AttributeError)
    assert [r.index for r in results] == [0, 1, 2, 3, 4]
    assert most == [2]
    assert [told[0] for told in done] == [1, 2, 3, 4, 5]


async def test_parallel_prompts_go_on_from_the_history(bench: Workbench) -> None:
    async with agent(bench, WRITES) as one:
        await one.prompt("read everything")
        (result,) = await one.run_parallel_prompts(["now answer"])
    assert isinstance(result, Success)
    assert "read everything" in result.value.text
    assert result.value.text.endswith("now answer")


async def test_what_parallel_prompts_refuse(bench: Workbench) -> None:
    one = agent(bench)
    with pytest.raises(ValueError, match="at least 1"):
        await one.run_parallel_prompts(["a"], max_parallel_runs=0)
    with pytest.raises(TypeError, match="is a string"):
        await one.run_parallel_prompts("a")
    await one.aclose()


async def test_a_failure_carries_its_result_and_the_conversation_goes_on(bench: Workbench) -> None:
    options = script(
        {"write": {"path": "b.txt", "text": "half\n"}},
        {"fail": "out of ideas"},
        resumed=[{"result": "{prompt}: done"}],
    )
    async with agent(bench, options) as one:
        with pytest.raises(AgentRunFailed, match="out of ideas") as caught:
            await one.prompt("try")
        assert caught.value.result.cause is StopCause.AGENT
        assert caught.value.change is not None
        assert bench.shown(caught.value.change.head, "b.txt") == "half"
        assert (await one.continue_turn("again")).text == "again: done"
        assert [turn.failed for turn in one.history] == [True, False]


async def test_a_check_and_a_limit_make_failures_with_their_causes(bench: Workbench) -> None:
    async with agent(bench, WRITES, check="grep -q nothing b.txt", isolation="worktree") as one:
        with pytest.raises(AgentRunFailed) as caught:
            await one.prompt("x")
    assert caught.value.result.cause is StopCause.CHECK
    words: dict[str, Any] = {"limits": Limits(time_seconds=0.3), "isolation": "directory"}
    async with agent(bench, script({"hang": True}), **words) as one:
        with pytest.raises(AgentRunFailed) as caught:
            await one.prompt("x")
    assert caught.value.result.cause is StopCause.TIMEOUT
    assert caught.value.result.limit_hit is not None


async def test_agents_are_named_in_the_manifest_of_the_repository(bench: Workbench) -> None:
    manifest = {
        "runtime": {"agent": "mine", "isolation_strategy": "directory"},
        "agents": {
            "mine": {"adapter": "scripted", **script({"result": "mine {prompt}"})},
            "claude": {"adapter": "scripted", **script({"result": "not claude {prompt}"})},
        },
        "pipelines": [{"name": "p", "steps": [{"name": "s", "run": "true"}]}],
    }
    (bench.project / "plait.yaml").write_text(json.dumps(manifest))
    async with Agent(repo=bench.project) as one:
        assert (await one.prompt("a")).text == "mine a"
    async with Agent("claude", repo=bench.project) as one:
        assert (await one.prompt("b")).text == "not claude b"
    async with Agent("cluade", repo=bench.project) as one:
        with pytest.raises(AgentNotFound, match="cluade"):
            await one.prompt("c")
    (bench.project / "plait.yaml").write_text("agents: 3\n")
    async with Agent("mine", repo=bench.project) as one:
        with pytest.raises(SpecError, match=r"plait\.yaml:1"):
            await one.prompt("d")


async def test_questions_are_answered_or_denied(bench: Workbench) -> None:
    options = script(
        {"ask": {"text": "which one?", "choices": ["left", "right"]}}, {"result": "{answer}"}
    )
    words: dict[str, Any] = {"isolation": "directory"}

    async def choose(question: Any) -> str:
        await anyio.lowlevel.checkpoint()
        return str(question.choices[1])

    async with agent(bench, options, answer=choose, **words) as one:
        assert (await one.prompt("ask me")).text == "right"
    async with agent(bench, options, **words) as one:
        assert (await one.prompt("ask me")).text == ""


async def test_every_event_is_told_before_the_reply(bench: Workbench) -> None:
    seen: list[type[Any]] = []

    async def hear(told: Told) -> None:
        await anyio.sleep(0.001)
        seen.append(type(told.event))

    async with agent(bench, WRITES) as one:
        end = one.subscribe(hear)
        await one.prompt("x")
        assert RunStarted in seen
        assert seen[-1] is RunWaiting
        end()
        count = len(seen)
        await one.continue_turn("y")
        assert len(seen) == count


async def test_what_a_subscriber_raises_ends_the_turn(bench: Workbench) -> None:
    def break_off(told: Told) -> None:
        raise ZeroDivisionError(told.run)

    async with agent(bench, script({"hang": True}), isolation="directory") as one:
        end = one.subscribe(break_off)
        with pytest.raises(ZeroDivisionError):
            await one.prompt("x")
        end()
        assert one.history == ()
    assert await bench.survivors() == set()


async def test_agents_of_a_repository_share_an_engine_until_the_last_is_closed(
    bench: Workbench,
) -> None:
    below = bench.project / "folder"
    below.mkdir()
    words: dict[str, Any] = {"options": QUICK, "isolation": "directory"}
    async with Agent("scripted", repo=bench.project, **words) as one:
        assert (await one.prompt("a")).text == "did a"
        async with Agent("scripted", repo=below, **words) as two:
            assert (await two.prompt("b")).text == "did b"
            await one.aclose()
            with pytest.raises(LockHeld):
                async with bench.engine():
                    pass
    async with bench.engine():
        pass
    assert await bench.survivors() == set()


async def test_an_agent_used_by_two_tasks_at_first_has_one_engine(bench: Workbench) -> None:
    done: list[Any] = []
    async with agent(bench, isolation="directory") as one:

        async def run(prompt: str) -> None:
            done.extend(await one.run_parallel_prompts([prompt]))

        async with anyio.create_task_group() as group:
            group.start_soon(run, "a")
            group.start_soon(run, "b")
        engine = weakref.ref(one._seat._engine)  # type: ignore[attr-defined]
        assert {result.value.text for result in done} == {"did a", "did b"}
    # A program that goes from repository to repository keeps none of them. The thread that waited
    # for its end may hold it for a moment longer than it takes to say so.
    await wait_until(lambda: gc.collect() >= 0 and engine() is None)


async def test_an_engine_of_ones_own_is_used_and_left_open(bench: Workbench) -> None:
    async with bench.engine() as engine:
        assert isinstance(engine, Engine)
        words: dict[str, Any] = {"options": WRITES, "engine": engine}
        async with Agent("scripted", **words) as one, one.fork() as other:
            reply = await one.prompt("x")
            assert [r.worker for r in (await engine.view(reply.run)).workers] == ["prompt/worker_1"]
            await other.prompt("y")
            assert isinstance(await engine.land(reply.worker), Landed)
        assert (await engine.view(reply.run)).workers[0].phase is Phase.LANDED


async def test_an_agent_is_one_thing_and_does_one_thing(bench: Workbench, functions: Any) -> None:
    with pytest.raises(AgentError, match="give only one"):
        Agent("claude", command=["true"])
    with pytest.raises(AgentError, match="not an argv"):
        Agent(command="true")
    with pytest.raises(AgentError, match=r"only Agent\(call=function\)"):
        Agent("claude", tools=[functions.shout])
    with pytest.raises(AgentError, match="thread"):
        Agent("claude", execution_mode="thread")
    async with Agent(call=lambda prompt: prompt, repo=bench.project) as one:
        with pytest.raises(AgentError, match="another process"):
            await one.prompt("x")
    async with agent(bench, script({"hang": True}), isolation="directory") as one:
        with pytest.raises(AgentError, match="there is no prompt yet"):
            await one.continue_turn("x")
        async with anyio.create_task_group() as group:
            group.start_soon(one.prompt, "x")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(AgentError, match="is busy"):
                await one.prompt("y")
            group.cancel_scope.cancel()


async def test_what_a_function_raises_is_its_failure(bench: Workbench, functions: Any) -> None:
    async with Agent(call=functions.fail, repo=bench.project, isolation="directory") as one:
        with pytest.raises(AgentRunFailed, match="ValueError: cannot do it"):
            await one.prompt("do it")


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_agents_work_on_the_other_loop_as_well(bench: Workbench) -> None:
    seen: list[str] = []
    words: dict[str, Any] = {"isolation": "directory"}
    async with agent(bench, subscribers=[lambda told: seen.append(told.run)], **words) as one:
        assert (await one.prompt("a")).text == "did a"
        assert seen
        one.subscribe(lambda _: scope.cancel())
        with anyio.CancelScope() as scope:
            await one.prompt("b")
        assert scope.cancelled_caught
    async with agent(bench, **words) as one:
        results = await one.run_parallel_prompts(["c", "d"])
        assert [r.value.text for r in results if isinstance(r, Success)] == ["did c", "did d"]
    assert await bench.survivors() == set()


async def test_a_repository_that_another_engine_has_is_said_and_can_be_had_later(
    bench: Workbench,
) -> None:
    one = agent(bench, isolation="directory")
    async with bench.engine():
        with pytest.raises(LockHeld, match="is locked by"):
            await one.prompt("x")
    async with one:
        assert (await one.prompt("y")).text == "did y"
