"""Claude Code on a terminal, in the sandbox: its own hooks say when it asks and when it is done."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.clients import KEY, WORK, Serve
from tests.agents.model_server import ModelServer, Turn
from tests.agents.real_runs import RealRun
from tests.agents.test_user_settings import SKILL, write
from tests.support.shells import rest_of, wait_event

pytestmark = pytest.mark.real_agents


def on_screen(folder: Path, server: ModelServer, **step: Any) -> RealRun:
    """A run of `claude` as its user knows it, by nothing but its name and the prompt."""
    server.is_by_conversation = True
    real = RealRun(folder, "claude", server)
    real.plan(**step)
    path = folder / "plait.yaml"
    manifest = json.loads(path.read_text())
    manifest["agents"] = {"claude": {"adapter": "terminal", "argv": ["claude", "{prompt}"]}}
    path.write_text(json.dumps(manifest))
    return real


def test_the_end_of_its_turn_is_the_end_of_its_work(folder: Path, serve: Serve) -> None:
    real = on_screen(folder, serve(WORK))
    result = real.run()
    assert (result["outcome"], result["phase"]) == ("success", "REVIEWING"), result
    assert real.committed() == "hello\n"
    assert real.files_of_change() == ["hello.txt"]  # what plait wrote for it lies elsewhere


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_its_question_is_answered_on_its_card(answer: str, folder: Path, serve: Serve) -> None:
    real = on_screen(folder, serve(WORK), permissions="ask")
    with real.running() as process:
        asked = wait_event(process, "Asked")["question"]
        assert (asked["is_permission"], asked["about"]) == (True, f"Bash({WORK[0].runs})")
        assert real.shell.plait("answer", "work/worker_1", answer).code == 0
        result = rest_of(process)[-1]["report"]["steps"]["work"]["worker_results"][0]
    if answer == "allow":
        assert result["outcome"] == "success", result
        assert real.committed() == "hello\n"
    else:
        assert (result["outcome"], result["commit"]) == ("failed", None), (
            result
        )  # nothing proves it


def test_a_refusal_of_its_model_waits_for_a_human(folder: Path, serve: Serve) -> None:
    real = on_screen(folder, serve([Turn(status=400)]))
    with real.running() as process:
        asked = wait_event(process, "Asked")["question"]
        assert asked["text"].startswith("claude: its turn ended with an error")
        assert real.shell.plait("cancel", "work/worker_1").code == 0
        rest_of(process)


def test_it_works_by_its_user_s_settings(folder: Path, serve: Serve) -> None:
    server = serve(WORK)
    real = on_screen(folder, server)
    home = folder / "home"
    provider = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY}
    write(
        home,
        {
            ".claude/CLAUDE.md": "Always greet the badger.\n",
            ".claude/skills/brew/SKILL.md": SKILL,
            ".claude/settings.json": json.dumps({"env": provider}),
        },
    )
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        del real.env[name]
    real.env["HOME"] = str(home)
    assert real.run()["outcome"] == "success"
    asked = json.dumps(server.requests)
    assert "Always greet the badger." in asked
    assert "Brews the tea of plait" in asked
