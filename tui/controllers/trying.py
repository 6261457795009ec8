"""Put a worker's merged result into the user's own checkout, and take it back."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.messages.commands import Refused, Seen
from engine.messages.results import WorkerView
from tui.ink import TEXT, Ink, Role, Span, words
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.trials import Trials
from tui.words.clean import clean_name
from tui.words.figures import some


class Trying(Controller):
    """Try the result under the cursor; the same key on a result that is tried takes it back."""

    def why_not(self, idea: str) -> str:
        worker = self.session.worker_view
        if idea != "try" or worker is None or self._is_tried(worker):
            return ""
        if self.session.trials is None:
            return "this console was not opened in a checkout; run `plait try` in one"
        if worker.change is None or not worker.change.files:
            return "it has no change to try yet"
        return ""

    def label_of(self, idea: str, label: str) -> str:
        """Return the word for a result that is tried already."""
        worker = self.session.worker_view
        is_back = idea == "try" and worker is not None and self._is_tried(worker)
        return "restore" if is_back else label

    def _is_tried(self, worker: WorkerView) -> bool:
        return self._is_on(self.run_id, worker.worker)

    def _is_on(self, run: str, worker: str) -> bool:
        trying = self.session.view.trying
        return trying is not None and (trying.run, trying.worker) == (run, worker)

    @property
    def tried(self) -> str:
        """Return the worker whose result this console can take back; empty where there is none."""
        trying = self.session.view.trying
        return trying.worker if trying is not None and self.session.trials is not None else ""

    def back_then(self, then: Callable[[], None]) -> None:
        """Take back what is tried, then go on; what stands against it is said instead."""
        if self.session.trials is not None:
            self.screen.begin(partial(self._back, self.session.trials, then), holds=True)

    def do_try(self) -> None:
        worker, trials = self.here(), self.session.trials
        if trials is None:
            self.refuse("try", "this console was not opened in the checkout of this try")
        elif self._is_tried(worker):
            self.screen.begin(partial(self._back, trials), holds=True)
        else:
            where = clean_name(str(Path(trials.folder).resolve()))
            asks = f"Try {worker.worker} in your checkout, uncommitted? {where}"
            act = partial(self._put, trials, self.run_id, worker.worker, self.screen.seen(worker))
            self.screen.ask_first(
                "try", words(Span(asks, TEXT)), partial(self.screen.begin, act, holds=True)
            )

    async def _put(self, trials: Trials, run: str, worker: str, seen: Seen | None) -> None:
        done = await self.session.bridge.beside(trials.put(run, worker, seen))
        self.session.look()
        if isinstance(done, Refused):
            self.screen.say_refused("try", done.reason, done.hint)
            return
        back = partial(self.screen.begin, partial(self._back, trials), holds=True)
        is_on = partial(self._is_on, run, worker)
        self.session.remember(Undoable(f"the try of {worker}", back, None, can_undo=is_on))
        aside = f", {some(len(done.aside), 'edit')} of yours set aside" if done.aside else ""
        said = f"{some(done.written, 'file')} changed in your checkout{aside}"
        self.screen.say(
            Span("✓ ", Ink(Role.DONE)), Span(f"{worker} is in your checkout: ", TEXT), said
        )

    async def _back(self, trials: Trials, then: Callable[[], None] | None = None) -> None:
        done = await self.session.bridge.beside(trials.back())
        self.session.look()
        if isinstance(done, Refused):
            self.screen.say_refused("try", done.reason, done.hint)
        elif then is not None:
            then()
        elif done is None:
            self.screen.say(Span("no try is active", TEXT))
        else:
            kept = f"your edits made during the try are kept on {done.ref}" if done.ref else ""
            mark = Span("✓ ", Ink(Role.DONE))
            self.screen.say_both("your checkout is as it was before", kept, mark)
