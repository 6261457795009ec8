"""Two different names are never one text, and nothing that hides stays hidden."""

from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.legible import cut_at_word, legible_line, legible_name
from tui.words.clean import clean, clean_name

_HIDING = (
    "ab.\\/ \t\n\r\x07\x1b\x7f\x85\u200b\u200d\u202e\u2066\u2028\u00a0\u00ad\u3164\ufe0f"
    "\udc85\u0430\u0435\u03bf\u00e9\u0301\u212b\u00c5\u2407eAa"
)
_TRICKY = st.sampled_from(_HIDING)
_names = st.lists(_TRICKY | st.characters(), min_size=1, max_size=8).map("".join)


# The first draw makes tables of all characters: on a busy machine that alone takes seconds.
@given(_names, _names)
def test_two_different_names_are_never_drawn_alike(one: str, other: str):
    shown = [legible_name(name) for name in (one, other)]
    if one != other:
        assert shown[0] != shown[1]
        assert normalize("NFC", shown[0]) != normalize("NFC", shown[1])


@given(_names)
def test_a_name_holds_nothing_that_hides_turns_or_moves(name: str):
    shown = legible_name(name)
    assert not [c for c in shown if c != " " and category(c)[0] in "CZ"], ascii(shown)
    assert shown == shown.strip()
    assert "  " not in shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("calc\x07.py", r"calc\x07.py"),
        ("a\u202etxt.exe", r"a\u202etxt.exe"),
        ("a\u200bb", r"a\u200bb"),
        ("a.py ", r"a.py\x20"),
        (" a", r"\x20a"),
        ("a  b", r"a \x20b"),
        ("two\nlines", r"two\x0alines"),
        ("p\u0430y.py", r"p\u0430y.py"),
        ("e\u0301", r"e\u0301"),
        ("a\\x07", r"a\\x07"),
        ("\udc85", r"\x85"),
        ("\x85", r"\u0085"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_cannot_be_told_by_eye_is_spelled_out(name: str, shown: str):
    assert legible_name(name) == shown
    assert clean_name(name) == shown


@pytest.mark.parametrize("name", ["src/a b.py", "Ünïcode.txt", "отчет.md", "日本.py", "README"])
def test_ordinary_names_of_any_alphabet_are_left_as_they_are(name: str):
    assert legible_name(name) == name


def test_the_rule_for_output_alone_would_draw_such_names_alike():
    """The negative control: what is right for a log hides a bell in a name."""
    assert clean("calc\x07.py") == clean("calc.py")
    assert clean_name("calc\x07.py") != clean_name("calc.py")


def test_a_line_keeps_its_words_and_nothing_that_acts():
    assert legible_line("Fix\tit\n\x1b[2J now\u202e ") == r"Fix it \x1b[2J now\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ten letter", "ten letter"),
        ("some longer text", "some…"),
        ("one, two, three", "one, two…"),
        ("an endlessword", "an endles…"),
        ("endlessword", "endlesswo…"),
        ("exactly so many", "exactly…"),
    ],
)
def test_a_line_is_cut_between_two_words_unless_one_takes_most_of_the_room(text: str, shown: str):
    assert cut_at_word(text, 10) == shown
    assert len(shown) <= 10


@given(st.text(max_size=40), st.integers(2, 40))
def test_a_cut_line_is_never_longer_than_asked(text: str, most: int):
    shown = cut_at_word(text, most)
    assert len(shown) <= most
    assert shown == text or shown.endswith("…")
