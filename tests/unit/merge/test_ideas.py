"""Single rules: what each comes to, and when it says nothing."""

import pytest

from engine.merge import Rule, propose
from engine.merge.ideas import ideas
from engine.merge.text import ConflictHunk, merge_texts
from tests.support.merge_texts import one_hunk


def said(hunk: ConflictHunk, rule: Rule) -> list[bytes]:
    return [idea.text for idea in ideas(hunk) if idea.rule is rule]


def test_lines_that_both_took_away_contain_those_that_one_took_away():
    hunk = one_hunk("a()\nb()\n", "", "b()\n")
    assert said(hunk, Rule.CONTAINED) == [b""]


def test_a_side_that_keeps_what_the_other_took_away_contains_nothing():
    hunk = one_hunk("f(x)\n", "g(x)\n", "f(x, y)\n")
    assert said(hunk, Rule.CONTAINED) == []


def test_a_small_change_in_rewritten_lines_is_superseded():
    old = "for item in self.items:\n    push(item.entry)\n"
    new = "entries = order(catalog, context)\nif catalog.is_native:\n    reorder(entries)\n"
    hunk = one_hunk(old, new, old.replace("item.entry", "item.value"))
    assert said(hunk, Rule.SUPERSEDED) == [new.encode()]


def test_a_large_change_is_not_superseded_by_a_removal():
    old = "a b c\n"
    assert said(one_hunk(old, "", "x y z and more of it\n"), Rule.SUPERSEDED) == []


def test_two_new_names_for_one_thing_are_no_renaming_of_the_other_side():
    assert said(one_hunk("line 5\n", "mine 5\n", "theirs 5\n"), Rule.RENAMED) == []


def test_names_are_given_to_what_the_other_side_added():
    hunk = one_hunk("x = old(1)\n", "x = new(1)\n", "x = old(1) + old(2)\n")
    assert said(hunk, Rule.RENAMED) == [b"x = new(1) + new(2)\n"]


def test_names_changed_in_one_place_only_are_not_a_renaming():
    hunk = one_hunk("a = old + old\n", "a = new + old\n", "a = old + old + 1\n")
    assert said(hunk, Rule.RENAMED) == []


def test_higher_numbers_on_different_sides_decide_nothing():
    assert said(one_hunk("v = 1, 1\n", "v = 2, 3\n", "v = 3, 2\n"), Rule.NEWER) == []


@pytest.mark.parametrize(
    ("lower", "higher"),
    [("1.9", "1.10"), ("1.0rc1", "1.0"), ("2.0.dev3", "2.0.dev12"), ("2024.1", "2024.1.1")],
)
def test_versions_compare_as_versions(lower: str, higher: str):
    hunk = one_hunk('v = "0"\n', f'v = "{lower}"\n', f'v = "{higher}"\n')
    assert said(hunk, Rule.NEWER) == [f'v = "{higher}"\n'.encode()]


def test_blanks_that_fit_no_longer_are_dropped():
    hunk = one_hunk("start(sink)\n", "start(sink)\n\n", "start(*sink)\n")
    assert said(hunk, Rule.WHITESPACE) == [b"start(*sink)\n"]


def test_words_are_combined_with_and_without_the_blanks_that_follow_them():
    base = "art = make_unique(ids,\n                  true, id)\n"
    target = base.replace("true, ", "")
    incoming = base.replace("make_unique", "make_uniq").replace(" " * 18, " " * 16)
    calm, exact = said(one_hunk(base, target, incoming), Rule.WORDS)
    assert calm == b"art = make_uniq(ids,\n                  id)\n"
    assert exact == b"art = make_uniq(ids,\n                id)\n"


def test_what_has_two_readings_is_not_likely():
    base = "art = make_unique(ids,\n                  true, id)\n"
    target = base.replace("true, ", "")
    incoming = base.replace("make_unique", "make_uniq").replace(" " * 18, " " * 16)
    assert not any(offer.likely for offer in propose(one_hunk(base, target, incoming)))


def test_lines_taken_away_where_others_were_put_in_are_not_likely():
    hunk = one_hunk("#include <queue.h>\n", "", "#include <queue.h>\n#include <socket.h>\n")
    assert not any(offer.likely for offer in propose(hunk))


def test_where_both_changed_a_line_one_side_is_favored_and_the_rest_kept():
    hunk = one_hunk("a\nb\nc\n", "A\nB\nc\n", "a\n2\nC\n")
    assert set(said(hunk, Rule.FAVORED)) == {b"A\nB\nC\n", b"A\n2\nC\n"}


def test_blocks_are_put_one_after_the_other_with_the_blank_lines_above_them():
    merge = merge_texts(
        b"x = 1\n\n\n",
        b"x = 1\n\n\ndef a():\n    pass\n",
        b"x = 1\n\n\ndef b():\n    pass\n",
    )
    (hunk,) = merge.hunks
    assert said(hunk, Rule.BOTH) == [b"def a():\n    pass\n\n\ndef b():\n    pass\n"]


def test_settings_and_requirements_are_lists():
    hunk = one_hunk("", "click>=8\n", "anyio==4.1\n")
    assert said(hunk, Rule.LIST) == [b"click>=8\nanyio==4.1\n"]


def test_a_setting_that_both_changed_is_no_list():
    assert said(one_hunk("size = 1\n", "size = 2\n", "size = 3\n"), Rule.LIST) == []


@pytest.mark.parametrize("base", ["", "{}1\n"])
@pytest.mark.parametrize(
    "key", ["flask==", "flask[async]>=", "flask<", "export A=", "A=", '"a": ', "a: "]
)
def test_a_value_that_both_gave_one_key_is_never_kept_twice(key: str, base: str):
    mine, theirs = f"{key}2\n", f"{key}3\n"
    hunk = one_hunk(base.format(key), f"{mine}zoo=1\n", f"{theirs}ape=1\n")
    texts = [idea.text.decode() for idea in ideas(hunk)]
    assert not [text for text in texts if mine in text and theirs in text]


def test_values_that_build_on_the_one_before_are_kept_both():
    mine, theirs = "export PATH=/a:$PATH\n", "export PATH=/b:${PATH}\n"
    both = (mine + theirs).encode()
    assert both in [idea.text for idea in ideas(one_hunk("", mine, theirs))]


def test_statements_are_no_list():
    assert said(one_hunk("", "run(a)\n", "run(b)\n"), Rule.LIST) == []


def test_items_in_nested_brackets_are_no_simple_list():
    hunk = one_hunk("f(a, (b, c))\n", "f(a, (b, c), d)\n", "f(a, (b, c), e)\n")
    assert said(hunk, Rule.LIST) == []
