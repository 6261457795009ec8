"""Test what is offered for a hunk, why, and what stands under the cursor."""

import pytest

from engine.merge import OutsideAnswer, Pick, Proposal, Rule, best, propose
from engine.merge.shares import SHARES, share
from engine.merge.text import ConflictHunk, merge_texts
from tests.support.merge_texts import one_hunk


def first(hunk: ConflictHunk) -> Proposal | None:
    return best(propose(hunk))


RULES: list[tuple[Rule, str, str, str, str]] = [
    (
        Rule.WORDS,
        "def read(f, size):\n",
        "def read(file, size):\n".replace("file", "f: File"),
        "def read(f, size=None):\n",
        "def read(f: File, size=None):\n",
    ),
    (
        Rule.LIST,
        "from csvlite import ParseError, Span\n",
        "from csvlite import LimitError, ParseError, Span\n",
        "from csvlite import ParseError, Span, StreamError\n",
        "from csvlite import LimitError, ParseError, Span, StreamError\n",
    ),
    (
        Rule.WHITESPACE,
        "a()\nb()\n",
        "    a()\n    b()\n",
        "a()\nb(1)\nc()\n",
        "    a()\n    b(1)\n    c()\n",
    ),
    (
        Rule.RENAMED,
        "x = load(f)\nuse(x)\n",
        "x = read(f)\nuse(x)\n",
        "x = load(f)\nuse(x, load)\n",
        "x = read(f)\nuse(x, read)\n",
    ),
    (
        Rule.CONTAINED,
        "",
        "import os\nimport sys  # and more\n",
        "import os\nimport re\nimport sys  # and more\n",
        "import os\nimport re\nimport sys  # and more\n",
    ),
    (
        Rule.LIST,
        '  "rich"\n',
        '  "rich",\n  "pydantic"\n',
        '  "rich",\n  "structlog"\n',
        '  "rich",\n  "pydantic",\n  "structlog"\n',
    ),
    (Rule.NEWER, 'v = "1.9.2"\n', 'v = "1.10.0"\n', 'v = "1.9.3"\n', 'v = "1.10.0"\n'),
    (Rule.NEWER, 'v = "1"\n', 'v = "2.0rc1"\n', 'v = "2.0"\n', 'v = "2.0"\n'),
]


SELDOM = (2, 3)
"""Good answers to look at: in real merges people wrote something else as often, or more often."""


@pytest.mark.parametrize("example", [RULES[number] for number in SELDOM])
def test_an_answer_that_was_seldom_right_is_offered_and_not_under_the_cursor(
    example: tuple[Rule, str, str, str, str],
):
    rule, base, target, incoming, text = example
    offers = propose(one_hunk(base, target, incoming))
    (offered,) = [one for one in offers if one.text == text.encode()]
    assert rule in (offered.rule, *offered.also)
    assert offered.share <= 0.5
    assert best(offers) != offered


@pytest.mark.parametrize("example", [one for n, one in enumerate(RULES) if n not in SELDOM])
def test_a_likely_answer_is_under_the_cursor_with_its_rule(
    example: tuple[Rule, str, str, str, str],
):
    rule, base, target, incoming, text = example
    offered = first(one_hunk(base, target, incoming))
    assert offered is not None
    assert offered.text == text.encode()
    assert rule in (offered.rule, *offered.also)
    assert offered.reason


def test_sorted_lines_are_united_in_their_order():
    around = "import aa\nimport {}\nimport zz\n"
    texts = (around.format(name).encode() for name in ("mm", "mm\nimport nn", "bb\nimport mm"))
    merge = merge_texts(b"import aa\nimport zz\n", *list(texts)[1:])
    (hunk,) = merge.hunks
    offered, *_ = propose(hunk)
    assert offered.text == b"import bb\nimport mm\nimport nn\n"


