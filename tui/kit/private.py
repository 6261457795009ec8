"""Hold every use of a private part of Textual, each with its reason.

`tests/unit/tui/test_private.py` says of each when it may go.
"""

import atexit
import os
import select
import sys
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Iterable
from typing import Any

from rich.segment import Segment
from textual.app import App
from textual.cache import FIFOCache, LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Event
from textual.keys import _character_to_key
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget


def name_of_sign(sign: str) -> str:
    """Return Textual's name of a key; it names single signs itself, but not those of a chord."""
    return _character_to_key(sign) if len(sign) == 1 else sign


def hand_to(widget: Widget, event: Event) -> None:
    """Hand a key or a paste to a widget; Textual itself forwards before the last one is done."""
    widget._forward_event(event)  # noqa: SLF001


def paint_now(screen: Screen[Any]) -> None:
    """Put on the terminal now what was drawn: a key is not to wait for the next frame.

    A widget tells its screen that it is to be painted with a message, which comes later. So they
    are gathered here. One without a size still waits for its place, and would miss its paint.
    """
    for widget in screen.walk_children(Widget):
        if widget._repaint_required and widget.display and widget.size:  # noqa: SLF001
            widget._repaint_required = False  # noqa: SLF001
            screen._dirty_widgets.add(widget)  # noqa: SLF001
    screen._on_timer_update()  # noqa: SLF001


def is_leaving(app: App[None]) -> bool:
    """Say whether an application was asked to end: keys that come now are for nothing."""
    return app._exit  # noqa: SLF001


def take_for_styled(screen: Screen[Any], app: App[None]) -> None:
    """Take a screen that is made now for one that wears the newest styles, as it will.

    Textual restyles twice all that is seen, since a theme was set before this screen was made.
    """
    screen._css_update_count = app._css_update_count  # noqa: SLF001


_DISPATCH = MessagePump._dispatch_message  # noqa: SLF001


async def _dispatch(pump: MessagePump, message: Message) -> None:
    """Dispatch a message; what it raises does not end the loop that takes the next one."""
    try:
        await _DISPATCH(pump, message)
    except Exception as error:  # whatever a handler raises, its widget takes the next message
        if not isinstance(pump.app, Enduring):
            raise
        pump.app._handle_exception(error)  # noqa: SLF001


_PARSE = Stylesheet._parse_rules  # noqa: SLF001
_RULES: LRUCache[frozenset[tuple[str, str]], dict[tuple[object, ...], list[RuleSet]]] = LRUCache(8)
"""The rules of every sheet, for each of the newest sets of colors."""


def _parse_rules(sheet: Stylesheet, *text: Any, **more: Any) -> list[RuleSet]:
    """Parse a sheet once for each set of colors; rules are only read.

    Textual forgets all rules when a theme is set, when a screen brings a sheet, and again when it
    meets the next new kind of widget: a console parsed every sheet five times as it began.
    """
    colors = frozenset(sheet._variables.items())  # noqa: SLF001
    known = _RULES.get(colors)
    if known is None:
        known = _RULES[colors] = {}
    key = (*text, *more.items())
    if key not in known:
        known[key] = _PARSE(sheet, *text, **more)
    return known[key]


_CACHES = {
    "_divide_cache": 4,
    "_crop_cache": 16,
    "_style_cache": 16,
    "_filter_cache": 4,
    "_line_length_cache": 4,
    "_crop_extend_cache": 4,
    "_offsets_cache": 4,
}
"""The caches of a strip, and how much each holds."""
_STRIP = {"_segments", "_cell_length", "_render_cache", "_link_ids", "_cell_count", *_CACHES}


