"""Keys that lines give values to, and whether a text gives one of them two.

Knows the lines of JSON, TOML, YAML, ini files and settings in code by their form alone. A key
belongs to a block: what is indented less ends the block, and so do a header in brackets and the
next item of a list.
"""

import re
from collections.abc import Iterable

from engine.merge.text import ConflictHunk, split_lines

_LINE = re.compile(
    rb"""(?P<blank>[ \t]*)(?P<item>-[ \t]+)?
        (?:(?P<quoted>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*[:=](?!=)
         | (?P<plain>[\w.$@/-]+)[ \t]*(?::(?=[ \t\r\n]|\Z)|=(?![=>~])))""",
    re.VERBOSE,
)
_HEADER = re.compile(rb"[ \t]*\[[^\]\n]*\]{1,2}[ \t]*(?:[#;].*)?")
_ITEM = re.compile(rb"[ \t]*-[ \t]")
_NO_KEYS = frozenset({b"else", b"try", b"finally", b"except", b"default", b"public", b"private",
                      b"protected", b"do"})  # fmt: skip


def writes_twice(hunk: ConflictHunk, text: bytes) -> bool:
    """Tell whether a text gives more keys a second value than any version of the hunk does."""
    sides = (hunk.base, hunk.target, hunk.incoming)
    return _repeats(split_lines(text)) > max(map(_repeats, sides))


def _repeats(lines: Iterable[bytes]) -> int:
    """Count the keys that stand in their block already."""
    blocks: dict[int, set[bytes]] = {}
    found = 0
    for line in lines:
        if not line.strip():
            continue
        depth = _depth(line)
        starts_anew = _HEADER.fullmatch(line.rstrip()) or _ITEM.match(line)
        blocks = {at: keys for at, keys in blocks.items() if at < depth + (not starts_anew)}
        match = _LINE.match(line)
        name = match and _name(match)
        if match and name:
            keys = blocks.setdefault(depth + len(match["item"] or b""), set())
            found += name in keys
            keys.add(name)
    return found


def _name(match: re.Match[bytes]) -> bytes | None:
    """Return the key of a line, without its quotes; None for a word of a language."""
    if match["quoted"]:
        return match["quoted"][1:-1]
    plain: bytes = match["plain"]
    return None if plain in _NO_KEYS else plain


def _depth(line: bytes) -> int:
    indented = line.expandtabs(8)
    return len(indented) - len(indented.lstrip())
