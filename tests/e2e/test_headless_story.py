"""A pipeline in plain folders, from YAML to report, and what a second shell can do meanwhile."""

import json
import os
import signal

import pytest

from tests.support.shells import Shell, rest_of, wait_event

pytestmark = pytest.mark.long
PLAN = """
runtime: {isolation_strategy: directory, max_concurrent_workers: 4}
agents:
  writer:
    adapter: scripted
    script: |
      steps:
        - say: "working"
        - write: {path: out.txt, text: "by {worker}"}
        - result: "done"
  asker:
    adapter: scripted
    script: |
      steps:
        - ask: {text: "May I?", choices: [allow, deny]}
        - result: "you said {answer}"
  stuck:
    adapter: scripted
    script: |
      steps:
        - say: "I will hang"
        - hang: true
pipelines:
  - name: good
    steps:
      - {name: make, agent: writer, prompt: "make it", concurrency: 3, artifacts: ["out.txt"]}
      - {name: use, dependencies: [make], run: "cat out.txt"}
  - name: race
    steps:
      - {name: make, agent: writer, prompt: "make it", concurrency: 3, policy: race}
  - name: bad
    steps:
      - {name: fails, run: "echo nothing works; exit 3"}
      - {name: after, dependencies: [fails], run: "true"}
  - name: asks
    steps:
      - {name: ask, agent: asker, prompt: "ask"}
  - name: stuck
    steps:
      - {name: hang, agent: stuck, prompt: "hang"}
"""


@pytest.fixture(autouse=True)
def plan(shell: Shell):
    (shell.folder / "plait.yaml").write_text(PLAN)


def run(shell: Shell, pipeline: str, *words: str):
    return shell.plait("run", "plait.yaml", "--pipeline", pipeline, "--headless", "--json", *words)


def test_a_pipeline_runs_to_its_report(shell: Shell):
    done = run(shell, "good")
    assert done.code == 0, done.err
    last = done.events[-1]
    assert last["type"] == "RunFinished"
    make = last["report"]["steps"]["make"]
    assert [result["worker"] for result in make["worker_results"]] == [
        "make/worker_1",
        "make/worker_2",
        "make/worker_3",
    ]
    assert (make["total_workers"], make["success_count"], make["fail_count"]) == (3, 3, 0)
    assert last["report"]["steps"]["use"]["worker_results"][0]["output"] == "by make/worker_1"
    assert [event["type"] for event in done.events[:2]] == ["RunStarted", "WorkerMoved"]
    seqs = [event["seq"] for event in done.events if "seq" in event]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_race_with_a_winner_is_a_success(shell: Shell):
    done = run(shell, "race")
    assert done.code == 0, done.err
    make = done.events[-1]["report"]["steps"]["make"]
    assert make["success_count"] >= 1
    assert make["outcome"] == "success"


def test_a_failed_step_exits_1_and_skips_what_depends_on_it(shell: Shell):
    done = run(shell, "bad")
    assert done.code == 1
    steps = done.events[-1]["report"]["steps"]
    assert steps["fails"]["outcome"] == "failed"
    assert steps["after"]["worker_results"][0]["phase"] == "SKIPPED"


def test_wrong_manifests_exit_2_and_say_where(shell: Shell):
    (shell.folder / "plait.yaml").write_text("pipelines:\n  - nam: x\n")
    done = shell.plait("run", "plait.yaml", "--headless")
    assert done.code == 2
    assert "plait.yaml:2:" in done.err
    assert "name" in done.err
    assert "Traceback" not in done.err


def test_a_manifest_that_is_piped_runs_as_one(shell: Shell):
    done = shell.plait("run", "-", "--pipeline", "bad", "--headless", "--json", stdin=PLAN)
    assert done.code == 1
    assert list(done.events[-1]["report"]["steps"]) == ["fails", "after"]
    wrong = shell.plait("run", "-", "--headless", stdin=PLAN.replace("pipelines:", "pipline:"))
    assert wrong.code == 2
    assert "pipelines" in wrong.err
    mixed = shell.plait("run", "-", "-n", "2", "--headless", stdin=PLAN)
    assert mixed.code == 2
    assert "would be ignored" in mixed.err


