"""Laws of the terminal in memory: another emulator as its oracle, hostile bytes, odd cuts."""

import pyte
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.terminal.cells import is_shown, width_of
from engine.terminal.pens import PLAIN, Pen
from engine.terminal.redraw import redrawn, screen_text
from engine.terminal.terminal import Terminal

ROWS, COLUMNS = 6, 12
_SMALL = st.integers(0, 14)
_WORDS = st.text("abcXYZ ", min_size=1, max_size=16)
_COLORS = st.sampled_from(
    ["0", "31", "42", "39", "49", "38;5;200", "48;2;1;2;3", "1;33", "7", "27"]
)


def _counted(finals: str) -> st.SearchStrategy[str]:
    return st.builds(lambda n, final: f"\x1b[{n}{final}", _SMALL, st.sampled_from(finals))


_STREAM = st.lists(
    st.one_of(
        _WORDS,
        st.sampled_from(["\r", "\n", "\r\n", "\b", "\t", "\x1b7", "\x1b8", "\x1bM", "\x1bD"]),
        _counted("ABCDEFGdLMPX@"),
        st.builds(lambda y, x: f"\x1b[{y};{x}H", _SMALL, _SMALL),
        st.builds(lambda n: f"\x1b[{n}J", st.integers(0, 2)),
        st.builds(lambda n: f"\x1b[{n}K", st.integers(0, 2)),
        st.sampled_from(["\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l"]),
        st.builds(lambda colors: f"\x1b[{colors}m", _COLORS),
    ),
    max_size=40,
)


def _fed(data: bytes, rows: int = ROWS, columns: int = COLUMNS) -> Terminal:
    terminal = Terminal(rows, columns)
    terminal.feed(data)
    return terminal


def _rows(terminal: Terminal) -> list[str]:
    return ["".join(line.chars) for line in terminal.grid.lines]


@settings(max_examples=200)
@given(_STREAM)
def test_a_stream_draws_what_another_emulator_draws(pieces: list[str]) -> None:
    oracle, terminal = pyte.Screen(COLUMNS, ROWS), Terminal(ROWS, COLUMNS)
    reader = pyte.Stream(oracle)
    for piece in pieces:
        reader.feed(piece)
        terminal.feed(piece.encode())
        if terminal.grid.cursor.x == COLUMNS:  # the other one keeps a full line over moves
            reader.feed("\r")
            terminal.feed(b"\r")
        assert terminal.grid.at == (oracle.cursor.y, oracle.cursor.x), piece
        assert _rows(terminal) == oracle.display, piece


