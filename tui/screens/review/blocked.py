"""Go on with a change that could not land because of uncommitted edits of the user's."""

from dataclasses import replace
from functools import partial

from engine.messages.commands import Edits, Land, StopWorker
from engine.phases import Phase
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.screens.review.blocked_page import Way, is_blocked, ways_of
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane

_SAID = {
    Edits.CARRY: "lands; your edits stay on top",
    Edits.COMMIT: "lands on top of a commit of your edits",
    Edits.WAIT: "lands once your edits are out of the way",
}


class Blocked(Controller):
    """Take one of the ways on; each has a key."""

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    @property
    def is_blocked(self) -> bool:
        """Edits are in the way, and no conflict is to be decided first."""
        return self.pane.shown is None and is_blocked(self.session.worker_view)

    def way_of(self, idea: str) -> Way | None:
        """Return the way on that a key takes."""
        ways = ways_of(self.session.worker_view) if self.is_blocked else ()
        return next((way for way in ways if way.idea == idea), None)

    def do_pause(self) -> None:
        self.take("pause")

    def take(self, idea: str) -> None:
        """Go on in the way of a key."""
        way = self.way_of(idea)
        if way is None:
            return
        worker = self.here()
        name = worker.worker
        if worker.phase is Phase.LANDING:
            self.screen.send(
                StopWorker(worker=name, run=self.run_id), f"{name} waits for review again"
            )
        elif way.edits is not None:
            command = Land(
                worker=name, run=self.run_id, edits=way.edits, seen=self.screen.seen(worker)
            )
            self.screen.send(command, f"{name} {_SAID[way.edits]}")
        else:
            note = "the branch to land on"
            command = Land(worker=name, run=self.run_id, seen=self.screen.seen(worker))
            land_on = partial(self._land_on, command)
            self.screen.write(Writing(f"land {name} on", note, land_on, key=f"land on {name}"))

    def _land_on(self, command: Land, text: str) -> None:
        branch = text.strip()
        self.screen.send(replace(command, to=branch), f"landing {command.worker} on {branch}")
