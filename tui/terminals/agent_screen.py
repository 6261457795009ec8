"""The terminal of an agent, as its engine tells it: looked at again and again while it is seen."""

from collections.abc import Callable

import anyio

from engine.messages.screens import ReadScreen, ScreenView, TypeInto
from engine.terminal.terminal import Terminal
from tui.bridge import GONE, Bridge

_LOOK_S = 1 / 15
_LOOK_TYPED_S = 1 / 60
_TYPED_LOOKS = 20
"""So many looks behind a key come soon after one another: its echo is awaited."""


class AgentScreen:
    """Show what the agent of a worker has drawn, and type into it.

    Attributes:
        terminal: What it has drawn, when it was looked at last.
        problem: Why it cannot be seen; empty where it can.
        is_live: It runs, and hears what is typed.
        is_known: It was looked at.
    """

    def __init__(self, bridge: Bridge, run: str, worker: str, changed: Callable[[], None]) -> None:
        self.terminal = Terminal()
        self.problem = ""
        self.is_live = False
        self._bridge = bridge
        self._of = (run, worker)
        self._changed = changed
        self._known = -1
        self._typed = ""
        self._size: tuple[int, int] | None = None
        self._soon = 0
        self.is_known = False
        self._is_dropped = False
        self._moved = anyio.Event()

    async def look(self, is_seen: Callable[[], bool]) -> None:
        """Look at it until it is dropped, while it is seen, and type what is to be typed."""
        while not self._is_dropped:
            if is_seen():
                await self._look()
            self._soon = max(self._soon - 1, 0)
            with anyio.move_on_after(_LOOK_TYPED_S if self._soon else _LOOK_S):
                await self._moved.wait()
            self._moved = anyio.Event()

    def write(self, data: bytes) -> None:
        """Type into it."""
        self._typed += data.decode("utf-8", "ignore")
        self._soon = _TYPED_LOOKS
        self._moved.set()

    def resize(self, rows: int, columns: int) -> None:
        """Give it another size."""
        self._size = (rows, columns)
        self._moved.set()

    def drop(self) -> None:
        """Look at it no more."""
        self._is_dropped = True
        self._moved.set()

    async def _look(self) -> None:
        try:
            await self._tell()
            self._take(await self._bridge.port.ask(ReadScreen(*self._of, known=self._known)))
        except GONE as error:
            if self.problem != str(error):
                self.problem, self.is_live = str(error), False
                self._changed()

    async def _tell(self) -> None:
        if self._typed or self._size:
            typed, size, self._typed, self._size = self._typed, self._size, "", None
            await self._bridge.port.ask(TypeInto(*self._of, typed, size))

    def _take(self, view: ScreenView) -> None:
        if (view.changes, view.is_live) == (self._known, self.is_live) and not self.problem:
            return
        self.problem, self.is_live, self._known = "", view.is_live, view.changes
        self.is_known = True
        if view.drawn:
            self.terminal = Terminal(view.rows, view.columns)
            self.terminal.feed(view.drawn.encode())
            self.terminal.grid.scrolled = view.scrolled
        self._changed()
