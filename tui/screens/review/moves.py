"""Lead the eye through conflicts: from one to the next, to files, through a page."""

from tui.controllers import Going
from tui.kit.screen import Board, Controller
from tui.kit.scrolled import Rows
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane

_MODES = ("auto", "columns", "card")
_MOST_CONTEXT = 300


class Moving(Controller):
    """Move through conflicts and pages, and change how much of them is seen."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.mode = "auto"
        self.context = 3
        self.scroll = 0
        self.is_side_to_side = False
        self.is_zoomed = False
        self.is_whole = False

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    # Moving.

    def do_down(self) -> None:
        self._by(1)

    def do_up(self) -> None:
        self._by(-1)

    def _by(self, by: int) -> None:
        if self.is_page:
            page = self.screen.query_one("#conflict", Rows)
            page.scroll_to(y=page.top + by, animate=False, force=True)
        else:
            self.pane.move(by)

    def do_page_down(self) -> None:
        self._by(self.screen.size.height - 8 if self.is_page else 5)

    def do_page_up(self) -> None:
        self._by(8 - self.screen.size.height if self.is_page else -5)

    def do_half_down(self) -> None:
        self._by(self.screen.size.height // 3 if self.is_page else 3)

    def do_half_up(self) -> None:
        self._by(-(self.screen.size.height // 3) if self.is_page else -3)

    @property
    def is_page(self) -> bool:
        """Say if a page is read, of which the eye sees a part."""
        return self.is_whole or self.pane.merged is not None

    def do_left(self) -> None:
        self.pane.to_matter(-1)

    def do_right(self) -> None:
        self.pane.to_matter(1)

    def do_next_hunk(self) -> None:
        self.do_right()

    def do_previous_hunk(self) -> None:
        self.do_left()

    def do_first(self) -> None:
        self.pane.to(0)

    def do_last(self) -> None:
        self.pane.to(len(self.pane.to_decide) - 1)

    def do_unit_down(self) -> None:
        self.pane.to_file(1)

    def do_unit_up(self) -> None:
        self.pane.to_file(-1)

    def do_next_file(self) -> None:
        self.pane.to_file(1)

    def do_previous_file(self) -> None:
        self.pane.to_file(-1)

    def do_next(self) -> None:
        if not self.pane.to_open(1):
            self.refuse("next", "nothing is open any more")

    def do_previous(self) -> None:
        if not self.pane.to_open(-1):
            self.refuse("previous", "nothing is open any more")

    def do_scroll_left(self) -> None:
        self.scroll = max(self.scroll - 8, 0)

    def do_scroll_right(self) -> None:
        self.scroll += 8

    def do_more(self) -> None:
        self.context = min(self.context + (3 if self.is_page else 1), _MOST_CONTEXT)

    def do_less(self) -> None:
        self.context = max(self.context - (3 if self.is_page else 1), 0)

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_show_split(self) -> None:
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        self.screen.say(
            f"conflicts are shown {'by width' if self.mode == 'auto' else f'as {self.mode}'}"
        )

    def do_diff(self) -> None:
        """Each side against the base, or the sides against each other."""
        self.is_side_to_side = not self.is_side_to_side

    def do_open(self) -> None:
        self.is_whole = not self.is_whole

    def do_leave(self) -> None:
        if self.is_whole:
            self.is_whole = False
        elif self.pane.picking:
            self.pane.leave_lines()
        else:
            self.screen.does(Going).do_leave()

    def do_back(self) -> None:
        self.is_whole = False
        self.screen.does(Going).do_back()

    def do_copy(self) -> None:
        self.screen.copy(self.pane.preview() or "")

    def do_copy_name(self) -> None:
        file, hunk = self.pane.file, self.pane.hunk
        if file is not None:
            self.screen.copy(f"{file.path}:{hunk.line}" if hunk else file.path)
