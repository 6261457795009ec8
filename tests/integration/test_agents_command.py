"""Any program as an agent, and what is found of agents on a machine: with real processes."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.agents.agent_events import Asked, Raw, Said
from engine.agents.command import CommandAdapter
from engine.agents.contract import LaunchRequest
from engine.agents.finding import ProgramSearch, find_agent
from engine.agents.options import folders_of
from engine.agents.presets import AIDER
from engine.agents.registry import adapter_named, adapters, find_agents
from engine.plan.model import AgentChoice
from tests.support.agent_runs import RunningAgent, launch_request

pytestmark = pytest.mark.anyio

SPEAKS = """
import json, sys
prompt = json.loads(sys.stdin.readline())["text"]
def tell(kind, **fields): print(json.dumps({"plait": kind, **fields}), flush=True)
tell("say", text="You said: " + prompt)
print("plain output", flush=True)
tell("ask", id="q1", text="Tabs?", choices=["yes", "no"])
answer = json.loads(sys.stdin.readline())
tell("result", ok=answer["answer"] == "yes", text=answer["answer"])
"""


def request(tmp_path: Path, *argv: str, **options: str) -> LaunchRequest:
    choice = AgentChoice(name="mine", adapter="command", argv=argv, options=options)
    return launch_request(tmp_path, choice=choice)


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_plain_program_works_in_the_tree(tmp_path: Path) -> None:
    running = RunningAgent(CommandAdapter(), request(tmp_path, "tee", "prompt.txt"))
    outcome = running.end()
    assert (outcome.ok, outcome.needs_proof, outcome.text) == (True, True, "Fix the parser")
    assert (tmp_path / "work/prompt.txt").read_text() == "Fix the parser\n"
    assert running.told(Raw) == [Raw("Fix the parser")]


def test_a_program_that_speaks_asks_and_is_answered(tmp_path: Path) -> None:
    asked = request(tmp_path, sys.executable, "-c", SPEAKS, events="true", prompt_via="stdin")
    running = RunningAgent(CommandAdapter(), asked)
    question = running.until(Asked)
    assert question.choices == ("yes", "no")
    running.write(running.parser.answer("q1", "yes"))
    outcome = running.end()
    assert (outcome.ok, outcome.needs_proof, outcome.text) == (True, False, "yes")
    assert running.told(Said) == [Said("You said: Fix the parser")]
    assert running.told(Raw) == [Raw("plain output")]


def test_a_program_that_promised_a_result_and_gave_none_has_failed(tmp_path: Path) -> None:
    silent = RunningAgent(
        CommandAdapter(), request(tmp_path, "true", events="true", prompt_via="file")
    )
    assert "without reporting that it was done" in silent.end().error


def test_a_preset_is_started_with_a_file_for_its_prompt(tmp_path: Path) -> None:
    program(tmp_path / "bin", "aider", '#!/bin/sh\necho "$@"\ncat "$2"\n')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    choice = AgentChoice(name="aider", adapter="aider", model="gpt", env={"PATH": path})
    outcome = RunningAgent(AIDER, launch_request(tmp_path, choice=choice)).end()
    assert "--yes-always" in outcome.text
    assert "--model gpt" in outcome.text
    assert outcome.text.endswith("Fix the parser")


# ---------------------------------------------------------------------- finding


async def found_version(path: Path) -> str | None:
    search = ProgramSearch(program=str(path), driven="")
    return (await find_agent(CommandAdapter(), search, {})).version


async def test_a_version_is_read_from_the_package_before_the_program_is_asked(
    tmp_path: Path,
) -> None:
    package = tmp_path / "lib/agent"
    real = program(package / "bin", "agent", "#!/bin/sh\necho 9.9.9\n")
    (package / "package.json").write_text('{"version": "1.2.3", "bin": {"agent": "bin/agent"}}')
    link = tmp_path / "agent"
    link.symlink_to(real)
    assert await found_version(link) == "1.2.3"
    (package / "package.json").unlink()
    assert await found_version(link) == "9.9.9"


async def test_a_program_that_says_no_version_is_found_without_one(tmp_path: Path) -> None:
    assert await found_version(program(tmp_path, "silent", "#!/bin/sh\nexit 3\n")) is None
    assert await found_version(program(tmp_path, "broken", "#!/nowhere/at/all\n")) is None


async def test_what_is_installed_and_logged_in_is_found(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude", "#!/bin/sh\necho '2.1.0 (Claude Code)'\n")
    program(tmp_path / "bin", "codex", "#!/bin/sh\necho 'codex-cli 0.5.0'\n")
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/auth.json").write_text("{}")
    environment: dict[str, Any] = {
        "PATH": f"{tmp_path / 'bin'}:/bin:/usr/bin",
        "HOME": str(home),
        "ANTHROPIC_API_KEY": "a-value-never-shown",
    }
    found = {one.name: one for one in await find_agents(environment)}
    assert list(found) == list(adapters())
    assert (found["claude"].version, found["claude"].login) == ("2.1.0", "by ANTHROPIC_API_KEY")
    assert (found["codex"].version, found["codex"].login) == ("0.5.0", "by ~/.codex/auth.json")
    assert found["scripted"].path
    assert (found["pi"].path, found["pi"].version) == (None, None)
    assert found["pi"].install_hint == adapter_named("pi").install_hint
    assert "a-value-never-shown" not in repr(found)


def test_what_a_program_on_the_path_leads_to_must_be_readable(tmp_path: Path) -> None:
    real = program(tmp_path / "lib/node_modules/@x/agent/bin", "agent.js", "#!/bin/sh\n")
    env = tmp_path / "tools/agent"
    tool = program(env / "bin", "tool", "#!/bin/sh\n")
    (env / "pyvenv.cfg").write_text(f"home = {tmp_path}/python/bin\nversion = 3.12\n")
    single = program(tmp_path / "versions", "2.1", "#!/bin/sh\n")
    links = tmp_path / "bin"
    links.mkdir()
    for name, target in (("agent", real), ("tool", tool), ("single", single)):
        (links / name).symlink_to(target)
    asked = replace(request(tmp_path, "x"), environment={"PATH": str(links)})
    assert folders_of(asked, "agent") == (str(tmp_path / "lib/node_modules"),)
    assert folders_of(asked, "tool") == (str(env), str(tmp_path / "python"))
    assert folders_of(asked, "single") == (str(tmp_path / "versions"),)
    assert folders_of(asked, "absent") == ()
