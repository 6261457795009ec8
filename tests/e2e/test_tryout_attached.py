"""A console outlives its engine: when that is killed, another one takes the runs up."""

import os
import signal
from collections.abc import Mapping

import anyio
import pytest

from engine.api import EnginePort, attach, plan_from
from engine.errors import EngineError
from engine.messages.questions import ReadRun, StartPlan
from tests.support.shells import Shell

pytestmark = pytest.mark.anyio

PLAN = """
runtime: {sandbox: {paths: [GATE]}}
agents:
  s: {adapter: command, argv: [sh, -c, "until test -e GATE/go; do sleep 0.05; done; echo x > x"]}
pipelines:
  - name: p
    steps:
      - {name: a, agent: s, prompt: "x"}
"""


def _environment(shell: Shell) -> Mapping[str, str]:
    return {**os.environ, "PLAIT_STATE_HOME": str(shell.state)}


async def _phase(port: EnginePort, run: str) -> str:
    try:
        return str((await port.ask(ReadRun(run))).workers[0].phase)
    except (EngineError, OSError):
        return ""


async def _until(port: EnginePort, run: str, phase: str) -> None:
    with anyio.fail_after(60):
        while await _phase(port, run) != phase:  # noqa: ASYNC110  an engine is between, and tells nothing
            await anyio.sleep(0.05)


async def test_a_killed_engine_is_replaced_and_its_agents_go_on(repository: Shell):
    gate = repository.state.parent / "gate"
    gate.mkdir()
    plan = plan_from(PLAN.replace("GATE", str(gate)), folder=repository.folder)
    async with attach(repository.folder, environment=_environment(repository)) as port:
        run = await port.ask(StartPlan(plan))
        await _until(port, run, "RUNNING")
        killed = vars(port)["_remote"].pid
        os.kill(killed, signal.SIGKILL)
        (gate / "go").touch()
        await _until(port, run, "REVIEWING")
        view = await port.ask(ReadRun(run))
        pid = vars(port)["_remote"].pid
    assert view.workers[0].attempt == 1
    assert pid != killed
    os.kill(pid, signal.SIGTERM)


async def test_who_comes_after_a_killed_engine_gets_another_one(repository: Shell):
    environment = _environment(repository)
    async with attach(repository.folder, environment=environment) as port:
        killed = vars(port)["_remote"].pid
    os.kill(killed, signal.SIGKILL)
    async with attach(repository.folder, environment=environment) as port:
        pid = vars(port)["_remote"].pid
    assert pid != killed
    os.kill(pid, signal.SIGTERM)
