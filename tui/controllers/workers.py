"""Know what can be done to the worker under the cursor, and to those that are marked."""

from collections.abc import Callable, Sequence

from engine.messages.asked import Question
from engine.messages.results import StepView, WorkerView
from engine.phases import Phase
from tui.ink import BOLD, MUTED, Row, Span, words
from tui.kit.dialogs import AskDialog
from tui.kit.screen import Controller
from tui.words.asking import ANSWERED_ON, asked_of, raw_of
from tui.words.doable import NOT_OPENED, why_not
from tui.words.figures import some
from tui.words.looks import glyph, look_of
from tui.words.sentences import sentence_of
from tui.words.standing import step_of, title_of
from tui.words.unshown import NOTHING_UNSHOWN, asks_to_land

_NEEDS_WORKER = frozenset(
    {
        *("yes", "yes_wide", "no", "retry", "retry_with", "pause", "steer", "comment", "land"),
        *("diff", "merge", "try", "check", "checkpoint", "limits", "interrupt", "serve", "publish"),
        *("new", "terminal", "take_over", "edit", "edit_all", "copy", "copy_name"),
        *("next_worker", "previous_worker", "open", "mark", "select"),
        *("zoom", "less", "more", "follow"),
    }
)
_NO_LABELS = {
    Phase.STOPPING: "kill",
    Phase.REVIEWING: "reject",
    Phase.CONFLICTED: "reject",
}
_ON_MARKED = frozenset(
    {
        *("yes", "land", "steer", "comment", "retry", "retry_with", "pause", "no"),
        "checkpoint",
    }
)
"""Act on all marked workers, and name those that are left out."""
GIVEN_UP = frozenset({Phase.REVIEWING, Phase.CONFLICTED})
_GOES_OUT = frozenset({"terminal", "edit", "edit_all"})
_ON_TREES = frozenset({"fleet", "worker", "inbox"})
"""Screens on which an editor is for the worker's tree; on the others it is for its change."""
_NO_TREE = frozenset({Phase.WAITING, Phase.QUEUED, Phase.SKIPPED})
_CHECKED = frozenset({Phase.REVIEWING, Phase.CONFLICTED})


