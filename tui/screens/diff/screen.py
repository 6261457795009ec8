"""Diff: one worker's change, hunk by hunk, live while it runs, against this and that."""

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult

from engine.messages.commands import Seen
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS, CheckOutput, Workers
from tui.ink import TEXT, Row, Span, words
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session, identity_of
from tui.screens.diff.answers import Answering
from tui.screens.diff.drops import Dropping
from tui.screens.diff.edits import Editing
from tui.screens.diff.moves import Moving
from tui.screens.diff.ordering import Ordering
from tui.screens.diff.outlining import Outlining
from tui.screens.diff.page import SPLIT_FROM, Beside, diff_subject, file_pane, file_strip
from tui.screens.diff.picturing import Picturing
from tui.screens.diff.reading import Reading
from tui.screens.diff.result import Result
from tui.screens.diff.says import Commenting
from tui.screens.diff.view import DiffView
from tui.words.figures import number_in, some
from tui.words.scene import Scene
from tui.words.sentences import nothing_here

_MODES = ("auto", "unified", "split")


class DiffScreen(Board):
    """A change against what it is compared with."""

    CSS_PATH = Path(__file__).with_name("diff.tcss")
    held = (
        *(Moving, Commenting, Answering, Editing, Dropping, Ordering, Outlining, Picturing),
        *(Reading, Result, CheckOutput, *ON_WORKERS),
    )
    kind = "diff"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.reading, self.dropping = self.does(Reading), self.does(Dropping)
        self.editing = self.does(Editing)
        self.pane = self.reading.pane
        self._mode = "auto"
        self._is_zoomed = False

    def on_screen_resume(self) -> None:
        self.reading.arrive()
        self.reading.load_if_moved()

    def gone(self) -> None:
        self.reading.leave()

    def point_at(self, worker: str) -> None:
        self.reading.leave()
        super().point_at(worker)
        self.reading.arrive()

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return super().subject(scene, cells)
        return diff_subject(worker, step, self.pane.diff, seen=self.session.seen, cells=cells)

    def compose_panes(self) -> ComposeResult:
        with Panes(id="diff"):
            yield self.widths.beside(Rows(id="files"), 1)
            yield DiffView(self.pane)

    def draw_panes(self, scene: Scene) -> None:
        self.reading.load_if_moved()
        self.does(Answering).look(self.pane)
        worker, diff, view = self.session.worker_view, self.pane.diff, self.query_one(DiffView)
        self.set_class(not self.pane.places, "-bare")
        self.set_class(self._is_zoomed, "-zoomed")
        self.set_class(diff is not None and len(diff.files) == 1, "-alone")
        if worker and diff:
            is_wide = self._mode == "auto" and self.size.width >= SPLIT_FROM
            self.pane.set_left_out(worker.left_out)
            self.pane.set_split(is_split=self._mode == "split" or is_wide)
        view.instead = self._instead(scene)
        view.update()
        files = self.query_one("#files", Rows)
        files.styles.max_height = (
            len(diff.files) + 1 if diff and self.has_class("-narrow") else None
        )
        if worker and diff and diff.files and files.size:
            send = self.key_of("send")
            here = self.pane.file
            shape = self.pane.shape
            rows, places = (
                file_strip(diff, shape, worker, here=here, cells=files.cells)
                if self.has_class("-narrow")
                else file_pane(Beside(diff, shape, files.cells), worker, here=here, send_key=send)
            )
            files.show(rows, range(places[here], places[here] + 3))

    def _instead(self, scene: Scene) -> Sequence[Row]:
        """Return what is said where there are no rows of a diff."""
        diff = self.pane.diff
        if self.session.worker_view and diff:
            return ((), words(f"  Nothing differs from {diff.against}."))
        asking = "loading the diff" if self.session.worker_view else "there is no worker yet"
        return nothing_here(self.reading.reason or asking, scene)

    def on_diff_view_moved(self) -> None:
        """Draw what is about the place that the mouse went to."""
        self.draw()

    def on_diff_view_opened(self) -> None:
        """Fold or unfold what was clicked twice."""
        self.perform("open")
        self.draw()

    def sentence(self, scene: Scene) -> Row:
        if self.pane.anchor is not None:
            comment, leave = self.key_of("comment"), self.key_of("leave")
            follows = f"{comment} comments on it, {leave} leaves the range."
            return words(Span(f"{some(len(self.pane.range()), 'line')}. ", TEXT), follows)
        if self.pane.query:
            hits = self.pane.hits()
            have = "line has" if hits == 1 else "lines have"
            return words(Span(f"/{self.pane.query}  ", TEXT), f"{hits} {have} it")
        return self.does(Workers).sentence(self.session.worker_view, scene.now)

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        first = ("merge",) if here and here.phase is Phase.CONFLICTED else ()
        picture = ("open",) if self.does(Picturing).is_here else ()
        return (
            *(*first, *picture),
            *("mark", "down", "comment", "edit", "send", "no", "yes", "land", "select", "diff"),
            "show_split",
            *("more", "search"),
        )

    def seen(self, worker: WorkerView) -> Seen:
        """Name also the merge with the target, where that is what the diff shows."""
        diff = self.pane.diff
        return identity_of(worker, diff.result if diff and self.reading.against else "")

    def why_not(self, idea: str) -> str:
        if idea == "yes" and self.editing.suggestion:
            return self.editing.why_not("edit")
        here = self.session.worker_view
        if idea == "land" and here and here.phase is Phase.CONFLICTED:
            return self.does(Result).why_not(idea)
        if idea in {"yes", "land"} and self.reading.is_overtaken():
            return super().why_not(idea) or "its diff is loading"
        if idea in {"edit", "edit_all"}:
            return self.editing.why_not(idea)
        if idea in {"comment", "diff", "no", "no_wide", "against", "search", "show_order"}:
            return self._why_not_here(idea)
        return super().why_not(idea)

    def _why_not_here(self, idea: str) -> str:
        if idea == "no" and self.pane.thread:
            return ""
        if idea in {"no", "no_wide"}:
            return self.dropping.why_not(idea)
        if idea == "search":
            return ""  # it opens its box also while the diff is on its way: text follows it
        if idea in {"diff", "against"}:
            return "" if self.session.worker_view else "there is no worker"
        return "" if self.pane.diff else "there is no diff"

    def pointed(self, target: str, times: int) -> None:
        del times
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_file(int(rest))

    def label_of(self, idea: str) -> str:
        if idea == "no" and self.pane.thread:
            return "delete comment"
        if idea in {"no", "no_wide"}:
            return self.dropping.label_of(idea, "")
        if idea == "yes" and self.editing.suggestion:
            return "apply"
        if idea == "open" and self.does(Picturing).is_here:
            return "picture"
        return super().label_of(idea)

    def do_yes(self) -> None:
        """Apply the suggestion under the cursor; without one approve the change."""
        if suggestion := self.editing.suggestion:
            self.editing.apply(suggestion)
        else:
            self.hand_on("yes")

    def do_no(self) -> None:
        """Delete the comments under the cursor; elsewhere leave the hunk out."""
        if self.pane.thread:
            self.does(Commenting).delete()
        else:
            self.hand_on("no")

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.pane.path_and_line.rpartition(":")
        number = number_in(line)
        return (path, number) if number is not None and path else (self.pane.path_and_line, 0)

    # Seeing.

    def do_show_split(self) -> None:
        self._mode = _MODES[(_MODES.index(self._mode) + 1) % len(_MODES)]
        self.say(f"the diff is shown {'by width' if self._mode == 'auto' else self._mode}")

    def do_zoom(self) -> None:
        self._is_zoomed = not self._is_zoomed

    def do_leave(self) -> None:
        if self.pane.anchor is not None:
            self.pane.anchor = None
        elif self.pane.query:
            self.pane.search("")
        else:
            self.hand_on("leave")
