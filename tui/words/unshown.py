"""Name what no diff can show of a change, and what is asked before that lands."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff, FileKind
from engine.messages.results import Change, WorkerView
from tui.words.figures import some

_NAMED = 3


class Unshown(NamedTuple):
    """The files of a change of which a reviewer did not see all: by what is missing."""

    cut: tuple[str, ...] = ()
    binary: tuple[str, ...] = ()
    mode_only: tuple[str, ...] = ()

    def words(self) -> str:
        """Say how many there are of each, for a header; nothing where there are none."""
        parts = [
            f"{len(names)} {what}"
            for names, what in zip(self, ("cut", "binary", "mode only"), strict=True)
            if names
        ]
        return ", ".join(parts)


NOTHING_UNSHOWN = Unshown()


class Asked(NamedTuple):
    """Hold what is asked before a landing: a word to type, or a question for the same key again."""

    word: str = ""
    question: str = ""
    is_despite_check: bool = False


def unshown_of(diff: ChangeDiff) -> Unshown:
    """Return the files of which a diff shows less than what would land."""
    files = diff.files
    return Unshown(
        cut=tuple(file.path for file in files if file.is_cut),
        binary=tuple(file.path for file in files if file.is_binary and not file.is_cut),
        mode_only=tuple(file.path for file in files if file.kind is FileKind.MODE),
    )


def asks_to_land(worker: WorkerView, unshown: Unshown) -> Asked:
    """Return what is asked before a change lands.

    A check is overruled only where it is red for this very change. A diff that was cut wants a word
    too: what lands is more than anybody could read.
    """
    check = worker.check
    is_red = check is not None and not check.passed and not worker.is_check_stale
    reasons = ["the check failed"] if is_red else []
    change = worker.change or Change()
    if unshown.cut:
        reasons.append(f"the diff was cut in {_named(unshown.cut)}")
    elif change.is_cut:
        reasons.append("its diff is too long to show in full")
    if reasons:
        return Asked(word=" and ".join(reasons), is_despite_check=is_red)
    count = max(len(unshown.binary), change.binary)
    if count:
        names = f": {_named(unshown.binary)}" if len(unshown.binary) == count else ""
        told = f"{some(count, 'binary file')} could not be shown{names}."
        return Asked(question=f"Land {worker.worker}? {told}")
    return Asked()


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
