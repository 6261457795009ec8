"""Hunks of candidates: alike, alternatives, composites, refusals."""

import pytest

from engine.merge import CandidateHunk, Composite, HunkKey, Version, Weaving, WeavingRefused, weave

PATH = b"api.py"
BASE = b"import a\n\n\ndef get():\n    return 1\n\n\ndef put():\n    return 2\n"


@pytest.fixture
def weaving() -> Weaving:
    return weave(
        {PATH: Version(BASE)},
        {
            "A": {PATH: Version(BASE.replace(b"return 1", b"return one()"))},
            "B": {
                PATH: Version(
                    BASE.replace(b"return 1", b"return one()  ").replace(b"return 2", b"return 22")
                )
            },
            "C": {
                PATH: Version(
                    BASE.replace(b"return 1", b"yield 1").replace(b"return 2", b"return 22")
                ),
                b"new.py": Version(b"new\n"),
            },
        },
    )


def content(made: Composite | WeavingRefused) -> bytes:
    assert isinstance(made, Composite)
    version = made.files[PATH]
    assert version is not None
    return version.content


def hunk_of(weaving: Weaving, *candidates: str, line: int) -> CandidateHunk:
    (found,) = [
        hunk
        for hunk in weaving.hunks
        if hunk.start == line and hunk.candidates == candidates and hunk.path == PATH
    ]
    return found


def test_equal_hunks_are_one_and_blanks_at_line_ends_make_them_alike(weaving: Weaving):
    assert hunk_of(weaving, "B", "C", line=8).alike == ("B", "C")
    assert hunk_of(weaving, "A", line=4).alike == ("A", "B")
    assert hunk_of(weaving, "C", line=4).alike == ("C",)


def test_alternatives_stand_in_one_spot(weaving: Weaving):
    assert [(spot.path, spot.start, len(spot.hunks)) for spot in weaving.spots] == [
        (PATH, 4, 3),
        (PATH, 8, 1),
        (b"new.py", 0, 1),
    ]


def test_agreed_hunks_are_those_of_enough_candidates(weaving: Weaving):
    assert {hunk.start for hunk in weaving.agreed(2)} == {4, 8}
    assert weaving.agreed(3) == ()


def test_a_composite_takes_hunks_from_several(weaving: Weaving):
    made = weaving.compose(
        [hunk_of(weaving, "A", line=4).key, hunk_of(weaving, "B", "C", line=8).key]
    )
    assert content(made) == BASE.replace(b"return 1", b"return one()").replace(b" 2", b" 22")
    assert isinstance(made, Composite)
    assert made.taken == {"A": 1, "B": 1, "C": 1}


def test_alternatives_together_are_refused_with_names_and_place(weaving: Weaving):
    made = weaving.compose([hunk_of(weaving, "A", line=4).key, hunk_of(weaving, "C", line=4).key])
    assert isinstance(made, WeavingRefused)
    assert "change the same lines of api.py, at line 5" in made.reason
    assert len(made.clashes) == 1


def test_two_insertions_into_one_gap_are_refused_because_nothing_orders_them():
    made_of = {name: {PATH: Version(b"a\n" + line + b"b\n")} for name, line in INSERTED.items()}
    weaving = weave({PATH: Version(b"a\nb\n")}, made_of)
    assert isinstance(weaving.compose(hunk.key for hunk in weaving.hunks), WeavingRefused)


INSERTED = {"A": b"x\n", "B": b"y\n"}


def test_neighboring_lines_may_come_from_different_candidates():
    weaving = weave(
        {PATH: Version(b"a\nb\n")},
        {"A": {PATH: Version(b"A\nb\n")}, "B": {PATH: Version(b"a\nB\n")}},
    )
    assert content(weaving.compose(hunk.key for hunk in weaving.hunks)) == b"A\nB\n"


def test_an_unended_last_line_does_not_run_into_what_another_candidate_appends():
    weaving = weave(
        {PATH: Version(b"a\nb\n")},
        {"A": {PATH: Version(b"a\nB")}, "B": {PATH: Version(b"a\nb\nc\n")}},
    )
    assert content(weaving.compose(hunk.key for hunk in weaving.hunks)) == b"a\nB\nc\n"


def test_deleting_a_file_excludes_changing_it():
    weaving = weave({PATH: Version(b"a\n")}, {"A": {PATH: None}, "B": {PATH: Version(b"b\n")}})
    deleted = next(hunk for hunk in weaving.hunks if hunk.whole)
    assert weaving.compose([deleted.key]) == Composite({PATH: None}, {"A": 1, "B": 0})
    assert isinstance(weaving.compose(hunk.key for hunk in weaving.hunks), WeavingRefused)


def test_a_mode_goes_with_anothers_lines():
    weaving = weave(
        {PATH: Version(b"a\n")},
        {"A": {PATH: Version(b"a\n", "100755")}, "B": {PATH: Version(b"b\n")}},
    )
    made = weaving.compose(hunk.key for hunk in weaving.hunks)
    assert isinstance(made, Composite)
    assert made.files == {PATH: Version(b"b\n", "100755")}


def test_nothing_chosen_changes_nothing(weaving: Weaving):
    assert weaving.compose([]) == Composite({}, {"A": 0, "B": 0, "C": 0})


def test_an_unknown_key_is_an_error(weaving: Weaving):
    with pytest.raises(KeyError):
        weaving.compose([HunkKey("nonsense")])
