"""The one border where foreign text becomes text that a terminal may be given.

Agents, repositories and their users write what they like: escape sequences that set the clipboard
or reset the screen, marks that turn the reading direction, characters of no width. Nothing of that
passes; what a reader ought to see is made visible instead. Cleaning happens here once, when a view
or a log line enters the console, and nowhere else. What is asked is drawn whole, and kept as it is
beside that.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, cast
from unicodedata import category

from engine.legible import DRAWN_AS_NOTHING, FAR_APART, legible_name
from engine.messages.asked import Question
from tui.words.asking import DrawnQuestion

_T = TypeVar("_T")

LONGEST = 20_000
"""A single line longer than this is cut: a terminal shows none of the rest, and drawing costs."""

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS
    r"|\x1b[ -/]*[0-~]"  # the rest: two or three characters
)
_SUSPECT = re.compile(r"[^\x20-\x7e]")
_TAB = 4
_BLANK, _DELETE = 0x20, 0x7F
_PICTURES = 0x2400
_NO_TEXT = 0xDC80
"""Stands for the first of the bytes that are no UTF-8."""
_SPELLED = frozenset({"Cf", "Zl", "Zp"})
"""Marks that turn the reading direction, join, separate: a reviewer must see them."""
_AS_PICTURE = "\ufe0f"
"""Asks for the picture of the sign before it, as after a warning sign. There it hides nothing."""
_WRITTEN = frozenset({"Cc", "Cs", "Cn", "Co", "Zs"})
"""Kinds that are written out in code; the blank and the tab are not among what is asked."""
TAB_SIGN = "\u2002"
"""The first cell of a tab in a line of a diff. Foreign blanks are written out: no other is this."""
_NAMES = frozenset(
    {
        *("path", "old_path", "base_path", "target_path", "incoming_path", "paths"),
        *("conflicts", "in_the_way", "violations", "label"),
    }
)
"""The fields of views that hold names of files, or of workers: those must be told apart."""
_STANDS_FOR = {"Cc": "", "Cs": "", "Cn": "\ufffd", "Co": "\ufffd", "Zs": " "}


@lru_cache(maxsize=8192)
def _shown(char: str) -> str:
    """Return what stands for a character that is not plain."""
    kind = category(char)
    if kind in _SPELLED or char in DRAWN_AS_NOTHING:
        return f"<{ord(char):04X}>"
    if kind in _STANDS_FOR:
        return _STANDS_FOR[kind]
    return "" if _is_selector(char) else char


def _is_selector(char: str) -> bool:
    """A variation selector: it only says how the character before it is drawn."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def clean(text: str) -> str:
    """One line of foreign text, made fit to be shown; line ends in it become blanks."""
    if text.isascii() and text.isprintable():
        return text[:LONGEST]
    text = _SEQUENCE.sub("", text[: LONGEST * 2])
    text = text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ").expandtabs(_TAB)
    return _SUSPECT.sub(lambda found: _shown(found[0]), text)[:LONGEST]


def clean_name(text: str) -> str:
    """Return a name so that no other name looks like it."""
    return legible_name(text)


def clean_block(text: str) -> str:
    """Foreign text of several lines; its line ends are kept."""
    if "\n" not in text and "\r" not in text:
        return clean(text)
    if len(text) <= LONGEST and text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").split("\n"))


def clean_code(text: str) -> str:
    """One line of code under review: nothing vanishes, what cannot be seen is made visible.

    A control character becomes its picture (`␛`), because a reviewer must see that it is there.
    """
    if text.isascii() and text.isprintable():
        return _cut(text)
    return _cut(_SUSPECT.sub(_pictured, text.expandtabs(_TAB)))


def clean_line(text: str) -> str:
    """One line of a diff, cleaned as code; its tabs stay apart from blanks."""
    if text.isascii() and text.isprintable():
        return _cut(text)
    found, *others = (_SUSPECT.sub(_pictured, part) for part in text.split("\t"))
    for part in others:
        found += TAB_SIGN.ljust(_TAB - len(found) % _TAB) + part
    return _cut(found)


