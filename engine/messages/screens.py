"""Define the questions about the terminal of an agent, and what a console is shown of it."""

from typing import ClassVar

from engine.messages.questions import Ask
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class ScreenView:
    """The terminal of an agent at a moment.

    Attributes:
        drawn: The bytes, as text, that draw it on a new terminal; empty where nothing is new.
        changes: A number that differs from the last one where anything has changed.
        scrolled: So many lines have left the screen at its top.
        is_live: The agent runs, and hears what is typed.
    """

    drawn: str = ""
    changes: int = 0
    rows: int = 24
    columns: int = 80
    scrolled: int = 0
    is_live: bool = False


@dataclass(frozen=True)
class ReadScreen(Ask[ScreenView]):
    """Show the terminal of a worker's agent; `known` is the number that was reported last."""

    run: str
    worker: str
    attempt: int | None = None
    known: int = -1


@dataclass(frozen=True)
class TypeInto(Ask[bool]):
    """Type into the terminal of a worker's agent; the answer says if somebody was there.

    Attributes:
        size: Rows and columns that the terminal takes first.
    """

    changes: ClassVar[bool] = True
    run: str
    worker: str
    text: str = ""
    size: tuple[int, int] | None = None
