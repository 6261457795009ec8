"""Every kind of conflict: its words, what is open, what can be chosen, what that leaves."""

from dataclasses import replace

import pytest

from engine.merge import (
    ConflictKind,
    FileConflict,
    FilePlace,
    FileResult,
    FileSide,
    ResolutionSession,
    SideNames,
    Whole,
    kind_named,
    options,
)
from engine.merge.whole import option

NAMES = SideNames("main", "port/io.py")
PATH = b"src/io.py"


def side(content: bytes | None, mode: str = "100644", path: bytes = PATH) -> FileSide:
    return FileSide(path=path, mode=mode, blob=repr(content), content=content)


def conflict(
    base: bytes | None,
    target: bytes | None,
    incoming: bytes | None,
    kind: ConflictKind = ConflictKind.CONTENTS,
) -> FileConflict:
    sides = (None if content is None else side(content) for content in (base, target, incoming))
    before, mine, theirs = sides
    return FileConflict(
        path=PATH, kind=kind, base=before, target=mine, incoming=theirs, names=NAMES
    ).told_exactly()


def chosen(of: FileConflict, choice: Whole) -> dict[bytes, FileResult]:
    found = option(of, choice)
    assert found is not None
    return {result.path: result for result in found.results}


def choices(of: FileConflict) -> set[Whole]:
    return {found.choice for found in options(of)}


def test_contents_conflict_is_open_hunk_by_hunk():
    both = conflict(b"a\nb\nc\n", b"x\nb\ny\n", b"p\nb\nq\n")
    assert len(both.open.hunks) == 2
    assert not both.open.whole
    assert choices(both) == {
        Whole.TARGET,
        Whole.INCOMING,
        Whole.BASE,
        Whole.UNION,
        Whole.DELETE,
    }
    assert chosen(both, Whole.UNION)[PATH].content == b"x\nb\ny\np\nb\nq\n"
    assert chosen(both, Whole.DELETE)[PATH].mode is None


def test_files_added_twice_have_no_base_to_go_back_to():
    added = conflict(None, b"a\n", b"b\n")
    assert added.kind is ConflictKind.ADD_ADD
    assert Whole.BASE not in choices(added)
    assert len(added.open.hunks) == 1


def test_a_conflict_that_only_git_sees_must_be_confirmed():
    apart = conflict(b"a\nb\nc\n", b"x\nb\nc\n", b"a\nb\ny\n")
    assert apart.open.whole
    session = ResolutionSession((apart,))
    assert not session.is_resolved
    done = session.choose_whole(PATH, Whole.MERGED)
    assert done.file_results(PATH) == (FileResult(PATH, "100644", b"x\nb\ny\n"),)


def test_binary_files_are_chosen_whole():
    binary = conflict(b"\0a", b"\0b", b"\0c")
    assert binary.kind is ConflictKind.BINARY
    assert binary.hunks == ()
    assert choices(binary) == {Whole.TARGET, Whole.INCOMING, Whole.BASE, Whole.DELETE}
    effects = {found.choice: found.effect for found in options(binary)}
    assert effects[Whole.TARGET] == "src/io.py as main has it, 2 bytes"


def test_both_versions_are_kept_where_a_free_path_is_known():
    binary = replace(conflict(b"\0a", b"\0b", b"\0c"), free_path=b"src/io.port.py")
    assert chosen(binary, Whole.BOTH) == {
        PATH: FileResult(PATH, "100644", b"\0b", repr(b"\0b")),
        b"src/io.port.py": FileResult(b"src/io.port.py", "100644", b"\0c", repr(b"\0c")),
    }


def test_deleted_against_changed_says_what_each_choice_would_do():
    gone = conflict(b"a\nb\n", None, b"a\nB\nc\n", ConflictKind.MODIFY_DELETE)
    delete, keep, *_ = options(gone)
    assert (delete.label, keep.label) == ("delete, as main", "keep port/io.py's")
    assert "the change +2 -1 is not taken" in delete.effect
    assert keep.results == (FileResult(PATH, "100644", b"a\nB\nc\n", repr(b"a\nB\nc\n")),)
    assert delete.results == (FileResult(PATH),)


def test_the_change_of_a_deleted_file_can_move_to_where_its_text_went():
    gone = conflict(b"a\nb\nc\n", None, b"a\nb\nC\n", ConflictKind.MODIFY_DELETE)
    assert Whole.MOVE not in choices(gone)
    home = side(b"# new head\na\nb\nc\n", path=b"src/_io.py")
    moved = chosen(replace(gone, moved_to=home), Whole.MOVE)
    assert moved[b"src/_io.py"].content == b"# new head\na\nb\nC\n"
    assert moved[PATH].mode is None


def test_the_change_is_not_moved_where_it_contradicts():
    gone = conflict(b"a\nb\nc\n", None, b"a\nb\nC\n", ConflictKind.MODIFY_DELETE)
    home = side(b"a\nb\nother\n", path=b"src/_io.py")
    assert Whole.MOVE not in choices(replace(gone, moved_to=home))


