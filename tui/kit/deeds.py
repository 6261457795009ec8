"""Draw what a worker did last: timed lines of kinds, the newest at the bottom.

A dump of output is folded to the lines that tell most, so that it never pushes out what was said.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from engine.messages.deeds import Deed, tells_failure
from engine.messages.logs import LogKind
from engine.messages.results import WorkerView
from tui.ink import BOLD, MUTED, TEXT, Ink, Role, Row, Span, fit, spread, width_of
from tui.words.cutting import cut_command, wrap
from tui.words.figures import count, lasting
from tui.words.said import is_bad_ending

_TIMED, _LABELED = 48, 33
"""From how many cells on a row has its time, and the word for its kind."""
_TIME, _LABEL = 6, 7
_NEWEST_MOST = 6
"""The newest words are cut here: what goes on longer is a dump rather than a sentence."""
_OLDER_MOST, _FEW = 2, 2
_VERBS = {
    "runs": {"bash", "shell", "execute", "exec", "run", "command_execution", "run_shell_command"},
    "edits": {"edit", "write", "multiedit", "file_change", "apply_patch", "replace", "create"},
    "reads": {"read", "grep", "glob", "search", "ls", "view", "list", "fetch", "webfetch"},
}
_VERB_OF = {name: verb for verb, names in _VERBS.items() for name in names}
_KINDS = {
    LogKind.SAYS: ("says", TEXT),
    LogKind.THOUGHT: ("thinks", Ink(Role.MUTED, italic=True)),
    LogKind.YOU: ("you", Ink(Role.ACCENT)),
    LogKind.NOTE: ("plait", MUTED),
}
_ASKS = "asks: "
_EDIT = re.compile(r" \+\d+ -\d+$")


class _Told(NamedTuple):
    """A deed in words: the word for its kind, what is said of it, its ink, and how it ended."""

    label: str
    text: str
    ink: Ink
    ending: str = ""


def deed_rows(worker: WorkerView, now: float, cells: int, rows: int) -> list[Row]:
    """Return what it did last in so many rows.

    Of an agent that tells nothing of itself its output is all there is, and stands as it came; of
    any other, output beside its tools shows only where it tells of a failure.
    """
    if all(deed.kind is LogKind.OUTPUT for deed in worker.lately):
        lines = [line for deed in worker.lately for line in deed.tail] or worker.last_lines
        return _filled(_plain_rows(lines, cells, rows), rows)
    began = worker.attempt_since or now
    drawn: list[Row] = []
    for deed in reversed([deed for deed in worker.lately if deed.text or deed.error]):
        most = _OLDER_MOST if drawn else min(max(rows, 1), _NEWEST_MOST)
        left = rows - len(drawn)
        drawn = _deed_rows(deed, began, cells, max(min(most, left), 1))[:left] + drawn
        if len(drawn) >= rows:
            break
    return _filled(drawn, rows)


def newest_height(worker: WorkerView, now: float, cells: int) -> int:
    """Return how many rows the newest words take, of those that are shown whole."""
    newest = worker.lately[-1:]
    if not newest or newest[0].kind is not LogKind.SAYS:
        return 0
    return len(_deed_rows(newest[0], worker.attempt_since or now, cells, _NEWEST_MOST))


def _filled(drawn: list[Row], rows: int) -> list[Row]:
    drawn = drawn[-rows:] if rows > 0 else []
    return drawn + [()] * (rows - len(drawn))


def _plain_rows(lines: Sequence[str], cells: int, rows: int) -> list[Row]:
    drawn: list[Row] = []
    for line in reversed(lines):
        most = _OLDER_MOST if drawn else min(max(rows, 1), _NEWEST_MOST)
        ink = line_ink(line)
        drawn = [(Span(piece, ink),) for piece in wrap(line, cells, most)] + drawn
        if len(drawn) >= rows:
            break
    return drawn


def line_ink(line: str) -> Ink:
    """Red where a line tells of a failure, bold where a command was run."""
    if tells_failure(line):
        return Ink(Role.FAILED)
    return BOLD if line.startswith("$ ") else TEXT


def _deed_rows(deed: Deed, began: float, cells: int, most: int) -> list[Row]:
    """Return a deed's own rows, then what its output tells."""
    told = _told(deed)
    ending = told.ending if cells >= _TIMED else told.ending.partition(",")[0]
    time = f"{lasting(deed.at - began):>{_TIME - 1}} " if cells >= _TIMED else ""
    label = _LABEL if cells >= _LABELED else 0
    indent = len(time) + label
    rows: list[Row] = []
    if told.text:
        begin = (Span(time, MUTED), *fit((Span(told.label, _label_ink(deed.kind)),), label))
        room = cells - indent - (width_of(ending) + 2 if ending else 0)
        if deed.kind is LogKind.TOOL:
            pieces = [cut_command(told.text, max(room, _LABEL))]
        else:
            pieces = wrap(told.text, max(room, _LABEL), most)
        rows = [(Span(" " * indent), Span(piece, told.ink)) for piece in pieces]
        rows[0] = (*begin, Span(pieces[0], told.ink))
        if ending:
            ink = Ink(Role.FAILED) if is_bad_ending(ending) else MUTED
            rows[0] = spread(rows[0], (Span(ending, ink),), cells)
    return rows + _telling_rows(deed, indent, cells)


def is_edit(text: str) -> bool:
    """Return whether the call of a tool, as the log has it, writes a file."""
    name = text.partition(" ")[0].casefold()
    return _VERB_OF.get(name) == "edits" or _EDIT.search(text) is not None


def _told(deed: Deed) -> _Told:
    if deed.kind is LogKind.TOOL:
        name, _, about = deed.text.partition("  ")
        first = name.split(" ")[0].casefold()
        verb = _VERB_OF.get(first)
        text = " ".join((about if verb and about else deed.text).split())
        edit = _EDIT.search(text)
        text, lines = (text[: edit.start()], edit[0].strip()) if edit else (text, "")
        return _Told(verb or "tool", text, BOLD if verb == "runs" else TEXT, deed.result or lines)
    if deed.kind is LogKind.NOTE and deed.text.startswith(_ASKS):
        return _Told("asks", deed.text.removeprefix(_ASKS), Ink(Role.WAITING))
    label, ink = _KINDS.get(deed.kind, ("", MUTED))
    return _Told(label, deed.text.strip(), ink)


def _label_ink(kind: LogKind) -> Ink:
    if kind is LogKind.SAYS:
        return BOLD
    return Ink(Role.ACCENT, bold=True) if kind is LogKind.YOU else MUTED


def _telling_rows(deed: Deed, indent: int, cells: int) -> list[Row]:
    """Return the lines of an output that tell most, its first error and its last; and the count."""
    lines = deed.tail
    if deed.count > _FEW:
        lines = deed.tail[-1:]
        lines = lines if deed.error in {"", *lines} else (deed.error, *lines)
    inks = {True: Ink(Role.FAILED), False: MUTED}
    rows = [(Span(" " * indent), Span(line, inks[tells_failure(line)])) for line in lines]
    if deed.count > _FEW and cells >= _TIMED:
        many = (Span(f"{count(deed.count)} lines", MUTED),)
        return [*(fit(row, cells) for row in rows[:-1]), spread(rows[-1], many, cells)]
    return [fit(row, cells) for row in rows]