def _cut(text: str) -> str:
    """Return a line, or as much of it as is ever drawn, and how much more there is."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {len(text) - LONGEST} more characters"


def plain_line(text: str) -> str:
    """Return a cleaned line with blanks in place of its tabs."""
    return text if text.isascii() else text.replace(TAB_SIGN, " ")


def with_tabs(text: str, column: int = 0) -> str:
    """Return a cleaned line, or what of it stands from a column on, with its tabs."""
    return _respelled(text, ("\t", "", " "), column)


def with_signs(text: str) -> str:
    """Return a cleaned line with a sign for each blank and each tab, as wide as it was."""
    return _respelled(text, ("→", " ", "·"))


def _respelled(text: str, signs: tuple[str, str, str], column: int = 0) -> str:
    """Return a line with other signs for a tab, the cells that it fills, and a blank."""
    tab, behind, blank = signs
    found = []
    pad = 0
    for at, char in enumerate(text, column):
        if pad and char == " ":
            pad -= 1
            found.append(behind)
        elif char == TAB_SIGN:
            pad = _TAB - 1 - at % _TAB
            found.append(tab)
        else:
            pad = 0
            found.append(blank if char == " " else char)
    return "".join(found)


def clean_code_block(text: str) -> str:
    """Code under review of several lines; its line ends are kept."""
    return "\n".join(map(clean_code, text.split("\n")))


@lru_cache(maxsize=32)  # each view of a run brings it anew, and none but its agent bounds it
def clean_asked(text: str) -> str:
    """Return the whole of what is asked: nothing is cut, and each hidden character is drawn.

    Blanks at the end of a line have a sign, and so have tabs.
    """
    return "\n".join(map(_asked_line, text.split("\n")))


def asked_line(text: str) -> str:
    """Return the whole of what is asked in one line, with a sign for each line end."""
    return clean_asked(text).replace("\n", "␊")


def asked_head(text: str) -> str:
    """Return the first line of what is asked, and how many more lines there are."""
    first, _, rest = text.partition("\n")
    more = rest.count("\n") + 1 if rest else 0
    return clean_asked(first) + (f" … and {more} more line{'s' * (more > 1)}" if more else "")


def _asked_line(line: str) -> str:
    found, *others = (_SUSPECT.sub(lambda one: _spelled(one[0]), part) for part in line.split("\t"))
    for part in others:
        found += "→".ljust(_TAB - len(found) % _TAB) + part
    bare = found.rstrip(" ")
    whole = bare + "·" * (len(found) - len(bare))
    return FAR_APART.sub(lambda blanks: f"<{len(blanks[0])} blanks>", whole)


def _pictured(found: re.Match[str]) -> str:
    """Return what stands for a character of code, so that no two that differ look alike."""
    char = found[0]
    if char == _AS_PICTURE and found.start():
        return "" if category(found.string[found.start() - 1]) == "So" else _spelled(char)
    return _spelled(char)


@lru_cache(maxsize=8192)
def _spelled(char: str) -> str:
    code = ord(char)
    if code < _BLANK:
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "\u2421"
    if _NO_TEXT <= code < _NO_TEXT + 0x80:
        return f"<{code & 0xFF:02X}>"
    is_written = category(char) in _WRITTEN or _is_selector(char)
    return f"<{code:04X}>" if is_written else _shown(char)


def clean_tree(value: _T, cleaner: Callable[[str], str] = clean_block) -> _T:
    """A dataclass, a collection or a text with every text in it cleaned; line ends are kept."""
    return cast("_T", _cleaned(value, cleaner))


def _cleaned(value: Any, cleaner: Callable[[str], str]) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return cleaner(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_cleaned(item, cleaner) for item in value))
    if isinstance(value, tuple | frozenset | list):
        return type(value)(_cleaned(item, cleaner) for item in value)
    if isinstance(value, Mapping):
        return {_cleaned(key, cleaner): _cleaned(item, cleaner) for key, item in value.items()}
    if isinstance(value, Question):
        return _drawn(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _cleaned_fields(value, cleaner)
    return value


def _drawn(asked: Question) -> Question:
    """Return a question that may be drawn; its name is sent back, and is drawn nowhere."""
    if isinstance(asked, DrawnQuestion):
        return asked
    values = {place.name: getattr(asked, place.name) for place in fields(asked)}
    drawn = values | {
        name: _cleaned(values[name], clean_asked)
        for name in ("text", "choices", "about", "danger", "command")
    }
    return asked if drawn == values else DrawnQuestion(**drawn, raw=asked)


def _cleaned_fields(value: Any, cleaner: Callable[[str], str]) -> Any:
    changed = {}
    for place in fields(value):
        before = getattr(value, place.name)
        after = _cleaned(before, clean_name if place.name in _NAMES else cleaner)
        if after is not before and after != before:
            changed[place.name] = after
    return replace(value, **changed) if changed else value
