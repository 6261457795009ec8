"""The laws of `Merge`: what simplifying and settling must keep."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.merge import Merge

VALUES = st.sampled_from("abc")


@st.composite
def merges(draw: st.DrawFn, longest: int = 3) -> Merge[str]:
    half = draw(st.integers(0, longest))
    return Merge(tuple(draw(st.lists(VALUES, min_size=2 * half + 1, max_size=2 * half + 1))))


def balance(merge: Merge[str]) -> dict[str, int]:
    """Return how often each value is added, less how often it is taken away."""
    counts = Counter(merge.adds)
    counts.subtract(merge.removes)
    return {value: count for value, count in counts.items() if count}


@given(merges())
def test_simplify_keeps_the_balance(merge: Merge[str]):
    assert balance(merge.simplify()) == balance(merge)


@given(merges())
def test_simplify_twice_is_simplify(merge: Merge[str]):
    assert merge.simplify().simplify() == merge.simplify()


@given(merges())
def test_simplified_adds_and_removes_share_nothing(merge: Merge[str]):
    simple = merge.simplify()
    assert not set(simple.adds) & set(simple.removes)


@given(merges())
def test_settling_is_the_same_before_and_after_simplifying(merge: Merge[str]):
    assert merge.settle().is_resolved == merge.simplify().settle().is_resolved
    assert balance(merge.settle(accept_same=False)) == balance(merge)


@given(merges())
def test_what_simplifies_to_one_value_settles_to_it(merge: Merge[str]):
    simple = merge.simplify()
    if simple.is_resolved:
        assert merge.settle() == merge.settle(accept_same=False) == simple


@given(st.tuples(VALUES, VALUES, VALUES))
def test_three_terms_settle_as_three_way_merges_do(terms: tuple[str, str, str]):
    target, base, incoming = terms
    settled = Merge.three(base=base, target=target, incoming=incoming).settle()
    if incoming in (target, base):
        assert settled.resolved == target
    elif target == base:
        assert settled.resolved == incoming
    else:
        assert settled.resolved is None


@given(merges())
def test_a_strict_settle_never_accepts_that_both_did_the_same(merge: Merge[str]):
    strict = merge.settle(accept_same=False)
    assert not strict.is_resolved or balance(merge) == {strict.terms[0]: 1}


@given(merges())
def test_map_keeps_the_shape(merge: Merge[str]):
    mapped = merge.map(str.upper)
    assert mapped.adds == tuple(value.upper() for value in merge.adds)
    assert Merge.from_sides(mapped.adds, mapped.removes) == mapped
