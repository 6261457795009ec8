"""A diff is laid out, marked word by word, and every hunk is known again by what it changes."""

from dataclasses import replace

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.console_diffs import diff_of_reader
from tui.ink import Role, row_width, text_of
from tui.kit.wording import changed_words, pairs
from tui.screens.diff.layout import Part, Shape, lay_out
from tui.screens.diff.pane import DiffPane


def _pane(**more: object) -> DiffPane:
    pane = DiffPane(**more)  # type: ignore[arg-type]
    pane.show(diff_of_reader())
    return pane


def _words(old: str, new: str) -> tuple[list[str], list[str]]:
    ours, theirs = changed_words(old, new)
    return [old[a:b] for a, b in ours], [new[a:b] for a, b in theirs]


def test_only_changed_words_are_marked():
    assert _words("if size > 10:", "if size > 20:") == (["10:"], ["20:"])


def test_a_word_is_marked_whole_where_most_of_it_changed():
    ours, theirs = _words("end = line.find(quote, start)", "end = self._closing(quote, start)")
    assert ours == ["line.find(quote,"] or ours[0].startswith("line.find")
    assert theirs[0].startswith("self._closing")


def test_nothing_is_marked_where_nearly_all_changed():
    assert changed_words("alpha beta gamma", "one two three") == ((), ())


def test_very_long_lines_are_not_compared():
    assert changed_words("x" * 600, "y" * 600) == ((), ())


def test_removed_lines_pair_with_added_ones_by_place():
    lines = [DiffLine(Sign(s), s) for s in "--+ -+"]
    assert pairs(lines) == {0: 2, 2: 0, 4: 5, 5: 4}


def test_a_hunk_is_known_by_what_it_changes_wherever_it_stands():
    hunk = diff_of_reader().files[0].hunks[1]
    moved = Hunk(where="elsewhere", lines=(DiffLine(Sign.KEPT, "other"), *hunk.lines))
    edited = Hunk(lines=(*hunk.lines, DiffLine(Sign.ADDED, "one more")))
    file = FileDiff(path="a.py", hunks=(hunk, moved, edited))
    keys = ChangeDiff(against="main", files=(file,)).keys[0]
    assert keys[1] == keys[0] + "#1"
    assert keys[2] != keys[0]
    other = ChangeDiff(against="main", files=(replace(file, path="b.py"),)).keys[0]
    assert other[0] != keys[0]


def test_a_change_of_blanks_alone_is_known_as_such():
    blanks = Hunk(lines=(DiffLine(Sign.REMOVED, "a = 1"), DiffLine(Sign.ADDED, "a  =  1")))
    assert blanks.is_blank_only
    assert not diff_of_reader().files[0].hunks[1].is_blank_only


def test_split_pairs_sides_and_leaves_pure_hunks_in_one_column():
    places = lay_out(diff_of_reader(), Shape(is_split=True))
    parts = {place.hunk: place.part for place in places if place.file == 0 and place.line >= 0}
    assert parts[1] is Part.PAIR
    assert parts[2] is Part.LINE


def test_seen_hunks_and_generated_files_are_folded_until_they_are_opened():
    diff = diff_of_reader()
    key = diff.keys[0][1]
    shape = Shape(seen={key})
    before = lay_out(diff, shape)
    assert not [p for p in before if p.part is Part.LINE and (p.file, p.hunk) == (0, 1)]
    assert not [p for p in before if p.part is Part.HUNK and p.file == 3]
    shape.open_hunks.add(key)
    shape.has_generated = True
    after = lay_out(diff, shape)
    assert [p for p in after if p.part is Part.LINE and (p.file, p.hunk) == (0, 1)]
    assert [p for p in after if p.part is Part.HUNK and p.file == 3]


def test_context_shrinks_and_grows_as_far_as_the_diff_has_it():
    pane = _pane()
    whole = len(pane.places)
    pane.set_context(0)
    assert len(pane.places) < whole
    pane.set_context(50)
    assert len(pane.places) == whole


@pytest.mark.parametrize(
    ("cells", "is_split"), [(60, False), (100, False), (150, True), (40, True)]
)
def test_every_row_is_as_wide_as_asked(cells: int, is_split: bool):  # noqa: FBT001 - a parameter of the test
    pane = _pane()
    pane.set_split(is_split=is_split)
    pane.measure(cells)
    rows = list(pane.rows(cells, 0, 40))
    assert {row_width(row) for row in rows} == {cells}


def test_added_and_removed_lines_keep_their_signs_and_grounds():
    rows = list(_pane().rows(100, 0, 40))
    removed = [row for row in rows if any(s.ink.ground is Role.REMOVED_GROUND for s in row)]
    added = [row for row in rows if any(s.ink.ground is Role.ADDED_GROUND for s in row)]
    assert all("\u2212" in text_of([row]) for row in removed)
    assert all("+" in text_of([row]) for row in added)
    words = [s.text for row in rows for s in row if s.ink.ground is Role.ADDED_WORD]
    assert "self._closing_quote(line," in words


def test_the_cursor_stays_on_its_hunk_when_the_diff_grows():
    pane = _pane()
    pane.to_new(1)
    key = pane.key
    first = diff_of_reader().files[0]
    extra = Hunk(where="new one", lines=(DiffLine(Sign.ADDED, "x", None, 1),))
    grown = replace(diff_of_reader(), files=(replace(first, hunks=(extra, *first.hunks)),))
    pane.show(grown)
    assert pane.key == key


def test_moving_passes_over_blank_rows_and_ends_at_the_ends():
    pane = _pane()
    for _ in range(200):
        pane.move(1)
        assert pane.place is not None
        assert pane.place.part is not Part.BLANK
    pane.move(-999)
    assert pane.cursor == 0


def test_a_link_leads_to_its_line():
    pane = _pane()
    pane.to_place("csvlite/reader.py:85")
    assert pane.path_and_line == "src/csvlite/reader.py:85"
    pane.to_place("io.py")
    assert pane.file == 1


def test_a_range_gives_its_lines_and_a_spot_for_a_comment():
    pane = _pane()
    pane.to_place("reader.py:83")
    pane.anchor = pane.cursor
    pane.move(2)
    spot = pane.spot()
    assert spot is not None
    assert len(spot.code.split("\n")) == 3
    assert spot.path == "src/csvlite/reader.py"


def test_a_file_without_hunks_says_what_there_is_to_say():
    assert "2.1 KB, was 1.8 KB" in text_of(_pane().rows(100, 0, 60))
