"""The same rows with ASCII alone, for terminals and fonts that have nothing else."""

from collections.abc import Mapping

from tui.ink import Role, Row, Span, width_of

_OLD = ("linux", "vt1", "vt2", "vt3", "vt4", "vt5", "ansi", "pcansi", "cons25", "dumb")
"""Terminals whose fonts lack most of our signs: the text console of Linux, and hardware."""
_COERCED = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
"""Python itself sets one of these as LC_CTYPE where the locale is C (PEP 538)."""

_SIGNS = "●○◦·«◆▼≠□↻✓≡✗∅■»≈≤‖▲┃┇┊►▌…▄╭╮╰╯│─━┏┓┗┛├└┤┬┴┼▁▂▃▅▆▇█┄▏▕▀↑↓←→“”"
_LETTERS = '*o,.<@v![^+=x0]>~%P^]:.>>>#++++|-=####|`|+++_.-+*##-||#^v<>""'
_MORE = "\u271a\u203a\u2571\u2212\u2013\u2014\u2018\u2019\u2265"
_TABLE = str.maketrans(_SIGNS + _MORE, _LETTERS + "+>/---''>")


def has_only_ascii(environ: Mapping[str, str]) -> bool:
    """Say if a terminal shows ASCII alone, by its name and by the locale.

    Nobody meant anything by a locale that is not set, as in most containers: Unicode is drawn.
    """
    if wish := environ.get("PLAIT_ASCII"):
        return wish != "0"
    ctype = environ.get("LC_CTYPE", "")
    lang = environ.get("LANG", "")
    said = environ.get("LC_ALL") or ((lang or ctype) if ctype in _COERCED else (ctype or lang))
    is_unicode = not said or "utf8" in said.casefold().replace("-", "")
    return not is_unicode or environ.get("TERM", "").removeprefix("screen.").startswith(_OLD)


def ascii_text(text: str) -> str:
    """The text with every sign of ours in ASCII, and `?` for what else there is; width kept."""
    if text.isascii():
        return text
    text = text.replace("…/", "*/").replace("… stalled", "z stalled").translate(_TABLE)
    if text.isascii():
        return text
    return "".join(char if char.isascii() else "?" * width_of(char) for char in text)


def ascii_row(row: Row) -> Row:
    """A row in ASCII."""
    return tuple(Span(ascii_text(_upright(span)), span.ink) for span in row)


def _upright(span: Span) -> str:
    """A focused frame's upright is not the wall of a limit, though both are drawn alike."""
    return span.text.replace("┃", "#") if span.ink.role is Role.FOCUS else span.text
