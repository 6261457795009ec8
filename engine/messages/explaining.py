"""Define the question to an agent about candidates: who can be asked, and the words that come."""

from string import ascii_uppercase
from typing import ClassVar

from engine.messages.questions import Ask
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Explainer:
    """An agent that can explain what candidates do differently, and the rest of its budget.

    Attributes:
        usd: The dollars that are left; None where no limit is named.
        spent: The part of its budget that is used up, in words; empty while none is.
        is_asking: It is being asked now.
    """

    by: str
    requests: int = 0
    usd: float | None = None
    seconds: float = 0.0
    spent: str = ""
    is_asking: bool = False


@dataclass(frozen=True, kw_only=True)
class Explained:
    """An agent's words about candidates. They decide nothing, and nobody has checked them.

    Attributes:
        usd: The cost of the answer; None where the agent did not report it.
        read: The number of places that the agent could read, of all `places`.
        is_stopped: The question was ended before there was an answer.
    """

    by: str = ""
    text: str = ""
    usd: float | None = None
    seconds: float = 0.0
    read: int = 0
    places: int = 0
    is_stopped: bool = False


@dataclass(frozen=True)
class ExplainCandidates(Ask[Explained]):
    """Ask an agent what a step's candidates do differently; `stops` ends that question."""

    changes: ClassVar[bool] = True
    run: str
    step: str
    stops: bool = False


def letter_of(place: int) -> str:
    """Return what a candidate is called by its place: A to Z, then A1 to Z1, and so on."""
    again, at = divmod(place, len(ascii_uppercase))
    return f"{ascii_uppercase[at]}{again or ''}"
