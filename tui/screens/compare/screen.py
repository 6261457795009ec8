"""Compare: the candidates of a step beside each other; one is chosen, or hunks of any are woven."""

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from engine.messages.commands import Seen
from engine.messages.results import WorkerView
from tui.controllers import ON_WORKERS, Deciding
from tui.ink import BOLD, TEXT, Ink, Role, Row, Span, blank, fit, words
from tui.kit.inked import Head, Inked
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session, identity_of
from tui.screens.compare.candidates import Candidates
from tui.screens.compare.explaining import Explaining
from tui.screens.compare.page import (
    NAMES,
    compare_subject,
    figures_head,
    figures_of,
    first_column,
    hunk_rows,
    hunks_head,
    widths,
)
from tui.screens.compare.pair import code_rows, context_rows, result_row, side_rows
from tui.screens.compare.weaving import Weaving
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.view import DiffView
from tui.words.ends import idea_of, no_further
from tui.words.scene import Scene
from tui.words.sentences import nothing_here

_HUNK = frozenset({"mark", "open", "copy"})
_TABLE = frozenset({"next", "previous", "diff", "merge_all", "left", "right", "no_wide"})
_WEAVES = frozenset({"no", "check", "merge"})
_DECIDES = frozenset({"yes", "land"})
_SPLIT_FROM = 140
_PAIR = 2
_LEAST_SIDES, _LEAST_SIDES_LOW = 7, 3
_FAR = 1_000_000
_NUMBERS = 6
"""The cells of line numbers: they are not copied."""


class Column(Head):
    """A candidate's figures, or what they are called."""


