"""A diff is laid out, marked word by word, and every hunk is known again by what it changes."""

from dataclasses import replace

import pytest

from engine.messages.diffs import ChangeDiff, DiffLine, FileDiff, Hunk, Sign
from tests.support.console_diffs import diff_of_reader
from tui.ink import Role, row_width, text_of
from tui.screens.diff.layout import Part, Shape, lay_out
from tui.screens.diff.pane import DiffPane
from tui.words.wording import changed_words, pairs


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


def _lines(*texts: str) -> list[DiffLine]:
    return [DiffLine(Sign(text[0]), text[1:]) for text in texts]


def test_removed_lines_pair_with_the_added_ones_that_they_became():
    first, second = "-first = value + 15", "-second = first * 15"
    new = ("+extra = 0", "+first = value + 15 + extra", "+second = first * 151", "+fourth = 4")
    assert pairs(_lines(first, second, *new)) == {0: 3, 3: 0, 1: 4, 4: 1}


def test_one_line_for_another_is_a_pair_and_two_that_share_nothing_are_not():
    assert pairs(_lines("-alpha", "+omega")) == {0: 1, 1: 0}
    assert pairs(_lines("-alpha one", "-beta two", "+gamma three", "+delta four")) == {}


def test_a_stretch_too_long_to_search_still_pairs_what_is_alike_by_place():
    old = [f"-name_{n} = call({n})" for n in range(200)]
    new = [f"+name_{n} = call({n}, more)" for n in range(150)]
    found = pairs(_lines(*old, *new))
    assert found == {**{n: 200 + n for n in range(150)}, **{200 + n: n for n in range(150)}}


def test_sides_that_are_alike_meet_in_one_row():
    lines = _lines("-first = value + 15", "-second = first", "+extra = 0", "+first = value + 16")
    diff = ChangeDiff(
        against="main", files=(FileDiff(path="a.py", hunks=(Hunk(lines=tuple(lines)),)),)
    )
    pairs_shown = [
        (p.line, p.other) for p in lay_out(diff, Shape(is_split=True)) if p.part is Part.PAIR
    ]
    assert pairs_shown == [(-1, 2), (0, 3), (1, -1)]


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


def test_moving_before_there_is_a_diff_does_nothing():
    pane = DiffPane()
    for by in (1, -1, 10):
        pane.move(by)
    assert (pane.cursor, pane.hunk_end(), pane.new_numbers(), pane.path) == (0, 0, [], "")


def test_the_end_is_the_last_line_although_a_blank_row_follows_it():
    pane = _pane()
    pane.toggle("has_generated")
    pane.move(len(pane.places))
    assert pane.place is not None
    assert (pane.place.part, pane.place.file) == (Part.LINE, 3)
    pane.move(-len(pane.places))
    assert pane.cursor == 0


def test_a_file_without_hunks_is_seen_by_a_mark_of_its_own_and_a_folded_one_at_once():
    pane = _pane()
    new = []
    while pane.to_new(1):
        new.append((pane.file, len(pane.keys_at(pane.place))))
        pane.seen.update(pane.keys_at(pane.place))
    assert new[-2:] == [(2, 1), (3, 1)]
    assert not pane.to_new(-1) or pane.file == 0


def test_a_long_changed_line_goes_on_in_the_next_rows_and_loses_nothing():
    lines = _lines("-" + "a" * 150, "+" + "a" * 150 + "b", " " + "k" * 150)
    file = FileDiff(path="a.txt", hunks=(Hunk(lines=tuple(lines)),))
    for is_split in (False, True):
        pane = DiffPane()
        pane.show(ChangeDiff(against="main", files=(file,)))
        pane.set_split(is_split=is_split)
        count = pane.measure(100)
        text = text_of(pane.rows(100, 0, count))
        assert text.count("a") == 300 + 1  # and once in the name
        assert "b" in text
        assert "…" in text  # what nobody changed is cut
        pane.scroll(8)
        pane.scroll(-8)
        pane.wraps = False
        pane.lay_out()
        assert pane.measure(100) < count


def test_what_the_end_of_a_line_hides_is_drawn():
    lines = (
        DiffLine(Sign.ADDED, "trail  ", None, 1),
        DiffLine(Sign.ADDED, "x", None, 2, has_newline=False),
    )
    pane = DiffPane()
    pane.show(
        ChangeDiff(against="main", files=(FileDiff(path="a.txt", hunks=(Hunk(lines=lines),)),))
    )
    pane.measure(80)
    text = text_of(pane.rows(80, 0, 10))
    assert "trail··" in text
    assert "x \\ no newline at end" in text
