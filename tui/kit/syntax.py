"""Syntax colors as roles, lexed in stretches and only for what is seen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from pygments import lex  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from tui.ink import TEXT, Ink, Role, Row, Span, fit
from tui.kit.grammars import colored
from tui.words.figures import MINUS
from tui.words.wording import Marks

Piece = tuple[str, Role]
_ROLES: tuple[tuple[object, Role], ...] = (
    (Token.Keyword.Type, Role.TYPE),
    (Token.Keyword, Role.KEYWORD),
    (Token.Operator.Word, Role.KEYWORD),
    (Token.Literal.String.Doc, Role.COMMENT),
    (Token.Literal.String, Role.STRING),
    (Token.Comment, Role.COMMENT),
    (Token.Literal.Number, Role.NUMBER),
    (Token.Name.Function, Role.DEFINITION),
    (Token.Name.Class, Role.DEFINITION),
    (Token.Name.Builtin, Role.TYPE),
    (Token.Name.Tag, Role.KEYWORD),
    (Token.Name.Attribute, Role.TYPE),
)
_GROUNDS = {"+": Role.ADDED_GROUND, "-": Role.REMOVED_GROUND}
_WORDS = {"+": Role.ADDED_WORD, "-": Role.REMOVED_WORD}
_SIGNS = {
    "+": (" + ", Ink(Role.ADDED, Role.ADDED_GROUND, bold=True)),
    "-": (f" {MINUS} ", Ink(Role.REMOVED, Role.REMOVED_GROUND, bold=True)),
    " ": ("   ", TEXT),
}
_LONGEST_LINE = 400


@lru_cache(maxsize=64)
def _lexer(path: str) -> object | None:
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)  # type: ignore[no-any-return]
    except ClassNotFound:
        return None


@lru_cache(maxsize=2048)
def _role(kind: object) -> Role:
    return next((role for known, role in _ROLES if kind in known), Role.TEXT)  # type: ignore[operator]


Pieces = tuple[tuple[Piece, ...], ...]


@lru_cache(maxsize=64)
def inked_lines(path: str, lines: tuple[str, ...]) -> Pieces:
    """Each line as pieces of text with their roles; plain where the language is not known."""
    if any(len(line) > _LONGEST_LINE for line in lines):
        return tuple(((line, Role.TEXT),) for line in lines)
    text = "\n".join(lines)
    parts = colored(path, text) or _lexed(path, text)
    if parts is None:
        return tuple(((line, Role.TEXT),) for line in lines)
    rows: list[list[Piece]] = [[] for _ in lines]
    for row, pieces in zip(rows, parts, strict=False):
        for piece in pieces:
            _add(row, *piece)
    return tuple(map(tuple, rows))


@lru_cache(maxsize=64)
def inked_change(path: str, signs: tuple[str, ...], lines: tuple[str, ...]) -> Pieces:
    """Each line of a change as pieces: those taken away among the old text, others in the new."""
    told = list(zip(signs, lines, strict=True))
    new = iter(inked_lines(path, tuple(line for sign, line in told if sign != "-")))
    if "-" not in signs:
        return tuple(new)
    older = [(sign, line) for sign, line in told if sign != "+"]
    old = inked_lines(path, tuple(line for _, line in older))
    gone = (pieces for pieces, (sign, _) in zip(old, older, strict=True) if sign == "-")
    return tuple(next(gone) if sign == "-" else next(new) for sign in signs)


def _lexed(path: str, text: str) -> list[list[Piece]] | None:
    """The same by a lexer; None where there is none."""
    lexer = _lexer(path)
    if lexer is None:
        return None
    rows: list[list[Piece]] = [[]]
    for kind, token in lex(text, lexer):
        first, *more = token.split("\n")
        role = _role(kind)
        rows[-1].append((first, role))
        rows += [[(part, role)] for part in more]
    return rows


def _add(row: list[Piece], text: str, role: Role) -> None:
    """One more piece, if it is any; blanks go along with what is beside them."""
    if not text:
        return
    if row and (row[-1][1] is role or text.isspace()):
        row[-1] = (row[-1][0] + text, row[-1][1])
    elif row and row[-1][0].isspace():
        row[-1] = (row[-1][0] + text, role)
    else:
        row.append((text, role))


def code(pieces: Sequence[Piece], marks: Marks, ground: Role | None, word: Role) -> Row:
    """A line of code with its syntax; its changed words in plain text on their own ground."""
    if not marks:
        return tuple(_spans(pieces, ground))
    row: list[Span] = []
    between = _cutter(pieces)
    at = 0
    for start, end in marks:
        row += _spans(between(at, start), ground)
        row.append(Span("".join(text for text, _ in between(start, end)), Ink(Role.TEXT, word)))
        at = end
    whole = sum(len(text) for text, _ in pieces)
    row += _spans(between(at, whole), ground)
    return tuple(row)


def changed_code(pieces: Sequence[Piece], sign: str, marks: Marks) -> Row:
    """The code of a line of a change, on the ground that its sign has."""
    return code(pieces, marks, _GROUNDS.get(sign), _WORDS.get(sign, Role.PANEL))


def signed(
    row: Row, sign: str, cells: int, *, is_more: bool = False, is_moved: bool = False
) -> Row:
    """A line of a change: its sign and its code, their ground to the edge.

    What goes on with the line above has no sign of its own; that of a moved line says so.
    """
    mark, ink = _SIGNS[sign]
    if is_more:
        mark = "   "
    elif is_moved:
        mark = f"{mark[:2]}»"
    return fit((Span(mark, ink), *row), cells, Ink(ground=_GROUNDS.get(sign)))


def _spans(pieces: Iterable[Piece], ground: Role | None) -> Iterator[Span]:
    """Pieces as they are drawn on a ground."""
    for text, role in pieces:
        yield Span(text, _ink(role, ground))


@lru_cache(maxsize=256)
def _ink(role: Role, ground: Role | None) -> Ink:
    return Ink(role, ground, bold=role is Role.DEFINITION, italic=role is Role.COMMENT)


def _cutter(pieces: Sequence[Piece]) -> Callable[[int, int], list[Piece]]:
    """A function that gives the pieces between two places of the line."""

    def between(start: int, end: int) -> list[Piece]:
        found: list[Piece] = []
        at = 0
        for text, role in pieces:
            part = text[max(start - at, 0) : max(end - at, 0)]
            if part:
                found.append((part, role))
            at += len(text)
        return found

    return between
