"""Begin work of the console beside everything else; an error of ours in it ends nothing.

Textual ends the whole console when one of its workers raises. So every worker of ours begins here:
what it raises is said on screen and kept in a log, and all other panes go on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.dom import DOMNode
    from textual.worker import WorkType

_MOST_BYTES = 1 << 20
"""A log that is longer begins anew."""


@runtime_checkable
class Survives(Protocol):
    """An application that goes on after an error in one of its workers."""

    def work_failed(self, error: Exception) -> None:
        """Say it and keep it."""


def begin_work(
    node: DOMNode,
    work: Callable[[], Awaitable[object]],
    *,
    group: str = "default",
    exclusive: bool = False,
    again_after_s: float | None = None,
) -> None:
    """Run work of a part of the console beside everything else.

    Args:
        node: The part whose end also ends the work.
        work: What is done.
        group: The name of work of its kind.
        exclusive: It takes the place of other work of its group.
        again_after_s: Begin it again so long after an error; by default never.
    """

    async def guarded() -> None:
        while True:
            try:
                await work()
            except Exception as error:
                if not isinstance(node.app, Survives):
                    raise
                node.app.work_failed(error)
                if again_after_s is not None:
                    await anyio.sleep(again_after_s)  # what fails each time is not said at once
                    continue
            return

    wanted: WorkType[None] = guarded
    node.run_worker(wanted, group=group, exclusive=exclusive)


def keep_trace(log: Path, error: BaseException) -> bool:
    """Write an error and where it came from behind what a log holds; return whether it could be."""
    from traceback import format_exception  # noqa: PLC0415  few consoles need it

    text = "".join(format_exception(error)).encode(errors="backslashreplace")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(log, flags, 0o600), "ab") as file:
            if file.tell() > _MOST_BYTES:
                file.truncate(0)
            file.write(text + b"\n")
    except OSError:
        return False
    return True
