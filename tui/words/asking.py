"""Know what agents ask: the answers that have a number, and who else asks the very same."""

from collections.abc import Sequence

from engine.messages.results import Question, WorkerView

MOST_NUMBERED = 9
"""A number is one digit."""
ANSWERED_ON = frozenset({"fleet", "worker", "inbox"})
"""The screens on which what a worker asks is answered."""


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
    """Return all who ask exactly what a worker asks first, that worker among them."""
    asked = asked_of(worker)
    if asked and asked.needs_human:  # what plait does not know of it may differ
        return [one for one in workers if one.worker == worker.worker]
    return [one for one in workers if asked and _is_same(asked, asked_of(one))]


def _is_same(one: Question, other: Question | None) -> bool:
    return other is not None and (
        (one.text, one.choices, one.is_permission)
        == (other.text, other.choices, other.is_permission)
    )
