"""Keep account of an agent that is asked ahead about a merge: its questions, and their cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from engine.limits import Usage
from engine.merge import HunkKey
from engine.messages.merging import AssistView, ConflictView
from engine.plan.model import AssistRule


def is_over(view: ConflictView, key: HunkKey) -> bool:
    """Return whether a human has decided the hunk that an agent is asked about."""
    hunks = [hunk for file in view.files for hunk in file.hunks if hunk.key == key]
    return view.is_resolved or all(hunk.choice for hunk in hunks)


class Spent(NamedTuple):
    """The usage and the time of one question."""

    usage: Usage
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Assisted:
    """The questions of one merge so far; they are counted when they begin.

    Attributes:
        hunks: Those it was asked about.
        unpriced: How many of its attempts did not say what they cost.
    """

    hunks: frozenset[HunkKey] = frozenset()
    requests: int = 0
    answers: int = 0
    usd: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0

    def begun(self, hunk: HunkKey) -> Self:
        """Return the account once a question has begun."""
        return replace(self, hunks=self.hunks | {hunk}, requests=self.requests + 1)

    def ended(self, spent: Spent, *, is_answer: bool) -> Self:
        """Return the account once that question has ended."""
        return replace(
            self,
            answers=self.answers + is_answer,
            usd=self.usd + (spent.usage.usd or 0.0),
            unpriced=self.unpriced + (spent.usage.usd is None),
            seconds=self.seconds + spent.seconds,
        )

    def spent(self, rule: AssistRule) -> str:
        """Return which part of the budget is used up, in words; empty while none is."""
        if self.requests >= rule.requests:
            return f"all {rule.requests} requests are used"
        if rule.usd is not None and self.usd >= rule.usd:
            return f"${rule.usd:g} is spent"
        if self.seconds >= rule.seconds:
            return f"its {rule.seconds / 60:g} minutes are over"
        return ""

    def view(self, rule: AssistRule) -> AssistView:
        """Return what a reviewer sees of it."""
        return AssistView(
            by=rule.agent.name,
            requests=self.requests,
            answers=self.answers,
            usd=self.usd,
            unpriced=self.unpriced,
            seconds=self.seconds,
            spent=self.spent(rule),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the account as plain data."""
        return {**vars(self), "hunks": sorted(self.hunks)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the account that was written."""
        return cls(**{**data, "hunks": frozenset(map(HunkKey, data.get("hunks", ())))})
