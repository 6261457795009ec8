"""Order and circles."""

import pytest

from engine.spec.graph import all_behind, circle, circles, in_order


def test_free_names_keep_the_order_given():
    assert in_order({"c": [], "a": [], "b": []}) == ["c", "a", "b"]


def test_a_name_comes_after_all_it_waits_for():
    assert in_order({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": []}) == ["a", "c", "b", "d"]


def test_names_on_a_circle_and_behind_it_are_left_out():
    assert in_order({"a": ["b"], "b": ["a"], "c": ["b"], "d": []}) == ["d"]


def test_what_is_no_name_counts_as_there():
    assert in_order({"b": ["gone"], "a": ["b"]}) == ["b", "a"]


@pytest.mark.parametrize(
    ("waits_for", "found"),
    [
        ({"a": [], "b": ["a"]}, None),
        ({"a": ["a"]}, ("a", "a")),
        ({"c": ["a"], "a": ["b"], "b": ["c"]}, ("c", "a", "b", "c")),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, ("a", "b", "a")),
        ({"a": ["gone"]}, None),
    ],
)
def test_a_circle_is_named_from_its_first_name(
    waits_for: dict[str, list[str]], found: tuple[str, ...] | None
):
    assert circle(waits_for) == found


def test_circles_come_one_after_another():
    waits_for = {"a": ["b", "c"], "b": ["a"], "c": ["a"], "d": ["d"]}
    assert circles(waits_for) == [("a", "b", "a"), ("a", "c", "a"), ("d", "d")]


def test_a_thousand_steps_in_a_row_are_ordered_without_recursion():
    names = [f"s{i}" for i in range(5000)]
    row = {name: names[i + 1 : i + 2] for i, name in enumerate(names)}
    assert in_order(row) == names[::-1]
    assert circle(row) is None
    assert len(all_behind("s0", row)) == 4999
