"""Fleet: all workers of a run, those that need a human first."""

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal

from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS, Workers
from tui.ink import KEY, TEXT, Row, Span, clickable, words
from tui.kit.cards import HEIGHT, question_fits
from tui.kit.filterline import FilterLine
from tui.kit.inked import Head, Inked
from tui.kit.opening import REACHING
from tui.kit.panes import Panes
from tui.kit.rail import rail
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session, Undoable
from tui.screens.fleet.page import FleetPage, Form, Order, Wish, lay_out, look_at, move, orders_of
from tui.screens.fleet.pane import FleetPane, WorkerTile
from tui.screens.fleet.welcome import welcome
from tui.words.ends import idea_of, no_further
from tui.words.filtering import filters
from tui.words.looks import MARK
from tui.words.scene import Scene
from tui.words.standing import Band, bands_of, in_order

_DETAILS = range(-4, 3)
"""The sizes, from a table over small tiles to large ones; 0 is what the room suggests."""

_FIRST = {
    Phase.REVIEWING: ("land", "diff", "yes", "retry_with"),
    Phase.CONFLICTED: ("merge", "diff", "retry", "retry_with"),
    Phase.FAILED: ("retry", "retry_with", "diff"),
}
"""The keys of the footer for one that needs a human, in the order in which its card has them."""


