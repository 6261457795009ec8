"""Lead the eye through conflicts: from one to the next, to files, through a page."""

from tui.controllers import Going
from tui.kit.screen import Board, Controller
from tui.kit.scrolled import Scrolled
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane
from tui.words.ends import idea_of, no_further

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

    def by_row(self, by: int) -> None:
        if self.is_page:
            page = self.screen.query_one("#conflict", Scrolled)
            page.go_to(page.top + by)
        else:
            self.pane.move(by)

    def by_page(self, by: int) -> None:
        self.by_row(by * (self.screen.size.height - 8 if self.is_page else 5))

    def by_half(self, by: int) -> None:
        self.by_row(by * (self.screen.size.height // 3 if self.is_page else 3))

    @property
    def is_page(self) -> bool:
        """Say if a page is read, of which the eye sees a part."""
        return self.is_whole or self.pane.merged is not None

    def by_side(self, by: int) -> None:
        self._to_matter(by, "side")

    def by_hunk(self, by: int) -> None:
        self._to_matter(by, "hunk")

    def _to_matter(self, by: int, way: str) -> None:
        pane = self.pane
        if pane.matters and not pane.to_matter(by):
            self.refuse(
                idea_of(way, by), no_further("conflict", by, range(len(pane.matters)), pane.at)
            )

    def by_end(self, by: int) -> None:
        self.pane.to(0 if by < 0 else len(self.pane.to_decide) - 1)

    def by_unit(self, by: int) -> None:
        self._to_file(by, "unit")

    def by_file(self, by: int) -> None:
        self._to_file(by, "file")

    def _to_file(self, by: int, way: str) -> None:
        here = self.pane.matter
        if here is not None and not self.pane.to_file(by):
            files = {matter.file for matter in self.pane.matters}
            self.refuse(idea_of(way, by), no_further("file", by, files, here.file))

    def by_next(self, by: int) -> None:
        pane = self.pane
        if not pane.to_open(by):
            opened = [at for at, matter in enumerate(pane.matters) if matter.is_open]
            self.refuse(idea_of("next", by), no_further("open conflict", by, opened, pane.at))

    def by_scroll(self, by: int) -> None:
        self.scroll = max(self.scroll + 8 * by, 0)

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

    def do_show_order(self) -> None:
        self.screen.begin(self.screen.does(Conflicts).order, group="order", exclusive=True)

    def do_diff(self) -> None:
        """Each side to the base, or side to side; when all is decided, the whole result."""
        if self.pane.shows_result:
            self.session.diff_against = "target"
            self.screen.go("diff")
            return
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
