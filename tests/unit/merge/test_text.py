"""The conflicts of a text: where they are, what they hold, what their names survive."""

import pytest

from engine.merge import LineOf, LinePick, Origin, OwnText, Pick, SingleLines, choice_of, text_of
from engine.merge.choices import choice_from_json, choice_to_json
from engine.merge.linediff import LineChange, diff
from engine.merge.text import is_binary, merge_texts, split_lines
from tests.support.merge_texts import one_hunk

BASE = b"one\ntwo\nthree\nfour\nfive\n"
TARGET = b"one\nTWO\nthree\nfour\nFIVE\n"
INCOMING = b"one\n2\nthree\nvier\nfive\n"


def test_lines_end_with_line_feeds_and_nothing_else():
    odd = b"a\x0b\x0c\x1c\x85\r\xe2\x80\xa8b\nc"
    assert split_lines(odd) == (odd[:-1], b"c")


def test_pieces_say_where_text_comes_from():
    pieces = merge_texts(BASE, TARGET, INCOMING).pieces
    assert [piece.origin for piece in pieces] == [
        Origin.SAME,
        Origin.CONFLICT,
        Origin.SAME,
        Origin.CONFLICT,
    ]


def test_changes_on_one_side_or_alike_are_no_conflicts():
    base, target, incoming = b"a\nb\nc\nd\ne\n", b"A\nb\nc\nd\nE\n", b"a\nb\nC\nd\nE\n"
    origins = [piece.origin for piece in merge_texts(base, target, incoming).pieces]
    assert origins == [
        Origin.TARGET,
        Origin.SAME,
        Origin.INCOMING,
        Origin.SAME,
        Origin.ALIKE,
    ]


def test_a_hunk_knows_its_place_and_its_neighbors():
    hunk = merge_texts(BASE, b"new\n" + TARGET, INCOMING).hunks[-1]
    assert (hunk.base_line, hunk.target_line, hunk.incoming_line) == (3, 4, 3)
    assert hunk.before == (b"new\n", b"one\n", b"TWO\n", b"three\n")[-3:]


def test_a_hunk_keeps_its_key_when_the_rest_of_the_file_moves():
    before = merge_texts(BASE, TARGET, INCOMING).hunks[1]
    moved = merge_texts(BASE, b"# more\n" * 40 + TARGET.replace(b"TWO", b"two"), INCOMING)
    assert before.key in [hunk.key for hunk in moved.hunks]


def test_a_hunk_with_other_text_has_another_key():
    first = merge_texts(BASE, TARGET, INCOMING).hunks[1]
    second = merge_texts(BASE, TARGET.replace(b"FIVE", b"5"), INCOMING).hunks[1]
    assert first.key != second.key


def test_equal_hunks_of_a_file_are_told_apart():
    base, target, incoming = b"x\n--\nx\n", b"a\n--\na\n", b"b\n--\nb\n"
    first, second = merge_texts(base, target, incoming).hunks
    assert second.key == f"{first.key}#2"


def test_own_text_without_line_end_gets_one_where_text_follows():
    merge = merge_texts(b"a\nz\n", b"b\nz\n", b"c\nz\n")
    assert merge.render(lambda _: b"typed") == b"typed\nz\n"
    crlf = merge_texts(b"y\r\na\r\nz\r\n", b"y\r\nb\r\nz\r\n", b"y\r\nc\r\nz\r\n")
    assert crlf.render(lambda _: b"typed") == b"y\r\ntyped\r\nz\r\n"


def test_own_text_without_line_end_keeps_none_at_the_end():
    assert merge_texts(b"a", b"b", b"c").render(lambda _: b"typed") == b"typed"


def test_a_line_diff_of_others_takes_the_place_of_ours():
    seen: list[int] = []

    def whole(before: object, after: object) -> list[LineChange]:
        seen.append(1)
        return diff(list(before), list(after))  # type: ignore[call-overload]

    assert merge_texts(BASE, TARGET, INCOMING, differ=whole) == merge_texts(BASE, TARGET, INCOMING)
    assert len(seen) == 2


def test_binary_is_what_git_takes_for_it():
    assert is_binary(b"a\0b")
    assert not is_binary(b"a" * 8000 + b"\0")


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (Pick.TARGET, b"t1\nt2\n"),
        (Pick.INCOMING, b"i1\n"),
        (Pick.BOTH, b"t1\nt2\ni1\n"),
        (Pick.BOTH_REVERSED, b"i1\nt1\nt2\n"),
        (Pick.BASE, b"b1\n"),
        (Pick.NEITHER, b""),
        (OwnText(b"mine\n"), b"mine\n"),
        (
            SingleLines((LinePick(LineOf.INCOMING, 0), LinePick(LineOf.TARGET, 1))),
            b"i1\nt2\n",
        ),
        (SingleLines((LinePick(LineOf.BASE, 0),)), b"b1\n"),
        (
            SingleLines((LinePick(LineOf.BASE, 0), LinePick(LineOf.BLANK, 0))),
            b"b1\n\n",
        ),
        (SingleLines((LinePick(LineOf.BLANK, 1),)), None),
        (SingleLines((LinePick(LineOf.BASE, 1),)), None),
        (Pick.COMBINED, None),
    ],
)
def test_every_choice_makes_its_text(choice: Pick | OwnText | SingleLines, text: bytes | None):
    hunk = one_hunk("b1\n", "t1\nt2\n", "i1\n")
    assert text_of(hunk, choice) == text
    assert choice_from_json(choice_to_json(choice)) == choice


def test_both_puts_a_line_end_between_the_sides_where_one_lacks_it():
    (hunk,) = merge_texts(b"", b"t", b"i").hunks
    assert text_of(hunk, Pick.BOTH) == b"t\ni"
    assert text_of(hunk, Pick.BOTH_REVERSED) == b"i\nt"


def test_combined_keeps_both_words():
    hunk = one_hunk("call(a, b)\n", "call(A, b)\n", "call(a, B)\n")
    assert text_of(hunk, Pick.COMBINED) == b"call(A, B)\n"


def test_words_and_bytes_are_choices():
    assert choice_of("both_reversed") is Pick.BOTH_REVERSED
    assert choice_of(b"x") == OwnText(b"x")
    with pytest.raises(ValueError, match="ours"):
        choice_of("ours")
