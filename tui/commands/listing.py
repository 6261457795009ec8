"""Lay out what commands say in 80 columns: wrapped at words, never inside a name or a command."""

import re
import textwrap
from collections.abc import Iterator

WIDTH = 80
LEAD = 14
_CODE = re.compile(r"`[^`]*`")
_KEPT = "\N{NO-BREAK SPACE}"


def listed(name: str, said: str, *, indent: int = 2) -> Iterator[str]:
    """Yield a name and what is said of it, beside each other."""
    first = f"{' ' * indent}{name:<{LEAD - 1}} "
    yield from wrapped(said, first, " " * (indent + LEAD))


def wrapped(text: str, first: str = "", later: str = "") -> Iterator[str]:
    """Yield the lines of a text; what stands between backticks stays on one of them."""
    kept = _CODE.sub(lambda found: found[0].replace(" ", _KEPT), text)
    lines = textwrap.wrap(
        kept,
        WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (line.replace(_KEPT, " ").rstrip() for line in lines or [first])
