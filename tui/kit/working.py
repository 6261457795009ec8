"""Begin work of the console beside everything else; an error of ours in it ends nothing.

Textual ends the whole console when one of its workers raises. So every worker of ours begins here:
what it raises is said on screen and kept in a log, and all other panes go on. What a handler, a
timer or a drawing raises comes the same way, by `tui/kit/private.py::Enduring`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.dom import DOMNode
    from textual.widget import Widget
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
            except Exception as error:  # whatever work raises is said, and ends nothing else
                if not isinstance(node.app, Survives):
                    raise
                node.app.work_failed(error)
                if again_after_s is not None:
                    await anyio.sleep(again_after_s)  # what fails each time is not said at once
                    continue
            return

    wanted: WorkType[None] = guarded
    node.run_worker(wanted, group=group, exclusive=exclusive)


async def caught_up(widget: Widget) -> None:
    """Wait until a widget has handled every message that it has been sent so far."""
    is_through = anyio.Event()
    if widget.call_later(is_through.set):
        await is_through.wait()


class Failures(list[Exception]):
    """Errors of ours that ended no more than what they came from, each of them once."""

    log = ""
    """The file with their traces; empty where there is none."""

    def keep(self, error: Exception, write: Callable[[Exception], str]) -> str:
        """Write an error down if none came from there before; return the file."""
        if _origin(error) not in map(_origin, self):
            self.append(error)
            self.log = write(error)
        return self.log

    def parting(self) -> str:
        """Return what to say of them once the terminal is the shell's again."""
        from tui.words.figures import some  # noqa: PLC0415  few consoles need it

        many = some(len(self), "internal error")
        if not self or self.log:
            return f"the console had {many}; the traceback is in {self.log}" if self else ""
        return "\n".join((f"the console had {many}:", *map(_trace_of, self)))


def _origin(error: BaseException) -> tuple[object, ...]:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return type(error), trace and (trace.tb_frame.f_code, trace.tb_lineno)


def _trace_of(error: BaseException) -> str:
    from traceback import format_exception  # noqa: PLC0415  few consoles need it

    return "".join(format_exception(error))


def keep_trace(log: Path, error: BaseException) -> bool:
    """Write an error and where it came from behind what a log holds; return whether it could be."""
    text = _trace_of(error).encode(errors="backslashreplace")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(log, flags, 0o600), "ab") as file:
            if file.tell() > _MOST_BYTES:
                file.truncate(0)
            file.write(text + b"\n")
    except OSError:
        return False
    return True