def test_models_on_the_command_line_make_a_candidate_each(shell: Shell):
    done = shell.plait(
        "run", "-p", "Fix it", "-a", "scripted", "--models", "one,two", "--headless", "--json"
    )
    workers = done.events[-1]["report"]["steps"]["fix-it"]["worker_results"]
    assert [worker["model"] for worker in workers] == ["one", "two"], done.err
    twice = shell.plait(
        "run", "-p", "Fix it", "-a", "scripted", "--models", "one,one", "--headless"
    )
    assert twice.code == 2
    assert "'one' is named twice" in twice.err
    mixed = shell.plait("run", "-", "--models", "one", "--headless", stdin=PLAN)
    assert "--models would be ignored" in mixed.err


def test_a_plan_shows_the_prompts_that_workers_will_have(shell: Shell):
    (shell.folder / "plait.yaml").write_text(
        "pipelines: [{name: p, steps: [{name: t, agent: scripted, merge: each, "
        "prompt: 'Port {item} as {worker} in {run}', strategy: {matrix: {items: [a.py, b.py]}}}]}]"
    )
    text = shell.plait("plan", "plait.yaml").out
    assert "Port a.py as t/worker_1 in {run}" in text
    assert "Port b.py as t/worker_2 in {run}" in text
    steps = shell.plait("plan", "plait.yaml", "--json").json()["steps"]
    assert steps[0]["workers"][1]["prompt"] == "Port b.py as t/worker_2 in {run}"


def test_a_second_shell_answers(shell: Shell):
    words = ("run", "plait.yaml", "--pipeline", "asks", "--headless", "--json")
    with shell.running(*words) as first:
        wait_event(first, "Asked")
        said = shell.plait("status").out
        assert "asks" in said
        assert ": waits for you" in said
        assert shell.plait("answer", "ask/worker_1", "allow").code == 0
        assert rest_of(first)[-1]["type"] == "RunFinished"
        assert first.wait() == 0
    assert "you said allow" in shell.plait("logs", "ask/worker_1").out


@pytest.mark.parametrize(("policy", "code"), [("deny", 0), ("fail", 1)])
def test_questions_are_answered_by_policy(shell: Shell, policy: str, code: int):
    done = run(shell, "asks", "--on-question", policy)
    assert done.code == code
    assert ("is stopped: it asked a question, and `--on-question fail` is set" in done.err) == (
        code == 1
    )


def test_a_second_shell_cancels_and_retries(shell: Shell):
    words = ("run", "plait.yaml", "--pipeline", "stuck", "--headless", "--json")
    with shell.running(*words) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        assert shell.plait("cancel", "hang/worker_1", "--kill").code == 0
        assert rest_of(first)[-1]["type"] == "RunFinished"
        assert first.wait() == 1
    status = shell.plait("status", "--json").json()
    assert status["steps"][0]["workers"][0]["cause"] == "USER"


def test_a_step_that_is_decided_while_one_still_works_says_so(shell: Shell):
    (shell.folder / "hang.yaml").write_text(
        "runtime: {isolation_strategy: directory}\n"
        "agents: {hangs: {adapter: scripted, script: {steps: [{hang: true}]}}}\n"
        "pipelines: [{name: p, steps: [{name: task, agent: hangs, prompt: x, concurrency: 2}]}]\n"
    )
    with shell.running("run", "hang.yaml", "--headless", "--json") as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        wait_event(first, "WorkerMoved", after="RUNNING")
        said = shell.plait("status").out
        assert " (p): running" in said
        assert "\ntask: running\n" in said
        assert shell.plait("cancel", "task/worker_1", "--kill").code == 0
        wait_event(first, "WorkerMoved", after="CANCELLED")
        said = shell.plait("status").out
        assert "task: cancelled, 1 still at work\n" in said
        cancelled = shell.plait("cancel", "--all", "--kill")
        assert cancelled.code == 1, "the run was cancelled"
        assert cancelled.err.endswith(" is cancelled\n")
        rest_of(first)
        assert first.wait() == 1
    assert "still at work" not in shell.plait("status").out


