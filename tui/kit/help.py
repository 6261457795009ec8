"""The keys of a screen as an overlay: by group, those that are grey with their reason, a legend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tui.ink import BOLD, KEY, LINE, MUTED, TEXT, Ink, Role, Row, Span, fit, words
from tui.kit.frames import framed
from tui.words.cutting import cut_end
from tui.words.looks import LEGEND, WALLS

_WIDEST = 132
_KEY = 11


class HelpEntry(NamedTuple):
    """One action: its group, its keys, what it does, and why not now if it cannot be done.

    `also` is found by a search too: the footer's word for it, say.
    """

    group: str
    keys: str
    text: str
    reason: str = ""
    also: str = ""


@dataclass
class HelpPage:
    """What the help page knows, what was typed into it, and how far it is scrolled."""

    title: str
    entries: Sequence[HelpEntry]
    query: str = ""
    top: int = 0

    def type(self, text: str) -> None:
        """Narrow the page by more text."""
        self.query += text
        self.top = 0

    def erase(self) -> None:
        """Take the last character back."""
        self.query = self.query[:-1]

    def move(self, by: int) -> None:
        """Scroll."""
        self.top = max(self.top + by, 0)

    def _found(self) -> list[HelpEntry]:
        wanted = self.query.casefold()
        return [
            entry
            for entry in self.entries
            if wanted in f"{entry.keys} {entry.text} {entry.reason} {entry.also}".casefold()
        ]

    def draw(self, cells: int, height: int) -> list[Row]:
        """The overlay in its frame."""
        width = min(cells - 4, _WIDEST)
        inner = width - 4
        columns = max(inner // 40, 1)
        share = (inner - 2 * (columns - 1)) // columns
        body = self._columns(columns, share)
        legend = _legend(inner)
        room = max(height - 8 - len(legend), 3)
        self.top = max(min(self.top, len(body) - room), 0)
        asked = Span(self.query, BOLD) if self.query else Span("type to search keys", MUTED)
        rows: list[Row] = [words(Span("> ", KEY), asked), (Span("─" * inner, LINE),)]
        shown = body[self.top : self.top + room]
        rows += [*shown, *[()] * (min(room, len(body)) - len(shown))]
        rows += [(Span("─" * inner, LINE),), *legend]
        more = "↓ for more, " if self.top + room < len(body) else ""
        return framed(
            rows,
            (width, len(rows) + 2),
            title=(Span("Keys", BOLD), Span(f" of {self.title}", MUTED)),
            ending=words(f"{more}esc closes"),
            is_focused=True,
            ground=Role.SURFACE,
        )

    def _columns(self, columns: int, share: int) -> list[Row]:
        """The groups one under the other, broken into columns of like height."""
        rows: list[Row] = []
        found = self._found()
        for group in dict.fromkeys(entry.group for entry in found):
            if rows:
                rows.append(())
            rows.append((Span(group, Ink(Role.MUTED, bold=True)),))
            rows += [_entry(entry, share) for entry in found if entry.group == group]
        if not rows:
            return [words("no key does that")]
        high = -(-len(rows) // columns)
        parts = [rows[start : start + high] for start in range(0, len(rows), high)]
        return [
            tuple(
                span
                for place, part in enumerate(parts)
                for span in (
                    Span("  " if place else ""),
                    *fit(part[i] if i < len(part) else (), share),
                )
            )
            for i in range(high)
        ]


def _entry(entry: HelpEntry, cells: int) -> Row:
    ink = MUTED if entry.reason else KEY
    said = f"{entry.text}: {entry.reason}" if entry.reason else entry.text
    room = cells - _KEY
    return (
        *fit((Span(entry.keys, ink),), _KEY),
        Span(cut_end(said, room), MUTED if entry.reason else TEXT),
    )


def _legend(cells: int) -> list[Row]:
    """The glyphs with their words, and the four walls."""
    rows: list[list[Span]] = [[]]
    used = 0
    for look in LEGEND:
        word = f" {look.word.lower()}  "
        if used + len(word) + 1 > cells:
            rows.append([])
            used = 0
        rows[-1] += [Span(look.glyph, Ink(look.role, bold=True)), Span(word, TEXT)]
        used += len(word) + 1
    walls = [Span("limits  ", MUTED)]
    for level, wall in WALLS.items():
        walls += [Span("━━━─", Ink(Role.METER)), Span(f"{wall} ", TEXT), Span(f"{level}  ", TEXT)]
    return [*(tuple(row) for row in rows), tuple(walls)]
