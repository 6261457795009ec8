"""The scripted agent as a real process: what it plays is what its parser tells."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import (
    AgentOutcome,
    Asked,
    Decided,
    Progressed,
    ProtocolReply,
    RateLimited,
    Raw,
    Said,
    Started,
    ToolCalled,
    ToolEnded,
    UsageSeen,
)
from engine.agents.contract import LaunchRequest
from engine.agents.own_stream import OwnStream
from engine.agents.script import SHAPES, ScriptInvalid
from engine.agents.script_player import STEPS
from engine.agents.scripted import ScriptedAdapter
from engine.plan.model import AgentChoice, PermissionMode, Permissions
from tests.support.agent_runs import RunningAgent, launch_request

SCRIPTED = ScriptedAdapter()


def request(tmp_path: Path, script: str, **more: Any) -> LaunchRequest:
    choice = AgentChoice(name="demo", adapter="scripted", options={"script": script})
    return launch_request(tmp_path, choice=choice, **more)


def play(tmp_path: Path, script: str, **more: Any) -> tuple[RunningAgent, AgentOutcome]:
    running = RunningAgent(SCRIPTED, request(tmp_path, script, **more))
    outcome = running.end()
    return running, outcome


def test_a_script_works_in_the_tree_and_ends_well(tmp_path: Path) -> None:
    running, outcome = play(
        tmp_path,
        """
        - say: "On it: {prompt}"
        - write: {path: src/a.py, text: "one\\n"}
        - append: {path: src/a.py, text: "two\\n"}
        - replace: {path: src/a.py, old: one, new: uno}
        - shell: "cat src/a.py; exit 3"
        - usage: {input_tokens: 10, output_tokens: 2, usd: 0.5}
        - usage: {input_tokens: 10, usd: 0.25}
        - progress: {fraction: 0.5, note: half}
        - stdout: no record at all
        - result: "Done with {worker}, attempt {attempt}."
        """,
    )
    assert (tmp_path / "work/src/a.py").read_text() == "uno\ntwo\n"
    assert outcome.ok
    assert not outcome.needs_proof
    assert outcome.text == "Done with task/worker_1, attempt 1."
    assert outcome.session == running.told(Started)[0].session
    assert outcome.usage.input_tokens == 20
    assert outcome.usage.usd == 0.75
    assert running.told(Said)[0] == Said("On it: Fix the parser")
    assert [call.name for call in running.told(ToolCalled)] == ["Write", "Edit", "Edit", "Bash"]
    assert running.told(ToolEnded)[-1] == ToolEnded("call-4", "failed", "uno\ntwo\n")
    assert running.told(UsageSeen)[-1].output_tokens == 2
    assert running.told(Progressed) == [Progressed(0.5, "half")]
    assert running.told(Raw) == [Raw("no record at all")]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("[{fail: It does not compile.}]", "It does not compile."),
        ("[{say: hello}, {crash: 3}]", "exit code 3"),
        ("[{say: hello}, {crash: 0}]", "without reporting that it was done"),
        ("[{crash: SIGKILL}]", "signal 9"),
    ],
)
def test_a_script_fails_in_the_way_it_says(tmp_path: Path, script: str, said: str) -> None:
    _, outcome = play(tmp_path, script)
    assert not outcome.ok
    assert said in outcome.error


def test_a_question_waits_for_its_answer(tmp_path: Path) -> None:
    script = """
    - ask: {text: 'Which way?', choices: [left, right], on: {left: [{say: going left}]}}
    - result: "took {answer}"
    """
    running = RunningAgent(SCRIPTED, request(tmp_path, script))
    asked = running.until(Asked)
    assert asked.choices == ("left", "right")
    running.write(running.parser.answer(asked.id, "left"))
    outcome = running.end()
    assert outcome.text == "took left"
    assert Said("going left") in running.events
    assert running.parser.answer(asked.id, "right") is None


PERMISSION = """
- ask: {text: 'May I?', permission: true, tool: Bash, detail: rm -rf build}
- result: "{answer}"
"""


def test_a_permission_is_asked_for_where_no_rule_decides(tmp_path: Path) -> None:
    running = RunningAgent(SCRIPTED, request(tmp_path, PERMISSION))
    asked = running.until(Asked)
    assert asked.is_permission
    assert (asked.tool, asked.detail) == ("Bash", "rm -rf build")
    running.write(running.parser.answer(asked.id, "deny"))
    assert running.end().text == "deny"


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        ({"is_confined": True}, "allow"),
        ({"is_confined": True, "permissions": Permissions(deny=("Bash(rm *)",))}, "deny"),
        (
            {"permissions": Permissions(mode=PermissionMode.RULES, allow=("Bash(rm -rf build)",))},
            "allow",
        ),
    ],
)
def test_a_permission_is_decided_by_rule_where_one_says_so(
    tmp_path: Path, more: dict[str, Any], answer: str
) -> None:
    running, outcome = play(tmp_path, PERMISSION, **more)
    assert outcome.text == answer
    assert running.told(Decided)
    assert not running.told(Asked)
    assert running.parser.owed == ()


def test_steering_is_heard_and_an_interrupt_breaks_a_step_off(tmp_path: Path) -> None:
    running = RunningAgent(
        SCRIPTED, request(tmp_path, "[{hang: true}, {result: 'heard {steered}'}]")
    )
    running.until(Started)
    running.write(running.parser.steer("use tabs"))
    running.until(Said)
    running.write(running.parser.interrupt())
    assert running.end().text == "heard use tabs"


def test_a_hanging_agent_that_ignores_signals_ends_only_when_killed(tmp_path: Path) -> None:
    script = "[{ignore_term: true}, {say: deaf}, {hang: true}]"
    running = RunningAgent(SCRIPTED, request(tmp_path, script))
    running.until(Said)
    running.process.terminate()
    running.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(timeout=0.3)
    running.process.kill()
    assert "signal 9" in running.end().error


def test_attempts_and_workers_have_branches_of_their_own(tmp_path: Path) -> None:
    script = """
    workers:
      implement/worker_2: {attempts: {1: [{fail: first}], 2: [{result: second}]}}
    steps: [{result: everybody}]
    resumed: [{result: "again: {prompt}"}]
    """
    second = {"worker": "implement/worker_2"}
    assert not play(tmp_path, script, **second)[1].ok
    assert play(tmp_path, script, **second, attempt=5)[1].text == "second"
    assert play(tmp_path, script, worker="implement/worker_1")[1].text == "everybody"
    again = play(tmp_path, script, session="s-1", feedback="more tests")[1]
    assert again.text == "again: more tests"
    assert again.session == "s-1"


def test_a_flood_and_a_long_line_arrive_whole(tmp_path: Path) -> None:
    script = "[{flood: 20000}, {say: '{prompt}'}]"
    running, outcome = play(tmp_path, script, prompt="x" * 2_000_000)
    assert len(running.told(Raw)) == 20000
    assert len(running.told(Said)[0].text) == 2_000_000
    assert outcome.ok
    assert len(outcome.text) == 64 * 1024


def test_a_rate_limit_that_ends_it_is_told_with_its_time(tmp_path: Path) -> None:
    _, outcome = play(tmp_path, "[{rate_limit: {until: 2000000000, ends: true}}]")
    assert not outcome.ok
    assert outcome.limit == RateLimited(2_000_000_000.0, None)


def test_a_replayed_recording_leads_to_the_same_state(tmp_path: Path) -> None:
    asked = request(tmp_path, PERMISSION, is_confined=True)
    running = RunningAgent(SCRIPTED, asked)
    running.until(Decided)
    crashed = OwnStream(asked, speaks=True)
    record = b'{"plait":"ask","id":"q","permission":true,"tool":"Bash","text":"?"}\n'
    (reply,) = [event for event in crashed.feed("out", record) if isinstance(event, ProtocolReply)]
    assert crashed.owed == (reply.data,)
    crashed.feed("in", reply.data[:5])
    crashed.feed("in", reply.data[5:])
    assert crashed.owed == ()
    assert running.end().ok


def test_every_mistake_of_a_script_is_told_at_once(tmp_path: Path) -> None:
    script = "[{sya: hello}, {write: {path: a}}, {sleep: soon}, {say: x, think: y}]"
    with pytest.raises(ScriptInvalid) as caught:
        SCRIPTED.launch(request(tmp_path, script))
    told = str(caught.value)
    assert len(caught.value.problems) == 4
    assert "did you mean 'say'" in told
    assert "text is missing" in told
    with pytest.raises(ScriptInvalid, match="cannot be read"):
        SCRIPTED.launch(request(tmp_path, "nowhere.yaml"))


def test_a_commit_is_made_with_an_identity_of_its_own(tmp_path: Path) -> None:
    asked = request(tmp_path, "[{write: {path: a.txt, text: a}}, {commit: Add a}]")
    subprocess.run(["git", "init", "-q", asked.workspace], check=True)
    running = RunningAgent(SCRIPTED, asked)
    assert running.end().ok
    shown = subprocess.run(
        ["git", "-C", asked.workspace, "log", "--format=%s by %an"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout == "Add a by Scripted agent\n"
    assert running.told(ToolEnded)[-1].state == "done"


def test_memory_is_really_taken_and_kept(tmp_path: Path) -> None:
    running = RunningAgent(SCRIPTED, request(tmp_path, "[{memory: 64}, {say: full}, {hang: true}]"))
    running.until(Said)
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    resident_kb = int(status.split("VmRSS:")[1].split()[0])
    running.process.kill()
    running.end()
    assert resident_kb > 64 * 1024


def test_spawned_children_outlive_their_call(tmp_path: Path) -> None:
    running = RunningAgent(
        SCRIPTED, request(tmp_path, "[{spawn: {count: 2, for: 30}}, {say: ready}, {hang: true}]")
    )
    running.until(Said)
    listed = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text()
    children = [int(pid) for pid in listed.split()]
    running.process.kill()
    running.end()
    assert len(children) == 2
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def test_everything_that_a_script_may_say_can_be_played(tmp_path: Path) -> None:
    script = """
    seed: 3
    pace: 0.01
    steps:
      - think: "Hm, {step}."
      - say: {text: "word by word", stream: true}
      - tool: {name: Search, title: parser, for: [0, 1], output: found, paths: [a.py]}
      - sleep: [0, 1]
      - agents: 2
      - retrying: {attempt: 1, delay_s: 2, status: "429"}
      - rate_limit: {delay_s: 1}
      - stderr: grumble
      - cpu: 0.01
      - disk: {mb: 1, path: big.bin}
      - repeat: {times: 2, steps: [{append: {path: n.txt, text: "{i}\\n"}}]}
      - read: n.txt
      - delete: n.txt
      - shell: {command: "exit 1"}
      - shell: {command: "echo no >&2; exit 1", must: true}
    """
    running, outcome = play(tmp_path, script)
    assert outcome.error == "`echo no >&2; exit 1` ended with 1: no"
    assert "".join(said.text for said in running.told(Said)) == "word by word"
    assert [end.output for end in running.told(ToolEnded)][3] == "1\n2\n"
    assert (tmp_path / "work/big.bin").stat().st_size == 1 << 20
    assert not (tmp_path / "work/n.txt").exists()


def test_what_is_asked_where_nobody_can_answer_is_denied(tmp_path: Path) -> None:
    running = RunningAgent(SCRIPTED, request(tmp_path, "[{ask: 'Sure?'}, {result: '{answer}'}]"))
    running.until(Asked)
    running.stdin.close()
    assert running.end().text == "deny"


def test_the_player_knows_every_step_that_a_script_may_name() -> None:
    assert set(STEPS) == set(SHAPES)
    documented = Path(__file__).parents[2].joinpath("docs/scripted.md").read_text()
    assert [name for name in STEPS if f"`{name}`" not in documented] == []
