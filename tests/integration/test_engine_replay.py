"""A run played again: what stood and what was written at each moment, and nothing of it changed."""

from pathlib import Path

import pytest

from engine.api import open_replay
from engine.commands import Refused, StopRun
from engine.errors import NoSuchRun
from engine.phases import Phase
from tests.support.shells import Shell

pytestmark = pytest.mark.anyio
PLAN = """
runtime: {isolation_strategy: directory}
agents:
  talker:
    adapter: scripted
    script: |
      steps:
        - say: "first words"
        - sleep: 0.6
        - say: "last words"
        - result: "done"
pipelines:
  - name: talk
    steps: [{name: talk, agent: talker, prompt: "talk", merge: none}]
"""


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run behind it."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "plait.yaml").write_text(PLAN)
    shell = Shell(folder, tmp_path / "state")
    done = shell.plait("run", "plait.yaml", "--headless")
    assert done.code == 0, done.err
    monkeypatch.setenv("PLAIT_STATE_HOME", str(shell.state))
    return folder


async def test_a_replay_shows_every_moment_as_it_was(played: Path):
    async with open_replay(played) as replay:
        replay.play_or_hold()
        replay.go_to(replay.begin)
        before = (await replay.snapshot()).runs[0].worker("talk/worker_1")
        assert not before.phase.is_settled
        assert before.last_lines == ()

        replay.go_to(replay.end)
        after = (await replay.snapshot()).runs[0].worker("talk/worker_1")
        assert after.phase is Phase.FINISHED
        words = [line for line in after.last_lines if "words" in line]
        assert words == ["first words", "last words"]

        chunk = await replay.log(replay.run, "talk/worker_1")
        said = next(line.at for line in chunk.lines if line.text == "last words")
        replay.go_to(said - 0.2)
        between = await replay.log(replay.run, "talk/worker_1")
        assert "first words" in [line.text for line in between.lines]
        assert "last words" not in [line.text for line in between.lines]


async def test_a_replay_steps_through_what_happened_and_stops_at_the_end(played: Path):
    async with open_replay(played) as replay:
        replay.go_to(replay.begin)
        moments = [replay.now()]
        for _ in range(100):
            replay.step()
            moments.append(replay.now())
        assert not replay.is_playing
        assert moments == sorted(moments)
        assert moments[-1] == replay.end
        assert len(set(moments)) >= 3
        replay.play_or_hold()
        assert replay.now() < replay.end


async def test_nothing_can_be_done_about_the_past(played: Path):
    async with open_replay(played) as replay:
        assert isinstance(await replay.command(StopRun()), Refused)
        assert (await replay.snapshot()).is_read_only
    with pytest.raises(NoSuchRun):
        async with open_replay(played, "nosuch"):
            pass
