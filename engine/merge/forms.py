"""Lists and keys, known by the form of their lines alone, whatever the language.

Lists are names in an import, items in brackets, lines of one form. Where the items stood in
alphabetical order on both sides, the union stands in it too; else what the target added comes
first.

Keys are those of JSON, TOML, YAML, ini files and settings in code. A key belongs to a block: what
is indented less ends the block, and so do a header in brackets and the next item of a list.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from engine.merge.rules import edits
from engine.merge.text import ConflictHunk, Lines, join_all, split_lines

_LINE_ITEM = re.compile(
    rb"""\s*(?:
        (?:from|import|use|using|include|require|export|\#include|@import)\b.*   # imports
        | [-*+]\ .*                                     # list items of Markdown, YAML, reST
        | ["'\w\[({].*[,|]                              # elements of a literal, one a line
        | [\w./*@!-]+                                   # one name a line: ignore files, exports
        | [\w.\-"']+\s*(?:==|>=|~=|=|:)\s*\S+   # settings and requirements
    )\s*(?:\#.*|//.*)?""",
    re.VERBOSE,
)
_OPENING = re.compile(rb"[\[({]|\bimport\b[ \t]+|=[ \t]*|:[ \t]*")
_NESTED = re.compile(rb"""[\[\](){}]|\"{3}|'{3}""")
_FEW = 2
_KEY_LINE = re.compile(
    rb"""(?P<blank>[ \t]*)(?P<item>-[ \t]+)?
        (?:(?P<quoted>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*[:=](?!=)
         | (?:export[ \t]+)?(?P<plain>[\w.$@/-]+)
           (?:[ \t]*(?::(?=[ \t\r\n]|\Z)|=(?![=>~]))
            | (?:\[[\w,-]*\])?(?:[=~!<>]=|[<>])(?=\d)))                  # pins of requirements
    (?P<value>.*)""",
    re.VERBOSE,
)
_HEADER = re.compile(rb"[ \t]*\[[^\]\n]*\]{1,2}[ \t]*(?:[#;].*)?")
_ITEM = re.compile(rb"[ \t]*-[ \t]")
_NO_KEYS = frozenset({b"else", b"try", b"finally", b"except", b"default", b"public", b"private",
                      b"protected", b"do"})  # fmt: skip


def united_lines(hunk: ConflictHunk) -> tuple[bytes, bool] | None:
    """Both sides' lines where every line is an item of a list; and whether they are in order."""
    sides = hunk.target, hunk.incoming
    lines = (*hunk.base, *hunk.target, *hunk.incoming)
    if not any(map(bytes.strip, lines)) or not all(map(_is_item, lines)):
        return None
    if any(len(set(side)) != len(side) for side in sides):
        return None
    if _edit_one_line(hunk.base, hunk.target, hunk.incoming):
        return None
    above = tuple(reversed(tuple(takewhile(_is_item_with_words, reversed(hunk.before)))))
    below = tuple(takewhile(_is_item_with_words, hunk.after))
    ordered = all(_is_ordered((*above, *side, *below), _line_order) for side in sides)
    union = _united(hunk.base, *sides)
    ordered = ordered and len(above) + len(union) + len(below) > _FEW
    if ordered:
        union.sort(key=_line_order)
    return join_all(union, hunk.ending), ordered


def united_items(hunk: ConflictHunk) -> tuple[bytes, bool] | None:
    """Both sides' items of one comma list on one line; and whether they are in order."""
    if not len(hunk.base) == len(hunk.target) == len(hunk.incoming) == 1:
        return None
    texts = hunk.base[0], hunk.target[0], hunk.incoming[0]
    head, tail = _frame(texts)
    middles = [text[head : len(text) - tail] for text in texts]
    if any(map(_NESTED.search, middles)):
        return None
    base, target, incoming = map(_items, middles)
    if max(len(target), len(incoming)) < _FEW or b"" in (*target, *incoming):
        return None
    if _edit_one_line(base, target, incoming):
        return None
    union = _united(base, target, incoming)
    ordered = all(_is_ordered(items, _item_order) for items in (target, incoming))
    ordered = ordered and len(union) > _FEW
    if ordered:
        union.sort(key=_item_order)
    comma = b", " if b", " in b"".join(middles) else b","
    first = texts[1]
    return first[:head] + comma.join(union) + first[len(first) - tail :], ordered


def lengthened(hunk: ConflictHunk) -> bytes | None:
    """Both sides' items behind the last one, to which both gave the comma that it had to have."""
    mine, theirs = (_behind_last(hunk.base, side) for side in (hunk.target, hunk.incoming))
    if not mine or not theirs or {*map(_bare, mine)} & {*map(_bare, theirs)}:
        return None
    last = mine[-1].rstrip()
    ended = mine[-1] if last.endswith(b",") else last + b"," + (mine[-1][len(last) :] or b"\n")
    return b"".join((*hunk.target[: len(hunk.base)], *mine[:-1], ended, *theirs))


def _behind_last(base: Lines, side: Lines) -> Lines:
    at = len(base)
    is_longer = at and len(side) > at and side[: at - 1] == base[:-1]
    return side[at:] if is_longer and side[at - 1].rstrip() == base[-1].rstrip() + b"," else ()


def _bare(line: bytes) -> bytes:
    return line.strip(b" \t\r\n,")


def _edit_one_line(
    base: Sequence[bytes], target: Sequence[bytes], incoming: Sequence[bytes]
) -> bool:
    """Tell whether both sides replace one line: these are no additions."""
    mine, theirs = (
        [edit for edit in edits(base, side) if edit.start < edit.end and edit.items]
        for side in (target, incoming)
    )
    return any(one.start < other.end and other.start < one.end for one in mine for other in theirs)


def _is_item(line: bytes) -> bool:
    return not line.strip() or _LINE_ITEM.fullmatch(line.rstrip()) is not None


def _is_item_with_words(line: bytes) -> bool:
    return bool(line.strip()) and _is_item(line)


def _united(
    base: Sequence[bytes], target: Sequence[bytes], incoming: Sequence[bytes]
) -> list[bytes]:
    """Return the union of both additions minus removals; the target's items come first."""
    kept = [item for item in target if item in incoming or item not in base]
    return kept + [item for item in incoming if item not in target and item not in base]


class _Order:
    """An order of items: by their words, whatever the case."""

    def __init__(self, ignored: bytes) -> None:
        self.ignored = ignored

    def __call__(self, item: bytes) -> bytes:
        return item.strip(self.ignored).lower()


_line_order = _Order(b" \t\r\n,;\"'")
_item_order = _Order(b" \t\"'")


def _is_ordered(items: Sequence[bytes], order: _Order) -> bool:
    keys = [order(item) for item in items]
    return keys == sorted(keys)


def _items(middle: bytes) -> list[bytes]:
    return [item.strip() for item in middle.split(b",")] if middle.strip() else []


def _frame(texts: Lines) -> tuple[int, int]:
    """Return how many bytes before and after the list all three texts share."""
    shortest = min(map(len, texts))
    head = next((i for i in range(shortest) if len({t[i] for t in texts}) > 1), shortest)
    openings = [m.end() for m in _OPENING.finditer(texts[0]) if m.end() <= head]
    start = openings[-1] if openings else len(texts[0]) - len(texts[0].lstrip())
    most = shortest - start
    tail = next((i for i in range(most) if len({t[-1 - i] for t in texts}) > 1), most)
    shared = texts[0][len(texts[0]) - tail :]
    closing = _closing(shared)
    return start, 0 if closing is None else len(shared) - closing


def _closing(text: bytes) -> int | None:
    """Return where a list ends: at a bracket, or before the comment or blanks that end a line."""
    ends = [at for bracket in (b"]", b")", b"}") if (at := text.find(bracket)) >= 0]
    line, ending, _ = text.partition(b"\n")
    if ending:
        ends.append(len(line.partition(b"#")[0].rstrip()))
    return min(ends, default=None)


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
        match = _KEY_LINE.match(line)
        name = match and _name(match)
        if match and name:
            keys = blocks.setdefault(depth + len(match["item"] or b""), set())
            found += name in keys
            keys.add(name)
    return found


def _name(match: re.Match[bytes]) -> bytes | None:
    """Return the key of a line, without its quotes.

    None for a word of a language, and where the value builds on the one before: `PATH=$PATH:/bin`.
    """
    if match["quoted"]:
        return match["quoted"][1:-1]
    plain: bytes = match["plain"]
    builds_on = re.search(rb"\$\{?" + re.escape(plain) + rb"\b", match["value"])
    return None if plain in _NO_KEYS or builds_on else plain


def _depth(line: bytes) -> int:
    indented = line.expandtabs(8)
    return len(indented) - len(indented.lstrip())
