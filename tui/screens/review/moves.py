"""The keys of Review that go somewhere, and those that take something."""

from engine.messages.commands import (
    ConfirmAnswer,
    ForgetAnswer,
    RedoChoice,
    ResolutionAction,
    UndoChoice,
)
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.screens.review.offers import Offer
from tui.screens.review.texts import ReviewTexts

_MODES = ("auto", "columns", "card")
_MOST_CONTEXT = 300


class ReviewMoves(ReviewTexts):
    """Where the eye goes, and what is taken from under it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.mode = "auto"
        self.context = 3
        self.scroll = 0
        self.is_side_to_side = False
        self.is_zoomed = False
        self.top: int | None = None
        self.merged_top = 0

    # Moving.

    def do_down(self) -> None:
        self._by(1)

    def do_up(self) -> None:
        self._by(-1)

    def _by(self, by: int) -> None:
        if self.pane.merged is not None:
            self.merged_top = max(self.merged_top + by, 0)
        elif self.top is None:
            self.pane.move(by)
        else:
            self.top = max(self.top + by, 0)

    def do_page_down(self) -> None:
        self._by(self.size.height - 8 if self._is_page else 5)

    def do_page_up(self) -> None:
        self._by(8 - self.size.height if self._is_page else -5)

    def do_half_down(self) -> None:
        self._by(self.size.height // 3 if self._is_page else 3)

    def do_half_up(self) -> None:
        self._by(-(self.size.height // 3) if self._is_page else -3)

    @property
    def _is_page(self) -> bool:
        """A page is read, of which the eye sees a part."""
        return self.top is not None or self.pane.merged is not None

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
            self.say_refused(self.key_of("next"), "nothing is open any more")

    def do_previous(self) -> None:
        if not self.pane.to_open(-1):
            self.say_refused(self.key_of("previous"), "nothing is open any more")

    def do_scroll_left(self) -> None:
        self.scroll = max(self.scroll - 8, 0)

    def do_scroll_right(self) -> None:
        self.scroll += 8

    def do_more(self) -> None:
        self.context = min(self.context + (3 if self._is_page else 1), _MOST_CONTEXT)

    def do_less(self) -> None:
        self.context = max(self.context - (3 if self._is_page else 1), 0)

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_show_split(self) -> None:
        self.mode = _MODES[(_MODES.index(self.mode) + 1) % len(_MODES)]
        self.say(f"conflicts are shown {'by width' if self.mode == 'auto' else f'as {self.mode}'}")

    def do_diff(self) -> None:
        """Each side against the base, or the sides against each other."""
        self.is_side_to_side = not self.is_side_to_side

    def do_open(self) -> None:
        self.top = 0 if self.top is None else None

    def do_leave(self) -> None:
        if self.top is not None:
            self.top = None
        elif self.pane.picking:
            self.pane.leave_lines()
        else:
            self.hand_on("leave")

    # Taking.

    def do_take_target(self) -> None:
        self._take_by("take_target")

    def do_take_incoming(self) -> None:
        self._take_by("take_incoming")

    def do_take_both(self) -> None:
        self._take_by("take_both")

    def do_take_both_reversed(self) -> None:
        self._take_by("take_both_reversed")

    def do_take_base(self) -> None:
        self._take_by("take_base")

    def do_merge(self) -> None:
        self._take_by("merge")

    def do_no(self) -> None:
        self._take_by("no")

    def _take_by(self, idea: str) -> None:
        offer = self.pane.offer_of(idea)
        if offer is not None:
            self._take(offer)

    def do_mark(self) -> None:
        """Take what is under the cursor: a proposal, or a single line."""
        if self.pane.picking:
            self.pane.toggle_line()
        elif self.pane.offer is not None:
            self._take(self.pane.offer)

    def _take(self, offer: Offer) -> None:
        actions: tuple[ResolutionAction, ...] = (offer.action,)
        if offer.remembered:
            actions = (*actions, ConfirmAnswer(key=offer.remembered))
        self.decide(actions, offer.label, goes_on=True)

    def do_undo(self) -> None:
        """Take the last decision back; without conflicts, what was done last."""
        if self.pane.raw is None:
            self.hand_on("undo")
            return
        self.decide((UndoChoice(),), "taken back", shows_changed=True)

    def do_redo(self) -> None:
        if self.pane.raw is None:
            self.hand_on("redo")
            return
        self.decide((RedoChoice(),), "decided again", shows_changed=True)

    def do_forget(self) -> None:
        offer = self.pane.offer
        if offer is not None:
            self.decide((ForgetAnswer(key=offer.remembered),), "never offered again")


def keys_of(screen: Board) -> dict[str, str]:
    """The keys of this screen's ideas, as they are written on it."""
    keymap = screen.session.keymap
    return {
        action_id.rpartition(".")[2]: keymap.shown(action_id)
        for action_id in keymap.keys
        if action_id.startswith(("everywhere.", "review."))
    }
