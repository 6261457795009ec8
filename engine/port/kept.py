"""Keep what was said of the journals of a repository, for as long as nothing it came from changes.

An answer counts only beside the very journals, the code and the surroundings that it was made with.
The kernel's own times tell. No program can set them, and a journal whose newest time is not yet
past when it is looked at may be written again at that same time: then nothing is kept.
"""

from __future__ import annotations

import json
import os
import sys
import time

from engine.store.stamps import stamp_of

TYPE_CHECKING = False  # `typing` costs as much as all that this module does
if TYPE_CHECKING:
    from typing import Any

    Said = list[tuple[bool, str]]
    """All that a command says, in order: if it is data, and the text."""

_FORM = 1
_ROOMS = ("engine.", "tui.")
_MOST_WAITED_S = 0.05
"""The clocks of file systems tick every few milliseconds."""
_DRAFT_S = 60.0
"""A draft that is older belongs to a process that was killed."""


def kept_answer(state: str, name: str, about: dict[str, Any]) -> Said | None:
    """Return what was said under a name; None where anything has changed since.

    Args:
        state: The folder where plait keeps what it knows of the repository.
        name: Names the question.
        about: Whatever else changes the answer, as plain data.
    """
    try:
        with open(f"{state}/said/{name}.json", "rb") as file:
            note = json.load(file)
        is_same = note["form"] == _FORM and note["about"] == about
        if not is_same or note["code"][1] != _mark_of(note["code"][0]):
            return None
        if note["journals"] != _journals(state):
            return None
        said = [(bool(is_data), str(text)) for is_data, text in note["said"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return said if _is_plain(said) else None


class Look:
    """A look at journals that has begun, and whose answer may be kept."""

    def __init__(self, state: str, draft: str, journals: dict[str, Any]) -> None:
        self._state, self._draft, self._journals = state, draft, journals

    @classmethod
    def begin(cls, state: str) -> Look | None:
        """Remember how the journals are before they are read; None where no answer can be kept."""
        from pathlib import Path  # noqa: PLC0415  an answer that was kept needs neither

        from engine.private import private_folder  # noqa: PLC0415

        draft = f"{state}/said/.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            device = os.stat(f"{state}/runs").st_dev
            private_folder(Path(state, "said"))
            _remove_old_drafts(f"{state}/said")
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        look = cls(state, draft, {})
        try:
            look._journals = _journals(state)
            times = [at for stamp in look._journals.values() for at in stamp[2::3]]
            # Written from here on, a journal has a later time than any of these.
            if os.fstat(number).st_dev == device and _is_past(number, max(times, default=0)):
                return look
        except (OSError, ValueError):  # a run is just being made or removed
            pass
        finally:
            os.close(number)
        look.drop()
        return None

    def keep(self, name: str, about: dict[str, Any], said: Said) -> None:
        """Keep an answer for whoever asks next; never a failure worth a word."""
        files = _code()
        try:
            if not _is_plain(said):
                raise ValueError(name)
            note = {
                "form": _FORM,
                "about": about,
                "code": [files, _mark_of(files)],
                "journals": self._journals,
                "said": said,
            }
            with open(self._draft, "w", encoding="ascii") as file:
                json.dump(note, file)
            os.replace(self._draft, f"{self._state}/said/{name}.json")
        except (OSError, ValueError):
            self.drop()

    def drop(self) -> None:
        """Keep nothing."""
        try:
            os.unlink(self._draft)
        except OSError:
            return


def _remove_old_drafts(folder: str) -> None:
    with os.scandir(folder) as entries:
        drafts = [entry for entry in entries if entry.name.startswith(".")]
    for draft in drafts:
        if draft.stat(follow_symlinks=False).st_mtime < time.time() - _DRAFT_S:
            os.unlink(draft.path)


def _journals(state: str) -> dict[str, Any]:
    """Return the stamp of each journal by its run.

    Raises:
        ValueError: A run has none, or it cannot be looked at.
    """
    with os.scandir(f"{state}/runs") as folders:
        stamps = {folder.name: stamp_of(folder.path) for folder in folders if folder.is_dir()}
    if None in stamps.values():
        raise ValueError(state)
    return {run: list(stamp) for run, stamp in stamps.items() if stamp is not None}


def _is_past(number: int, newest: int) -> bool:
    """Wait until the clock of the file system shows more than a time; False if it never does."""
    until = time.monotonic() + _MOST_WAITED_S
    while os.fstat(number).st_ctime_ns <= newest:
        if time.monotonic() > until:
            return False
        os.utime(number)  # the kernel notes its own time
    return True


def _code() -> list[str]:
    """Return the files of all that plait has loaded: they made the answer."""
    known = ((name, getattr(one, "__file__", None)) for name, one in sys.modules.items())
    return sorted(file for name, file in known if file and name.startswith(_ROOMS))


def _mark_of(files: list[str]) -> int:
    """Return a number that is another one after an upgrade, or an edit of any of these files."""
    found = map(os.stat, files)
    return sum(one.st_mtime_ns + one.st_ino + one.st_size for one in found)


def _is_plain(said: Said) -> bool:
    """Return True if nothing in a text acts on a terminal."""
    return all(text.replace("\n", "").isprintable() for _, text in said)
