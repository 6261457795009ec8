"""Where real clients are looked for, and the one piece of work that each of them is given.

They are looked for in the folder that `PLAIT_AGENTS_BIN` names (by default the one that
`make clients` fills), else on the PATH. `PLAIT_AGENTS`
names those that are to be tested; without it all are that are there.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.model_server import ModelServer, Turn

_INSTALLED = Path(__file__).parents[2] / ".agents/node_modules/.bin"
PATH = os.pathsep.join((os.environ.get("PLAIT_AGENTS_BIN", str(_INSTALLED)), os.environ["PATH"]))
WORK_ROOT = Path(os.environ.get("PLAIT_AGENTS_WORK", Path.home() / ".cache" / "plait-test-agents"))
WORK = [Turn(text="I will write.", runs="echo hello > hello.txt"), Turn(text="Written.")]
WANTED = os.environ.get("PLAIT_AGENTS", "").split()
Serve = Callable[[list[Turn]], ModelServer]
_OF_THEIR_OWN = {"claude-acp", "codex-acp"}
"""Agents over ACP that are programs beside the one that they drive; the others are that one."""


def agent_of(item: pytest.Item) -> str:
    """The agent that a test drives: its parameter, else the one that its name speaks of."""
    given = getattr(item, "callspec", None)
    agent = given.params.get("agent", "") if given else ""
    if agent:
        return agent if agent in _OF_THEIR_OWN else agent.removesuffix("-acp")
    return "codex" if "codex" in item.name else "claude"


def want(program: str) -> None:
    """Skip where the program is not there; fail where its absence would hide something."""
    if shutil.which(program, path=PATH) is None:
        if WANTED and os.environ.get("PLAIT_CI") == "1":
            pytest.fail(f"{program} is not installed, and CI wants it to be")
        pytest.skip(f"{program} is not installed: run `make test-agents`")
