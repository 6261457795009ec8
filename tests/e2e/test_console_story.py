"""A day at the console: the installed program in a real terminal, on an engine of its own."""

import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.console_story import StoryConsole, console_story
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long
PLAN = """
runtime: {max_concurrent_workers: 8, permissions: ask}
agents:
  asker:
    adapter: scripted
    script: |
      steps:
        - ask:
            text: "May I write allowed.txt?"
            permission: true
            on: {allow: [{write: {path: allowed.txt, text: "yes"}}]}
        - ask:
            text: "May I install left-pad?"
            permission: true
            on: {deny: [{write: {path: denied.txt, text: "{reason}"}}]}
        - result: "asked twice"
  sleeper:
    adapter: scripted
    script: |
      steps: [{say: I sleep now}, {hang: true}]
  stubborn:
    adapter: scripted
    script: |
      steps: [{ignore_term: true}, {say: I stay}, {sleep: 3000}]
  learner:
    adapter: scripted
    script: |
      attempts:
        1: [{fail: "I know nothing yet."}]
        2: [{write: {path: learned.txt, text: "{feedback}"}}, {result: "learned"}]
  shouter:
    adapter: scripted
    script: |
      steps:
        - replace: {path: a.txt, old: two, new: "TWO by {index}"}
        - result: "shouted"
pipelines:
  - name: day
    steps:
      - {name: ask, agent: asker, prompt: "ask"}
      - {name: nap, agent: sleeper, prompt: "sleep"}
      - {name: dig, agent: stubborn, prompt: "stay"}
      - {name: learn, agent: learner, prompt: "learn"}
      - {name: shout, agent: shouter, prompt: "shout", concurrency: 2, check: "grep TWO a.txt"}
"""


CROWD = """pipelines:
  - name: crowd
    steps:
      - {name: learn, agent: learner, prompt: "learn", concurrency: 4, policy: settled, merge: each}
      - {name: shout, agent: shouter, prompt: "shout", concurrency: 14, merge: each}
      - {name: nap, agent: sleeper, prompt: "sleep", concurrency: 2}
"""
QUIZ = """
runtime: {max_concurrent_workers: 2}
agents:
  asker:
    adapter: scripted
    script: |
      steps:
        - ask: {text: "Which color?", choices: [red, green, blue]}
        - append: {path: told.txt, text: "{answer}\\n"}
        - ask: {text: "Which size?", choices: [small, large]}
        - append: {path: told.txt, text: "{answer}\\n"}
        - ask: {text: "Which shape?", choices: [round, square, flat]}
        - append: {path: told.txt, text: "{answer}\\n"}
        - result: "asked three times"
pipelines:
  - {name: quiz, steps: [{name: quiz, agent: asker, prompt: "ask"}]}
"""
FIRST = """
agents:
  starter:
    adapter: scripted
    script: {steps: [{write: {path: hello.py, text: "print(1)\\n"}}, {result: "it greets"}]}
"""


_RIGHT = b"\x1b[C"
WEIGHED = ("run", "-a", "scripted", "Say hello", "--headless")


@pytest.fixture
def day(repository: Shell) -> Iterator[Shell]:
    """A repository with the plan of the day; its engine is ended afterwards."""
    (repository.folder / "plait.yaml").write_text(PLAN)
    repository.git("add", ".")
    repository.git("commit", "-qm", "plan")
    yield repository
    end_engine(repository)


def _pick(console: StoryConsole, worker: str) -> StoryConsole:
    """Put the cursor on a worker by its name."""
    console.do("fleet.pick").shows("type a name")
    console.press(worker.encode())
    console.shows(worker)
    console.press(b"\r")
    return console


