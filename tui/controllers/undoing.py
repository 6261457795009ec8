"""Take back what was done last, and do it again."""

from functools import partial

from tui.ink import TEXT, Span, words
from tui.kit.screen import Controller
from tui.kit.session import Undoable


class Undoing(Controller):
    """Walk through what was done, back and forth."""

    def do_undo(self) -> None:
        landing = next(iter(self.session.landing), "")
        if landing:
            hint = "you can undo it once it has landed"
            self.refuse("undo", f"{landing} is landing", hint)
        elif (last := self.session.last_done) is None:
            self.refuse("undo", "there is nothing to undo")
        elif last.asks:
            self.screen.ask_first("undo", words(Span(last.asks, TEXT)), partial(self._undo, last))
        else:
            self._undo(last)

    def _undo(self, last: Undoable) -> None:
        """Take the newest thing back; it says itself what came of that where it asked first."""
        if last in self.session.done:
            self.session.done.remove(last)
        if not last.asks:
            self.screen.say(Span(f"undone: {last.said}", TEXT))
        last.undo()
        if last.redo is not None:
            self.session.undone.append(last)

    def do_redo(self) -> None:
        if not self.session.undone:
            self.refuse("redo", "there is nothing to redo")
            return
        last = self.session.undone.pop()
        if last.redo is not None:
            last.redo()
        self.session.done.append(last)
        self.screen.say(Span(f"redone: {last.said}", TEXT))
