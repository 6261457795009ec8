"""Write what was reported of a run as rows, for the Events tab and the rail beside Fleet."""

from collections.abc import Sequence

from engine.messages.events import (
    Delivery,
    Event,
    HistoryDelayed,
    Landed,
    ProgramServed,
    Steered,
    Told,
    TroubleSeen,
    WorkerMoved,
)
from engine.messages.results import HistoryDelay, Trouble
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, fit, words
from tui.words.figures import clock
from tui.words.looks import PHASES
from tui.words.served import served_text


def events_tab(told: Sequence[Told], worker: str, now: float, cells: int) -> list[Row]:
    """Return what was reported of this worker, newest first."""
    own = [entry for entry in told if getattr(entry.event, "worker", "") == worker]
    rows = [event_row(entry, now, cells, has_name=False) for entry in reversed(own)]
    return [(), *rows] if rows else [(), words(" No events from it since this console was opened.")]


def event_row(told: Told, now: float, cells: int, *, has_name: bool = True) -> Row:
    """An event as a row: when, what happened, to whom."""
    name = getattr(told.event, "worker", getattr(told.event, "step", ""))
    row = words(f" {clock(told.at, now):>8} ", *event_text(told.event))
    if has_name and name:
        row = words(f" {clock(told.at, now):>8} ", Span(f"{name}  ", TEXT), *event_text(told.event))
    return fit(row, cells)


def event_text(event: Event) -> Row:
    """Return what an event says, in a few words."""
    if isinstance(event, WorkerMoved):
        look = PHASES[event.after]
        why = f", {event.cause.lower()}" if event.cause else ""
        return (Span(f"{look.glyph} ", Ink(look.role)), Span(f"{look.word.lower()}{why}", TEXT))
    if isinstance(event, HistoryDelayed):
        return _held_up(
            event.delay, "the team's history is delayed", "the team's history is up to date again"
        )
    if isinstance(event, TroubleSeen):
        return _held_up(event.trouble, "the run is stalled", "the run continues")
    if isinstance(event, ProgramServed):
        said = served_text(event.served) if event.served else "has stopped"
        return (Span("● ", Ink(Role.ACCENT)), Span(f"its program {said}", TEXT))
    told = _TOLD.get(type(event).__name__)
    if told is None:
        return words(type(event).__name__)
    glyph_, role, text = told
    if isinstance(event, Steered):
        text = _DELIVERIES[event.delivery]
    extra = getattr(event, "text", "") or getattr(event, "path", "") or getattr(event, "answer", "")
    extra = extra or (event.note if isinstance(event, Landed) else "")
    return (
        Span(f"{glyph_} ", Ink(role)),
        Span(text, TEXT),
        Span(f" {extra}" if extra else "", MUTED),
    )


def _held_up(by: HistoryDelay | Trouble | None, said: str, over: str) -> Row:
    """Say what holds something up, or that nothing does any more."""
    if by is None:
        return (Span("● ", Ink(Role.RUNNING)), Span(over, TEXT))
    return (Span("▲ ", Ink(Role.LIMIT)), Span(said, TEXT), Span(f": {by.what}", MUTED))


_DELIVERIES = {
    Delivery.QUEUED: "got a message:",
    Delivery.DELIVERED: "read the message:",
    Delivery.REFUSED: "did not get the message:",
}
_TOLD: dict[str, tuple[str, Role, str]] = {
    "RunStarted": ("●", Role.RUNNING, "the run started"),
    "Clamped": ("▲", Role.LIMIT, "a value was lowered to its maximum"),
    "LimitHitSeen": ("✗", Role.LIMIT, "a limit ended the attempt"),
    "RateLimitMet": ("▲", Role.LIMIT, "waits for its model"),
    "Asked": ("?", Role.WAITING, "asks you"),
    "Answered": ("✓", Role.ACCENT, "answered:"),
    "Steered": ("►", Role.ACCENT, "got a message:"),
    "ReviewWanted": ("◆", Role.WAITING, "is ready for review"),
    "ChoiceWanted": ("◆", Role.WAITING, "a candidate must be chosen"),
    "ConflictsFound": ("≠", Role.CLASH, "conflicts"),
    "LandingDelayed": ("▲", Role.LIMIT, "waits to land until your edits are out of the way"),
    "LandingUndone": ("◆", Role.WAITING, "its landing was undone"),
    "UndoRefused": ("▲", Role.LIMIT, "stays landed:"),
    "CheckFinished": ("«", Role.RUNNING, "the check ended"),
    "IsolationViolated": ("▲", Role.FAILED, "changed files that are not its own:"),
    "Landed": ("✓", Role.DONE, "landed"),
    "WorkerSettled": ("■", Role.MUTED, "settled"),
    "StepSettled": ("■", Role.MUTED, "the step settled"),
    "RunWaiting": ("?", Role.WAITING, "the run waits for you"),
    "RunFinished": ("■", Role.DONE, "the run is finished"),
    "ToolUsed": ("·", Role.MUTED, "used a tool"),
    "ProgressReported": ("·", Role.MUTED, "reported progress"),
    "ClashPredicted": ("≈", Role.CLASH, "may clash"),
    "ConflictsDecided": ("≠", Role.CLASH, "has resolved conflicts"),
    "OutsideChanged": ("·", Role.MUTED, "this changed while it worked:"),
    "EgressDecided": ("·", Role.MUTED, "asked for network access"),
}
