"""Remembered answers: when they come back, in what form, and how they are got rid of."""

import json

import pytest

from engine.merge import ConflictHunk, Memory, Rule, propose
from engine.merge.text import merge_texts
from tests.support.merge_texts import one_hunk


@pytest.fixture
def hunk() -> ConflictHunk:
    return one_hunk("    x = 1\n", "    x = 2\n", "    x = 3\n")


def recalled(memory: Memory, hunk: ConflictHunk) -> bytes | None:
    found = memory.recall(hunk)
    return found[0] if found else None


def test_an_empty_memory_recalls_nothing(hunk: ConflictHunk):
    assert Memory().recall(hunk) is None


def test_an_answer_comes_back_for_the_same_hunk(hunk: ConflictHunk):
    assert recalled(Memory().learned(hunk, b"    x = 23\n"), hunk) == b"    x = 23\n"


def test_an_answer_comes_back_with_the_sides_swapped(hunk: ConflictHunk):
    swapped = one_hunk("    x = 1\n", "    x = 3\n", "    x = 2\n")
    assert recalled(Memory().learned(hunk, b"    x = 23\n"), swapped) == b"    x = 23\n"


def test_an_answer_comes_back_with_the_indentation_of_the_place(hunk: ConflictHunk):
    deeper = one_hunk("\tx = 1\n", "\tx = 2\n", "\tx = 3 \n")
    assert recalled(Memory().learned(hunk, b"    x = 23\n"), deeper) == b"\tx = 23\n"


def test_other_texts_recall_nothing(hunk: ConflictHunk):
    other = one_hunk("    x = 1\n", "    x = 2\n", "    x = 4\n")
    assert Memory().learned(hunk, b"    x = 23\n").recall(other) is None


def test_two_lines_in_place_of_one_are_other_texts():
    joined, apart = one_hunk("a\n", "b\n", "c\n"), one_hunk("a\n", "b\n\n", "c\n")
    assert Memory().learned(joined, b"x\n").recall(apart) is None


def test_another_answer_takes_the_place_of_the_first(hunk: ConflictHunk):
    memory = Memory().learned(hunk, b"    a\n").learned(hunk, b"    a\n").learned(hunk, b"    b\n")
    (known,) = memory
    assert (known.text, known.times) == (b"b\n", 1)


def test_an_answer_that_does_not_fit_the_indentation_is_not_kept(hunk: ConflictHunk):
    assert len(Memory().learned(hunk, b"x = 23\n")) == 0


def test_an_answer_can_be_confirmed_and_forgotten(hunk: ConflictHunk):
    memory = Memory().learned(hunk, b"    a\n")
    (known,) = memory
    assert [entry.confirmed for entry in memory.confirmed(known.key)] == [True]
    assert len(memory.forgotten(known.key)) == 0
    assert len(memory) == 1


def test_a_confirmation_does_not_cover_another_answer(hunk: ConflictHunk):
    memory = Memory().learned(hunk, b"    a\n")
    (known,) = memory
    changed = memory.confirmed(known.key).learned(hunk, b"    b\n")
    assert [entry.confirmed for entry in changed] == [False]


def test_a_memory_survives_being_written_and_read(hunk: ConflictHunk):
    memory = Memory().learned(hunk, b"    \xff\n", note="12 November")
    assert Memory.from_json(json.loads(json.dumps(memory.to_json()))) == memory


def test_a_memory_of_another_version_is_refused():
    with pytest.raises(ValueError, match="version"):
        Memory.from_json({"version": 9, "answers": []})


def test_a_remembered_answer_is_offered_first_with_its_note(hunk: ConflictHunk):
    memory = Memory().learned(hunk, b"    x = 23\n", note="12 November")
    first, *_ = propose(hunk, memory=memory)
    assert (first.rule, first.text, first.likely) == (Rule.REMEMBERED, b"    x = 23\n", True)
    assert first.reason == "as you chose before: 12 November"


def test_a_hunk_of_blank_lines_can_be_remembered():
    (blank,) = merge_texts(b"a\n\nb\n", b"a\n\n\n\nb\n", b"a\nb\n").hunks
    assert recalled(Memory().learned(blank, b"\n\n"), blank) == b"\n\n"
