"""Code that a change moved is one row that opens; what changed on the way is shown there."""

from dataclasses import replace

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.consoles import opened
from tests.support.world import FakePort, csvlite
from tui.ink import Role, row_width, text_of
from tui.screens.diff.layout import Part
from tui.screens.diff.pane import DiffPane
from tui.words.comments import Comment
from tui.words.figures import MINUS
from tui.words.shifted import Spot, moves_of

_FUNCTION = (
    "def area(width, height):",
    "    whole = width * height",
    "    if whole < 0:",
    "        raise ValueError(whole)",
    "    log(whole)",
    "    return whole",
)
_RUNNING = "implement/worker_1"


def _hunk(*texts: str, at: int = 1) -> Hunk:
    """A hunk from lines that begin with their sign, numbered from a line on."""
    lines, old, new = [], at, at
    for text in texts:
        sign = Sign(text[0])
        here = (None if sign is Sign.ADDED else old, None if sign is Sign.REMOVED else new)
        lines.append(DiffLine(sign, text[1:], *here))
        old, new = old + (sign is not Sign.ADDED), new + (sign is not Sign.REMOVED)
    return Hunk(lines=tuple(lines))


def _moving(old: tuple[str, ...], new: tuple[str, ...]) -> ChangeDiff:
    """A change that takes lines out of a.py and writes lines into b.py."""
    gone, come = _hunk(*(f"-{line}" for line in old), at=60), _hunk(*(f"+{line}" for line in new))
    files = (FileDiff(path="a.py", hunks=(gone,)), FileDiff(path="b.py", hunks=(come,)))
    return ChangeDiff(against="main", files=files)


def _pane(diff: ChangeDiff) -> DiffPane:
    pane = DiffPane()
    pane.show(diff)
    return pane


def _text(pane: DiffPane, cells: int = 100) -> str:
    return text_of(pane.rows(cells, 0, pane.measure(cells)))


def _to(pane: DiffPane, part: Part, file: int = 0) -> None:
    pane.cursor = next(i for i, p in enumerate(pane.places) if (p.part, p.file) == (part, file))


def test_a_moved_block_is_one_row_on_either_side_and_says_all_of_it():
    text = _text(_pane(_moving(_FUNCTION, ("# here", *_FUNCTION))))
    assert "\u2212» moved to b.py:2, 6 lines, unchanged" in text
    assert "+» moved from a.py:60, 6 lines, unchanged" in text
    assert "def area" not in text
    assert "# here" in text


@pytest.mark.parametrize("cells", [70, 80, 120])
def test_a_long_name_gives_way_to_what_is_said_of_the_block(cells: int):
    new = tuple(f"    {line}" for line in (*_FUNCTION[:4], "    debug(whole)", _FUNCTION[5]))
    diff = _moving(_FUNCTION, new)
    long = replace(diff.files[0], path=f"{'a' * 30}/{'b' * 30}/long_name.py")
    pane = _pane(replace(diff, files=(long, diff.files[1])))
    assert ":60, 6 lines, indented +4, 1 changed\n" in _text(pane, cells)


def test_within_one_file_a_move_names_the_line_alone():
    lines = (*(f"-{line}" for line in _FUNCTION), " kept = 1", *(f"+{line}" for line in _FUNCTION))
    diff = ChangeDiff(against="main", files=(FileDiff(path="a.py", hunks=(_hunk(*lines, at=7),)),))
    text = _text(_pane(diff))
    assert "moved to line 8, 6 lines" in text
    assert "moved from line 7, 6 lines" in text


@pytest.mark.parametrize(
    ("by", "said"),
    [("", "unchanged"), ("    ", "indented +4"), ("\t", "indented +1")],
)
def test_a_block_that_is_indented_anew_says_by_how_much(by: str, said: str):
    diff = _moving(_FUNCTION, tuple(f"{by}{line}" for line in _FUNCTION))
    assert f"moved from a.py:60, 6 lines, {said}" in _text(_pane(diff))
    back = _moving(tuple(f"{by}{line}" for line in _FUNCTION), _FUNCTION)
    assert f"moved from a.py:60, 6 lines, {said.replace('+', MINUS)}" in _text(_pane(back))


def test_a_block_whose_blanks_differ_in_no_one_way_is_marked_and_shown_in_full():
    odd = (*_FUNCTION[:3], f"    {_FUNCTION[3]}", *_FUNCTION[4:])
    text = _text(_pane(_moving(_FUNCTION, odd)))
    assert text.count("+»") == len(odd)
    assert "raise ValueError" in text


def test_a_moved_block_with_edits_inside_shows_only_the_edits():
    edited = (
        "def area_of(width, height):",
        *_FUNCTION[1:4],
        "    debug(whole)",
        "",
        *_FUNCTION[5:],
    )
    pane = _pane(_moving(_FUNCTION, ("# here", *edited, "more = 1")))
    text = _text(pane)
    assert "moved from a.py:60, 7 lines, 3 changed" in text
    assert "moved to b.py:2, 6 lines, 3 changed there" in text
    for line in ("\u2212 def area(width", "+ def area_of(width", "\u2212     log(", "+     debug("):
        assert text.count(line) == 1
    assert "raise ValueError" not in text
    assert "+ more = 1" in text
    words = [
        s.text for row in pane.rows(100, 0, 40) for s in row if s.ink.ground is Role.ADDED_WORD
    ]
    assert words == ["area_of", "debug"]


