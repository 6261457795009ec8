"""Text in which `*` stands for anything, and pages."""

import pytest

from engine.site.readiness import is_page, is_said, says


@pytest.mark.parametrize(
    ("line", "wanted", "found"),
    [
        ("Local: http://localhost:3000/", "Local:", True),
        ("Local: http://localhost:3000/", "Local:*3000", True),
        ("Local: http://localhost:3000/", "3000*Local", False),
        ("a" * 10_000, "a*" * 500 + "b", False),
        ("abab", "ab*ab", True),
        ("aba", "ab*ba", False),
        ("anything", "*", True),
    ],
)
def test_a_line_has_a_text(line: str, wanted: str, *, found: bool):
    assert says(line, wanted) is found


def test_one_of_the_lines_is_enough():
    assert is_said(["one", "two"], "tw*")
    assert not is_said(["one", "two"], "three")
    assert not is_said([], "*")


def test_a_page_begins_with_a_slash():
    assert is_page("/health")
    assert not is_page("ready")
