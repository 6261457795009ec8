"""Answers offered for a hunk, the surest first, each with the reason it is offered for.

Nothing here is ever applied by itself: no rule is right often enough for that. How often each kind
of answer was right in real conflicts is known, and said with it; one that was wrong more often than
right is never under the cursor.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from engine.merge.choices import Pick, text_of
from engine.merge.ideas import DOUBTED, Idea, Rule, ideas
from engine.merge.memory import Memory
from engine.merge.shares import GUESSED, case, share
from engine.merge.text import ConflictHunk


class Proposal(NamedTuple):
    """A text for a hunk. `same_as` is the pick that makes it too, if there is one.

    Only what is `likely` belongs under the cursor; the rest is a list to look through. `also` names
    the other rules that came to the same text. `share` of such texts were right in real conflicts;
    it is 0 where that was not counted.
    """

    rule: Rule
    text: bytes
    reason: str
    likely: bool
    same_as: Pick | None = None
    also: tuple[Rule, ...] = ()
    share: float = 0.0


class OutsideAnswer(NamedTuple):
    """An answer that somebody was asked for: an agent, another tool.

    One that was fetched ahead was wanted by no human yet.
    """

    by: str
    text: bytes
    reason: str = ""
    is_ahead: bool = False


_MOST = 6
LIKELY = 0.5
_KNOWN = {
    "alike": 2.0,
    "remembered well": 1.95,
    "remembered": 1.8,
    "asked": LIKELY - 0.01,
}
"""Trust in what no table tells. Who was asked may know more, but is known to be wrong at times."""


def propose(
    hunk: ConflictHunk,
    *,
    memory: Memory | None = None,
    asked: Iterable[OutsideAnswer] = (),
    more: Iterable[Idea] = (),
    accepts: Callable[[ConflictHunk, bytes], bool] | None = None,
) -> tuple[Proposal, ...]:
    """Return what to offer for a hunk: at most six texts, and none that `accepts` turns down.

    `more` are ideas that do not come from the hunk's own texts.

    A text that a single key makes anyway (a side, both, …) is offered only when it is likely.
    """
    every = (*_recalled(hunk, memory), *_asked(asked), *more, *ideas(hunk))
    ranked = sorted(
        (_proposal(found, hunk, pick) for found, pick in by_text(hunk, every).values()),
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
    """Return one text that one or more rules came to, and how far it is to be trusted."""
    rated = sorted(((_trust(idea, found, hunk, pick), idea) for idea in found), key=_surest)
    trust, first = rated[0]
    also = tuple(dict.fromkeys(idea.rule for _, idea in rated if idea.rule is not first.rule))
    sure = [idea for own, idea in rated if own >= LIKELY and not idea.kind.endswith(DOUBTED)]
    # Lines that a side took away may stand elsewhere now, and want the other side's change there.
    likely = bool(sure) and bool(first.text.strip() or first.kind in _KNOWN)
    told = 0.0 if first.kind in (*_KNOWN, *GUESSED) else trust
    return trust, Proposal(first.rule, first.text, first.reason, likely, pick, also, told)


def _surest(rated: tuple[float, Idea]) -> float:
    return -rated[0]


def _trust(idea: Idea, found: list[Idea], hunk: ConflictHunk, pick: Pick | None) -> float:
    if idea.kind in _KNOWN:
        return _KNOWN[idea.kind]
    return share(cases_of(idea, found, hunk, pick))


def cases_of(
    idea: Idea, found: Iterable[Idea], hunk: ConflictHunk, pick: Pick | None
) -> tuple[str, ...]:
    """Return the names of an idea's case, beside the others that came to the same text."""
    agreeing = {other.rule for other in found} - {idea.rule}
    is_side = pick in (Pick.TARGET, Pick.INCOMING)
    how = "side" if is_side else "both" if pick else "mix"
    return case(idea.kind, how, len(agreeing), max(len(hunk.target), len(hunk.incoming)))


def by_text(
    hunk: ConflictHunk, found: Iterable[Idea]
) -> Mapping[bytes, tuple[list[Idea], Pick | None]]:
    """Return the ideas by their text, with the key that makes the text too, if there is one."""
    picks = _picks(hunk)
    texts: dict[bytes, tuple[list[Idea], Pick | None]] = {}
    for idea in found:
        texts.setdefault(idea.text, ([], picks.get(idea.text)))[0].append(idea)
    return texts


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
        kind = "remembered well" if known.confirmed or known.times > 1 else "remembered"
        yield Idea(Rule.REMEMBERED, text, f"as you chose before{times}{note}", kind)


def _asked(asked: Iterable[OutsideAnswer]) -> Iterator[Idea]:
    for answer in asked:
        rule = Rule.ASSISTED if answer.is_ahead else Rule.ASKED
        why = f": {answer.reason}" if answer.reason else ""
        yield Idea(rule, answer.text, f"proposed by {answer.by}{why}", "asked")
