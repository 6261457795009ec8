"""Filter workers by words: a text, or `phase:failed agent:claude step:port needs:me check:red`."""

import re
from collections.abc import Callable, Mapping

from engine.messages.results import RunView, StepView, WorkerView
from tui.words.looks import look_of
from tui.words.standing import Band, band_of, title_of

HINT = "text, phase: agent: step: check: needs:me, -not; red=… saves it, =red uses it"
_NAMED = re.compile(r"(\w+)=(.*)", re.DOTALL)


def named_filter(text: str) -> tuple[str, bool, str]:
    """Return the name that a filter is to be kept by, if it has one, and the filter itself."""
    found = _NAMED.fullmatch(text.strip())
    return (found[1], True, found[2].strip()) if found else ("", False, text)


def meant_by(text: str, named: Mapping[str, str]) -> str:
    """Return a filter with the kept ones in place of their names; it may be half typed."""
    terms = named_filter(text)[2].split()
    return " ".join(named.get(term[1:], "") if term.startswith("=") else term for term in terms)


def filters(text: str, worker: WorkerView, step: StepView) -> bool:
    """Return if every term of a filter holds of a worker; an empty filter holds of all."""
    return all(_holds(term, worker, step) for term in text.casefold().split())


def filters_step(text: str, step: StepView) -> bool:
    """Return if a filter holds of a step's name, or of one of its workers."""
    return all(
        term in step.name.casefold() or any(filters(term, w, step) for w in step.workers)
        for term in text.casefold().split()
    )


def filters_run(text: str, said: str, run: RunView | None = None) -> bool:
    """Return if each term holds of what is said of a run, or of one of its workers."""
    workers = [(worker, step) for step in run.steps for worker in step.workers] if run else []
    return all(
        term in said.casefold() or any(filters(term, w, step) for w, step in workers)
        for term in text.casefold().split()
    )


def _holds(term: str, worker: WorkerView, step: StepView) -> bool:
    bare = term.removeprefix("-")
    if not bare or bare.endswith(":"):
        return True  # it is only being typed
    name, colon, value = bare.partition(":")
    asked = _ASKED.get(name) if colon else None
    found = asked(worker, step, value) if asked else bare in _text_of(worker, step)
    return found != (bare != term)


def _text_of(worker: WorkerView, step: StepView) -> str:
    parts = (worker.worker, title_of(worker, step), worker.label, worker.agent)
    said = (look_of(worker).word, worker.phase, worker.prompt, worker.error or "")
    return "\n".join((*parts, *said)).casefold()


def _phase(worker: WorkerView, _: StepView, value: str) -> bool:
    words = {look_of(worker).word, *worker.phase.split("_"), *worker.badges}
    return any(str(word).casefold().startswith(value) for word in words)


def _check(worker: WorkerView, _: StepView, value: str) -> bool:
    if worker.check is None:
        return "none".startswith(value)
    return ("green passed" if worker.check.passed else "red failed").find(value) >= 0


def _needs(worker: WorkerView, step: StepView, value: str) -> bool:
    return bool(value) and band_of(worker, step) is Band.NEEDS_YOU


_ASKED: Mapping[str, Callable[[WorkerView, StepView, str], bool]] = {
    "phase": _phase,
    "agent": lambda worker, _, value: value in worker.agent.casefold(),
    "step": lambda worker, _, value: value in worker.step.casefold(),
    "check": _check,
    "needs": _needs,
}
"""The names that may stand before a colon, and what is asked of a worker then."""
