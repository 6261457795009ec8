"""Read a log and the other tabs: move, search, unfold, copy."""

from collections.abc import Callable, Mapping
from functools import partial

from engine.messages.logs import LogKind
from tui.controllers import Going
from tui.keys.ideas import PAIRS
from tui.kit.deeds import is_edit
from tui.kit.screen import Board, Controller
from tui.kit.scrolled import Scrolled
from tui.kit.textbox import SearchLine
from tui.screens.worker.files import Files
from tui.screens.worker.lines import Item
from tui.screens.worker.logs import DETAILS, Log
from tui.screens.worker.tabs import LOG, TITLES, Attempts
from tui.words.ends import idea_of, no_further


class Reading(Controller):
    """Look at one worker: which tab, which attempt, and where in its log."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.log = Log()
        self.attempt: int | None = None
        self._searched_from = 0, True
        self.titles: Callable[[], Mapping[str, str]] = lambda: TITLES

    @property
    def tab(self) -> str:
        """The tab that is seen."""
        return self.session.tab

    def show(self, tab: str) -> None:
        """Turn to a tab."""
        self.session.tab = tab

    # Moving.

    def by_row(self, by: int) -> None:
        here = self.session.worker_view
        if self.tab == LOG:
            self.log.move(by)
        elif self.tab == Attempts.name and here and here.attempt:
            now = self.attempt or here.attempt
            self.attempt = max(min(now + by, here.attempt), 1)
        else:
            self._pane.scroll_relative(y=by, animate=False)

    @property
    def _pane(self) -> Scrolled:
        return self.screen.query_one(f"#{self.tab}", Scrolled)

    def by_half(self, by: int) -> None:
        self.by_row(by * (self.screen.size.height // 3))

    def by_page(self, by: int) -> None:
        self.by_row(by * (self.screen.size.height - 8))

    def by_end(self, by: int) -> None:
        if self.tab != LOG:
            self._pane.scroll_to(y=self._pane.max_scroll_y if by > 0 else 0, animate=False)
        elif by > 0:
            self.log.follow()
        else:
            self.log.first()

    def by_side(self, by: int) -> None:
        names = list(self.titles())
        self.show(names[(names.index(self.tab) + by) % len(names)])

    by_tab = by_side

    def by_next(self, by: int) -> None:
        query = self.log.query
        one, several = (f"{name} for /{query}" if query else "" for name in ("hit", "hits"))
        self._to(self.log.is_next, idea_of("next", by), one or "error", several)

    def by_unit(self, by: int) -> None:
        self._to(self.log.is_tool, idea_of("unit", by), "tool call")

    def by_turn(self, by: int) -> None:
        self.show(LOG)
        self._to(self.log.begins_turn, idea_of("turn", by), "message")

    def _to(self, wanted: Callable[[int], bool], idea: str, what: str, several: str = "") -> None:
        """Go to the next item that is wanted, or say why there is none."""
        log, by = self.log, PAIRS[idea][1]
        if not log.to(wanted, by):
            reason = no_further(what, by, log.all(wanted), log.cursor, plural=several)
            self.refuse(idea, reason)

    # Searching.

    def do_search(self) -> None:
        self.show(LOG)
        self.log.filter_hits(is_on=False)
        self._searched_from = self.log.cursor, self.log.is_following
        line = self.screen.query_one(SearchLine)
        line.value = ""
        line.display = True
        self.screen.set_focus(line)  # at once: the next key is for it

    def seek(self, text: str) -> None:
        """Go to the hit nearest to where the search began."""
        if text:
            self.log.search(text, self._searched_from[0])
        else:
            self._go_back()

    def take_search(self, text: str) -> None:
        """End the typing, and keep what was found."""
        self._end_search()
        if text and not self.log.search(text, self._searched_from[0]):
            self.screen.say_refused("search", f"nothing here contains {text!r}")

    def drop_search(self) -> None:
        """End the search where it began."""
        self._end_search()
        self._go_back()

    def _go_back(self) -> None:
        """Look where the search began."""
        self.log.query = ""
        self.log.cursor, is_following = self._searched_from
        if is_following:
            self.log.follow()

    def _end_search(self) -> None:
        line = self.screen.query_one(SearchLine)
        line.display = False
        self.screen.set_focus(None)
        line.let_keys_go()

    # Seeing.

    def do_follow(self) -> None:
        if self.log.is_following:
            self.log.hold()
        else:
            self.log.follow()

    def do_more(self) -> None:
        self.log.show(self.log.detail + 1)

    def do_less(self) -> None:
        self.log.show(self.log.detail - 1)

    def do_show_kinds(self) -> None:
        """Show only what a search finds, where there is one; else other kinds of line."""
        if self.log.query:
            self.log.filter_hits(is_on=not self.log.is_filtered)
        else:
            self.log.show((self.log.detail + 1) % len(DETAILS))

    def do_show_times(self) -> None:
        self.log.has_times = not self.log.has_times

    def do_show_long(self) -> None:
        self.log.is_wrapped = not self.log.is_wrapped

    def do_zoom(self) -> None:
        self.screen.toggle_class("-zoomed")

    def do_leave(self) -> None:
        if self.log.query:
            self.log.filter_hits(is_on=False)
            self.log.query = ""
        elif not self.log.is_following:
            self.log.follow()
        else:
            self.screen.does(Going).do_leave()

    def do_open(self) -> None:
        item = self.log.here
        if self.tab == Attempts.name:
            self.show(LOG)
        elif item and self.log.tool is item:
            self._open_tool(item)
        elif item and item.line.kind is LogKind.TOOL:  # opened, or a line of its diff
            self.log.toggle_fold()
        elif self.log.link:
            self.follow_link()
        elif not self.log.toggle_fold():
            self.refuse("open", "there is no link or fold under the cursor")

    def follow_link(self) -> None:
        """Show the file that is named under the cursor where it is in the diff."""
        self.session.diff_place = self.log.link
        self.screen.hand_on("diff")

    def _open_tool(self, item: Item) -> None:
        """Open what a call printed and, of one that writes a file, what that file's diff is now."""
        place = self.log.link if is_edit(item.line.text) else ""
        self.screen.begin(partial(self._opened, item, place), holds=True)

    async def _opened(self, item: Item, place: str) -> None:
        rows = await self.screen.does(Files).opened(place) if place else []
        if rows or item.folded:
            self.log.open_tool(item, rows)
        else:
            hint = f"{self.screen.key_of('diff')} opens the diff"
            self.refuse("open", "it printed nothing, and no change of it is left", hint)
        self.screen.draw()

    def do_copy(self) -> None:
        item = self.log.here
        self.screen.copy(item.line.text if item else "")
