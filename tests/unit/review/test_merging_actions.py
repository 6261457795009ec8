"""A human resolves conflicts, and a console shows them: values in, values out."""

import pytest

from engine.errors import WorkspaceError
from engine.merge import ConflictKind, FileConflict, FileSide, ResolutionSession, SideNames, propose
from engine.messages import commands as c
from engine.messages.merging import ConflictFileView, ConflictView
from engine.review.actions import decided, side_actions
from engine.review.showing import Lens, file_views
from engine.store.codec import from_json, to_json

BASE, TARGET, INCOMING = b"a\nb\nc\n", b"a\nmine\nc\n", b"a\ntheirs\nand more\nc\n"


def side(content: bytes | None, *, path: bytes = b"f", mode: str = "100644") -> FileSide | None:
    if content is None:
        return None
    return FileSide(path=path, mode=mode, blob=repr((content, path)), content=content)


def conflict(kind: ConflictKind = ConflictKind.CONTENTS, **more: object) -> FileConflict:
    sides = {"base": side(BASE), "target": side(TARGET), "incoming": side(INCOMING)}
    fields = {"path": b"f", "kind": kind, "names": SideNames("main", "s/worker_1"), **sides, **more}
    return FileConflict(**fields).told_exactly()


def view(session: ResolutionSession, **more: bytes) -> ConflictFileView:
    (found,) = file_views(session, Lens(propose=lambda _, hunk: propose(hunk), **more))
    return found


def start(*conflicts: FileConflict) -> ResolutionSession:
    return ResolutionSession(conflicts or (conflict(),))


def test_lines_are_numbered_so_that_they_can_be_picked():
    (hunk,) = view(start()).hunks
    assert [(line.sign, line.text, line.at) for line in hunk.incoming] == [
        ("-", "b\n", 0),
        ("+", "theirs\n", 0),
        ("+", "and more\n", 1),
    ]
    picks = tuple(c.PickedLine(side=name, at=at) for name, at in (("incoming", 1), ("base", 0)))
    session = decided(start(), c.PickLines(path="f", hunk=hunk.key, lines=picks))
    (hunk,) = view(session).hunks
    assert (hunk.choice, hunk.result) == ("lines", "and more\nb\n")


def test_bytes_that_are_no_utf8_come_back_as_they_were():
    odd = b"a\ncaf\xe9\nc\n"
    session = start(conflict(target=side(odd)))
    (hunk,) = view(session).hunks
    assert hunk.target[-1].text == "caf\udce9\n"
    action = c.WriteHunk(path="f", hunk=0, text=hunk.target[-1].text)
    (result,) = decided(session, action).results() or ()
    assert result.content == odd


def test_the_text_of_a_file_comes_only_where_it_is_asked_for():
    assert view(start()).text is None
    text = view(start(), with_text=b"f").text
    assert text is not None
    assert text.startswith("a\n<<<<<<< main [hunk ")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (c.ChooseHunk(path="g", hunk=0, choice="target"), "no such conflict: g"),
        (c.ChooseHunk(path="f", hunk="0" * 20, choice="target"), "no such conflict: 0000"),
        (c.ChooseHunk(path="f", hunk=0, choice="best"), "this choice is not possible"),
        (c.PickLines(path="f", hunk=0, lines=(c.PickedLine(side="base", at=9),)), "does not fit"),
        (c.ChooseWhole(path="f", choice="both"), "not a choice"),
        (c.ChoosePlace(path="f", place="target"), "only one place"),
        (c.SetFile(path="f", text="x", mode="040000"), "not a mode"),
        (
            c.EditFile(path="f", text="<<<<<<< a [hunk " + "0" * 20 + "]\n"),
            "line 1: a conflict marker",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(action: c.ResolutionAction, said: str):
    with pytest.raises(WorkspaceError, match=said):
        decided(start(), action)


def test_taking_a_side_decides_what_is_open_and_nothing_else():
    session = decided(start(), c.WriteHunk(path="f", hunk=0, text="own\n"))
    assert side_actions(view(session), "target") == ()
    assert side_actions(view(start()), "both") == (c.ChooseRest(choice="both", paths=("f",)),)


def test_taking_a_side_of_a_file_moved_twice_takes_its_place_and_its_lines():
    moved = conflict(
        ConflictKind.RENAME_RENAME,
        target=side(TARGET, path=b"g"),
        incoming=side(INCOMING, path=b"h"),
    )
    session = start(moved)
    for action in side_actions(view(session), "incoming"):
        session = decided(session, action)
    results = {one.path: one.content for one in session.results() or () if one.mode}
    assert results == {b"h": INCOMING}


def test_taking_a_side_of_a_binary_takes_the_whole_and_both_is_refused_with_what_there_is():
    binary = conflict(ConflictKind.BINARY, target=side(b"\0t"), incoming=side(b"\0i"))
    assert side_actions(view(start(binary)), "incoming") == (
        c.ChooseWhole(path="f", choice="incoming"),
    )
    with pytest.raises(WorkspaceError, match="offers no 'both'"):
        side_actions(view(start(binary)), "both")


def test_taking_a_side_takes_its_mode_where_both_changed_it():
    mode = conflict(target=side(TARGET, mode="100755"), base=None)
    actions = side_actions(view(start(mode)), "target")
    assert c.ChooseMode(path="f", mode="100755") in actions


def test_every_action_and_view_travels_as_json():
    shown = ConflictView(
        run="r", worker="s/worker_1", attempt=1, target="main", incoming="x", files=(view(start()),)
    )
    assert from_json(ConflictView, to_json(shown)) == shown
    for action in (
        c.ChooseHunk(path="f\udce9", hunk=3, choice="target"),
        c.ChooseHunk(path="f", hunk="key", choice="target"),
        c.PickLines(path="f", hunk=0, lines=(c.PickedLine(side="base", at=0),)),
        c.SetFile(path="f", text=None),
        c.Reopen(path="f"),
        c.FinishResolving(),
    ):
        assert from_json(c.ResolutionAction, to_json(action)) == action


def test_a_decision_makes_no_other_file_be_shown_anew():
    one, other = conflict(), conflict(path=b"g")
    session = start(one, other)
    lens = Lens(propose=lambda _, hunk: propose(hunk))
    before = file_views(session, lens)
    assert [new is old for new, old in zip(file_views(session, lens), before, strict=True)] == [
        True,
        True,
    ]
    session = decided(session, c.ChooseHunk(path="f", hunk=0, choice="target"))
    after = file_views(session, lens)
    assert [new is old for new, old in zip(after, before, strict=True)] == [False, True]
    assert after[0].is_resolved
    asking = Lens(
        propose=lambda _, hunk: propose(hunk),
        kept=lens.kept,
        asking={other.open.hunks[0].key: "codex"},
    )
    (_, asked) = file_views(session, asking)
    assert asked.hunks[0].asked == "codex"
