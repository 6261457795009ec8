"""Merges as values: what they show and what they refuse."""

import pytest

from engine.merge import Merge


def test_an_even_number_of_terms_is_refused():
    with pytest.raises(ValueError, match="odd number"):
        Merge(("a", "b"))


def test_adds_without_their_removes_are_refused():
    with pytest.raises(ValueError, match="2 adds"):
        Merge.from_sides(["a", "b"], [])


def test_a_merge_shows_what_it_is():
    assert repr(Merge.of("a")) == "Resolved('a')"
    assert repr(Merge(("a", "b", "c"))) == "Conflicted(['a', 'b', 'c'])"


def test_resolved_is_none_while_conflicted():
    assert Merge(("a", "b", "c")).resolved is None
    assert Merge.of("a").resolved == "a"


def test_none_can_be_a_value():
    absent: Merge[str | None] = Merge.three(base="x", target=None, incoming="x").settle()
    assert absent.is_resolved
    assert absent.resolved is None
