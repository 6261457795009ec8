"""Taking hunks back: all of them give the old text, none the new one, and the order is nothing."""

from difflib import diff_bytes, unified_diff

from hypothesis import given
from hypothesis import strategies as st

from engine.git.diff import FileHunk, PatchLine, hunks_of
from engine.review.in_hand import without

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b"\x0c\n"]), max_size=30)


def hunks_between(old: list[bytes], new: list[bytes]) -> list[FileHunk]:
    made = list(diff_bytes(unified_diff, old, new))
    return list(hunks_of(b"".join(made[2:]).split(b"\n")[:-1]))


@given(texts, texts, st.data())
def test_hunks_taken_back_give_the_old_text_whatever_the_order(
    old: list[bytes], new: list[bytes], data: st.DataObject
):
    hunks = hunks_between(old, new)
    text = b"".join(new)
    assert without(text, []) == text
    assert without(text, hunks) == b"".join(old)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(hunks), max_size=len(hunks)))
    some = [hunk for hunk, is_chosen in zip(hunks, chosen, strict=True) if is_chosen]
    one_by_one = text
    for hunk in reversed(some):
        one_by_one = without(one_by_one, [hunk])
    assert without(text, some) == one_by_one


def test_a_last_line_without_its_end_comes_back_without_it():
    lines = (PatchLine("-", b"old", has_newline=False), PatchLine("+", b"new"))
    assert without(b"new\n", [FileHunk((1, 1), (1, 1), b"", lines)]) == b"old"
