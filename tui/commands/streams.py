"""The standard streams as they really are: closed, full, cut off by a reader, or without Unicode.

A closed descriptor is opened on nothing before anything else could take its number. A character
that a stream cannot write becomes the sign that plait uses for it in ASCII, never a traceback.
"""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import contextmanager
from io import TextIOWrapper

TYPE_CHECKING = False  # `typing` costs as much as all that this module does
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

_IN_ASCII = "plait.ascii"


@contextmanager
def usable_streams() -> Iterator[None]:
    """Make the standard streams usable, and write the last of them out at the end.

    Raises:
        OSError: What was said could not be written. A reader who has left is no error.
    """
    _open_closed()
    codecs.register_error(_IN_ASCII, _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_IN_ASCII)
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            leave_unread()
        except OSError:
            leave_unread()
            raise


def leave_unread() -> None:
    """Send the rest of stdout nowhere: nobody reads it, or nothing holds it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def put(text: str) -> None:
    """Write data, on stdout."""
    sys.stdout.write(text)


def say(text: str) -> None:
    """Talk, on stderr; where its terminal has been closed nobody hears it."""
    try:
        sys.stderr.write(text)
    except OSError:  # what is said from here on, and what is left in the buffer, goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def is_colored() -> bool:
    """Return True if stdout is a terminal whose user wants colors."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def is_unicode(stream: TextIO | None = None) -> bool:
    """Say whether a stream, stdout where none is named, takes every character."""
    encoding = (stream or sys.stdout).encoding or "ascii"
    return codecs.lookup(encoding).name.startswith("utf")


def is_terminal(stream: TextIO | None = None) -> bool:
    """Say whether a stream is a terminal that can do more than write line after line."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def _open_closed() -> None:
    """Open every closed standard descriptor: the next file that is opened would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - it lives as long as the program


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream has no bytes for by plait's own signs for terminals without Unicode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from tui.kit.ascii import ascii_text  # noqa: PLC0415  most terminals never need it

    return ascii_text(error.object[error.start : error.end]), error.end