def test_ctrl_c_stops_the_run_and_exits_130(shell: Shell):
    words = ("run", "plait.yaml", "--pipeline", "stuck", "--headless", "--json")
    with shell.running(*words) as first:
        wait_event(first, "WorkerMoved", after="RUNNING")
        first.send_signal(signal.SIGINT)
        assert first.wait() == 130


def test_an_engine_killed_with_9_goes_on_where_it_was(shell: Shell):
    words = ("run", "plait.yaml", "--pipeline", "asks", "--headless", "--json")
    with shell.running(*words) as first:
        run_id = wait_event(first, "Asked")["run"]
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    done = shell.plait("resume", run_id, "--headless", "--json", "--on-question", "deny")
    assert done.code == 0, done.err
    assert done.events[-1]["type"] == "RunFinished"


def test_prompts_without_a_manifest_are_steps(shell: Shell):
    done = shell.plait(
        "run", "-p", "say a", "-p", "say b", "-a", "scripted", "--headless", "--json"
    )
    assert done.code == 2 or done.events, done.err


def test_validate_and_plan_speak_json(shell: Shell):
    assert shell.plait("validate", "plait.yaml", "--json").json() == {"ok": True, "problems": []}
    described = json.loads(shell.plait("plan", "plait.yaml", "--pipeline", "good", "--json").out)
    assert [step["name"] for step in described["steps"]] == ["make", "use"]


def test_a_script_that_cannot_be_played_is_told_before_anything_runs(shell: Shell):
    text = "agents: {a: {adapter: scripted, script: {steps: [{sya: x}, {write: {}}]}}}\n"
    step = "{name: s, agent: a, prompt: hi}"
    (shell.folder / "bad.yaml").write_text(f"{text}pipelines: [{{name: x, steps: [{step}]}}]\n")
    for words in (("validate", "bad.yaml"), ("run", "bad.yaml", "--headless")):
        done = shell.plait(*words)
        assert done.code == 2
        assert "the script of 'a': steps[1]: sya is not a step; did you mean 'say'?" in done.err
        assert "steps[2].write: path is missing" in done.err
    problems = shell.plait("validate", "bad.yaml", "--json").json()["problems"]
    assert "sya is not a step" in problems[0]["message"]
    assert "no run here yet" in shell.plait("status").err


def test_status_of_nothing_says_what_to_do(shell: Shell):
    done = shell.plait("status")
    assert done.code == 0
    assert "plait run" in done.err


def test_a_mechanism_that_is_required_and_missing_exits_4(shell: Shell):
    shell.env["PLAIT_SANDBOX"] = "none"
    text = PLAN.replace("max_concurrent_workers: 4", "require: [files]")
    (shell.folder / "plait.yaml").write_text(text)
    done = run(shell, "good")
    assert done.code == 4
    assert "files" in done.err


def test_an_agent_that_is_not_installed_begins_no_run(shell: Shell):
    absent = "agents: {mine: {adapter: opencode, options: {program: no-such-program}}}\n"
    step = "pipelines: [{name: p, steps: [{name: s, agent: mine, prompt: Fix it.}]}]\n"
    (shell.folder / "plait.yaml").write_text(absent + step)
    done = shell.plait("run", "plait.yaml", "--headless")
    assert done.code == 1
    assert "the agent 'mine' is not installed: there is no program no-such-program" in done.err
    assert "npm install -g opencode-ai" in done.err
    assert shell.plait("runs", "--json").json() == []