class Workers(Controller):
    """Say what can be done to workers, and which ones are meant."""

    def why_not(self, idea: str) -> str:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return self._without_worker(idea)
        if idea in {"limits", "interrupt"} and not worker.phase.holds_slot:
            return "it is not running"
        if self.session.marks and idea in _ON_MARKED:
            return ""
        if idea == "no" and worker.phase in {Phase.REVIEWING, Phase.CONFLICTED}:
            return ""
        if idea == "edit" and self.screen.kind in ANSWERED_ON:
            asked = asked_of(worker)
            if asked and asked.is_permission:
                return self._why_not_edited(worker, asked)
            if self.screen.kind != "worker":
                return "it asks for no command"
        return self._why_not_out(idea, worker, step) or self._why_not_done(idea, worker, step)

    def _without_worker(self, idea: str) -> str:
        """Return why an idea cannot be done where the cursor rests on nothing."""
        run = self.session.run
        if run is None or not run.workers:
            return "there is no worker" if idea in _NEEDS_WORKER or idea == "pick" else ""
        return "no worker is under the cursor" if idea in _NEEDS_WORKER else ""

    def _why_not_done(self, idea: str, worker: WorkerView, step: StepView) -> str:
        """Return why an idea cannot be done to a worker; with the key that opens its diff."""
        reason = why_not(idea, worker, step, is_opened=self.session.has_opened(worker))
        if reason != NOT_OPENED:
            return reason
        if self.screen.kind == "diff":
            return "its diff is not shown yet"
        return f"{reason}; {self.screen.key_of(self.screen.opens_diff)} opens it"

    def sentence(self, worker: WorkerView | None, now: float) -> Row:
        """Return what is true of a worker, with the keys that do something to it now."""
        run = self.session.run
        return (
            sentence_of(worker, step_of(run, worker), now, self._key_now) if worker and run else ()
        )

    def _key_now(self, idea: str) -> str:
        """Return the key of an idea if it works now; on a diff, its key means another diff."""
        is_shown = idea == "diff" and self.screen.kind == "diff"
        return "" if is_shown or self.screen.refusal(idea) else self.screen.key_anywhere(idea)

    def label_of(self, idea: str, label: str) -> str:
        """Return the word for yes or no, which depends on what is under the cursor."""
        worker, step = self.session.worker_view, self.session.step_view
        if not label or worker is None or idea not in {"yes", "yes_wide", "no"}:
            return label
        asks = bool(worker.questions) and not worker.phase.is_settled
        if idea == "yes_wide":
            return label if not asks or worker.questions[0].is_permission else "answer all"
        if idea == "yes":
            chooses = "choose" if step and step.is_choice_due else "approve"
            allows = label if asks and worker.questions[0].is_permission else "answer"
            return allows if asks else chooses
        if asks and worker.questions[0].is_permission:
            return "deny"
        return _NO_LABELS.get(worker.phase, "stop")

    def targets(self, idea: str) -> list[WorkerView]:
        """The marked workers to which the idea can be done, else the one under the cursor."""
        here = self.session.worker_view
        if here is None:
            return []
        if not self.session.marks:
            return [here]
        return [worker for worker, reason in self._marked(idea) if not reason]

    @property
    def marked(self) -> list[WorkerView]:
        """The workers that are marked."""
        run = self.session.run
        return [w for w in run.workers if w.worker in self.session.marks] if run else []

    def _marked(self, idea: str) -> list[tuple[WorkerView, str]]:
        """Return the marked workers, and why the idea cannot be done to some of them."""
        return [(worker, self._why_not_of(idea, worker)) for worker in self.marked]

    def _why_not_of(self, idea: str, worker: WorkerView) -> str:
        """Return why an idea cannot be done to one of several workers."""
        if self.session.run is None:
            return ""
        step = step_of(self.session.run, worker)
        if idea == "no" and worker.phase in GIVEN_UP:
            key = self.screen.key_of("no")
            return f"it has a change: put the cursor on it and press {key} to reject it"
        if idea == "yes" and worker.questions:
            return "it has a question: read it before you answer"
        is_opened = self.session.has_opened(worker)
        if idea == "yes" and step.is_choice_due and is_opened:
            return "put the cursor on a candidate to choose it"
        if idea == "land" and (asked := self._asked_to_land(worker)):
            return f"{asked}: put the cursor on it to land it"
        return why_not(idea, worker, step, is_opened=is_opened)

    def _asked_to_land(self, worker: WorkerView) -> str:
        """Return what would be asked before this worker lands by itself."""
        at = (self.run_id, worker.worker, worker.attempt)
        asked = asks_to_land(worker, self.session.unshown.get(at, NOTHING_UNSHOWN))
        return asked.word or ("no diff shows its binary files" if asked.question else "")

    def over_marked(self, idea: str, verb: str, act: Callable[[WorkerView], None]) -> bool:
        """Do something to all marked workers, after one question that lists them.

        Returns:
            False where none is marked, so that the one under the cursor is meant.
        """
        marked = self._marked(idea)
        if marked:
            self.over(idea, verb, marked, act)
        return bool(marked)

    def over(
        self,
        idea: str,
        verb: str,
        judged: Sequence[tuple[WorkerView, str]],
        act: Callable[[WorkerView], None],
    ) -> None:
        """Do something to several workers after one question; those with a reason are left out."""
        can = [worker for worker, reason in judged if not reason]
        if not can:
            first, reason = judged[0]
            self.refuse(idea, f"no marked worker is ready for this; {first.worker}: {reason}")
            return

        def do(_: str) -> None:
            for worker in can:
                act(worker)
            self.session.marks.clear()

        rows = [self._row_of(worker, reason) for worker, reason in judged]
        title = f"{verb} {some(len(can), 'worker')}?"
        self.screen.open(AskDialog(title, rows, self.session.ahead), do)

    def _row_of(self, worker: WorkerView, reason: str) -> Row:
        step = step_of(self.session.run, worker) if self.session.run else None
        name, look = title_of(worker, step), look_of(worker)
        if reason:
            return words("  not ", name, f": {reason}")
        return (Span("  "), glyph(look), Span(f" {name}  ", BOLD), Span(look.word.lower(), MUTED))

    def _why_not_edited(self, worker: WorkerView, asked: Question) -> str:
        """Return why nothing else can be allowed than what is asked, and the key that helps."""
        is_hiding = raw_of(asked).is_hiding
        if asked.is_editable and not is_hiding:
            return ""
        why = (
            "its command hides characters"
            if is_hiding
            else f"{worker.agent} runs only what it asked for"
            if asked.command
            else "it asks for no command"
        )
        return f"{why}; {self.screen.key_of('no')} denies it, and you can say what to do instead"

    def _why_not_out(self, idea: str, worker: WorkerView, step: StepView) -> str:
        """Return why a worker's tree cannot be entered or checked now."""
        phase = worker.phase.lower().replace("_", " ")
        if idea in _GOES_OUT and self.session.shell is None:
            return f"this console opens no shells; `plait shell {worker.worker}` does"
        if idea in _GOES_OUT and worker.phase in _NO_TREE:
            return f"it has no worktree now; it is {phase}"
        is_there = idea == "terminal" or self.screen.kind in _ON_TREES
        if idea in _GOES_OUT and worker.site and is_there:
            diff = self.screen.key_anywhere("diff")
            return (
                f"it runs at {worker.site}, which you cannot enter from here; {diff} shows its diff"
            )
        if idea == "publish" and not worker.branch:
            return "it has no branch"
        if idea == "check" and step.check is None:
            return f"{step.name} has no check"
        if idea == "check" and worker.phase not in _CHECKED:
            return f"only finished work can be checked; it is {phase}"
        return ""


def listed(workers: Sequence[WorkerView]) -> str:
    """Return how many workers they are, and their names."""
    return f"{some(len(workers), 'worker')} ({', '.join(worker.worker for worker in workers)})"
