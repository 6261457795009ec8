"""Read conflicts from the engine, and hand it what was decided about them."""

from functools import partial
from typing import TYPE_CHECKING

from engine.messages.commands import FinishResolving, Regenerate, ResolutionAction
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.ink import TEXT, Ink, Role, Row, Span
from tui.kit.screen import Board, Controller
from tui.screens.review.blocked_page import is_blocked
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import shown_file
from tui.screens.review.page import keys_of, onward
from tui.words.clean import clean_code, clean_name, clean_tree
from tui.words.outcomes import CameOut, Pursued, landing_of, made_again
from tui.words.sentences import ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import ConflictView, PlannedLanding

_Wanted = tuple[str, str, int, object]
_QUEUED = frozenset({Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING})
_NOTHING: _Wanted = ("", "", 0, None)


class Conflicts(Controller):
    """Keep what the engine said of the conflicts, and let the pane show it."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.pane = ReviewPane()
        self.reason = ""
        self.is_loading = False
        self.queue: Sequence[PlannedLanding] = ()
        self._loaded = _NOTHING
        self._answers = 0
        self._file_wanted: tuple[object, ...] = ()

    # Loading.

    def arrive(self) -> None:
        """Ask anew; where the worker on screen has nothing to decide, look at one that has."""
        self._loaded = _NOTHING
        run, here = self.session.run, self.session.worker_view
        if run and here and not _has_to_decide(here):
            waiting = (worker for worker in run.workers if _has_to_decide(worker))
            self.session.worker = next(waiting, here).worker
        self.load_if_moved()

    def load_if_moved(self) -> None:
        """Ask for the conflicts when the worker, its attempt or its conflicts are others."""
        here, run = self.session.worker_view, self.session.run
        if here is None or run is None:
            return
        decided = self.session.bridge.decided.get((run.run, here.worker), 0)
        moved = (here.phase, here.conflicts, here.check, here.behind, here.error, decided)
        wanted = (run.run, here.worker, here.attempt, moved)
        if wanted == self._loaded:
            return
        if wanted[:3] != self._loaded[:3] or here.phase is not Phase.CONFLICTED:
            self._forget()
        self._loaded = wanted
        if here.phase is Phase.CONFLICTED:
            self.is_loading = True
            self.screen.begin(partial(self._load, wanted), group="conflicts", exclusive=True)

    def _forget(self) -> None:
        raw, here = self.pane.raw, self.session.worker_view
        if (
            raw is None
            or here is None
            or raw.worker != here.worker
            or (here.phase is not Phase.CONFLICTED)
        ):
            self.pane.show(None)
            self.reason = ""

    async def read(self, run: str, worker: str) -> "ConflictView | str":
        """The conflicts as they stand: an answer that a decision has overtaken is asked anew."""
        while True:
            answers = self._answers
            found = await self.session.bridge.conflicts(run, worker)
            if answers == self._answers:
                return found

    async def _load(self, wanted: _Wanted) -> None:
        found = await self.read(wanted[0], wanted[1])
        if wanted == self._loaded:
            self.is_loading = False
            self._take_in(found)
        self.screen.draw()
        await self._load_queue(wanted)

    async def _load_queue(self, wanted: _Wanted) -> None:
        """In which order what is finished would land."""
        run = self.session.run
        waiting = [w.worker for w in run.workers if w.phase in _QUEUED] if run else []
        if len(waiting) > 1 and wanted == self._loaded:
            self.queue = await self.session.bridge.landing_order(wanted[0], waiting)
            self.screen.draw()
        else:
            self.queue = ()

    def want_file(self) -> None:
        """Ask for the whole file that is looked at, where it may be another than before."""
        raw, path = self.pane.raw, self.pane.raw_path
        wanted = (path, self._loaded, raw.decisions if raw else 0, raw.tree if raw else None)
        if raw is not None and path and wanted != self._file_wanted:
            self._file_wanted = wanted
            self.screen.begin(partial(self._load_file, path), group="whole file", exclusive=True)

    async def _load_file(self, path: str) -> None:
        raw = self.pane.raw
        if raw is None:
            return
        found = await self.session.bridge.conflicts(raw.run, raw.worker, path)
        if not isinstance(found, str) and found.looked_at is not None:
            self.pane.looked_at[path] = shown_file(found.looked_at)
            self.screen.draw()

    def _take_in(self, found: "ConflictView | str") -> bool:
        """Show what the engine answered; False where it refused."""
        if isinstance(found, str):
            self.reason = found if self.pane.raw is None else ""
            return False
        self.reason = ""
        self.pane.show(found)
        return True

    # Deciding.

    def decide(
        self,
        actions: tuple[ResolutionAction, ...],
        said: str,
        *,
        goes_on: bool = False,
        shows_changed: bool = False,
    ) -> None:
        """Hand decisions to the engine; `goes_on` looks at the next open conflict then."""
        decide = partial(
            self.hand_over, actions, said, goes_on=goes_on, shows_changed=shows_changed
        )
        self.screen.begin(decide, holds=True)

    async def hand_over(
        self,
        actions: tuple[ResolutionAction, ...],
        said: str,
        *,
        goes_on: bool,
        shows_changed: bool,
    ) -> str:
        """Hand them over one by one; says why the first one that was refused was, or nothing."""
        raw = self.pane.raw
        if raw is None:
            return ""
        before = self.pane.matters
        for action in actions:
            found = await self.session.bridge.resolve(raw.run, raw.worker, action)
            self._answers += 1
            if isinstance(found, str):
                what = "land" if isinstance(action, FinishResolving) else "choice"
                self.screen.say_refused(what, found)
                return found
            self.pane.show(found)
            if isinstance(action, FinishResolving):
                self._went_on(raw, found, said)
                return ""
        if shows_changed:
            after = self.pane.matters
            changed = (
                i for i, (one, two) in enumerate(zip(before, after, strict=False)) if one != two
            )
            self.pane.to(next(changed, self.pane.at))
        elif goes_on and self.pane.matter and not self.pane.matter.is_open:
            self.pane.to_open(1)
        now = self.pane.raw
        said_next: Row = ()
        if now and now.is_resolved and not now.is_finished:
            said_next = onward(now, keys_of(self.session.keymap))
        done = clean_tree(said)
        done = f"{ended(done)} " if said_next else done
        self.screen.say(Span("✓ ", Ink(Role.DONE)), Span(done, TEXT), *said_next)
        return ""

    def _went_on(self, before: "ConflictView", now: "ConflictView", said: str) -> None:
        """Say whether it goes on, or that the target moved and the merge was made again."""
        if not now.is_finished:
            again = made_again(before, now, self.screen.key_of("land"))
            self.screen.say(Span("✗ ", Ink(Role.FAILED, bold=True)), Span(again, TEXT))
        elif self.session.is_alone:
            self.screen.app.exit()  # it was opened for this; the shell says what is left to do
        elif now.is_of_base or now.doing:
            self.screen.say(Span("✓ ", Ink(Role.DONE)), Span(said, TEXT))
        else:
            self.screen.say(Span("… ", Ink(Role.RUNNING)), Span(said, TEXT))
            self.screen.pursue(landing_of(now.run, now.worker))

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Show the conflicts anew: a landing that did not go on may have made others."""
        self._loaded = _NOTHING
        self.load_if_moved()
        del pursued, outcome

    async def check(self) -> None:
        """Run the check on exactly the tree that the decisions make."""
        raw = self.pane.raw
        if raw is None:
            return
        seen = self.session.seen_of(raw.run, raw.worker)
        found = await self.session.bridge.check(raw.run, raw.worker, seen)
        self.session.look()
        if isinstance(found, str):
            self.refuse("check", found)
            return
        self._take_in(await self.read(raw.run, raw.worker))
        mark = Span("✓ ", Ink(Role.DONE)) if found.passed else Span("✗ ", Ink(Role.FAILED))
        summary = found.summary.split("\n")[0]
        self.screen.say(mark, Span(f"the check: {summary}", TEXT), " on exactly this result")

    async def order(self) -> None:
        """Put the files in the order of their risk, or back in git's."""
        raw = self.pane.raw
        if raw is None:
            return
        if self.pane.risks:
            self.pane.risks = {}
            self._take_in(await self.read(raw.run, raw.worker))
            self.screen.say("the files are in git's order")
            return
        found = await self.session.bridge.risks(raw.run, raw.worker)
        if isinstance(found, str):
            self.refuse("show_order", found)
        elif not found:
            self.refuse("show_order", "nothing is known of the risk of its files")
        elif _is_of(self.pane.raw, raw):
            self.pane.risks = {one.path: one for one in found}
            self.pane.show(raw)
            self.screen.say("the files are sorted by risk, highest first")

    async def regenerate(self, action: Regenerate) -> None:
        """Let a command make a file anew, and show what it made; the eye stays where it is."""
        raw = self.pane.raw
        if raw is None:
            return
        name = clean_name(action.path)
        commands = {one.path: one.regenerate for one in raw.merged}
        commands |= {one.path: one.regenerate for one in raw.files}
        command = clean_code(commands[action.path])
        self.screen.say(Span("… ", Ink(Role.RUNNING)), Span(f"making {name}: {command}", TEXT))
        self.screen.draw()
        found = await self.session.bridge.resolve(raw.run, raw.worker, action)
        self._answers += 1
        if isinstance(found, str):
            self.refuse("regenerate", found)
        elif _is_of(self.pane.raw, found):
            self.pane.show(found)
            said_next = onward(found, keys_of(self.session.keymap)) if found.is_resolved else ()
            said = Span(f"{name} was made by {command}   ", TEXT)
            self.screen.say(Span("✓ ", Ink(Role.DONE)), said, *said_next)


def _is_of(one: "ConflictView | None", other: "ConflictView") -> bool:
    """Say if a view is of the worker that another one is of: a name is in several runs."""
    return one is not None and (one.run, one.worker) == (other.run, other.worker)


def _has_to_decide(worker: WorkerView) -> bool:
    """Its conflicts are decided here, or how its landing gets past edits of the user's."""
    return worker.phase is Phase.CONFLICTED or is_blocked(worker)
