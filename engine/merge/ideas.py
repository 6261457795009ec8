"""The ideas of each rule for a hunk, with a reason and the kind of case that it is.

How often such an idea is right is learned from real conflicts, kind by kind: `engine.merge.shares`.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from engine.merge.both_sides import union_of_hunk
from engine.merge.forms import lengthened, united_items, united_lines, writes_twice
from engine.merge.rules import (
    Edit,
    Three,
    both_edits,
    contained,
    diff,
    edits,
    favoring,
    inserts_share_a_place,
    newer,
    renamed,
    respaced,
    superseded,
)
from engine.merge.text import ConflictHunk, join_all


class Rule(StrEnum):
    """The reason why a text is offered."""

    ALIKE = "alike"
    REMEMBERED = "remembered"
    LIKEWISE = "likewise"
    ASKED = "asked"
    ASSISTED = "assisted"
    RENAMED = "renamed"
    WHITESPACE = "whitespace"
    CONTAINED = "contained"
    NEWER = "newer"
    SUPERSEDED = "superseded"
    LIST = "list"
    WORDS = "words"
    ADJACENT = "adjacent"
    BOTH = "both"
    UNION = "union"
    FAVORED = "favoured"
    FORMATTED = "formatted"


class Idea(NamedTuple):
    """A text that one rule offers for a hunk; `kind` begins with the rule's own word."""

    rule: Rule
    text: bytes
    reason: str
    kind: str


DOUBTED = ", in doubt"
"""The end of the kind of an idea beside which there is another reading."""
_FEW_EDITS = 40
_TOO_LONG = 150
_TOO_MANY_TOKENS = 1000


def ideas(hunk: ConflictHunk) -> list[Idea]:
    """Return everything the rules say; the same text may come from several.

    A key that both sides gave a value is one decision: no rule may write it twice.
    """
    if hunk.target == hunk.incoming:
        return [Idea(Rule.ALIKE, b"".join(hunk.target), "both sides wrote the same", "alike")]
    if max(len(hunk.base), len(hunk.target), len(hunk.incoming)) > _TOO_LONG:
        return []
    found = [*_of_blanks_and_numbers(hunk), *_of_lists(hunk), *_of_lines(hunk)]
    three = Three.of(hunk, most=_TOO_MANY_TOKENS)
    if three:
        found += [*_of_one_side(three), *_of_words(three)]
    return _doubted(hunk, [idea for idea in found if not writes_twice(hunk, idea.text)])


def _doubted(hunk: ConflictHunk, found: list[Idea]) -> list[Idea]:
    """Mark ideas that put edits side by side where there is another reading.

    Such are lines taken away right where the other side put some in. Others are a list in which the
    same additions could have another order, and blanks that one side changed along with words.
    """
    doubted = {Rule.WORDS, Rule.ADJACENT}
    if _taken_where_put(hunk):
        doubted.add(Rule.LIST)
    elif len({idea.text for idea in found if idea.rule in {*doubted, Rule.LIST}}) == 1:
        return found
    return [
        idea._replace(kind=idea.kind + DOUBTED) if idea.rule in doubted else idea for idea in found
    ]


def _taken_where_put(hunk: ConflictHunk) -> bool:
    """One side took lines away at the very place where the other put lines in."""
    mine, theirs = edits(hunk.base, hunk.target), edits(hunk.base, hunk.incoming)
    return any(
        _is_removal(one) and other.start == other.end and one.start <= other.start <= one.end
        for first, second in ((mine, theirs), (theirs, mine))
        for one in first
        for other in second
    )


def _is_removal(edit: Edit) -> bool:
    return edit.start < edit.end and not edit.items


def _of_blanks_and_numbers(hunk: ConflictHunk) -> Iterator[Idea]:
    for side, text in respaced(hunk):
        yield Idea(Rule.WHITESPACE, text, f"the {side} side changed only whitespace", "whitespace")
    found = newer(hunk)
    if found:
        side, text = found
        reason = f"only numbers differ, and the {side} side's are higher"
        yield Idea(Rule.NEWER, text, reason, "newer")


def _of_lists(hunk: ConflictHunk) -> Iterator[Idea]:
    lines = united_lines(hunk)
    if lines:
        text, ordered = lines
        reason = "a list; both sides' lines" + (", in its order" if ordered else "")
        yield Idea(Rule.LIST, text, reason, "list ordered" if ordered else "list")
    longer = lengthened(hunk)
    if longer is not None:
        reason = "a list; both sides' items at the end, the target side's first"
        yield Idea(Rule.LIST, longer, reason, "list longer")
    items = united_items(hunk)
    if items:
        text, ordered = items
        reason = "a list; both sides' items" + (", in its order" if ordered else "")
        yield Idea(Rule.LIST, text, reason, "list of items")


