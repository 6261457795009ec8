"""What can be done to workers, alike on Fleet, Worker, Diff and Inbox: a command, or a text."""

from dataclasses import fields
from time import time

from engine.commands import (
    AddWorker,
    Answer,
    Approve,
    BeginFrom,
    Choose,
    Interrupt,
    Land,
    Pause,
    Reject,
    Resume,
    RetryWorker,
    SetLimits,
    Steer,
    StopWorker,
)
from engine.limits import Limits
from engine.phases import Phase, StopCause
from engine.results import Badge, WorkerView
from tui.present.doable import why_not
from tui.present.ink import BOLD, TEXT, Row, Span, words
from tui.present.pickers import Choice, Picker
from tui.present.said import how_heard
from tui.present.settings import MOMENTS, limits_with, split_settings, time_named
from tui.present.standing import step_of
from tui.screens.base import Writing
from tui.screens.outward import OutwardScreen
from tui.screens.session import Undoable

_NEEDS_WORKER = frozenset(
    {
        *("yes", "yes_wide", "no", "retry", "retry_with", "pause", "steer", "comment", "land"),
        *(
            "diff",
            "new",
            "zoom",
            "terminal",
            "limits",
            "check",
            "edit",
            "edit_all",
            "interrupt",
            "copy",
            "copy_name",
        ),
        *("next_worker", "previous_worker", "open", "mark", "select", "less", "more", "follow"),
    }
)
_NO_LABELS = {
    Phase.STOPPING: "kill",
    Phase.REVIEWING: "give up",
    Phase.CONFLICTED: "give up",
}
_SETTING = "first line: memory_mb=2048 agent=codex at=14:32, if wanted"