def _begin_strip(strip: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    """Begin a strip without its caches: they cost ten times the strip, and few are ever asked."""
    strip._segments = list(segments)  # noqa: SLF001
    strip._cell_length = cell_length  # noqa: SLF001
    strip._render_cache = strip._link_ids = strip._cell_count = None  # noqa: SLF001


def _begin_cache(strip: Strip, name: str) -> FIFOCache[Any, Any]:
    """Make a cache of a strip when it is first asked."""
    if name not in _CACHES:
        raise AttributeError(name)
    cache: FIFOCache[Any, Any] = FIFOCache(_CACHES[name])
    setattr(strip, name, cache)
    return cache


class Enduring(App[None]):
    """An application that says an error in a handler, a timer or a drawing, and goes on.

    Textual hands each of them to one method, which ends the application. After an error in a
    handler it also takes no more messages for that widget, screen or application.
    """

    _is_enduring = False

    def __init__(self, *args: Any, **more: Any) -> None:
        MessagePump._dispatch_message = _dispatch  # type: ignore[assignment, method-assign]  # noqa: SLF001
        Stylesheet._parse_rules = _parse_rules  # type: ignore[assignment, method-assign]  # noqa: SLF001
        if set(Strip.__slots__) == _STRIP:
            Strip.__init__ = _begin_strip  # type: ignore[assignment, method-assign]
            Strip.__getattr__ = _begin_cache  # type: ignore[attr-defined]
        super().__init__(*args, **more)

    def endures(self, error: Exception) -> bool:
        """Say and keep an error; return whether the application can go on."""
        del error
        return False

    def _handle_exception(self, error: Exception) -> None:
        """Go on where the error could be said; an error in saying it ends the application."""
        if self._is_enduring or self._exit or not self._running:
            super()._handle_exception(error)
            return
        self._is_enduring = True
        try:
            goes_on = self.endures(error)
        except Exception as another:  # noqa: BLE001  it came while the first one was said
            goes_on, error = False, another
        finally:
            self._is_enduring = False
        if not goes_on:
            super()._handle_exception(error)


def send_to_terminal(app: App[None], sequence: str) -> None:
    """Write a sequence that Textual has no call for: titles, notifications."""
    if driver := app._driver:  # noqa: SLF001
        driver.write(sequence)


def _lenient(encoding: str) -> Callable[[], IncrementalDecoder]:
    """Return a decoder that replaces what it cannot read, in place of one that raises."""
    return lambda: getincrementaldecoder(encoding)(errors="replace")


def has_hung_up() -> bool:
    """Tell if the terminal that keys come from is gone.

    A signal says so to the leader of a session that owns its terminal, and to nobody else. Textual
    reads an empty key from such a terminal, at once and forever.
    """
    if sys.__stdin__ is None:
        return True
    asked = select.poll()
    asked.register(sys.__stdin__.fileno(), 0)
    return any(found & select.POLLHUP for _, found in asked.poll(0))


def drop_unwritten() -> None:
    """Throw away what a terminal that is gone did not take.

    Else Python tries it once more as it ends, and ends with 120 in place of our own code.
    """
    for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


class EnduringWriter(WriterThread):
    """The thread that writes; where Textual's would die, and fill its queue forever, it drains."""

    def run(self) -> None:
        """Write until it must stop, or until the terminal is gone; then only take."""
        try:
            super().run()
        except OSError:
            while self._queue.get() is not None:
                pass


class SturdyDriver(LinuxDriver):
    """A driver that outlives bytes that are no text, and its terminal.

    One byte of another encoding, or a mouse report of the old kind, would end the console with a
    traceback. Such bytes become a replacement character, which no key is bound to.
    """

    def start_application_mode(self) -> None:
        """Begin with a writer that outlives the terminal; Textual takes it from its own module."""
        vars(linux_driver)["WriterThread"] = EnduringWriter
        atexit.register(drop_unwritten)
        begin: Callable[[], None] = super().start_application_mode
        begin()

    def _sigcont_application(self, *_: object) -> None:
        """Go on after a stop; where nobody asked us first, the terminal is taken anew.

        A shell that stopped us from outside has set the terminal to its own ways. Textual would
        read keys with a second thread then, and would leave the terminal raw at the end.
        """
        if self._auto_restart and not self._must_signal_resume:
            self._must_signal_resume = True  # the application paints again
            self.suspend_application_mode()
        super()._sigcont_application()

    def run_input_thread(self) -> None:
        """Read keys with a lenient decoder; Textual takes its decoder from its own module."""
        vars(linux_driver)["getincrementaldecoder"] = _lenient
        super().run_input_thread()
