"""The policies of a step, as values: each with its words, its reference and its decisions.

A plan and its journal hold a policy by its kind and its number alone. When the state of a run asks
what a policy decides, it asks here; it names no kind of policy itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from engine.values import dataclass

T = TypeVar("T")


class PolicyKind(StrEnum):
    """The word for when a step of several workers has succeeded, and what becomes of the rest."""

    ALL = "all"
    SETTLED = "settled"
    FIRST = "first"
    QUORUM = "quorum"


@dataclass(frozen=True)
class Policy:
    """A policy and its number; `race` is FIRST with 1; ALL and SETTLED ignore the number."""

    kind: PolicyKind = PolicyKind.ALL
    n: int = 1

    def __str__(self) -> str:
        """Return it as a manifest writes it: `all`, `settled`, `race`, `first(2)`, `quorum(2)`."""
        named = next((word for word, policy in _NAMED.items() if policy == self), None)
        return named or (
            f"{self.kind}({self.n})" if LAWS[self.kind].is_counted else self.kind.value
        )

    @classmethod
    def read(cls, words: str) -> "Policy | None":
        """Return the policy that such words as `first(2)` or `first:2` say; None for others."""
        match = _WORDS.fullmatch(words)
        if match is None:
            return None
        if match["word"]:
            return _NAMED.get(words) or cls(PolicyKind(words))
        n = int(match[3] or match[4])
        return cls(PolicyKind(match["kind"]), n) if n else None

    def needed(self, workers: int) -> int:
        """Return how many of so many workers must succeed."""
        return LAWS[self.kind].needed(self.n, workers)

    @property
    def fails_fast(self) -> bool:
        """The first worker that finally fails stops the others."""
        return LAWS[self.kind].fails_fast

    @property
    def ends_early(self) -> bool:
        """Enough successes decide the step and stop the others."""
        return LAWS[self.kind].ends_early

    def is_won(self, successes: int, workers: int) -> bool:
        """Tell whether so many successes of so many workers make other attempts needless."""
        return self.ends_early and successes >= self.needed(workers)


@dataclass(frozen=True, kw_only=True)
class Law:
    """The meaning of one word for a policy.

    Attributes:
        needed: How many must succeed, by the policy's number and the number of workers.
        succeeded: When the step has succeeded, for the reference.
        others: What becomes of the other workers, for the reference.
        is_counted: It is written with a number.
    """

    needed: Callable[[int, int], int]
    succeeded: str
    others: str
    is_counted: bool = False
    fails_fast: bool = False
    ends_early: bool = False


def _n(n: int, _: int) -> int:
    return n


LAWS: Mapping[str, Law] = {
    "all": Law(
        needed=lambda _, workers: workers,
        succeeded="when every worker has",
        others="stop when one has failed for good",
        fails_fast=True,
    ),
    "settled": Law(
        needed=lambda _, __: 1,
        succeeded="when at least one has",
        others="run to their end",
    ),
    "first": Law(
        needed=_n,
        succeeded="when N have",
        others="stop then",
        is_counted=True,
        ends_early=True,
    ),
    "race": Law(
        needed=_n,
        succeeded="when one has",
        others="stop then",
        ends_early=True,
    ),
    "quorum": Law(
        needed=_n,
        succeeded="when N have",
        others="run to their end",
        is_counted=True,
    ),
}
"""Every word for a policy: the kinds, and the names of `_NAMED`."""

_NAMED: Mapping[str, Policy] = {"race": Policy(PolicyKind.FIRST, 1)}
_PLAIN = "|".join(word for word, law in LAWS.items() if not law.is_counted)
_COUNTED = "|".join(word for word, law in LAWS.items() if law.is_counted)
_WORDS = re.compile(rf"(?P<word>{_PLAIN})|(?P<kind>{_COUNTED})(?:\((\d{{1,4}})\)|:(\d{{1,4}}))")
_NUMBER = "0*[1-9][0-9]{0,3}"
PATTERN = rf"^({_PLAIN}|({_COUNTED})(\({_NUMBER}\)|:{_NUMBER}))$"
"""The same words, as a JSON Schema says them."""


def spellings(count: str) -> list[str]:
    """Return every word for a policy, the counted ones last and with their number so written."""
    known = sorted(LAWS, key=lambda word: LAWS[word].is_counted)
    return [word + count if LAWS[word].is_counted else word for word in known]


class MergeMode(StrEnum):
    """The fate of a step's changes."""

    CHOOSE = "choose"
    EACH = "each"
    NONE = "none"

    @property
    def lands(self) -> bool:
        """A change of the step may reach the target."""
        return self is not MergeMode.NONE

    @property
    def has_choice(self) -> bool:
        """One change of the step is chosen, and the others are discarded."""
        return self is MergeMode.CHOOSE


class ChooseBy(StrEnum):
    """The one who chooses between candidates."""

    HUMAN = "human"
    CHECK = "check"

    @property
    def is_automatic(self) -> bool:
        """The engine picks, so no human is awaited."""
        return self is not ChooseBy.HUMAN

    def pick(self, candidates: Sequence[T]) -> T | None:
        """Return the candidate to take, in worker order; None where a human chooses."""
        return candidates[0] if candidates and self is ChooseBy.CHECK else None


class Backoff(StrEnum):
    """The growth of the wait before a retry."""

    FIXED = "fixed"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"

    def growth(self, tries: int) -> float:
        """Return by how much the first wait has grown after so many tries."""
        match self:
            case Backoff.FIXED:
                return 1.0
            case Backoff.LINEAR:
                return float(tries)
            case Backoff.EXPONENTIAL:
                return 2.0 ** min(tries - 1, 30)
