"""The terminal driver: Textual's own, made to outlive bytes that are no text, and its terminal.

One byte of another encoding, or a mouse report of the old kind, would end the console with a
traceback. Such bytes become a replacement character, which no key is bound to. What is written to a
terminal that was closed is taken and thrown away, so that the console can still end.
"""

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable

from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver


def _lenient(encoding: str) -> Callable[[], IncrementalDecoder]:
    """A decoder that replaces what it cannot read, in place of one that raises."""
    return lambda: getincrementaldecoder(encoding)(errors="replace")


class EnduringWriter(WriterThread):
    """The thread that writes; where Textual's would die, and fill its queue for ever, it drains."""

    def run(self) -> None:
        """Write until told to stop, or until the terminal is gone; then only take."""
        try:
            super().run()
        except OSError:
            while self._queue.get() is not None:
                pass


class SturdyDriver(LinuxDriver):
    """A driver that reads any bytes, and ends without its terminal."""

    def start_application_mode(self) -> None:
        """Begin with a writer that outlives the terminal; Textual takes it from its own module."""
        vars(linux_driver)["WriterThread"] = EnduringWriter
        begin: Callable[[], None] = super().start_application_mode
        begin()

    def run_input_thread(self) -> None:
        """Read keys with a lenient decoder; Textual takes its decoder from its own module."""
        vars(linux_driver)["getincrementaldecoder"] = _lenient
        super().run_input_thread()
