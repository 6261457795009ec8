"""Answer any number of calls at once, each in a task of its own, as the far end of a pipe does."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from engine.errors import WorkspaceError
from engine.site.wire import Message, Pipe, answer, asked, refused


class Resident:
    """Whoever lives at the far end of a pipe; each call to it may be taken back."""

    def __init__(
        self, targets: Mapping[type, Any], calls: Mapping[str, Callable[..., Any]]
    ) -> None:
        self._targets = targets
        self._calls = calls
        self._scopes: dict[int | str, anyio.CancelScope] = {}

    def expect(self, number: int | str) -> None:
        """Know of a call before it is answered: it may be taken back before its task has begun."""
        self._scopes.setdefault(number, anyio.CancelScope())

    async def answer(self, head: Mapping[str, Any], blob: bytes) -> Message:
        """Answer a call; of one that is taken back, say that it has ended."""
        number = head["n"]
        self.expect(number)
        said = Message({"value": None}, b"")
        with self._scopes[number]:
            said = await self._done(Message(head, blob))
        del self._scopes[number]
        return Message({**said.head, "n": number}, said.blob)

    def take_back(self, number: int | str) -> None:
        """End a call that nobody waits for, if it has not been answered."""
        if number in self._scopes:
            self._scopes[number].cancel()

    async def _done(self, message: Message) -> Message:
        try:
            act = self._calls[message.head["do"]]
            name = act.__qualname__.partition(".")[0]
            held = self._targets.items()
            target = next((one for kind, one in held if kind.__name__ == name), None)
            if target is None:
                raise WorkspaceError("nothing has been sent to this site yet")
            value = await getattr(target, act.__name__)(**asked(act, message))
            return answer(act, value)
        except Exception as error:  # noqa: BLE001  it goes to whoever asked
            return refused(error)


async def serve(pipe: Pipe, resident: Resident) -> None:
    """Answer calls, each in a task of its own, until nobody asks any more."""

    async def answer(message: Message) -> None:
        await pipe.send(*await resident.answer(*message))

    async with anyio.create_task_group() as tasks:
        while (message := await pipe.receive()) is not None:
            number = message.head["n"]
            if "do" in message.head:
                resident.expect(number)
                tasks.start_soon(answer, message)
            else:
                resident.take_back(number)
        # As if killed: attempts that must not go on end with this process, the others go on.
        os._exit(0)