TOOLS = """
runtime: {isolation_strategy: directory, permissions: ask}
agents:
  pusher:
    adapter: scripted
    script: |
      steps:
        - ask: {text: "Bash", permission: true, tool: Bash, detail: "git push"}
        - result: "told {answer}"
pipelines: [{name: p, steps: [{name: s, agent: pusher, prompt: Push., concurrency: 2}]}]
"""


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--allow", "Bash(git *)"), "told allow"),
        (("--allow", "Bash(git *)", "--deny", "Bash(* push)"), "told deny"),
        (("--permissions", "rules", "--deny", "Bash"), "told deny"),
    ],
)
def test_a_command_line_says_what_is_allowed(shell: Shell, words: tuple[str, ...], answer: str):
    (shell.folder / "plait.yaml").write_text(TOOLS)
    report = shell.plait("run", "plait.yaml", "--headless", "--json", *words).events[-1]["report"]
    told = [worker["output"] for worker in report["steps"]["s"]["worker_results"]]
    assert told == [answer] * 2


def test_one_answer_is_for_all_who_ask_the_same(shell: Shell):
    (shell.folder / "plait.yaml").write_text(TOOLS.replace("permissions: ask", ""))
    words = ("run", "plait.yaml", "--headless", "--json", "--permissions", "ask")
    with shell.running(*words) as first:
        wait_event(first, "Asked", worker="s/worker_1")  # the other one may ask before it
        assert shell.plait("answer", "s/worker_1", "allow", "--for-run").code == 0
        report = rest_of(first)[-1]["report"]
    told = [worker["output"] for worker in report["steps"]["s"]["worker_results"]]
    assert told == ["told allow"] * 2


def test_rules_beside_a_mode_without_rules_are_refused(shell: Shell):
    done = shell.plait("run", "plait.yaml", "--permissions", "auto", "--allow", "Bash")
    assert done.code != 0
    assert "would be ignored" in done.err


def test_the_mode_of_rules_without_a_rule_is_refused(shell: Shell):
    done = shell.plait("run", "plait.yaml", "--permissions", "rules")
    assert done.code != 0
    assert "needs at least one --allow or --deny" in done.err


def test_an_agent_that_changes_nothing_has_no_success(repository: Shell):
    script = 'steps:\n  - result: "I could not find the parser."\n'
    told = {
        "agents": {"a": {"adapter": "scripted", "script": script}},
        "pipelines": [{"name": "p", "steps": [{"name": "fix", "agent": "a", "prompt": "fix it"}]}],
    }
    (repository.folder / "fix.yaml").write_text(json.dumps(told))
    done = repository.plait("run", "fix.yaml", "--headless")
    assert done.code == 0, done.err
    assert "fix: unchanged (0 of 1)" in done.err
    sentence = "says it could not do it"
    assert f"fix/worker_1 {sentence}: I could not find the parser." in done.err
    status = repository.plait("status").out
    assert "): unchanged" in status
    assert sentence in next(line for line in status.splitlines() if "fix/worker_1" in line)
    worker = repository.plait("status", "--json").json()["steps"][0]["workers"][0]
    assert (worker["outcome"], worker["ending"]) == ("unchanged", sentence)
    assert repository.plait("land", "fix/worker_1").code != 0


