"""Answer in one look everyone who asked while another look was under way.

It knows neither what is asked nor how it is answered. An answer was always begun after its question
was put, so it is never older than what it is about.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(eq=False)
class _Asked(Generic[Q, A]):
    question: Q
    answer: tuple[A] | None = None


class Together(Generic[Q, A]):
    """A question and its answer, where the answers to several cost hardly more than one.

    Attributes:
        not_before: When the next may be looked for, on the event loop's clock. Whoever answers may
            ask for a rest, so that more come together; then it never is always at work.
    """

    def __init__(self, answer: Callable[[Sequence[Q]], Awaitable[Sequence[A]]]) -> None:
        """Begin; `answer` gets one question or more, and answers in their order."""
        self._answer = answer
        self._waiting: list[_Asked[Q, A]] = []
        self._answering = anyio.Lock()
        self.not_before = 0.0

    async def ask(self, question: Q) -> A:
        """Return the answer; an error in finding it is raised to one of those who asked."""
        asked: _Asked[Q, A] = _Asked(question)
        self._waiting.append(asked)
        try:
            async with self._answering:
                if asked.answer is None:
                    await anyio.sleep_until(self.not_before)
                    several = list(self._waiting)
                    answers = await self._answer([each.question for each in several])
                    for each, found in zip(several, answers, strict=True):
                        each.answer = (found,)
        finally:  # one that failed or was cancelled goes; others whom it was to answer ask again
            self._waiting = [
                each for each in self._waiting if each is not asked and each.answer is None
            ]
        if asked.answer is None:
            raise AssertionError  # answered above, or an error was raised
        return asked.answer[0]
