"""Only workers whose question plait knows exactly ask the same."""

from dataclasses import replace

import pytest

from engine.messages.asked import Question
from engine.messages.results import WorkerView
from tests.support.world import NOW, changed, csvlite
from tui.kit.cards import hints_of
from tui.words.asking import who_asks_alike, why_not_kept
from tui.words.scene import Scene
from tui.words.standing import step_of


def test_what_is_not_known_exactly_is_never_the_same():
    known = Question(id="q", text="Bash: make", is_permission=True)
    unknown = replace(known, needs_human=True)
    run = csvlite().runs[0]
    one, *_ = running = [worker for worker in run.workers if not worker.phase.is_settled]
    for question, count in ((known, len(running)), (unknown, 1)):
        asking = [replace(worker, questions=(question,)) for worker in running]
        assert len(who_asks_alike(asking, replace(one, questions=(question,)))) == count


def _asking(question: Question, **keys: str) -> tuple[WorkerView, Scene]:
    """Return a worker that asks this, and what is on screen with it."""
    view = changed(csvlite(), "implement/worker_1", questions=(question,))
    run = view.runs[0]
    one = next(worker for worker in run.workers if worker.worker == "implement/worker_1")
    return one, Scene(view=view, run=run, now=NOW, keys=keys)


@pytest.mark.parametrize(
    ("needs_human", "offered"), [(False, ["yes", "yes_wide", "no"]), (True, ["yes", "no"])]
)
def test_an_answer_that_the_engine_would_not_keep_is_offered_once_only(
    offered: list[str], *, needs_human: bool
):
    question = Question(id="q", text="make", is_permission=True, needs_human=needs_human)
    one, scene = _asking(question)
    assert scene.run
    hints = hints_of(one, step_of(scene.run, one), scene)
    assert [hint.idea for hint in hints] == offered
    assert bool(why_not_kept(question)) == needs_human
