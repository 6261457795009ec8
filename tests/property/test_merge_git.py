"""The aligned texts against git itself: the same conflicts, the same bytes."""

import random

import pytest
from hypothesis import given, settings

from engine.merge import Origin, Pick, merge_texts, text_of
from engine.merge import union as both_sides
from engine.merge.text import ConflictHunk
from tests.support.merge_oracle import merge_file
from tests.support.merge_texts import three_texts

Texts = tuple[bytes, bytes, bytes]


def picked(hunk: ConflictHunk, pick: Pick) -> bytes:
    return text_of(hunk, pick) or b""


def assert_like_git(texts: Texts) -> None:
    ours = merge_texts(*texts)
    git = merge_file(*texts)
    assert len(ours.hunks) == git.conflicts
    assert ours.render(lambda hunk: picked(hunk, Pick.TARGET)) == git.ours
    assert ours.render(lambda hunk: picked(hunk, Pick.INCOMING)) == git.theirs
    assert both_sides(ours) == git.union


@settings(max_examples=40)
@given(three_texts())
def test_conflicts_and_picks_are_those_of_git(texts: Texts):
    assert_like_git(texts)


def _shuffled(seed: int, size: int, different: int) -> Texts:
    """A larger file with many edits on both sides, so that the long-distance rules are met."""
    dice = random.Random(seed)

    def line() -> bytes:
        return b"%d\n" % dice.randrange(different)

    def edited(lines: list[bytes]) -> bytes:
        lines = list(lines)
        for _ in range(size // 12):
            start = dice.randrange(len(lines))
            lines[start : start + dice.randrange(4)] = [line() for _ in range(dice.randrange(4))]
        return b"".join(lines)

    base = [line() for _ in range(size)]
    return b"".join(base), edited(base), edited(base)


@pytest.mark.parametrize("different", [3, 20, 400, 100_000])
@pytest.mark.parametrize("seed", range(3))
def test_large_repetitive_files_align_as_in_git(seed: int, different: int):
    texts = _shuffled(seed, 900, different)
    ours, git = merge_texts(*texts), merge_file(*texts)
    assert min(len(ours.hunks), 127) == git.conflicts
    assert ours.render(lambda hunk: picked(hunk, Pick.TARGET)) == git.ours
    assert both_sides(ours) == git.union


def test_entirely_different_files_align_as_in_git_when_the_search_is_given_up():
    texts = _shuffled(7, 3000, 60)
    shuffled = [texts[0], *(b"".join(sorted(text.splitlines(keepends=True))) for text in texts[1:])]
    assert_like_git((shuffled[0], shuffled[1], shuffled[2]))


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((b"", b"a\n", b"b\n"), id="both added"),
        pytest.param((b"a\n", b"", b"b\n"), id="deleted against changed"),
        pytest.param((b"a", b"b", b"c"), id="no line end anywhere"),
        pytest.param((b"a\n", b"a\nb", b"a\nc\n"), id="no line end on one side"),
        pytest.param((b"a\r\n", b"b\r\n", b"c\r\n"), id="CR LF"),
        pytest.param((b"a\r\nx", b"a\r\ny", b"a\r\nz"), id="CR LF, unended"),
        pytest.param((b"a\nb\nc\n", b"x\nb\nc\n", b"a\nb\ny\n"), id="apart"),
        pytest.param((b"a\nb\n", b"x\nb\n", b"a\ny\n"), id="touching"),
        pytest.param((b"a\nb\nc\n", b"x\nb\nc\n", b"x\nb\nc\n"), id="alike"),
        pytest.param((b"=======\n", b"<<<<<<< a\n", b">>>>>>> b\n"), id="markers as content"),
    ],
)
def test_corner_cases_are_those_of_git(texts: Texts):
    assert_like_git(texts)


def test_the_oracle_can_disagree():
    """A negative control: texts that are not those compared do not pass."""
    git = merge_file(b"a\n", b"b\n", b"c\n")
    other = merge_texts(b"a\n", b"a\n", b"c\n")
    assert len(other.hunks) != git.conflicts
    assert other.render(lambda hunk: picked(hunk, Pick.TARGET)) != git.ours


@given(three_texts())
def test_parts_leave_no_gap_and_lose_no_line(texts: Texts):
    merge = merge_texts(*texts)
    for place, lines in ((1, merge.base), (3, merge.target), (5, merge.incoming)):
        bounds = [(part[place], part[place + 1]) for part in merge.parts]
        assert [start for start, _ in bounds] == [0, *(end for _, end in bounds)][: len(bounds)]
        assert (bounds[-1][1] if bounds else 0) == len(lines)


@given(three_texts())
def test_swapping_the_sides_swaps_the_picks(texts: Texts):
    base, target, incoming = texts
    one, other = merge_texts(base, target, incoming), merge_texts(base, incoming, target)
    assert [hunk.target for hunk in one.hunks] == [hunk.incoming for hunk in other.hunks]
    assert {piece.origin for piece in one.pieces} <= set(Origin)


@given(three_texts())
def test_hunk_keys_are_unique_and_the_same_every_time(texts: Texts):
    keys = [hunk.key for hunk in merge_texts(*texts).hunks]
    assert len(set(keys)) == len(keys)
    assert keys == [hunk.key for hunk in merge_texts(*texts).hunks]
