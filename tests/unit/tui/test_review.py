"""Conflicts are decided on screen by single keys, and every decision goes through the port."""

import pytest

from engine.api import ConflictFileView, MergedFileView, PieceView
from engine.merge import HunkKey, Memory
from engine.messages import commands as c
from engine.messages.events import ConflictsDecided, Told
from engine.phases import Phase
from tests.support.consoles import opened
from tests.support.review_consoles import (
    WHO,
    ReviewPort,
    conflicted_view,
    imports,
    io_py,
    texts,
)
from tests.support.reviewing import ERRORS, IO, Reviewing, decided, port
from tests.support.world import NOW
from tui.app import Options

pytestmark = pytest.mark.anyio
CLI = "src/csvlite/cli.py"
SIDES = (
    ("take_target", "target"),
    ("take_incoming", "incoming"),
    ("take_both", "both"),
    ("take_both_reversed", "both_reversed"),
    ("take_base", "base"),
    ("no", "neither"),
)
MERGED = (
    MergedFileView(path="README.md", by="incoming", kind="M", added=2),
    MergedFileView(path=CLI, by="both", kind="M", added=1, near=1),
)
LOOKED_AT = ConflictFileView(
    path=CLI,
    kind="merged",
    text="import sys\n",
    pieces=(
        PieceView(origin="target", line=1, lines=("import sys\n",)),
        PieceView(origin="same", line=2, lines=tuple(f"line {n}\n" for n in range(26))),
        PieceView(origin="incoming", line=28, lines=("last\n",), old=("end\n",), is_near=True),
    ),
)


async def test_sides_are_named_and_shown_against_the_base():
    async with Reviewing(port()) as console:
        await console.shows(
            "≠ port/worker_1 → main", "5 open", "main  since base", "data = f.read(size or"
        )
        assert "ours" not in console.text
        assert "theirs" not in console.text


async def test_a_key_takes_a_side_and_goes_on_to_the_next():
    given = port()
    async with Reviewing(given) as console:
        for idea, choice in SIDES:
            await console.do(idea)
            assert decided(given) == [choice, None]
            await console.shows("conflict 2 of 2", "4 open")
            await console.do("undo")
            await console.shows("conflict 1 of 2", "5 open")


async def test_space_takes_the_likely_proposal_at_once():
    given = port(imports())
    async with Reviewing(given) as console:
        await console.shows("RESULT if you press space")
        await console.do("mark")
        (hunk,) = given.view_of().file(ERRORS).hunks
        assert hunk.result is not None
        assert "LimitError" in hunk.result
        assert "StreamError" in hunk.result
        await console.shows("0 open", "✓ both, word by word")


async def test_space_takes_nothing_where_nothing_is_likely():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("mark")
        await console.shows("space refused", "No confident proposal")
        assert given.actions == []
        await console.do("down", "mark")
        assert decided(given)[0] is not None


async def test_words_of_both_sides_are_combined_where_none_is_in_both():
    given = port(imports())
    async with Reviewing(given) as console:
        await console.do("merge")
        (hunk,) = given.view_of().file(ERRORS).hunks
        assert hunk.choice == "combined"
        assert "LimitError, ParseError, Span, StreamError" in (hunk.result or "")


async def test_a_side_that_cannot_be_taken_says_why():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("merge")
        await console.shows("m refused: both sides changed the same words")
        assert given.actions == []


async def test_undo_brings_the_last_one_back_and_redo_takes_it_again():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("take_target", "take_incoming", "undo")
        assert decided(given) == ["target", None]
        await console.shows("conflict 2 of 2")
        await console.do("undo")
        assert decided(given) == [None, None]
        await console.shows("conflict 1 of 2")
        await console.do("undo")
        await console.shows("u refused: you have resolved nothing yet")
        await console.do("redo")
        assert decided(given) == ["target", None]


async def test_moving_goes_by_conflict_by_file_and_by_what_is_open():
    async with Reviewing(port()) as console:
        await console.do("right")
        await console.shows("conflict 2 of 2")
        await console.do("unit_down")
        await console.shows("conflict 1 of 1", "errors.py:3")
        await console.do("unit_down")
        await console.shows("main deleted it")
        await console.do("first", "take_both", "previous")
        await console.shows("docs/logo.png")
        await console.do("next")
        await console.shows("conflict 2 of 2")


