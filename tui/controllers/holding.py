"""Pause workers, and change what they may use."""

from functools import partial

from engine.limits import KINDS
from engine.messages.commands import Pause, Resume, SetLimits
from engine.messages.results import Badge, WorkerView
from engine.phases import Phase
from tui.controllers.workers import Workers
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.words.settings import limits_with, split_settings


class Holding(Controller):
    """Pause a worker, or give it other limits."""

    def label_of(self, idea: str, label: str) -> str:
        """Return the word for the pause of what is paused already."""
        worker, run = self.session.worker_view, self.session.run
        if label == "pause" and worker and Badge.PAUSED in worker.badges:
            return "continue"
        return "continue run" if idea == "pause_run" and run and run.is_paused else label

    def do_pause(self) -> None:
        workers = self.screen.does(Workers)
        held = {Badge.PAUSED in worker.badges for worker in workers.targets("pause")}
        verb = "Continue" if held == {True} else "Pause"
        verb = "Pause or continue" if len(held) > 1 else verb
        if not workers.over_marked("pause", verb, self._pause):
            self._pause(self.here())

    def _pause(self, worker: WorkerView) -> None:
        pause = Pause(worker=worker.worker, run=self.run_id)
        resume = Resume(worker=worker.worker, run=self.run_id)
        is_paused = Badge.PAUSED in worker.badges
        first, then = (resume, pause) if is_paused else (pause, resume)
        said = f"{worker.worker} {'continues' if is_paused else 'is paused'}"
        undoable = Undoable(
            said,
            partial(self.screen.send, then, "undone"),
            partial(self.screen.send, first, said),
            can_undo=partial(self._runs, self.run_id, worker),
        )
        self.screen.send(first, said, partial(self.session.remember, undoable))

    def _runs(self, run: str, worker: WorkerView) -> bool:
        """Say if the attempt goes on: only then it can be paused or continued."""
        now = self.session.worker_of(run, worker.worker)
        return now is None or (now.phase, now.attempt) == (Phase.RUNNING, worker.attempt)

    def do_limits(self) -> None:
        worker = self.here()
        names = " ".join(KINDS)
        writing = Writing(
            f"limits of {worker.worker}",
            f"memory_mb=2048, … of {names}",
            partial(self._set_limits, self.run_id, worker),
            key=f"limits {worker.worker}",
        )
        self.screen.write(writing)

    def _set_limits(self, run: str, worker: WorkerView, text: str) -> None:
        settings, rest = split_settings(text)
        limits = (
            limits_with(worker.limits, settings)
            if settings and not rest
            else "expected a form like memory_mb=2048"
        )
        if isinstance(limits, str):
            self.screen.say_refused("limits", limits)
            return
        command = SetLimits(worker=worker.worker, limits=limits, run=run)
        self.screen.send(command, f"{worker.worker} has new limits")
