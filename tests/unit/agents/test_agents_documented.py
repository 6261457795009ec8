"""The pages about agents name everything that there is, and nothing that there is not."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from engine.agents.contract import LaunchRequest, Steering
from engine.agents.own_stream import OwnStream
from engine.agents.registry import adapters
from engine.agents.tables import AgentTable, TableRule, read_table
from engine.plan.model import AgentChoice
from tests.agents import stories

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "agents.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    """A table's rows by their first cell, from the table whose head begins with that word."""
    found: dict[str, list[str]] = {}
    lines = iter(PAGE.splitlines())
    next(line for line in lines if line.startswith(f"| {heading} |"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        for name in re.findall(r"`([\w-]+)`", cells[0]):
            found[name] = cells[1:]
    return found


def test_every_agent_has_a_row() -> None:
    assert set(rows("agent")) == set(adapters())


@pytest.mark.parametrize("name", stories.CLIENTS)
def test_a_row_says_what_the_adapter_can(name: str) -> None:
    _, asks, heard, resumed, forked, tokens, cost, hint = rows("agent")[name]
    can = adapters()[name].capabilities
    words = {
        Steering.NOW: "at once",
        Steering.AFTER_TURN: "after the turn",
        Steering.BY_RESUME: "by resuming",
        Steering.NO: "no",
    }
    yes = {True: "yes", False: "no"}
    assert (asks, heard) == (yes[can.permission], words[can.steer])
    assert (resumed, forked) == (yes[can.resume], yes[can.fork])
    assert (tokens, cost) == (yes[can.usage], yes[can.cost])
    assert hint == (can.hint.value if "-acp" not in name else "session, file or prompt")


def test_every_record_of_the_protocol_is_described() -> None:
    choice = AgentChoice(name="x", adapter="command")
    request = LaunchRequest(choice=choice, prompt="", workspace="/", home="/")
    assert set(rows("record")) == set(OwnStream(request)._readers)


def test_everything_that_a_table_may_say_is_described() -> None:
    assert set(rows("`tell`")) == set(get_args(TableRule.model_fields["tell"].annotation))
    part = PAGE[PAGE.index("## A table of your own") : PAGE.index("## A Python function")]
    for model in (AgentTable, TableRule):
        assert [name for name in model.model_fields if not re.search(rf"\b{name}\b", part)] == []


def test_the_table_that_is_shown_is_one() -> None:
    part = PAGE[PAGE.index("## A table of your own") :]
    shown = part.split("```toml\n")[1].split("```")[0]
    assert tomllib.loads(shown)["name"] == read_table(shown, "docs").name == "mine"


def test_every_option_is_read_somewhere() -> None:
    sources = "".join(path.read_text() for path in (DOCS.parent / "engine/agents").rglob("*.py"))
    assert [name for name in rows("option") if f'"{name}"' not in sources] == []


def test_the_page_says_which_stories_were_played_with_whom() -> None:
    assert stories.page_table() in PAGE
    assert f"{', '.join(stories.STORIES)}." in " ".join(PAGE.split())


def test_the_page_says_what_each_client_says_of_a_busy_model() -> None:
    assert set(stories.TELLS_WAIT) == set(stories.CLIENTS)
    assert stories.wait_table() in PAGE


def test_who_cannot_play_a_story_is_said_by_its_capabilities() -> None:
    driven_otherwise = {"scripted", "command", "terminal", "acp", "jsonl", "callable"}
    assert set(stories.CLIENTS) == set(adapters()) - driven_otherwise
    can = {name: adapters()[name].capabilities for name in stories.CLIENTS}
    mute = {name for name in can if not can[name].permission}
    deaf = {name for name in can if can[name].steer is Steering.NO}
    for story, wanted in (("allowed", mute), ("denied", mute), ("steer", deaf)):
        assert {agent for one, agent in stories.CANNOT if one == story} == wanted
    anew = {name for name in can if not (can[name].resume and can[name].resume_elsewhere)}
    assert set(stories.BEGINS_ANEW) == anew
