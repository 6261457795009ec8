"""Say something to agents."""

from functools import partial

from engine.messages.asked import is_allowing
from engine.messages.commands import (
    Answer,
    Interrupt,
    Steer,
)
from engine.messages.results import WorkerView
from tui.controllers.workers import Workers, listed
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.words.asking import asks_permission, raw_of
from tui.words.said import how_heard


class Talking(Controller):
    """Steer, answer, interrupt."""

    def do_steer(self) -> None:
        workers = self.screen.does(Workers).targets("steer")
        if not workers:
            self.refuse("steer", "none of the marked workers is running")
            return
        asks = len(workers) == 1 and bool(workers[0].questions)
        who = workers[0].worker if len(workers) == 1 else listed(workers)
        note = "your answer" if asks else how_heard(workers)
        title = f"answer {who}" if asks else f"say to {who}"
        say = partial(self._say_to, self.run_id, workers)
        self.screen.write(Writing(title, note, say, key=f"steer {who}"))

    def do_comment(self) -> None:
        self.do_steer()

    def _say_to(self, run: str, workers: list[WorkerView], text: str) -> None:
        if is_allowing(text) and any(map(asks_permission, workers)):
            hint = f"{self.screen.key_of('yes')} allows what is on screen"
            self.refuse("steer", "a message cannot allow a request", hint)
            return
        for worker in workers:
            if worker.questions:
                asked = raw_of(worker.questions[0])
                answer = Answer(
                    worker=worker.worker, answer=text, question=asked.id, asked=asked.text, run=run
                )
                self.screen.send(answer, f"answered {worker.worker}")
            else:
                self.screen.send(
                    Steer(worker=worker.worker, text=text, run=run),
                    f"sent to {worker.worker}",
                )

    def do_interrupt(self) -> None:
        worker = self.here()
        self.screen.send(
            Interrupt(worker=worker.worker, run=self.run_id),
            f"{worker.worker} is interrupted",
        )
