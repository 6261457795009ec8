"""Start the program of the worker under the cursor for the user's browser, and end it."""

from functools import partial

from engine.messages.commands import Refused
from engine.messages.questions import ReadServed, ServeWorker, StopServing
from engine.messages.results import WorkerView
from engine.messages.served import ServedState
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.screen import Controller
from tui.words.served import served_text

_TOLD = frozenset({ServedState.READY, ServedState.ENDED})
_NO_LINES = 1 << 60


class Serving(Controller):
    """Serve the program under the cursor; the same key on one that is served ends it."""

    def label_of(self, idea: str, label: str) -> str:
        """Return the word for a program that is served already."""
        worker = self.session.worker_view
        return "stop program" if idea == "serve" and worker and _is_alive(worker) else label

    def do_serve(self) -> None:
        worker = self.here()
        act = self._end if _is_alive(worker) else self._start
        self.screen.begin(partial(act, worker.worker))

    async def _start(self, worker: str) -> None:
        """Start it, and say how it is until it is ready, or has ended."""
        bridge = self.session.bridge
        done = await bridge.beside(bridge.port.ask(ServeWorker(self.run_id, worker)))
        while not isinstance(done, Refused):
            self.screen.say(
                Span("● ", Ink(Role.RUNNING)), Span(f"{worker} ", TEXT), served_text(done)
            )
            if done.state in _TOLD:
                return
            log = await bridge.beside(
                bridge.port.ask(ReadServed(self.run_id, worker, _NO_LINES, done))
            )
            if isinstance(log, Refused) or log.served is None:  # somebody else has ended it
                return
            done = log.served
        self.refuse("serve", done.reason, done.hint)

    async def _end(self, worker: str) -> None:
        ask = self.session.bridge.port.ask(StopServing(self.run_id, worker))
        done = await self.session.bridge.beside(ask)
        if isinstance(done, Refused):
            self.refuse("serve", done.reason, done.hint)
        else:
            self.screen.say(
                Span("✓ ", Ink(Role.DONE)), Span(f"the program of {worker} has stopped", TEXT)
            )


def _is_alive(worker: WorkerView) -> bool:
    return worker.served is not None and worker.served.state is not ServedState.ENDED
