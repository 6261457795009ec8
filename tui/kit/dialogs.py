"""Lay dialogs over a screen: a choice narrowed by typing, the keys of a screen, leaving."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from tui.ink import BOLD, KEY, LINE, MUTED, TEXT, Ink, Role, Row, Span, blank, fit, words
from tui.kit.ahead import KeysFree, TypeAhead
from tui.kit.inked import Inked, Painter, content_of
from tui.words.cutting import wrap
from tui.words.looks import LEGEND, LEVELS, WALLS

_KEY_CELLS, _HELP_KEY_CELLS = 8, 11
_AROUND_HELP = 7
_COLUMN, _MOST_COLUMNS = 42, 3
"""The least width of a column of the help; wide ones fold fewer of its sentences."""


class Dialog(ModalScreen[str | None]):
    """A dialog over a screen. Keys typed behind it wait until it is there, and until it is gone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,ctrl+c", "leave", "close"),
        ("ctrl+q", "app.quit", "leave the console"),
    ]
    AUTO_FOCUS = ""
    begins_in: ClassVar[str] = "Input, OptionList"
    """The part that hears keys first."""

    def __init__(self, title: Row, ahead: TypeAhead) -> None:
        super().__init__()
        self._heading = title
        self._ahead = ahead

    @property
    def painter(self) -> Painter:
        """The application, as far as this room knows it."""
        return cast("Painter", self.app)

    def titled(self, box: Vertical, ending: str = "") -> None:
        """Write the title of a box, and what its lower edge says."""
        box.border_title = content_of(self._heading, self.painter.palette)
        box.border_subtitle = Content(ending)

    def on_mount(self) -> None:
        """Let the keys that wait come here."""
        for line in self.query(Input):
            line.cursor_blink = False  # an idle console draws nothing
        self.set_focus(self.query(self.begins_in).first())
        self._ahead.release()
        self.app.post_message(KeysFree())

    def leave(self, result: str | None) -> None:
        """Close with a result; the keys behind it wait until it has been acted on."""
        self._ahead.hold()
        _ = self.dismiss(result)  # awaiting it here would wait for this very handler

    def action_leave(self) -> None:
        """Close without a result."""
        self.leave(None)


class Choice(NamedTuple):
    """One thing to pick; `reason` says why it cannot be picked now.

    `also` is found by a search and not shown: other words for it.
    """

    target: str
    title: str
    note: str = ""
    key: str = ""
    reason: str = ""
    also: str = ""


class Picker(Dialog):
    """A list of choices, narrowed by what is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", priority=True),
        Binding("down", "move(1)", priority=True),
        Binding("enter", "take", priority=True),
    ]

    def __init__(
        self, title: str, choices: Sequence[Choice], ahead: TypeAhead, hint: str = "type to search"
    ) -> None:
        super().__init__((Span(title, BOLD),), ahead)
        self._choices = choices
        self._found: list[Choice] = list(choices)
        self._query = ""
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Compose a line to type in over the list."""
        with Vertical(classes="box") as box:
            yield Input(placeholder=self._hint, compact=True)
            yield OptionList(*self._offered(), compact=True)
        self.titled(box, "esc closes")

    def _offered(self) -> list[Option]:
        palette = self.painter.palette
        return [Option(content_of(_choice_row(choice), palette)) for choice in self._found]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list as the text grows."""
        self._narrow(event.value)

    def _narrow(self, query: str) -> None:
        """Narrow the list to what answers."""
        if query == self._query or not self.query(OptionList):  # it was closed meanwhile
            return
        self._query = query
        scored = [(rank_of(query, choice), choice) for choice in self._choices]
        kept = [(rank, choice) for rank, choice in scored if rank is not None]
        self._found = [choice for _, choice in sorted(kept, key=lambda pair: pair[0])]
        found = self.query_one(OptionList)
        found.set_options(
            self._offered() or [Option(Content("nothing has that name"), disabled=True)]
        )
        found.highlighted = 0 if self._found else None
        count = f"{len(self._found)} of {len(self._choices)}" if query else "esc closes"
        self.query_one(".box", Vertical).border_subtitle = Content(count)

    def on_mount(self) -> None:
        """Begin with the first choice."""
        self.query_one(OptionList).highlighted = 0 if self._found else None

    def action_move(self, by: int) -> None:
        """Move the cursor of the list while the text keeps the focus; it stays inside."""
        found = self.query_one(OptionList)
        if self._found:
            found.highlighted = max(min((found.highlighted or 0) + by, len(self._found) - 1), 0)

    def action_take(self) -> None:
        """Take what the cursor stands on, in the list that the whole text leaves."""
        self._narrow(self.query_one(Input).value)
        self._take(self.query_one(OptionList).highlighted)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take what was clicked."""
        self._take(event.option_index)

    def _take(self, index: int | None) -> None:
        if index is not None and index < len(self._found):
            self.leave(self._found[index].target)


