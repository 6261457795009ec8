"""Start a run from wherever one is, or add a step to the one that is on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.messages.commands import AddStep, Refused
from engine.messages.results import RunView
from tui.ink import Row, words
from tui.kit.composer import Composer
from tui.kit.screen import Controller
from tui.kit.starting import Wanted, joining

if TYPE_CHECKING:  # a console that starts nothing needs none of what the front door imports
    from engine.api import Plan


class Starting(Controller):
    """Open the form of a run, and go where its run is seen."""

    def why_not(self, idea: str) -> str:
        if idea not in {"start", "add_step"}:
            return ""
        if self.session.is_alone or self.session.starter is None:
            return "this console cannot start runs; open one with `plait` in a repository"
        if idea == "add_step" and self._open_run is None:
            return f"no run is active; {self.screen.key_of('start')} starts one"
        return ""

    @property
    def _open_run(self) -> RunView | None:
        """The run on screen, if it goes on."""
        run = self.session.run
        return run if run and run.ended_at is None and run in self.session.view.runs else None

    def do_start(self) -> None:
        self._compose(is_step=False)

    def do_add_step(self) -> None:
        """Open the form for one more step of the run."""
        self._compose(is_step=True)

    def _compose(self, *, is_step: bool) -> None:
        starter, bridge = self.session.starter, self.session.bridge
        run = self._open_run
        if starter is None:
            return

        async def begin(plan: Plan, wanted: Wanted) -> str | Refused:
            name, _, after = wanted.into.partition(": ")
            joined = run if run and name == run.run else None
            if joined is None and not name:
                return await bridge.start(plan)
            if joined is None:
                return Refused(f"the run {name} is not on screen", hint="Choose another place.")
            if len(plan.steps) > 1:
                more = f"a manifest of {len(plan.steps)} steps cannot be added to a run"
                return Refused(more, hint="Start it as a run of its own.")
            command = AddStep(step=joining(plan.steps[0], joined, after), run=joined.run)
            reply = await bridge.command(command)
            return reply if isinstance(reply, Refused) else joined.run

        starter.hear(self._seen())
        into = _places(run) if run else []
        composer = Composer(starter, begin, self.session.ahead, into, is_step=is_step)
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


def _places(run: RunView) -> list[tuple[str, Row]]:
    """Return where in a run one more step can stand, and what is said of each place."""
    beside = (run.run, words("independent of its steps"))
    behind = [(f"{run.run}: {step.name}", words("builds on it")) for step in run.steps]
    return [beside, *behind]
