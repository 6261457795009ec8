"""Land a worker's change, and take it back: one at a time, journaled before it moves.

It knows in which order things happen and what is reported; how a target is moved the workshop
knows.
"""

from dataclasses import replace

import anyio

from engine.core import effects as e
from engine.core import facts as f
from engine.core.state import Worker
from engine.errors import EngineError, whole_of
from engine.messages import commands as c
from engine.messages.results import Badge, CheckResult
from engine.phases import Phase
from engine.review.landing_results import (
    LandingConflicts,
    Landings,
    Moved,
    ReadyToLand,
    Refusal,
    TryAgain,
    Undone,
)
from engine.work.checking import Checking
from engine.work.run_ports import RunPort
from engine.work.tools import Tools

_TRIES = 5
"""The number of times a target may move meanwhile before a human is told."""
_LOOK_AGAIN_S = 2.0
"""The pause between two looks for a user's edits that are in the way."""


class LandingWork:
    """Performs the landings of one run."""

    def __init__(self, run: RunPort, tools: Tools) -> None:
        self._run = run
        self._tools = tools

    def _worker(self, effect: e.PerformLanding | e.RevertLanding) -> Worker:
        return self._run.state.workers[effect.worker]

    @property
    def _landings(self) -> Landings:
        return self._tools.workshops.of(self._run.state.plan).landings

    def _about(self, effect: e.PerformLanding | e.RevertLanding) -> f.About:
        return effect.about(self._tools.clock.now())

    async def land(self, effect: e.PerformLanding) -> None:
        """Land it, now or once the user's edits are out of the way, or say why not."""
        while paths := await self._try(effect):
            # The plan was made for files as they were before the wait: prepare it anew.
            effect = replace(effect, prepared=None)
            self._run.feed(f.LandDelayed(**self._about(effect), in_the_way=paths))
            landings = self._landings
            while await landings.is_in_the_way(self._run.state, effect, paths):
                await self._tools.clock.sleep(_LOOK_AGAIN_S)

    async def _try(self, effect: e.PerformLanding) -> tuple[str, ...]:
        """Land it or say why not; return the files it has to wait for, if any."""
        # One landing at a time: each is composed on what the last one left.
        async with self._tools.landing:
            why = ""
            for _ in range(_TRIES):
                ready = await self._ready(effect)
                if not isinstance(ready, ReadyToLand):
                    return ready
                # About to move: a cancellation here would leave the rest to a recovery.
                with anyio.CancelScope(shield=True):
                    done = await self._landings.land(effect, ready)
                    if isinstance(done, Moved):
                        # A ref that this engine moves must not accuse an agent that runs meanwhile.
                        self._tools.proof.moved(ready.target)
                        # Else the user's edits were committed; the next round lands the change.
                        if not ready.leads_on:
                            self._tell_landed(effect, ready)
                            return ()
                why = done.why if isinstance(done, TryAgain) else ""
                effect = replace(effect, prepared=None)
            self._run.feed(f.LandRefused(**self._about(effect), reason=why))
            return ()

    def _tell_landed(self, effect: e.PerformLanding, ready: ReadyToLand) -> None:
        landed = f.Landed(
            **self._about(effect),
            target=ready.target,
            old=ready.old,
            new=ready.new,
            note=ready.note,
        )
        self._run.feed(landed)

    async def _ready(self, effect: e.PerformLanding) -> ReadyToLand | tuple[str, ...]:
        """Return what can land, or the files to wait for: none if its end was reported."""
        state = self._run.state
        has_check = state.plan.step(effect.worker.step).check is not None
        checker = Checking(self._run, self._tools, effect) if has_check else None
        found = await self._landings.prepare(state, effect, checker)
        about = self._about(effect)
        match found:
            case ReadyToLand():
                self._tell_proved(effect, found)
                return found if self._record(effect, found) else ()
            case LandingConflicts():
                met = f.ConflictsFound(**about, paths=found.paths, reason=found.reason)
                self._run.feed(met)
            case Refusal() if found.in_the_way and effect.wish.edits is c.Edits.WAIT:
                return found.in_the_way
            case Refusal():
                refused = f.LandRefused(
                    **about,
                    reason=found.reason,
                    in_the_way=found.in_the_way,
                    is_carry_refused=found.is_carry_refused,
                )
                self._run.feed(refused)
            case CheckResult():
                self._run.feed(f.CheckFailed(**about, check=found))
        return ()

    def _tell_proved(self, effect: e.PerformLanding, ready: ReadyToLand) -> None:
        """Journal the result that this landing stands on, unless it is known."""
        if ready.check is not None and ready.check != self._worker(effect).review.check:
            self._run.feed(f.Rechecked(**self._about(effect), check=ready.check))

    def _record(self, effect: e.PerformLanding, ready: ReadyToLand) -> bool:
        """Journal that the target is about to move, unless the landing was stopped meanwhile."""
        if Badge.VIOLATION in self._worker(effect).badges:  # by its check, on the tree to be landed
            why = "its check changed files that are not its own"
            self._run.feed(f.LandRefused(**self._about(effect), reason=why))
            return False
        # Write-ahead: after a crash from here on, recovery rolls forward from the journal.
        if effect.prepared is None:
            self._run.feed(
                f.LandPrepared(
                    **self._about(effect),
                    target=ready.target,
                    old=ready.old,
                    new=ready.new,
                    detail=ready.detail,
                )
            )
        # The landing may have been stopped in the meantime; then nothing may move any more.
        w = self._worker(effect)
        is_ours = w.attempt.number == effect.attempt and w.phase is Phase.LANDING
        return is_ours and w.landing.prepared == ready.detail

    async def undo(self, effect: e.RevertLanding) -> None:
        """Take a landing back, or say why it stays; do so once, however often it was asked for."""
        async with self._tools.landing:
            landed = self._worker(effect)
            # It may have been undone, or landed anew, since: take back only this very landing.
            if landed.phase is not Phase.LANDED or landed.landing.prepared != effect.prepared:
                return
            message = f"Undo {landed.id}, attempt {landed.attempt.number}\n"
            with anyio.CancelScope(shield=True):
                self._run.feed(await self._undone(effect, message))

    async def _undone(
        self, effect: e.RevertLanding, message: str
    ) -> f.LandingUndone | f.UndoRefused:
        done: Undone | Refusal
        try:
            done = await self._landings.undo(effect.prepared, message=message)
        except EngineError as error:
            done = Refusal(reason=whole_of(error))
        about = self._about(effect)
        if isinstance(done, Refusal):
            return f.UndoRefused(**about, reason=done.reason)
        self._tools.proof.moved(done.target)
        return f.LandingUndone(**about, target=done.target, new=done.at, is_added=done.is_added)
