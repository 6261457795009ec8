"""The one interface through which anybody sees and steers an engine, near or over a socket.

It loads nothing: who talks to an engine elsewhere has none of its rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from engine.messages.commands import Command, Reply, ResolutionAction, Seen
    from engine.messages.diffs import ChangeDiff
    from engine.messages.events import Told
    from engine.messages.logs import LogChunk
    from engine.messages.results import (
        Change,
        CheckResult,
        EngineView,
        Entrance,
        Moment,
        RunReport,
        RunView,
    )
    from engine.plan.model import Plan
    from engine.review.batch import BatchCheck
    from engine.review.queue import LandingOrder, PlannedLanding
    from engine.review.views import ConflictView
    from engine.review.weaving import CandidateTable, Wove
    from engine.store.history import RunSummary
    from engine.work.cleaning import CleanItem, TrashItem


class EnginePort(Protocol):
    """An engine, as consoles and second shells see it."""

    async def command(self, command: Command) -> Reply:
        """Ask for something; it is accepted, or refused with a reason."""

    def events(self, after_seq: int = 0, *, run: str | None = None) -> AsyncIterator[Told]:
        """What happened behind a number, then what happens."""

    async def snapshot(self) -> EngineView:
        """Everything a console shows at this moment."""

    async def log(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        after: int = 0,
        *,
        most: int | None = None,
    ) -> LogChunk:
        """A worker's log from a line on; no more than the newest `most` lines, if that is given."""

    async def diff(
        self,
        run: str,
        worker: str,
        attempt: int | None = None,
        *,
        against: str = "",
        context: int = 3,
    ) -> ChangeDiff:
        """What a worker's attempt has changed, against where it began or something else."""

    async def enter(self, run: str, worker: str) -> Entrance:
        """What starts a program inside a worker's sandbox."""

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        """A worker's conflicts and what is decided; with the text of one file if it is named."""

    async def resolve(self, run: str, worker: str, action: ResolutionAction) -> ConflictView:
        """Decide something about a worker's conflicts, or go on when all is decided."""

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: Seen | None = None
    ) -> CheckResult:
        """Run the check again: on the exact tree that would land now, or on the worker's own."""

    async def check_batch(self, run: str, workers: Sequence[str]) -> BatchCheck:
        """Run the check once, on what the target would be with all these changes that fit."""

    async def landing_order(
        self, run: str, workers: Sequence[str], by: LandingOrder = ...
    ) -> tuple[PlannedLanding, ...]:
        """The order in which workers are to land, with the conflicts expected of each."""

    async def candidates(self, run: str, step: str) -> CandidateTable:
        """The candidates of a step beside each other: figures, consensus, every hunk of all."""

    async def compare(self, run: str, one: str, other: str) -> ChangeDiff:
        """What differs between the changes of any two workers."""

    async def moments(self, run: str, worker: str) -> tuple[Moment, ...]:
        """The points in time that a worker can be begun again from, oldest first."""

    async def leave_out(
        self, run: str, worker: str, hunks: Sequence[str], *, seen: Seen | None = None
    ) -> Change:
        """Let exactly these hunks stay behind when a change lands; what is left of it."""

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, Seen] | None = None,
    ) -> Wove:
        """Make a composite of hunks of a step's candidates, check it, and let it be reviewed."""

    async def start(self, plan: Plan) -> str:
        """Begin a run; its id."""

    async def resume(self, run: str) -> str:
        """Take up a run that was interrupted; its id."""

    async def view(self, run: str = "") -> RunView:
        """One run as it stands; the latest where none is named."""

    async def report(self, run: str = "") -> RunReport:
        """What a run has come to so far; the latest where none is named."""

    async def history(self) -> list[RunSummary]:
        """Every run of the repository, newest first."""

    async def clean(self, *, dry_run: bool = False) -> list[CleanItem]:
        """Take away every workspace that is provably not needed; the rest with the reason."""

    async def trash(self) -> list[TrashItem]:
        """What was taken away and can be brought back."""

    async def restore(self, name: str) -> str:
        """Bring something back from the trash; its path."""

    async def wait_idle(self) -> None:
        """Return when nothing goes on but what waits for a human."""
