"""The callbacks of a program while its agents work: subscribers, and who answers questions."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from engine.library.seats import Back
from engine.library.talks import Hearing
from engine.messages.asked import Question
from engine.messages.events import Told

Subscriber = Callable[[Told], object]
"""Called with every event of the runs, in the caller's own loop; may be async."""
Answerer = Callable[[Question], str | Awaitable[str]]
"""Called with a question of an agent; it returns the answer, or an awaitable of it."""


class Listening:
    """The subscribers, and the one who is asked."""

    def __init__(self, subscribers: Iterable[Subscriber], answer: Answerer | None) -> None:
        self._subscribers = list(subscribers)
        self._answer = answer

    def copy(self) -> "Listening":
        """Return the same, with a list of its own."""
        return Listening(self._subscribers, self._answer)

    def add(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; call the result to remove it."""
        self._subscribers.append(subscriber)
        return partial(self._subscribers.remove, subscriber)

    def hearing(self, back: Back) -> Hearing:
        """Return the same as seen from an engine's loop."""

        async def observe(told: Told) -> None:
            for subscriber in list(self._subscribers):
                await back(partial(subscriber, told))

        async def answer(question: Question) -> str:
            if self._answer is None:
                return _answer_alone(question)
            return str(await back(partial(self._answer, question)))

        return Hearing(observe=observe if self._subscribers else None, answer=answer)


def _answer_alone(question: Question) -> str:
    """Answer where nobody else does: no to permissions, patience to what stands still."""
    if question.is_permission:
        return "deny"
    return next((word for word in ("wait", "deny") if word in question.choices), "")
