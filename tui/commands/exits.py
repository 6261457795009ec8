"""From what a run has come to, to an exit code: it speaks of steps."""

from engine.messages.results import Outcome, RunReport
from tui.commands.base import EXIT_FAILED, EXIT_OK, EXIT_WAITS


def exit_code(report: RunReport) -> int:
    """1 where a step failed or was cancelled, 3 where a human is awaited, else 0."""
    outcomes = {step.outcome for step in report.steps.values()}
    if outcomes & {Outcome.FAILED, Outcome.CANCELLED}:
        return EXIT_FAILED
    if report.waits_for or Outcome.PENDING in outcomes:
        return EXIT_WAITS
    return EXIT_FAILED if Outcome.SKIPPED in outcomes else EXIT_OK
