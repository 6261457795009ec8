"""Nothing that is decided stays hidden in a diff: blanks, tabs, marks, bytes that are no text."""

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.consoles import opened
from tests.support.world import FakePort, csvlite
from tui.ink import Role, Row, row_width, text_of
from tui.screens.diff.pane import DiffPane
from tui.words.clean import LONGEST, clean_code, clean_line, clean_tree, with_signs, with_tabs
from tui.words.figures import MINUS
from tui.words.wording import changed_blanks

_CELLS = 80
_RUNNING = "implement/worker_1"


def _change(*texts: str) -> ChangeDiff:
    lines = tuple(DiffLine(Sign(t[0]), t[1:], at, at) for at, t in enumerate(texts, 1))
    files = (FileDiff(path="a.py", hunks=(Hunk(lines=lines),)),)
    return ChangeDiff(against="main", files=files)


def _rows(*texts: str, shows_blanks: bool = False) -> list[Row]:
    """Return the rows of the lines, as they are on screen."""
    pane = DiffPane(shows_blanks=shows_blanks)
    pane.show(clean_tree(_change(*texts), clean_line))
    return list(pane.rows(_CELLS, 0, pane.measure(_CELLS)))[2:]


def _shown(*texts: str, shows_blanks: bool = False) -> list[str]:
    rows = _rows(*texts, shows_blanks=shows_blanks)
    assert {row_width(row) for row in rows} == {_CELLS}
    return [text_of([row])[12:] for row in rows if text_of([row])]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("\tif x:", "    if x:", [f"{MINUS} →   if x:", "+ ····if x:"]),
        ("    a = 1", "        a = 1", [f"{MINUS}     a = 1", "+     ····a = 1"]),
        ("x  = 2", "x = 2", [f"{MINUS} x ·= 2", "+ x = 2"]),
        ("\tfoo(a, b)", "        bar(a, b)", [f"{MINUS} →   foo(a, b)", "+ ········bar(a, b)"]),
        ("a", "a \t ", [f"{MINUS} a", "+ a·→ ·"]),
        ("a\u00a0b", "a b", [f"{MINUS} a<00A0>b", "+ a b"]),
        ("end", "end\r", [f"{MINUS} end", "+ end␍"]),
        ("\x1b[2J", "\udce9\ue000", [f"{MINUS} ␛[2J", "+ <E9><E000>"]),
    ],
)
def test_lines_that_differ_never_look_alike(old: str, new: str, shown: list[str]):
    assert _shown(f"-{old}", f"+{new}") == shown


def test_blanks_that_changed_stand_on_the_ground_of_changed_words():
    one, two = _rows("-\tif x:", "+    if x:")[:2]
    assert [s.text for s in one if s.ink.ground is Role.REMOVED_WORD] == ["→   "]
    assert [s.text for s in two if s.ink.ground is Role.ADDED_WORD] == ["····"]


def test_blanks_nobody_changed_are_blank_until_they_are_asked_for():
    assert _shown(" \ta  b", "-old", "+new")[0] == "  " + "    a  b"
    assert _shown(" \ta  b", "-old", "+new", shows_blanks=True)[0] == "  " + "→   a··b"


@pytest.mark.parametrize("text", ["", "a", "\t", "a\tb\t\tc  d\t", "abc\td", "日本\tx", "\t \t"])
def test_a_cleaned_line_gives_its_tabs_back_and_is_as_wide_as_with_blanks(text: str):
    line = clean_line(text)
    assert with_tabs(line) == text
    assert len(line) == len(with_signs(line)) == len(text.expandtabs(4))
    for at in range(len(line) + 1):
        if line[at : at + 1] != " ":
            assert with_tabs(line[:at]) + with_tabs(line[at:], at) == text


def test_selectors_are_written_out_but_the_one_that_makes_a_sign_a_picture():
    assert clean_code("x\ufe0fy\U000e0101") == "x<FE0F>y<E0101>"
    assert clean_code("\u26a0\ufe0f careful") == "\u26a0 careful"
    assert clean_code("\u26a0\ufe0f\ufe0f\ufe01") == "\u26a0<FE0F><FE01>"


def test_a_line_without_end_says_how_much_more_there_is():
    for text in ("x" * (LONGEST + 7), "ü" * (LONGEST + 7)):
        assert clean_line(text).endswith("… 7 more characters")
        assert clean_code(text).endswith("… 7 more characters")
    assert clean_line("x" * LONGEST) == "x" * LONGEST


def test_what_differs_in_blanks_alone_is_found_by_where_it_differs():
    assert changed_blanks("a b", "a  b") == (2, 2)
    assert changed_blanks("a  b", "a b") == (2, 3)
    assert changed_blanks("a b", "a c") is None
    assert changed_blanks("a b", "a b") is None


@pytest.mark.anyio
async def test_what_is_copied_has_its_tabs():
    port = FakePort(csvlite(), diffs={_RUNNING: _change("-all: a", "+all:\ta", "+\tmake  \tit")})
    async with opened(port=port) as console:
        console.app.session.worker = _RUNNING
        await console.do("diff")
        await console.shows("+     make")
        await console.do("down", "down", "select", "down", "copy")
        assert console.app.clipboard == "all:\ta\n\tmake  \tit"
