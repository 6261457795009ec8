"""Read the files of a diff whole, and tell what became of their functions, behind the reader."""

from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread

from engine.messages.diffs import ChangeDiff, FileSides
from tui.kit.screen import Board, Controller
from tui.screens.diff.fates import Fate, Versions, fates_of
from tui.screens.diff.units import can_take_apart, units_of
from tui.words.clean import clean_tree

_MOST_FILES = 100
"""A change of more files is not taken apart: nobody reads it function by function."""
_MOST_BYTES = 1 << 20
"""So much is taken apart, both sides together: it costs some seconds in a thread."""


class Outlining(Controller):
    """Ask for the files, take them apart in a thread, and say what is found beside the diff."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        # A thread cannot be stopped, and takes time from the screen: one is at it at once.
        self._alone = anyio.CapacityLimiter(1)

    async def fates(
        self, run: str, worker: str, diff: ChangeDiff, *, attempt: int | None, against: str
    ) -> Mapping[int, Sequence[Fate]]:
        """Return what became of functions, by the places of files; nothing where nobody can say."""
        paths = tuple(
            path
            for path, file in zip(diff.paths, diff.files, strict=True)
            if file.hunks and not file.is_cut and not file.is_generated and can_take_apart(path)
        )
        if not paths or len(paths) > _MOST_FILES or diff.is_live:
            return {}
        bridge = self.session.bridge
        found = await bridge.sides(run, worker, paths, attempt=attempt, against=against)
        if isinstance(found, str):
            return {}
        return await anyio.to_thread.run_sync(_fates, diff, found, limiter=self._alone)


def _fates(diff: ChangeDiff, sides: Sequence[FileSides]) -> Mapping[int, Sequence[Fate]]:
    """Take every file apart and compare; one that cannot be read on either side says nothing."""
    places = {path: place for place, path in enumerate(diff.paths)}
    versions: list[Versions] = []
    numbers: list[int] = []
    room = _MOST_BYTES
    for file in sides:
        number = places.get(file.path)
        room -= len(file.old or b"") + len(file.new or b"")
        if room < 0:
            break
        units = [units_of(file.path, data or b"") for data in (file.old, file.new)]
        if number is None or file.is_cut or units[0] is None or units[1] is None:
            continue
        shown = diff.files[number]
        versions.append(Versions(shown.path, shown.old_path, units[0], units[1]))
        numbers.append(number)
    found = fates_of(versions)
    return {numbers[at]: clean_tree(tuple(fates)) for at, fates in found.items() if fates}
