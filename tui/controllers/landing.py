"""Land what is under the cursor, and take a landing back."""

from functools import partial

from engine.messages.commands import (
    Land,
    UndoLanding,
)
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers.trying import Trying
from tui.controllers.workers import Workers
from tui.ink import TEXT, Span, words
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.words.outcomes import CameOut, Pursued
from tui.words.unshown import NOTHING_UNSHOWN, asks_to_land


class Landing(Controller):
    """Land, by word where a check is overruled."""

    def do_land(self) -> None:
        """Land it; a check that is stale or was not run is run by the landing itself."""
        if self.screen.does(Workers).over_marked("land", "Land", self._land_one):
            return
        trying = self.screen.does(Trying)
        if tried := trying.tried:
            land = f"Restore your files, then land {self.here().worker}?"
            asks = f"You are trying {tried} in your checkout. {land}"
            act = partial(trying.back_then, partial(self._land_one, self.here()))
            self.screen.ask_first("land", words(Span(asks, TEXT)), act)
            return
        self._land_one(self.here())

    def _land_one(self, worker: WorkerView) -> None:
        at = self.run_id, worker.worker, worker.attempt
        asked = asks_to_land(worker, self.session.unshown.get(at, NOTHING_UNSHOWN))
        command = Land(
            worker=worker.worker,
            run=self.run_id,
            seen=self.screen.seen(worker),
            is_despite_check=asked.is_despite_check,
        )
        if asked.word:
            writing = Writing(
                f"{asked.word}: type land",
                f"lands {worker.worker} anyway",
                partial(self._land_by_word, command),
                key=f"land {worker.worker}",
            )
            self.screen.write(writing)
        elif asked.question:
            said = words(Span(asked.question, TEXT))
            self.screen.ask_first("land", said, partial(self._land, command))
        else:
            self._land(command)

    def _land_by_word(self, command: Land, text: str) -> None:
        if text.strip().casefold() != "land":
            self.refuse("land", "you did not type `land`")
        else:
            self._land(command)

    def _land(self, command: Land) -> None:
        despite = " despite its check" if command.is_despite_check else ""
        self.screen.send(command, f"landing {command.worker}{despite}")

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Keep a landing as the newest thing done; it is asked about before it is taken back."""
        if pursued.is_landing and outcome.is_well:
            undo = UndoLanding(worker=pursued.worker, run=pursued.run)
            said = f"the landing of {pursued.worker}"
            take_back = partial(self._take_back, undo)
            asks = f"Undo the landing of {pursued.worker}?"
            is_landed = partial(self._is_landed, pursued.run, pursued.worker)
            self.session.remember(Undoable(said, take_back, None, asks, is_landed))

    def _is_landed(self, run: str, worker: str) -> bool:
        found = self.session.worker_of(run, worker)
        return found is None or found.phase is Phase.LANDED

    def _take_back(self, undo: UndoLanding) -> None:
        self.screen.send(undo, f"undoing the landing of {undo.worker}")
