"""What can be done to workers, alike on Fleet, Worker, Diff and Inbox: a command, or a text."""

from functools import partial
from time import time

from engine.limits import KINDS
from engine.messages.commands import (
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
    Seen,
    SetLimits,
    Steer,
    StopWorker,
    UndoLanding,
)
from engine.messages.results import Badge, WorkerView
from engine.phases import Phase, StopCause
from tui.controllers.outward import OutwardScreen
from tui.ink import BOLD, TEXT, Row, Span, words
from tui.kit.dialogs import Choice
from tui.kit.screen import Writing
from tui.kit.session import Undoable, identity_of
from tui.words.doable import why_not
from tui.words.outcomes import CameOut, Pursued
from tui.words.said import how_heard
from tui.words.settings import MOMENTS, limits_with, split_settings, time_named
from tui.words.standing import step_of
from tui.words.unshown import NOTHING_UNSHOWN, asks_to_land

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
            run = self.session.run
            why = "no worker is under the cursor" if run and run.workers else "there is no worker"
            return why if idea in _NEEDS_WORKER else ""
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

    def seen(self, worker: WorkerView) -> Seen:
        """Return what of a worker is on this screen: an act on anything else is refused."""
        return identity_of(worker)

    # Yes.

    def do_yes(self) -> None:
        worker = self._here()
        if worker.questions:
            self._allow(worker, is_for_run=False)
        elif not self._diff_was_opened(worker):
            opens = f"{self._key(self.opens_diff)} opens it"
            self.say_refused(self._key("yes"), "its diff was not opened yet", opens)
        elif self.session.step_view and self.session.step_view.is_choice_due:
            command = Choose(worker=worker.worker, run=self.run_id, seen=self.seen(worker))
            self.send(command, f"{worker.worker} is chosen")
        else:
            approve = Approve(worker=worker.worker, run=self.run_id, seen=self.seen(worker))
            self.send(approve, f"{worker.worker} is approved")

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
            answer = partial(self._answer, self.run_id, worker)
            self.choose("Answer", choices, answer)
        else:
            self.do_steer()

    def open_question(self) -> None:
        """Show all of what it asks."""
        self.go("inbox")

    def _answer(self, run: str, worker: WorkerView, text: str) -> None:
        """Answer what that worker asked when it was on screen."""
        question = worker.questions[0].id if worker.questions else None
        command = Answer(worker=worker.worker, answer=text, question=question, run=run)
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
            self.ask_first("no", words(names), partial(self._stop, self.run_id, workers))

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
            self.ask_first("no", said, partial(self._stop, run, [worker], is_kill=True))
        else:
            self.ask_first("no", _stop_said(name), partial(self._stop, run, [worker]))

    def _deny(self, worker: WorkerView) -> None:
        note, run = "a reason that the agent reads; may be empty", self.run_id
        self.write(
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
            worker=worker.worker, answer="deny", question=question, is_for_run=True, run=self.run_id
        )
        self.send(command, "denied for the run")

    def ask_to_reject(self, idea: str, worker: WorkerView, said: Row) -> None:
        """Ask first, then give up exactly the change that is on screen now."""
        seen, run = self.seen(worker), self.run_id
        command = Reject(worker=worker.worker, run=run, seen=seen)
        self.ask_first(idea, said, lambda: self.send(command, f"{worker.worker} is given up"))

    def _stop(self, run: str, workers: list[WorkerView], *, is_kill: bool = False) -> None:
        for worker in workers:
            command = StopWorker(worker=worker.worker, run=run, is_kill=is_kill)
            self.send(command, f"{worker.worker} is {'killed' if is_kill else 'asked to stop'}")
        self.session.marks.clear()

    # Again.

    def do_retry(self) -> None:
        for worker in self.targets("retry"):
            again = RetryWorker(worker=worker.worker, run=self.run_id, seen=self.seen(worker))
            self.send(again, f"{worker.worker} begins again")
        self.session.marks.clear()

    def do_retry_with(self) -> None:
        worker = self._here()
        draft = ""
        if worker.cause is StopCause.MEMORY and worker.limits.memory_mb:
            draft = f"memory_mb={worker.limits.memory_mb * 2}\n"
        writing = Writing(
            f"retry {worker.worker} with",
            f"what it should do otherwise; {_SETTING}",
            partial(self._retry_with, self.run_id, worker, self.seen(worker)),
            key=f"retry {worker.worker}",
        )
        self.write(writing, draft)

    def _retry_with(self, run: str, worker: WorkerView, seen: Seen, text: str) -> None:
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
            run=run,
            seen=seen,
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
        say = partial(self._say_to, self.run_id, workers)
        self.write(Writing(title, note, say, key=f"steer {who}"))

    def do_comment(self) -> None:
        self.do_steer()

    def _say_to(self, run: str, workers: list[WorkerView], text: str) -> None:
        for worker in workers:
            if worker.questions:
                answer = Answer(
                    worker=worker.worker,
                    answer=text,
                    question=worker.questions[0].id,
                    run=run,
                )
                self.send(answer, f"answered {worker.worker}")
            else:
                self.send(
                    Steer(worker=worker.worker, text=text, run=run),
                    f"said to {worker.worker}",
                )

    def do_interrupt(self) -> None:
        worker = self._here()
        self.send(
            Interrupt(worker=worker.worker, run=self.run_id), f"{worker.worker} is interrupted"
        )

    def do_limits(self) -> None:
        worker = self._here()
        names = " ".join(KINDS)
        writing = Writing(
            f"limits of {worker.worker}",
            f"memory_mb=2048, … of {names}",
            partial(self._set_limits, self.run_id, worker),
            key=f"limits {worker.worker}",
        )
        self.write(writing)

    def _set_limits(self, run: str, worker: WorkerView, text: str) -> None:
        settings, rest = split_settings(text)
        limits = (
            limits_with(worker.limits, settings)
            if settings and not rest
            else "not like memory_mb=2048"
        )
        if isinstance(limits, str):
            self.say_refused("limits", limits)
            return
        command = SetLimits(worker=worker.worker, limits=limits, run=run)
        self.send(command, f"{worker.worker} has other limits")

    # Landing.

    def do_land(self) -> None:
        """Land it; a check that is stale or was not run is run by the landing itself."""
        worker = self._here()
        at = self.run_id, worker.worker, worker.attempt
        asked = asks_to_land(worker, self.session.unshown.get(at, NOTHING_UNSHOWN))
        command = Land(
            worker=worker.worker,
            run=self.run_id,
            seen=self.seen(worker),
            is_despite_check=asked.is_despite_check,
        )
        if asked.word:
            writing = Writing(
                f"{asked.word}: type land",
                f"to land {worker.worker} despite it",
                partial(self._land_by_word, command),
                key=f"land {worker.worker}",
            )
            self.write(writing)
        elif asked.question:
            said = words(Span(asked.question, TEXT))
            self.ask_first("land", said, partial(self._land, command))
        else:
            self._land(command)

    def _land_by_word(self, command: Land, text: str) -> None:
        if text.strip().casefold() != "land":
            self.say_refused(self._key("land"), "the word was not typed")
        else:
            self._land(command)

    def _land(self, command: Land) -> None:
        despite = " despite its check" if command.is_despite_check else ""
        self.send(command, f"landing {command.worker}{despite}")

    def came_out(self, pursued: Pursued, outcome: CameOut) -> None:
        """Keep a landing as the newest thing done; it is asked about before it is taken back."""
        if pursued.is_landing and outcome.is_well:
            undo = UndoLanding(worker=pursued.worker, run=pursued.run)
            said = f"the landing of {pursued.worker}"
            take_back = partial(self._take_back, undo)
            asks = f"Take the landing of {pursued.worker} back?"
            self.session.remember(Undoable(said, take_back, None, asks))
        super().came_out(pursued, outcome)

    def _take_back(self, undo: UndoLanding) -> None:
        self.send(undo, f"taking the landing of {undo.worker} back")


def _stop_said(name: Span) -> Row:
    end = "? It may finish its tool; its work stays on its branch."
    return words(Span("Stop ", TEXT), name, Span(end, TEXT))