def test_a_day_at_the_console(day: Shell) -> None:
    with console_story(day, "run", "plait.yaml") as console:
        console.shows("ASKS YOU", "May I write allowed.txt?", "I sleep now")

        _pick(console, "ask").allows("fleet.yes")
        console.shows("May I install left-pad?").do("fleet.no").shows("deny ask/worker_1")
        console.enters("use the standard library").shows("answered")

        _pick(console, "nap").do("fleet.no").shows("Stop nap/worker_1?")
        console.do("fleet.no").shows("is asked to stop")

        _pick(console, "dig").do("fleet.no", "fleet.no").shows("dig/worker_1 is asked to stop")
        console.do("fleet.no").shows("Kill dig/worker_1 now?").do("fleet.no")
        console.shows("dig/worker_1 has stopped")  # "is killed" may be gone before it is drawn

        console.shows("FAILED")
        _pick(console, "learn").do("fleet.retry_with").shows("retry learn/worker_1 with")
        console.enters("read the manual").shows("starts again")

        _pick(console, "shout/worker_1").do("fleet.diff").shows("TWO by 1", "choose")
        console.do("diff.yes").shows("approve")
        console.do("diff.yes").shows("is approved")
        console.do("diff.land")
        console.shows_one_of("landing shout/worker_1", "shout/worker_1 landed")
        console.do("everywhere.go_fleet").shows("LANDED").do("everywhere.search")
        console.enters("phase:review").shows("2 of 6").do("everywhere.quit_now")
        assert console.end() == 0

    steps = day.plait("status", "--json").json()["steps"]
    phases = {w["worker"]: w["phase"] for step in steps for w in step["workers"]}
    assert phases["nap/worker_1"] == phases["dig/worker_1"] == "CANCELLED"
    assert phases["shout/worker_1"] == "LANDED"
    assert (day.folder / "a.txt").read_text() == "one\nTWO by 1\nthree\n"
    assert "+use the standard library" in day.plait("diff", "ask/worker_1").out
    assert "+read the manual" in day.plait("diff", "learn/worker_1").out


def test_a_run_is_started_reviewed_and_landed_within_the_console(day: Shell) -> None:
    with console_story(day, size=(80, 24)) as console:
        console.shows("No run yet", "✓ shouter", "enforced").do("everywhere.start")
        console.shows("What should be done?", "asker").press(b"say it loud")
        console.shows("say it loud", "1 worker of asker").press(b"\t\t")
        console.shows("← asker →").press(_RIGHT * 4)
        console.shows("← shouter →", "1 worker of shouter").press(b"\r")
        console.shows("say-it-loud/worker_1", "REVIEW").do("fleet.diff").shows("TWO by 1")
        console.do("diff.yes").shows("is approved").do("diff.land")
        console.do("everywhere.go_fleet").shows("LANDED").do("everywhere.quit_now")
        assert console.end() == 0
    assert (day.folder / "a.txt").read_text() == "one\nTWO by 1\nthree\n"


def test_all_that_failed_are_retried_with_one_text(day: Shell) -> None:
    crowd = PLAN.partition("pipelines:")[0].replace("workers: 8", "workers: 20") + CROWD
    (day.folder / "plait.yaml").write_text(crowd)
    with console_story(day, "run", "plait.yaml", "--yes", size=(80, 24)) as console:
        console.shows("shout/worker_1").do("everywhere.search")
        console.enters("phase:failed").shows("4 of 20", "learn/worker_4")
        console.do("everywhere.first", "fleet.select", "everywhere.last").shows("✚ 4 marked")
        console.do("fleet.retry_with")
        console.shows("retry 4 workers").enters("read the manual").shows("starts again")
        console.do("everywhere.leave", "everywhere.search")
        console.enters("phase:review").shows("18 of 20").do("everywhere.quit_now")
        assert console.end() == 0
    for n in range(1, 5):
        assert "+read the manual" in day.plait("diff", f"learn/worker_{n}").out


def test_three_questions_are_answered_by_their_numbers(repository: Shell) -> None:
    (repository.folder / "plait.yaml").write_text(QUIZ)
    repository.git("add", ".")
    repository.git("commit", "-qm", "quiz")
    try:
        with console_story(repository, "run", "plait.yaml", size=(80, 24)) as console:
            for question, number in (("color", b"2"), ("size", b"2"), ("shape", b"1")):
                console.shows(f"Which {question}?").do("fleet.yes").shows("a number, or type")
                console.press(number)
            console.shows("REVIEW").do("everywhere.quit_now")
            assert console.end() == 0
        told = repository.plait("diff", "quiz/worker_1").out
        assert [
            line for line in told.splitlines() if line.startswith("+") and line[1:2] != "+"
        ] == [
            "+green",
            "+large",
            "+round",
        ]
    finally:
        end_engine(repository)


