"""Choose the engine that a command asks, and the streams that it writes to.

Usually a command speaks to the streams of its process, and reaches an engine. Where an engine runs
it for a shell, it speaks to that shell. Where no engine works, journals may be all that it asks.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from tui.commands import streams

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from engine.api import EnginePort, OpenTry
    from engine.messages.questions import A, Ask

    Kept = tuple[str, dict[str, object]]
    """The name under which an answer is kept, and what else changes it."""

T = TypeVar("T")


class Asked(Protocol):
    """Whoever answers questions: an engine, or the journals alone."""

    async def ask(self, question: Ask[A]) -> A:
        """Return the answer to a question."""


class AtHand(Asked, Protocol):
    """An engine or journals that nobody has to reach."""

    async def trial(self) -> OpenTry | None:
        """Return the try that is on in the repository."""


class Shell:
    """Whom a command that only looks asks, and what it says.

    Attributes:
        port: The engine, or the journals.
        has_lived: It is an engine.
        said: All that the command says: if it is data, and the text.
    """

    def __init__(
        self, port: AtHand, *, has_lived: bool, is_unicode: bool, is_colored: bool
    ) -> None:
        self.port = port
        self.has_lived = has_lived
        self.is_unicode = is_unicode
        self.is_colored = is_colored
        self.said: list[tuple[bool, str]] = []

    def hear(self, text: str, *, is_data: bool) -> None:
        """Keep what the command says, in order."""
        self.said.append((is_data, text))


HEARING: ContextVar[Shell | None] = ContextVar("hearing", default=None)
"""The shell that hears the command of this task."""


class EngineNeeded(Exception):
    """Journals cannot tell this."""


def is_unicode() -> bool:
    """Return True if stdout takes every character."""
    shell = HEARING.get()
    return streams.is_unicode() if shell is None else shell.is_unicode


def is_colored() -> bool:
    """Return True if stdout is a terminal whose user wants colors."""
    shell = HEARING.get()
    return streams.is_colored() if shell is None else shell.is_colored


def reached(folder: str) -> AbstractAsyncContextManager[tuple[EnginePort, bool]]:
    """Reach the engine of a folder, as `engine.api.reach` does; the one that runs us is at hand."""
    shell = HEARING.get()
    if shell is None:
        from engine.api import reach  # noqa: PLC0415  journals need it not

        return reach(folder)
    if not shell.has_lived:
        raise EngineNeeded
    return nullcontext((cast("EnginePort", shell.port), True))


def looked_at(folder: str) -> AbstractAsyncContextManager[tuple[Asked, bool]]:
    """Look at the runs of a folder, as `engine.api.look` does."""
    shell = HEARING.get()
    if shell is not None:
        return nullcontext((shell.port, shell.has_lived))
    from engine.api import look  # noqa: PLC0415  journals need it not

    return look(folder)


async def trial_in(folder: str) -> OpenTry | None:
    """Return the try that is on in a repository."""
    shell = HEARING.get()
    if shell is not None:
        return await shell.port.trial()
    from engine.api import open_try  # noqa: PLC0415  journals need it not

    return await open_try(folder)


async def told(tell: Callable[[], T]) -> T:
    """Let a command say what it has found; an engine that runs it must not wait for that."""
    shell = HEARING.get()
    if shell is None or not shell.has_lived:
        return tell()
    from anyio import to_thread  # noqa: PLC0415  journals need it not

    return await to_thread.run_sync(tell)


def from_journals(
    act: Coroutine[None, None, int],
    folder: str,
    *,
    kept_as: Kept | None = None,
    is_said: bool = True,
) -> int | None:
    """Run a command on the journals of a repository alone; None where they do not tell enough."""
    from engine.api import journals_at  # noqa: PLC0415  not every command has this way

    if (journals := journals_at(folder)) is None:
        act.close()
        return None
    shell = Shell(
        journals,
        has_lived=False,
        is_unicode=streams.is_unicode(),
        is_colored=streams.is_colored(),
    )
    before = HEARING.set(shell)
    look = journals.look() if kept_as else None
    code = None
    try:
        act.send(None)  # there is nothing to wait for, so that it ends at once
    except StopIteration as ended:
        code = int(ended.value)
        return code
    except EngineNeeded:
        shell.said.clear()
        return None
    finally:
        HEARING.reset(before)
        for is_data, text in shell.said if is_said else ():
            (streams.put if is_data else streams.say)(text)
        if look is not None:
            is_kept = code == 0 and journals.is_lasting
            look.keep(*kept_as, shell.said) if kept_as and is_kept else look.drop()
    raise AssertionError("journals make nobody wait")
