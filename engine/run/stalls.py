"""Notice that nothing moves: first a badge, and after twice the time a question."""

from engine.core import facts as f
from engine.core.state import Worker
from engine.messages.asked import Question
from engine.messages.results import Badge
from engine.phases import Phase
from engine.work.watch import Watch

_PREFIX = "stall-"


def is_stall_question(question: str) -> bool:
    """Return whether a question is the engine's own and not the agent's."""
    return question.startswith(_PREFIX)


def stall_facts(w: Worker, watch: Watch, *, stall_s: float) -> list[f.Fact]:
    """Return facts on a worker that has not moved for `stall_s`, or moves again.

    The clock stands still while a human is awaited, and while the worker is paused.
    """
    if w.phase is not Phase.RUNNING:
        return []
    now = watch.clock.monotonic()
    own = [q.id for q in w.attempt.questions if is_stall_question(q.id)]
    moved_at = watch.logbook.moved_at
    is_held = Badge.PAUSED in w.badges or len(w.attempt.questions) > len(own)
    if moved_at is None or is_held:
        watch.logbook.last_progress = now
        return []
    still = now - moved_at
    about = w.about(watch.clock.now())
    is_shown = Badge.STALLED in w.badges
    if still < stall_s:
        gone: list[f.Fact] = [f.QuestionWithdrawn(**about, question=q) for q in own]
        return [*gone, f.StallSeen(**about, is_stalled=False)] if is_shown else gone
    if not is_shown:
        return [f.StallSeen(**about)]
    if still >= 2 * stall_s and not own:
        return [f.AgentAsked(**about, question=_question(w, still, watch.clock.now()))]
    return []


def _question(w: Worker, still_s: float, at: float) -> Question:
    asked = sum(is_stall_question(said.question or "") for said in w.attempt.said)
    return Question(
        id=f"{_PREFIX}{w.attempt.number}-{asked + 1}",
        text=f"no progress for {still_s / 60:.0f} minutes. Wait, or stop it?",
        choices=("wait", "stop"),
        asked_at=at,
    )
