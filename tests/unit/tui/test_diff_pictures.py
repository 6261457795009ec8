"""A picture of a change is drawn on a terminal that can, and the screen is whole afterwards."""

import base64
import re
import struct
import time
from collections.abc import Iterator

import pytest

from engine.messages.diffs import FileSides
from engine.messages.pictures import picture_of
from engine.terminal.terminal import Terminal as Screen
from tests.support.console_pty import PtyConsole, process_in_pty
from tests.support.pictures import png
from tui.screens.diff.graphics import Terminal, sixel_pixels
from tui.screens.diff.picturing import page
from tui.screens.diff.png import Raster, png_pixels

_SIZE = (100, 30)
_CONSOLE = """
from dataclasses import replace
from engine.messages.diffs import ChangeDiff, FileDiff, FileKind, FileSides
from tests.support import world
from tests.support.pictures import png
from tui.app import Options, PlaitApp
from tui.screens.diff import graphics
graphics._ANSWER_S = 60  # the test is the terminal, and others may compute beside it
file = FileDiff(path="logo.png", kind=FileKind.BINARY, is_binary=True, is_picture=True,
                note="PNG picture, of 4 by 2 pixels")
port = world.FakePort(
    world.csvlite(),
    diffs={"implement/worker_1": ChangeDiff(against="main", files=(file,))},
    sides_of={"logo.png": FileSides(path="logo.png", old=png(2, 2), new=png(4, 2))},
)
app = PlaitApp(port, options=Options(can_stay_alive=False))
app.session.can_animate = False
app.session.worker = "implement/worker_1"
app.run()
"""


def test_the_head_of_each_kind_says_its_size():
    gif = b"GIF89a" + struct.pack("<HH", 70, 50)
    jpeg = b"\xff\xd8\xff\xe1\x00\x08\xff\xc0??\x01\x02\xff\xff\xc2\x00\x11\x08" + struct.pack(
        ">HH", 333, 640
    )
    lossy = b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 333)
    lossless = b"RIFF....WEBPVP8L....\x2f" + (69 | 49 << 14).to_bytes(4, "little")
    wide = (
        b"RIFF....WEBPVP8X....\0\0\0\0" + (639).to_bytes(3, "little") + (332).to_bytes(3, "little")
    )
    sizes = [picture_of(data) for data in (png(7, 5), gif, jpeg, lossy, lossless, wide)]
    assert sizes == [
        ("PNG", 7, 5),
        ("GIF", 70, 50),
        ("JPEG", 640, 333),
        ("WebP", 640, 333),
        ("WebP", 70, 50),
        ("WebP", 640, 333),
    ]


