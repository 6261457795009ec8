"""The map of the house is the one of the folders, their docstrings and the import contracts."""

import pytest

from tests.support.diagram import PAGE, with_map


def test_the_map_is_the_one_of_the_house():
    page = PAGE.read_text()
    assert page == with_map(page), "draw it anew: python -m tests.support.diagram"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prove that no", "Hope that no"),
        ("| 16 | `engine/proof` |", "| 16 | `engine/proofs` |"),
        ("| 16 | `engine/proof` | 6 |", "| 16 | `engine/proof` | 60 |"),
    ],
)
def test_a_stale_map_is_noticed(old: str, new: str):
    stale = PAGE.read_text().replace(old, new)
    assert old in PAGE.read_text()
    assert with_map(stale) != stale


def test_a_room_that_grew_a_little_needs_no_new_map():
    grown = PAGE.read_text().replace("| `engine/proof` | 6 |", "| `engine/proof` | 7 |")
    assert grown != PAGE.read_text()
    assert with_map(grown) == grown
