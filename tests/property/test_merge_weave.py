"""Weaving: a candidate's own hunks make its own tree, and order never matters."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.merge import Composite, Version, Weaving, WeavingRefused, weave
from tests.support.merge_texts import LINES

PATH, OTHER = b"src/a.py", b"src/b.py"
TEXTS = st.lists(LINES, max_size=12).map(b"".join)
VERSIONS = st.none() | st.builds(Version, TEXTS, st.sampled_from(["100644", "100755", "120000"]))
BASES = st.lists(LINES, min_size=1, max_size=12).map(b"".join)


@st.composite
def weavings(draw: st.DrawFn) -> tuple[Weaving, dict[str, dict[bytes, Version | None]]]:
    base: dict[bytes, Version | None] = {PATH: Version(draw(BASES)), OTHER: None}
    candidates = {
        name: {path: draw(VERSIONS) for path in draw(st.sets(st.sampled_from([PATH, OTHER])))}
        for name in "ABC"
    }
    return weave(base, candidates), candidates


@given(weavings())
def test_all_hunks_of_a_candidate_make_its_tree(
    woven: tuple[Weaving, dict[str, dict[bytes, Version | None]]],
):
    weaving, candidates = woven
    for name, tree in candidates.items():
        composite = weaving.compose(hunk.key for hunk in weaving.of(name))
        assert isinstance(composite, Composite)
        changed = {path: new for path, new in tree.items() if weaving.base[path] != new}
        assert composite.files == changed


@given(weavings(), st.randoms(use_true_random=False))
def test_the_order_of_choosing_does_not_matter(
    woven: tuple[Weaving, dict[str, dict[bytes, Version | None]]], dice: Random
):
    weaving, _ = woven
    keys = [hunk.key for hunk in weaving.hunks]
    shuffled = list(keys)
    dice.shuffle(shuffled)
    assert weaving.compose(keys) == weaving.compose(shuffled)


@given(weavings())
def test_keys_are_unique_and_consensus_counts_candidates(
    woven: tuple[Weaving, dict[str, dict[bytes, Version | None]]],
):
    weaving, _ = woven
    assert len({hunk.key for hunk in weaving.hunks}) == len(weaving.hunks)
    for hunk in weaving.hunks:
        assert set(hunk.candidates) <= set(hunk.alike) <= set(weaving.names)
    spotted = [hunk for spot in weaving.spots for hunk in spot.hunks]
    assert spotted == list(weaving.hunks)


@given(weavings(), st.data())
def test_what_is_composed_has_no_hunks_over_each_other(
    woven: tuple[Weaving, dict[str, dict[bytes, Version | None]]], data: st.DataObject
):
    weaving, _ = woven
    chosen = [hunk for hunk in weaving.hunks if data.draw(st.booleans())]
    made = weaving.compose(hunk.key for hunk in chosen)
    if isinstance(made, WeavingRefused):
        assert all(
            first.path == second.path and {first.key, second.key} <= {h.key for h in chosen}
            for first, second in made.clashes
        )
        assert made.reason
    else:
        assert set(made.files) == {hunk.path for hunk in chosen}
