"""Review of a change that could not land because of uncommitted edits of the user's."""

from dataclasses import replace
from functools import partial

from engine.messages.commands import Edits, Land, StopWorker
from engine.phases import Phase
from tui.kit.textbox import Writing
from tui.screens.review.blocked_page import Way, is_blocked, ways_of
from tui.screens.review.moves import ReviewMoves

_SAID = {
    Edits.CARRY: "lands under your edits",
    Edits.COMMIT: "lands on a commit of your edits",
    Edits.WAIT: "lands once your edits are out of the way",
}


class ReviewBlocked(ReviewMoves):
    """The ways on, one key each."""

    @property
    def is_blocked(self) -> bool:
        """Edits are in the way, and no conflict is to be decided first."""
        return self.pane.shown is None and is_blocked(self.session.worker_view)

    def way_of(self, idea: str) -> Way | None:
        """What a key does about the edits."""
        ways = ways_of(self.session.worker_view) if self.is_blocked else ()
        return next((way for way in ways if way.idea == idea), None)

    def do_pause(self) -> None:
        self._take_by("pause")

    def _take_by(self, idea: str) -> None:
        way = self.way_of(idea)
        if way is None:
            super()._take_by(idea)
            return
        worker = self.here()
        name = worker.worker
        if worker.phase is Phase.LANDING:
            self.send(StopWorker(worker=name, run=self.run_id), f"{name} waits for review again")
        elif way.edits is not None:
            command = Land(worker=name, run=self.run_id, edits=way.edits, seen=self.seen(worker))
            self.send(command, f"{name} {_SAID[way.edits]}")
        else:
            note = "the branch that it is to land on"
            command = Land(worker=name, run=self.run_id, seen=self.seen(worker))
            land_on = partial(self._land_on, command)
            self.write(Writing(f"land {name} on", note, land_on, key=f"land on {name}"))

    def _land_on(self, command: Land, text: str) -> None:
        branch = text.strip()
        self.send(replace(command, to=branch), f"landing {command.worker} on {branch}")
