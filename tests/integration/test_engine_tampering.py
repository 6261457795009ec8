"""Where nothing keeps an agent from the shared repository, what it did there is found and told."""

from pathlib import Path

import pytest

from engine import commands as c
from engine.api import Engine
from engine.results import Badge
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

PLAN = """
agents:
  a:
    adapter: scripted
    script: |
      steps:
        - write: {{path: new.txt, text: "hi"}}
        {deed}
pipelines:
  - name: p
    steps:
      - {{name: one, agent: a, prompt: "x"}}
"""


async def violations_of(tmp_path: Path, deed: str) -> tuple[tuple[str, ...], object]:
    repository = RepositoryBuilder(tmp_path / "repo")
    repository.commit({"a.txt": "a\n"})
    common = tmp_path / "repo" / ".git"
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PLAIT_STATE_HOME": str(tmp_path / "state"),
        "PLAIT_SANDBOX": "none",
    }
    async with Engine.open(tmp_path / "repo", environment=env) as engine:
        run = await engine.start(PLAN.format(deed=deed.format(common=common)))
        await run.wait()
        worker = (await engine.view(run.id)).worker("one/worker_1")
        reply = await engine.command(c.Land(worker="one/worker_1"))
        assert (Badge.VIOLATION in worker.badges) == bool(worker.violations)
        return worker.violations, reply


async def test_a_hook_written_by_an_agent_is_named_and_stops_the_landing(tmp_path: Path):
    deed = '- shell: "mkdir -p {common}/hooks; echo evil > {common}/hooks/post-checkout"'
    violations, reply = await violations_of(tmp_path, deed)
    assert "post-checkout" in [Path(path).name for path in violations]
    assert isinstance(reply, c.Refused)


async def test_an_agent_that_keeps_to_its_tree_violates_nothing(tmp_path: Path):
    violations, reply = await violations_of(tmp_path, '- say: "done"')
    assert violations == ()
    assert isinstance(reply, c.Accepted)
