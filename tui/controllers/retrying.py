"""Let a worker begin again, or one more beside it."""

from functools import partial
from time import time

from engine.messages.commands import (
    AddWorker,
    BeginFrom,
    RetryWorker,
    Seen,
)
from engine.messages.results import WorkerView
from engine.phases import StopCause
from tui.controllers.workers import Workers, listed
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.words.settings import MOMENTS, limits_with, split_settings, time_named

_SETTING = "optional first line: memory_mb=2048 agent=codex at=14:32"


class Retrying(Controller):
    """Begin again as it was, or with other words, limits, agent, time."""

    def do_retry(self) -> None:
        if not self.screen.does(Workers).over_marked("retry", "Retry", self._retry):
            self._retry(self.here())

    def _retry(self, worker: WorkerView) -> None:
        again = RetryWorker(worker=worker.worker, run=self.run_id, seen=self.screen.seen(worker))
        self.screen.send(again, f"{worker.worker} starts again")

    def do_retry_with(self) -> None:
        workers = self.screen.does(Workers).targets("retry_with")
        if not workers:
            self.refuse("retry_with", "none of the marked workers can be retried")
            return
        worker = workers[0]
        who = worker.worker if len(workers) == 1 else listed(workers)
        seen = [(each, self.screen.seen(each)) for each in workers]
        draft = ""
        if worker.cause is StopCause.MEMORY and worker.limits.memory_mb:
            draft = f"memory_mb={worker.limits.memory_mb * 2}\n"
        writing = Writing(
            f"retry {who} with",
            f"what to do differently; {_SETTING}",
            partial(self._retry_all_with, self.run_id, seen),
            key=f"retry {who}",
        )
        self.screen.write(writing, draft)

    def _retry_all_with(self, run: str, workers: list[tuple[WorkerView, Seen]], text: str) -> None:
        for worker, seen in workers:
            self._retry_with(run, worker, seen, text)
        self.session.marks.clear()

    def _retry_with(self, run: str, worker: WorkerView, seen: Seen, text: str) -> None:
        settings, feedback = split_settings(text)
        agent, when = settings.pop("agent", None), settings.pop("at", None)
        at = time_named(when, time()) if when else None
        limits = limits_with(worker.limits, settings) if settings else None
        if when and at is None:
            limits = f"at={when}: expected {MOMENTS}"
        if isinstance(limits, str):
            self.screen.say_refused("retry", limits)
            return
        command = RetryWorker(
            worker=worker.worker,
            run=run,
            seen=seen,
            mode=BeginFrom.CONTINUE if feedback and at is None else BeginFrom.FRESH,
            feedback=feedback,
            limits=limits,
            agent=agent,
            at=at,
        )
        self.screen.send(command, f"{worker.worker} starts again")

    def do_new(self) -> None:
        step = self.here().step
        self.screen.send(AddWorker(step=step, run=self.run_id), f"one more worker in {step}")
