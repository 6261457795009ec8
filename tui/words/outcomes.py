"""Tell what comes of an act that takes its time: a landing, an undo, a stop.

The engine takes such a command before anybody knows how it ends. What was hoped for stands on the
message line until a view shows the end, and then the end stands there.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from engine.messages.commands import Command, Land, Steer, StopRun, StopWorker, UndoLanding
from engine.messages.events import Delivery
from engine.messages.results import Badge, EngineView, RunView, WorkerView
from engine.phases import Phase
from tui.words.clean import clean_name
from tui.words.figures import MINUS, some
from tui.words.said import conflict_text

if TYPE_CHECKING:
    from engine.api import ConflictView


_CAPITAL = re.compile("(?<!^)(?=[A-Z])")
_WAITS = frozenset({Phase.REVIEWING, Phase.CONFLICTED})


class CameOut(NamedTuple):
    """Hold how something ended, in words. A key stands in the hint as its idea: `{undo}`."""

    is_well: bool
    said: str
    hint: str = ""


class Pursued(NamedTuple):
    """An act whose end is waited for."""

    run: str
    worker: str
    ended: Callable[[RunView, str], CameOut | None]
    is_landing: bool = False

    def outcome(self, view: EngineView) -> CameOut | None:
        """Return how it ended; None while it has not."""
        run = next((one for one in view.runs if one.run == self.run), None)
        return self.ended(run, self.worker) if run else None


Deliveries = Mapping[tuple[str, str, str], Delivery]
"""The fate of words said to agents, by run, worker and text."""


def pursued_of(command: Command, deliveries: Deliveries) -> Pursued | None:
    """Return what there is to wait for behind a command that was taken."""
    match command:
        case Steer():
            key = command.run, command.worker, command.text
            return Pursued(command.run, command.worker, partial(_heard, deliveries, key))
        case Land():
            return landing_of(command.run, command.worker)
        case UndoLanding():
            return Pursued(command.run, command.worker, _undone)
        case StopWorker():
            return Pursued(command.run, command.worker, _stopped)
        case StopRun():
            return Pursued(command.run, "", _run_stopped)
        case _:
            return None


def landing_of(run: str, worker: str) -> Pursued:
    """Return a landing that goes on."""
    return Pursued(run, worker, _landed, is_landing=True)


def _worker(run: RunView, name: str) -> WorkerView | None:
    return next((one for one in run.workers if one.worker == name), None)


def _landed(run: RunView, name: str) -> CameOut | None:
    worker = _worker(run, name)
    if worker is None or worker.phase is Phase.LANDING:
        return None
    if worker.phase is Phase.LANDED:
        commit = f" as {worker.landed[:9]}" if worker.landed else ""
        said = f"{name} landed{commit}{_stat(worker)}"
        return CameOut(is_well=True, said=said, hint=f"{{undo}} undoes it{_next_after(run, name)}")
    if worker.phase is Phase.CONFLICTED:
        said = f"{name} did not land: it has conflicts {conflict_text(worker)}"
        if worker.error:
            said = f"{name} did not land: {worker.error}"
        return CameOut(is_well=False, said=said, hint="{merge} resolves the conflicts")
    return CameOut(is_well=False, said=f"{name} did not land: {_why(worker)}")


def _stat(worker: WorkerView) -> str:
    change = worker.change
    if change is None:
        return ""
    return f", {some(change.files, 'file')} +{change.insertions} {MINUS}{change.deletions}"


def _next_after(run: RunView, name: str) -> str:
    """Name the next change that waits to be landed, if any does."""
    waiting = [w.worker for w in run.workers if w.phase in _WAITS and w.worker != name]
    more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return f"; next is {waiting[0]}{more}" if waiting else ""


def _why(worker: WorkerView) -> str:
    if Badge.CHECK_FAILED in worker.badges and worker.check:
        lines = worker.check.summary.strip().split("\n")
        return f"its check failed on the merged tree: {lines[-1]}"
    return worker.error or f"it is {worker.phase.lower().replace('_', ' ')}"


def _heard(
    deliveries: Deliveries, key: tuple[str, str, str], run: RunView, name: str
) -> CameOut | None:
    del run
    match deliveries.get(key):
        case Delivery.DELIVERED:
            return CameOut(is_well=True, said=f"{name} has read the message")
        case Delivery.REFUSED:
            said = f"{name} did not get the message"
            return CameOut(is_well=False, said=said, hint="Its next attempt gets it.")
        case _:
            return None


def _undone(run: RunView, name: str) -> CameOut | None:
    worker = _worker(run, name)
    if worker is None or (worker.phase is Phase.LANDED and worker.error is None):
        return None
    if worker.phase is Phase.LANDED:
        return CameOut(is_well=False, said=f"{name} stays landed: {worker.error}")
    return CameOut(
        is_well=True, said=f"the landing of {name} is undone; the change waits for review again"
    )


def _stopped(run: RunView, name: str) -> CameOut | None:
    worker = _worker(run, name)
    if worker is None or worker.phase.holds_slot or worker.phase is Phase.LANDING:
        return None
    word = worker.phase.lower().replace("_", " ")
    return CameOut(is_well=True, said=f"{name} has stopped: it is {word}", hint="Its work is kept.")


def _run_stopped(run: RunView, _: str) -> CameOut | None:
    if any(worker.phase.holds_slot for worker in run.workers):
        return None
    return CameOut(is_well=True, said="the run has stopped", hint="All work is kept.")


def made_again(before: "ConflictView", now: "ConflictView", land: str) -> str:
    """Return what to say where the target moved under a review: the merge was made again."""
    known = {file.path for file in before.files if not file.is_resolved}
    new = [file.path for file in now.files if not file.is_resolved and file.path not in known]
    said = "the target moved, so plait merged again: "
    if new:
        names = ", ".join(map(clean_name, new[:3]))
        return f"{said}{some(len(new), 'new conflict')} in {names}"
    return f"{said}everything is still resolved; check it, then {land} lands it"


def deed_of(command: Command) -> str:
    """Name a command and the worker that it is for: `retry dig/worker_1`."""
    verb = _CAPITAL.sub(" ", type(command).__name__).lower().removesuffix(" worker")
    return f"{verb} {getattr(command, 'worker', '')}".rstrip()


def not_said(note: str, said: str) -> str:
    """Return a note without what was said already: `is paused`, not `is paused  paused`."""
    first, _, rest = note.partition("; ")
    return rest if first in said else note