class FleetScreen(Board):
    """The screen that everything begins and ends with."""

    CSS_PATH = Path(__file__).with_name("fleet.tcss")
    held = ON_WORKERS
    kind = "fleet"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.page: FleetPage | None = None
        self.detail = 0
        self.order = Order.NEED
        self._range: tuple[str, frozenset[str]] | None = None
        self._has_looked = False

    def compose_panes(self) -> ComposeResult:
        with Horizontal(classes="body"):
            with Panes(id="fleet"):
                yield Inked(id="welcome")
                yield FleetPane(id="tiles")
                yield Head(id="head")
                yield Rows(id="table")
                yield WorkerTile(id="close-up")
                yield FilterLine(self.session, self._filtered)
            yield self.widths.beside(Inked(id="rail"), -1)

    def draw_panes(self, scene: Scene) -> None:
        here = self.session.worker_view.worker if self.session.worker_view else ""
        whole, run, line = self.query_one("#fleet").size, self.session.run, self._line
        many = len(run.workers) if run else 0
        filtered = line.rows(len(self._matching()), many, self.key_of("leave")) if run else []
        if not whole:
            return
        size = whole.width, whole.height - len(filtered) - line.display
        has_run = scene.run is not None and bool(scene.run.workers)
        held = self.page.held if self.page and self.is_fingered else None
        wish = Wish(
            detail=self.detail,
            order=self.order,
            held=held,
            shown=self._shown(),
        )
        self.page = page = lay_out(scene, size, here, wish) if has_run else None
        self._draw_welcome(scene)
        self._draw_table(page if page and page.form is not Form.TILES else None, here, filtered)
        tiles = self.query_one(FleetPane)
        tiles.display = page is not None and page.form is Form.TILES
        if page and tiles.display:
            tiles.fill(page.pieces, here, self.fingered_at)
        side = self.query_one("#rail", Inked)
        side.set_class(not has_run, "-bare")
        side.show(rail(scene, side.size.height, side.size.width) if has_run else ())

    def _draw_welcome(self, scene: Scene) -> None:
        welcoming = self.query_one("#welcome", Inked)
        welcoming.display = self.page is None
        is_known = self.page is None and self.session.bridge.view is not None
        starter = self.session.starter
        found = starter.found if starter else None
        welcoming.show(welcome(scene, found, welcoming.size) if is_known else ())
        if is_known and starter and not (found or self._has_looked):
            self._has_looked = True
            self.begin(self._look, group="look")

    async def _look(self) -> None:
        """Find out what runs can be started with here."""
        if self.session.starter:
            await self.session.starter.look()
            self.draw()

    def _draw_table(self, page: FleetPage | None, here: str, filtered: list[Row]) -> None:
        head, table = self.query_one("#head", Inked), self.query_one(Rows)
        close_up = self.query_one("#close-up", WorkerTile)
        head_rows = [*filtered, *([page.head] if page else [])]
        head.display, table.display = bool(head_rows), page is not None
        head.show(head_rows)
        close_up.display = page is not None and page.close_up is not None
        if page is None:
            return
        pieces = page.pieces
        names = [piece.name for piece in pieces]
        at = names.index(here) if here in names else -1
        table.fill(
            len(names),
            lambda y: clickable(pieces[y].draw()[0], f"worker:{names[y]}"),
            range(at, at + 1) if at >= 0 else range(0),
        )
        close_up.piece = page.close_up
        close_up.draw()

    def sentence(self, scene: Scene) -> Row:
        if scene.marks:
            what = (
                "the range ends at the cursor" if self._range else "keys act on the marked workers"
            )
            leave = words(Span(self.key_of("leave"), KEY), " clears the marks")
            return (MARK, *words(Span(f" {len(scene.marks)} marked: {what}; ", TEXT)), *leave)
        if self.session.bridge.view is None:
            return words(REACHING)
        if not scene.view.runs:
            return words(
                "Nothing has been written to ", Span(scene.view.repository, TEXT), " so far."
            )
        return self.does(Workers).sentence(self.session.worker_view, scene.now)

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        if self.page and self.page.form is Form.EMERGENCY:
            return ("yes", "no", "open", "down")
        if here and here.questions:
            asked = ("yes", "yes_wide", "no", "edit", "steer")
            return ("down", "open", *asked, "pause", "mark", "pick")
        if here and here.phase in _FIRST:
            return ("down", "open", *_FIRST[here.phase], "no", "mark", "pick")
        return ("down", "open", "diff", "no", "retry", "steer", "pause", "mark", "less", "palette")

    def shows_whole_question(self, worker: WorkerView) -> bool:
        page = self.page
        place = (page.close_up or page.place(worker.worker)) if page else None
        if page is None or place is None or place.name != worker.worker or place.height < HEIGHT:
            return False
        is_seen = page.form is not Form.TILES or self.query_one(FleetPane).shows(worker.worker)
        return is_seen and question_fits(worker, place.width - 4, place.height - 6)

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "more":
            self.point_at(next(iter(self._folded()), ""))
        elif kind == "worker":
            self.point_at(name)
            if times > 1:
                self.do_open()
        else:
            self._press(kind, name, times)

    def _press(self, idea: str, worker: str, times: int) -> None:
        """Do what a key on a card does; the second half of a double click answers nothing."""
        self.point_at(worker)
        self.draw()  # what is allowed is what is seen
        if times == 1:
            self.action_idea(idea)

    # Moving.

    def _move(self, direction: str) -> None:
        here = self.session.worker_view.worker if self.session.worker_view else ""
        if self.page is None:
            return
        there = move(self.page.places, here, direction)
        if there == here and direction == "down":
            there = next(iter(self._folded()), there)
        self.point_at(there)

    def _folded(self) -> list[str]:
        """The workers that stand behind `► 12 more`: going down opens them."""
        run, places, shown = self.session.run, set(self._places()), self._shown()
        names = [worker.worker for worker in in_order(run)] if run else []
        return [n for n in names if n not in places and (shown is None or n in shown)]

    def by_row(self, by: int) -> None:
        self._move("down" if by > 0 else "up")

    def by_side(self, by: int) -> None:
        self._move("right" if by > 0 else "left")

    def _places(self) -> list[str]:
        return [place.name for place in self.page.places] if self.page else []

    def by_end(self, by: int) -> None:
        places = self._places()
        self.point_at(places[0 if by < 0 else -1] if places else "")

    def _jump(self, by: int) -> None:
        names, here = self._places(), self.session.worker_view
        if names and here and here.worker in names:
            index = names.index(here.worker) + by
            self.point_at(names[max(min(index, len(names) - 1), 0)])

    def by_half(self, by: int) -> None:
        self._jump(by * max(self.size.height // 4, 1))

    def by_page(self, by: int) -> None:
        self._jump(by * max(self.size.height // 2, 1))

    def by_next(self, by: int) -> None:
        run, here = self.session.run, self.session.worker_view
        if run is None:
            self.perform("start")
            return
        shown = self._shown()
        needs = [worker.worker for worker in bands_of(run)[Band.NEEDS_YOU]]
        needs = [name for name in needs if shown is None or name in shown]
        name = here.worker if here else ""
        if not needs or needs == [name]:
            hint = "" if needs else f"{self.key_of('start')} starts a run"
            reason = no_further("worker that needs you", by, needs, name)
            self.say_refused(self.key_of(idea_of("next", by)), reason, hint)
        elif here and here.worker in needs:
            self.point_at(needs[(needs.index(here.worker) + by) % len(needs)])
        else:
            self.point_at(needs[0 if by > 0 else -1])

    def by_unit(self, by: int) -> None:
        """The first worker of the next step that has any."""
        run, here = self.session.run, self.session.worker_view
        if run is None or here is None:
            self._move("down")
            return
        shown = self._shown()
        firsts = {w.step: w.worker for w in reversed(run.workers) if not shown or w.worker in shown}
        steps = [step.name for step in run.steps if step.name in firsts]
        self.point_at(firsts[steps[(steps.index(here.step) + by) % len(steps)]])

    # Seeing.

    def do_more(self) -> None:
        self._size_by(1)

    def do_less(self) -> None:
        self._size_by(-1)

    def _size_by(self, by: int) -> None:
        """One size further that looks other than this one; at the last one nothing happens."""
        scene, size = self.session.scene(), self.query_one("#fleet").size
        looks = {detail: look_at(scene, size, detail) for detail in _DETAILS}
        here, at = looks[self.detail], self.detail
        if here[0] is Form.TABLE:
            at = _DETAILS[0]
        elif looks[0][0] is Form.TABLE:
            del looks[
                0
            ]  # the table stands below all tiles, also where it is what the room suggests
        further = [detail for detail in looks if (detail - at) * by > 0][::by]
        self.detail = next((detail for detail in further if looks[detail] != here), self.detail)

    def do_zoom(self) -> None:
        self.go("worker")

    def do_open(self) -> None:
        here = self.session.worker_view
        if self.session.run is None:
            self.perform("start")
            return
        if here is None:
            self._move("down")
            return
        self.go("inbox" if here.questions and not here.phase.is_settled else "worker")

    def do_new(self) -> None:
        if self.session.run is None:
            self.perform("start")
        else:
            self.hand_on("new")

    def why_not(self, idea: str) -> str:
        """Return why not now; before the first run, the keys that open something open its form."""
        if idea in {"open", "new"} and self.session.run is None:
            return ""
        return super().why_not(idea)

    def do_show_order(self) -> None:
        orders = orders_of(self.session.run)
        after = orders.index(self.order) + 1 if self.order in orders else 0
        self.order = orders[after % len(orders)]
        self.say(self.order)

    # Marking.

    def do_mark(self) -> None:
        here = self.session.worker_view
        if here is None:
            return
        name = here.worker

        def toggle() -> None:
            self.session.marks ^= {name}

        toggle()
        run, is_marked = self.run_id, name in self.session.marks

        def is_there() -> bool:
            return self.run_id == run and (name in self.session.marks) == is_marked

        self.session.remember(Undoable(f"the mark on {name}", toggle, toggle, can_undo=is_there))
        self._move("right")
        if self.session.worker == name:
            self._move("down")

    def do_select(self) -> None:
        """Begin a range at the cursor, which marks what the cursor goes over; or end it."""
        here, marks = self.session.worker_view, self.session.marks
        if self._range or here is None:
            self._range = None
            return
        before = frozenset(marks)
        self._range = here.worker, before
        marks.add(here.worker)

        def back() -> None:
            self._range = None
            self.session.marks = set(before)

        run = self.run_id
        self.session.remember(
            Undoable("the marks", back, None, can_undo=lambda: self.run_id == run)
        )

    def point_at(self, worker: str) -> None:
        """Put the cursor on a worker; a range goes along."""
        super().point_at(worker)
        order = [*self._places(), *self._folded()]
        if self._range and self._range[0] in order and worker in order:
            ends = sorted((order.index(self._range[0]), order.index(worker)))
            self.session.marks = {*self._range[1], *order[ends[0] : ends[1] + 1]}

    # Filtering.

    @property
    def _line(self) -> FilterLine:
        return self.query_one(FilterLine)

    def _matching(self) -> frozenset[str]:
        """Return the workers of which the filter holds."""
        run = self.session.run
        steps = run.steps if run else ()
        workers = [(worker, step) for step in steps for worker in step.workers]
        return frozenset(w.worker for w, step in workers if filters(self._line.filter, w, step))

    def _shown(self) -> frozenset[str] | None:
        """Return those that are shown; the one under the cursor stays, whatever becomes of it."""
        return self._matching() | {self.session.worker} if self._line.filter else None

    def do_search(self) -> None:
        self._line.begin()

    def _filtered(self) -> None:
        """Show what is left; the cursor goes to the first of it."""
        run, matching = self.session.run, self._matching()
        if run and matching and self.session.worker not in matching:
            self.point_at(next(w.worker for w in in_order(run) if w.worker in matching))
        self.draw()

    def do_leave(self) -> None:
        """Leave the range, else clear the marks, else show all again."""
        if self._range and self.session.marks:
            self.session.marks = set(self._range[1])
            self._range = None
        elif self.session.marks:
            self.hand_on("leave")
        else:
            self._range = None  # what was done with its marks has ended it
            self._line.let_go()

    def do_back(self) -> None:
        self.hand_on("quit")
