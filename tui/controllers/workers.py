"""Know what can be done to the worker under the cursor, and to those that are marked."""

from engine.messages.results import StepView, WorkerView
from engine.phases import Phase
from tui.kit.screen import Controller
from tui.words.doable import why_not
from tui.words.standing import step_of

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
_GOES_OUT = frozenset({"terminal", "edit", "edit_all"})
_NO_TREE = frozenset({Phase.WAITING, Phase.QUEUED, Phase.SKIPPED})
_CHECKED = frozenset({Phase.REVIEWING, Phase.CONFLICTED})


class Workers(Controller):
    """Say what can be done to workers, and which ones are meant."""

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
        return self._why_not_out(idea, worker, step) or why_not(idea, worker, step)

    def label_of(self, idea: str, label: str) -> str:
        """Return the word for yes or no, which depends on what is under the cursor."""
        worker, step = self.session.worker_view, self.session.step_view
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

    def _why_not_out(self, idea: str, worker: WorkerView, step: StepView) -> str:
        """Return why a worker's tree cannot be entered or checked now."""
        phase = worker.phase.lower().replace("_", " ")
        if idea in _GOES_OUT and self.session.shell is None:
            return f"no shell from here; `plait shell {worker.worker}` opens one"
        if idea in _GOES_OUT and worker.phase in _NO_TREE:
            return f"there is no tree of it; it is {phase}"
        if idea == "publish" and not worker.branch:
            return "it has no branch"
        if idea == "check" and step.check is None:
            return f"{step.name} has no check"
        if idea == "check" and worker.phase not in _CHECKED:
            return f"only finished work is checked; it is {phase}"
        return ""