class ActingScreen(OutwardScreen):
    """A screen with a worker under its cursor."""

    opens_diff = "diff"
    """The idea that opens its diff here."""

    def why_not(self, idea: str) -> str:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return "there is no worker" if idea in _NEEDS_WORKER else ""
        if idea in {"limits", "interrupt"} and not worker.phase.holds_slot:
            return "nothing of it runs"
        if self.session.marks and idea in {"steer", "comment", "retry", "pause", "no"}:
            return ""
        if idea == "no" and worker.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            return ""
        return self.why_not_out(idea, worker, step) or why_not(idea, worker, step)

    def label_of(self, idea: str) -> str:
        """What yes and no mean depends on what is under the cursor; the footer says which."""
        worker, step, label = (
            self.session.worker_view,
            self.session.step_view,
            super().label_of(idea),
        )
        if not label or worker is None or idea not in {"yes", "no"}:
            return label
        asks = bool(worker.questions) and not worker.phase.is_settled
        if idea == "yes":
            chooses = "choose" if step and step.is_choice_due else "approve"
            return label if asks else chooses
        if asks and worker.questions[0].is_permission:
            return "deny"
        return _NO_LABELS.get(worker.phase, "stop")

    def targets(self, idea: str) -> list[WorkerView]:
        """The marked workers to which the idea can be done, else the one under the cursor."""
        run, here = self.session.run, self.session.worker_view
        if run is None or here is None:
            return []
        if not self.session.marks:
            return [here]
        marked = [worker for worker in run.workers if worker.worker in self.session.marks]
        return [worker for worker in marked if not why_not(idea, worker, step_of(run, worker))]

    def shows_whole_question(self, worker: WorkerView) -> bool:
        """Whether all of what it asks stands on the screen: only then may it be allowed."""
        del worker
        return False

    # Yes.

    def do_yes(self) -> None:
        worker = self._here()
        if worker.questions:
            self._allow(worker, is_for_run=False)
        elif not self._diff_was_opened(worker):
            opens = f"{self._key(self.opens_diff)} opens it"
            self.say_refused(self._key("yes"), "its diff was not opened yet", opens)
        elif self.session.step_view and self.session.step_view.is_choice_due:
            command = Choose(worker=worker.worker, run=self.run_id)
            self.send(command, worker.worker)
        else:
            self.send(Approve(worker=worker.worker, run=self.run_id), worker.worker)

    def do_yes_wide(self) -> None:
        self._allow(self._here(), is_for_run=True)

    def _allow(self, worker: WorkerView, *, is_for_run: bool) -> None:
        question = worker.questions[0]
        if not self.shows_whole_question(worker):
            self.open_question()
            return
        if question.is_permission:
            command = Answer(
                worker=worker.worker,
                answer="allow",
                question=question.id,
                is_for_run=is_for_run,
                run=self.run_id,
            )
            self.send(command, "allowed for the run" if is_for_run else "allowed once")
        elif question.choices:
            choices = [Choice(choice, choice) for choice in question.choices]
            self.choose(Picker("Answer", choices), self._answer)
        else:
            self.do_steer()

    def open_question(self) -> None:
        """Show all of what it asks."""
        self.go("inbox")

    def _answer(self, text: str) -> None:
        worker = self._here()
        question = worker.questions[0].id if worker.questions else None
        command = Answer(worker=worker.worker, answer=text, question=question, run=self.run_id)
        self.send(command, "answered")

    def _diff_was_opened(self, worker: WorkerView) -> bool:
        return (self.run_id, worker.worker, worker.attempt) in self.session.opened_diffs

    # No.

    def do_no(self) -> None:
        workers = self.targets("no")
        if len(workers) == 1:
            self._no_to(workers[0])
        elif workers:
            names = Span(f"Stop {len(workers)} marked workers? Their work is kept.", TEXT)
            self.ask_first("no", words(names), lambda: self._stop(workers, is_kill=False))

    def _no_to(self, worker: WorkerView) -> None:
        name = Span(worker.worker, BOLD)
        if worker.questions and worker.questions[0].is_permission:
            self._deny(worker)
        elif worker.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            said = words(
                Span("Give up the change of ", TEXT), name, Span("? It stays on its ref.", TEXT)
            )
            self.ask_first("no", said, lambda: self._reject(worker))
        elif worker.phase is Phase.STOPPING:
            said = words(
                Span("Kill ", TEXT), name, Span(" now? What it has written is kept.", TEXT)
            )
            self.ask_first("no", said, lambda: self._stop([worker], is_kill=True))
        else:
            self.ask_first("no", _stop_said(name), lambda: self._stop([worker], is_kill=False))

    def _deny(self, worker: WorkerView) -> None:
        note = "a reason that the agent reads; may be empty"
        self.write(
            Writing(
                f"deny {worker.worker}",
                note,
                lambda text: self._answer(f"deny: {text}" if text else "deny"),
                key=f"deny {worker.worker}",
                may_be_empty=True,
            )
        )

    def deny_for_run(self, worker: WorkerView) -> None:
        """Deny it now, and whenever it is asked again in this run."""
        question = worker.questions[0].id
        command = Answer(
            worker=worker.worker, answer="deny", question=question, is_for_run=True, run=self.run_id
        )
        self.send(command, "denied for the run")

    def _reject(self, worker: WorkerView) -> None:
        self.send(Reject(worker=worker.worker, run=self.run_id), f"{worker.worker} is given up")

    def _stop(self, workers: list[WorkerView], *, is_kill: bool) -> None:
        for worker in workers:
            command = StopWorker(worker=worker.worker, run=self.run_id, is_kill=is_kill)
            self.send(command, f"{worker.worker} is {'killed' if is_kill else 'asked to stop'}")
        self.session.marks.clear()

    # Again.

    def do_retry(self) -> None:
        for worker in self.targets("retry"):
            self.send(
                RetryWorker(worker=worker.worker, run=self.run_id), f"{worker.worker} begins again"
            )
        self.session.marks.clear()

    def do_retry_with(self) -> None:
        worker = self._here()
        draft = ""
        if worker.cause is StopCause.MEMORY and worker.limits.memory_mb:
            draft = f"memory_mb={worker.limits.memory_mb * 2}\n"
        writing = Writing(
            f"retry {worker.worker} with",
            f"what it should do otherwise; {_SETTING}",
            lambda text: self._retry_with(worker, text),
            key=f"retry {worker.worker}",
        )
        self.write(writing, draft)

    def _retry_with(self, worker: WorkerView, text: str) -> None:
        settings, feedback = split_settings(text)
        agent, when = settings.pop("agent", None), settings.pop("at", None)
        at = time_named(when, time()) if when else None
        limits = limits_with(worker.limits, settings) if settings else None
        if when and at is None:
            limits = f"at={when}: expected {MOMENTS}"
        if isinstance(limits, str):
            self.say_refused("retry", limits)
            return
        command = RetryWorker(
            worker=worker.worker,
            run=self.run_id,
            mode=BeginFrom.CONTINUE if feedback and at is None else BeginFrom.FRESH,
            feedback=feedback,
            limits=limits,
            agent=agent,
            at=at,
        )
        self.send(command, f"{worker.worker} begins again")

    def do_new(self) -> None:
        step = self._here().step
        self.send(AddWorker(step=step, run=self.run_id), f"one more worker in {step}")

    # Meanwhile.

    def do_pause(self) -> None:
        for worker in self.targets("pause"):
            pause = Pause(worker=worker.worker, run=self.run_id)
            resume = Resume(worker=worker.worker, run=self.run_id)
            is_paused = Badge.PAUSED in worker.badges
            first, then = (resume, pause) if is_paused else (pause, resume)
            said = f"{worker.worker} {'goes on' if is_paused else 'is paused'}"
            undoable = Undoable(
                said,
                lambda then=then: self.send(then, "undone"),  # type: ignore[misc]
                lambda first=first, said=said: self.send(first, said),  # type: ignore[misc]
            )
            self.send(first, said, lambda undoable=undoable: self.session.remember(undoable))  # type: ignore[misc]

    def do_steer(self) -> None:
        workers = self.targets("steer")
        if not workers:
            self.say_refused(self._key("steer"), "none of the marked workers runs")
            return
        asks = len(workers) == 1 and bool(workers[0].questions)
        who = workers[0].worker if len(workers) == 1 else f"{len(workers)} workers"
        note = "your answer" if asks else how_heard(workers)
        title = f"answer {who}" if asks else f"say to {who}"
        self.write(
            Writing(title, note, lambda text: self._say_to(workers, text), key=f"steer {who}")
        )

    def do_comment(self) -> None:
        self.do_steer()

    def _say_to(self, workers: list[WorkerView], text: str) -> None:
        for worker in workers:
            if worker.questions:
                answer = Answer(
                    worker=worker.worker,
                    answer=text,
                    question=worker.questions[0].id,
                    run=self.run_id,
                )
                self.send(answer, f"answered {worker.worker}")
            else:
                self.send(
                    Steer(worker=worker.worker, text=text, run=self.run_id),
                    f"said to {worker.worker}",
                )

    def do_interrupt(self) -> None:
        worker = self._here()
        self.send(
            Interrupt(worker=worker.worker, run=self.run_id), f"{worker.worker} is interrupted"
        )

    def do_limits(self) -> None:
        worker = self._here()
        names = " ".join(place.name for place in fields(Limits))
        writing = Writing(
            f"limits of {worker.worker}",
            f"memory_mb=2048, … of {names}",
            lambda text: self._set_limits(worker, text),
            key=f"limits {worker.worker}",
        )
        self.write(writing)

    def _set_limits(self, worker: WorkerView, text: str) -> None:
        settings, rest = split_settings(text)
        limits = (
            limits_with(worker.limits, settings)
            if settings and not rest
            else "not like memory_mb=2048"
        )
        if isinstance(limits, str):
            self.say_refused("limits", limits)
            return
        command = SetLimits(worker=worker.worker, limits=limits, run=self.run_id)
        self.send(command, f"{worker.worker} has other limits")

    # Landing.

    def do_land(self) -> None:
        worker = self._here()
        if worker.check and worker.check.passed and not worker.is_check_stale:
            self.send(Land(worker=worker.worker, run=self.run_id), f"landing {worker.worker}")
            return
        fault = "is stale" if worker.is_check_stale else "failed" if worker.check else "was not run"
        writing = Writing(
            f"the check {fault}: type land",
            f"to land {worker.worker} despite it",
            lambda text: self._land_despite(worker, text),
            key=f"land {worker.worker}",
        )
        self.write(writing)

    def _land_despite(self, worker: WorkerView, text: str) -> None:
        if text.strip().casefold() != "land":
            self.say_refused(self._key("land"), "the word was not typed")
            return
        command = Land(worker=worker.worker, run=self.run_id, is_despite_check=True)
        self.send(command, f"landing {worker.worker} despite its check")


def _stop_said(name: Span) -> Row:
    end = "? It may finish its tool; its work stays on its branch."
    return words(Span("Stop ", TEXT), name, Span(end, TEXT))
