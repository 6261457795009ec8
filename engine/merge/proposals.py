"""Answers offered for a hunk, the surest first, each with the reason it is offered for.

Nothing here is ever applied by itself: on twelve thousand conflicts of open history no rule was
right often enough for that (the best gave the human's bytes in four of five). Rules that agree are
trusted more, long hunks less, for every line is one more chance to want something else.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from engine.merge.choices import Pick, text_of
from engine.merge.ideas import Idea, Rule, ideas
from engine.merge.memory import Memory
from engine.merge.text import ConflictHunk


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


class OutsideAnswer(NamedTuple):
    """An answer that somebody was asked for: an agent, another tool."""

    by: str
    text: bytes


_MOST = 6
_LIKELY = 0.6
_AGREE = 0.08
_COUNTS = 0.4
_LONG, _VERY_LONG = 8, 24
_LONG_COSTS, _VERY_LONG_COSTS = 0.08, 0.2
_KNOWN = (Rule.ALIKE, Rule.REMEMBERED, Rule.ASKED)


def propose(
    hunk: ConflictHunk,
    *,
    memory: Memory | None = None,
    asked: Iterable[OutsideAnswer] = (),
    accepts: Callable[[ConflictHunk, bytes], bool] | None = None,
) -> tuple[Proposal, ...]:
    """Return what to offer for a hunk: at most six texts, and none that `accepts` turns down.

    A text that a single key makes anyway (a side, both, …) is offered only when it is likely.
    """
    by_text: dict[bytes, list[Idea]] = {}
    for idea in (*_recalled(hunk, memory), *_asked(asked), *ideas(hunk)):
        by_text.setdefault(idea.text, []).append(idea)
    picks = _picks(hunk)
    ranked = sorted(
        (_proposal(found, hunk, picks.get(text)) for text, found in by_text.items()),
        key=lambda rated: -rated[0],
    )
    offers = (
        proposal
        for _, proposal in ranked
        if (proposal.likely or not proposal.same_as)
        and (accepts is None or accepts(hunk, proposal.text))
    )
    return tuple(islice(offers, _MOST))


def best(proposals: Iterable[Proposal]) -> Proposal | None:
    """The one to put under the cursor; none where none is likely."""
    return next((proposal for proposal in proposals if proposal.likely), None)


def _proposal(found: list[Idea], hunk: ConflictHunk, pick: Pick | None) -> tuple[float, Proposal]:
    """One text that one or more rules came to."""
    first, *others = sorted(found, key=lambda idea: -idea.trust)
    also = tuple(dict.fromkeys(idea.rule for idea in others if idea.rule is not first.rule))
    trust = first.trust
    if first.rule not in _KNOWN:
        agreeing = {idea.rule for idea in others if idea.trust >= _COUNTS} - {first.rule}
        trust += _AGREE * min(len(agreeing), 2) - _cost_of_length(hunk)
    return trust, Proposal(first.rule, first.text, first.reason, trust >= _LIKELY, pick, also)


def _cost_of_length(hunk: ConflictHunk) -> float:
    longest = max(len(hunk.target), len(hunk.incoming))
    if longest > _VERY_LONG:
        return _VERY_LONG_COSTS
    return _LONG_COSTS if longest > _LONG else 0.0


def _picks(hunk: ConflictHunk) -> dict[bytes, Pick]:
    """The texts that a single key makes, the first key for each."""
    found: dict[bytes, Pick] = {}
    for pick in (Pick.TARGET, Pick.INCOMING, Pick.BOTH, Pick.BOTH_REVERSED, Pick.BASE):
        found.setdefault(text_of(hunk, pick) or b"", pick)
    found.setdefault(b"", Pick.NEITHER)
    return found


def _recalled(hunk: ConflictHunk, memory: Memory | None) -> Iterator[Idea]:
    recalled = memory.recall(hunk) if memory else None
    if recalled:
        text, known = recalled
        times = "" if known.times == 1 else f", {known.times} times"
        note = f": {known.note}" if known.note else ""
        trust = 0.95 if known.confirmed or known.times > 1 else 0.8
        yield Idea(Rule.REMEMBERED, text, f"as you chose before{times}{note}", trust)


def _asked(asked: Iterable[OutsideAnswer]) -> Iterator[Idea]:
    """Just short of likely: who was asked may know more, but is known to be wrong at times."""
    for answer in asked:
        yield Idea(Rule.ASKED, answer.text, f"proposed by {answer.by}", _LIKELY - 0.01)
