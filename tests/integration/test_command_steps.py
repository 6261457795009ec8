"""A step that runs a command says if that passed, with its exit code, wherever it is shown."""

from pathlib import Path

import pytest

from engine.phases import Phase
from tests.support.engine_runs import Place
from tui.commands.status import status_text
from tui.ink import text_of
from tui.words.said import now_text
from tui.words.sentences import sentence_of

pytestmark = pytest.mark.anyio

PASSED = "passed with exit code 0"
BAD = "exit code 3: no"
STEPS = (
    {"name": "good", "run": "true"},
    {"name": "bad", "run": "echo no >&2; exit 3"},
)
SAID = {
    "good": (
        Phase.FINISHED,
        PASSED,
        f"good/worker_1 has finished: its command {PASSED}. There is nothing to merge.",
    ),
    "bad": (
        Phase.FAILED,
        BAD,
        "bad/worker_1 failed: its command failed with exit code 3. Its work was kept.",
    ),
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_step_says_how_its_command_came_out(place: Place):
    async with place.engine() as engine:
        run = await engine.start(place.manifest(*STEPS))
        await run.wait()
        view = await engine.view(run.id)
    rows = status_text(view).splitlines()
    for step in view.steps:
        (worker,) = step.workers
        phase, phrase, sentence = SAID[step.name]
        assert worker.phase is phase
        assert now_text(worker, step, view.started_at, 80) == phrase
        assert text_of([sentence_of(worker, step, view.started_at, str)]).strip() == sentence
        (row,) = [row for row in rows if worker.worker in row]
        assert phrase in row
