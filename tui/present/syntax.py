"""Syntax colours as roles, lexed in stretches and only for what is seen."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from pygments import lex  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from tui.present.ink import Role

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


@lru_cache(maxsize=256)
def inked_lines(path: str, lines: tuple[str, ...]) -> tuple[tuple[Piece, ...], ...]:
    """Each line as pieces of text with their roles; plain where the language is not known."""
    lexer = _lexer(path)
    if lexer is None or any(len(line) > _LONGEST_LINE for line in lines):
        return tuple(((line, Role.TEXT),) for line in lines)
    rows: list[list[Piece]] = [[]]
    for kind, text in lex("\n".join(lines), lexer):
        for place, part in enumerate(text.split("\n")):
            if place:
                rows.append([])
            if part:
                rows[-1].append((part, _role(kind)))
    rows += [[] for _ in range(len(lines) - len(rows))]
    return tuple(map(tuple, rows[: len(lines)]))


def cutter(pieces: Sequence[Piece]) -> Callable[[int, int], list[Piece]]:
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
