"""A review in progress: deciding, taking back, keeping, and carrying over to a merge made again."""

import json

import pytest

from engine.errors import WorkspaceError
from engine.merge import (
    ConflictKind,
    FileConflict,
    FileResult,
    FileSide,
    HunkAt,
    Origin,
    Pick,
    ResolutionSession,
    Whole,
)

A, B = b"src/a.py", b"src/b.py"
BASE = b"one\ntwo\nthree\nfour\nfive\n"
TARGET = b"one\nTWO\nthree\nfour\nFIVE\n"
INCOMING = b"one\n2\nthree\nfour\n5\n"


def conflict(path: bytes, target: bytes = TARGET, incoming: bytes = INCOMING) -> FileConflict:
    base, mine, theirs = (
        FileSide(path=path, mode="100644", blob=repr(text), content=text)
        for text in (BASE, target, incoming)
    )
    return FileConflict(
        path=path, kind=ConflictKind.CONTENTS, base=base, target=mine, incoming=theirs
    )


@pytest.fixture
def session() -> ResolutionSession:
    return ResolutionSession((conflict(A), conflict(B)))


def content(session: ResolutionSession, path: bytes) -> bytes | None:
    results = session.file_results(path)
    return None if results is None else results[0].content


def test_nothing_is_decided_at_first(session: ResolutionSession):
    assert not session.is_resolved
    assert session.results() is None
    assert len(session.open_hunks(A)) == 2


def test_a_file_is_resolved_when_its_last_hunk_is(session: ResolutionSession):
    once = session.choose(A, 0, "target")
    assert not once.is_file_resolved(A)
    twice = once.choose(A, 1, b"cinq\n")
    assert twice.is_file_resolved(A)
    assert not twice.is_resolved
    assert content(twice, A) == b"one\nTWO\nthree\nfour\ncinq\n"


def test_a_session_is_never_changed_by_deciding(session: ResolutionSession):
    session.choose(A, 0, "target")
    assert session.journal == ()
    assert len(session.open_hunks(A)) == 2


def test_a_later_choice_takes_the_place_of_an_earlier(session: ResolutionSession):
    key = session.conflict(A).hunks[0].key
    again = session.choose(A, key, "target").choose(A, key, "incoming")
    assert again.chosen(A, key) is Pick.INCOMING


def test_undo_and_redo_go_back_and_forth(session: ResolutionSession):
    once = session.choose(A, 0, "target")
    twice = once.choose(A, 1, "incoming")
    assert twice.undo().resolutions == once.resolutions
    assert twice.undo().undo().resolutions == session.resolutions
    assert twice.undo().undo().redo().redo().resolutions == twice.resolutions
    assert session.undo() == session
    assert twice.redo() == twice


def test_a_new_decision_forgets_what_was_undone(session: ResolutionSession):
    fresh = session.choose(A, 0, "target").undo().choose(A, 1, "base")
    assert fresh.redo() == fresh


def test_the_rest_is_decided_and_undone_as_one(session: ResolutionSession):
    kept = session.choose(A, 0, "incoming")
    rest = kept.choose_rest("target")
    assert rest.is_resolved
    assert content(rest, A) == b"one\n2\nthree\nfour\nFIVE\n"
    assert content(rest, B) == TARGET
    assert rest.undo().resolutions == kept.resolutions


def test_the_rest_of_one_file_leaves_the_others(session: ResolutionSession):
    rest = session.choose_rest("both", [A])
    assert rest.is_file_resolved(A)
    assert len(rest.open_hunks(B)) == 2


def test_the_rest_is_combined_only_where_words_allow():
    target = BASE.replace(b"two", b"two words").replace(b"five", b"cinq")
    incoming = BASE.replace(b"two", b"twice, or two").replace(b"five", b"5")
    session = ResolutionSession((conflict(A, target, incoming),)).choose_rest(Pick.COMBINED)
    assert [hunk.base for hunk in session.open_hunks(A)] == [(b"five\n",)]
    assert session.choose_rest(Pick.COMBINED) == session


def test_a_choice_that_does_not_fit_is_refused(session: ResolutionSession):
    with pytest.raises(ValueError, match="does not fit"):
        session.choose(A, 0, "combined")
    with pytest.raises(KeyError):
        session.choose(b"no such file", 0, "target")
    with pytest.raises(ValueError, match="not a choice"):
        session.choose_whole(A, Whole.MOVE)
    with pytest.raises(ValueError, match="only one place"):
        session.choose_place(A, "target")
    with pytest.raises(ValueError, match="not a mode"):
        session.choose_mode(A, "040000")


def test_a_number_for_a_conflict_without_hunks_is_refused_with_the_choices_there_are():
    side = FileSide(path=A, mode="100644", blob="1", content=b"1\n")
    gone = FileConflict(
        path=A, kind=ConflictKind.MODIFY_DELETE, base=side, target=side, incoming=None
    )
    with pytest.raises(ValueError, match="has no hunks; choose a whole version: target, incoming"):
        ResolutionSession((gone,)).choose(A, 0, "target")


def test_a_whole_version_stands_above_hunks_until_a_hunk_is_decided(session: ResolutionSession):
    hunk = session.choose(A, 0, "incoming")
    whole = hunk.choose_whole(A, "target")
    assert content(whole, A) == TARGET
    back = whole.choose(A, 1, "base")
    assert content(back, A) == b"one\n2\nthree\nfour\nfive\n"


def test_a_reopened_hunk_is_open(session: ResolutionSession):
    done = session.choose_rest("target")
    assert [hunk.base for hunk in done.reopen(A, 0).open_hunks(A)] == [(b"two\n",)]
    assert len(done.reopen(A).open_hunks(A)) == 2
    assert done.reopen(A).undo().is_resolved


