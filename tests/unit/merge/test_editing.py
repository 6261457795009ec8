"""A file through an editor: what is written, what stays open, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.merge import ConflictKind, FileConflict, FileSide, OwnText, Pick, ResolutionSession

PATH = b"a.py"
BASE = b"one\ntwo\nthree\nfour\nfive\n"
TARGET = b"one\nTWO\nthree\nfour\nFIVE\n"
INCOMING = b"one\n2\nthree\nfour\n5\n"


def make(base: bytes = BASE, target: bytes = TARGET, incoming: bytes = INCOMING) -> FileConflict:
    before, mine, theirs = (
        FileSide(path=PATH, mode="100644", blob=repr(text), content=text)
        for text in (base, target, incoming)
    )
    return FileConflict(
        path=PATH, kind=ConflictKind.CONTENTS, base=before, target=mine, incoming=theirs
    )


@pytest.fixture
def session() -> ResolutionSession:
    return ResolutionSession((make(),))


def text_of(session: ResolutionSession) -> bytes:
    text = session.edit_text(PATH)
    assert text is not None
    return text


def without_block(text: bytes, put: bytes, *, nth: int = 0) -> bytes:
    """The text with its nth block replaced."""
    starts = [place for place in range(len(text)) if text.startswith(b"<<<<<<< ", place)]
    start = starts[nth]
    end = text.index(b"\n", text.index(b">>>>>>> ", start)) + 1
    return text[:start] + put + text[end:]


def content(session: ResolutionSession) -> bytes | None:
    results = session.file_results(PATH)
    return None if results is None else results[0].content


def test_open_hunks_stand_between_markers_with_their_base(session: ResolutionSession):
    first, second = session.conflict(PATH).hunks
    text = text_of(session.choose(PATH, 1, "incoming")).decode()
    assert text.splitlines() == [
        "one",
        f"<<<<<<< target [hunk {first.key}]",
        "TWO",
        f"||||||| base [hunk {first.key}]",
        "two",
        f"======= [hunk {first.key}]",
        "2",
        f">>>>>>> incoming [hunk {first.key}]",
        "three",
        "four",
        "5",
    ]
    assert second.key not in text


def test_leaving_the_text_as_it_is_decides_nothing(session: ResolutionSession):
    assert session.edited(PATH, text_of(session)) == session


def test_writing_one_hunk_decides_it_and_leaves_the_other_open(session: ResolutionSession):
    after = session.edited(PATH, without_block(text_of(session), b"zwei\ndrei\n"))
    assert after.chosen(PATH, 0) == OwnText(b"zwei\ndrei\n")
    assert [hunk.base for hunk in after.open_hunks(PATH)] == [(b"five\n",)]


def test_writing_every_hunk_is_one_decision(session: ResolutionSession):
    text = without_block(without_block(text_of(session), b"zwei\n"), b"")
    after = session.edited(PATH, text)
    assert content(after) == b"one\nzwei\nthree\nfour\n"
    assert after.undo() == ResolutionSession(session.conflicts, (), after.journal)


def test_edits_beside_the_hunks_are_kept_while_hunks_are_open(session: ResolutionSession):
    text = without_block(text_of(session), b"zwei\n").replace(b"three", b"THREE")
    after = session.edited(PATH, text)
    assert not after.is_file_resolved(PATH)
    assert [hunk.base for hunk in after.open_hunks(PATH)] == [(b"five\n",)]
    done = after.choose(PATH, 1, "incoming")
    assert content(done) == b"one\nzwei\nTHREE\nfour\n5\n"
    assert content(done.choose(PATH, 1, "target")) == b"one\nzwei\nTHREE\nfour\nFIVE\n"
    assert done.undo() == ResolutionSession(session.conflicts, after.journal, done.journal[-1:])


def test_deciding_a_hunk_that_an_own_file_holds_no_place_for_puts_the_file_away(
    session: ResolutionSession,
):
    own = session.edited(PATH, without_block(text_of(session), b"zwei\n") + b"more\n")
    back = own.choose(PATH, 0, "target")
    assert back.resolutions[PATH].own is None
    assert back.undo().resolutions == own.resolutions


def test_a_rewritten_file_without_markers_is_resolved(session: ResolutionSession):
    after = session.edited(PATH, b"all new\n")
    assert content(after) == b"all new\n"
    assert after.open_hunks(PATH) == ()


def test_a_marker_left_alone_is_refused_with_its_line(session: ResolutionSession):
    lines = text_of(session).splitlines(keepends=True)
    del lines[5]
    broken = b"".join(lines)
    assert session.edited(PATH, broken).open_hunks(PATH)
    del lines[1]
    with pytest.raises(ValueError, match="line 3: a conflict marker"):
        session.edited(PATH, b"".join(lines))


def test_markers_of_another_file_are_refused(session: ResolutionSession):
    other = ResolutionSession((make(target=TARGET + b"x\n", incoming=INCOMING + b"y\n"),))
    with pytest.raises(ValueError, match="do not belong to this file"):
        session.edited(PATH, text_of(other))


def test_lines_that_only_look_like_markers_are_content():
    base = b"<<<<<<< HEAD\n=======\n>>>>>>> x\na\n"
    session = ResolutionSession((make(base, base + b"t\n", base + b"i\n"),))
    after = session.edited(PATH, without_block(text_of(session), b"both\n", nth=1))
    assert content(after) == base + b"both\n"


def test_the_last_line_without_an_end_stays_so():
    session = ResolutionSession((make(b"a\nb", b"a\nt", b"a\ni"),))
    assert content(session.edited(PATH, without_block(text_of(session), b"x"))) == b"a\nx"


def test_a_chosen_version_is_what_the_editor_gets(session: ResolutionSession):
    chosen = session.choose_whole(PATH, "incoming")
    assert chosen.edit_text(PATH) == INCOMING
    after = chosen.edited(PATH, INCOMING + b"more\n")
    assert content(after) == INCOMING + b"more\n"
    assert session.set_file(PATH, None).edit_text(PATH) is None


def test_the_preview_of_an_own_file_is_that_file(session: ResolutionSession):
    (piece,) = session.set_file(PATH, b"mine\n").preview(PATH)
    assert piece.lines == (b"mine\n",)


def test_written_hunks_are_carried_over_to_a_target_that_moved(session: ResolutionSession):
    text = without_block(without_block(text_of(session), b"zwei\n"), b"cinq\n")
    moved = make(target=TARGET.replace(b"FIVE", b"V"))
    again, carried = session.edited(PATH, text).carried_to((moved,))
    assert len(carried.kept) == len(carried.opened) == 1
    assert again.chosen(PATH, 0) == OwnText(b"zwei\n")


TEXTS = st.lists(st.sampled_from([b"a\n", b"two\n", b"TWO\n", b"\n"]), max_size=3).map(b"".join)


@given(TEXTS, TEXTS)
def test_what_is_written_for_every_hunk_is_what_the_file_holds(first: bytes, second: bytes):
    session = ResolutionSession((make(),))
    edited = without_block(without_block(text_of(session), first), second)
    assert content(session.edited(PATH, edited)) == edited


@given(st.lists(st.sampled_from(list(Pick)[:4]), min_size=2, max_size=2))
def test_what_an_editor_is_given_is_the_result_when_all_is_decided(picks: list[Pick]):
    session = ResolutionSession((make(),))
    for place, pick in enumerate(picks):
        session = session.choose(PATH, place, pick)
    assert text_of(session) == content(session)
