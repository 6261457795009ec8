"""The message line: one sentence about the worker under the cursor, and what follows from it.

A key stands in a sentence as its idea, `{land}`: a key file can bind another key to the idea.
"""

import re
from collections.abc import Callable, Sequence

from engine.messages.results import Badge, StepView, WorkerView
from engine.messages.served import ServedState
from engine.phases import Phase
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, words
from tui.words.figures import countdown
from tui.words.said import (
    badge_text,
    cause_text,
    conflict_text,
    edits_text,
    hit_figure,
    passed_text,
    undone_text,
    why_failed,
)
from tui.words.scene import Scene
from tui.words.served import served_text
from tui.words.standing import is_in_plain_folder, short_name

KeyOf = Callable[[str], str]
"""Return the key of an idea, as it is written on screen."""
_Said = tuple[str, ...]
"""The sentence itself, and what may follow from it: the first whose keys all work now."""

_IDEA = re.compile(r"\{(\w+)\}")
_ENDS = (".", "?", "!", "…", ":")
_BEGINS = re.compile(r"[a-z][a-z']+(?=[ ,;.]|$)")
"""A word that a sentence can begin with; names of workers and of keys keep their small letters."""


def two_sentences(said: str, then: str) -> Row:
    """Return what was said and, in muted ink, what follows: two sentences where there are two."""
    if not then:
        return (Span(said, TEXT),)
    first = _BEGINS.match(then)
    follows = f"{then[0].upper()}{then[1:]}" if first else then
    return (Span(f"{ended(said)} ", TEXT), Span(ended(follows), MUTED))


def ended(said: str) -> str:
    """Return a sentence with its period."""
    return said if said.endswith(_ENDS) else f"{said}."


def with_keys(said: str, key_of: KeyOf) -> str:
    """Return a sentence with the keys of the ideas that it names."""
    return _IDEA.sub(lambda found: key_of(found[1]), said)


def sentence_of(worker: WorkerView, step: StepView, now: float, key_of: KeyOf) -> Row:
    """Return what is true of a worker, and what happens next.

    `key_of` returns nothing for an idea that cannot be done now: no sentence names its key.
    """
    name = Span(f"{worker.step}/", TEXT), Span(short_name(worker, step), BOLD)
    if worker.questions and not worker.phase.is_settled:
        mark = Span("? ", Ink(Role.WAITING, bold=True))
        asked = Span(" waits for your answer. ", TEXT)
        return words(mark, *name, asked, "It keeps its slot; its time limit is paused.")
    if worker.served is not None:
        is_over = worker.served.state is ServedState.ENDED
        follows = "{serve} starts it again." if is_over else "{serve} stops it."
        program = Span(f": its program {served_text(worker.served)} ", TEXT)
        return words(*name, program, _that_works((follows,), key_of))
    told = _TOLD.get(worker.phase, _running)
    fact, *options = told(worker, step, now)
    return words(*name, Span(f"{fact} ", TEXT), _that_works(options, key_of))


def _that_works(options: Sequence[str], key_of: KeyOf) -> str:
    """Return the first sentence whose keys all do something now."""
    works = (one for one in options if all(map(key_of, _IDEA.findall(one))))
    return with_keys(next(works, ""), key_of)


def nothing_here(said: str, scene: Scene) -> list[Row]:
    """An empty screen: why, and the key that leads on. A name keeps its own first letter."""
    run = scene.run
    names = {w.worker for w in run.workers} | {s.name for s in run.steps} if run else set()
    is_named = said.partition(" ")[0] in names
    whole = said if is_named else f"{said[:1].upper()}{said[1:]}"
    leads = words("  ", Span(scene.key("go_fleet"), KEY), " goes back to Fleet.")
    return [(), words(Span(f"  {whole}.", TEXT)), leads]


def _failed(worker: WorkerView, step: StepView, _: float) -> _Said:
    figure = f", {hit_figure(worker)}" if worker.limit_hit else ""
    return ended(f" failed: {why_failed(worker, step)}{figure}"), "Its work was kept."


def _finished(worker: WorkerView, step: StepView, _: float) -> _Said:
    if worker.ending:
        return f" {worker.ending}.", ""
    if passed := passed_text(worker, step):
        return f" has finished: its command {passed}.", "There is nothing to merge."
    return " has finished; there is nothing to merge.", ""


def _reviewing(worker: WorkerView, step: StepView, _: float) -> _Said:
    if worker.in_the_way:
        what = f"your edits in {edits_text(worker)} are in the way"
        return f" could not land: {what}.", "{merge} shows your choices; nothing was written."
    if Badge.LAND_REFUSED in worker.badges and worker.undone is None:
        why = worker.error or "the target refused it"
        return ended(f" could not land: {why}"), "Nothing was written."
    if Badge.APPROVED in worker.badges:
        return " is approved.", "{land} lands it."
    if undone := undone_text(worker):
        approves = "It can land again: {yes} approves it."
        return f": {undone}.", approves, "It can land again; {diff} opens its diff."
    if step.is_choice_due:
        fact = f" is one of {len(step.workers)} candidates."
        return fact, "{go_compare} compares them.", "The others stay on their branches."
    return (
        " waits for your review.",
        "{yes} approves it.",
        "It holds no slot; {diff} opens its diff.",
    )


def _landing(worker: WorkerView, step: StepView, now: float) -> _Said:
    if worker.in_the_way:
        what = f"your edits in {edits_text(worker)} are out of the way"
        return f" lands once {what}.", "{merge} can cancel that."
    return _running(worker, step, now)


def _conflicted(worker: WorkerView, _: StepView, __: float) -> _Said:
    return f" conflicts {conflict_text(worker)}.", "Nothing was written to the target."


def _backing_off(worker: WorkerView, _: StepView, now: float) -> _Said:
    when = countdown(worker.retry_at - now) if worker.retry_at is not None else "soon"
    return f" tries again {when}.", "{retry} starts at once."


def _waiting(_: WorkerView, step: StepView, __: float) -> _Said:
    return f" waits for {', '.join(step.dependencies) or 'its turn'}.", ""


def _put_away(worker: WorkerView, _: StepView, __: float) -> _Said:
    why = f": {cause_text(worker)}" if worker.cause else ""
    return ended(f" is {worker.phase.lower()}{why}"), "{retry} tries again."


def _running(worker: WorkerView, _: StepView, now: float) -> _Said:
    badge = badge_text(worker, now)
    if badge:
        return f": {badge}.", ""
    where = f" on {worker.branch}" if worker.branch else ""
    if is_in_plain_folder(worker):
        where = " in a plain folder, which has no diff"
    return f" is {worker.phase.lower().replace('_', ' ')}{where}.", ""


_TOLD: dict[Phase, Callable[[WorkerView, StepView, float], _Said]] = {
    Phase.FAILED: _failed,
    Phase.REVIEWING: _reviewing,
    Phase.CONFLICTED: _conflicted,
    Phase.LANDING: _landing,
    Phase.BACKING_OFF: _backing_off,
    Phase.WAITING: _waiting,
    Phase.QUEUED: lambda *_: (" waits for a free slot.", ""),
    Phase.STOPPING: lambda *_: (
        " was asked to stop.",
        "{no} kills it now; its work is collected either way.",
    ),
    Phase.LANDED: lambda *_: (" is landed.", ""),
    Phase.FINISHED: _finished,
    Phase.CANCELLED: _put_away,
    Phase.DISCARDED: _put_away,
    Phase.SKIPPED: _put_away,
}
