"""Hunks that a formatter resolves: a text for each, and none where the lines around it differ."""

import re

from engine.merge import (
    ConflictKind,
    FileConflict,
    FileSide,
    Formatted,
    HunkKey,
    Idea,
    Rule,
    best,
    formatted_ideas,
    propose,
)

OLD = b"def f(a,b):\n    return a+b\n\n\ndef g(x):\n    return x\n"


def spaced(text: bytes) -> bytes:
    """Format a text: a blank after each comma and around each plus."""
    return re.sub(rb" *\+ *", b" + ", re.sub(rb", *", b", ", text))


def conflict(base: bytes, target: bytes, incoming: bytes) -> FileConflict:
    sides = [
        FileSide(path=b"f.py", mode="100644", blob=str(number), content=text)
        for number, text in enumerate((base, target, incoming))
    ]
    return FileConflict(
        path=b"f.py",
        kind=ConflictKind.CONTENTS,
        base=sides[0],
        target=sides[1],
        incoming=sides[2],
    )


def ideas(base: bytes, target: bytes, incoming: bytes) -> dict[HunkKey, Idea]:
    texts = [spaced(text) for text in (base, target, incoming)]
    found = Formatted("spaced", *texts)
    return dict(formatted_ideas(conflict(base, target, incoming), found))


def test_where_one_side_only_reformatted_the_other_is_proposed_formatted():
    incoming = OLD.replace(b"a+b", b"a+b+1")
    for sides in ((spaced(OLD), incoming), (incoming, spaced(OLD))):
        (hunk,) = conflict(OLD, *sides).hunks
        (idea,) = ideas(OLD, *sides).values()
        first = best(propose(hunk, more=[idea]))
        assert first is not None
        assert (first.rule, first.share) == (Rule.FORMATTED, 0.0)
        assert first.text == b"def f(a, b):\n    return a + b + 1\n"
        assert "only reformatted" in first.reason
        assert first.reason.endswith("a guess")


def test_sides_that_say_different_things_have_no_such_proposal():
    assert ideas(OLD, OLD.replace(b"a+b", b"a+c"), OLD.replace(b"a+b", b"a+d")) == {}
    # One change of two is resolved by the formatter, the other is not.
    two = OLD.replace(b"return x", b"return x+1")
    mine = spaced(OLD).replace(b"return x", b"return x + 2")
    found = ideas(OLD, mine, two.replace(b"a+b", b"a-b"))
    hunks = conflict(OLD, mine, two.replace(b"a+b", b"a-b")).hunks
    assert len(hunks) == 2
    assert [hunk.key in found for hunk in hunks] == [True, False]


def test_where_the_lines_around_a_hunk_differ_when_formatted_nothing_is_proposed():
    base = b"x = 1\nkeep(a,b)\n"
    mine, theirs = b"x = 1 + 0\nkeep(a,b)\n", b"x = 1+0\nkeep(a,b)\n"
    (hunk,) = conflict(base, mine, theirs).hunks
    assert hunk.after == (b"keep(a,b)\n",)
    assert ideas(base, mine, theirs) == {}
