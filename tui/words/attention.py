"""Tell in a line what has come up since the last look, to a human who may look elsewhere.

It knows what a terminal can be told (a title, a notification) as text; sending it is the app's.
"""

from engine.messages.results import EngineView
from tui.words.clean import clean
from tui.words.standing import Band, bands_of

_ESC, _BELL, _END = "\x1b", "\x07", "\x1b\\"
Needs = frozenset[tuple[str, str]]
"""An item that waits for a human: the run, and the worker, or nothing for a run that has ended."""


def needs_of(view: EngineView) -> Needs:
    """Every worker that waits for a human, and every run that has ended."""
    waiting = {
        (run.run, worker.worker) for run in view.runs for worker in bands_of(run)[Band.NEEDS_YOU]
    }
    return frozenset(waiting | {(run.run, "") for run in view.runs if run.ended_at is not None})


def sentence_of_new(before: Needs, now: Needs) -> str:
    """Return what has come up since, in one line; nothing where nothing has."""
    new = sorted(now - before)
    workers = [worker for _, worker in new if worker]
    if workers:
        more = len(workers) - 1
        return clean(
            f"{workers[0]} and {more} more need you" if more else f"{workers[0]} needs you"
        )
    return clean(f"run {new[0][0]} has ended") if new else ""


def title_of_view(view: EngineView) -> str:
    """The title of the terminal: how many wait, in which repository, and the newest run."""
    count = len({need for need in needs_of(view) if need[1]})
    name = view.repository.rstrip("/").rpartition("/")[2]
    run = max(view.runs, key=lambda run: run.started_at, default=None)
    title = f"plait {name}{f': {run.name}' if run and run.name else ''}".strip()
    return clean(f"({count}) {title}" if count else title)


KEEP_TITLE, PUT_TITLE_BACK = f"{_ESC}[22;2t", f"{_ESC}[23;2t"


def set_title(text: str) -> str:
    """Return the sequence that sets a terminal's title."""
    return f"{_ESC}]2;{text}{_BELL}"


def notification(text: str, *, is_in_tmux: bool) -> str:
    """Return the sequence that makes a terminal notify; tmux passes it on only in an envelope."""
    plain = f"{_ESC}]9;{text}{_BELL}"
    if not is_in_tmux:
        return plain
    return f"{_ESC}Ptmux;{plain.replace(_ESC, _ESC * 2)}{_END}"