class Answers(Picker):
    """A few numbered answers: a number takes one at once, unless it is the text of another."""

    def __init__(self, title: str, choices: Sequence[Choice], ahead: TypeAhead) -> None:
        super().__init__(title, choices, ahead, "a number, or type to search")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take the answer of that number; any other text narrows the list."""
        numbered = [choice for choice in self._choices if choice.key == event.value]
        more = [choice for choice in self._choices if choice.key.startswith(event.value)]
        is_text = any(event.value in choice.title for choice in self._choices)
        if numbered and len(more) == 1 and not is_text:
            self.leave(numbered[0].target)
        else:
            self._narrow(event.value)


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
    """Return how well a choice answers a query, lower is better; None where it does not."""
    wanted = query.casefold().strip()
    if query and query == choice.key:
        return -1, 0
    title, whole = choice.title.casefold(), f"{choice.title} {choice.note} {choice.key}".casefold()
    if title.startswith(wanted):
        return 0, len(title)
    if wanted in whole:
        return 1, whole.index(wanted)
    if wanted in choice.also.casefold():
        return 2, 0
    at = -1
    for char in wanted:
        at = title.find(char, at + 1)
        if at < 0:
            return None
    return 3, at


class AskDialog(Dialog):
    """Ask once about several things, each on a row; what is left out is there with its reason."""

    begins_in = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer", "yes"),
        ("n,enter,q", "leave", "no"),
    ]

    def __init__(self, title: str, rows: Sequence[Row], ahead: TypeAhead) -> None:
        super().__init__((Span(title, BOLD),), ahead)
        self._rows = rows

    def compose(self) -> ComposeResult:
        """Compose the rows, as many as there is room for at once."""
        with Vertical(classes="box") as box, VerticalScroll(id="asked"):
            yield Inked(id="rows")
        self.titled(box, "y yes · esc no · ↑ ↓ scroll")

    def on_mount(self) -> None:
        """Show what it is about."""
        self.query_one("#rows", Inked).show(self._rows)

    def action_answer(self) -> None:
        """Answer with yes."""
        self.leave("y")


class TextPage(Dialog):
    """Show a long text over the screen, from its beginning or its end."""

    begins_in = "VerticalScroll"
    BINDINGS: ClassVar[list[BindingType]] = [("q,enter", "leave", "close")]

    def __init__(
        self, title: str, rows: Sequence[Row], ahead: TypeAhead, *, is_at_end: bool = False
    ) -> None:
        super().__init__((Span(title, BOLD),), ahead)
        self._rows = rows
        self._is_at_end = is_at_end

    def compose(self) -> ComposeResult:
        """Compose the rows, as many as there is room for at once."""
        with Vertical(classes="box") as box, VerticalScroll(id="asked"):
            yield Inked(id="rows")
        self.titled(box, "↑ ↓ scroll · esc closes")

    def on_mount(self) -> None:
        """Show the text."""
        self.query_one("#rows", Inked).show(self._rows)
        if self._is_at_end:
            self.query_one("#asked").scroll_end(animate=False)


class LeaveDialog(Dialog):
    """Leave the workers running, stop them, or stay; the first one is marked and harmless."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("l", "answer('l')"),
        ("s", "answer('s')"),
        ("q", "answer('l')"),
        Binding("enter", "take", priority=True),
    ]

    def __init__(self, live: int, ahead: TypeAhead, *, can_stop: bool) -> None:
        noun = "worker is" if live == 1 else "workers are"
        super().__init__((Span(f"{live} {noun} live", BOLD),), ahead)
        stop = [("s", "stop them", "their work is kept")] if can_stop else []
        self._answers = [
            ("l", "leave them running", "also q; plait attach reopens"),
            *stop,
            ("esc", "stay here", ""),
        ]

    def compose(self) -> ComposeResult:
        """Compose the answers under the question."""
        with Vertical(classes="box") as box:
            yield OptionList(*map(self._option, self._answers), compact=True)
            yield Inked(id="promise")
        self.titled(box)

    def on_mount(self) -> None:
        """Begin with the harmless answer, and say that nothing is lost."""
        self.query_one(Inked).show([(), words(" Nothing is lost either way.")])
        self.query_one(OptionList).highlighted = 0

    def _option(self, answer: tuple[str, str, str]) -> Option:
        key, title, note = answer
        row = words(*fit((Span(f" {key}", KEY),), 6), Span(f"{title:<20}", TEXT), note)
        return Option(content_of(row, self.painter.palette), id=key)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with what was clicked."""
        self.action_answer(event.option.id or "esc")

    def action_take(self) -> None:
        """Answer with what the mark stands on."""
        index = self.query_one(OptionList).highlighted or 0
        self.action_answer(self._answers[index][0])

    def action_answer(self, key: str) -> None:
        """Answer with a key; one that is not offered answers nothing."""
        if key in {offered for offered, _, _ in self._answers}:
            self.leave(None if key == "esc" else key)


class HelpEntry(NamedTuple):
    """One action: its group, its keys, what it does, and why not now if it cannot be done.

    `also` is found by a search too: the footer's word for it, say.
    """

    group: str
    keys: str
    text: str
    reason: str = ""
    also: str = ""


class HelpPage(Dialog):
    """The keys of a screen by group, those that are gray with their reason, and a legend."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", priority=True),
        Binding("down", "scroll(1)", priority=True),
        Binding("pageup", "scroll(-10)", priority=True),
        Binding("pagedown", "scroll(10)", priority=True),
        Binding("enter", "leave", priority=True),
    ]

    def __init__(self, title: str, entries: Sequence[HelpEntry], ahead: TypeAhead) -> None:
        super().__init__((Span("Keys", BOLD), Span(f" of {title}", MUTED)), ahead)
        self._entries = entries

    def compose(self) -> ComposeResult:
        """Compose a line to type in, the keys, and the legend under them."""
        with Vertical(classes="box") as box:
            yield Input(placeholder="type to search keys", compact=True)
            with VerticalScroll(id="found", can_focus=False):
                yield Inked(id="groups")
            yield Inked(id="legend")
        self.titled(box, "↑ ↓ scroll, esc closes")

    def on_resize(self) -> None:
        """Lay the keys out for the width there is."""
        self.call_after_refresh(self._draw)

    def on_input_changed(self) -> None:
        """Narrow the page to what answers."""
        self._draw()
        self.query_one("#found").scroll_home(animate=False)

    def action_scroll(self, by: int) -> None:
        """Scroll the keys while the text keeps the focus."""
        self.query_one("#found").scroll_relative(y=by, animate=False)

    def _draw(self) -> None:
        if not self.query(Input):
            return  # it was closed meanwhile
        found = found_in(self._entries, self.query_one(Input).value)
        groups = self.query_one("#groups", Inked)
        if cells := groups.content_size.width:
            rows = grouped(found, cells)
            legend = [(Span("─" * cells, LINE),), *_legend(cells)]
            room = self.size.height - len(legend) - _AROUND_HELP
            groups.show(rows)
            self.query_one("#found").styles.height = max(min(len(rows), room), 1)
            self.query_one("#legend", Inked).show(legend)


