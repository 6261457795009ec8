"""Offer for a hunk what a human did with those just before it, in the same file or merge.

Who takes one side three times mostly takes it a fourth time: that is right far more often than
what any rule makes of the texts alone. Nothing is decided by it, as with every proposal.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.merge.choices import Pick, text_of
from engine.merge.conflict import FileConflict
from engine.merge.ideas import Rule
from engine.merge.proposals import LIKELY, Proposal
from engine.merge.session import ResolutionSession
from engine.merge.shares import case, share
from engine.merge.text import ConflictHunk, HunkKey

_TWICE = 2
_PICKS = (Pick.TARGET, Pick.INCOMING, Pick.BOTH, Pick.BOTH_REVERSED)
_ENOUGH = 3
_SURER = frozenset({Rule.ALIKE, Rule.REMEMBERED})
_WORDS = {
    Pick.TARGET: "the target side",
    Pick.INCOMING: "the incoming side",
    Pick.BOTH: "both sides",
    Pick.BOTH_REVERSED: "both sides, the incoming side's first",
}


class Habit(NamedTuple):
    """The pick that the last decisions have in common, and how many these are: three at most.

    `is_mixed` if other decisions came before these.
    """

    pick: Pick
    times: int
    is_in_file: bool
    is_mixed: bool

    @property
    def kind(self) -> str:
        """Return the name under which its share is counted."""
        where = "in the file" if self.is_in_file else "before the file"
        return f"likewise {self.times} {where}{' after others' if self.is_mixed else ''}"

    @property
    def reason(self) -> str:
        """Return the reason as a sentence."""
        where = "in this file" if self.is_in_file else "in the files before this one"
        return f"you took {_WORDS[self.pick]} just before, {where}"


def pick_of(hunk: ConflictHunk, text: bytes) -> Pick | None:
    """Return the pick that makes this text of a hunk, if it is one that becomes a habit."""
    return next((pick for pick in _PICKS if text_of(hunk, pick) == text), None)


def habit_after(in_file: Sequence[Pick | None], before: Sequence[Pick | None] = ()) -> Habit | None:
    """Return the habit of the last decisions of a file, or of those before it while it has none."""
    picks = in_file or before
    if not picks or picks[-1] is None:
        return None
    pick, times = picks[-1], 1
    while times < min(_ENOUGH, len(picks)) and picks[-1 - times] is pick:
        times += 1
    is_mixed = times < min(_ENOUGH, len(picks))
    return Habit(pick, times, bool(in_file), is_mixed)


class Refusals:
    """The rules whose first offers were turned down twice in a row in this merge."""

    def __init__(self) -> None:
        self._counts: Counter[Rule] = Counter()

    def add(self, offers: Sequence[Proposal], text: bytes) -> None:
        """Take note of a decision about a hunk for which these offers were made."""
        if offers and offers[0].likely:
            first = offers[0]
            self._counts[first.rule] = 0 if first.text == text else self._counts[first.rule] + 1

    @property
    def rules(self) -> frozenset[Rule]:
        """Return these rules."""
        return frozenset(rule for rule, count in self._counts.items() if count >= _TWICE)


class Lessons(NamedTuple):
    """The teaching of the decisions before a hunk: a habit, and rules that were refused."""

    habit: Habit | None = None
    refused: frozenset[Rule] = frozenset()


def lessons(
    session: ResolutionSession,
    offered: Callable[[ConflictHunk], Sequence[Proposal]],
    before: Sequence[Pick | None] = (),
) -> Mapping[tuple[bytes, HunkKey], Lessons]:
    """Return the lessons for each hunk that is still open, by path and key.

    `before` is what was picked in the merges before this one: the earlier commits of a rebase.
    """
    return dict(_lessons(session, offered, before))


def last_picks(
    session: ResolutionSession, before: Sequence[Pick | None] = ()
) -> tuple[Pick | None, ...]:
    """Return what was picked last, after what was picked before: as much as makes a habit."""
    picks = [
        pick_of(hunk, text)
        for conflict in session.conflicts
        for hunk, text in _decided(session, conflict)
        if text is not None
    ]
    return (*before, *picks)[-_ENOUGH:]


def _decided(
    session: ResolutionSession, conflict: FileConflict
) -> Iterator[tuple[ConflictHunk, bytes | None]]:
    """Yield the hunks of a file, each with the text that was decided; None where it is open."""
    decided = session.resolutions.get(conflict.path)
    for hunk in conflict.open.hunks:
        choice = decided.hunks.get(hunk.key) if decided else None
        yield hunk, text_of(hunk, choice) if choice is not None else None


def _lessons(
    session: ResolutionSession,
    offered: Callable[[ConflictHunk], Sequence[Proposal]],
    before: Sequence[Pick | None],
) -> Iterator[tuple[tuple[bytes, HunkKey], Lessons]]:
    refusals = Refusals()
    for conflict in session.conflicts:
        in_file: list[Pick | None] = []
        for hunk, text in _decided(session, conflict):
            if text is not None:
                in_file.append(pick_of(hunk, text))
                refusals.add(offered(hunk), text)
            else:
                learned = Lessons(habit_after(in_file, before), refusals.rules)
                yield (conflict.path, hunk.key), learned
        before = [*before, *in_file][-_ENOUGH:]


def cases_of_habit(
    habit: Habit, hunk: ConflictHunk, offers: Iterable[Proposal]
) -> tuple[str, str, str]:
    """Return the names of its case, beside the offers that come to the same text."""
    text = text_of(hunk, habit.pick)
    agreeing = int(any(offer.text == text for offer in offers))
    how = "side" if habit.pick in (Pick.TARGET, Pick.INCOMING) else "both"
    return case(habit.kind, how, agreeing, max(len(hunk.target), len(hunk.incoming)))


def with_lessons(
    offers: tuple[Proposal, ...], hunk: ConflictHunk, learned: Lessons
) -> tuple[Proposal, ...]:
    """Return the offers as the decisions before make them: more likely, or less."""
    doubted = [
        offer._replace(likely=False) if offer.rule in learned.refused else offer for offer in offers
    ]
    doubted.sort(key=lambda offer: not offer.likely)
    return _with_habit(tuple(doubted), hunk, learned.habit)


def _with_habit(
    offers: tuple[Proposal, ...], hunk: ConflictHunk, habit: Habit | None
) -> tuple[Proposal, ...]:
    """Return the offers with that of a habit in its place, if it is likely enough to be one."""
    text = text_of(hunk, habit.pick) if habit else None
    if habit is None or not text or not text.strip():
        return offers
    known = share(cases_of_habit(habit, hunk, offers))
    same = next((offer for offer in offers if offer.text == text), None)
    if known < LIKELY or (same and _is_surer(same, known)):
        return offers
    also = (same.rule, *same.also) if same else ()
    own = Proposal(
        Rule.LIKEWISE,
        text,
        habit.reason,
        likely=True,
        same_as=habit.pick,
        also=also,
        share=known,
    )
    rest = [offer for offer in offers if offer is not same]
    place = sum(_is_surer(offer, known) for offer in rest)
    return (*rest[:place], own, *rest[place:])


def _is_surer(offer: Proposal, known: float) -> bool:
    return offer.likely and (offer.rule in _SURER or offer.share > known)
