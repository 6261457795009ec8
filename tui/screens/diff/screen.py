"""Diff: one worker's change, hunk by hunk, live while it runs, against this and that."""

from collections.abc import Sequence

from engine.messages.commands import Seen
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS
from tui.ink import LINE, TEXT, Page, Row, Span, Zone, blank, fit, words
from tui.kit.screen import Board
from tui.kit.session import Session, identity_of
from tui.screens.diff.drops import Dropping
from tui.screens.diff.moves import Moving
from tui.screens.diff.page import FILES, FILES_FROM, SPLIT_FROM, diff_subject, edge_map, file_pane
from tui.screens.diff.reading import Reading
from tui.screens.diff.says import Commenting
from tui.words.figures import some
from tui.words.scene import Scene
from tui.words.sentences import nothing_here, sentence_of

_MODES = ("auto", "unified", "split")


class DiffScreen(Board):
    """A change against what it is compared with."""

    held = (Moving, Commenting, Dropping, Reading, *ON_WORKERS)
    kind = "diff"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.reading, self.dropping = self.does(Reading), self.does(Dropping)
        self.pane = self.reading.pane
        self._mode = "auto"
        self._is_zoomed = False
        self._files_at: list[int] = []

    def on_screen_resume(self) -> None:
        self.reading.arrive()
        self.reading.load_if_moved()
        super().on_screen_resume()

    def on_screen_suspend(self) -> None:
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

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        self.reading.load_if_moved()
        worker, diff = self.session.worker_view, self.pane.diff
        if worker is None or diff is None:
            said = self.reading.reason or (
                "asking for the diff" if worker else "there is no worker yet"
            )
            return Page(tuple(nothing_here(said, scene)))
        self.pane.set_left_out(worker.left_out)
        if not diff.files:
            return Page(((), words(f"  Nothing differs from {diff.against}.")))
        is_split = self._mode == "split" or (self._mode == "auto" and cells >= SPLIT_FROM)
        self.pane.set_split(is_split=is_split)
        has_files = cells >= FILES_FROM and not self._is_zoomed
        width = cells - (FILES + 5 if has_files else 2) - 2
        rows = self.pane.draw(width, height)
        edge = edge_map(self.pane, height)
        body = [
            (*fit(row, width), blank(1), mark, blank(1))
            for row, mark in zip(rows, edge, strict=True)
        ]
        zones = [Zone(cells - width - 2, 0, width, height, "pane")]
        if not has_files:
            return Page(tuple((blank(1), *row) for row in body), tuple(zones))
        listed, self._files_at = file_pane(
            diff, self.pane.shape, worker, here=self.pane.file, send_key=self.key_of("send")
        )
        at = self._files_at[self.pane.file] if self._files_at else 0
        top = max(at + 3 - height, 0)
        left = listed[top : top + height]
        zones += [
            Zone(0, y - top, FILES, 1, f"file:{n}")
            for n, y in enumerate(self._files_at)
            if y >= top
        ]
        bar = (blank(1), Span("│", LINE), blank(1))
        drawn = [
            (blank(1), *fit(left[y] if y < len(left) else (), FILES), *bar, *row)
            for y, row in enumerate(body)
        ]
        return Page(tuple(drawn), tuple(zones))

    def sentence(self, scene: Scene) -> Row:
        if self.pane.anchor is not None:
            return words(
                Span(f"{some(len(self.pane.range()), 'line')}. ", TEXT),
                "c comments there, esc leaves the range.",
            )
        if self.pane.query:
            hits = self.pane.hits()
            have = "line has" if hits == 1 else "lines have"
            return words(Span(f"/{self.pane.query}  ", TEXT), f"{hits} {have} it")
        worker, step = self.session.worker_view, self.session.step_view
        return sentence_of(worker, step, scene.now) if worker and step else ()

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        first = ("merge",) if here and here.phase is Phase.CONFLICTED else ()
        return (
            *first,
            *("mark", "down", "comment", "send", "no", "yes", "land", "select", "diff"),
            "show_split",
            *("more", "search"),
        )

    def seen(self, worker: WorkerView) -> Seen:
        """Name also the merge with the target, where that is what the diff shows."""
        diff = self.pane.diff
        return identity_of(worker, diff.result if diff and self.reading.against else "")

    def why_not(self, idea: str) -> str:
        if idea in {"yes", "land"} and self.reading.is_overtaken():
            return super().why_not(idea) or "its diff is being read"
        if idea in {"comment", "diff", "no", "no_wide", "against", "search"}:
            return self._why_not_here(idea)
        return super().why_not(idea)

    def _why_not_here(self, idea: str) -> str:
        if idea in {"no", "no_wide"}:
            return self.dropping.why_not(idea)
        if idea == "search":
            return ""  # it opens its box also while the diff is on its way: text follows it
        if idea in {"diff", "against"}:
            return "" if self.session.worker_view else "there is no worker"
        return "" if self.pane.diff else "there is no diff"

    def pointed(self, target: str, times: int) -> None:
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_file(int(rest))
        elif kind == "pane" and times > 1:
            self.perform("open")

    def label_of(self, idea: str) -> str:
        if idea in {"no", "no_wide"}:
            return self.dropping.label_of(idea, "")
        return super().label_of(idea)

    def place_here(self) -> tuple[str, int]:
        path, _, line = self.pane.path_and_line.rpartition(":")
        return (path, int(line)) if line.isdigit() and path else (self.pane.path_and_line, 0)

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
