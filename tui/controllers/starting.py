"""Start a run from wherever one is."""

from tui.kit.composer import Composer
from tui.kit.screen import Controller
from tui.kit.starting import Wanted


class Starting(Controller):
    """Open the form of a run, and go where its run is seen."""

    def why_not(self, idea: str) -> str:
        if idea != "start":
            return ""
        if self.session.is_alone or self.session.starter is None:
            return "this console was not opened to start runs; `plait` in a repository is"
        return ""

    def do_start(self) -> None:
        starter = self.session.starter
        if starter is not None:
            starter.hear(self._seen())
            composer = Composer(starter, self.session.bridge.start, self.session.ahead)
            self.screen.open(composer, self._started)

    def _seen(self) -> list[Wanted]:
        """Return what the runs that are known were started with, the latest first."""
        runs = sorted(self.session.view.runs, key=lambda run: run.started_at, reverse=True)
        return [
            Wanted(
                prompt=step.workers[0].prompt,
                agent=step.workers[0].agent,
                candidates=str(len(step.workers)),
                check=step.check or "",
            )
            for run in runs
            for step in run.steps
            if len(run.steps) == 1 and step.workers and not step.command
        ]

    def _started(self, run: str) -> None:
        self.session.open_run(run)
        self.screen.go("fleet")