def found_in(entries: Sequence[HelpEntry], query: str) -> list[HelpEntry]:
    """Return the entries that a search finds, by keys, words and reasons."""
    wanted = query.casefold()
    return [
        entry
        for entry in entries
        if wanted in f"{entry.keys} {entry.text} {entry.reason} {entry.also}".casefold()
    ]


def grouped(found: Sequence[HelpEntry], cells: int) -> list[Row]:
    """Return the groups one under the other, broken between entries into columns of like height."""
    columns = max(min(cells // _COLUMN, _MOST_COLUMNS), 1)
    share = (cells - 2 * (columns - 1)) // columns
    pieces: list[list[Row]] = []
    for group in dict.fromkeys(entry.group for entry in found):
        head: list[Row] = [(), (Span(group, Ink(Role.MUTED, bold=True)),)]
        for entry in found:
            if entry.group == group:
                pieces.append([*head, *_entry(entry, share)])
                head = []
    if not pieces:
        return [words("no key matches")]
    parts = _in_columns(pieces, columns)
    return [
        tuple(
            span
            for place, part in enumerate(parts)
            for span in (Span("  " if place else ""), *fit(part[i] if i < len(part) else (), share))
        )
        for i in range(max(map(len, parts)))
    ]


def _in_columns(pieces: Sequence[list[Row]], columns: int) -> list[list[Row]]:
    """Share pieces out to columns as low as they can be; none begins with a blank row."""
    high = -(-sum(map(len, pieces)) // columns)
    while len(parts := _columns_of(pieces, high)) > columns:
        high += 1
    return parts


def _columns_of(pieces: Sequence[list[Row]], high: int) -> list[list[Row]]:
    parts: list[list[Row]] = [[]]
    for piece in pieces:
        if parts[-1] and len(parts[-1]) + len(piece) > high:
            parts.append([])
        parts[-1] += piece if parts[-1] or piece[0] else piece[1:]
    return parts


def _entry(entry: HelpEntry, cells: int) -> list[Row]:
    ink = MUTED if entry.reason else KEY
    said = f"{entry.text}: {entry.reason}" if entry.reason else entry.text
    look = MUTED if entry.reason else TEXT
    keys = fit((Span(entry.keys, ink),), _HELP_KEY_CELLS)
    more = (blank(_HELP_KEY_CELLS),)
    lines = wrap(said, cells - _HELP_KEY_CELLS)
    return [(*(more if n else keys), Span(line, look)) for n, line in enumerate(lines)]


def _legend(cells: int) -> list[Row]:
    """Return the glyphs with their words, and the four walls."""
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
        walls += [
            Span("━━─", Ink(Role.METER)),
            Span(f"{wall} ", TEXT),
            Span(f"{LEVELS[level][0]}  ", TEXT),
        ]
    return [*(tuple(row) for row in rows), tuple(walls)]
