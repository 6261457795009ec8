"""The table of limits: what the rooms that walk it rely upon."""

from collections import Counter

from engine.limits import DEFAULT_LIMITS, KINDS, Dimension, Limits, over_budget

FENCES = {Dimension.FILES, Dimension.GIT, Dimension.NETWORK, Dimension.KILL}


def test_every_dimension_is_a_fence_or_has_a_limit() -> None:
    assert {kind.dimension for kind in KINDS.values()} - {None} == set(Dimension) - FENCES


def test_kinds_of_one_dimension_hold_alike() -> None:
    held = {(kind.dimension, kind.held, kind.cause) for kind in KINDS.values() if kind.dimension}
    assert len(held) == len(set(Dimension) - FENCES)


def test_whatever_ends_an_attempt_is_named_and_has_a_cause() -> None:
    for name, kind in KINDS.items():
        assert (kind.dimension is None) == (kind.cause is None) == (not kind.called), name


def test_no_two_limits_share_a_row_of_the_page() -> None:
    rows = Counter(kind.row for kind in KINDS.values() if kind.title)
    assert set(rows.values()) == {1}
    assert 0 not in rows


def test_limits_stand_over_others_one_by_one() -> None:
    over = Limits(memory_mb=1).over(Limits(memory_mb=2, pids=3))
    assert over == Limits(memory_mb=1, pids=3)
    assert Limits().over(DEFAULT_LIMITS) == DEFAULT_LIMITS


def test_a_budget_is_passed_only_by_more_than_it() -> None:
    limits = Limits(budget_usd=1.0, budget_tokens=10)
    assert over_budget(limits, 1.0, 10) is None
    assert str(over_budget(limits, 1.5, 0)) == "budget: 1.5 of 1 USD"
    assert str(over_budget(limits, 0.0, 11)) == "budget: 11 of 10 tokens"
