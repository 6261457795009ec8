"""Answers offered for a hunk, the surest first, each with the reason it is offered for.

Nothing here is ever applied by itself: on twelve thousand conflicts of open history no rule was
right often enough for that (the best gave the human's bytes in four of five). How far a rule is
trusted follows those shares; two rules that agree are trusted more, long hunks less, for every
line is one more chance to want something else.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from engine.merge.both_sides import union_of_hunk
from engine.merge.choices import Pick, text_of
from engine.merge.lists import united_items, united_lines
from engine.merge.memory import Memory
from engine.merge.rules import (
    Three,
    both_edits,
    contained,
    diff,
    edits,
    inserts_share_a_place,
    newer,
    renamed,
    respaced,
)
from engine.merge.text import Hunk


class Rule(StrEnum):
    """Why a text is offered."""

    ALIKE = "alike"
    REMEMBERED = "remembered"
    ASKED = "asked"
    RENAMED = "renamed"
    NEWER = "newer"
    WHITESPACE = "whitespace"
    CONTAINED = "contained"
    LIST = "list"
    WORDS = "words"
    ADJACENT = "adjacent"
    BOTH = "both"
    UNION = "union"


class Proposal(NamedTuple):
    """A text for a hunk. `same_as` is the pick that makes it too, if there is one.

    Only what is `likely` belongs under the cursor; the rest is a list to look through. `also` names
    the other rules that came to the same text.
    """

    rule: Rule
    text: bytes
    reason: str
    likely: bool
    same_as: Pick | None = None
    also: tuple[Rule, ...] = ()


class Asked(NamedTuple):
    """An answer that somebody was asked for: an agent, another tool."""

    by: str
    text: bytes


class _Idea(NamedTuple):
    """What one rule says, and how far it is trusted here: the share expected to be right."""

    rule: Rule
    text: bytes
    reason: str
    trust: float


_MOST = 6
_LIKELY = 0.6
_AGREE = 0.08
_LONG, _VERY_LONG = 8, 24
_LONG_COSTS, _VERY_LONG_COSTS = 0.08, 0.2
_TOO_LONG = 150
_TOO_MANY_TOKENS = 1000


def propose(
    hunk: Hunk, *, memory: Memory | None = None, asked: Iterable[Asked] = ()
) -> tuple[Proposal, ...]:
    """What to offer for a hunk, at most six texts.

    A text that a single key makes anyway (a side, both, …) is offered only when it is likely.
    """
    ideas = [*_recalled(hunk, memory), *_asked(asked), *_ideas(hunk)]
    by_text: dict[bytes, list[_Idea]] = {}
    for idea in ideas:
        by_text.setdefault(idea.text, []).append(idea)
    picks = _picks(hunk)
    ranked = sorted(
        (_proposal(found, hunk, picks.get(text)) for text, found in by_text.items()),
        key=lambda rated: -rated[0],
    )
    offers = (proposal for _, proposal in ranked if proposal.likely or not proposal.same_as)
    return tuple(offers)[:_MOST]


def best(proposals: Iterable[Proposal]) -> Proposal | None:
    """The one to put under the cursor; none where none is likely."""
    return next((proposal for proposal in proposals if proposal.likely), None)


def _proposal(ideas: list[_Idea], hunk: Hunk, pick: Pick | None) -> tuple[float, Proposal]:
    """One text that one or more rules came to."""
    first, *others = sorted(ideas, key=lambda idea: -idea.trust)
    trust = first.trust
    if first.rule not in (Rule.ALIKE, Rule.REMEMBERED, Rule.ASKED):
        trust += _AGREE * min(len(others), 2) - _cost_of_length(hunk)
    also = tuple(dict.fromkeys(idea.rule for idea in others))
    offer = Proposal(first.rule, first.text, first.reason, trust >= _LIKELY, pick, also)
    return trust, offer


def _cost_of_length(hunk: Hunk) -> float:
    longest = max(len(hunk.target), len(hunk.incoming))
    if longest > _VERY_LONG:
        return _VERY_LONG_COSTS
    return _LONG_COSTS if longest > _LONG else 0.0


def _picks(hunk: Hunk) -> dict[bytes, Pick]:
    """The texts that a single key makes, the first key for each."""
    found: dict[bytes, Pick] = {}
    for pick in (Pick.TARGET, Pick.INCOMING, Pick.BOTH, Pick.BOTH_REVERSED, Pick.BASE):
        found.setdefault(text_of(hunk, pick) or b"", pick)
    found.setdefault(b"", Pick.NEITHER)
    return found


def _recalled(hunk: Hunk, memory: Memory | None) -> Iterator[_Idea]:
    recalled = memory.recall(hunk) if memory else None
    if recalled:
        text, known = recalled
        times = "" if known.times == 1 else f", {known.times} times"
        note = f": {known.note}" if known.note else ""
        trust = 0.95 if known.confirmed or known.times > 1 else 0.8
        yield _Idea(Rule.REMEMBERED, text, f"as you chose before{times}{note}", trust)


def _asked(asked: Iterable[Asked]) -> Iterator[_Idea]:
    for answer in asked:
        yield _Idea(Rule.ASKED, answer.text, f"proposed by {answer.by}", _LIKELY - 0.01)


def _ideas(hunk: Hunk) -> Iterator[_Idea]:
    """Everything the rules say."""
    if hunk.target == hunk.incoming:
        yield _Idea(Rule.ALIKE, b"".join(hunk.target), "both sides wrote the same", 1.0)
        return
    if max(len(hunk.base), len(hunk.target), len(hunk.incoming)) > _TOO_LONG:
        return
    yield from _from_lines(hunk)
    three = Three.of(hunk, most=_TOO_MANY_TOKENS)
    if three:
        yield from _from_words(hunk, three)


def _from_lines(hunk: Hunk) -> Iterator[_Idea]:
    for side, text in respaced(hunk):
        reason = f"the {side} side changed blanks only; the other's words with those blanks"
        yield _Idea(Rule.WHITESPACE, text, reason, 0.65)
    found = newer(hunk)
    if found:
        side, text = found
        reason = f"only numbers differ, and the {side} side's are higher"
        yield _Idea(Rule.NEWER, text, reason, 0.65)
    united = united_lines(hunk)
    if united:
        text, ordered = united
        reason = "a list; both sides' lines" + (", in its order" if ordered else "")
        yield _Idea(Rule.LIST, text, reason, 0.62 if ordered else 0.45)
    united = united_items(hunk)
    if united:
        text, ordered = united
        reason = "a list; both sides' items" + (", in its order" if ordered else "")
        yield _Idea(Rule.LIST, text, reason, 0.65 if ordered else 0.55)
    yield from _edits_of_lines(hunk)


def _edits_of_lines(hunk: Hunk) -> Iterator[_Idea]:
    """Both sides' edits line by line, and both texts with shared lines once."""
    mine, theirs = edits(hunk.base, hunk.target), edits(hunk.base, hunk.incoming)
    if hunk.base and not inserts_share_a_place(mine, theirs):
        beside = both_edits(hunk.base, mine, theirs)
        if beside is not None:
            reason = "the edits lie side by side; no line was changed by both"
            yield _Idea(Rule.ADJACENT, beside, reason, 0.55)
    elif hunk.base:
        for first, second, name in ((mine, theirs, "target"), (theirs, mine, "incoming")):
            shared = both_edits(hunk.base, first, second, share=True)
            if shared is not None:
                trust = 0.42 if name == "target" else 0.2
                yield _Idea(Rule.BOTH, shared, f"both added here; the {name} side's first", trust)
    else:
        yield _Idea(
            Rule.UNION, union_of_hunk(hunk, differ=diff), "both sides, shared lines once", 0.35
        )


def _from_words(hunk: Hunk, three: Three) -> Iterator[_Idea]:
    for side, text in contained(three):
        reason = f"the {side} side has all that the other changed, and more"
        yield _Idea(Rule.CONTAINED, text, reason, 0.66)
    for side, text in renamed(three):
        reason = f"the {side} side only gave new names; the other's text with those names"
        yield _Idea(Rule.RENAMED, text, reason, 0.78)
    if not hunk.base:
        return
    combined = three.combined()
    if combined is not None:
        yield _Idea(Rule.WORDS, combined, "the edits touch different words", 0.6)
        return
    for first, second in three.ways:
        shared = both_edits(three.base, first.edits, second.edits, share=True)
        if shared is not None:
            trust = 0.4 if first is three.target else 0.2
            reason = f"the edits touch, word by word; the {first.name} side's first"
            yield _Idea(Rule.WORDS, shared, reason, trust)