def test_any_file_can_be_written_deleted_and_taken_back(session: ResolutionSession):
    done = session.choose_rest("target")
    written = done.set_file(A, b"mine\n").set_file(b"other", b"#!\n", mode="100755")
    gone = written.set_file(b"old", None)
    assert gone.results() == (
        FileResult(b"old"),
        FileResult(b"other", "100755", b"#!\n"),
        FileResult(A, "100644", b"mine\n"),
        FileResult(B, "100644", TARGET),
    )
    assert gone.reopen(b"old").results() == written.results()


def test_an_own_file_resolves_its_conflict(session: ResolutionSession):
    own = session.set_file(A, b"mine\n")
    assert own.is_file_resolved(A)
    assert own.open_hunks(A) == ()
    assert session.set_file(A, None).file_results(A) == (FileResult(A),)


def test_the_preview_shows_decisions_and_the_base_of_what_is_open(session: ResolutionSession):
    pieces = session.choose(A, 0, "neither").preview(A)
    assert [piece.origin for piece in pieces] == [
        Origin.SAME,
        Origin.CONFLICT,
        Origin.SAME,
        Origin.CONFLICT,
    ]
    assert pieces[1].lines == ()
    assert pieces[3].lines == (b"five\n",)


def test_a_session_survives_being_written_and_read(session: ResolutionSession):
    full = (
        session.choose(A, 0, "incoming")
        .choose(A, 1, b"\xff raw\n")
        .choose_whole(B, "incoming")
        .set_file(b"\xfe name", b"\x00\xff")
        .set_file(b"gone", None)
        .choose_mode(A, "100755")
        .reopen(A, 0)
        .choose_rest("base")
        .undo()
    )
    text = json.dumps(full.to_json())
    back, carried = ResolutionSession.from_json(json.loads(text), full.conflicts)
    assert back == full
    assert carried.opened == ()
    assert carried.to_look_at == (b"gone", b"\xfe name")


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"version": 2, "journal": [], "undone": []},
        {"version": 1, "journal": {}, "undone": []},
        {"version": 1, "journal": [{"did": "dance"}], "undone": []},
        {"version": 1, "journal": [{"did": "choose", "at": [1], "pick": "base"}], "undone": []},
        {
            "version": 1,
            "journal": [{"did": "dance", "path": "a", "fingerprint": ""}],
            "undone": [],
        },
        {"version": 1, "journal": [{"did": "open_file", "path": 7}], "undone": []},
    ],
)
def test_a_broken_journal_is_refused(broken: dict[str, object], session: ResolutionSession):
    with pytest.raises(ValueError, match=r"journal|packed"):
        ResolutionSession.from_json(broken, session.conflicts)


def test_decisions_survive_a_target_that_moved(session: ResolutionSession):
    decided = session.choose(A, 0, "incoming").choose(A, 1, "target").choose_whole(B, "incoming")
    moved = (conflict(A, b"# new\n" + TARGET.replace(b"FIVE", b"cinq")), conflict(B))
    again, carried = decided.carried_to(moved)
    first, second = decided.conflict(A).hunks
    assert carried.kept == (HunkAt(A, first.key), B)
    assert carried.opened == (HunkAt(A, second.key),)
    assert [hunk.target for hunk in again.open_hunks(A)] == [(b"cinq\n",)]
    assert content(again, B) == INCOMING


def test_a_whole_decision_falls_open_when_a_side_changed(session: ResolutionSession):
    decided = session.choose_whole(A, "target").set_file(B, b"mine\n")
    moved = (conflict(A, TARGET + b"more\n"), conflict(B, TARGET + b"more\n"))
    again, carried = decided.carried_to(moved)
    assert carried.kept == ()
    assert set(carried.opened) == {A, B}
    assert again.resolutions == {}


def test_a_file_written_by_hand_falls_open_when_it_becomes_a_conflict(
    session: ResolutionSession,
):
    decided = session.set_file(b"other", b"mine\n")
    again, carried = decided.carried_to((*session.conflicts, conflict(b"other")))
    assert carried.opened == (b"other",)
    assert not again.is_file_resolved(b"other")


def test_undone_decisions_are_carried_over_too(session: ResolutionSession):
    decided = session.choose(A, 0, "incoming").undo()
    again, carried = decided.carried_to(session.conflicts)
    assert carried.kept == ()
    assert again.redo().chosen(A, 0) is Pick.INCOMING


def moved_file(old: bytes, new: bytes, text: bytes) -> FileConflict:
    base, target, incoming = (
        FileSide(path=name, mode="100644", blob=repr(text), content=text)
        for name in (old, old, new)
    )
    kind = ConflictKind.RENAME_RENAME
    return FileConflict(path=old, kind=kind, base=base, target=target, incoming=incoming)


def test_two_files_at_one_path_are_refused():
    both = (moved_file(b"a", b"c", b"1\n"), moved_file(b"b", b"c", b"2\n"))
    session = ResolutionSession(both).choose_place(b"a", "incoming")
    assert session.choose_place(b"b", "target").results() is not None
    with pytest.raises(WorkspaceError, match="different files at c"):
        session.choose_place(b"b", "incoming").results()


def test_a_path_that_one_conflict_keeps_is_not_deleted_by_another():
    swapped = (moved_file(b"a", b"b", b"1\n"), moved_file(b"b", b"a", b"2\n"))
    session = ResolutionSession(swapped)
    done = session.choose_place(b"a", "incoming").choose_place(b"b", "incoming")
    assert done.results() == (
        FileResult(b"a", "100644", b"2\n"),
        FileResult(b"b", "100644", b"1\n"),
    )
