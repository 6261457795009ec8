"""Keep what was read of each run at a glance, for as long as its journal's files stay the same.

To open a journal costs half a millisecond, and a repository has hundreds of them. The kernel's own
times say if a file was written since. No program can set them.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import StoreError
from engine.ids import RunId
from engine.messages.questions import RunSummary, Standing
from engine.store.files import write_atomically
from engine.store.stamps import stamp_of

_FORM = 1
"""The form of the note; another one is not read."""
_SETTLED_NS = 1_000_000_000
"""A file that was just written may be written again within one tick of its clock."""
_MOST_NEW = 300
"""To end an engine must not take long: the next one reads what is left."""

Stamp = tuple[int, ...]


class _AtGlance(NamedTuple):
    stamp: Stamp
    summary: RunSummary


class Summaries:
    """The summaries of the runs of a folder, in memory and in a note beside it."""

    def __init__(self, note: Path, read: Callable[[Path], RunSummary]) -> None:
        self._note, self._read = note, read
        self._noted: dict[str, _AtGlance] = {}
        self._known: dict[str, _AtGlance] | None = None

    def of(self, folders: Iterable[Path]) -> list[RunSummary]:
        """Return the summary of each run: the known one, if nothing was written since."""
        return [self._of(folder) for folder in folders]

    def keep(self, folders: Iterable[Path]) -> None:
        """Write down what is known, for whoever comes next; never a failure worth a word."""
        known, new = self._loaded(), 0
        kept: dict[str, _AtGlance] = {}
        for folder in folders:
            if folder.name not in known:
                new += 1
            if new <= _MOST_NEW:
                self._of(folder)
            if folder.name in known:
                kept[folder.name] = known[folder.name]
        if kept != self._noted:
            text = json.dumps({"form": _FORM, "runs": {run: _plain(kept[run]) for run in kept}})
            with suppress(StoreError):
                write_atomically(self._note, text.encode())
                self._noted = kept

    def _of(self, folder: Path) -> RunSummary:
        known = self._loaded()
        now = time.time_ns()
        stamp = stamp_of(str(folder))  # before it is read: what is written meanwhile changes it
        found = known.get(folder.name)
        if found is not None and found.stamp == stamp:
            return found.summary
        summary = self._read(folder)
        is_settled = stamp is not None and max(stamp[2::3]) < now - _SETTLED_NS
        if stamp is not None and is_settled and summary.standing is not Standing.UNREADABLE:
            known[folder.name] = _AtGlance(stamp, summary)
        else:
            known.pop(folder.name, None)
        return summary

    def _loaded(self) -> dict[str, _AtGlance]:
        if self._known is None:
            self._noted = _noted(self._note)
            self._known = dict(self._noted)
        return self._known


def _plain(known: _AtGlance) -> list[object]:
    run = known.summary
    return [known.stamp, run.started, run.standing, run.verdict, run.name, run.last]


def _noted(note: Path) -> dict[str, _AtGlance]:
    """Return what is written down; nothing where there is no such note, or a damaged one."""
    try:
        said = json.loads(note.read_bytes())
        rows = said["runs"].items() if said["form"] == _FORM else ()
        return {run: _AtGlance(tuple(stamp), _summary(run, row)) for run, (stamp, *row) in rows}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _summary(run: str, row: Sequence[Any]) -> RunSummary:
    started, standing, verdict, name, last = row
    return RunSummary(
        id=RunId(run),
        started=float(started),
        standing=Standing(standing),
        verdict=verdict,
        name=str(name),
        last=last,
    )
