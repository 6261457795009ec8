"""Overlays that are typed into: a list narrowed by a search, used by palette, workers and themes.

Plain state: keys are fed in, rows come out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, fit, words
from tui.kit.frames import framed
from tui.kit.lists import cursor_row

_MOST_ROWS = 14
_WIDEST = 84
_KEY_CELLS = 8


class Choice(NamedTuple):
    """One thing to pick; `reason` says why it cannot be picked now."""

    target: str
    title: str
    note: str = ""
    key: str = ""
    reason: str = ""


@dataclass
class Picker:
    """A list of choices, what was typed to narrow it, and where its cursor stands."""

    title: str
    choices: Sequence[Choice]
    query: str = ""
    index: int = 0
    hint: str = "type to search"
    found: list[Choice] = field(init=False)

    def __post_init__(self) -> None:
        self.found = list(self.choices)

    def type(self, text: str) -> None:
        """Narrow the list by more text."""
        self.query += text
        self._search()

    def erase(self) -> None:
        """Take the last character back."""
        self.query = self.query[:-1]
        self._search()

    def move(self, by: int) -> None:
        """Move the cursor; it stays inside the list."""
        self.index = max(min(self.index + by, len(self.found) - 1), 0)

    @property
    def current(self) -> Choice | None:
        """What the cursor stands on."""
        return self.found[self.index] if self.found else None

    def _search(self) -> None:
        scored = [(rank_of(self.query, choice), choice) for choice in self.choices]
        kept = [(rank, choice) for rank, choice in scored if rank is not None]
        self.found = [choice for _, choice in sorted(kept, key=lambda pair: pair[0])]
        self.index = 0

    def draw(self, cells: int, height: int) -> list[Row]:
        """The overlay in its frame, at most as large as the room there is."""
        width = min(cells - 4, _WIDEST)
        listed = max(min(_MOST_ROWS, height - 8), 1)
        top = max(min(self.index - listed // 2, len(self.found) - listed), 0)
        asked = Span(self.query, BOLD) if self.query else Span(self.hint, MUTED)
        rows: list[Row] = [
            words(Span("> ", KEY), asked),
            (Span("─" * (width - 4), Ink(Role.LINE)),),
        ]
        for place, choice in enumerate(self.found[top : top + listed], top):
            row = _choice_row(choice)
            rows.append(cursor_row(row, width - 4, is_focused=place == self.index))
        if not self.found:
            rows.append(words("nothing of that name"))
        rows += [()] * (min(listed, len(self.choices)) + 2 - len(rows))
        count = f"{len(self.found)} of {len(self.choices)}" if self.query else "esc closes"
        title = (Span(self.title, BOLD),)
        return framed(
            rows,
            (width, len(rows) + 2),
            title=title,
            ending=words(count),
            is_focused=True,
            ground=Role.SURFACE,
        )


def _choice_row(choice: Choice) -> Row:
    if choice.reason:
        return words(
            *fit((Span(choice.key, MUTED),), _KEY_CELLS), choice.title, f"  {choice.reason}"
        )
    note = f"  {choice.note}" if choice.note else ""
    return (
        *fit((Span(choice.key, KEY),), _KEY_CELLS),
        Span(choice.title, TEXT),
        Span(note, MUTED),
    )


def rank_of(query: str, choice: Choice) -> tuple[int, int] | None:
    """How well a choice answers a query, lower is better; None where it does not."""
    wanted = query.casefold().strip()
    title, whole = choice.title.casefold(), f"{choice.title} {choice.note} {choice.key}".casefold()
    if title.startswith(wanted):
        return 0, len(title)
    if wanted in whole:
        return 1, whole.index(wanted)
    at = -1
    for char in wanted:
        at = title.find(char, at + 1)
        if at < 0:
            return None
    return 2, at
