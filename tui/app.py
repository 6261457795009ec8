"""Run the console as an application: screens, colors, clocks; leave the terminal as it was."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeGuard, runtime_checkable

import anyio
import anyio.to_thread
from textual import events
from textual.filter import LineFilter, NoColor

from tui.ink import Ink, Role, Span
from tui.keys import read_key_file
from tui.kit.ascii import has_only_ascii
from tui.kit.bindings import as_keymap
from tui.kit.inked import AsciiOnly, Inked
from tui.kit.opening import OpeningScreen
from tui.kit.palette import Palette
from tui.kit.private import SturdyDriver, has_hung_up, send_to_terminal, take_for_styled
from tui.kit.sequences import Sequences
from tui.kit.styling import checked, stamp
from tui.kit.working import Failures, begin_work
from tui.theming import DEFAULT, Theme, load_all

if TYPE_CHECKING:  # the first frame needs none of it
    from textual.binding import ActiveBinding

    from engine.api import EnginePort
    from tui.bridge import LogGrew
    from tui.kit.ahead import TypeAhead
    from tui.kit.living import Living
    from tui.kit.screen import Board
    from tui.kit.session import Player, Session
    from tui.words.attention import Needs

_CALM_S, _LIVELY_S, _REMOTE_S = 0.25, 1 / 15, 0.5
_TICK_S = 1.0
_RISEN_S = 0.6
_LONGEST_END_S = 1.0
_REMEMBER_S = 5.0
_LISTENS_AGAIN_S = 5.0
_LONGEST_FAILURE = 200
_USERS = 1
"""The rank of the user's sheets: they win over ours where both say something of one thing."""
_SCREENS = {
    "fleet": ("fleet.screen", "FleetScreen"),
    "worker": ("worker.screen", "WorkerScreen"),
    "diff": ("diff.screen", "DiffScreen"),
    "compare": ("compare.screen", "CompareScreen"),
    "review": ("review.screen", "ReviewScreen"),
    "inbox": ("inbox.screen", "InboxScreen"),
    "plan": ("plan.screen", "PlanScreen"),
    "runs": ("runs.screen", "RunsScreen"),
    "stats": ("stats.screen", "StatsScreen"),
}
"""The module of each screen; loaded when it is first gone to, and not before the first paint."""


