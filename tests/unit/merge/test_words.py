"""Changed words: what is marked, and which lines are compared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.merge import MarkedLine, changed_words, combine, compare
from engine.merge.words import tokens


def marked(before: str, after: str) -> tuple[list[str], list[str]]:
    words = changed_words(before.encode(), after.encode())
    return (
        [before[start:end] for start, end in words.before],
        [after[start:end] for start, end in words.after],
    )


def test_one_changed_word_is_marked():
    assert marked("    data = f.read()\n", "    data = f.load()\n") == (["read"], ["load"])


def test_marks_with_few_characters_between_are_joined():
    assert marked("keep this one = abc, def", "keep this one = xyz, uvw") == (
        ["abc, def"],
        ["xyz, uvw"],
    )


def test_marks_with_more_characters_between_stay_apart():
    assert marked("f[aaa] == middle == g[bbb]", "f[ccc] == middle == g[ddd]") == (
        ["aaa", "bbb"],
        ["ccc", "ddd"],
    )


def test_a_word_more_than_half_marked_is_marked_whole():
    before, after = "call a.long_name.b with it", "call a.other_name.b with it"
    assert marked(before, after) == (["a.long_name.b"], ["a.other_name.b"])


def test_blanks_at_the_ends_of_a_mark_are_left_out():
    assert marked("one two three four", "one two big three four")[1] == ["big"]


def test_nothing_is_marked_when_nearly_all_changed():
    assert marked("alpha beta gamma", "un deux trois") == ([], [])


def test_marks_count_characters_and_not_bytes():
    assert marked("größe = alt  # über", "größe = neu  # über") == (["alt"], ["neu"])


def test_bytes_that_are_no_utf8_count_as_one_character_each():
    words = changed_words(b"\xe9\xe9 and the rest = old", b"\xe9\xe9 and the rest = new")
    assert words.after == ((18, 21),)


def test_a_line_pushed_down_is_compared_with_itself():
    rows = compare([b"value = 1\n"], [b"# a new remark\n", b"value = 2\n"])
    assert [row.sign for row in rows] == ["-", "+", "+"]
    assert rows[1].marks == ()
    assert rows[2] == MarkedLine("+", b"value = 2\n", ((8, 9),))


def test_equal_lines_stand_between_changes():
    rows = compare([b"a\n", b"b\n", b"c\n"], [b"x\n", b"b\n", b"y\n"])
    assert "".join(row.sign for row in rows) == "-+ -+"


@pytest.mark.parametrize(
    ("base", "target", "incoming", "result"),
    [
        ("f(a, b)", "g(a, b)", "f(a, c)", "g(a, c)"),
        ("f(a)", "f(a)", "f(b)", "f(b)"),
        ("f(a)", "f(b)", "f(c)", None),
        ("f(a)", "f(a, b)", "f(a, c)", None),
    ],
)
def test_words_are_combined_unless_both_changed_one(
    base: str, target: str, incoming: str, result: str | None
):
    combined = combine(base.encode(), target.encode(), incoming.encode())
    assert combined == (None if result is None else result.encode())


@given(st.binary(max_size=200))
def test_tokens_joined_are_the_text(text: bytes):
    assert b"".join(tokens(text)) == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_marks_lie_within_their_lines_and_do_not_overlap(before: str, after: str):
    words = changed_words(before.encode(), after.encode())
    for text, marks in ((before, words.before), (after, words.after)):
        flat = [place for mark in marks for place in mark]
        assert flat == sorted(flat)
        assert all(0 <= place <= len(text) for place in flat)


@given(st.lists(st.sampled_from([b"a b\n", b"a c\n", b"x\n", b"\n"]), max_size=8))
def test_a_comparison_holds_both_texts(lines: list[bytes]):
    base = [b"a b\n", b"x\n", b"x\n"]
    rows = compare(base, lines)
    assert [row.text for row in rows if row.sign != "+"] == base
    assert [row.text for row in rows if row.sign != "-"] == lines
