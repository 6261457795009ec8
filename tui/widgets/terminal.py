"""The terminal driver: Textual's own, made to outlive bytes that are no text.

One byte of another encoding, or a mouse report of the old kind, would end the console with a
traceback. Such bytes become a replacement character, which no key is bound to.
"""

from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver


def _lenient(encoding: str) -> Callable[[], IncrementalDecoder]:
    """A decoder that replaces what it cannot read, in place of one that raises."""
    return lambda: getincrementaldecoder(encoding)(errors="replace")


class SturdyDriver(LinuxDriver):
    """A driver that reads any bytes."""

    def run_input_thread(self) -> None:
        """Read keys with a lenient decoder; Textual takes its decoder from its own module."""
        vars(linux_driver)["getincrementaldecoder"] = _lenient
        super().run_input_thread()
