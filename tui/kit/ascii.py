"""The same rows with ASCII alone, for terminals and fonts that have nothing else."""

from tui.ink import Role, Row, Span, width_of

_SIGNS = "●○◦·«◆▼≠□↻✓≡✗∅■»≈≤‖▲┃┇┊►▌…▄╭╮╰╯│─━┏┓┗┛├└┤┬┴┼▁▂▃▅▆▇█┄▏▕▀↑↓←→“”"
_LETTERS = '*o,.<@v![^+=x0]>~%P^]:.>>>#++++|-=####|`|+++_.-+*##-||#^v<>""'
_MORE = "\u271a\u203a\u2571\u2212\u2013\u2014\u2018\u2019\u2265"
_TABLE = str.maketrans(_SIGNS + _MORE, _LETTERS + "+>/---''>")


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
