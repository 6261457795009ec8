"""Hear what an agent answers to comments, and put it below them."""

import re
from collections.abc import Iterable, Mapping
from functools import partial

from engine.messages.logs import LogKind, LogPiece
from engine.messages.results import WorkerView
from tui.kit.screen import Board, Controller
from tui.screens.diff.pane import DiffPane
from tui.words.comments import Comment

_NUMBERED = re.compile(r"\s*(?:[-*] )?\**\[([0-9]{1,6})\]\**:?\s*(.*)")
_LONGEST = 2000
_MOST_ANSWERS = 20
"""A comment keeps so many, the newest: all of them are remembered and laid out."""
_NEWEST, _BURST = 2000, 50_000
"""So many lines of a log are looked through at first, and so many of what is new later."""
_NOTHING: tuple[str, int, float | None] = ("", 0, None)


class Answering(Controller):
    """Look through what the agent says since comments were sent to it."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._read: dict[tuple[str, int], int] = {}
        self._heard = _NOTHING
        self._is_reading = False

    def look(self, pane: DiffPane) -> None:
        """Read on where comments of this worker were sent, and it has said more since."""
        here, about = self.session.worker_view, self.session.about
        if here is None or not any(c.id and c.about == about for c in self.session.comments):
            return
        heard = (about, here.attempt, here.last_output_at)
        if heard != self._heard and not self._is_reading:
            self._heard, self._is_reading = heard, True
            self.screen.begin(partial(self._read_on, pane, self.run_id, here))

    async def _read_on(self, pane: DiffPane, run: str, here: WorkerView) -> None:
        try:
            await self._hear(pane, run, here)
        finally:
            self._is_reading = False

    async def _hear(self, pane: DiffPane, run: str, here: WorkerView) -> None:
        about = f"{run}/{here.worker}"
        after = self._read.get((about, here.attempt), 0)
        most = _BURST if after else _NEWEST
        found = await self.session.bridge.log(run, here.worker, after, most=most)
        if isinstance(found, str):
            self._heard = _NOTHING  # so that the next look asks again
            return
        self._read[about, here.attempt] = found.next_offset
        said = answers_in(found.lines.pieces)
        before = list(self.session.comments)
        after_all = [answered(c, said) if c.about == about else c for c in before]
        if after_all != before:
            self.session.comments[:] = after_all
            pane.lay_out()
            self.screen.draw()


def answers_in(pieces: Iterable[LogPiece]) -> Mapping[int, list[tuple[float, str]]]:
    """Return what was said to comments, by their numbers, and when.

    An answer begins with the comment's number, such as `[2]`, and goes on up to a blank line.
    """
    found: dict[int, list[tuple[float, str]]] = {}
    for piece in pieces:
        number = 0
        for line in piece.text.split("\n") if piece.kind is LogKind.SAYS else ():
            if begun := _NUMBERED.fullmatch(line):
                number = int(begun[1])
                found.setdefault(number, []).append((piece.at, begun[2][:_LONGEST]))
            elif not line.strip():
                number = 0
            elif number:
                at, text = found[number][-1]
                found[number][-1] = (at, f"{text}\n{line}".strip()[:_LONGEST])
    return found


def answered(comment: Comment, said: Mapping[int, list[tuple[float, str]]]) -> Comment:
    """Return a comment with what was said to it since it was sent."""
    new = [
        text
        for at, text in said.get(comment.id, ())
        if text and at >= comment.sent_at and text not in comment.answers
    ]
    answers = (*comment.answers, *new)[-_MOST_ANSWERS:]
    return comment._replace(answers=answers) if new and comment.id else comment
