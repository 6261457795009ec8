"""Drive a console as a user does: by keys and the mouse, reading what is on screen."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input, TextArea
from textual.worker import WorkerCancelled

from engine.api import Engine
from engine.messages.results import (
    EngineView,
)
from tests.support.world import NOW, FakePort, csvlite
from tui.app import Options, PlaitApp
from tui.ink import Row
from tui.keys import default_keymap
from tui.kit.inked import Inked
from tui.kit.private import is_leaving, name_of_sign
from tui.kit.screen import Board
from tui.kit.starting import Starter
from tui.screens.worker.shells import SHELL

_ENDLESS = frozenset({"bridge", "signals", "outcome", "dialog", SHELL})
"""Groups of work that a key begins and does not wait for: a shell goes on behind its screen."""
_NAMED = frozenset(
    {
        "space",
        "enter",
        "escape",
        "tab",
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pageup",
        "pagedown",
        "shift+left",
        "shift+right",
        "shift+tab",
    }
)


_BUSY_S = 5.0
"""An engine in the same loop may never rest; what is shown is then waited for by the test."""


class _SteadyPilot(Pilot[None]):
    """Waits until no task of the application has anything left to do.

    Textual itself waits for a moment in which this process computes nothing: where others compute,
    that is any moment.
    """

    async def _wait_for_screen(self, timeout: float = 30.0) -> bool:  # noqa: ASYNC109 - Textual's
        is_whole = await super()._wait_for_screen(timeout)
        with anyio.move_on_after(_BUSY_S):
            await anyio.wait_all_tasks_blocked()
        return is_whole


def strips_on(app: App[None]) -> list[Strip]:
    """Return what the terminal shows: the strips that the screens' widgets are composed of."""
    return app.screen._compositor.render_strips()


@dataclass
class Console:
    """A console under test: it is pressed by what keys mean, and read as a user reads it."""

    app: PlaitApp
    port: FakePort
    pilot: Pilot[None] = field(init=False)

    def __post_init__(self) -> None:
        self.pilot = _SteadyPilot(self.app)

    @property
    def screen(self) -> Board:
        """The screen that is seen."""
        if self.app.board is None:
            raise TypeError(f"not a screen of ours: {self.app.screen!r}")
        return self.app.board

    @property
    def text(self) -> str:
        """Everything on screen."""
        return "\n".join(strip.text.rstrip() for strip in strips_on(self.app))

    @property
    def rows(self) -> list[Row]:
        """Every row of ink on the screens that are seen."""
        screens = {self.screen, self.app.screen}
        return [row for seen in screens for inked in seen.query(Inked) for row in inked.rows]

    @property
    def typed(self) -> str:
        """Return what stands in the box or line that is typed into."""
        box = self.app.focused
        return box.text if isinstance(box, TextArea) else getattr(box, "value", "")

    @property
    def has_drawn(self) -> bool:
        """The newest view is the one that screens draw."""
        return self.app.session.view is self.app.session.bridge.view

    @property
    def is_leaving(self) -> bool:
        """The console is to end."""
        return is_leaving(self.app)

    @property
    def message(self) -> str:
        """The message line."""
        return self.text.split("\n")[-2].strip()

    async def do(self, *ideas: str) -> "Console":
        """Press the keys of ideas, as they are on this screen."""
        keymap = default_keymap()
        for idea in ideas:
            own = f"{self.screen.kind}.{idea}"
            keys = keymap.keys.get(own) or keymap.of(f"everywhere.{idea}")
            await self.press(
                *([keys[0]] if keys[0] in _NAMED or "+" in keys[0][1:] else list(keys[0]))
            )
        return self

    async def press(self, *keys: str) -> "Console":
        """Press keys by their signs or names, and wait until the console has done what they ask."""
        for key in keys:
            await self.pilot.press(key)
        await self._settle()
        return self

    async def burst(self, text: str) -> "Console":
        """Hand over keys as a terminal does that is written to at once: none waits for another."""
        return await self.keys(*text)

    async def keys(self, *keys: str) -> "Console":
        """Hand over keys, by their signs or names, without waiting for any but the last."""
        typed = [
            events.Key(key if key.isalnum() else name_of_sign(key), key if len(key) == 1 else None)
            for key in keys
        ]
        for key in typed:
            key.time = typed[0].time  # one write of a terminal, however busy this machine is
            self.app.post_message(key)
        await self._settle()
        return self

    async def _settle(self) -> None:
        """Wait until every key has come to its end; outcomes may take forever."""
        while True:
            await self.pilot.pause()
            busy = [w for w in self.app.workers if w.group not in _ENDLESS and not w.is_finished]
            if busy:
                with suppress(WorkerCancelled):  # another of its group took its place
                    await self.app.workers.wait_for_complete(busy)
            elif self.app.session.ahead.is_idle:
                return

    async def type(self, text: str) -> "Console":
        """Type a text: into the box at once, line ends as enter; elsewhere key by key."""
        body, has_end = text.removesuffix("\n"), text.endswith("\n")
        if self.screen.box.writing:
            self.screen.box.area.insert(body)
        elif isinstance(self.app.focused, Input):
            self.app.focused.insert_text_at_cursor(body)
        else:
            await self.press(*body)
        return await self.press(*(["enter"] if has_end else []))

    async def until(self, found: Callable[[], bool], seconds: float = 30.0) -> "Console":
        """Wait for a condition; fails with what is on screen instead."""
        with anyio.move_on_after(seconds):
            while not found():
                await self.pilot.pause(0.02)
        assert found(), "\n".join((self.text, *map(repr, self.app.failures)))
        return self

    async def shows(self, *texts: str) -> "Console":
        """Wait until every text is on screen."""
        return await self.until(lambda: all(text in self.text for text in texts))

    async def tell(self, view: EngineView) -> "Console":
        """The engine has a new view; wait until it is drawn."""
        self.port.tell(view=view)
        told = self.port.snapshots
        await self.until(lambda: self.port.snapshots > told and self.has_drawn)
        await self.pilot.pause()
        return self


def read() -> Options:
    """Return options of a console in which everything has been read: its clock leaps."""
    ticks = count(step=3)
    return Options(clock=lambda: NOW + next(ticks), is_plain=False, has_truecolor=True)


class Reachable:
    """An engine's own port, as the console's driver knows it."""

    is_gone = False

    def __init__(self, engine: Engine) -> None:
        self._port = engine.port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


@asynccontextmanager
async def opened(
    view: EngineView | None = None,
    *,
    size: tuple[int, int] = (120, 36),
    port: FakePort | None = None,
    options: Options | None = None,
    starter: Starter | None = None,
    **more: object,
) -> AsyncIterator[Console]:
    """A console open on a scripted view, drawn once."""
    port = port or FakePort(csvlite() if view is None else view)
    options = options or Options(clock=lambda: NOW, is_plain=False, has_truecolor=True)
    app = PlaitApp(port, options=options, **more)  # type: ignore[arg-type]
    app.session.starter = starter or app.session.starter
    async with app.run_test(size=size):
        console = Console(app, port)
        await console.until(
            lambda: bool(port.is_gone or (console.has_drawn and console.text.strip()))
        )
        await console.pilot.pause()
        yield console
        if app.failures:  # the console goes on after an error of ours; a test does not
            raise app.failures[0]
