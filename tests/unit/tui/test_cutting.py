"""Each kind of text is cut where it loses least."""

from hypothesis import given
from hypothesis import strategies as st

from tui.ink import width_of
from tui.words.cutting import (
    cut_apart,
    cut_command,
    cut_end,
    cut_path,
    names_apart,
    wrap,
)


def test_a_long_word_is_cut_in_linear_time():
    assert cut_command("x" * 300_000, 9) == "xxxxxxxx…"  # else it takes hours


def test_sentences_lose_their_end():
    assert cut_end("nothing is lost", 9) == "nothing …"
    assert cut_end("short", 9) == "short"
    assert cut_end("anything", 0) == ""


def test_paths_lose_their_middle_and_keep_the_file():
    assert cut_path("src/csvlite/reader.py:88", 40) == "src/csvlite/reader.py:88"
    assert cut_path("src/csvlite/reader.py:88", 20) == "src/…/reader.py:88"
    assert cut_path("src/csvlite/reader.py:88", 15) == "…/reader.py:88"
    assert cut_path("docs/streaming-large-files.md", 12) == "…ge-files.md"


def test_commands_keep_the_program_and_the_last_path():
    assert cut_command("pytest -q", 24) == "pytest -q"
    cut = cut_command("pytest -q tests/unit/test_sniff.py", 26)
    assert cut.startswith("pytest -q ")
    assert cut.endswith("test_sniff.py")
    assert len(cut) <= 26


def test_wrapping_breaks_at_blanks_and_cuts_the_last_row():
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("one two three four", 7, 2) == ["one two", "three …"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("", 4) == [""]
    assert wrap("a\nb", 4) == ["a", "b"]


@given(st.lists(st.text("ab/.", min_size=1, max_size=40), unique=True, max_size=6))
def test_two_paths_of_one_list_never_look_the_same(paths: list[str]):
    shown = cut_apart(paths, 15)
    assert len(set(shown)) == len(paths)
    assert all(width_of(one) <= 15 for one in shown)


@given(st.lists(st.text("ab/.", min_size=1, max_size=40), unique=True, max_size=6))
def test_two_files_of_one_list_are_never_named_alike(paths: list[str]):
    shown = names_apart(paths, 15)
    assert len(set(shown)) == len(paths)
    assert all(width_of(one) <= 15 for one in shown)


def test_files_are_named_by_their_last_part_where_that_is_enough():
    assert names_apart(["a/x.py", "b/x.py", "b/y.py"], 20) == ["a/x.py", "b/x.py", "y.py"]
