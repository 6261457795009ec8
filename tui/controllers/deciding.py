"""Say yes and no: allow, approve, choose; deny, stop, give up."""

from functools import partial

from engine.messages.commands import (
    Answer,
    Approve,
    Choose,
    Reject,
    StopWorker,
)
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers.workers import Workers
from tui.ink import BOLD, TEXT, Row, Span, words
from tui.kit.dialogs import Answers, Choice
from tui.kit.screen import Controller
from tui.kit.textbox import Writing


def _stop_said(name: Span) -> Row:
    end = "? It may finish its tool; its work stays on its branch."
    return words(Span("Stop ", TEXT), name, Span(end, TEXT))


class Deciding(Controller):
    """Answer what waits for a yes or a no."""

    def do_yes(self) -> None:
        if self.screen.does(Workers).over_marked("yes", "Approve", self._approve):
            return
        worker = self.here()
        if worker.questions:
            self._allow(worker, is_for_run=False)
        elif not self.session.has_opened(worker):
            opens = f"{self.screen.key_of(self.screen.opens_diff)} opens it"
            self.refuse("yes", "its diff was not opened yet", opens)
        elif self.session.step_view and self.session.step_view.is_choice_due:
            command = Choose(worker=worker.worker, run=self.run_id, seen=self.screen.seen(worker))
            self.screen.send(command, f"{worker.worker} is chosen")
        else:
            self._approve(worker)

    def _approve(self, worker: WorkerView) -> None:
        approve = Approve(worker=worker.worker, run=self.run_id, seen=self.screen.seen(worker))
        self.screen.send(approve, f"{worker.worker} is approved")

    def do_yes_wide(self) -> None:
        self._allow(self.here(), is_for_run=True)

    def _allow(self, worker: WorkerView, *, is_for_run: bool) -> None:
        question = worker.questions[0]
        if not self.screen.shows_whole_question(worker):
            self.screen.open_question()
            return
        if question.is_permission:
            command = Answer(
                worker=worker.worker,
                answer="allow",
                question=question.id,
                is_for_run=is_for_run,
                run=self.run_id,
            )
            self.screen.send(command, "allowed for the run" if is_for_run else "allowed once")
        elif question.choices:
            choices = [
                Choice(choice, choice, key=str(n)) for n, choice in enumerate(question.choices, 1)
            ]
            answer = partial(self._answer, self.run_id, worker)
            self.screen.open(Answers("Answer", choices, self.session.ahead), answer)
        else:
            self.screen.perform("steer")

    def _answer(self, run: str, worker: WorkerView, text: str) -> None:
        """Answer what that worker asked when it was on screen."""
        question = worker.questions[0].id if worker.questions else None
        command = Answer(worker=worker.worker, answer=text, question=question, run=run)
        self.screen.send(command, "answered")

    def do_no(self) -> None:
        stop = partial(self._stop, self.run_id)
        if not self.screen.does(Workers).over_marked("no", "Stop", stop):
            self._no_to(self.here())

    def _no_to(self, worker: WorkerView) -> None:
        name, run = Span(worker.worker, BOLD), self.run_id
        if worker.questions and worker.questions[0].is_permission:
            self._deny(worker)
        elif worker.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            said = words(
                Span("Give up the change of ", TEXT), name, Span("? It stays on its ref.", TEXT)
            )
            self.ask_to_reject("no", worker, said)
        elif worker.phase is Phase.STOPPING:
            said = words(
                Span("Kill ", TEXT), name, Span(" now? What it has written is kept.", TEXT)
            )
            self.screen.ask_first("no", said, partial(self._stop, run, worker, is_kill=True))
        else:
            self.screen.ask_first("no", _stop_said(name), partial(self._stop, run, worker))

    def _deny(self, worker: WorkerView) -> None:
        note, run = "a reason that the agent reads; may be empty", self.run_id
        self.screen.write(
            Writing(
                f"deny {worker.worker}",
                note,
                lambda text: self._answer(run, worker, f"deny: {text}" if text else "deny"),
                key=f"deny {worker.worker}",
                may_be_empty=True,
            )
        )

    def deny_for_run(self, worker: WorkerView) -> None:
        """Deny it now, and whenever it is asked again in this run."""
        question = worker.questions[0].id
        command = Answer(
            worker=worker.worker,
            answer="deny",
            question=question,
            is_for_run=True,
            run=self.run_id,
        )
        self.screen.send(command, "denied for the run")

    def ask_to_reject(self, idea: str, worker: WorkerView, said: Row) -> None:
        """Ask first, then give up exactly the change that is on screen now."""
        seen, run = self.screen.seen(worker), self.run_id
        command = Reject(worker=worker.worker, run=run, seen=seen)
        self.screen.ask_first(
            idea, said, lambda: self.screen.send(command, f"{worker.worker} is given up")
        )

    def _stop(self, run: str, worker: WorkerView, *, is_kill: bool = False) -> None:
        command = StopWorker(worker=worker.worker, run=run, is_kill=is_kill)
        self.screen.send(command, f"{worker.worker} is {'killed' if is_kill else 'asked to stop'}")