@pytest.mark.parametrize("data", [b"", b"text", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a"])
def test_what_is_no_whole_head_is_no_picture(data: bytes):
    assert picture_of(data) is None
    for cut in range(len(png(3, 3))):
        assert picture_of(png(3, 3)[:cut]) in {None, ("PNG", 3, 3)}


@pytest.mark.parametrize("kind", [0, 2, 3, 4, 6])
@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_every_filter_gives_the_same_pixels(kind: int, depth: int):
    if (depth < 8 and kind not in {0, 3}) or (depth > 8 and kind == 3):
        return
    plain = png_pixels(png(9, 7, kind=kind, depth=depth))
    assert isinstance(plain, Raster)
    assert len(plain.pixels) == 9 * 7 * 4
    for filters in (b"\1", b"\2", b"\3", b"\4", b"\0\1\2\3\4"):
        assert png_pixels(png(9, 7, kind=kind, depth=depth, filters=filters)) == plain


def test_pixels_are_what_was_stored():
    found = png_pixels(png(2, 1))
    assert isinstance(found, Raster)
    assert found.pixels == bytes([0, 7, 14, 255, 21, 28, 35, 255])


def test_what_cannot_be_decoded_says_why():
    whole = png(9, 7)
    assert png_pixels(whole[:60]) == "it is damaged"
    assert png_pixels(whole[:45] + b"\0" * 9 + whole[54:]) == "it is damaged"
    many = whole[:16] + struct.pack(">II", 60_000, 60_000) + whole[24:]
    assert "million pixels" in str(png_pixels(many))
    assert png_pixels(whole[:28] + b"\1" + whole[29:]) == "it is interlaced"


def _unsixel(data: bytes) -> dict[tuple[int, int], tuple[int, ...]]:
    """Read sixels back: each pixel that is drawn, and its color in percent."""
    colors: dict[int, tuple[int, ...]] = {}
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    x = y = color = 0
    begin = re.match(rb'\x1bP0;1;0q"1;1;\d+;\d+', data)
    assert begin
    token = rb"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|(\$)|(-)|([?-~])"
    for one in re.finditer(token, data[begin.end() : -2]):
        if one[1]:
            colors[int(one[1])] = tuple(int(one[n]) for n in (2, 3, 4))
        elif one[5]:
            color = int(one[5])
        elif one[8]:
            x = 0
        elif one[9]:
            x, y = 0, y + 6
        else:
            bits, many = (one[7] or one[10])[0] - 63, int(one[6] or 1)
            spots = [(x + k, y + n) for k in range(many) for n in range(6) if bits >> n & 1]
            found.update(dict.fromkeys(spots, colors[color]))
            x += many
    return found


def test_sixels_draw_each_pixel_once_in_about_its_color_and_leave_the_clear_ones():
    width, height = 40, 20
    pixels = b"".join(
        bytes([x * 6, y * 12, 255 - x * 6, 0 if x == y else 255])
        for y in range(height)
        for x in range(width)
    )
    drawn = _unsixel(sixel_pixels(Raster(width, height, pixels), width, height))
    assert len(drawn) == width * height - height
    assert (3, 3) not in drawn
    for (x, y), color in drawn.items():
        meant = [v * 100 // 255 for v in pixels[(y * width + x) * 4 :][:3]]
        assert max(abs(one - two) for one, two in zip(color, meant, strict=True)) <= 21
    larger = _unsixel(sixel_pixels(Raster(width, height, pixels), width * 2, height * 2))
    assert max(larger) == (width * 2 - 1, height * 2 - 1)


def test_both_sides_are_drawn_in_one_scale_and_one_alone_has_all_the_room():
    kitty = Terminal(has_kitty=True, has_sixel=False, cells=(100, 30), cell=(10, 20))
    both = page(FileSides(path="a.png", old=png(20, 40), new=png(400, 1000)), kitty)
    assert [int(n) for n in re.findall(rb",c=(\d+),r", both)] == [1, 21]
    assert [int(n) for n in re.findall(rb",r=(\d+),m", both)] == [2, 26]
    assert "before: PNG, 20 \u00d7 40 pixels, at 52%".encode() in both
    one = page(FileSides(path="a.png", new=png(16, 16)), kitty)
    assert "after: PNG, 16 \u00d7 16 pixels, 8 times as large".encode() in one
    assert b"before" not in one


def test_a_name_and_a_kind_that_cannot_be_drawn_are_only_words():
    kitty = Terminal(has_kitty=False, has_sixel=True, cells=(100, 30), cell=(10, 20))
    text = page(FileSides(path="a\x1b]0;x\x07\nb.png", old=b"no", new=png(3, 3)[:60]), kitty)
    assert b"\x1b]" not in text
    assert b"\n" not in text
    assert b"before: no picture" in text
    assert b"it cannot be drawn: it is damaged" in text


def test_a_picture_of_very_many_pixels_is_handed_to_no_terminal():
    huge = png(1, 1).replace(struct.pack(">II", 1, 1), struct.pack(">II", 20_000, 20_000))
    for has_kitty in (True, False):
        terminal = Terminal(has_kitty=has_kitty, has_sixel=True, cells=(100, 30), cell=(10, 20))
        said = page(FileSides(path="a.png", new=huge), terminal)
        assert b"it has more than 50 million pixels" in said
        assert b"\x1b_G" not in said


def test_no_more_pixels_are_drawn_as_sixels_than_take_some_seconds():
    wide = Terminal(has_kitty=False, has_sixel=True, cells=(400, 100), cell=(10, 20))
    drawn = page(FileSides(path="a.png", new=png(1000, 500)), wide)
    (width, height) = map(int, re.search(rb'"1;1;(\d+);(\d+)', drawn).groups())
    assert 500_000 <= width * height <= 1_010_000


# A whole console, on a terminal that answers as real ones do.

_KITTY, _XTERM, _PLAIN = (
    b"\x1b_Gi=31;OK\x1b\\\x1b[6;20;10t\x1b[?62;c",
    b"\x1b[6;20;10t\x1b[?62;4;22c",
    b"\x1b[?62;22c",
)
_ASKED, _ENTERED, _LEFT = b"a=q,t=d", b"\x1b[2J\x1b[H", b"\x1b[?25h\x1b[?1049l"


@pytest.fixture
def console() -> Iterator[PtyConsole]:
    """A console whose cursor is on a picture."""
    with process_in_pty(_CONSOLE, size=_SIZE) as opened:
        opened.wait_written(b"worker_1")
        opened.press(b"3")
        opened.wait_written(b"PNG picture, of 4")
        opened.wait_written(b"CLASH")  # the last thing of the screen that is drawn, with its place
        while not any("worker_3 in src/csvlite/io.py" in row for row in _shown(opened.written)):
            opened.read_until(b"\0 no console writes this", 0.1)
        yield opened


def _shown(data: bytes) -> list[str]:
    screen = Screen(_SIZE[1], _SIZE[0])
    screen.feed(data)
    return ["".join(line.chars).rstrip() for line in screen.grid.lines]


def _opened(console: PtyConsole, answer: bytes) -> int:
    """Ask for the picture, and answer as a terminal does; returns where that began."""
    start = len(console.written)
    console.press(b"\r")
    console.wait_written_after(start, _ASKED)
    console.press(answer)
    return start


@pytest.mark.parametrize(("answer", "is_kitty"), [(_KITTY, True), (_XTERM, False)])
def test_a_picture_is_drawn_and_the_screen_is_as_before_when_it_is_closed(
    console: PtyConsole, answer: bytes, *, is_kitty: bool
):
    before = _shown(console.written)
    start = _opened(console, answer)
    console.wait_written_after(start, b"any key closes it")
    console.wait_written_after(start, b"m=0" if is_kitty else b"-\x1b\\")
    drawn = console.written[start:]
    if is_kitty:
        files = re.findall(rb"\x1b_Ga=T,q=2,C=1,f=100,[^;]*m=0;([^\x1b]*)\x1b", drawn)
        assert [base64.b64decode(one) for one in files] == [png(2, 2), png(4, 2)]
    else:
        assert drawn.count(b"\x1bP0;1;0q") >= 1
    console.press(b"x")
    console.wait_written_after(start, _LEFT)
    left = start + console.written[start:].index(_LEFT)
    assert (b"\x1b_Ga=d,d=A" in console.written[start:left]) is is_kitty
    console.wait_written_after(left, b"\x1b[?1049h")
    again = left + console.written[left:].rindex(b"\x1b[?1049h")
    until = time.monotonic() + 30
    while _shown(console.written[again:]) != before and time.monotonic() < until:
        console.read_until(b"\0 no console writes this", 0.1)
    assert _shown(console.written[again:]) == before  # from nothing: all of it was drawn anew


def test_a_terminal_that_draws_none_is_asked_once_and_says_so(console: PtyConsole):
    start = _opened(console, _PLAIN)
    console.wait_written_after(start, b"draws no pictures")
    assert _ENTERED not in console.written[start:]
    again = len(console.written)
    console.press(b"j\r")
    console.press(b"\x0c")  # draws the screen again
    console.wait_written_after(again, b"draws no pictures")
    assert _ASKED not in console.written[again:]
