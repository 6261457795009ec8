"""Tell in a line what has come up since the last look, to a human who may look elsewhere.

It knows what a terminal can show (a title, a notification) as text; sending it is the app's.
"""

from engine.messages.results import EngineView, RunView, WorkerView
from tui.words.clean import clean
from tui.words.figures import age
from tui.words.looks import look_of
from tui.words.standing import Band, bands_of, waits_since

_MOST_NAMED = 3

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


def sentence_of_absence(view: EngineView, left_at: float) -> str:
    """Return what has come of workers since somebody left, in one line; nothing where nothing.

    Those who need a human come first; those who only go on are no news.
    """
    told: dict[str, list[str]] = {}
    for _, worker in moved_since(view, left_at):
        told.setdefault(look_of(worker).word.lower(), []).append(worker.worker)
    parts = [f"{word} {_named(names)}" for word, names in told.items()]
    return clean(f"since you left ({age(view.at - left_at)}): {'; '.join(parts)}") if told else ""


def moved_since(view: EngineView, left_at: float) -> list[tuple[RunView, WorkerView]]:
    """Return whom something has come of since then, with the run, those who need a human first."""
    told_of = (Band.NEEDS_YOU, Band.SETTLED)
    workers = [(run, w) for band in told_of for run in view.runs for w in bands_of(run)[band]]
    return [(run, w) for run, w in workers if max(w.phase_since, _asked(w)) > left_at]


def _asked(worker: WorkerView) -> float:
    return waits_since(worker) if worker.questions else 0.0


def _named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


KEEP_TITLE, PUT_TITLE_BACK = f"{_ESC}[22;2t", f"{_ESC}[23;2t"


def set_title(text: str) -> str:
    """Return the sequence that sets a terminal's title."""
    return f"{_ESC}]2;{text}{_BELL}"


def notification(text: str, *, is_in_tmux: bool, terminal: str = "") -> str:
    """Return the sequence that makes a terminal notify; tmux passes it on only in an envelope.

    `terminal` is its name, as TERM has it: kitty and the family of rxvt have sequences of their
    own.
    """
    code, end = next((known for name, known in _CODES.items() if name in terminal), _USUAL)
    plain = f"{_ESC}]{code}{text}{end}"
    if not is_in_tmux:
        return plain
    return f"{_ESC}Ptmux;{plain.replace(_ESC, _ESC * 2)}{_END}"


def desktop_words(program: str, text: str) -> tuple[str, ...]:
    """Return the command that notifies over D-Bus; `program` is notify-send or gdbus."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;")
    if program == "notify-send":
        return (program, "--app-name=plait", "--", "plait", safe)
    quoted = "'" + safe.replace("\\", "\\\\").replace("'", "\\'") + "'"
    to = ("--dest", _NOTIFIER, "--object-path", f"/{_NOTIFIER.replace('.', '/')}")
    method = ("--method", f"{_NOTIFIER}.Notify")
    values = ("'plait'", "uint32 0", "''", "'plait'", quoted, "@as []", "@a{sv} {}", "int32 -1")
    return (program, "call", "--session", *to, *method, *values)


def tmux_words(pane: str, state: str) -> tuple[str, ...]:
    """Return the command that sets `@plait` of the pane's window, or takes it away."""
    of = ("tmux", "set-option", "-w", "-t", pane)
    return (*of, "@plait", state) if state else (*of, "-u", "@plait")


def window_state(view: EngineView) -> str:
    """Return how it stands in a word or two, for the window of a multiplexer."""
    waiting = sum(bool(worker) for _, worker in needs_of(view))
    live = sum(w.is_live for run in view.runs if run.ended_at is None for w in run.workers)
    if waiting:
        return f"{waiting} need you" if waiting > 1 else "1 needs you"
    return f"{live} working" if live else "idle"


_NOTIFIER = "org.freedesktop.Notifications"
_USUAL = ("9;", _BELL)
_CODES = {
    "kitty": ("99;;plait: ", _END),
    "rxvt": ("777;notify;plait;", _BELL),
    "foot": ("777;notify;plait;", _BELL),
}
"""The sequences of terminals that do not understand the usual one."""