def renamed_twice(target: bytes, incoming: bytes) -> FileConflict:
    return FileConflict(
        path=b"a.py",
        kind=ConflictKind.RENAME_RENAME,
        base=side(b"x\n", path=b"a.py"),
        target=side(target, path=b"b.py"),
        incoming=side(incoming, path=b"c.py"),
    ).told_exactly()


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        (FilePlace.TARGET, {b"b.py"}),
        (FilePlace.INCOMING, {b"c.py"}),
        (FilePlace.BOTH, {b"b.py", b"c.py"}),
    ],
)
def test_a_file_renamed_twice_needs_a_place(place: FilePlace, kept: set[bytes]):
    session = ResolutionSession((renamed_twice(b"x\n", b"y\n"),))
    assert not session.is_resolved
    results = session.choose_place(b"a.py", place).results()
    assert results is not None
    assert {result.path for result in results if result.mode} == kept
    assert {result.content for result in results if result.mode} == {b"y\n"}
    assert {result.path for result in results} == {b"a.py", b"b.py", b"c.py"}


def test_a_file_renamed_twice_and_changed_twice_needs_place_and_text():
    session = ResolutionSession((renamed_twice(b"y\n", b"z\n"),)).choose_place(b"a.py", "target")
    assert not session.is_resolved
    done = session.choose(b"a.py", 0, "incoming")
    assert done.is_resolved
    assert FileResult(b"b.py", "100644", b"z\n") in (done.results() or ())


def test_renamed_here_deleted_there_keeps_or_deletes():
    rename = FileConflict(
        path=b"b.py",
        kind=ConflictKind.RENAME_DELETE,
        base=side(b"x\n", path=b"a.py"),
        target=side(b"x\n", path=b"b.py"),
        incoming=None,
    )
    assert {path for path, kept in chosen(rename, Whole.TARGET).items() if kept.mode} == {b"b.py"}
    assert not any(kept.mode for kept in chosen(rename, Whole.INCOMING).values())


def test_two_files_at_one_path_after_a_rename_are_merged_like_files_added_twice():
    collision = FileConflict(
        path=b"b.py",
        kind=kind_named("CONFLICT (rename involved in collision)"),
        base=None,
        target=side(b"x\n", path=b"b.py"),
        incoming=side(b"y\n", path=b"b.py"),
    )
    assert collision.kind is ConflictKind.RENAME_ADD
    assert len(collision.open.hunks) == 1


def test_a_directory_rename_asks_where_the_file_goes():
    moved = FileConflict(
        path=b"new/f.py",
        kind=kind_named("CONFLICT (directory rename suggested)"),
        base=None,
        target=side(b"x\n", path=b"new/f.py"),
        incoming=side(b"x\n", path=b"old/f.py"),
    ).told_exactly()
    assert moved.kind is ConflictKind.DIRECTORY_RENAME
    done = ResolutionSession((moved,)).choose_place(b"new/f.py", "incoming")
    assert done.results() == (
        FileResult(b"new/f.py"),
        FileResult(b"old/f.py", "100644", b"x\n"),
    )


def test_a_file_against_a_directory_keeps_one_or_moves_the_file():
    clash = FileConflict(
        path=b"d",
        kind=ConflictKind.DIRECTORY_FILE,
        base=None,
        target=None,
        incoming=side(b"x\n", path=b"d"),
        names=NAMES,
        below=(b"d/one", b"d/two"),
        free_path=b"d.txt",
    )
    assert choices(clash) == {Whole.TARGET, Whole.INCOMING, Whole.BOTH}
    assert chosen(clash, Whole.INCOMING) == {
        b"d": FileResult(b"d", "100644", b"x\n", repr(b"x\n")),
        b"d/one": FileResult(b"d/one"),
        b"d/two": FileResult(b"d/two"),
    }
    assert not any(path.startswith(b"d/") for path in chosen(clash, Whole.TARGET))
    assert set(chosen(clash, Whole.BOTH)) == {b"d.txt"}


def test_modes_that_differ_need_a_mode():
    modes = FileConflict(
        path=PATH,
        kind=ConflictKind.ADD_ADD,
        base=None,
        target=side(b"x\n"),
        incoming=side(b"x\n", "100755"),
    ).told_exactly()
    assert modes.kind is ConflictKind.MODE
    session = ResolutionSession((modes,))
    assert not session.is_resolved
    done = session.choose_mode(PATH, "100755")
    assert done.results() == (FileResult(PATH, "100755", b"x\n"),)


def test_a_mode_changed_on_one_side_only_is_taken():
    changed = replace(conflict(b"a\n", b"b\n", b"c\n"), incoming=side(b"c\n", "100755"))
    done = ResolutionSession((changed,)).choose(PATH, 0, "target")
    assert done.results() == (FileResult(PATH, "100755", b"b\n"),)


