"""Numbers that agents tell: what can be counted is taken, all else is none."""

import pytest

from engine.agents.records import count_of, number_of


@pytest.mark.parametrize("told", [0, 3, 0.25, 2**53 - 1])
def test_a_plain_number_is_taken_as_it_is(told: float) -> None:
    assert number_of(told) == told
    assert count_of(told) == int(told)


@pytest.mark.parametrize(
    "told", [-1, 1.7e308, 10**400, float("inf"), float("nan"), 2**53, True, "3", None, [3]]
)
def test_what_no_sum_could_hold_is_none(told: object) -> None:
    assert number_of(told) is None
    assert count_of(told) is None
