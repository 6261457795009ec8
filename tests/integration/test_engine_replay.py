"""A run played again: what stood and what was written at each moment, and nothing of it changed."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread
import pytest

from engine.api import export_run, exported_file, look, open_exported, open_replay, reach
from engine.core.state import RunState
from engine.errors import EngineBug, EngineError, NoSuchRun, StoreError
from engine.ids import RunId
from engine.messages.commands import Refused, StopRun
from engine.messages.merging import ReadConflicts
from engine.messages.questions import ListRuns, ReadEngine, ReadLog, ReadRun
from engine.phases import Phase
from engine.run.journal import Journal
from tests.support.shells import Shell

pytestmark = [pytest.mark.anyio, pytest.mark.long]
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

LOOKS = """
import sys
from tui.cli import main
main(["status", "-C", sys.argv[1]])
shown = {"api", "core", "errors", "git", "ids", "legible", "limits", "messages", "phases", "plan"}
shown |= {"policies", "port", "private", "run", "site", "store", "values"}
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("engine.")}
live = {"engine.api.engine", "engine.run.live_run", "engine.git.landing", "pydantic", "textual"}
print(sorted(rooms - shown), sorted(live & sys.modules.keys()))
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
        before = (await replay.ask(ReadEngine())).runs[0].worker("talk/worker_1")
        assert not before.phase.is_settled
        assert before.last_lines == ()

        replay.go_to(replay.end)
        after = (await replay.ask(ReadEngine())).runs[0].worker("talk/worker_1")
        assert after.phase is Phase.FINISHED
        words = [line for line in after.last_lines if "words" in line]
        assert words == ["first words", "last words"]

        chunk = await replay.ask(ReadLog(replay.run, "talk/worker_1"))
        first, last = (line.at for line in chunk.lines if line.text in words)
        replay.go_to((first + last) / 2)
        between = await replay.ask(ReadLog(replay.run, "talk/worker_1"))
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
        assert (await replay.ask(ReadEngine())).is_read_only
    with pytest.raises(NoSuchRun):
        async with open_replay(played, "nosuch"):
            pass


async def test_an_exported_run_is_played_where_its_repository_is_not(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run, files = await export_run(played)
    carried = tmp_path / "carried"
    carried.mkdir()
    (carried / "replay.db").write_bytes(files["replay.db"])
    shutil.rmtree(played)
    monkeypatch.setenv("PLAIT_STATE_HOME", str(tmp_path / "nothing"))

    carried.chmod(0o500)  # as on a medium that can only be read
    async with open_exported(carried / "replay.db") as replay:
        assert replay.run == run
        replay.go_to(replay.end)
        after = (await replay.ask(ReadEngine())).runs[0].worker("talk/worker_1")
        assert after.phase is Phase.FINISHED
        assert [text for text in after.last_lines if "words" in text] == [
            "first words",
            "last words",
        ]
        chunk = await replay.ask(ReadLog(run, "talk/worker_1"))
        assert "last words" in [line.text for line in chunk.lines]
        assert isinstance(await replay.command(StopRun()), Refused)
        with pytest.raises(EngineError, match="exported"):
            await replay.ask(ReadConflicts(run, "talk/worker_1"))
    assert [path.name for path in carried.iterdir()] == ["replay.db"]
    carried.chmod(0o700)


async def test_only_what_was_exported_is_played(played: Path, tmp_path: Path):
    foreign = tmp_path / "foreign.db"
    foreign.write_text("nothing of ours")
    journals = await anyio.to_thread.run_sync(lambda: list(tmp_path.glob("state/**/run.db")))
    assert journals
    for file in (foreign, *journals):
        with pytest.raises(StoreError):
            async with open_exported(file):
                pass


def test_an_exported_run_is_named_by_its_folder_or_its_file(tmp_path: Path):
    file = tmp_path / "replay.db"
    assert exported_file(file) is None
    assert exported_file(tmp_path) is None
    file.touch()
    assert exported_file(file) == exported_file(tmp_path) == file


@pytest.mark.parametrize("workers", [1, 9])
async def test_an_export_replays_the_journal_as_often_for_many_workers_as_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "plait.yaml").write_text(PLAN.replace("sleep: 0.6", "sleep: 0.01"))
    shell = Shell(folder, tmp_path / "state")
    words = ("run", "say it", "-a", f"talker:{workers}", "--headless")
    assert shell.plait(*words).code in {0, 3}
    monkeypatch.setenv("PLAIT_STATE_HOME", str(shell.state))
    replays: list[RunId] = []
    states = Journal.states

    def counted(journal: Journal) -> Iterator[tuple[float, RunState]]:
        replays.append(journal.run)
        return states(journal)

    monkeypatch.setattr(Journal, "states", counted)
    run, files = await export_run(folder)
    assert len([name for name in files if name.startswith("logs/")]) == workers
    assert replays == [run]


async def test_journals_alone_tell_how_runs_stand_as_an_engine_does(played: Path):
    async with look(played) as (past, has_lived):
        assert not has_lived
        runs, view = await past.ask(ListRuns()), await past.ask(ReadRun())
        assert await past.ask(ReadRun(view.run)) == view
        with pytest.raises(NoSuchRun):
            await past.ask(ReadRun("none"))
        with pytest.raises(EngineBug):
            await past.ask(ReadEngine())
    async with reach(played) as (port, _):
        assert (await port.ask(ListRuns()), await port.ask(ReadRun())) == (runs, view)


async def test_looking_opens_nothing(played: Path):
    """An engine is neither loaded nor opened to say how a run stands."""
    told = await anyio.run_process([sys.executable, "-c", LOOKS, str(played)])
    lines = told.stdout.decode().splitlines()
    assert "(talk): success" in lines[0]
    assert lines[-1] == "[] []"
