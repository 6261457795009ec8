"""Proposals for any hunk: never an error, never two alike, never slow to say why."""

from hypothesis import example, given
from hypothesis import strategies as st

from engine.merge import Memory, OutsideAnswer, Pick, best, merge_texts, propose, text_of
from engine.merge.ideas import Rule, ideas
from tests.support.merge_texts import three_texts

LINES = st.lists(
    st.sampled_from(
        [
            b"import os\n",
            b"import re, sys\n",
            b"    f(a, b)\n",
            b"    f(a,  b )\n",
            b'version = "1.2.3"\n',
            b'version = "1.10"\n',
            b"- item\n",
            b"x = [1, 2, 3]\n",
            b"\n",
            b"\xff\x00\n",
            b"caf\xc3\xa9 = 1\r\n",
            b"\t}\n",
        ]
    ),
    max_size=6,
).map(b"".join)


@given(st.one_of(three_texts(), st.tuples(LINES, LINES, LINES)))
def test_every_hunk_gets_sound_proposals(texts: tuple[bytes, bytes, bytes]):
    for hunk in merge_texts(*texts).hunks:
        offers = propose(hunk, asked=[OutsideAnswer("somebody", b"asked\n")])
        assert len({offer.text for offer in offers}) == len(offers) <= 6
        assert all(offer.reason for offer in offers)
        likely = [offer.likely for offer in offers]
        assert likely == sorted(likely, reverse=True)
        assert best(offers) == (offers[0] if likely[0] else None)
        for offer in offers:
            assert offer.same_as is None or text_of(hunk, offer.same_as) == offer.text


@given(st.tuples(LINES, LINES, LINES), st.sampled_from([Pick.TARGET, Pick.BOTH, Pick.BASE]))
def test_what_was_learned_for_a_hunk_comes_back_for_it(
    texts: tuple[bytes, bytes, bytes], pick: Pick
):
    for hunk in merge_texts(*texts).hunks:
        text = text_of(hunk, pick) or b""
        memory = Memory().learned(hunk, text)
        recalled = memory.recall(hunk)
        assert recalled is not None
        assert recalled[0] == text


@given(st.tuples(LINES, LINES, LINES))
@example(
    (
        b"import re, sys\nimport os\n",
        b"import os\nimport re, sys\nimport os\n",
        b'version = "1.2.3"\nimport os\nimport os\n',
    )
)
def test_swapping_the_sides_gives_the_same_one_sided_ideas(texts: tuple[bytes, bytes, bytes]):
    """Compare ideas, not offers: of two rules with the same text an offer names one."""
    base, target, incoming = texts
    sides = {Rule.RENAMED, Rule.NEWER, Rule.CONTAINED, Rule.SUPERSEDED}
    for one, other in zip(
        merge_texts(base, target, incoming).hunks,
        merge_texts(base, incoming, target).hunks,
        strict=True,
    ):
        found = [
            {(idea.rule, idea.text) for idea in ideas(hunk) if idea.rule in sides}
            for hunk in (one, other)
        ]
        assert found[0] == found[1]
