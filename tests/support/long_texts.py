"""Make texts that a regular expression may take long over, from the expression itself.

Each repeat is fed again and again, alone, with what stands before it, and with other letters that
it takes. In the end stands something that nothing takes, so that all of that was in vain.
"""

import re
from collections.abc import Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
LETTERS = "a0A _-./:=,\"'#@+()[]{}<>\n\r\t\\"
_LARGE = 50


def hostile_texts(pattern: re.Pattern[Any], size: int) -> dict[tuple[str, str], str | bytes]:
    """Return texts of about a size by the beginning and the piece that each is made of."""
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags & ~re.UNICODE
    made: dict[tuple[str, str], str | bytes] = {}
    for first, piece in _pieces(list(parser.parse(pattern.pattern, flags))):
        if piece:
            text = first + piece * (size // len(piece)) + "\0"
            is_text = isinstance(pattern.pattern, str)
            made[first, piece] = text if is_text else text.encode("latin-1", "replace")
    return made


def _pieces(tree: list[Any], before: str = "") -> Iterator[tuple[str, str]]:
    said = before
    for op, value in tree:
        if op in REPEATS:
            least, most, body = value
            items = [_sample(list(body)), *_others(list(body))]
            for item in items if most is c.MAXREPEAT or most > _LARGE else ():
                yield said, item
                yield "", said + item
            inner = list(_pieces(list(body), said))
            yield from inner
            yield from (("", first + item) for first, item in inner)
            del least
        elif op is c.SUBPATTERN:
            yield from _pieces(list(value[3]), said)
        elif op is c.ATOMIC_GROUP:
            yield from _pieces(list(value), said)
        elif op is c.BRANCH:
            for branch in value[1]:
                yield from _pieces(list(branch), said)
        said += _sample([(op, value)])
    yield "", said
    yield "", said[:-1]


def _sample(tree: list[Any]) -> str:
    """Return a short text that fits, as far as one can be made in a simple way."""
    return "".join(_one(op, value) for op, value in tree)


def _one(op: Any, value: Any) -> str:
    if op is c.LITERAL:
        return chr(value)
    if op in {c.NOT_LITERAL, c.ANY}:
        return "b" if value == ord("a") else "a"
    if op is c.IN:
        return next((letter for letter in LETTERS if _takes(value, letter)), "")
    if op is c.BRANCH:
        return _sample(list(value[1][0]))
    if op is c.SUBPATTERN:
        return _sample(list(value[3]))
    if op in REPEATS:
        return _sample(list(value[2])) * value[0]
    return _sample(list(value)) if op is c.ATOMIC_GROUP else ""


def _others(tree: list[Any]) -> Iterator[str]:
    """Yield other letters that a repeat of one letter takes."""
    if len(tree) != 1:
        return
    op, value = tree[0]
    if op is c.IN:
        yield from (letter for letter in LETTERS if _takes(value, letter))
    elif op in {c.ANY, c.NOT_LITERAL}:
        yield from " a.0\n"
    elif op is c.SUBPATTERN:
        yield from _others(list(value[3]))
    elif op is c.BRANCH:
        yield from (_sample(list(branch)) for branch in value[1])


def _takes(items: list[Any], letter: str) -> bool:
    is_not = (c.NEGATE, None) in items
    kinds = {"DIGIT": letter.isdigit(), "SPACE": letter.isspace()}
    kinds["WORD"] = letter.isalnum() or letter == "_"
    for op, value in items:
        if op is c.LITERAL and value == ord(letter):
            return not is_not
        if op is c.RANGE and value[0] <= ord(letter) <= value[1]:
            return not is_not
        if op is c.CATEGORY:
            name = str(value).rpartition("_")[2]
            if kinds.get(name, False) is not ("NOT" in str(value)):
                return not is_not
    return is_not
