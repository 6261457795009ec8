"""Lead the eye through a diff: rows, hunks, files, hits; fold, mark and search."""

from functools import partial

from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.screens.diff.layout import Part
from tui.screens.diff.ordering import Ordering
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.picturing import Picturing
from tui.screens.diff.reading import Reading
from tui.words.ends import idea_of, no_further


class Moving(Controller):
    """Move the cursor of a diff, and change what of it is unfolded, seen and lit."""

    @property
    def pane(self) -> DiffPane:
        """Return what is on screen."""
        return self.screen.does(Reading).pane

    # Moving.

    def by_row(self, by: int) -> None:
        self.pane.move(by)

    def by_half(self, by: int) -> None:
        self.pane.move(by * (self.screen.size.height // 3))

    def by_page(self, by: int) -> None:
        self.pane.move(by * (self.screen.size.height - 8))

    def by_end(self, by: int) -> None:
        self.pane.move(by * len(self.pane.places))

    def by_side(self, by: int) -> None:
        self._to_part(Part.HUNK, by, "side")

    def by_hunk(self, by: int) -> None:
        self._to_part(Part.HUNK, by, "hunk")

    def by_unit(self, by: int) -> None:
        self._to_part(Part.FILE, by, "unit")

    def by_file(self, by: int) -> None:
        self._to_part(Part.FILE, by, "file")

    def _to_part(self, part: Part, by: int, way: str) -> None:
        if self.pane.diff is not None and not self.pane.to_part(part, by):
            rows = self.pane.rows_of(part)
            here = max((row for row in rows if row <= self.pane.cursor), default=-1)
            self.refuse(idea_of(way, by), no_further(str(part), by, rows, here))

    def by_next(self, by: int) -> None:
        pane, idea = self.pane, idea_of("next", by)
        if pane.diff is None:
            return
        if pane.query:
            if not pane.to_hit(by):
                what, several = (f"{name} for /{pane.query}" for name in ("hit", "hits"))
                reason = no_further(what, by, pane.hit_rows(), pane.cursor, plural=several)
                self.refuse(idea, reason)
        elif not pane.to_new(by):
            here = max((row for row in pane.heads if row <= pane.cursor), default=-1)
            self.refuse(idea, no_further("unseen hunk", by, pane.new_rows(), here))

    def by_scroll(self, by: int) -> None:
        self.pane.scroll(8 * by)

    # Searching.

    def do_search(self) -> None:
        onward, back, leave = map(self.screen.key_of, ("next", "previous", "leave"))
        note = f"{onward} and {back} go to the next and previous hit; {leave} ends the search"
        self.screen.write(Writing("search", note, self._search, key="search diff"))

    def _search(self, text: str) -> None:
        if self.pane.diff is None:
            self.screen.say_refused("search", "there is no diff yet")
            return
        self.pane.search(text)
        if not self.pane.to_hit(1) and not self.pane.to_hit(-1):
            self.pane.search("")
            self.screen.say_refused("search", f"this diff does not contain {text!r}")

    # Seeing.

    def do_open(self) -> None:
        picturing = self.screen.does(Picturing)
        if picturing.is_here:
            picturing.show()
        else:
            self.pane.toggle_fold()

    def do_mark(self) -> None:
        """The hunk was seen, or all of the file: on to the next one that was not."""
        keys = self.pane.keys_at(self.pane.place)
        if not keys:
            self.refuse("mark", "there is no hunk under the cursor")
            return
        before = set(self.session.seen)
        was_new = not before.issuperset(keys)
        after = before | set(keys) if was_new else before - set(keys)
        self._set_seen(after)
        what = "the mark on the hunk" if len(keys) == 1 else f"the marks on {len(keys)} hunks"
        changed = before ^ after
        toggle = partial(self._toggle_seen, changed)
        self.session.remember(Undoable(what, toggle, toggle))
        if was_new and not self.pane.to_new(1) and not self.pane.to_new(-1):
            self.screen.say("you have seen everything")

    def _toggle_seen(self, keys: set[str]) -> None:
        self._set_seen(self.session.seen ^ keys)

    def _set_seen(self, keys: set[str]) -> None:
        self.session.seen.symmetric_difference_update(self.session.seen ^ keys)
        self.pane.lay_out()

    def do_show_space(self) -> None:
        self.pane.toggle("ignores_blanks")

    def do_show_generated(self) -> None:
        self.pane.toggle("has_generated")

    def do_show_order(self) -> None:
        order = partial(self.screen.does(Ordering).order, self.pane)
        self.screen.begin(order, group="order", exclusive=True)

    def do_show_moved(self) -> None:
        self.pane.shape.open_moves.clear()
        self.pane.toggle("opens_moves")
        shown = "shown in full" if self.pane.shape.opens_moves else "folded"
        self.screen.say(f"moved code is {shown}")

    def do_show_long(self) -> None:
        self.pane.wraps = not self.pane.wraps
        self.pane.lay_out()
        self.screen.say(f"long lines {'are wrapped' if self.pane.wraps else 'are cut'}")

    def do_show_invisible(self) -> None:
        self.pane.shows_blanks = not self.pane.shows_blanks

    def do_select(self) -> None:
        self.pane.anchor = self.pane.cursor if self.pane.anchor is None else None

    def do_copy(self) -> None:
        self.screen.copy("\n".join(self.pane.range()))

    def do_copy_name(self) -> None:
        self.screen.copy(self.pane.path_and_line)
