"""Test what the decisions before a hunk make likely for it."""

from engine.merge import (
    ConflictKind,
    FileConflict,
    FileSide,
    Lessons,
    Pick,
    Proposal,
    Refusals,
    ResolutionSession,
    Rule,
    habit_after,
    lessons,
    pick_of,
    propose,
    with_lessons,
)
from engine.merge.text import merge_texts

T, N, B = Pick.TARGET, Pick.INCOMING, Pick.BOTH
PLACES = 5
LONE = merge_texts(b"a\n", b"b()\n", b"c()\n").hunks[0]


def side(word: bytes) -> FileSide:
    """A file with five places that all differ from the other sides', lines apart."""
    lines = (b"%s %d\n\n%d\n\n" % (word, number, number) for number in range(PLACES))
    return FileSide(path=b"f", mode="100644", blob=word.decode(), content=b"".join(lines))


def conflict(path: bytes = b"f") -> FileConflict:
    sides = {"base": side(b"base"), "target": side(b"mine"), "incoming": side(b"theirs")}
    return FileConflict(path=path, kind=ConflictKind.CONTENTS, **sides)


def offered(session: ResolutionSession, at: int, path: bytes = b"f") -> tuple[Proposal, ...]:
    hunk = session.conflict(path).hunks[at]
    learned = lessons(session, propose).get((path, hunk.key), Lessons())
    return with_lessons(propose(hunk), hunk, learned)


def test_the_side_that_was_taken_before_is_under_the_cursor():
    session = ResolutionSession((conflict(),))
    assert not any(one.rule is Rule.LIKEWISE for one in offered(session, 2))
    session = session.choose(b"f", 0, "incoming").choose(b"f", 1, "incoming")
    first, *_ = offered(session, 2)
    assert (first.rule, first.likely, first.same_as) == (Rule.LIKEWISE, True, N)
    assert first.text == b"theirs 2\n"
    assert first.reason == "you took the incoming side just before, in this file"
    assert first.share > 0.75


def test_a_habit_ends_with_another_decision_and_comes_back_with_undo():
    session = ResolutionSession((conflict(),))
    session = session.choose(b"f", 0, "target").choose(b"f", 1, "target")
    broken = session.choose(b"f", 2, b"something else\n")
    assert not any(one.rule is Rule.LIKEWISE for one in offered(broken, 3))
    assert offered(broken.undo(), 3)[0].rule is Rule.LIKEWISE


def test_a_hunk_that_is_decided_has_no_habit_and_none_comes_from_below():
    session = ResolutionSession((conflict(),)).choose(b"f", 3, "target")
    keys = [hunk.key for hunk in session.conflict(b"f").hunks]
    learned = lessons(session, propose)
    assert keys[3] not in {key for _, key in learned}
    assert [key for (_, key), one in learned.items() if one.habit] == [keys[4]]


def test_a_side_taken_three_times_goes_on_in_the_next_file():
    session = ResolutionSession((conflict(b"a"), conflict(b"b")))
    for place in range(3):
        session = session.choose(b"a", place, "target")
    first = offered(session, 0, b"b")[0]
    assert (first.rule, first.same_as) == (Rule.LIKEWISE, T)
    assert first.reason == "you took the target side just before, in the files before this one"


def test_the_text_of_a_side_counts_and_not_the_key_that_made_it():
    session = ResolutionSession((conflict(),))
    session = session.choose(b"f", 0, b"mine 0\n").choose(b"f", 1, b"mine 1\n")
    assert offered(session, 2)[0].same_as is T


def test_habits_are_counted_up_to_three():
    assert habit_after([], []) is None
    assert habit_after([T, None], []) is None
    for before, times, is_mixed in (
        ([T], 1, False),
        ([T, T], 2, False),
        ([T, T, T, T], 3, False),
        ([N, T, T], 2, True),
        ([None, T], 1, True),
    ):
        found = habit_after(before, [N, N, N])
        assert found is not None
        assert (found.pick, found.times, found.is_mixed) == (T, times, is_mixed), before
        assert found.is_in_file
    found = habit_after([], [N, N, N])
    assert found is not None
    assert (found.pick, found.is_in_file) == (N, False)


def test_a_habit_that_was_seldom_right_is_no_offer():
    """Both sides taken once say little of the next place."""
    habit = habit_after([B], [])
    assert with_lessons(propose(LONE), LONE, Lessons(habit)) == propose(LONE)


def test_a_habit_never_stands_above_what_is_surer():
    hunk = merge_texts(b"1\n", b"same()\n", b"other()\n").hunks[0]
    habit = habit_after([T, T, T], [])
    sure = Proposal(Rule.REMEMBERED, b"as before\n", "as you chose before", likely=True)
    weak = Proposal(Rule.UNION, b"x\n", "both", likely=False, share=0.2)
    rules = [one.rule for one in with_lessons((sure, weak), hunk, Lessons(habit))]
    assert rules == [Rule.REMEMBERED, Rule.LIKEWISE, Rule.UNION]


def test_one_text_is_offered_once_with_both_reasons():
    hunk = LONE
    habit = habit_after([T, T, T], [])
    own = Proposal(Rule.SUPERSEDED, b"b()\n", "goes further", likely=True, same_as=T, share=0.6)
    (only,) = with_lessons((own,), hunk, Lessons(habit))
    assert (only.rule, only.also) == (Rule.LIKEWISE, (Rule.SUPERSEDED,))


def test_nothing_is_taken_away_by_habit():
    hunk = merge_texts(b"a\n", b"", b"c\n").hunks[0]
    assert pick_of(hunk, b"") is T
    assert with_lessons((), hunk, Lessons(habit_after([T, T, T], []))) == ()


def test_a_rule_that_was_turned_down_twice_in_a_row_is_no_longer_under_the_cursor():
    offer = Proposal(Rule.NEWER, b"2\n", "higher", likely=True, share=0.9)
    other = Proposal(Rule.WORDS, b"3\n", "words", likely=True, share=0.6)
    refusals = Refusals()
    for text, refused in ((b"x", False), (b"2\n", False), (b"x", False), (b"x", True)):
        refusals.add((offer,), text)
        assert (Rule.NEWER in refusals.rules) is refused
    refusals.add((other,), b"3\n")
    first, second = with_lessons((offer, other), LONE, Lessons(None, refusals.rules))
    assert (first.rule, first.likely, second.rule, second.likely) == (
        Rule.WORDS,
        True,
        Rule.NEWER,
        False,
    )
    refusals.add((offer,), b"2\n")
    assert with_lessons((offer, other), LONE, Lessons(None, refusals.rules)) == (offer, other)
