"""Only workers whose question plait knows exactly ask the same."""

from dataclasses import replace

from engine.messages.asked import Question
from tests.support.world import csvlite
from tui.words.asking import who_asks_alike


def test_what_is_not_known_exactly_is_never_the_same():
    known = Question(id="q", text="Bash: make", is_permission=True)
    unknown = replace(known, needs_human=True)
    run = csvlite().runs[0]
    one, *_ = running = [worker for worker in run.workers if not worker.phase.is_settled]
    for question, count in ((known, len(running)), (unknown, 1)):
        asking = [replace(worker, questions=(question,)) for worker in running]
        assert len(who_asks_alike(asking, replace(one, questions=(question,)))) == count
