"""What Review asks of the engine: the conflicts, decisions about them, the check, an agent."""

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.messages.commands import (
    AskAgent,
    ChooseRest,
    FinishResolving,
    PickLines,
    ResolutionAction,
)
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import ON_WORKERS
from tui.ink import TEXT, Ink, Role, Row, Span
from tui.kit.dialogs import Choice
from tui.kit.screen import Board
from tui.kit.session import Session
from tui.kit.textbox import Writing
from tui.screens.review.blocked_page import is_blocked
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import shown_file
from tui.words.clean import clean_name, clean_tree
from tui.words.outcomes import CameOut, Pursued, landing_of, made_again
from tui.words.settings import split_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import ConflictView, PlannedLanding

_Wanted = tuple[str, str, int, object]
_QUEUED = frozenset({Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING})
_NOTHING: _Wanted = ("", "", 0, None)
_REST = (
    ("target", "the target's side"),
    ("incoming", "the incoming side"),
    ("both", "both sides, target first"),
    ("combined", "both, word by word, wherever that can be"),
)


class ReviewActs(Board):
    """Conflicts as they come from the engine, and decisions as they go to it."""

    held = ON_WORKERS

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.pane = ReviewPane()
        self.reason = ""
        self.is_loading = False
        self.queue: Sequence[PlannedLanding] = ()
        self._loaded = _NOTHING
        self._answers = 0
        self._file_wanted: tuple[object, ...] = ()

    # Loading.

    def on_screen_resume(self) -> None:
        self._loaded = _NOTHING
        self._look_for_conflicts()
        self.load_if_moved()
        super().on_screen_resume()

    def _look_for_conflicts(self) -> None:
        """Where the worker on screen has nothing to decide, look at one that has."""
        run, here = self.session.run, self.session.worker_view
        if run is None or here is None or _has_to_decide(here):
            return
        waiting = (worker for worker in run.workers if _has_to_decide(worker))
        self.session.worker = next(waiting, here).worker

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
            self.begin(partial(self._load, wanted), group="conflicts", exclusive=True)

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

    async def _conflicts(self, run: str, worker: str) -> "ConflictView | str":
        """The conflicts as they stand: an answer that a decision has overtaken is asked anew."""
        while True:
            answers = self._answers
            found = await self.session.bridge.conflicts(run, worker)
            if answers == self._answers:
                return found

    async def _load(self, wanted: _Wanted) -> None:
        found = await self._conflicts(wanted[0], wanted[1])
        if wanted == self._loaded:
            self.is_loading = False
            self._take_in(found)
        self.draw()
        await self._load_queue(wanted)

    async def _load_queue(self, wanted: _Wanted) -> None:
        """In which order what is finished would land."""
        run = self.session.run
        waiting = [w.worker for w in run.workers if w.phase in _QUEUED] if run else []
        if len(waiting) > 1 and wanted == self._loaded:
            self.queue = await self.session.bridge.landing_order(wanted[0], waiting)
            self.draw()
        else:
            self.queue = ()

    def want_file(self) -> None:
        """Ask for the whole file that is looked at, where it may be another than before."""
        raw, path = self.pane.raw, self.pane.raw_path
        wanted = (path, self._loaded, raw.decisions if raw else 0, raw.tree if raw else None)
        if raw is not None and path and wanted != self._file_wanted:
            self._file_wanted = wanted
            self.begin(partial(self._load_file, path), group="whole file", exclusive=True)

    async def _load_file(self, path: str) -> None:
        raw = self.pane.raw
        if raw is None:
            return
        found = await self.session.bridge.conflicts(raw.run, raw.worker, path)
        if not isinstance(found, str) and found.looked_at is not None:
            self.pane.looked_at[path] = shown_file(found.looked_at)
            self.draw()

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
        decide = partial(self._decide, actions, said, goes_on=goes_on, shows_changed=shows_changed)
        self.begin(decide, holds=True)

    async def _decide(
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
                self.say_refused("that", found)
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
        onward = self.onward() if now and now.is_resolved and not now.is_finished else ()
        self.say(Span("✓ ", Ink(Role.DONE)), Span(f"{clean_tree(said)}   ", TEXT), *onward)
        return ""

    def _went_on(self, before: "ConflictView", now: "ConflictView", said: str) -> None:
        """Say whether it goes on, or that the target moved and the merge was made again."""
        if not now.is_finished:
            self.say(Span("✗ ", Ink(Role.FAILED, bold=True)), Span(made_again(before, now), TEXT))
        elif self.session.is_alone:
            self.app.exit()  # what it was opened for is done; the shell says what is left to do
        elif now.is_of_base or now.doing:
            self.say(Span("✓ ", Ink(Role.DONE)), Span(said, TEXT))
        else:
            self.say(Span("… ", Ink(Role.RUNNING)), Span(said, TEXT))
            self.pursue(landing_of(now.run, now.worker))

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Show the conflicts anew: a landing that did not go on may have made others."""
        self._loaded = _NOTHING
        self.load_if_moved()
        super().came_out(pursued, outcome)

    def onward(self) -> Row:
        """What is to be done now that everything is decided."""
        return ()

    async def check(self) -> None:
        """Run the check on exactly the tree that the decisions make."""
        raw = self.pane.raw
        if raw is None:
            return
        seen = self.session.seen_of(raw.run, raw.worker)
        found = await self.session.bridge.check(raw.run, raw.worker, seen)
        self.session.look()
        if isinstance(found, str):
            self.say_refused(self.key_of("check"), found)
            return
        self._take_in(await self._conflicts(raw.run, raw.worker))
        mark = Span("✓ ", Ink(Role.DONE)) if found.passed else Span("✗ ", Ink(Role.FAILED))
        summary = found.summary.split("\n")[0]
        self.say(mark, Span(f"the check: {summary}", TEXT), " on exactly this result")

    # Rest of a file, or of all.

    def do_merge_all(self) -> None:
        raw = self.pane.raw
        if raw is None:
            return
        choices = [
            Choice(f"{choice}:{scope}", f"{what}, {where}", "what is decided stays")
            for scope, where in (("file", "rest of this file"), ("all", "rest of all files"))
            for choice, what in _REST
        ]
        self.choose("Everything still open", choices, self._take_rest)

    def _take_rest(self, target: str) -> None:
        from engine.api import side_actions  # noqa: PLC0415 - brings the engine's rooms along

        raw, matter = self.pane.raw, self.pane.matter
        if raw is None or matter is None:
            return
        choice, _, scope = target.partition(":")
        files = raw.files if scope == "all" else raw.files[matter.file : matter.file + 1]
        actions: list[ResolutionAction] = []
        for file in files:
            if file.is_resolved:
                continue
            if choice == "combined":
                actions.append(ChooseRest(choice=choice, paths=(file.path,)))
                continue
            try:
                actions += side_actions(file, choice)
            except EngineError as error:
                self.say_refused(self.key_of("merge_all"), clean_tree(str(error)))
                return
        where = "everywhere" if scope == "all" else "in this file"
        self.decide(tuple(actions), f"{choice} {where}, wherever that was open", goes_on=True)

    # Single lines.

    def do_select(self) -> None:
        """Begin to pick single lines, or take those that were picked."""
        pane, matter = self.pane, self.pane.matter
        if not pane.picking:
            pane.begin_lines()
            return
        if not pane.picked or pane.raw is None or matter is None:
            self.say_refused(self.key_of("select"), "no line was picked")
            return
        file = pane.raw.files[matter.file]
        key = file.hunks[matter.hunk].key
        lines = tuple(pane.picked)
        pane.leave_lines()
        self.decide(
            (PickLines(path=file.path, hunk=key, lines=lines),), "single lines", goes_on=True
        )

    # Asking.

    def do_steer(self) -> None:
        """Ask an agent for a proposal, in words if some are wanted."""
        pane, matter, hunk = self.pane, self.pane.matter, self.pane.raw_hunk
        if pane.raw is None or matter is None or hunk is None:
            return
        path = pane.raw.files[matter.file].path
        writing = Writing(
            f"ask for a proposal: {clean_name(path)}:{hunk.line}",
            "your words beside the texts, may be empty; first line: agent=codex, if wanted",
            lambda text: self._ask(path, hunk.key, text),
            key=f"ask {hunk.key}",
            may_be_empty=True,
        )
        self.write(writing)

    def _ask(self, path: str, key: str, text: str) -> None:
        settings, words = split_settings(text)
        if settings.keys() - {"agent"}:
            self.say_refused(self.key_of("steer"), "only agent=… can be set here")
            return
        asked = AskAgent(path=path, hunk=key, agent=settings.get("agent", ""), words=words)
        self.decide((asked,), "asked; the answer comes as one more proposal")

    # Copying.

    def do_copy(self) -> None:
        self.copy(self.pane.preview() or "")

    def do_copy_name(self) -> None:
        file, hunk = self.pane.file, self.pane.hunk
        if file is not None:
            self.copy(f"{file.path}:{hunk.line}" if hunk else file.path)


def _has_to_decide(worker: WorkerView) -> bool:
    """Its conflicts are decided here, or how its landing gets past edits of the user's."""
    return worker.phase is Phase.CONFLICTED or is_blocked(worker)