def test_a_first_change_lands_in_a_repository_without_a_commit(shell: Shell) -> None:
    shell.git("init", "-q", "-b", "main")
    (shell.folder / "plait.yaml").write_text(FIRST)
    try:
        with console_story(shell, size=(80, 24)) as console:
            console.shows("No run yet", "✓ starter").do("everywhere.start")
            console.shows("What should be done?").press(b"greet")
            console.shows("greet", "1 worker of starter", "not in the base").press(b"\r")
            console.shows("greet/worker_1", "REVIEW").do("fleet.diff").shows("print(1)")
            console.do("diff.yes").shows("is approved").do("diff.land")
            console.do("everywhere.go_fleet").shows("LANDED").do("everywhere.quit_now")
            assert console.end() == 0
        assert (shell.folder / "hello.py").read_text() == "print(1)\n"
        assert shell.plait("history").code == 0
    finally:
        end_engine(shell)


def test_a_console_is_left_and_come_back_to(day: Shell) -> None:
    with console_story(day, "run", "plait.yaml") as console:
        console.shows("I sleep now", "ASKS YOU").do("fleet.pause_run").shows("run is paused")
        console.do("fleet.pause_run").shows("the run continues")
        _pick(console, "nap").do("fleet.pause").shows("nap/worker_1 is paused", "PAUSED")
        console.do("everywhere.back").shows("leave")
        console.press(b"l")
        assert console.end() == 0
    with console_story(day, "attach") as console:
        console.shows("PAUSED", "ASKS YOU")
        _pick(console, "nap").do("fleet.pause").shows("continues")
        console.do("everywhere.quit_now")
        assert console.end() == 0
    with console_story(day, "attach", "--watch") as console:
        console.shows("WATCHING", "ASKS YOU").do("fleet.yes").shows("only watches")
        console.do("everywhere.quit_now")
        assert console.end() == 0


def test_a_run_that_nobody_was_asked_about_is_played_again(repository: Shell) -> None:
    (repository.folder / "new.txt").write_text("not committed")
    with console_story(repository, *WEIGHED, "--yes") as terminal:
        assert terminal.end(seconds=60) in {0, 3}
        assert "start?" not in terminal.text
    with console_story(repository, "replay", "--speed", "0.001") as console:
        console.shows("REPLAY  0:00 of", "0.001 times the speed").do("fleet.mark").shows(
            "REPLAY  0:00 of", ", paused."
        )
        console.do("fleet.no").shows("this is a replay")
        for _ in range(40):
            console.press(b".")
        console.shows("SETTLED 1").do("everywhere.help").shows("THE REPLAY", "ten seconds back")
        console.do("everywhere.quit_now")
        assert console.end() == 0


def test_a_hook_is_run_while_no_console_is_open(day: Shell) -> None:
    config = day.state.parent / "config"
    (config / "plait").mkdir(parents=True)
    heard = config / "heard"
    hook = f"""hook = 'echo "$PLAIT_EVENT $PLAIT_WORKER" >> "{heard}"'"""
    (config / "plait" / "config.toml").write_text(hook)
    day.env["XDG_CONFIG_HOME"] = str(config)
    assert day.plait("run", "plait.yaml", "--detach").code == 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if heard.exists() and "Asked ask/worker_1" in heard.read_text():
            return
        threading.Event().wait(0.05)
    pytest.fail(f"nobody was called: {heard.exists() and heard.read_text()}")


def test_a_run_that_is_to_be_weighed_asks_first(repository: Shell) -> None:
    (repository.folder / "new.txt").write_text("not committed")
    repository.env["PLAIT_SANDBOX"] = "none"
    with console_story(repository, *WEIGHED) as terminal:
        terminal.shows("new.txt", "isolate your files from scripted", "start? [Y/n]")
        terminal.press(b"n\r")
        terminal.shows("nothing was started")
        assert terminal.end() == 1
    assert not (repository.folder / ".git" / "plait" / "runs").exists()


def test_a_run_that_is_confirmed_names_the_settings_that_its_agents_get(repository: Shell) -> None:
    (repository.folder / "new.txt").write_text("not committed")
    home = repository.state.parent / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("Be kind.")
    (home / ".claude" / "settings.json").write_text('{"hooks": {"Stop": [{}]}}')
    repository.env["HOME"] = str(home)
    with console_story(repository, "run", "-p", "fix", "-a", "claude", "-n", "2") as terminal:
        told = "claude: your settings: instructions of ~/.claude/CLAUDE.md"
        left = "claude: left out of your settings: hooks of ~/.claude/settings.json: they run code"
        terminal.shows(told, left, "start? [Y/n]")
        terminal.press(b"n\r")
        terminal.shows("nothing was started")
        assert terminal.end() == 1