def test_an_answer_is_kept_for_a_step_listed_and_revoked(repository: Shell):
    ask = {"permission": True, "tool": "Bash", "detail": "git push", "text": "May I push?"}
    steps = [{"ask": ask}, {"ask": {**ask, "detail": "ls", "text": "May I look?"}}, {"hang": True}]
    step = {"name": "fix", "agent": "a", "prompt": "fix it", "concurrency": 2}
    told = {
        "runtime": {"permissions": "ask"},
        "agents": {"a": {"adapter": "scripted", "script": {"steps": steps}}},
        "pipelines": [{"name": "p", "steps": [step]}],
    }
    (repository.folder / "fix.yaml").write_text(json.dumps(told))
    with repository.running("run", "fix.yaml", "--headless", "--json") as process:
        for _ in range(2):
            wait_event(process, "Asked")
        asked = "asks (dangerous: sends commits to another repository): May I push?"
        assert repository.plait("status").out.count(asked) == 2
        assert repository.plait("answer", "fix/worker_1", "allow", "--for", "step").code == 0
        answers = [wait_event(process, "Answered") for _ in range(2)]
        assert {one["by"] for one in answers} == {"human", "step"}
        listed = repository.plait("rules").out
        assert listed == "  1  allow   May I push?␊git push  for the step fix\n"
        wait_event(process, "Asked", worker="fix/worker_2")
        rule = ("--for", "run", "--rule", "Bash(l*)")
        assert repository.plait("answer", "fix/worker_2", "deny", *rule).code == 0
        assert repository.plait("rules", "--revoke", "1").code == 0
        assert repository.plait("rules", "--revoke", "7").code == 1
        kept = repository.plait("rules", "--json").json()["rules"]
        assert [(one["number"], one["scope"], one["pattern"]) for one in kept] == [
            (2, "run", "Bash(l*)")
        ]
        assert repository.plait("cancel", "--all").code == 1


def test_an_answer_is_kept_for_all_runs_of_a_repository(repository: Shell):
    ask = {"permission": True, "tool": "Bash", "detail": "ls", "text": "May I look?"}
    step = {"name": "fix", "agent": "a", "prompt": "fix it"}
    told = {
        "runtime": {"permissions": "ask"},
        "agents": {"a": {"adapter": "scripted", "script": {"steps": [{"ask": ask}]}}},
        "pipelines": [{"name": "p", "steps": [step]}],
    }
    (repository.folder / "fix.yaml").write_text(json.dumps(told))
    run = ("run", "fix.yaml", "--headless", "--json", "--on-question", "wait")
    with repository.running(*run) as process:
        wait_event(process, "Asked")
        done = repository.plait("answer", "fix/worker_1", "allow", "--for", "repository")
        assert done.code == 0, done.err
        assert wait_event(process, "Answered")["by"] == "human"
    with repository.running(*run) as process:
        assert wait_event(process, "Answered")["by"] == "repository"
    assert repository.plait("rules").out == "  1  allow   May I look?␊ls  for the repository\n"
    assert repository.plait("rules", "--revoke", "1").code == 0
    with repository.running(*run) as process:
        wait_event(process, "Asked")
        assert repository.plait("rules").out.endswith("has no saved answers\n")
        assert repository.plait("cancel", "--all").code == 1


STAYS = """
import json, signal, sys
for line in sys.stdin:
    said = json.loads(line)
    if said["method"] == "session/prompt":
        open("done.txt", "w").write("done")
    results = {
        "initialize": {"protocolVersion": 1, "agentCapabilities": {}},
        "session/new": {"sessionId": "s"},
        "session/prompt": {"stopReason": "end_turn"},
    }
    answer = {"jsonrpc": "2.0", "id": said["id"], "result": results[said["method"]]}
    print(json.dumps(answer), flush=True)
signal.pause()
"""


def test_an_agent_that_is_done_and_does_not_go_is_ended(repository: Shell):
    told = {
        "agents": {"a": {"adapter": "acp", "argv": ["python3", "-c", STAYS]}},
        "pipelines": [{"name": "p", "steps": [{"name": "fix", "agent": "a", "prompt": "fix it"}]}],
    }
    (repository.folder / "fix.yaml").write_text(json.dumps(told))
    done = repository.plait("run", "fix.yaml", "--headless")
    assert done.code == 3, done.err
    assert "fix: success (1 of 1)" in done.err
    assert "its program did not exit" in repository.plait("logs", "fix/worker_1").out
    worker = repository.plait("status", "--json").json()["steps"][0]["workers"][0]
    assert (worker["outcome"], worker["cause"], worker["error"]) == ("success", None, None)