def test_what_one_side_removed_stays_out_of_a_list():
    hunk = one_hunk("f([a, b, c])\n", "f([a, c, d])\n", "f([a, b, c, e])\n")
    assert b"f([a, c, d, e])\n" in [offer.text for offer in propose(hunk)]


def test_neighboring_edits_are_offered_together():
    hunk = one_hunk("one = 1\ntwo = 2\n", "uno = 1\ntwo = 2\n", "one = 1\ntwo = zwei()\n")
    offers = propose(hunk)
    assert offers[0].text == b"uno = 1\ntwo = zwei()\n"
    assert {offers[0].rule, *offers[0].also} >= {Rule.ADJACENT, Rule.WORDS}


def test_the_same_text_on_both_sides_is_offered_and_not_taken():
    base = b"1\na\nx\na\n2\n"
    hunk = one_hunk("p\n", "q\n", "r\n")._replace(incoming=(b"q\n",))
    assert merge_texts(base, base, base).hunks == ()
    assert first(hunk) == Proposal(
        Rule.ALIKE, b"q\n", "both sides wrote the same", likely=True, same_as=Pick.TARGET
    )


def test_lines_that_a_side_took_away_are_not_taken_away_by_the_first_key():
    whole = "def load(path):\n    with open(path) as file:\n        return parse(file)\n"
    assert first(one_hunk(whole, "", whole.replace("open(path)", "open(path, 'rb')"))) is None


def test_what_was_wrong_more_often_than_right_is_never_under_the_cursor():
    for name, found in SHARES.items():
        assert 0.0 <= found <= 1.0, name
    for _, base, target, incoming, _ in RULES:
        for offer in propose(one_hunk(base, target, incoming)):
            is_guess = offer.rule is Rule.LIST and not offer.share
            assert offer.share >= 0.5 or not offer.likely or is_guess


def test_a_guess_is_not_told_as_a_count():
    (longer,) = [rule for rule in RULES if "structlog" in rule[4]]
    offered = first(one_hunk(*longer[1:4]))
    assert offered is not None
    assert offered.share == 0.0


def test_a_rule_with_others_on_its_side_is_judged_by_its_most_exact_case():
    assert share(("no such case", "newer, side")) == SHARES["newer, side"]
    assert share(("no such case",)) == 0.0


def test_numbers_beside_the_sign_for_a_number_do_not_stop_the_rules():
    """The rule for higher numbers took a number sign in the text for a number, and died."""
    assert propose(one_hunk("v = 1\n", "v = #\n", "v = 2\n")) is not None


def test_nothing_is_under_the_cursor_when_nothing_is_likely():
    hunk = one_hunk("return old(value)\n", "raise TypeError\n", "yield from items\n")
    assert first(hunk) is None


def test_a_text_that_one_key_makes_is_offered_only_when_likely():
    for rule, base, target, incoming, _ in RULES:
        hunk = one_hunk(base, target, incoming)
        for offer in propose(hunk):
            assert offer.likely or offer.same_as is None, rule


def test_asked_answers_are_offered_with_their_author_and_never_above_likely_ones():
    hunk = one_hunk(*RULES[0][1:4])
    offers = propose(hunk, asked=[OutsideAnswer("claude", b"asked\n")])
    assert offers[0].rule is not Rule.ASKED
    (asked,) = [offer for offer in offers if offer.rule is Rule.ASKED]
    assert asked.reason == "proposed by claude"
    assert not asked.likely


def test_no_text_is_offered_twice_and_no_more_than_six():
    for _, base, target, incoming, _ in RULES:
        answers = [OutsideAnswer("x", b"%d\n" % number) for number in range(9)]
        offers = propose(one_hunk(base, target, incoming), asked=answers)
        texts = [offer.text for offer in offers]
        assert len(texts) == len(set(texts))
        assert len(offers) == 6


def test_a_very_long_hunk_is_not_searched():
    long = "".join(f"line {number}\n" for number in range(200))
    hunk = one_hunk("x\n", long, long.replace("line", "row"))
    assert propose(hunk) == ()
