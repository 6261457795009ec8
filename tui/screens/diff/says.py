"""Write comments into a diff, and send them to the agent."""

from collections.abc import Callable
from functools import partial

from engine.messages.commands import BeginFrom, RetryWorker, Steer
from engine.messages.diffs import ChangeDiff
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.reading import Reading
from tui.words.comments import Comment
from tui.words.figures import some

_TAKES_FEEDBACK = frozenset({Phase.REVIEWING, Phase.CONFLICTED, Phase.FAILED, Phase.CANCELLED})

_ANSWER = "If you answer one of these, begin with its number, such as [1]."


class Commenting(Controller):
    """Keep comments on lines and ranges until all of them are sent together."""

    @property
    def pane(self) -> DiffPane:
        """Return what is on screen."""
        return self.screen.does(Reading).pane

    def why_not(self, idea: str) -> str:
        return "there is no pending comment" if idea == "send" and not self._pending() else ""

    def _pending(self) -> list[Comment]:
        """Return the comments on this change that wait to be sent."""
        about = self.session.about
        return [c for c in self.session.comments if c.about == about and not c.is_sent]

    def do_comment(self) -> None:
        """On the line or range; a comment that stands there unsent is opened again."""
        spot = self.pane.spot()
        if spot is None:
            self.refuse("comment", "there is no line under the cursor")
            return
        old = self._pending_at(spot)
        note = "kept until you send your comments"
        title = f"{'answer' if self.pane.thread else 'comment'} on {spot.path}:{spot.number}"
        if old is not None:
            note = "empty text deletes the comment"
        writing = Writing(
            title,
            note,
            lambda text: self._comment(spot, old, text),
            key=title,
            may_be_empty=old is not None,
        )
        self.screen.write(writing, old.text if old else "")

    def _pending_at(self, spot: Comment) -> Comment | None:
        at = (self.session.about, spot.key, spot.line)
        pending = (c for c in self.session.comments if not c.is_sent)
        return next((c for c in pending if (c.about, c.key, c.line) == at), None)

    def delete(self) -> None:
        """Delete the thread under the cursor."""
        thread = self.pane.thread
        before = list(self.session.comments)
        after = [comment for comment in before if comment not in thread]
        self._set_comments(after)
        said = some(len(thread), "comment")
        self.session.remember(self._undoable(f"deleting {said}", before, after))
        self.screen.say(f"{said} deleted")

    def _comment(self, spot: Comment, old: Comment | None, text: str) -> None:
        before = list(self.session.comments)
        after = [comment for comment in before if comment is not old]
        if text:
            after.append(spot._replace(text=text, about=self.session.about))
        self._set_comments(after)
        self.pane.anchor = None
        said = "the comment" if text else "deleting the comment"
        self.session.remember(self._undoable(said, before, after))

    def _undoable(self, said: str, before: list[Comment], after: list[Comment]) -> Undoable:
        is_last = partial(self.session.has_comments, after)
        return Undoable(said, self._setter(before), self._setter(after), can_undo=is_last)

    def _setter(self, comments: list[Comment]) -> Callable[[], None]:
        return lambda: self._set_comments(comments)

    def _set_comments(self, comments: list[Comment]) -> None:
        self.session.comments[:] = comments
        self.pane.lay_out()

    def do_send(self) -> None:
        """All pending comments go to the agent: at once where it runs, else with a retry."""
        worker, pending = self.here(), self._pending()
        known = self.pane.known_keys()
        last = max((self.session.last_comment, *(each.id for each in self.session.comments)))
        numbered = {each: last + n for n, each in enumerate(pending, 1)}
        self.session.last_comment = last + len(pending)
        parts = [_as_words(each, n, is_stale=each.key not in known) for each, n in numbered.items()]
        text = "\n\n".join((*parts, _ANSWER))
        if worker.phase is not Phase.RUNNING:
            text = "\n\n".join(filter(None, (text, _left_out_words(self.pane.diff, worker))))
        command = self._carrier(worker, text)
        if command is None:
            self.refuse("send", f"{worker.worker} cannot get comments now")
            return

        now = self.session.clock()

        def sent() -> None:
            self._set_comments(
                [
                    c._replace(is_sent=True, id=numbered[c], sent_at=now) if c in numbered else c
                    for c in self.session.comments
                ]
            )

        self.screen.send(command, f"{some(len(pending), 'comment')} sent to {worker.worker}", sent)

    def _carrier(self, worker: WorkerView, text: str) -> Steer | RetryWorker | None:
        if worker.phase is Phase.RUNNING:
            return Steer(worker=worker.worker, run=self.run_id, text=text)
        if worker.phase in _TAKES_FEEDBACK:
            return RetryWorker(
                worker=worker.worker,
                run=self.run_id,
                mode=BeginFrom.CONTINUE,
                feedback=text,
                seen=self.screen.seen(worker),
            )
        return None


def _left_out_words(diff: ChangeDiff | None, worker: WorkerView) -> str:
    """Tell an agent which parts of its change the next attempt begins without."""
    out = set(worker.left_out)
    places = [
        f"{file.path}:{hunk.lines[0].new or hunk.lines[0].old or 1}"
        for file, keys in zip(diff.files if diff else (), diff.keys if diff else (), strict=True)
        for hunk, key in zip(file.hunks, keys, strict=True)
        if key in out
    ]
    if not out:
        return ""
    named = f": {', '.join(places)}" if places else ""
    return (
        f"I left {some(len(out), 'part')} of your change out{named}."
        " The working tree no longer has them; do not bring them back unless I ask for that above."
    )


def _as_words(comment: Comment, number: int, *, is_stale: bool) -> str:
    """A comment as an agent reads it: its number, where, the code, what is said of it."""
    place = f"[{number}] {comment.path}:{comment.number}"
    if patch := comment.patch():
        said = f"\n{comment.text}" if comment.text else ""
        return f"{place}\nMake this change of mine:\n{patch}{said}"
    code = "\n".join(f"> {line}" for line in comment.code.split("\n"))
    stale = " (as it was when this was written)" if is_stale else ""
    return f"{place}{stale}\n{code}\n{comment.text}"
