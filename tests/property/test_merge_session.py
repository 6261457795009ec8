"""Sessions under any sequence of decisions: undo is exact, journals tell everything."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.merge import ConflictKind, FileConflict, FileSide, Pick, ResolutionSession, merge_texts
from tests.support.merge_texts import three_texts

A, B = b"a", b"b"


def conflict(path: bytes, texts: tuple[bytes, bytes, bytes]) -> FileConflict:
    base, target, incoming = (
        FileSide(path=path, mode="100644", blob=repr(text), content=text) for text in texts
    )
    return FileConflict(
        path=path, kind=ConflictKind.CONTENTS, base=base, target=target, incoming=incoming
    )


TEXTS = three_texts().filter(lambda texts: bool(merge_texts(*texts).hunks))


class Reviewing(RuleBasedStateMachine):
    """A human who decides, takes back, restarts, and looks."""

    def __init__(self) -> None:
        super().__init__()
        base = b"1\n2\n3\n4\n5\n"
        self.session = ResolutionSession(
            (
                conflict(A, (base, b"x\n2\nx\n4\nx\n", b"y\n2\ny\n4\ny\n")),
                conflict(B, (base, b"1\nt\n3\n4\n5\n", b"1\ni\n3\n4\n5\n")),
            )
        )
        self.past = [self.session]

    def _decide(self, session: ResolutionSession) -> None:
        if session != self.session:
            self.past = [*self.past[: len(self.session.journal) + 1], session]
            self.session = session

    @rule(hunk=st.integers(0, 2), pick=st.sampled_from([p for p in Pick if p != "combined"]))
    def choose(self, hunk: int, pick: Pick) -> None:
        self._decide(self.session.choose(A, hunk, pick))

    @rule(text=st.binary(max_size=4))
    def write_own(self, text: bytes) -> None:
        self._decide(self.session.choose(B, 0, text))

    @rule(pick=st.sampled_from(["target", "both", "combined"]))
    def choose_the_rest(self, pick: str) -> None:
        self._decide(self.session.choose_rest(pick))

    @rule(path=st.sampled_from([A, B]), whole=st.sampled_from(["target", "incoming", "union"]))
    def choose_whole(self, path: bytes, whole: str) -> None:
        self._decide(self.session.choose_whole(path, whole))

    @rule(path=st.sampled_from([A, B, b"other"]), content=st.none() | st.binary(max_size=3))
    def set_file(self, path: bytes, content: bytes | None) -> None:
        self._decide(self.session.set_file(path, content))

    @rule(path=st.sampled_from([A, B]))
    def reopen(self, path: bytes) -> None:
        self._decide(self.session.reopen(path))

    @rule(place=st.integers(0, 40), put=st.sampled_from([b"", b"new\n", b"x\ny\n"]))
    def edit(self, place: int, put: bytes) -> None:
        lines = (self.session.edit_text(A) or b"").splitlines(keepends=True)
        lines[place : place + 8] = [put]
        try:
            self._decide(self.session.edited(A, b"".join(lines)))
        except ValueError as refused:
            assert "marker" in str(refused)  # noqa: PT017 - most edits are taken

    @rule()
    def undo(self) -> None:
        self.session = self.session.undo()

    @rule()
    def redo(self) -> None:
        self.session = self.session.redo()

    @rule()
    def restart(self) -> None:
        text = json.dumps(self.session.to_json())
        back, carried = ResolutionSession.from_json(json.loads(text), self.session.conflicts)
        assert back == self.session
        assert not carried.opened
        self.session = back

    @precondition(lambda self: self.session.is_resolved)
    @rule()
    def land(self) -> None:
        results = self.session.results()
        assert results is not None
        assert {result.path for result in results} >= {A, B}

    @invariant()
    def what_is_decided_is_what_it_was_then(self) -> None:
        then = self.past[len(self.session.journal)]
        assert self.session.resolutions == then.resolutions
        assert self.session.results() == then.results()

    @invariant()
    def open_and_decided_never_overlap(self) -> None:
        for path in (A, B):
            still_open = {hunk.key for hunk in self.session.open_hunks(path)}
            decided = self.session.resolutions.get(path)
            assert not decided or not still_open & set(decided.hunks)
            assert self.session.is_file_resolved(path) or still_open


Reviewing.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
test_reviewing = Reviewing.TestCase


@given(TEXTS, st.data())
def test_undoing_everything_restores_the_bytes(
    texts: tuple[bytes, bytes, bytes], data: st.DataObject
):
    session = ResolutionSession((conflict(A, texts),))
    for index in range(len(session.conflict(A).open.hunks)):
        session = session.choose(A, index, data.draw(st.binary(max_size=5)))
    before = ResolutionSession((conflict(A, texts),)).preview(A)
    for _ in session.journal:
        session = session.undo()
    assert session.preview(A) == before


@given(TEXTS, st.sampled_from([Pick.TARGET, Pick.INCOMING]))
def test_taking_one_side_everywhere_is_that_sides_pick_of_the_text(
    texts: tuple[bytes, bytes, bytes], pick: Pick
):
    file = conflict(A, texts)
    results = ResolutionSession((file,)).choose_rest(pick).file_results(A)
    assert results is not None
    side = "target" if pick is Pick.TARGET else "incoming"
    expected = merge_texts(*texts).render(lambda hunk: b"".join(getattr(hunk, side)))
    assert results[0].content == expected


@given(TEXTS, TEXTS)
def test_carried_decisions_are_kept_or_opened_and_never_lost(
    texts: tuple[bytes, bytes, bytes], moved: tuple[bytes, bytes, bytes]
):
    session = ResolutionSession((conflict(A, texts),)).choose_rest(Pick.BOTH)
    again, carried = session.carried_to((conflict(A, moved),))
    assert len(carried.kept) + len(carried.opened) == len(session.conflict(A).open.hunks)
    same = {hunk.key for hunk in again.conflict(A).open.hunks}
    assert {at.key for at in carried.kept if not isinstance(at, bytes)} <= same
