"""Give each phase and badge its look: glyph, word and role. No meaning rests on color alone."""

from typing import NamedTuple

from engine.limits import Level
from engine.messages.results import Badge, WorkerView
from engine.phases import Phase
from tui.ink import Ink, Role, Span


class Look(NamedTuple):
    """Glyph, word and role of a phase; filled where something is held up until a human acts."""

    glyph: str
    word: str
    role: Role
    is_filled: bool = False
    is_strong: bool = True


MARK = Span("✚", Ink(Role.ACCENT, bold=True))
"""Stands before what the user has marked."""

ASKS = Look("?", "ASKS YOU", Role.WAITING, is_filled=True)
PAUSED = Look("‖", "PAUSED", Role.MUTED)

PHASES = {
    Phase.WAITING: Look("·", "WAITING", Role.MUTED, is_strong=False),
    Phase.QUEUED: Look("◦", "QUEUED", Role.MUTED, is_strong=False),
    Phase.PREPARING: Look("○", "PREPARING", Role.RUNNING),
    Phase.RUNNING: Look("●", "RUNNING", Role.RUNNING),
    Phase.STOPPING: Look("□", "STOPPING", Role.MUTED),
    Phase.COLLECTING: Look("«", "COLLECTING", Role.RUNNING),
    Phase.CHECKING: Look("«", "CHECKING", Role.RUNNING),
    Phase.REVIEWING: Look("◆", "REVIEW", Role.WAITING),
    Phase.LANDING: Look("▼", "LANDING", Role.RUNNING),
    Phase.CONFLICTED: Look("≠", "CONFLICT", Role.CLASH, is_filled=True),
    Phase.BACKING_OFF: Look("↻", "RETRY", Role.LIMIT),
    Phase.LANDED: Look("✓", "LANDED", Role.DONE),
    Phase.FINISHED: Look("≡", "FINISHED", Role.DONE),
    Phase.DISCARDED: Look("∅", "DISCARDED", Role.MUTED, is_strong=False),
    Phase.FAILED: Look("✗", "FAILED", Role.FAILED, is_filled=True),
    Phase.CANCELLED: Look("■", "CANCELLED", Role.MUTED, is_strong=False),
    Phase.SKIPPED: Look("»", "SKIPPED", Role.MUTED, is_strong=False),
}

WALLS = {Level.ENFORCED: "┃", Level.SAMPLED: "┇", Level.ADVISORY: "┊", Level.NONE: " "}
"""The wall at the end of a usage bar: solid, dashed, dotted, none."""

LEVELS = {
    Level.ENFORCED: ("enforced", Role.DONE),
    Level.SAMPLED: ("sampled", Role.WAITING),
    Level.ADVISORY: ("advisory", Role.WAITING),
    Level.NONE: ("not enforced", Role.FAILED),
}
"""The word for each level, the strongest first; `none` is also a value: it closes the network."""

LEGEND = (
    ASKS,
    *(
        PHASES[phase]
        for phase in (
            Phase.CONFLICTED,
            Phase.FAILED,
            Phase.REVIEWING,
            Phase.RUNNING,
            Phase.BACKING_OFF,
            Phase.PREPARING,
            Phase.LANDED,
            Phase.QUEUED,
            Phase.WAITING,
            Phase.FINISHED,
            Phase.CANCELLED,
            Phase.SKIPPED,
            Phase.DISCARDED,
        )
    ),
)


def look_of(worker: WorkerView) -> Look:
    """Return how this worker looks now: an open question outranks its phase."""
    if worker.questions and not worker.phase.is_settled:
        return ASKS
    if Badge.PAUSED in worker.badges and not worker.phase.is_settled:
        return PAUSED
    return PHASES[worker.phase]


def glyph(look: Look) -> Span:
    """The glyph of a look in its color."""
    return Span(look.glyph, Ink(look.role, bold=look.is_strong))


def fill_of(role: Role) -> Ink:
    """The ink of a filled chip in a state's color."""
    if role is Role.WAITING:
        return Ink(Role.ON_WAITING, Role.WAITING_FILL, bold=True)
    return Ink(Role.ON_FILL, role, bold=True)


def chip(look: Look) -> Span:
    """The phase word, filled where it must be."""
    if look.is_filled:
        return Span(f" {look.word} ", fill_of(look.role))
    return Span(look.word, Ink(look.role, bold=look.is_strong))
