"""The words of policies and what each decides."""

import re

import pytest

from engine.policies import LAWS, PATTERN, Policy, PolicyKind, spellings


def test_every_kind_has_its_law() -> None:
    assert set(PolicyKind) <= set(LAWS)


@pytest.mark.parametrize("words", [*spellings("(1)"), *spellings("(30)"), "first(0)", "first", "x"])
def test_a_policy_is_read_where_the_schema_says_so(words: str) -> None:
    assert (Policy.read(words) is not None) == bool(re.fullmatch(PATTERN, words))


@pytest.mark.parametrize(("words", "needed"), [("all", 5), ("settled", 1), ("race", 1)])
def test_what_is_not_counted_knows_how_many_it_needs(words: str, needed: int) -> None:
    policy = Policy.read(words)
    assert policy is not None
    assert policy.needed(5) == needed


def test_only_a_race_is_won_before_all_have_ended() -> None:
    won = [w for w in spellings("(2)") if (p := Policy.read(w)) is not None and p.is_won(2, 2)]
    assert won == ["race", "first(2)"]
