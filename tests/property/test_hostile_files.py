"""No text of an agent and no file raises out of the functions that workers of the console call."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.messages.diffs import FileSides
from engine.messages.logs import LogKind, LogPiece
from engine.messages.pictures import picture_of
from tui.kit.starting import manifest_in
from tui.screens.diff.answers import answers_in
from tui.screens.diff.fates import Versions, fates_of, rows_of
from tui.screens.diff.graphics import Terminal
from tui.screens.diff.picturing import page
from tui.screens.diff.png import png_pixels
from tui.screens.diff.units import units_of
from tui.words.clean import clean_asked, clean_block, clean_code_block, clean_line
from tui.words.cutting import wrap, wrap_whole

_NESTED: dict[str, tuple[str, ...]] = {
    "a.py": ("if x:\n    y\n|elif x:\n    y\n|", "x = |(|", "x = |-|1", "x = a|.a|", "|lambda: |1"),
    "a.java": ("|class A { |", "class A { int x = |(|1", "class A { void f() { |if (x) |; } }"),
    "a.c": ("int f() { |{ |", "int x = |(|1;", "int |*|x;", "|#if X\n|int f();"),
    "a.sh": ("a | && a|", "|$( |", "f() { |( |"),
    "a.js": ("|a => |1", "|function f() { |", "x = |[|", "|`${|"),
    "a.ts": ("|namespace A { |", "type A = |A<|"),
    "a.go": ("package a\nfunc f() { |{ |", "package a\nvar x = |func() { |"),
    "a.rs": ("|mod a { |", "fn f() { |{ |", "type A = |Box<|"),
    "a.json": ("|[|", '|{"a": |'),
    "a.yaml": ("|- |a", "|{a: |"),
    "a.toml": ("a = |[|", "a|.a| = 1"),
}
_CLOSES = {"(": ")", "{": "}", "[": "]", "<": ">"}
_DEPTHS = (1, 90, 600, 2000)


def _text(shape: str, depth: int) -> str:
    """Return a text that nests so deep, and is closed where it can be."""
    head, again, tail = shape.split("|")
    opened = "".join(re.findall(r"[({\[<]", again)) * depth
    return head + again * depth + tail + "".join(_CLOSES[sign] for sign in reversed(opened))


@pytest.mark.parametrize("depth", _DEPTHS)
@pytest.mark.parametrize(
    ("path", "shape"), [(path, shape) for path, shapes in _NESTED.items() for shape in shapes]
)
def test_no_depth_of_a_file_raises(path: str, shape: str, depth: int):
    text = _text(shape, depth)
    old, new = (units_of(path, one.encode()) for one in (text, text.replace(" ", "  ")))
    fates = fates_of([Versions(path, path, old or (), new or ())])
    assert rows_of(fates[0]) is not None


_PIECES = st.sampled_from(
    [
        *("[", "]", "9" * 5000, "\u0663", "~x", "~", "/", ":", "\x1b]0;", "\x07", "\r", "\0"),
        *("\ud800", "\u202e", "\ufeff", "class A:\n", "def f():\n", "  ", "\n", ".yaml", "# x"),
        *("é", "日"),
    ]
)
_HOSTILE = st.lists(st.one_of(_PIECES, st.text(max_size=9)), max_size=12).map("".join)
_TAKES: list[Callable[[str], object]] = [
    lambda text: answers_in([LogPiece(at=1.0, kind=LogKind.SAYS, text=text)]),
    lambda text: manifest_in(text, Path()),
    clean_asked,
    clean_block,
    clean_code_block,
    clean_line,
    lambda text: wrap(clean_block(text), 9),
    lambda text: wrap_whole(clean_line(text), 9),
    *(
        lambda text, path=path: units_of(path, text.encode(errors="surrogateescape"))
        for path in ("a.py", "a.js", "a.sh")
    ),
]


@given(_HOSTILE)
@example("[" + "9" * 5000 + "] x")
def test_no_text_raises(text: str):
    text = text.encode(errors="surrogatepass").decode(errors="surrogateescape")
    for take in _TAKES:
        take(text)


_HEADS = st.sampled_from(
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\2\x08\6\0\0\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\0\0\x40\2\x08\3\0\0\0",
        b"GIF89a\2\0\2\0",
        b"\xff\xd8\xff\xc0\0\x11\x08\0\2\0\2",
        b"RIFF\0\0\0\0WEBPVP8 ",
        b"",
    ]
)


@given(_HEADS, st.binary(max_size=60))
def test_no_picture_raises(head: bytes, rest: bytes):
    data = head + rest
    picture_of(data)
    png_pixels(data)
    for has_kitty in (False, True):
        terminal = Terminal(has_kitty=has_kitty, has_sixel=True, cells=(80, 24), cell=(8, 16))
        page(FileSides(path="a.png", old=None, new=data), terminal)
