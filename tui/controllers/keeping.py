"""Keep the files of the worker under the cursor, or of all marked ones, as they are now."""

from functools import partial

from engine.messages.commands import Refused
from engine.messages.merging import MakeCheckpoint
from engine.messages.results import WorkerView
from tui.controllers.workers import Workers
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.screen import Controller
from tui.words.figures import clock


class Keeping(Controller):
    """Make checkpoints on request."""

    def do_checkpoint(self) -> None:
        workers = self.screen.does(Workers)
        if not workers.over_marked("checkpoint", "Keep the files of", self._begin):
            self._begin(self.here())

    def _begin(self, worker: WorkerView) -> None:
        self.screen.begin(partial(self._keep, worker.worker))

    async def _keep(self, worker: str) -> None:
        ask = self.session.bridge.port.ask(MakeCheckpoint(self.run_id, worker))
        done = await self.session.bridge.beside(ask)
        if isinstance(done, Refused):
            self.refuse("checkpoint", done.reason, done.hint)
            return
        said = f"the files of {worker} are kept as they were at {clock(done.at, done.at)}"
        self.screen.say(Span("✓ ", Ink(Role.DONE)), Span(said, TEXT))
