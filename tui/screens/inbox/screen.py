"""Inbox: answers are given in place, and the next item comes under the cursor by itself."""

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.app import ComposeResult

from engine.messages.commands import Command, RetryWorker
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS, Deciding, Workers
from tui.ink import KEY, TEXT, Row, Span, clickable, words
from tui.kit.filterline import FilterLine
from tui.kit.inked import Inked
from tui.kit.panes import Panes
from tui.kit.screen import Board
from tui.kit.scrolled import Rows
from tui.kit.session import Session, Undoable
from tui.screens.inbox.page import (
    Detail,
    detail,
    inbox_subject,
    item_list,
    nothing_waits,
)
from tui.words.asking import asked_of, why_not_kept
from tui.words.ends import idea_of, no_further
from tui.words.filtering import filters
from tui.words.scene import Scene
from tui.words.standing import step_of

_SIDE_BY_SIDE_FROM = 100
_LEAST_FOR_LIST = 10


class InboxScreen(Board):
    """A list of what waits, and the whole of what is under the cursor."""

    CSS_PATH = Path(__file__).with_name("inbox.tcss")
    held = ON_WORKERS
    kind = "inbox"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.shown = Detail(rows=())
        self._of: object = None
        self._at = 0
        self._answered = ""
        self.range_from = ""
        self.is_zoomed = False

    def compose_panes(self) -> ComposeResult:
        with Panes(classes="body"):
            yield Inked(id="nothing")
            yield self.widths.beside(Rows(id="items"), 1)
            yield Rows(id="detail")
            yield FilterLine(self.session, self._filtered)

    def on_screen_resume(self) -> None:
        items = self._items()
        if items and self.session.worker not in {worker.worker for worker in items}:
            self.point_at(items[0].worker)

    @property
    def _line(self) -> FilterLine:
        return self.query_one(FilterLine)

    def _items(self) -> list[WorkerView]:
        """Return who waits for a human, of those that the filter leaves."""
        run, items, text = self.session.run, self.session.inbox(), self._line.filter
        return [w for w in items if run and filters(text, w, step_of(run, w))] if text else items

    def do_search(self) -> None:
        self._line.begin()

    def _filtered(self) -> None:
        """Show what is left; the cursor goes to the first of it."""
        items = self._items()
        if items and self.session.worker not in {worker.worker for worker in items}:
            self.point_at(items[0].worker)
        self.draw()

    def _current(self) -> WorkerView | None:
        """The item under the cursor; the next one where a key of this console answered it.

        One that somebody else has answered is gone, and the cursor rests on nothing until a key.
        """
        items = self._items()
        names = [worker.worker for worker in items]
        if self.session.worker in names:
            self._at = names.index(self.session.worker)
        elif names and self._answered == self.session.worker:
            self._at = min(self._at, len(names) - 1)
            self.session.asked_at.clear()  # no key has brought this one under the cursor
            self.point_at(names[self._at])
        return next((w for w in items if w.worker == self.session.worker), None)

    def send(self, command: Command, said: str, after: Callable[[], None] | None = None) -> None:
        """Note that it was a key of this console that answered the item."""

        def done() -> None:
            self._answered = getattr(command, "worker", None) or ""
            if after:
                after()

        super().send(command, said, done)

    def point_at(self, worker: str) -> None:
        super().point_at(worker)
        self._of = None

    def why_not(self, idea: str) -> str:
        if self._current() is None and idea in {
            "yes",
            "yes_wide",
            "no",
            "pause",
            "open",
            "mark",
            "retry",
        }:
            waits = bool(self._items())
            return "no item is under the cursor" if waits else "nothing waits for you"
        asked = asked_of(here) if (here := self._current()) else None
        if idea == "no_wide" and asked and asked.needs_human:
            return f"{why_not_kept(asked)}; {self.key_of('no')} denies it once"
        return "" if idea == "pause" else super().why_not(idea)

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        items = self._items()
        filtered = self._line.rows(len(items), len(self.session.inbox()), self.key_of("leave"))
        return filtered[0] if filtered else inbox_subject(items, scene, cells)

    def draw_panes(self, scene: Scene) -> None:
        here, items = self._current(), self._items()
        panes, nothing = self.query_one(Panes), self.query_one("#nothing", Inked)
        listed, whole = self.query_one("#items", Rows), self.query_one("#detail", Rows)
        nothing.display = not items
        whole.display = bool(items)
        has_room = panes.size.height >= _LEAST_FOR_LIST and not self.is_zoomed
        listed.display = bool(items) and has_room
        panes.set_class(self.is_zoomed, "-zoomed")
        if items:
            self._draw_items(listed, items, here, scene)
            self._draw_detail(whole, here, scene)
        else:
            is_hidden = bool(self.session.inbox())
            nothing.show([(), words("  Nothing matches.")] if is_hidden else nothing_waits(scene))

    def _draw_items(
        self, pane: Rows, items: Sequence[WorkerView], here: WorkerView | None, scene: Scene
    ) -> None:
        name = here.worker if here else ""
        snoozed = frozenset(self.session.snoozed)
        is_tight = self.size.width < _SIDE_BY_SIDE_FROM
        rows = item_list(items, scene, name, snoozed=snoozed, is_tight=is_tight)
        at = [y for y, row in enumerate(rows) if name and row.worker == name]
        focused = range(at[0], at[-1] + 1) if at else range(0)

        def row(y: int) -> Row:
            drawn = rows[y].draw(pane.cells)
            return clickable(drawn, f"worker:{rows[y].worker}") if rows[y].worker else drawn

        pane.fill(len(rows), row, focused)

    def _draw_detail(self, pane: Rows, here: WorkerView | None, scene: Scene) -> None:
        self._of = self._identity(here)
        self.shown = shown = detail(here, scene, pane.cells) if here else self._gone()
        key = Span(self.key_of("page_down"), KEY)
        pane.fill(
            len(shown.rows),
            shown.rows.__getitem__,
            of=(self._of, pane.cells if shown.question_rows else 0),  # other rows are read anew
            more=lambda left: words(f"► {left} more rows  ", key),
        )

    def _identity(self, worker: WorkerView | None) -> object:
        """Return what tells one thing that is read from another: another question is read anew."""
        if worker is None:
            return ""
        return worker.worker, worker.attempt, *worker.questions[:1]

    def _gone(self) -> Detail:
        """Say that what was under the cursor waits no more, and how to go on."""
        worker = self.session.worker
        said = f"{worker} no longer waits for you." if worker else "Nothing is under the cursor."
        leads = words("  ", Span(self.key_of("down"), KEY), " goes to the next item.")
        return Detail(rows=(words(Span(f"  {said}", TEXT)), leads))

    def shows_whole_question(self, worker: WorkerView) -> bool:
        read = self.query_one("#detail", Rows).read_to
        return self._identity(worker) == self._of and read >= self.shown.question_rows

    def open_question(self) -> None:
        """It is on the screen already, only not all of it; or it has become another one."""
        if self._identity(self._current()) != self._of:
            return
        further = f"{self.key_of('page_down')} shows the rest"
        self.say_refused(self.key_of("yes"), "the question continues below", further)

    def sentence(self, scene: Scene) -> Row:
        return self.does(Workers).sentence(self._current(), scene.now)

    def hints(self) -> Sequence[str]:
        here = self._current()
        has_failed = here is not None and here.phase is Phase.FAILED
        then = ("retry", "diff") if has_failed else ("diff", "yes", "retry")
        asked = ("yes", "yes_wide", "no", "edit", "steer") if here and here.questions else ()
        ideas = ("down", *asked, "land", "merge", *then, "no", "pause", "open", "mark")
        return tuple(dict.fromkeys(ideas))

    def pointed(self, target: str, times: int) -> None:
        kind, _, name = target.partition(":")
        if kind == "worker":
            self.point_at(name)
            if times > 1:
                self.do_open()

    # Keys.

    def by_row(self, by: int) -> None:
        names = [worker.worker for worker in self._items()]
        here = self._current()
        if names:
            index = names.index(here.worker) + by if here else min(self._at, len(names) - 1)
            self.point_at(names[max(min(index, len(names) - 1), 0)])

    def by_next(self, by: int) -> None:
        names, here = [worker.worker for worker in self._items()], self._current()
        end = names[-1 if by > 0 else 0] if names else ""
        if here and here.worker == end:
            self.refuse(idea_of("next", by), no_further("unanswered item", by, names, end))
        else:
            self.by_row(by)

    def by_end(self, by: int) -> None:
        self.by_row(by * len(self._items()))

    def _scroll(self, share: float, less: int) -> None:
        pane = self.query_one("#detail", Rows)
        rows = max(int(pane.size.height * abs(share)) - less, 1)
        pane.scroll_to(y=pane.scroll_y + (rows if share > 0 else -rows), animate=False, force=True)

    def by_page(self, by: int) -> None:
        self._scroll(by, 2)

    def by_half(self, by: int) -> None:
        self._scroll(by / 2, 0)

    def do_open(self) -> None:
        self.go("worker")

    def do_mark(self) -> None:
        here = self._current()
        if here:
            self.session.marks.symmetric_difference_update({here.worker})
            self.by_row(1)

    def do_select(self) -> None:
        """Begin a range of items, or mark all from there to the cursor."""
        names, here = [worker.worker for worker in self._items()], self._current()
        if here is None:
            return
        if self.range_from not in names:
            self.range_from = here.worker
            self.say(f"a range starts at {here.worker}; {self.key_of('select')} again ends it")
            return
        one, other = sorted((names.index(self.range_from), names.index(here.worker)))
        self.session.marks.update(names[one : other + 1])
        self.range_from = ""

    def do_leave(self) -> None:
        if self.range_from or not self._line.let_go():
            self.range_from = ""
            self.hand_on("leave")

    def do_zoom(self) -> None:
        self.is_zoomed = not self.is_zoomed

    def do_pause(self) -> None:
        """Put the item off, or take it back."""
        here = self._current()
        if here is None:
            return
        snoozed, name = self.session.snoozed, here.worker

        def toggle() -> None:
            snoozed.symmetric_difference_update({name})

        toggle()
        said = f"{name} is snoozed" if name in snoozed else f"{name} is no longer snoozed"
        self.session.remember(Undoable(said, toggle, toggle))
        self.say(said)

    def do_retry(self) -> None:
        """Retry what failed: the item, or every failed one that is marked."""
        for worker in self.does(Workers).targets("retry"):
            if worker.phase is Phase.FAILED or not self.session.marks:
                seen = self.seen(worker)
                command = RetryWorker(worker=worker.worker, run=self.run_id, seen=seen)
                self.send(command, f"{worker.worker} starts again")

    def do_no_wide(self) -> None:
        here = self._current()
        if here and here.questions:
            self.does(Deciding).deny_for_run(here)
        else:
            self.hand_on("no_wide")
