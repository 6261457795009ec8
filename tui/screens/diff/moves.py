"""Where the eye goes in a diff, what is folded, seen and searched for."""

from functools import partial

from tui.controllers import ON_WORKERS
from tui.kit.screen import Board
from tui.kit.session import Session, Undoable
from tui.kit.textbox import Writing
from tui.screens.diff.layout import Part
from tui.screens.diff.pane import DiffPane

_MODES = ("auto", "unified", "split")


class DiffMoves(Board):
    """The keys of Diff that change nothing but what is looked at."""

    held = ON_WORKERS
    kind = "diff"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pane = DiffPane(seen=session.seen, comments=session.comments)
        self.mode = "auto"
        self.is_zoomed = False

    # Moving.

    def do_down(self) -> None:
        self.pane.move(1)

    def do_up(self) -> None:
        self.pane.move(-1)

    def do_half_down(self) -> None:
        self.pane.move(self.size.height // 3)

    def do_half_up(self) -> None:
        self.pane.move(-(self.size.height // 3))

    def do_page_down(self) -> None:
        self.pane.move(self.size.height - 8)

    def do_page_up(self) -> None:
        self.pane.move(-(self.size.height - 8))

    def do_first(self) -> None:
        self.pane.move(-len(self.pane.places))

    def do_last(self) -> None:
        self.pane.move(len(self.pane.places))

    def do_left(self) -> None:
        self.pane.to_part(Part.HUNK, -1)

    def do_right(self) -> None:
        self.pane.to_part(Part.HUNK, 1)

    def do_next_hunk(self) -> None:
        self.do_right()

    def do_previous_hunk(self) -> None:
        self.do_left()

    def do_unit_down(self) -> None:
        self.pane.to_part(Part.FILE, 1)

    def do_unit_up(self) -> None:
        self.pane.to_part(Part.FILE, -1)

    def do_next_file(self) -> None:
        self.do_unit_down()

    def do_previous_file(self) -> None:
        self.do_unit_up()

    def do_next(self) -> None:
        self._to_next(1)

    def do_previous(self) -> None:
        self._to_next(-1)

    def _to_next(self, by: int) -> None:
        way, key = ("down", "next") if by > 0 else ("up", "previous")
        if self.pane.query:
            if not self.pane.to_hit(by):
                self.say_refused(self.key_of(key), f"/{self.pane.query} is not further {way}")
        elif not self.pane.to_new(by):
            self.say_refused(self.key_of(key), f"no hunk further {way} is new")

    def do_scroll_left(self) -> None:
        self.pane.scroll(-8)

    def do_scroll_right(self) -> None:
        self.pane.scroll(8)

    # Searching.

    def do_search(self) -> None:
        note = "n and N go through the hits; esc ends the search"
        self.write(Writing("search", note, self._search, key="search diff"))

    def _search(self, text: str) -> None:
        if self.pane.diff is None:
            self.say_refused("search", "there is no diff yet")
            return
        self.pane.search(text)
        if not self.pane.to_hit(1) and not self.pane.to_hit(-1):
            self.pane.search("")
            self.say_refused("search", f"nothing in this diff has {text!r}")

    # Seeing.

    def do_open(self) -> None:
        self.pane.toggle_fold()

    def do_mark(self) -> None:
        """The hunk was seen: on to the next one that was not."""
        key = self.pane.key
        if not key:
            self.say_refused(self.key_of("mark"), "there is no hunk under the cursor")
            return
        was_new = key not in self.session.seen
        toggle = partial(self._toggle_seen, key)
        toggle()
        self.session.remember(Undoable("the mark on the hunk", toggle, toggle))
        if was_new and not self.pane.to_new(1) and not self.pane.to_new(-1):
            self.say("every hunk was seen")

    def _toggle_seen(self, key: str) -> None:
        self.session.seen.symmetric_difference_update({key})
        self.pane.lay_out()

    def do_show_split(self) -> None:
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        self.say(f"the diff is shown {'by width' if self.mode == 'auto' else self.mode}")

    def do_show_space(self) -> None:
        self.pane.toggle("ignores_blanks")

    def do_show_generated(self) -> None:
        self.pane.toggle("has_generated")

    def do_show_invisible(self) -> None:
        self.pane.shows_blanks = not self.pane.shows_blanks

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_select(self) -> None:
        self.pane.anchor = self.pane.cursor if self.pane.anchor is None else None

    def do_leave(self) -> None:
        if self.pane.anchor is not None:
            self.pane.anchor = None
        elif self.pane.query:
            self.pane.search("")
        else:
            self.hand_on("leave")

    def do_copy(self) -> None:
        self.copy("\n".join(self.pane.range()))

    def do_copy_name(self) -> None:
        self.copy(self.pane.path_and_line)

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.pane.path_and_line.rpartition(":")
        return (path, int(line)) if line.isdigit() and path else (self.pane.path_and_line, 0)
