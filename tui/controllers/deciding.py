"""Say yes and no: allow, approve, choose; deny, stop, give up."""

from collections.abc import Callable, Mapping, Sequence
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
from tui.words.asking import (
    asked_of,
    asks_permission,
    choices_of,
    raw_of,
    who_asks_alike,
    why_not_kept,
)
from tui.words.cutting import cut_end

_READ_S = 2.0
"""A question is not read sooner: a key that comes before may be meant for something else."""
_ASKS_NOT = "it asks nothing"


def _answer_to(worker: WorkerView, text: str, run: str, *, is_for_run: bool = False) -> Answer:
    """Return the answer to exactly what a worker asked when it was looked at."""
    asked = raw_of(worker.questions[0]) if worker.questions else None
    return Answer(
        worker=worker.worker,
        answer=text,
        question=asked.id if asked else None,
        asked=asked.text if asked else None,
        is_for_run=is_for_run,
        run=run,
    )


def _stop_said(name: Span) -> Row:
    end = "? It may finish its tool; its work stays on its branch."
    return words(Span("Stop ", TEXT), name, Span(end, TEXT))


class Deciding(Controller):
    """Answer what waits for a yes or a no."""

    def why_not(self, idea: str) -> str:
        """Return why a request cannot be allowed for the run, or a question answered for all."""
        worker = self.session.worker_view
        asked = asked_of(worker) if worker else None
        if idea != "yes_wide" or worker is None or asked is None:
            return ""
        yes = self.screen.key_of("yes")
        if asked.is_permission:
            reason = why_not_kept(asked)
            return f"{reason}; {yes} allows it once" if reason else ""
        alone = f"nobody else asks the same; {yes} answers it"
        return "" if len(self._alike(worker)) > 1 else alone

    def do_yes(self) -> None:
        here = self.session.worker_view
        asks_all = bool(self.session.marks and here and asked_of(here))
        if not asks_all and self._workers.over_marked("yes", "Approve", self._approve):
            return
        worker = self.here()
        if worker.questions:
            self._allow(worker, is_for_run=False)
        elif self.session.step_view and self.session.step_view.is_choice_due:
            command = Choose(worker=worker.worker, run=self.run_id, seen=self.screen.seen(worker))
            self.screen.send(command, f"{worker.worker} is chosen")
        else:
            self._approve(worker)

    def _approve(self, worker: WorkerView) -> None:
        approve = Approve(worker=worker.worker, run=self.run_id, seen=self.screen.seen(worker))
        self.screen.send(approve, f"{worker.worker} is approved")

    def do_yes_wide(self) -> None:
        """Allow it for the run; give one answer to all who ask the same."""
        worker = self.here()
        if asks_permission(worker):
            self._allow(worker, is_for_run=True)
        else:
            self._let_choose(worker, partial(self._answer_alike, worker, self._alike(worker)))

    def _allow(self, worker: WorkerView, *, is_for_run: bool) -> None:
        question = worker.questions[0]
        if not self.screen.shows_whole_question(worker):
            self.screen.open_question()
        elif not question.is_permission:
            self._let_choose(worker, partial(self._pick, worker))
        elif self.session.marks and not is_for_run:
            self._answer_alike(worker, self._workers.marked, "allow")
        else:
            command = _answer_to(worker, "allow", self.run_id, is_for_run=is_for_run)
            done = "allowed for the run" if is_for_run else "allowed once"
            asks = "This request just appeared. Allow it once?"
            if is_for_run:
                asks = "This request just appeared. Allow it for the whole run?"
            act, said = partial(self.screen.send, command, done), words(Span(asks, TEXT))
            self._once_read(worker, "yes_wide" if is_for_run else "yes", said, act)

    def edit_command(self) -> None:
        """Open the command that is asked for in the box; what is sent there is what is allowed."""
        worker = self.here()
        question, run = worker.questions[0], self.run_id

        def allow(text: str) -> None:
            if command := text.strip():
                edited = _answer_to(worker, f"allow: {command}", run)
                self.screen.send(edited, "allowed as edited")
            else:
                self.refuse("edit", "the command is empty", "the agent still waits for an answer")

        writing = Writing(
            f"allow for {worker.worker}",
            "the agent runs this text",
            allow,
            key=f"edit {run} {worker.worker} {worker.attempt} {question.id}",
            may_be_empty=True,
            is_code=True,
            file="command.sh",
        )
        self.screen.write(writing, raw_of(question).command)

    # Questions with answers to choose from.

    @property
    def _workers(self) -> Workers:
        return self.screen.does(Workers)

    def _alike(self, worker: WorkerView) -> list[WorkerView]:
        """Return all of this run who ask the same as a worker, that one among them."""
        run = self.session.run
        return who_asks_alike(run.workers, worker) if run else []

    @property
    def digits(self) -> Mapping[str, Callable[[], None]]:
        """Each digit that stands on screen beside an answer gives that answer."""
        self._note_questions()
        worker = self.session.worker_view
        choices = choices_of(worker) if worker else ()
        if worker is None or not choices or self.screen.refusal("yes"):
            return {}
        if not self.screen.shows_whole_question(worker):
            return {}
        return {str(n): partial(self._press, worker, text) for n, text in enumerate(choices, 1)}

    def _press(self, worker: WorkerView, text: str) -> None:
        """Give the answer of a digit."""
        self.screen.ask = None
        said = words(Span("This question just appeared. Answer ", TEXT), Span(text, BOLD), "?")
        self._once_read(worker, "yes", said, partial(self._pick, worker, text))

    def _note_questions(self) -> None:
        """Note since when each question is on screen as a whole, each time the screen is drawn."""
        known, run = self.session.asked_at, self.session.run
        asked = {self._named(one): one for one in (run.workers if run else ()) if asked_of(one)}
        for gone in known.keys() - asked.keys():
            del known[gone]
        for name, worker in asked.items():
            if name not in known and self.screen.shows_whole_question(worker):
                known[name] = self.session.clock()

    def _named(self, worker: WorkerView) -> object:
        return self.run_id, worker.worker, worker.attempt, worker.questions[0]

    def _once_read(self, worker: WorkerView, idea: str, said: Row, act: Callable[[], None]) -> None:
        """Answer what a worker asks; ask first where nobody can have read the question yet.

        The key may have been meant for what was under the cursor a moment ago.
        """
        now = self.session.clock()
        if now - self.session.asked_at.get(self._named(worker), now) < _READ_S:
            self.screen.ask_first(idea, said, act)
        else:
            act()

    def _let_choose(self, worker: WorkerView, then: Callable[[str], None]) -> None:
        """Let one of the answers be chosen, or write one where there are none."""
        answers = enumerate(worker.questions[0].choices, 1)
        choices = [Choice(one, one, key=str(n)) for n, one in answers]
        if choices:
            self.screen.open(Answers("Answer", choices, self.session.ahead), then)
        else:
            title = f"answer {worker.worker}"
            self.screen.write(Writing(title, "your answer", then, key=title))

    def _pick(self, worker: WorkerView, text: str) -> None:
        """Give an answer, to all marked who ask the same where any are marked."""
        if self.session.marks:
            self._answer_alike(worker, self._workers.marked, text)
        else:
            self._answer(self.run_id, worker, text)

    def _answer_alike(self, worker: WorkerView, several: Sequence[WorkerView], text: str) -> None:
        """Give one answer to several who ask the same, after one question that lists them."""
        run, alike = self.run_id, {one.worker for one in who_asks_alike(several, worker)}
        reasons = [
            "" if one.worker in alike else "it asks something else" if one.questions else _ASKS_NOT
            for one in several
        ]
        verb = "Allow once for" if asks_permission(worker) else f"Answer “{cut_end(text, 30)}” for"
        judged = list(zip(several, reasons, strict=True))
        self._workers.over("yes", verb, judged, lambda one: self._answer(run, one, text))

    def _answer(self, run: str, worker: WorkerView, text: str) -> None:
        """Answer what that worker asked when it was on screen."""
        self.screen.send(_answer_to(worker, text, run), "answered")

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
                Span("Reject the change of ", TEXT), name, Span("? It stays on its ref.", TEXT)
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
        note, run = "a reason for the agent; optional", self.run_id
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
        command = _answer_to(worker, "deny", self.run_id, is_for_run=True)
        self.screen.send(command, "denied for the run")

    def ask_to_reject(self, idea: str, worker: WorkerView, said: Row) -> None:
        """Ask first, then give up exactly the change that is on screen now."""
        seen, run = self.screen.seen(worker), self.run_id
        command = Reject(worker=worker.worker, run=run, seen=seen)
        self.screen.ask_first(
            idea, said, lambda: self.screen.send(command, f"{worker.worker} is rejected")
        )

    def _stop(self, run: str, worker: WorkerView, *, is_kill: bool = False) -> None:
        command = StopWorker(worker=worker.worker, run=run, is_kill=is_kill)
        self.screen.send(command, f"{worker.worker} is {'killed' if is_kill else 'asked to stop'}")
