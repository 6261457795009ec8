"""Where real clients are looked for, and the one piece of work that each of them is given.

They are looked for in the folder that `PLAIT_AGENTS_BIN` names, else on the PATH. `PLAIT_AGENTS`
names those that are to be tested; without it all are that are there.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.model_server import ModelServer, Turn

PATH = os.pathsep.join(filter(None, (os.environ.get("PLAIT_AGENTS_BIN"), os.environ["PATH"])))
WORK_ROOT = Path(os.environ.get("PLAIT_AGENTS_WORK", Path.home() / ".cache" / "plait-test-agents"))
WORK = [Turn(text="I will write.", runs="echo hello > hello.txt"), Turn(text="Written.")]
_NAMES = {"claude-agent-acp": "claude-acp"}
Serve = Callable[[list[Turn]], ModelServer]


def want(program: str) -> None:
    """Skip where the program is not there; fail where its absence would hide something."""
    name = _NAMES.get(program, program)
    wanted = os.environ.get("PLAIT_AGENTS", "").split()
    if wanted and name not in wanted:
        pytest.skip(f"{name} is not among the agents to be tested")
    if shutil.which(program, path=PATH) is None:
        if wanted and os.environ.get("PLAIT_CI") == "1":
            pytest.fail(f"{program} is not installed, and CI wants it to be")
        pytest.skip(f"{program} is not installed: run `make test-agents`")