_BETWEEN = st.lists(
    st.one_of(
        st.text("abc", min_size=1, max_size=COLUMNS - 1).map(lambda text: text + "\r"),
        st.sampled_from(["\n", "\x1bM", "\x1bD"]),
        _counted("LM"),
        st.builds(lambda y: f"\x1b[{y};1H", st.integers(2, 4)),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(_BETWEEN)
def test_margins_scroll_as_those_of_another_emulator(pieces: list[str]) -> None:
    oracle, terminal = pyte.Screen(COLUMNS, ROWS), Terminal(ROWS, COLUMNS)
    for piece in ["first\r\n\n\n\n\nlast", "\x1b[2;4r", "\x1b[2;1H", *pieces]:
        pyte.Stream(oracle).feed(piece)
        terminal.feed(piece.encode())
        assert _rows(terminal) == oracle.display, piece


@given(_STREAM, st.lists(st.integers(1, 9), min_size=1))
def test_a_stream_may_be_cut_anywhere(pieces: list[str], cuts: list[int]) -> None:
    data = "".join([*pieces, "中é\x1b]2;a title\x07\x1b[6n"]).encode()
    whole, cut, at = _fed(data), Terminal(ROWS, COLUMNS), 0
    while at < len(data):
        for size in cuts:
            cut.feed(data[at : at + size])
            at += size
    assert redrawn(cut) == redrawn(whole)
    assert cut.take_replies() == whole.take_replies()
    assert cut.take_signals() == whole.take_signals()


_HOSTILE = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.text(max_size=10).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.sampled_from(
            [
                b"\x1b[999999999;99999b",
                b"\x1b[99999999999L",
                b"\x1b[38;2;999;1;1m",
                b"\x1b[;;;;;;;;H",
            ]
        ),
        st.sampled_from(
            [b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b[", b"\x1b\\", b"\x07", b"\x18", b"\x9b"]
        ),
        st.sampled_from(
            ["\u202e", "\u200b", "e\u0301\u0301\u0301\u0301\u0301\u0301", "中", "\u1160"]
        ).map(str.encode),
        st.sampled_from(
            [b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?6h", b"\x1b[3;4r", b"\x1bc", b"\x1b(0"]
        ),
    ),
    max_size=30,
)


@settings(max_examples=150)
@given(_HOSTILE, st.integers(1, 8), st.integers(1, 20))
@example([b"\x1b]52;c;aGFjaw==\x07", b"\x1b[>0q"], 4, 10)
def test_no_byte_comes_out_as_anything_but_cells(
    pieces: list[bytes], rows: int, columns: int
) -> None:
    terminal = Terminal(rows, columns)
    for piece in pieces:
        terminal.feed(piece)
        terminal.resize(columns, rows)
        terminal.resize(rows, columns)
    grid = terminal.grid
    assert len(grid.lines) == rows
    assert 0 <= grid.at[0] < rows
    assert 0 <= grid.at[1] < columns
    for line in (*grid.lines, *grid.history):
        assert len(line.chars) == len(line.pens)
        for x, char in enumerate(line.chars):
            assert all(map(is_shown, char)), line.chars
            is_half = x > 0 and width_of((line.chars[x - 1] or " ")[0]) == 2
            assert (char == "") == is_half, line.chars
    assert len(terminal.take_replies()) < 5_000
    assert all(text.isprintable() for _, text in terminal.take_signals())


@given(_HOSTILE)
@example([b"\x1b[?6h", b"\x1b[?1048h", b"\x1b[3r", b"\x1b[?1048l"])
@example([b"\x1b[?6h", b"\x1b[?1048h", b"\x1b[2r", b"\x1b[?1048l"])
def test_a_terminal_drawn_anew_looks_the_same(pieces: list[bytes]) -> None:
    terminal = _fed(b"".join(pieces))
    again = _fed(redrawn(terminal, most_lines=3))
    assert [line.chars for line in again.grid.lines] == [line.chars for line in terminal.grid.lines]
    assert [line.pens for line in again.grid.lines] == [line.pens for line in terminal.grid.lines]
    assert again.grid.at == terminal.grid.at
    assert again.grid.modes == terminal.grid.modes


def test_a_flood_is_passed_over_and_ends_as_if_all_of_it_had_been_read() -> None:
    lines = [f"\x1b[3{n % 8}mline {n}\r\n".encode() for n in range(20_000)]
    flood = b"".join(lines)
    read, passed = Terminal(), Terminal()
    for line in lines:
        read.feed(line)
    passed.feed(flood)
    assert redrawn(passed, most_lines=5_000) == redrawn(read, most_lines=5_000)
    assert passed.grid.scrolled == read.grid.scrolled


def test_a_text_without_end_is_not_kept() -> None:
    terminal = Terminal()
    for kind in (b"]", b"P", b"_"):
        terminal.feed(b"\x1b" + kind)
        for _ in range(200):
            terminal.feed(b"x" * 1_000)
        assert len(terminal._rest) < 10_000
        terminal.feed(b"\x1b\\")
    terminal.feed(b"seen")
    assert screen_text(terminal) == "seen"


def test_colors_and_weights_are_read() -> None:
    terminal = _fed(
        b"\x1b[1;3;4;38;5;200;48;2;1;2;3mx\x1b[22;23;24;39;49my\x1b[38:2::9:8:7mz\x1b[4:3mw"
    )
    pens = terminal.grid.lines[0].pens
    assert pens[0] == Pen(200, (1, 2, 3), is_bold=True, is_italic=True, is_underlined=True)
    assert pens[1] == PLAIN
    assert pens[2] == Pen((9, 8, 7))
    assert pens[3] == Pen((9, 8, 7), is_underlined=True)