def test_links_show_where_they_point():
    link = FileConflict(
        path=PATH,
        kind=ConflictKind.CONTENTS,
        base=side(b"a", "120000"),
        target=side(b"b", "120000"),
        incoming=side(b"c", "120000"),
        names=NAMES,
    ).told_exactly()
    assert link.kind is ConflictKind.SYMLINK
    assert link.hunks == ()
    assert options(link)[1].effect == "src/io.py as port/io.py has it, pointing to c"


def test_a_link_against_a_file_is_of_distinct_types():
    types = FileConflict(
        path=PATH,
        kind=ConflictKind.CONTENTS,
        base=side(b"a"),
        target=side(b"b", "120000"),
        incoming=side(b"c"),
    ).told_exactly()
    assert types.kind is ConflictKind.DISTINCT_TYPES
    assert types.open.whole


def test_submodules_are_chosen_by_commit():
    commits = [FileSide(path=PATH, mode="160000", blob=letter * 40) for letter in "abc"]
    module = FileConflict(
        path=PATH,
        kind=kind_named("CONFLICT (submodule)"),
        base=commits[0],
        target=commits[1],
        incoming=commits[2],
    ).told_exactly()
    assert chosen(module, Whole.INCOMING)[PATH].blob == "c" * 40
    assert "at commit cccccccccccc" in options(module)[1].effect


STYLES: list[tuple[ConflictKind, tuple[bytes, bytes, bytes], Whole, bytes]] = [
    (
        ConflictKind.EOL,
        (b"a\nb\n", b"a\r\nb\r\n", b"a\nB\n"),
        Whole.TARGET_STYLE,
        b"a\r\nB\r\n",
    ),
    (
        ConflictKind.EOL,
        (b"a\nb\n", b"a\r\nb\r\n", b"a\nB\n"),
        Whole.INCOMING_STYLE,
        b"a\nB\n",
    ),
    (
        ConflictKind.ENCODING,
        ("é\nb\n".encode("latin-1"), "é\nb\n".encode(), "é\nB\n".encode("latin-1")),
        Whole.TARGET_STYLE,
        "é\nB\n".encode(),
    ),
    (
        ConflictKind.ENCODING,
        (b"a\n", b"\xef\xbb\xbfa\n", b"b\n"),
        Whole.TARGET_STYLE,
        b"\xef\xbb\xbfb\n",
    ),
    (
        ConflictKind.ENCODING,
        (b"a\n", b"\xff\xfe" + "a\n".encode("utf-16-le"), b"b\n"),
        Whole.TARGET_STYLE,
        b"\xff\xfe" + "b\n".encode("utf-16-le"),
    ),
    (ConflictKind.NO_NEWLINE, (b"a\nb\n", b"a\nb", b"a\nb\nc\n"), Whole.TARGET_STYLE, b"a\nb\nc"),
]


@pytest.mark.parametrize(("kind", "texts", "choice", "result"), STYLES)
def test_styles_are_told_from_contents_and_merged_with_one_key(
    kind: ConflictKind, texts: tuple[bytes, bytes, bytes], choice: Whole, result: bytes
):
    style = conflict(*texts)
    assert style.kind is kind
    assert style.open.whole
    assert chosen(style, choice)[PATH].content == result


@pytest.mark.parametrize(
    "texts",
    [
        (b"a\nb\n", b"a\r\nx\r\n", b"a\nB\n"),
        (b"a\n", b"b\n", b"c\n"),
        (b"a\n", b"\0", b"b"),
    ],
)
def test_contradictions_stay_what_they_are_whatever_their_style(texts: tuple[bytes, bytes, bytes]):
    assert conflict(*texts).kind in (ConflictKind.CONTENTS, ConflictKind.BINARY)


def test_a_letter_that_the_encoding_lacks_takes_that_choice_away():
    style = conflict("é\nb\n".encode("latin-1"), "é\nb\n".encode(), "é\nB\n".encode("latin-1"))
    euro = replace(style, target=side("é\nb\n€\n".encode()))
    assert Whole.INCOMING_STYLE not in choices(euro)
    assert Whole.INCOMING_STYLE in choices(style)


def test_an_unknown_word_of_a_newer_git_is_a_conflict_of_contents():
    assert kind_named("CONFLICT (something new)") is ConflictKind.CONTENTS


def test_every_option_leaves_each_path_once():
    for texts in ((b"a\n", b"b\n", b"c\n"), (b"a\n", None, b"b\n"), (b"\0", b"\0a", b"\0b")):
        for found in options(conflict(*texts)):
            paths = [result.path for result in found.results]
            assert len(paths) == len(set(paths)), found


def test_every_option_says_what_it_would_do():
    for found in options(conflict(b"a\n", b"b\n", b"c\n")):
        assert found.label
        assert found.effect