_OPENING = "opening"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Hold how a console is opened.

    Attributes:
        is_plain: Without any color; None asks `NO_COLOR`.
        is_ascii: With no sign but ASCII; None asks the locale and the terminal's name.
        has_truecolor: Whether the terminal shows all colors; None asks the terminal.
        config: The user's folder with `keys.toml` and `themes/`; None for none. Without any
            options it is `$XDG_CONFIG_HOME/plait`.
        shell: The command that opens a shell inside a worker's sandbox, from run and worker.
        program: The command that runs a sub-command of plait on this repository, from its words.
        folder: Where runs are started, manifests lie and results are tried; None where the console
            was opened for none of it.
        can_stay_alive: Whether agents go on when this console is left.
        is_alone: Whether it was opened for the screen it begins on: there is no other, and leaving
            that leaves the console.
        notifies: Whether the terminal hears when a human is needed: its bell, its title, a
            notification.
        is_quiet: Whether nobody is to be called now.
        begins_on: The screen that is seen first.
        memory: The file in which seen hunks and comments outlive the console.
        clock: Wall-clock seconds.
        player: What plays the run, where it is a replay.
    """

    is_plain: bool | None = None
    is_ascii: bool | None = None
    has_truecolor: bool | None = None
    config: Path | None = None
    shell: Callable[[str, str], Sequence[str]] | None = None
    program: Callable[..., Sequence[str]] | None = None
    folder: Path | None = None
    can_stay_alive: bool = True
    is_alone: bool = False
    notifies: bool = False
    is_quiet: Callable[[], bool] = bool
    begins_on: str = "fleet"
    memory: Path | None = None
    clock: Callable[[], float] = time.time
    player: Player | None = None


class PlaitApp(Sequences):
    """The console. It shows what a port tells and asks what the human wants.

    Without a port it opens all the same, and shows where it is until `reach` names one.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = Path(__file__).with_name("plait.tcss")
    DEFAULT_MODE = _OPENING

    def __init__(
        self,
        port: EnginePort | None,
        *,
        read_only: bool = False,
        theme: str | None = None,
        options: Options | None = None,
    ) -> None:
        options = options or Options(config=config_home())
        config = options.config
        self.is_plain = "NO_COLOR" in os.environ if options.is_plain is None else options.is_plain
        self._begins_at = _OPENING if port is None else options.begins_on
        vars(self)["DEFAULT_MODE"] = self._begins_at
        super().__init__(driver_class=SturdyDriver, ansi_color=self.is_plain)
        self._styled = stamp(config)
        """The style as it was before it was read: a change made meanwhile is read again."""
        self._known_themes, theme_problems = load_all(config / "themes" if config else None)
        for known in self._known_themes.values():
            self.register_theme(known.as_textual())
        chosen = theme if theme in self._known_themes else DEFAULT
        self._key_file = config / "keys.toml" if config else None
        text = self._key_file.read_text("utf-8") if _is_there(self._key_file) else ""
        self._known_keys, key_problems = read_key_file(text, str(self._key_file or "keys.toml"))
        self.problems = [str(problem) for problem in (*theme_problems, *key_problems)]
        self.is_remote = "SSH_CONNECTION" in os.environ
        self._port = port
        self._is_read_only = read_only
        self._opened_with = options
        self._sheets: tuple[Path, ...] = ()
        self.has_painted = anyio.Event()
        self.failures = Failures()
        self.theme = chosen
        self.palette = self._palette(self._known_themes[chosen])
        self.is_ascii = has_only_ascii(os.environ) if options.is_ascii is None else options.is_ascii
        self._own_filters = [NoColor()] * self.is_plain + [AsciiOnly()] * self.is_ascii
        self.set_keymap(as_keymap(self._known_keys))
        self.add_mode(_OPENING, self.opening)
        for kind in _SCREENS:
            self.add_mode(kind, partial(self._made, kind))

    def opening(self) -> OpeningScreen:
        return OpeningScreen(self._opened_with.begins_on, self._known_keys.shown_by_idea)

    def _made(self, kind: str) -> Board:
        module, name = _SCREENS[kind]
        screen: Board = getattr(import_module(f"tui.screens.{module}"), name)(self.session)
        take_for_styled(screen, self)
        return screen

    @cached_property
    def living(self) -> Living:
        """Return what knows of runs and workers; load it when it is first asked for."""
        from tui.bridge import Bridge  # noqa: PLC0415  the first frame is painted before
        from tui.kit.living import Living  # noqa: PLC0415  likewise
        from tui.kit.session import Session  # noqa: PLC0415  likewise
        from tui.kit.starting import Starter  # noqa: PLC0415  likewise
        from tui.kit.trials import Trials  # noqa: PLC0415  likewise

        options = self._opened_with
        session = Session(
            bridge=Bridge(self._port, self.post_message, options.clock),
            clock=options.clock,
            keymap=self._known_keys,
            themes=self._known_themes,
            palette=self.palette,
            is_read_only=self._is_read_only,
            is_ascii=self.is_ascii,
            can_stay_alive=options.can_stay_alive,
            is_alone=options.is_alone,
            can_animate=not (self.is_remote or self.is_plain or _is_still()),
            key_file=str(self._key_file or ""),
            shell=options.shell,
            program=options.program,
            player=options.player,
            starter=Starter(options.folder) if options.folder else None,
            trials=Trials(options.folder) if options.folder else None,
        )
        living = Living(
            session,
            is_in_tmux=bool(os.environ.get("TMUX")),
            terminal=os.environ.get("TERM", ""),
            desktop="" if self.is_remote or self.is_headless else _notifier(),
            pane=os.environ.get("TMUX_PANE", ""),
        )
        if options.memory:
            living.recall(options.memory)
        return living

    @property
    def session(self) -> Session:
        """The memory of this console."""
        return self.living.session

    def reach(self, port: EnginePort, memory: Path) -> None:
        """The engine is there, and the file that an earlier console left beside it."""
        self.living.recall(memory)
        self.session.bridge.reach(port)

    # Colors.

    def _palette(self, theme: Theme) -> Palette:
        has_truecolor = self._opened_with.has_truecolor
        if has_truecolor is None:
            has_truecolor = self.console.color_system in {"truecolor", None}
        return Palette(theme, is_plain=self.is_plain, has_truecolor=has_truecolor)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Without colors nothing is sent in a color, not even in gray; likewise with signs."""
        theirs = () if self.is_plain else super().get_line_filters()
        return (*theirs, *self._own_filters)

    def clear_selection(self) -> None:
        """Clear the selected text of the screen that is seen, once there is one.

        From Python 3.12 on Textual's tasks begin at once: the inputs of the first screen are
        mounted, and clear the selection, before that screen is on the stack.
        """
        if self.screen_stack:
            super().clear_selection()

    def _wear(self, _: object) -> None:
        """The theme was changed: every board that is mounted takes the new colors."""
        self.palette = self._palette(self.session.themes.get(self.theme) or self.palette.theme)
        self.session.palette = self.palette
        for inked in self.screen.query(Inked):
            inked.notify_style_update()
        self.redraw()

    def _repaint(self, _: object) -> None:
        """Back from the user's shell: the terminal has forgotten every cell."""
        self.refresh(layout=True)

    # Living.

    def on_mount(self) -> None:
        if threading.current_thread() is threading.main_thread():
            begin_work(self, self._heed_signals, group="signals", again_after_s=_TICK_S)
        if self._begins_at == _OPENING:
            self.call_after_refresh(self.call_next, self._go_on)
        else:
            self._live()

    async def _go_on(self) -> None:
        """The first frame is on the terminal: load what knows runs and workers."""
        self._live()
        await self.switch_mode(self._opened_with.begins_on)
        await self.remove_mode(_OPENING)

    def _live(self) -> None:
        """Begin to listen to the engine, and to show what it tells."""
        if not self.is_headless:
            gc.freeze()  # loaded code stays: collections, which hold keys up, need not visit it
        self.theme_changed_signal.subscribe(self, self._wear)
        self.app_resume_signal.subscribe(self, self._repaint)
        self.set_interval(_TICK_S, self._tick)
        self.set_interval(_REMEMBER_S, self._remember)
        self._tell_terminal(self.living.begins)
        begin_work(self, self.session.bridge.run, group="bridge", again_after_s=_LISTENS_AGAIN_S)
        self._restyle()
        if self.problems:
            self.call_after_refresh(self._tell_problems)
        self.call_after_refresh(self.has_painted.set)

    async def _heed_signals(self) -> None:
        """End well when asked to: the terminal is restored, the agents go on."""
        wanted = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        with anyio.open_signal_receiver(*wanted) as received:
            async for number in received:
                self.exit(return_code=128 + number)

    def _tick(self) -> None:
        """Draw what the clock moves, and take over what the user has changed of the style."""
        if not self.is_headless and has_hung_up():
            self.exit(return_code=128 + signal.SIGHUP)
            return
        if (now := stamp(self._opened_with.config)) != self._styled:
            self._styled = now
            self._read_themes()
            self._restyle()
            self._wear(None)
            if self.problems:
                self._tell_problems()
        if self.session.view.trying:  # any shell may take it back, which no engine tells
            self.session.bridge.nudge()
        if self.board:
            self.session.rest(self.board.fingered_at)
        self.redraw()

    def _read_themes(self) -> None:
        """Read the themes anew; one that is wrong leaves the one that is worn as it was."""
        config = self._opened_with.config
        found, problems = load_all(config / "themes" if config else None)
        self._known_themes.update(found)
        for known in found.values():
            self.register_theme(known.as_textual())
        self.problems = [str(problem) for problem in problems]

    def _restyle(self) -> None:
        """Lay the user's sheets over ours; a sheet with a mistake is left out and named."""
        found = checked(self._opened_with.config, self.get_css_variables())
        self.problems += [str(problem) for problem in found.problems]
        if found.sheets or self._sheets:
            for gone in self._sheets:
                self.stylesheet.source.pop((str(gone), ""), None)
            for sheet in found.sheets:
                css = sheet.read_text("utf-8")
                self.stylesheet.add_source(css, (str(sheet), ""), tie_breaker=_USERS)
            self._sheets = found.sheets
            self.refresh_css(animate=False)

    def _tell_problems(self) -> None:
        more = f" and {len(self.problems) - 1} more" if len(self.problems) > 1 else ""
        if self.board:
            self.board.say_refused("your settings", self.problems[0] + more, "the defaults stay")

    def work_failed(self, error: Exception) -> None:
        """Say that something of the console has failed, and keep where; everything else goes on."""
        from tui.words.clean import clean  # noqa: PLC0415  few consoles need it

        while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        log = self.failures.keep(error, self.living.keep_trace)
        if self.board:
            what = clean(f"{type(error).__name__}: {error}".partition("\n")[0])[:_LONGEST_FAILURE]
            mark = Span("✗ ", Ink(Role.FAILED, bold=True))
            self.board.say_alone(
                f"internal error in plait: {what}", log and f"the traceback is in {log}", mark
            )

    def endures(self, error: Exception) -> bool:
        """Go on after an error in a handler, a timer or a drawing, once it can be said."""
        if not self.has_painted.is_set() or self.board is None:
            return False
        self.work_failed(error)
        return True

    @property
    def board(self) -> Board | None:
        """The screen that is seen; a dialog may lie over it."""
        return next((s for s in reversed(self.screen_stack) if is_board(s)), None)

    def redraw(self) -> None:
        """Draw the screen that is seen; the others cost nothing, and a closing console has none."""
        if self.screen_stack and self.board:
            self.board.draw()

    @property
    def ahead(self) -> TypeAhead | None:
        """The keys typed ahead; none are heard before the first frame."""
        return self.session.ahead if "living" in vars(self) else None

    def sequence_began(self, begun: str, follow: Sequence[ActiveBinding]) -> None:
        """Show what can follow, to those who wait."""
        if is_board(self.screen):
            self.screen.chord_began(begun, follow)

    def key_came(self, key: events.Key, found: ActiveBinding | None) -> None:
        """Clear what was said before."""
        if is_board(self.screen):
            self.screen.key_came(key, found)

    def take_digit(self, sign: str) -> bool:
        """Answer what is asked by a digit, where the screen shows one for it."""
        answer = self.screen.digits.get(sign) if is_board(self.screen) else None
        if answer:
            answer()
        return bool(answer)

    def say_why_not(self, found: ActiveBinding) -> None:
        """Tell why a bound key does nothing now."""
        if is_board(self.screen):
            self.screen.say_why_not(found.binding)

    def key_done(self) -> None:
        """Show at once what a key did."""
        if is_board(self.screen):
            self.screen.key_done()

    def on_engine_moved(self) -> None:
        if not self.screen_stack:
            return  # it is closing
        self.session.look()
        self.session.bridge.pace_s = self.pace()
        self._call_attention()
        if self.board and (said := self.living.absence()):
            key = self.board.key_of("since_left")
            self.board.say_both(said, f"{key} lists them" if key else "")
        self.redraw()

    def _remember(self) -> None:
        """Write down what is to outlive this console, beside everything else."""
        if text := self.living.unwritten():
            write = partial(anyio.to_thread.run_sync, self.living.write, text)
            begin_work(self, write, group="memory", exclusive=True)

    async def on_unmount(self) -> None:
        if "living" in vars(self):
            self.living.leave()
            self._tell_terminal(self.living.ends)
            with anyio.move_on_after(_LONGEST_END_S):
                await self._tell_program(self.living.leave_window())

    async def _tell_program(self, words: Sequence[str]) -> bool:
        """Run a program that reads how things stand; return whether it took that."""
        if not words or not self._opened_with.notifies or self.is_headless:
            return True
        with suppress(OSError):
            return not (await anyio.run_process(words, check=False)).returncode
        return False

    async def _notify(self, words: Sequence[str], instead: str) -> None:
        """Notify over D-Bus; where nobody takes that, by the terminal from now on."""
        if not await self._tell_program(words):
            self.living.desktop = ""
            self._tell_terminal(instead)

    def _call_attention(self) -> None:
        """Ring once for what has come up since the last look, wherever the user looks now."""
        call = self.living.call(is_quiet=self._opened_with.is_quiet())
        if call.rings and self._opened_with.notifies:
            self.bell()
        for sequence in call.sequences:
            self._tell_terminal(sequence)
        if call.desktop:
            begin_work(self, partial(self._notify, *call.desktop), group="notify")
        if call.tmux:
            begin_work(self, partial(self._tell_program, call.tmux), group="tmux", exclusive=True)
        if call.new and self.session.can_animate:
            self._light_up(call.new)

    def _light_up(self, new: Needs) -> None:
        """The cards of those that begin to need a human stand on another ground, for a moment."""
        self.session.risen |= new

        def settle() -> None:
            self.session.risen -= new
            self.redraw()

        self.set_timer(_RISEN_S, settle)

    def _tell_terminal(self, sequence: str) -> None:
        """Send a sequence of ours; nothing foreign in it is uncleaned."""
        if self._opened_with.notifies:
            send_to_terminal(self, sequence)

    def on_log_grew(self, grew: LogGrew) -> None:
        seen: object = self.board if self.screen_stack else None
        if isinstance(seen, TakesLog):
            seen.take_log(grew)

    def pace(self) -> float:
        """Seconds between two frames: few over a slow line, more where somebody reads along."""
        if self.is_remote:
            return _REMOTE_S
        seen: object = self.board
        return _LIVELY_S if isinstance(seen, TakesLog) else _CALM_S


@runtime_checkable
class TakesLog(Protocol):
    """A screen that shows a log."""

    def take_log(self, grew: LogGrew) -> None:
        """More lines of a log, perhaps of one that is not shown any more."""


def is_board(screen: object) -> TypeGuard[Board]:
    """Say whether a screen is one of ours; what boards need is loaded with the first of them."""
    return hasattr(screen, "chord_began")


def config_home() -> Path:
    """The user's folder with `keys.toml` and `themes/`."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "plait"


def _is_there(path: Path | None) -> TypeGuard[Path]:
    return path is not None and path.exists()


def _notifier() -> str:
    """Return the program that notifies over D-Bus, where there is one and a session to tell."""
    has_session = bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS"))
    found = (name for name in ("notify-send", "gdbus") if has_session and shutil.which(name))
    return next(found, "")


def _is_still() -> bool:
    return os.environ.get("TEXTUAL_ANIMATIONS", "").casefold() == "none"
