"""The console as an application: its screens, colours, clocks, and a terminal left as it was."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import anyio
import anyio.to_thread
from textual.app import App
from textual.filter import LineFilter, NoColor
from textual.worker import WorkType

from tui.bridge import Bridge, LogGrew
from tui.keys import read_key_file
from tui.present.attention import (
    KEEP_TITLE,
    PUT_TITLE_BACK,
    Needs,
    needs_of,
    notification,
    sentence_of_new,
    set_title,
    title_of_view,
)
from tui.screens.base import BoardScreen
from tui.screens.memory import Memory
from tui.screens.session import Player, Session
from tui.theming import DEFAULT, Theme, load_all
from tui.widgets.palette import Palette
from tui.widgets.terminal import SturdyDriver

if TYPE_CHECKING:
    from engine.api import EnginePort

_CALM_S, _LIVELY_S, _REMOTE_S = 0.25, 1 / 15, 0.5
_TICK_S = 1.0
_RISEN_S = 0.6
_REMEMBER_S = 5.0
_SCREENS = {
    "fleet": ("fleet", "FleetScreen"),
    "worker": ("worker", "WorkerScreen"),
    "diff": ("diff", "DiffScreen"),
    "compare": ("compare", "CompareScreen"),
    "review": ("review", "ReviewScreen"),
    "inbox": ("inbox", "InboxScreen"),
    "plan": ("others", "PlanScreen"),
    "runs": ("others", "RunsScreen"),
}
"""Where each screen is; loaded when it is first gone to, and not before the first paint."""


def _made(kind: str, session: Session) -> BoardScreen:
    module, name = _SCREENS[kind]
    screen: BoardScreen = getattr(import_module(f"tui.screens.{module}"), name)(session)
    return screen


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a console is opened.

    Attributes:
        is_plain: Without any colour; None asks `NO_COLOR`.
        is_ascii: With no sign but ASCII.
        has_truecolor: Whether the terminal shows all colours; None asks the terminal.
        config: The user's folder with `keys.toml` and `themes/`; None for none. Without any
            options it is `$XDG_CONFIG_HOME/plait`.
        shell: The command that opens a shell inside a worker's sandbox, from run and worker.
        can_stay_alive: Whether agents go on when this console is left.
        notifies: Whether the terminal is told when a human is needed: its bell, its title, a
            notification.
        begins_on: The screen that is seen first.
        memory: The file in which seen hunks and unsent comments outlive the console.
        clock: Wall-clock seconds.
        player: What plays the run, where it is a replay.
    """

    is_plain: bool | None = None
    is_ascii: bool = False
    has_truecolor: bool | None = None
    config: Path | None = None
    shell: Callable[[str, str], Sequence[str]] | None = None
    can_stay_alive: bool = True
    notifies: bool = False
    begins_on: str = "fleet"
    memory: Path | None = None
    clock: Callable[[], float] = time.time
    player: Player | None = None