async def test_whole_files_are_decided_by_the_same_keys():
    given = port()
    async with Reviewing(given) as console:
        await console.do("unit_down", "unit_down", "take_incoming")
        assert given.view_of().file("src/csvlite/compat.py").whole == "incoming"
        await console.shows("docs/logo.png")
        await console.do("take_target")
        assert given.view_of().file("docs/logo.png").whole == "target"


async def test_single_lines_are_picked_in_order_and_shown_before_they_count():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("select")
        await console.shows("LINES 0", "▌")
        await console.do("select")
        await console.shows("v refused: you have marked no line")
        await console.do("down", "mark", "down", "mark")
        await console.shows("LINES 2")
        assert given.actions == []
        await console.do("select")
        (action,) = given.actions
        assert isinstance(action, c.PickLines)
        assert [(line.side, line.at) for line in action.lines] == [("target", 0), ("incoming", 0)]
        assert decided(given) == ["lines", None]


async def test_empty_lines_are_picked_as_often_as_they_are_taken():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("select", "mark", *["down"] * 9, "mark", "mark", "mark")
        await console.shows("LINES 4", "an empty line, taken 3 times")
        await console.do("undo")
        await console.shows("LINES 3", "an empty line, taken 2 times")
        await console.do("select")
        (action,) = given.actions
        assert isinstance(action, c.PickLines)
        assert [line.side for line in action.lines][1:] == ["blank", "blank"]
        hunk = given.view_of().files[0].hunks[0]
        assert (hunk.result or "").endswith("\n\n\n")


async def test_leaving_line_picking_takes_nothing():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("select", "mark", "leave")
        assert "LINES" not in console.text
        assert given.actions == []


async def test_a_hunk_is_edited_in_a_box_with_its_blanks_kept():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.do("edit")
        assert console.screen.box.area.text == "    data = f.read(size or MAX_BLOCK)"
        console.screen.box.area.text = "    data = mine()"
        await console.press("enter")
        (hunk, _) = given.view_of().file(IO).hunks
        assert (hunk.choice, hunk.result) == ("own", "    data = mine()\n")


async def test_a_hunk_with_windows_line_ends_is_edited_and_keeps_them():
    given = port(texts("a.txt", "one\r\n", "two\r\n", "three\r\n"))
    async with Reviewing(given) as console:
        await console.do("edit")
        assert console.screen.box.area.text == "two"
        console.screen.box.area.text = "mine\nand more"
        await console.press("enter")
        await console.until(lambda: bool(given.actions))
        assert given.session.results()[0].content == b"mine\r\nand more\r\n"  # type: ignore[index]


async def test_what_cannot_be_typed_is_not_offered_to_be_edited():
    given = port(texts("a.txt", "one\n", "t\x1b]52;c;AAAA\x07wo\n", "three\n"))
    async with Reviewing(given) as console:
        assert "\x1b" not in console.text
        await console.shows("t␛]52;c;AAAA␇wo")
        await console.do("edit")
        await console.shows("contains characters that you cannot type")
        await console.do("take_target")
        assert given.session.results()[0].content == b"t\x1b]52;c;AAAA\x07wo\n"  # type: ignore[index]


async def test_the_rest_of_a_file_is_taken_at_once_and_what_is_decided_stays():
    given = port()
    async with Reviewing(given) as console:
        await console.do("take_both", "merge_all")
        await console.shows("the incoming side, rest of this file")
        await console.type("incoming side, rest of this")
        await console.press("enter")
        assert decided(given) == ["both", "incoming"]
        assert not given.view_of().file(ERRORS).is_resolved


async def test_the_rest_of_all_files_is_one_choice_too():
    given = port()
    async with Reviewing(given) as console:
        await console.do("merge_all")
        await console.type("target's side, rest of all")
        await console.press("enter")
        assert given.session.is_resolved
        await console.shows("0 open", "4 of 4 files done")


