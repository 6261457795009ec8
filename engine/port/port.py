"""The one interface through which anybody sees and steers an engine, near or over a socket.

It loads nothing: who talks to an engine elsewhere has none of its rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.messages.commands import Command, Reply
    from engine.messages.events import Told
    from engine.messages.patches import Show
    from engine.messages.questions import A, Ask


class EnginePort(Protocol):
    """The interface of an engine for consoles and shells. Whoever opens it closes it."""

    async def command(self, command: Command) -> Reply:
        """Ask for something; it is accepted, or refused with a reason."""

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to a question.

        Raises:
            EngineError: It cannot be answered, and why.
        """

    def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Tell what happened behind a number, then what happens.

        Patches of the views of all runs are given to `show`, each at its place in that. A port
        that gives none before its first event has none: what it shows must be asked for.
        """