class PlaitApp(App[None]):
    """The console. It shows what a port tells and asks what the human wants.

    Without a port it opens all the same, and shows where it is until `reach` names one.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: $background; }"

    def __init__(
        self,
        port: EnginePort | None,
        *,
        read_only: bool = False,
        theme: str | None = None,
        options: Options | None = None,
    ) -> None:
        options = options or Options(config=config_home())
        config, clock = options.config, options.clock
        self.is_plain = "NO_COLOR" in os.environ if options.is_plain is None else options.is_plain
        super().__init__(driver_class=SturdyDriver, ansi_color=self.is_plain)
        self._screen_stacks, self._current_mode = {options.begins_on: []}, options.begins_on
        self._has_truecolor = options.has_truecolor
        themes, theme_problems = load_all(config / "themes" if config else None)
        for known in themes.values():
            self.register_theme(known.as_textual())
        chosen = theme if theme in themes else DEFAULT
        key_file = config / "keys.toml" if config else None
        text = key_file.read_text("utf-8") if key_file and key_file.exists() else ""
        keymap, key_problems = read_key_file(text, str(key_file or "keys.toml"))
        self.problems = [str(problem) for problem in (*theme_problems, *key_problems)]
        self._plain_filters: list[LineFilter] = [NoColor()]
        is_remote = "SSH_CONNECTION" in os.environ
        self.session = Session(
            bridge=Bridge(port, self.post_message, clock),
            clock=clock,
            keymap=keymap,
            themes=themes,
            palette=self._palette(themes[chosen]),
            is_read_only=read_only,
            is_ascii=options.is_ascii,
            can_stay_alive=options.can_stay_alive,
            can_animate=not (is_remote or self.is_plain or _is_still()),
            key_file=str(key_file or ""),
            shell=options.shell,
            player=options.player,
        )
        self.is_remote = is_remote
        self._notifies = options.notifies
        self._needs: Needs | None = None
        self._title = ""
        self._memory: Memory | None = None
        self.has_painted = anyio.Event()
        if options.memory:
            self._recall(options.memory)
        self.theme = chosen
        for kind in _SCREENS:
            self.add_mode(kind, partial(_made, kind, self.session))

    def reach(self, port: EnginePort, memory: Path) -> None:
        """The engine is there, and the file that an earlier console left beside it."""
        self._recall(memory)
        self.session.bridge.reach(port)

    def _recall(self, path: Path) -> None:
        self._memory = Memory(path)
        self._memory.recall(self.session)

    # Colours.

    def _palette(self, theme: Theme) -> Palette:
        has_truecolor = self._has_truecolor
        if has_truecolor is None:
            has_truecolor = self.console.color_system in {"truecolor", None}
        return Palette(theme, is_plain=self.is_plain, has_truecolor=has_truecolor)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without colours nothing is sent in a colour, not even in grey."""
        return self._plain_filters if self.is_plain else super().get_line_filters()

    def _wear(self, _: object) -> None:
        """The theme was changed: every board that is mounted takes the new colours."""
        palette = self._palette(self.session.themes.get(self.theme) or self.session.palette.theme)
        self.session.palette = palette
        for stack in self._screen_stacks.values():
            for screen in stack:
                if isinstance(screen, BoardScreen):
                    screen.board.wear(palette)
        self.redraw()

    # Living.

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, self._wear)
        self.set_interval(_TICK_S, self.redraw)
        self.set_interval(_REMEMBER_S, self._remember)
        self._tell_terminal(KEEP_TITLE)
        bridge: WorkType[None] = self.session.bridge.run
        signals: WorkType[None] = self._heed_signals
        self.run_worker(bridge, group="bridge")
        if threading.current_thread() is threading.main_thread():
            self.run_worker(signals, group="signals")
        if self.problems:
            self.call_after_refresh(self._tell_problems)
        self.call_after_refresh(self.has_painted.set)

    async def _heed_signals(self) -> None:
        """End well when asked to: the terminal is restored, the agents go on."""
        wanted = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        with anyio.open_signal_receiver(*wanted) as received:
            async for number in received:
                self.exit(return_code=128 + number)

    def _tell_problems(self) -> None:
        more = f" and {len(self.problems) - 1} more" if len(self.problems) > 1 else ""
        if isinstance(self.screen, BoardScreen):
            self.screen.say_refused("your settings", self.problems[0] + more, "the defaults stay")

    def redraw(self) -> None:
        """Draw the screen that is seen; the others cost nothing."""
        if isinstance(self.screen, BoardScreen):
            self.screen.draw()

    def on_engine_moved(self) -> None:
        if not self.screen_stack:
            return  # it is closing
        self.session.bridge.pace_s = self._pace()
        self._call_attention()
        self.redraw()

    def _remember(self) -> None:
        """Write down what is to outlive this console, beside everything else."""
        text = self._memory.changed(self.session) if self._memory else ""
        if self._memory and text:
            write = partial(anyio.to_thread.run_sync, self._memory.write, text)
            wanted: WorkType[None] = write
            self.run_worker(wanted, group="memory", exclusive=True)

    def on_unmount(self) -> None:
        text = self._memory.changed(self.session) if self._memory else ""
        if self._memory and text:
            self._memory.write(text)
        self._tell_terminal(PUT_TITLE_BACK)

    def _call_attention(self) -> None:
        """Ring once for what has come up since the last look, wherever the user looks now."""
        view, before = self.session.view, self._needs
        self._needs = needs_of(view)
        said = "" if before is None else sentence_of_new(before, self._needs)
        if said and self._notifies:
            self.bell()
            self._tell_terminal(notification(said, is_in_tmux="TMUX" in os.environ))
        if before is not None and self.session.can_animate:
            self._light_up(self._needs - before)
        title = title_of_view(view)
        if title != self._title:
            self._title = title
            self._tell_terminal(set_title(title))

    def _light_up(self, new: Needs) -> None:
        """The cards of those that begin to need a human stand on another ground, for a moment."""
        if not new:
            return
        self.session.risen |= new

        def settle() -> None:
            self.session.risen -= new
            self.redraw()

        self.set_timer(_RISEN_S, settle)

    def _tell_terminal(self, sequence: str) -> None:
        """Send a sequence of ours; nothing foreign in it is uncleaned."""
        if self._notifies and self._driver:
            self._driver.write(sequence)

    def on_log_grew(self, grew: LogGrew) -> None:
        if self.screen_stack and isinstance(self.screen, TakesLog):
            self.screen.take_log(grew)

    def _pace(self) -> float:
        """Seconds between two frames: few over a slow line, more where somebody reads along."""
        if self.is_remote:
            return _REMOTE_S
        return _LIVELY_S if isinstance(self.screen, TakesLog) else _CALM_S


@runtime_checkable
class TakesLog(Protocol):
    """A screen that shows a log."""

    def take_log(self, grew: LogGrew) -> None:
        """More lines of a log, perhaps of one that is not shown any more."""


def config_home() -> Path:
    """The user's folder with `keys.toml` and `themes/`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "plait"


def _is_still() -> bool:
    return os.environ.get("TEXTUAL_ANIMATIONS", "").casefold() == "none"