class CompareScreen(Board):
    """Figures and hunks of every candidate; `yes` chooses the one under the cursor."""

    CSS_PATH = Path(__file__).with_name("compare.tcss")
    held = (Weaving, Explaining, Candidates, *ON_WORKERS)
    kind = "compare"
    opens_diff = "go_diff"
    """Here `diff` sets two candidates against each other."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.candidates, self.weaving = self.does(Candidates), self.does(Weaving)
        self.explaining = self.does(Explaining)
        self.pane = self.candidates.pane
        self.is_whole = False

    def on_screen_resume(self) -> None:
        self.candidates.load_anew()

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self.candidates.look_at(worker)

    def seen(self, worker: WorkerView) -> Seen:
        """Name the change that the table shows: what came since is not on screen."""
        return self.candidates.of_table.get(worker.worker) or identity_of(worker)

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        run, step = scene.run, self.candidates.step
        waiting = [
            worker.worker
            for other in (run.steps if run else ())
            if step and step.name in other.dependencies
            for worker in other.workers
            if not worker.phase.is_settled
        ]
        return compare_subject(self.pane, waiting, cells) or super().subject(scene, cells)

    def compose_panes(self) -> ComposeResult:
        """Compose the table, a page in place of it, and two changes against each other."""
        with Panes(id="compare", classes="body"):
            with Vertical(id="table"):
                with Horizontal(id="figures"):
                    yield Column(id="titles")
                yield Inked(id="head")
                yield Rows(id="hunks")
                with Horizontal(id="sides"):
                    yield self.widths.beside(Rows(id="left", lead=_NUMBERS), 1)
                    yield Rows(id="right", lead=_NUMBERS)
                yield Column(id="result")
            yield Rows(id="page")
            with Vertical(id="pair"):
                yield Inked(id="pair-head")
                yield DiffView(DiffPane())

    def draw_panes(self, scene: Scene) -> None:
        self.candidates.load_if_moved()
        pair, page = self.candidates.pair, self.query_one("#page", Rows)
        is_page = self.pane.table is None or self.is_page
        self.set_class(pair is not None, "-pairs")
        self.set_class(pair is None and is_page, "-page")
        if pair is not None:
            self._draw_pair(pair)
        elif self.pane.table is None:
            asking = "loading the candidates"
            there_is = asking if self.candidates.step else "no step has candidates"
            page.show(nothing_here(self.candidates.reason or there_is, scene), of="")
        elif self.explaining.is_shown:
            page.show(self.explaining.rows(page.cells - 1), of="explained")
        elif self.is_whole:
            page.show(self._whole_hunk(page.cells), of=self.pane.at)
        else:
            self._draw_table()

    @property
    def is_page(self) -> bool:
        """Say if a page is read in place of the table: a hunk in full, or an agent's words."""
        return self.is_whole or self.explaining.is_shown

    def _draw_table(self) -> None:
        self._draw_figures()
        hunks, cells = self.query_one("#hunks", Rows), self.size.width
        self.query_one("#head", Inked).show([hunks_head(self.pane, cells)])
        rows, here = hunk_rows(self.pane, cells)
        height, is_tall = self.query_one("#table").size.height, self.has_class("-tall")
        figures = min(len(self.query_one("#titles", Column).rows), height // 2)
        least = _LEAST_SIDES if is_tall else max(height // 4, _LEAST_SIDES_LOW)
        hunks.styles.max_height = max(height - figures - 2 - 2 * is_tall - least, 1)
        hunks.show(rows, range(max(here - 1, 0), here + 1))  # with its file
        left, right = sorted((self.pane.column, self.pane.other))
        self._draw_side("#left", left, right)
        self._draw_side("#right", right, left)
        self.query_one("#right").display = left != right
        self.query_one("#left").set_class(left == right, "-lone")
        self.query_one("#result", Column).show([result_row(self.pane, cells)])

    def _draw_side(self, pane: str, column: int, other: int) -> None:
        side = self.query_one(pane, Rows)
        cells = side.content_size.width
        side.show(side_rows(self.pane, column, other, cells), of=(self.pane.at, column))

    def _draw_figures(self) -> None:
        """Draw a column for each candidate that there is room for."""
        self.pane.name_cells = self.session.widths.get(NAMES, 0)
        figures, titles = self.query_one("#figures"), self.query_one("#titles", Column)
        name, room, _ = widths(self.pane, self.size.width)
        titles.styles.width = name
        titles.show(figures_head(self.pane, name))
        columns = [*figures.query(Column).exclude("#titles")]
        if missing := len(self.pane.rows) - len(columns):
            new = [Column() for _ in range(missing)]
            _ = figures.mount(*new)
            columns += new
        first = first_column(self.pane, len(room))
        for at, column in enumerate(columns):
            column.display = first <= at < first + len(room)
            if column.display:
                width = room[at - first]
                column.styles.width = width
                column.does = f"column:{at}"
                column.show(figures_of(self.pane, at, width))

    def _draw_pair(self, pair: DiffPane) -> None:
        """Draw two candidates' whole changes against each other."""
        diff = self.key_of("diff")
        has_more = len(self.pane.rows) > _PAIR or self.pane.taken
        more = f", {diff} goes to the next one" if has_more else ""
        said = Span(f" {self.candidates.pair_said}", BOLD)
        self.query_one("#pair-head", Inked).show(
            [words(said, f"   {self.key_of('leave')} closes{more}"), ()]
        )
        pair.set_split(is_split=self.size.width >= _SPLIT_FROM)
        view = self.query_one(DiffView)
        view.pane = pair
        view.instead = (words(" They made the same change."),)
        view.update()

    def on_diff_view_moved(self) -> None:
        """Draw the cursor where the mouse went to."""
        self.draw()

    def on_diff_view_opened(self) -> None:
        """Fold or unfold what was clicked twice."""
        self.query_one(DiffView).pane.toggle_fold()
        self.draw()

    def _whole_hunk(self, cells: int) -> list[Row]:
        """Every candidate's side of the hunk under the cursor, one under the other."""
        spot = self.pane.spot
        if spot is None:
            return []
        closes = f"   {self.key_of('leave')} closes"
        rows: list[Row] = [words(Span(f" {spot.path}:{spot.line}", BOLD), closes), ()]
        for hunk in spot.hunks:
            who = ", ".join(hunk.alike or hunk.candidates)
            taken = self.pane.is_taken(spot, hunk)
            mark = Span("  ■ taken", Ink(Role.ACCENT, bold=True)) if taken else Span("")
            rows.append(words(Span(f" {who}", TEXT), mark, f"  {hunk.what}"))
            lines = (
                *context_rows(hunk.before, cells - 2),
                *code_rows(hunk, None, cells - 2),
                *context_rows(hunk.after, cells - 2),
            )
            rows += [(blank(1), *row) for row in lines]
            rows.append(())
        rows.append(words(" before"))
        rows += [words(f"       {line.rstrip()}") for line in spot.hunks[0].old]
        return [fit(row, cells) for row in rows]

    def sentence(self, scene: Scene) -> Row:
        del scene
        row = self.pane.row
        if row is None:
            return ()
        key = self.key_of("yes")
        refused = self.why_not("yes")
        if refused:
            return words(Span(f"{row.worker} cannot be chosen: ", TEXT), f"{refused}.")
        return words(
            Span(f"{key} chooses all of {row.worker}. ", TEXT),
            "The others stay on their branches.",
        )

    def hints(self) -> Sequence[str]:
        if self.pane.table is None:
            return ("go_fleet",)
        if self.explaining.is_shown:
            return ("down", "leave", "explain", "yes")
        if self.candidates.pair is not None or self.is_whole:
            return ("down", "leave", "diff", "yes")
        return (
            "down",
            "mark",
            "merge_all",
            "no",
            "yes",
            "diff",
            "next",
            "check",
            "merge",
            "open",
            "explain",
            "no_wide",
        )

    def why_not(self, idea: str) -> str:
        is_here = idea in _HUNK | _TABLE | _WEAVES
        if (is_here or idea in _DECIDES) and self.pane.table is None:
            return "there are no candidates"
        if idea in _HUNK and self.pane.hunk is None:
            name = self.pane.row.worker if self.pane.row else "the candidate"
            return f"{name} changed nothing here"
        return self.weaving.why_not(idea) if is_here else super().why_not(idea)

    def label_of(self, idea: str) -> str:
        action = self.action(idea)
        return self.explaining.label_of(idea, action.label) if action else ""

    def pointed(self, target: str, times: int) -> None:
        """Go to the place or the candidate that was clicked; two clicks open the place."""
        kind, *places = target.split(":")
        numbers = [int(place) for place in places]
        if kind == "column":
            self.pane.column = numbers[0]
        else:
            self.pane.at, self.pane.column = numbers[0], (*numbers[1:], self.pane.column)[0]
        self.candidates.point()
        if kind == "take":
            self.weaving.toggle()
        elif kind != "column" and times > 1:
            self.do_open()

    # Moving.

    def by_row(self, by: int) -> None:
        if self.candidates.pair is not None:
            self.candidates.pair.move(by)
        elif self.is_page:
            page = self.query_one("#page", Rows)
            page.go_to(page.top + by)
        else:
            self.pane.move(by)

    def by_page(self, by: int) -> None:
        self.by_row(by * (self.size.height - 10))

    def by_end(self, by: int) -> None:
        self.by_row(by * _FAR)

    def by_side(self, by: int) -> None:
        self.pane.sideways(by)
        self.candidates.point()

    def by_unit(self, by: int) -> None:
        spots = self.pane.spots
        if spots and not self.pane.to_file(by):
            paths, here = {spot.path for spot in spots}, spots[self.pane.at].path
            self.refuse(idea_of("unit", by), no_further("file", by, paths, here))

    def by_next(self, by: int) -> None:
        if not self.pane.to_difference(by):
            spots = [at for at, spot in enumerate(self.pane.spots) if spot.differs]
            reason = no_further("differing hunk", by, spots, self.pane.at)
            self.refuse(idea_of("next", by), reason)

    def do_open(self) -> None:
        self.is_whole = not self.is_whole

    def do_leave(self) -> None:
        if self.candidates.pair is not None:
            self.candidates.pair = None
        elif self.explaining.is_shown:
            self.explaining.is_shown = False
        elif self.is_whole:
            self.is_whole = False
        else:
            self.hand_on("leave")

    # Acting.

    def do_copy(self) -> None:
        hunk = self.pane.hunk
        self.copy("\n".join(line.removesuffix("\n") for line in hunk.new) if hunk else "")

    def do_no_wide(self) -> None:
        worker = self.here()
        said = words(
            Span("Reject ", TEXT), Span(worker.worker, BOLD), Span("? It stays on its ref.", TEXT)
        )
        self.does(Deciding).ask_to_reject("no_wide", worker, said)
