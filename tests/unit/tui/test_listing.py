"""Commands keep to 80 columns: they wrap at words, and never inside a command or a name."""

from dataclasses import replace

import pytest

from engine.agents.contract import Capabilities, FoundAgent
from engine.limits import Dimension, Enforcement, Level
from tui.commands import doctor
from tui.commands.agents import agent_lines
from tui.commands.listing import WIDTH, wrapped
from tui.ink import text_of
from tui.words.looks import LEVELS
from tui.words.starting import held_rows

_CAN = Capabilities(permission=True, steer="by_resume", resume=True, fork=True, usage=True)
_AWAY = FoundAgent(name="claude", install_hint="npm install -g @anthropic-ai/claude-code@latest")
_HERE = FoundAgent(
    name="opencode-acp",
    path="/usr/bin/opencode",
    version="0.50.1-beta.20260101",
    login="ChatGPT account of somebody-with-a-long-name@example.com",
    capabilities=_CAN,
)


def _row(dimension: Dimension, level: Level, fix: str = "") -> Enforcement:
    return Enforcement(
        dimension=dimension, level=level, mechanism="some", value="", reason="why", fix=fix
    )


ROWS = (
    _row(Dimension.FILES, Level.ADVISORY, "Install bubblewrap (all call it `bubblewrap`)."),
    _row(Dimension.GIT, Level.ADVISORY, "Install bubblewrap (all call it `bubblewrap`)."),
    _row(Dimension.NETWORK, Level.NONE, "Close it with `{allow: [hosts]}`, or with `none` alone."),
    _row(Dimension.MEMORY, Level.ENFORCED),
    _row(Dimension.DISK, Level.SAMPLED),
)


def test_every_line_about_agents_fits_and_every_word_is_whole():
    lines = list(agent_lines([_HERE, _AWAY]))
    assert max(map(len, lines)) <= WIDTH
    said = " ".join(" ".join(lines).split())
    assert "resumes its session, forks, reports tokens" in said
    assert "somebody-with-a-long-name@example.com" in said


def test_the_name_of_an_agent_stands_apart_from_what_is_said_of_it():
    assert next(iter(agent_lines([_HERE]))).startswith("opencode-acp  version")


@pytest.mark.parametrize("cut", range(40, 80))
def test_what_stands_between_backticks_stays_on_one_line(cut: int):
    lines = list(wrapped(f"{'x' * cut} then `sudo apt install bubblewrap` and go on"))
    assert any("`sudo apt install bubblewrap`" in line for line in lines)


def test_doctor_sums_up_each_level_and_names_each_way_to_more_once():
    lines = list(doctor.summary_lines(ROWS, [_HERE, _AWAY], "git version 2.39.5"))
    text = "\n".join(lines)
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 25
    assert "  advisory      files, git" in lines
    assert "  not enforced  network" in lines
    assert text.count("Install bubblewrap") == 1
    assert "→ files, git: Install" in text
    assert "--all" in text


def test_doctor_names_a_first_agent_where_there_is_none():
    text = "\n".join(doctor.summary_lines(ROWS, [_AWAY], "git version 2.39.5"))
    assert "→ npm install -g @anthropic-ai/claude-code@latest" in text


def test_doctor_says_that_an_agent_is_here_but_not_logged_in():
    lines = doctor.summary_lines(ROWS, [replace(_HERE, login=None)], "git version 2.39.5")
    assert "no login found: log in with opencode-acp itself" in " ".join("\n".join(lines).split())


@pytest.mark.parametrize("level", list(Level))
def test_no_level_is_left_out_where_dimensions_are_listed(level: Level):
    row = _row(Dimension.GIT, level)
    assert text_of(held_rows([row], 60)).split() == [*LEVELS[level][0].split(), "git"]
    assert "git" in "\n".join(doctor.summary_lines([row], [], "3")).partition("agents")[0]