def _of_lines(hunk: ConflictHunk) -> Iterator[Idea]:
    """Both sides' edits line by line; or both texts one after the other."""
    if not hunk.base:
        yield from _of_additions(hunk)
        return
    mine, theirs = edits(hunk.base, hunk.target), edits(hunk.base, hunk.incoming)
    ways = ((mine, theirs, "target"), (theirs, mine, "incoming"))
    if not inserts_share_a_place(mine, theirs):
        beside = both_edits(hunk.base, mine, theirs)
        if beside is not None:
            reason = "the edits are side by side; no line was changed by both"
            yield Idea(Rule.ADJACENT, beside, reason, "adjacent")
            return
    for first, second, name in ways:
        shared = both_edits(hunk.base, first, second, share=True)
        if shared is not None:
            reason = f"both added here, the {name} side's first"
            yield Idea(Rule.BOTH, shared, reason, f"both added, {name} first")
        elif len(first) + len(second) <= _FEW_EDITS:
            text = favoring(hunk.base, first, second)
            reason = f"both sides; where both changed a line, the {name} side's"
            yield Idea(Rule.FAVORED, text, reason, "favoured by lines")


def _of_additions(hunk: ConflictHunk) -> Iterator[Idea]:
    """Both sides added where the base has nothing."""
    swapped = hunk._replace(target=hunk.incoming, incoming=hunk.target)
    reason = "both sides, shared lines once"
    yield Idea(Rule.UNION, union_of_hunk(hunk, differ=diff), reason, "union")
    reason = "both sides, shared lines once; the incoming side's first"
    yield Idea(Rule.UNION, union_of_hunk(swapped, differ=diff), reason, "union reversed")
    gap = tuple(reversed(tuple(takewhile(_is_blank, reversed(hunk.before)))))
    blocks = min(len(hunk.target), len(hunk.incoming)) > 1
    if gap and blocks and not any(map(_is_blank, (hunk.target[-1], hunk.incoming[0]))):
        text = join_all((*hunk.target, *gap, *hunk.incoming), hunk.ending)
        yield Idea(Rule.BOTH, text, "both sides, with blank lines between as above", "both apart")


def _is_blank(line: bytes) -> bool:
    return not line.strip()


def _of_one_side(three: Three) -> Iterator[Idea]:
    """One side as it is, or with the other's names."""
    for side, text in contained(three):
        reason = f"the {side} side includes every change of the other, and more"
        yield Idea(Rule.CONTAINED, text, reason, "contained")
    for side, text in superseded(three):
        reason = f"the {side} side rewrote lines that the other changed a little"
        kind = "superseded" if text.strip() else "superseded by nothing"
        yield Idea(Rule.SUPERSEDED, text, reason, kind)
    for side, text in renamed(three):
        reason = f"the {side} side only renamed; the other's text with the new names"
        yield Idea(Rule.RENAMED, text, reason, "renamed")


def _of_words(three: Three) -> Iterator[Idea]:
    """Both sides' edits word by word."""
    if not three.base:
        return
    calm = three.combined_without_blanks()
    if calm is not None:
        reason = "the edits touch different words; whitespace as in the target"
        yield Idea(Rule.WORDS, calm, reason, "words but blanks")
    combined = three.combined()
    if combined is not None:
        yield Idea(Rule.WORDS, combined, "the edits touch different words", "words")
        return
    beside = both_edits(three.base, three.target.edits, three.incoming.edits)
    if beside is not None:
        yield Idea(
            Rule.WORDS,
            beside,
            "the edits are side by side; no word was changed by both",
            "words beside",
        )
        return
    for first, second in three.ways:
        shared = both_edits(three.base, first.edits, second.edits, share=True)
        if shared is not None:
            reason = f"both added words here, the {first.name} side's first"
            yield Idea(Rule.WORDS, shared, reason, f"words, {first.name} first")
        elif len(first.edits) + len(second.edits) <= _FEW_EDITS:
            text = favoring(three.base, first.edits, second.edits)
            reason = f"both sides; where both changed a word, the {first.name} side's"
            yield Idea(Rule.FAVORED, text, reason, "favoured by words")
