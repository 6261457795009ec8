"""Read the stream of a program as a terminal does, and keep what it draws, asks and tells.

Input leaves this class only as cells, as replies that plait writes, and as signals in clean words.
All that is kept is bounded, whatever comes in.
"""

import codecs
import re
from collections import deque
from collections.abc import Callable

from engine.terminal.grid import Grid
from engine.terminal.pens import numbers, pen_after
from engine.terminal.signals import BELL, TAKES_PASTE, Signal, signal_of

_LONGEST_TEXT, _LONGEST_SEQUENCE = 8_192, 512
_MOST_SIGNALS = 256
_MOST_REPLIES = 4_096
_FLOOD = 1 << 16
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<params>[0-?\x00-\x17\x19\x1c-\x1f]*)(?P<middle>[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<command>[^\x07\x18\x1a\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x18\x1a\x1b]*\x1b\\"
    r"|\x1b[\]PX^_][^\x18\x1a\x1b]*(?:[\x18\x1a]|(?=\x1b[^\\]))"
    r"|\x1b(?P<escape>[ -/]*[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
_HALF = re.compile(
    r"\x1b(?:\[[0-?\x00-\x17\x19\x1c-\x1f]*[ -/]*|(?P<text>[\]PX^_])[^\x18\x1a\x1b]*\x1b?|[ -/]*)\Z"
)
_INSIDE = re.compile(r"[\x00-\x1f]")
_NOT_PLAIN = re.compile(rb"\x1b(?!\[[0-9;:]*m)|[\x00-\x06\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_PENS = re.compile(rb"\x1b\[([0-9;:]*)m")
_CURSOR_SAVED, _BOTH = 1048, 1049
_ALTERNATES = {47, 1047, _BOTH}


class Terminal:
    """A terminal without a screen of its own: what it shows is in its grid.

    Attributes:
        title: The last title that the program gave itself.
        changes: Grows with everything that is fed; whoever draws compares it.
    """

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self.grid = Grid(rows, columns)
        self.title = ""
        self.changes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._skips = ""
        self._replies = bytearray()
        self._signals: deque[Signal] = deque(maxlen=_MOST_SIGNALS)

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        self.changes += 1
        if len(data) >= _FLOOD:
            data = self._without_flood(data)
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        if self._skips:
            text = self._skip(text)
        self._read(text)

    def resize(self, rows: int, columns: int) -> None:
        """Take another size."""
        self.changes += 1
        self.grid.resize(rows, columns)

    def take_replies(self) -> bytes:
        """Return what the terminal answers to questions of the program, once."""
        replies = bytes(self._replies)
        self._replies.clear()
        return replies

    def take_signals(self) -> tuple[Signal, ...]:
        """Return the signals of the program, each once."""
        signals = tuple(self._signals)
        self._signals.clear()
        return signals

    # Reading.

    def _read(self, text: str) -> None:
        at, end = 0, len(text)
        while at < end:
            found = _TOKEN.match(text, at)
            if found is not None:
                self._heed(found)
                at = found.end()
            elif half := _HALF.match(text, at):
                self._keep(text[at:], is_text=half["text"] is not None)
                return
            else:  # an escape that begins nothing
                at += 1

    def _heed(self, found: re.Match[str]) -> None:
        kind = found.lastgroup
        if kind == "text":
            self.grid.put(found[0])
        elif kind == "final":
            self._sequence(found["params"], found["middle"], found["final"])
        elif kind == "control":
            _CONTROLS.get(found[0], _nothing)(self)
        elif kind == "escape":
            _ESCAPES.get(found["escape"], _nothing)(self)
        elif kind == "command":
            self._command(found["command"])

    def _keep(self, rest: str, *, is_text: bool) -> None:
        """Keep half a sequence until its other half comes; of one without end, nothing."""
        longest = _LONGEST_TEXT if is_text else _LONGEST_SEQUENCE
        if len(rest) <= longest:
            self._rest = rest
        elif is_text:
            self._skips = rest[1]
            self._rest = "\x1b" if rest.endswith("\x1b") else ""

    def _skip(self, text: str) -> str:
        """Return what stands behind the end of a text that is too long to be kept."""
        ends = "\x1b\x18\x1a\x07" if self._skips == "]" else "\x1b\x18\x1a"
        found = re.search(f"[{ends}]", text)
        if found is None:
            return ""
        if found[0] == "\x1b":
            if found.end() == len(text):
                self._rest = "\x1b"
                return ""
            is_end = text[found.end()] == "\\"
            self._skips = ""
            return text[found.end() + 1 if is_end else found.start() :]
        self._skips = ""
        return text[found.end() :]

    def _without_flood(self, data: bytes) -> bytes:
        """Return only the end of a flood, where nothing of its beginning could still be seen.

        So many plain lines follow that all of it has left the screen, and the history too.
        """
        grid = self.grid
        keeps = grid.rows + (grid.history.maxlen or 0)
        is_whole = (grid.top, grid.bottom) == (0, grid.rows - 1)
        if self._rest or self._skips or not is_whole or data.count(b"\r\n") <= keeps:
            return data
        cut = len(data)
        for _ in range(keeps + 1):
            cut = data.rfind(b"\r\n", 0, cut)
        head = data[: cut + 2]
        if _NOT_PLAIN.search(head):
            return data
        pens = _PENS.findall(head)
        begin = next((n for n in range(len(pens) - 1, -1, -1) if pens[n] in {b"", b"0"}), 0)
        for params in pens[begin:]:
            grid.cursor.pen = pen_after(grid.cursor.pen, params.decode())
        if b"\x07" in head:
            self._signals.append(BELL)
        self._decoder.reset()
        grid.cursor.x = 0
        grid.scrolled += head.count(b"\n")
        return data[cut + 2 :]

    # Doing.

    def reply(self, text: str) -> None:
        """Answer the program."""
        if len(self._replies) < _MOST_REPLIES:
            self._replies += text.encode()

    def bell(self) -> None:
        """Tell of a bell; many of them are one."""
        if BELL not in self._signals:
            self._signals.append(BELL)

    def _command(self, body: str) -> None:
        signal = signal_of(body)
        if signal is None:
            return
        if signal.kind == "title":
            self.title = signal.text
        self._signals.append(signal)

    def _sequence(self, params: str, middle: str, final: str) -> None:
        if _INSIDE.search(params):  # controls count also inside a sequence
            for control in _INSIDE.findall(params):
                _CONTROLS.get(control, _nothing)(self)
            params = _INSIDE.sub("", params)
        if final == "m" and not middle and params[:1] not in {"?", ">", "<", "="}:
            self.grid.cursor.pen = pen_after(self.grid.cursor.pen, params)
            return
        mark = params[:1] if params[:1] in {"?", ">", "<", "="} else ""
        act = _SEQUENCES.get(mark + middle + final)
        if act is not None:
            act(self, numbers(params[len(mark) :]))

    def switch(self, wanted: list[int], *, on: bool, is_private: bool) -> None:
        """Switch modes, and what hangs on them."""
        grid = self.grid
        for number in wanted:
            grid.modes.switch(number, on=on, is_private=is_private)
            if not is_private:
                continue
            if on and grid.modes.takes_paste and number == 2004:  # noqa: PLR2004 - the mode's number
                self._signals.append(TAKES_PASTE)
            if number == 6:  # noqa: PLR2004 - likewise
                grid.move_to(0, 0)
            if number in _ALTERNATES or number == _CURSOR_SAVED:
                self._alternate(number, on=on)

    def _alternate(self, number: int, *, on: bool) -> None:
        grid = self.grid
        if on and number in {_CURSOR_SAVED, _BOTH}:
            grid.save()
        if number in _ALTERNATES:
            grid.enter_alternate() if on else grid.leave_alternate()
        if not on and number in {_CURSOR_SAVED, _BOTH}:
            grid.restore()

    def soft_reset(self) -> None:
        """Bring modes, margins and pen back, and leave the screen as it is."""
        grid = self.grid
        y, x = grid.at
        grid.set_margins()
        grid.modes.is_origin_relative = grid.modes.inserts = False
        grid.modes.has_application_cursor = False
        grid.modes.wraps = grid.modes.shows_cursor = True
        grid.cursor = type(grid.cursor)(x=x, y=y)

    def designate(self, slot: int, *, has_lines: bool) -> None:
        """Say which set of signs a slot holds."""
        cursor = self.grid.cursor
        first, second = cursor.graphics
        cursor.graphics = (has_lines, second) if slot == 0 else (first, has_lines)

    def shift(self, slot: int) -> None:
        """Use the signs of a slot."""
        self.grid.cursor.shift = slot

    def report(self, what: int) -> None:
        """Answer the question if all is well, or where the cursor is."""
        if what == 5:  # noqa: PLR2004 - the number of the question
            self.reply("\x1b[0n")
        elif what == 6:  # noqa: PLR2004 - likewise
            y, x = self.grid.at
            top = self.grid.top if self.grid.modes.is_origin_relative else 0
            self.reply(f"\x1b[{y - top + 1};{x + 1}R")

    def report_size(self, what: int) -> None:
        """Answer the question for the size in signs."""
        if what == 18:  # noqa: PLR2004 - the number of the question
            self.reply(f"\x1b[8;{self.grid.rows};{self.grid.columns}t")


def _nothing(_: Terminal) -> None:
    """Pass over what is not known."""


def _carriage_return(terminal: Terminal) -> None:
    terminal.grid.cursor.x = 0


def _feed(terminal: Terminal) -> None:
    terminal.grid.line_feed()


def _next_line(terminal: Terminal) -> None:
    terminal.grid.cursor.x = 0
    terminal.grid.index()


_CONTROLS: dict[str, Callable[[Terminal], object]] = {
    "\x07": Terminal.bell,
    "\x08": lambda t: t.grid.move(0, -1),
    "\x09": lambda t: t.grid.tab(),
    "\x0a": _feed,
    "\x0b": _feed,
    "\x0c": _feed,
    "\x0d": _carriage_return,
    "\x0e": lambda t: t.shift(1),
    "\x0f": lambda t: t.shift(0),
}
_ESCAPES: dict[str, Callable[[Terminal], object]] = {
    "7": lambda t: t.grid.save(),
    "8": lambda t: t.grid.restore(),
    "D": lambda t: t.grid.index(),
    "E": _next_line,
    "H": lambda t: t.grid.set_tab(),
    "M": lambda t: t.grid.reverse_index(),
    "c": lambda t: t.grid.reset(),
    "#8": lambda t: t.grid.fill(),
    "(0": lambda t: t.designate(0, has_lines=True),
    "(B": lambda t: t.designate(0, has_lines=False),
    ")0": lambda t: t.designate(1, has_lines=True),
    ")B": lambda t: t.designate(1, has_lines=False),
}


def _some(asked: list[int], at: int = 0) -> int:
    """Return a number of a sequence that is at least 1."""
    return max(asked[at], 1) if at < len(asked) else 1


def _margins(terminal: Terminal, asked: list[int]) -> None:
    last = asked[1] if len(asked) > 1 and asked[1] else terminal.grid.rows
    terminal.grid.set_margins(_some(asked) - 1, last - 1)


def _to_row(terminal: Terminal, asked: list[int]) -> None:
    terminal.grid.move_to(_some(asked) - 1, terminal.grid.at[1])


def _to_column(terminal: Terminal, asked: list[int]) -> None:
    terminal.grid.cursor.x = min(_some(asked), terminal.grid.columns) - 1


def _lines_down(terminal: Terminal, asked: list[int]) -> None:
    terminal.grid.move(_some(asked), 0)
    terminal.grid.cursor.x = 0


def _lines_up(terminal: Terminal, asked: list[int]) -> None:
    terminal.grid.move(-_some(asked), 0)
    terminal.grid.cursor.x = 0


_SEQUENCES: dict[str, Callable[[Terminal, list[int]], object]] = {
    "@": lambda t, n: t.grid.insert_cells(_some(n)),
    "A": lambda t, n: t.grid.move(-_some(n), 0),
    "B": lambda t, n: t.grid.move(_some(n), 0),
    "C": lambda t, n: t.grid.move(0, _some(n)),
    "D": lambda t, n: t.grid.move(0, -_some(n)),
    "E": _lines_down,
    "F": _lines_up,
    "G": _to_column,
    "H": lambda t, n: t.grid.move_to(_some(n) - 1, _some(n, 1) - 1),
    "I": lambda t, n: t.grid.tab(_some(n)),
    "J": lambda t, n: t.grid.erase_screen(n[0]),
    "K": lambda t, n: t.grid.erase_line(n[0]),
    "L": lambda t, n: t.grid.insert_lines(_some(n)),
    "M": lambda t, n: t.grid.delete_lines(_some(n)),
    "P": lambda t, n: t.grid.delete_cells(_some(n)),
    "S": lambda t, n: t.grid.scroll_up(_some(n)),
    "T": lambda t, n: t.grid.scroll_down(_some(n)),
    "X": lambda t, n: t.grid.erase_cells(_some(n)),
    "Z": lambda t, n: t.grid.back_tab(_some(n)),
    "`": _to_column,
    "a": lambda t, n: t.grid.move(0, _some(n)),
    "b": lambda t, n: t.grid.repeat(_some(n)),
    "c": lambda t, n: None if n[0] else t.reply("\x1b[?62;22c"),
    "d": _to_row,
    "e": lambda t, n: t.grid.move(_some(n), 0),
    "f": lambda t, n: t.grid.move_to(_some(n) - 1, _some(n, 1) - 1),
    "g": lambda t, n: t.grid.clear_tab(n[0]),
    "h": lambda t, n: t.switch(n, on=True, is_private=False),
    "l": lambda t, n: t.switch(n, on=False, is_private=False),
    "n": lambda t, n: t.report(n[0]),
    "r": _margins,
    "s": lambda t, _: t.grid.save(),
    "t": lambda t, n: t.report_size(n[0]),
    "u": lambda t, _: t.grid.restore(),
    "?h": lambda t, n: t.switch(n, on=True, is_private=True),
    "?l": lambda t, n: t.switch(n, on=False, is_private=True),
    "?n": lambda t, n: t.report(n[0]),
    "?$p": lambda t, n: t.reply(f"\x1b[?{n[0]};0$y"),
    ">c": lambda t, n: None if n[0] else t.reply("\x1b[>1;10;0c"),
    "!p": lambda t, _: t.soft_reset(),
}
