"""Wrap an engine of this process so that its answers pass through JSON, as over the socket.

Written and read, a value can look otherwise than before: a whole number that stands for a fraction
prints as one, and an error has lost all but its sentence and its hint.
"""

import json
from collections.abc import Callable
from typing import Any, cast

from anyio import to_thread

from engine.errors import EngineBug
from engine.messages.questions import A, Ask, answer_type
from engine.port.port import EnginePort
from engine.port.protocol import error_heard, error_said
from engine.review.trying import OpenTry
from engine.store.codec import dump_as, load


class AsHeard:
    """The answers of an engine as one of its clients hears them."""

    def __init__(self, port: EnginePort, find_try: Callable[[], OpenTry | None]) -> None:
        self._port = port
        self._find_try = find_try

    async def trial(self) -> OpenTry | None:
        """Return the try that is on in the repository."""
        return await to_thread.run_sync(self._find_try)

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to a question."""
        try:
            answer = await self._port.ask(question)
            return cast("A", await to_thread.run_sync(_heard, type(question), answer))
        except EngineBug:
            raise
        except Exception as error:  # whatever it is, a socket would carry it as a sentence
            raise error_heard(error_said(error)) from error


def _heard(question: type[Ask[Any]], answer: object) -> object:
    kind: Any = answer_type(question)
    return load(kind, json.loads(json.dumps(dump_as(kind, answer))))
