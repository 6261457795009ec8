"""Show names so that a human can tell them apart, whatever an agent put into them; shorten lines.

A file name may hold any byte. Drawn as they are, two names can look the same, or one like a
harmless other: a bell that is drawn as nothing, a mark that turns the reading direction, a blank at
the end, a letter of another alphabet. Here each such character is spelled out behind a backslash,
and a backslash is doubled, so that two different names are never one text. Of longer texts it is
known here if they hide something.
"""

import re
from functools import lru_cache
from unicodedata import category, name, normalize

_PLAIN = re.compile(r"[!-\[\]-~]+(?: [!-\[\]-~]+)*")
"""Visible ASCII but the backslash, with single blanks between."""
_WORD = re.compile(r"[^\W\d_]+")
_LOOKS_LATIN = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "LISU", "COPTIC")
"""Alphabets with letters that look Latin; mixed into a Latin word they are spelled out."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp", "Zs"})
DRAWN_AS_NOTHING = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00016fe4\U0001d159"
)
"""Letters, signs and marks without a shape."""
_BLOCK = re.compile(r"[\n\t -~]*")
FAR_APART = re.compile(r" {40,}")
"""Blanks that push the text behind them out of sight."""
_BYTES = range(0xDC80, 0xDD00)
_ASCII, _BMP = 0x80, 0x10000
SUBJECT = 72
"""The characters that git and its hosts show of a commit's subject."""


def legible_name(text: str) -> str:
    r"""Return a name with every character that cannot be distinguished by eye spelled out.

    `calc\x07.py` for a bell in it, `a\u202eb` for a mark that turns the direction, `a\x20` for a
    blank at the end. Two different names give two different texts.
    """
    if _PLAIN.fullmatch(text):
        return text
    foreign = _foreign(text)
    return "".join(_spelled(text, at, foreign) for at in range(len(text)))


def legible_line(text: str) -> str:
    """Return a sentence without anything that acts on a terminal or hides; blanks stay."""
    return "".join(
        " " if char in "\t\n\r" else _code(char) if _is_hidden(char) and char != " " else char
        for char in text
    ).strip()


def cut_at_word(text: str, most: int = SUBJECT) -> str:
    """Return a text of at most so many characters, cut between two words, with a mark for the rest.

    A word that takes most of the room is cut all the same.
    """
    if len(text) <= most:
        return text
    head = text[: most - 1]
    words = head if text[most - 1] == " " else head.rpartition(" ")[0]
    return f"{(words if len(words) > most // 3 else head).rstrip(' ,;:.')}…"


@lru_cache(maxsize=32)  # a request is drawn again with each frame, and none but its agent bounds it
def hides(text: str) -> bool:
    """Return whether a text of several lines holds something that whoever reads it may not see.

    Such a character acts on a terminal, turns the reading direction or has no shape; or so many
    blanks follow each other that the text behind them is out of sight.
    """
    if FAR_APART.search(text.expandtabs(4)):
        return True
    is_plain = _BLOCK.fullmatch(text) is not None
    return not is_plain and any(map(_is_hidden, set(text) - {"\n", "\t"}))


def _spelled(text: str, at: int, foreign: frozenset[int]) -> str:
    char = text[at]
    if char == "\\":
        return "\\\\"
    if char == " ":
        is_inside = 0 < at < len(text) - 1 and text[at - 1] != " "
        return char if is_inside else _code(char)
    if at in foreign or _is_hidden(char) or _is_joined(text, at):
        return _code(char)
    return char


def _foreign(text: str) -> frozenset[int]:
    """Return where letters stand that pass for Latin ones in a word with Latin letters."""
    found: set[int] = set()
    for word in _WORD.finditer(text):
        alien = [at for at in range(*word.span()) if _passes_for_latin(text[at])]
        if len(alien) > 0 and any(char.isascii() for char in word[0]):
            found.update(alien)
    return frozenset(found)


@lru_cache(maxsize=4096)
def _passes_for_latin(char: str) -> bool:
    return not char.isascii() and name(char, "").startswith(_LOOKS_LATIN)


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    kind = category(char)
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return (kind in _HIDDEN and char != " ") or char in DRAWN_AS_NOTHING or is_selector


def _is_joined(text: str, at: int) -> bool:
    """Say whether it is drawn as one with its neighbor, or as another character is."""
    char = text[at]
    if normalize("NFC", char) != char:
        return True
    if category(char) not in {"Mn", "Me", "Mc"}:
        return at > 0 and len(normalize("NFC", text[at - 1 : at + 1])) == 1
    return at == 0 or normalize("NFC", text[: at + 1]) != text[: at + 1]


def _code(char: str) -> str:
    code = ord(char)
    if code in _BYTES:
        return f"\\x{code - 0xDC00:02x}"
    if code < _ASCII:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"
