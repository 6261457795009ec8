"""Know the files that a worker has changed so far: beside its log, and where a call is opened."""

from functools import partial

from engine.messages.diffs import ChangeDiff, FileDiff, Sign
from engine.messages.results import WorkerView
from tui.ink import MUTED, TEXT, Ink, Role, Row, Span, clickable, row_width, words
from tui.kit.screen import Board, Controller
from tui.words.cutting import cut_path
from tui.words.figures import MINUS, some
from tui.words.named import named_file
from tui.words.said import present_change

_MOST_LINES = 80
"""So many lines of a file's diff stand on the log; Diff has the rest."""
_Of = tuple[str, str, int, object]
"""The run, the worker, the attempt, and the figures of a change."""
_SIGNS = {Sign.ADDED: "+", Sign.REMOVED: "-"}


class Files(Controller):
    """The change of the worker that is looked at, asked for anew when its figures differ."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._of: _Of = ("", "", 0, None)
        self._diff = ChangeDiff(against="")
        self._is_reading = False
        self._refused: WorkerView | None = None

    def look(self, worker: WorkerView) -> None:
        """Ask for the change where there is another one than the one that is known.

        One answer is waited for at a time: figures that change faster than a large diff is read
        would otherwise leave no answer at all. What was refused is asked again once there is
        news of the worker.
        """
        of = (self.run_id, worker.worker, worker.attempt, present_change(worker))
        if of[:3] != self._of[:3]:
            self._diff = ChangeDiff(against="")
        if of == self._of or self._is_reading or worker is self._refused:
            return
        self._of = of
        if present_change(worker) is not None:
            self._is_reading = True
            self.screen.begin(partial(self._read, of, worker), group="files")

    async def _read(self, of: _Of, worker: WorkerView) -> None:
        try:
            found = await self.session.bridge.diff(*of[:3])
        finally:
            self._is_reading = False
        if isinstance(found, ChangeDiff):
            self._diff, self._refused = found, None
        else:
            self._of, self._refused = (*of[:3], None), worker
        self.screen.draw()  # which asks again if another change is wanted by now

    def rows(self, cells: int, most: int) -> list[Row]:
        """Return the files, each with its lines, as many as there is room for."""
        files = self._diff.files
        shown = files if len(files) <= most else files[: max(most - 1, 0)]
        rows = [clickable(_file_row(file, cells), f"file:{file.path}") for file in shown]
        if len(shown) < len(files):
            left = some(len(files) - len(shown), "file")
            rows.append(clickable(words(f"► {left} more"), "do:diff"))
        return rows

    async def opened(self, place: str) -> list[tuple[str, str]]:
        """Return the lines of a file's diff as it stands now, each with its sign."""
        worker = self.here()
        found = await self.session.bridge.diff(self.run_id, worker.worker, worker.attempt)
        files = found.files if isinstance(found, ChangeDiff) else ()
        paths = [one.path for one in files]
        number = named_file(paths, place)
        if number is None:
            number = named_file(paths, place.rpartition(":")[0])
        file = None if number is None else files[number]
        if file is None or not file.hunks:
            return []
        hunks = some(len(file.hunks), "hunk")
        rows = [("", f"{file.path} as it stands now, {hunks}")]
        for hunk in file.hunks:
            rows.append(("", f"@@ {hunk.where}".rstrip()))
            rows += [(_SIGNS.get(line.sign, " "), line.text) for line in hunk.lines]
        if len(rows) > _MOST_LINES:
            key = self.screen.key_of("diff")
            left = some(len(rows) - _MOST_LINES, "line")
            rows = [*rows[:_MOST_LINES], ("", f"{left} more: {key} shows the whole diff")]
        return rows


def _file_row(file: FileDiff, cells: int) -> Row:
    added, removed = file.added, file.removed
    figures = words(
        *([Span(f" +{added}", Ink(Role.ADDED))] if added else []),
        *([Span(f" {MINUS}{removed}", Ink(Role.REMOVED))] if removed else []),
        *([Span(" binary", MUTED)] if file.is_binary else []),
    )
    return (Span(cut_path(file.path, max(cells - row_width(figures) - 1, 8)), TEXT), *figures)
