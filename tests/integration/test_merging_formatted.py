"""Conflicts that the project's own formatter resolves: fetched ahead, proposed, never taken."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest

from engine.api import Engine, Run
from engine.messages import events as ev
from engine.messages.events import Told
from engine.messages.merging import ConflictView, ReadConflicts
from engine.messages.questions import ReadLog
from engine.phases import Phase
from engine.work import helping
from tests.integration.test_merging_evidence import listening, told
from tests.support.merging_runs import MergingPlace, land, reviewed

pytestmark = pytest.mark.anyio
WHO = "s2/worker_1"
OLD = "def f(a,b):\n    return a+b\n"
MINE = "def f(a, b):\n    return a + b\n"
THEIRS = "def f(a,b):\n    return a+b+1\n"
SPACED = "sed 's/, */, /g; s/ *+ */ + /g'"


async def offered(
    place: MergingPlace, engine: Engine, rules: Mapping[str, str]
) -> tuple[Run, ConflictView]:
    """The conflicts, once a formatter has had its turn."""
    sides = ({"src/f.py": MINE}, {"src/f.py": THEIRS})
    run = await reviewed(engine, {**place.workers(*sides), "review": {"format": rules}})
    assert await land(engine, run, "s1/worker_1") is Phase.LANDED
    async with listening(engine, run) as stream:
        assert await land(engine, run, WHO) is Phase.CONFLICTED
        await formatted(stream)
    return run, await engine.port.ask(ReadConflicts(run.id, WHO))


async def formatted(stream: AsyncIterator[Told]) -> None:
    """Wait until the consoles hear that something is new."""
    await told(stream, ev.ConflictsDecided, WHO)


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, {"src/f.py": OLD, "src/settings": "s/ *+ */ + /g\n"})


@pytest.mark.parametrize(
    "command",
    [
        SPACED,
        "sed -f settings -e 's/, */, /g'",  # in the file's folder, with the settings there
        f'test "$PLAIT_FILE" = f.py && {SPACED}',
    ],
)
async def test_the_side_that_only_reformatted_leaves_the_other_formatted(
    place: MergingPlace, command: str
):
    async with place.engine() as engine:
        _, view = await offered(place, engine, {"*.py": command})
        (hunk,) = view.file("src/f.py").hunks
        first = hunk.proposals[0]
        assert (first.rule, first.likely, hunk.choice) == ("formatted", True, None)
        assert first.text == "def f(a, b):\n    return a + b + 1\n"
        assert "the target side only reformatted" in first.reason
        assert "a guess" in first.reason
        assert view.decisions == 0


@pytest.mark.parametrize("command", ["exit 1", "cat > /dev/null", "cat", "nothing-of-that-name"])
async def test_a_formatter_that_fails_or_changes_nothing_proposes_nothing(
    place: MergingPlace, command: str
):
    async with place.engine() as engine:
        _, view = await offered(place, engine, {"*.py": command})
        (hunk,) = view.file("src/f.py").hunks
        assert "formatted" not in {one.rule for one in hunk.proposals}
        assert hunk.choice is None


async def test_the_time_of_formatters_begins_when_no_other_landing_is_before_them(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    bounds: list[float] = []

    def bounded(seconds: float) -> anyio.CancelScope:
        bounds.append(seconds)
        return anyio.CancelScope()

    monkeypatch.setattr(helping, "anyio", SimpleNamespace(move_on_after=bounded))
    async with place.engine() as engine:
        landing = engine._coordinator.runs.tools.landing
        sides = ({"src/f.py": MINE}, {"src/f.py": THEIRS})
        rules = {"format": {"*.py": SPACED}}
        run = await reviewed(engine, {**place.workers(*sides), "review": rules})
        assert await land(engine, run, "s1/worker_1") is Phase.LANDED
        async with listening(engine, run) as stream:
            assert await land(engine, run, WHO) is Phase.CONFLICTED
            async with landing:  # as while another worker's check runs
                while not landing.statistics().tasks_waiting:
                    await anyio.lowlevel.checkpoint()
                assert helping._FORMATTING_S not in bounds
            await formatted(stream)
        assert bounds.count(helping._FORMATTING_S) == 1
        (hunk,) = (await engine.port.ask(ReadConflicts(run.id, WHO))).file("src/f.py").hunks
        assert hunk.proposals[0].rule == "formatted"


async def test_a_formatter_that_takes_too_long_is_said(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(helping, "_FORMATTING_S", 0.5)
    async with place.engine() as engine:
        run, view = await offered(place, engine, {"*.py": "echo part; sleep 600"})
        assert "formatted" not in {one.rule for one in view.file("src/f.py").hunks[0].proposals}
        lines = (await engine.port.ask(ReadLog(run.id, WHO))).lines
        assert "formatting the conflicts took over 0.5 seconds" in lines[-1].text
