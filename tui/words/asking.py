"""Know what agents ask: the answers that have a number, and who else asks the very same."""

from collections.abc import Sequence

from engine.messages.asked import Question
from engine.messages.results import WorkerView
from engine.values import dataclass

MOST_NUMBERED = 9
"""A number is one digit."""
ANSWERED_ON = frozenset({"fleet", "worker", "inbox"})
"""The screens on which what a worker asks is answered."""


@dataclass(frozen=True, kw_only=True)
class DrawnQuestion(Question):
    """A question as it is drawn, where that is not byte for byte what was asked.

    Attributes:
        raw: What was asked. It alone is compared, edited and sent back, and it is never drawn.
    """

    raw: Question


def raw_of(question: Question) -> Question:
    """Return a question byte for byte."""
    return question.raw if isinstance(question, DrawnQuestion) else question


def asked_of(worker: WorkerView) -> Question | None:
    """Return what a worker asks first, if it waits for an answer."""
    return worker.questions[0] if worker.questions and not worker.phase.is_settled else None


def asks_permission(worker: WorkerView) -> bool:
    """Return whether a worker waits to be allowed something."""
    asked = asked_of(worker)
    return asked is not None and asked.is_permission


def choices_of(worker: WorkerView) -> tuple[str, ...]:
    """Return the answers that a digit gives; a permission has none, so that none is given so."""
    asked = asked_of(worker)
    if asked is None or asked.is_permission:
        return ()
    return asked.choices[:MOST_NUMBERED]


def who_asks_alike(workers: Sequence[WorkerView], worker: WorkerView) -> list[WorkerView]:
    """Return all who ask exactly what a worker asks first, that worker among them.

    What hides something is read and answered by itself, however many ask it.
    """
    asked = asked_of(worker)
    if asked is None:
        return []
    if raw_of(asked).is_hiding or asked.needs_human:  # what plait does not know may differ
        return [one for one in workers if one.worker == worker.worker]
    return [one for one in workers if _is_same(asked, asked_of(one))]


def _is_same(one: Question, other: Question | None) -> bool:
    return other is not None and _compared(one) == _compared(other)


def _compared(question: Question) -> tuple[object, ...]:
    asked = raw_of(question)
    return asked.text, asked.command, asked.about, asked.choices, asked.is_permission


def why_not_kept(asked: Question) -> str:
    """Return why an answer to this request cannot be kept for the run; empty where it can."""
    if raw_of(asked).is_hiding:
        return "it hides characters"
    if asked.needs_human:
        return "it comes from a terminal, or is for several commands"
    return ""
