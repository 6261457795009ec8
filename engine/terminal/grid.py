"""Hold the grid of a terminal: lines, a cursor, margins; and do what moves, draws and erases.

Rows and columns count from 0 here. `x` may be one past the last column: the line is full, and the
next sign goes to the next line.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from engine.terminal.cells import Cells, is_shown, width_of
from engine.terminal.modes import Modes
from engine.terminal.pens import PLAIN, Pen

HISTORY = 2_000
"""So many lines that have left the screen at its top are kept."""
MOST_ROWS, MOST_COLUMNS = 500, 1_000
_TAB = 8
_GRAPHICS = str.maketrans("_`abcdefghijklmnopqrstuvwxyz{|}~", " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")


@dataclass
class Cursor:
    """Hold the place where the next sign goes, and how it is drawn.

    Attributes:
        graphics: For both sets of signs, whether it is the one of lines and corners.
        shift: The set that is in use.
    """

    x: int = 0
    y: int = 0
    pen: Pen = PLAIN
    graphics: tuple[bool, bool] = (False, False)
    shift: int = 0
    is_origin_relative: bool = False


@dataclass
class _Kept:
    """Hold the screen that an alternate one lies over."""

    lines: list[Cells]
    saved: Cursor = field(default_factory=Cursor)


class Grid:
    """Everything that is on the screen of a terminal."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = _bounded(rows, columns)
        self.history: deque[Cells] = deque(maxlen=HISTORY)
        self.scrolled = 0
        """The number of lines that have ever left the screen at its top."""
        self.reset()

    def reset(self) -> None:
        """Begin anew; the lines that have left the screen stay."""
        self.modes = Modes()
        self.cursor = Cursor()
        self.lines = [Cells(self.columns) for _ in range(self.rows)]
        self._saved = Cursor()
        self._under: _Kept | None = None
        self._last = " "
        self.set_margins()
        self.tabs = set(range(0, MOST_COLUMNS, _TAB))

    @property
    def is_alternate(self) -> bool:
        """Return whether a program has taken the whole screen for itself."""
        return self._under is not None

    @property
    def below(self) -> list[Cells] | None:
        """Return the lines below an alternate screen."""
        return self._under.lines if self._under else None

    @property
    def at(self) -> tuple[int, int]:
        """Return the row and the column of the cursor."""
        return self.cursor.y, min(self.cursor.x, self.columns - 1)

    # Drawing.

    def put(self, text: str) -> None:
        """Draw signs; a full line goes on in the next one where that is wanted."""
        cursor = self.cursor
        if cursor.graphics[cursor.shift]:
            text = text.translate(_GRAPHICS)
        if text.isascii():
            self._put_narrow(text)
        else:
            for char in text:
                self._put_char(char)
        self._last = text[-1]

    def repeat(self, count: int) -> None:
        """Draw the last sign again."""
        if is_shown(self._last):
            self.put(self._last * min(count, self.columns * self.rows))

    def _put_narrow(self, text: str) -> None:
        cursor, at, end = self.cursor, 0, len(text)
        while at < end:
            if cursor.x >= self.columns:
                self._make_room()
            room = self.columns - cursor.x
            piece = text if end - at <= room and not at else text[at : at + room]
            at += room
            if at < end and not self.modes.wraps:  # all that follows is drawn over the last cell
                piece, at = piece[:-1] + text[-1], end
            self._draw(piece)

    def _put_char(self, char: str) -> None:
        if not is_shown(char):
            return
        cursor, cells = self.cursor, width_of(char)
        if cells == 0:
            if cursor.x:
                self.lines[cursor.y].join(cursor.x - 1, char)
            return
        self._make_room(cells)
        self._draw((char, "") if cells > 1 else char)

    def _make_room(self, cells: int = 1) -> None:
        """Go to the next line where so many cells are not left on this one."""
        cursor = self.cursor
        if cursor.x + cells <= self.columns:
            return
        if self.modes.wraps:
            cursor.x = 0
            self.index()
        else:
            cursor.x = max(self.columns - cells, 0)

    def _draw(self, signs: str | tuple[str, str]) -> None:
        cursor, line = self.cursor, self.lines[self.cursor.y]
        if len(signs) > self.columns:  # a wide sign on a terminal of one column
            return
        if self.modes.inserts:
            line.insert(cursor.x, len(signs), PLAIN)
        line.put(cursor.x, signs, cursor.pen)
        cursor.x += len(signs)

    # Moving.

    def move_to(self, y: int, x: int) -> None:
        """Put the cursor somewhere, as a program counts."""
        top, bottom = 0, self.rows - 1
        if self.modes.is_origin_relative:
            top, bottom = self.top, self.bottom
        self.cursor.y = min(max(top + y, top), bottom)
        self.cursor.x = min(max(x, 0), self.columns - 1)

    def move(self, down: int, right: int) -> None:
        """Move the cursor; the margins hold it where it was between them."""
        cursor = self.cursor
        x = min(cursor.x, self.columns - 1)
        top = self.top if cursor.y >= self.top else 0
        bottom = self.bottom if cursor.y <= self.bottom else self.rows - 1
        cursor.y = min(max(cursor.y + down, top), bottom)
        cursor.x = min(max(x + right, 0), self.columns - 1)

    def line_feed(self) -> None:
        """Go a line down."""
        if self.modes.breaks_lines:
            self.cursor.x = 0
        self.index()

    def index(self) -> None:
        """Go a line down; at the lower margin the lines scroll."""
        if self.cursor.y == self.bottom:
            self.scroll_up(1)
        elif self.cursor.y < self.rows - 1:
            self.cursor.y += 1

    def reverse_index(self) -> None:
        """Go a line up; at the upper margin the lines scroll."""
        if self.cursor.y == self.top:
            self.scroll_down(1)
        elif self.cursor.y > 0:
            self.cursor.y -= 1

    def tab(self, count: int = 1) -> None:
        """Go to a later tab stop, or to the last column."""
        x = min(self.cursor.x, self.columns - 1)
        stops = sorted(stop for stop in self.tabs if x < stop < self.columns)
        self.cursor.x = stops[count - 1] if count <= len(stops) else self.columns - 1

    def back_tab(self, count: int = 1) -> None:
        """Go to an earlier tab stop, or to the first column."""
        stops = sorted((stop for stop in self.tabs if stop < self.cursor.x), reverse=True)
        self.cursor.x = stops[count - 1] if count <= len(stops) else 0

    def set_tab(self) -> None:
        """Make a tab stop here."""
        self.tabs.add(min(self.cursor.x, self.columns - 1))

    def clear_tab(self, which: int) -> None:
        """Clear the tab stop here, or all of them."""
        if which == 0:
            self.tabs.discard(self.cursor.x)
        elif which == 3:  # noqa: PLR2004 - the number of the sequence
            self.tabs.clear()

    def save(self) -> None:
        """Remember the cursor."""
        self._saved = replace(self.cursor, is_origin_relative=self.modes.is_origin_relative)

    def restore(self) -> None:
        """Put the cursor where it was saved; in origin mode, the margins hold it."""
        self.cursor = replace(self._saved)
        self.modes.is_origin_relative = self._saved.is_origin_relative
        top, bottom = 0, self.rows - 1
        if self.modes.is_origin_relative:
            top, bottom = self.top, self.bottom
        self.cursor.y = min(max(self.cursor.y, top), bottom)
        self.cursor.x = min(self.cursor.x, self.columns)

    # Scrolling, inserting, deleting, erasing.

    def set_margins(self, top: int = 0, bottom: int | None = None) -> None:
        """Say between which lines the screen scrolls; a program that errs changes nothing."""
        last = self.rows - 1 if bottom is None else min(bottom, self.rows - 1)
        if top < last or self.rows == 1:
            self.top, self.bottom = min(top, last), last
            self.move_to(0, 0)

    def scroll_up(self, count: int) -> None:
        """Scroll the lines between the margins up; what leaves the screen is kept."""
        for _ in range(min(count, self.bottom - self.top + 1)):
            gone = self.lines.pop(self.top)
            if self.top == 0 and not self.is_alternate:
                self.history.append(gone)
                self.scrolled += 1
            self.lines.insert(self.bottom, self._blank())

    def scroll_down(self, count: int) -> None:
        """Scroll the lines between the margins down."""
        for _ in range(min(count, self.bottom - self.top + 1)):
            del self.lines[self.bottom]
            self.lines.insert(self.top, self._blank())

    def insert_lines(self, count: int) -> None:
        """Insert blank lines at the cursor, where that is between the margins."""
        y = self.cursor.y
        if self.top <= y <= self.bottom:
            for _ in range(min(count, self.bottom - y + 1)):
                del self.lines[self.bottom]
                self.lines.insert(y, self._blank())
            self.cursor.x = 0

    def delete_lines(self, count: int) -> None:
        """Delete lines at the cursor, where that is between the margins."""
        y = self.cursor.y
        if self.top <= y <= self.bottom:
            for _ in range(min(count, self.bottom - y + 1)):
                del self.lines[y]
                self.lines.insert(self.bottom, self._blank())
            self.cursor.x = 0

    def insert_cells(self, count: int) -> None:
        """Insert blanks at the cursor."""
        y, x = self.at
        self.lines[y].insert(x, min(count, self.columns - x), self._ground())

    def delete_cells(self, count: int) -> None:
        """Delete cells at the cursor."""
        y, x = self.at
        self.lines[y].delete(x, min(count, self.columns - x), self._ground())

    def erase_cells(self, count: int) -> None:
        """Make cells from the cursor on blank."""
        y, x = self.at
        self.lines[y].erase(x, min(x + count, self.columns), self._ground())

    def erase_line(self, which: int) -> None:
        """Erase the line of the cursor: behind it, before it, or all of it."""
        y, x = self.at
        spans = {0: (x, self.columns), 1: (0, x + 1), 2: (0, self.columns)}
        if which in spans:
            self.lines[y].erase(*spans[which], self._ground())

    def erase_screen(self, which: int) -> None:
        """Erase below the cursor, above it, all of it, or what has left the screen."""
        y = self.cursor.y
        spans = {0: range(y + 1, self.rows), 1: range(y), 2: range(self.rows)}
        for number in spans.get(which, ()):
            self.lines[number] = self._blank()
        if which < 2:  # noqa: PLR2004 - the number of the sequence
            self.erase_line(which)
        elif which == 3:  # noqa: PLR2004 - likewise
            self.history.clear()

    def fill(self) -> None:
        """Fill the screen with a letter, to see if it is straight."""
        for line in self.lines:
            line.put(0, "E" * self.columns, PLAIN)
        self.set_margins()

    def _ground(self) -> Pen:
        """Return the pen of what is erased: it keeps the ground."""
        return Pen(ground=self.cursor.pen.ground) if self.cursor.pen.ground is not None else PLAIN

    def _blank(self) -> Cells:
        return Cells(self.columns, self._ground())

    # The whole screen.

    def enter_alternate(self) -> None:
        """Lay an empty screen over this one."""
        if self._under is None:
            self._under = _Kept(self.lines, self._saved)
            self.lines = [self._blank() for _ in range(self.rows)]

    def leave_alternate(self) -> None:
        """Bring back the screen below."""
        if self._under is not None:
            self.lines, self._saved = self._under.lines, self._under.saved
            self._under = None

    def resize(self, rows: int, columns: int) -> None:
        """Take another size: lines are cut or made longer, and leave the screen at its top."""
        rows, columns = _bounded(rows, columns)
        if (rows, columns) == (self.rows, self.columns):
            return
        over = max(self.cursor.y - rows + 1, 0)
        for lines in (self.lines, *([self._under.lines] if self._under else [])):
            is_seen = lines is self.lines
            gone = lines[:over] if is_seen else lines[: max(len(lines) - rows, 0)]
            del lines[: len(gone)]
            if not (is_seen and self.is_alternate):
                self.history.extend(gone)
                self.scrolled += len(gone)
            del lines[rows:]
            for line in lines:
                line.resize(columns)
            lines += [Cells(columns) for _ in range(rows - len(lines))]
        self.rows, self.columns = rows, columns
        cursor = replace(self.cursor, y=min(self.cursor.y - over, rows - 1))
        cursor.x = min(cursor.x, columns - 1)
        self.set_margins()
        self.cursor = cursor
        self._saved.y = min(self._saved.y, rows - 1)


def _bounded(rows: int, columns: int) -> tuple[int, int]:
    return min(max(rows, 1), MOST_ROWS), min(max(columns, 1), MOST_COLUMNS)