def test_what_is_new_for_the_most_part_is_no_moved_block_with_edits():
    new = (*_FUNCTION[:3], *(f"    step_{n}()" for n in range(4)), "    return other(whole, 2)")
    found = set(moves_of(_moving(_FUNCTION, new)).of.values())
    assert [move.changed for move in found] == [0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_FUNCTION[:3], (_FUNCTION[0], "    whole = width + height", _FUNCTION[2])),
        (_FUNCTION[:2], _FUNCTION[:2]),
        (("}", "}", "}"), ("}", "}", "}")),
    ],
)
def test_what_was_changed_or_is_short_or_only_brackets_was_not_moved(
    old: tuple[str, ...], new: tuple[str, ...]
):
    diff = _moving(old, new)
    assert not moves_of(diff).of
    assert "»" not in _text(_pane(diff))


def test_code_that_is_only_indented_where_it_stands_did_not_move():
    lines = (*(f"-{line}" for line in _FUNCTION), *(f"+    {line}" for line in _FUNCTION))
    diff = ChangeDiff(against="main", files=(FileDiff(path="a.py", hunks=(_hunk(*lines),)),))
    assert not moves_of(diff).of


def test_one_block_that_comes_twice_was_moved_once():
    diff = _moving(_FUNCTION, (*_FUNCTION, "between = 1", *_FUNCTION))
    moves = {move.new.first for move in moves_of(diff).of.values()}
    assert moves == {Spot(1, 0, 0)}
    assert _text(_pane(diff)).count("+ def area") == 1


def test_a_block_opens_and_folds_again_with_the_cursor_on_it():
    pane = _pane(_moving(_FUNCTION, _FUNCTION))
    _to(pane, Part.MOVED, file=1)
    pane.toggle_fold()
    assert _text(pane).count("+»def area") == 1
    assert pane.place is not None
    assert (pane.place.part, pane.place.line) == (Part.LINE, 0)
    pane.move(3)
    pane.toggle_fold()
    assert "def area" not in _text(pane)
    assert (pane.place.file, pane.place.part) == (1, Part.MOVED)


def test_more_context_leaves_an_opened_block_open():
    pane = _pane(_moving(_FUNCTION, _FUNCTION))
    _to(pane, Part.MOVED, file=1)
    pane.toggle_fold()
    hunk = pane.diff.files[1].hunks[0] if pane.diff else Hunk(lines=())
    wider = replace(hunk, lines=(DiffLine(Sign.KEPT, "above"), *hunk.lines))
    assert pane.diff is not None
    files = (pane.diff.files[0], replace(pane.diff.files[1], hunks=(wider,)))
    pane.show(replace(pane.diff, files=files))
    assert "+»def area" in _text(pane)


def test_beside_each_other_a_moved_block_takes_the_whole_width_in_its_place():
    gone = ("-first = 1", *(f"-{line}" for line in _FUNCTION), "-last = 1")
    come = ("+first = 2", "+last = 2")
    one = FileDiff(path="a.py", hunks=(_hunk(*gone, *come),))
    two = FileDiff(path="b.py", hunks=(_hunk(*(f"+{line}" for line in _FUNCTION)),))
    pane = _pane(ChangeDiff(against="main", files=(one, two)))
    pane.set_split(is_split=True)
    parts = [(p.part, p.line, p.other) for p in pane.places if p.file == 0 and p.line >= 0]
    assert parts == [(Part.PAIR, 0, 8), (Part.MOVED, 1, -1), (Part.PAIR, 7, 9)]
    assert {row_width(row) for row in pane.rows(150, 0, pane.measure(150))} == {150}


def test_a_hit_inside_a_moved_block_opens_it():
    pane = _pane(_moving(_FUNCTION, _FUNCTION))
    pane.search("ValueError")
    assert pane.hits() == 2
    assert _text(pane).count("raise ValueError") == 2


def test_a_link_a_copy_and_a_comment_reach_what_is_folded():
    pane = _pane(_moving(_FUNCTION, _FUNCTION))
    pane.to_place("b.py:3")
    assert pane.place is not None
    assert pane.place.part is Part.MOVED
    assert tuple(pane.range()) == _FUNCTION
    assert pane.new_numbers() == [1, 2, 3, 4, 5, 6]
    assert pane.path_and_line == "b.py:1"
    pane.comments.append(Comment("b.py", pane.key, 2, 3, "", "why here?"))
    pane.lay_out()
    assert "why here?" in _text(pane)


@pytest.mark.anyio
async def test_the_key_opens_all_moved_code_and_folds_it_again():
    tabs = tuple(line.replace("    ", "\t") for line in _FUNCTION)
    port = FakePort(csvlite(), diffs={_RUNNING: _moving(tabs, _FUNCTION)})
    async with opened(port=port) as console:
        console.app.session.worker = _RUNNING
        await console.do("diff")
        await console.shows("+»def area")  # what looks alike on screen is not the same
        port.diffs[_RUNNING] = _moving(_FUNCTION, _FUNCTION)
        console.app.session.worker = "implement/worker_2"
        port.diffs["implement/worker_2"] = _moving(_FUNCTION, _FUNCTION)
        await console.do("go_diff")
        await console.shows("moved from a.py:60, 6 lines, unchanged")
        await console.do("show_moved")
        await console.shows("+»def area", "moved code is shown in full")
        await console.do("show_moved")
        await console.shows("moved from a.py:60, 6 lines, unchanged", "moved code is folded")