@pytest.mark.long
async def test_leaving_and_coming_back_finds_everything_as_it_was():
    given = port()
    async with Reviewing(given) as console:
        await console.do("take_target", "go_fleet", "go_review")
        await console.shows("4 open", "conflict 2 of 2")
    async with Reviewing(given) as console:
        await console.shows("4 open", "conflict 2 of 2")


async def test_a_remembered_answer_is_shown_confirmed_when_taken_and_can_be_forgotten():
    hunk = io_py().open.hunks[0]
    given = port(io_py(), memory=Memory().learned(hunk, b"    data = f.both()\n", note="earlier"))
    async with Reviewing(given) as console:
        await console.shows("1 remembered", "as you chose before", "f.both()")
        assert given.actions == []
        await console.do("mark")
        assert isinstance(given.actions[0], c.WriteHunk)
        assert isinstance(given.actions[1], c.ConfirmAnswer)
        await console.do("undo")
        console.screen.perform("forget")
        await console.until(lambda: isinstance(given.actions[-1], c.ForgetAnswer))


async def test_a_console_that_watches_decides_nothing():
    given = port()
    async with Reviewing(given, read_only=True) as console:
        ideas = ("take_target", "mark", "merge_all", "edit", "select", "no", "land", "check")
        for idea in ideas:
            await console.do(idea)
            await console.shows("this console only watches")
        assert given.actions == []


async def test_a_worker_without_conflicts_says_so():
    view = conflicted_view(phase=Phase.REVIEWING)
    async with opened(port=ReviewPort(view)) as console:
        console.app.session.worker = WHO
        await console.do("go_review")
        await console.shows("  port/worker_1 has no conflicts; it is reviewing.")
        await console.do("take_target")
        await console.shows("t refused: there is no conflict")


async def test_another_console_decides_and_this_one_follows():
    given = port(io_py())
    async with Reviewing(given) as console:
        await console.shows("2 open")
        hunk = given.view_of().file(IO).hunks[0]
        given.session = given.session.choose(IO.encode(), HunkKey(hunk.key), "incoming")
        decided = ConflictsDecided(
            worker=WHO, attempt=1, open_files=1, open_hunks=1, is_resolved=False
        )
        given.tell(Told(run="2f1c", at=NOW, event=decided))
        await console.shows("1 open", "chosen: the incoming side")


async def test_a_merge_that_git_could_not_make_in_full_is_told_as_such():
    given = port(io_py(), more={"caveat": "Git stops over a mistake of its own here."})
    async with Reviewing(given) as console:
        await console.shows("▲ Git stops over a mistake of its own here.")


async def test_what_git_merged_by_itself_is_looked_at_and_edited(monkeypatch: pytest.MonkeyPatch):
    given = port(imports(), more={"merged": MERGED})
    given.looked_at = LOOKED_AT
    async with Reviewing(given) as console:
        await console.shows("2 files merged by git", "≈ 1 near")
        await console.do("unit_down", "unit_down")
        await console.shows("src/csvlite/cli.py", "merged by git without a conflict")
        await console.shows("t import sys", "► 20 lines as before")
        await console.shows("both sides changed nearby lines here")
        await console.do("take_target")
        await console.shows("t refused: git merged this file")
        monkeypatch.setattr("tui.screens.review.texts.edit_text", _edited)
        await console.do("edit_all")
        await console.until(lambda: bool(given.actions))
        await console.do("next")
        await console.shows("conflict 1 of 1")
    assert given.actions == [c.SetFile(path="src/csvlite/cli.py", text="import os\n")]


async def _edited(app: object, text: str, *, name: str) -> tuple[str, str]:
    del app
    assert (text, name) == ("import sys\n", "src/csvlite/cli.py")
    return "import os\n", ""


async def test_a_console_can_begin_on_the_review_screen():
    options = Options(begins_on="review", clock=lambda: NOW, is_plain=False)
    async with opened(port=port(io_py()), options=options) as console:
        console.app.session.worker = WHO
        await console.shows("conflict 1 of 2")
        assert console.screen.kind == "review"
