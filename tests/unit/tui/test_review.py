"""Conflicts are decided on screen by single keys, and every decision goes through the port."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from engine.api import CommitView, ConflictFileView, MergedFileView, PieceView, PlannedLanding
from engine.merge import FileConflict, HunkKey, Memory
from engine.messages import commands as c
from engine.messages.events import ConflictsDecided, Told
from engine.messages.results import EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened, strips_on
from tests.support.review_consoles import (
    KINDS,
    WHO,
    ReviewPort,
    choosing_view,
    conflicted_view,
    conflicts,
    imports,
    io_py,
    texts,
)
from tests.support.world import NOW, changed
from tui.app import Options
from tui.ink import row_width, text_of
from tui.keys import default_keymap
from tui.screens.review.card import Look, card
from tui.screens.review.columns import columns, fits
from tui.screens.review.model import ReviewPane
from tui.screens.review.screen import ReviewScreen

pytestmark = pytest.mark.anyio
IO, ERRORS = "src/csvlite/io.py", "src/csvlite/errors.py"
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


def port(*files: FileConflict, **more: Any) -> ReviewPort:
    return ReviewPort(conflicted_view(), files=files or conflicts(), **more)


class Reviewing:
    """A console that looks at the conflicts of a port."""

    def __init__(self, port: ReviewPort, **more: object) -> None:
        self.port = port
        self._opened = opened(port=port, **more)  # type: ignore[arg-type]

    async def __aenter__(self) -> Console:
        console = await self._opened.__aenter__()
        console.app.session.worker = WHO
        await console.do("go_review")
        return console

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(*error)  # type: ignore[arg-type]


def decided(port: ReviewPort, path: str = IO) -> list[str | None]:
    """Return what is decided for each hunk of a file."""
    return [hunk.choice for hunk in port.view_of().file(path).hunks]


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
        await console.shows("space refused", "no proposal is sure")
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
        await console.shows("u refused: nothing was decided yet")
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
        await console.shows("v refused: no line was picked")
        await console.do("down", "mark", "down", "mark")
        await console.shows("LINES 2")
        assert given.actions == []
        await console.do("select")
        (action,) = given.actions
        assert isinstance(action, c.PickLines)
        assert [(line.side, line.at) for line in action.lines] == [("target", 0), ("incoming", 0)]
        assert decided(given) == ["lines", None]


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
        await console.shows("holds characters that cannot be typed")
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


async def test_landing_runs_the_check_where_it_was_not_run_and_asks_for_no_word():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),))
    async with Reviewing(given) as console:
        await console.do("land")
        await console.shows("L refused: 1 still open")
        await console.do("mark")
        tree = given.tree
        await console.do("land")
        assert given.is_finished
    assert given.actions[-1] == c.FinishResolving(seen=tree)


async def test_a_check_that_passed_on_this_result_lands_at_once_and_goes_stale_with_it():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),))
    async with Reviewing(given) as console:
        await console.do("mark", "check")
        await console.shows("✓ proved on the exact tree")
        await console.do("undo", "take_target")
        await console.shows("· check stale")
        await console.do("undo", "redo", "undo", "mark", "check", "land")
        assert given.is_finished


async def test_a_check_that_failed_is_shown_and_asks_for_the_word():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),), will_pass=False)
    async with Reviewing(given) as console:
        await console.do("mark", "check")
        await console.shows("✗ check failed", "FAILED test_io")
        await console.do("land")
        await console.shows("failed on this result: type land")
        assert not given.is_finished


async def test_a_conflict_of_the_base_goes_on_without_a_check():
    given = port(imports(), is_of_base=True)
    async with Reviewing(given) as console:
        await console.do("mark")
        await console.do("down")
        await console.shows("lets the worker go on")
        await console.do("land")
        assert given.is_finished


@pytest.mark.long
async def test_leaving_and_coming_back_finds_everything_as_it_was():
    given = port()
    async with Reviewing(given) as console:
        await console.do("take_target", "go_fleet", "go_review")
        await console.shows("4 open", "conflict 2 of 2")
    async with Reviewing(given) as console:
        await console.shows("4 open", "conflict 2 of 2")


async def test_the_conflict_in_full_says_who_why_and_the_prompts():
    async with Reviewing(port()) as console:
        await console.do("open")
        await console.shows("BASE", "WHO AND WHY", "Port io.py to the streaming API.")
        await console.do("page_down", "leave")
        await console.shows("PROPOSALS")


async def test_sides_can_be_set_against_each_other():
    async with Reviewing(port()) as console:
        await console.do("diff")
        await console.shows("against the other side")
        assert "since base" not in console.text


async def test_giving_the_change_up_asks_first():
    given = port()
    async with Reviewing(given) as console:
        await console.do("no_wide")
        await console.shows("Give up the change of port/worker_1?")
        assert given.commands == []
        await console.do("no_wide")
        assert given.commands == [
            c.Reject(worker=WHO, run="2f1c", seen=c.Seen(tree="b1b1b1b1", attempt=1))
        ]


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


def test_a_very_long_conflict_is_drawn_in_its_room_and_the_rest_is_named():
    sides = ("".join(f"{who} {n}\n" for n in range(20_000)) for who in ("one", "two"))
    made = ReviewPort(conflicted_view(), files=(texts("long.txt", "base\n", *sides),))
    pane = ReviewPane()
    pane.show(made.view_of())
    for draw in (card, columns):
        rows = draw(pane, Look({"open": "enter"}), 180, 40)
        assert len(rows) <= 40
    shown = text_of(card(pane, Look({"open": "enter"}), 100, 30))
    assert "more lines  enter shows all" in shown


def test_a_side_whose_name_ends_with_an_s_keeps_its_name():
    made = ReviewPort(conflicted_view(), files=(texts("a", "1\n", "2\n", "3\n"),))
    pane = ReviewPane()
    pane.show(replace(made.view_of(), incoming="theirs"))
    offer = pane.offer_of("take_incoming")
    assert offer is not None
    assert offer.label == "theirs'"


def test_picking_brings_the_line_under_the_cursor_into_sight():
    sides = ("".join(f"{who} {n}\n" for n in range(300)) for who in ("one", "two"))
    made = ReviewPort(conflicted_view(), files=(texts("long.txt", "base\n", *sides),))
    pane = ReviewPane()
    pane.show(made.view_of())
    pane.begin_lines()
    for at in (0, 150, 299, 302, 450, 601):
        pane.line = at
        assert "▌" in text_of(card(pane, Look({}), 100, 30)), at


async def test_every_kind_has_a_card_and_is_decided_by_one_key():
    made = [kind() for kind in KINDS.values()]
    paths = [file.path for file in made]
    files = [file for at, file in enumerate(made) if file.path not in paths[:at]]
    assert len(files) >= len(KINDS) - 1  # a link and a folder cannot lie at one path
    given = port(*files)
    async with Reviewing(given, size=(80, 24)) as console:
        screen = console.screen
        assert isinstance(screen, ReviewScreen)
        while not given.session.is_resolved:
            before = len(given.actions)
            assert len(screen.pane.offers) >= 2
            await console.press("t")
            assert len(given.actions) == before + 1, console.text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [(40, 8), (76, 20), (116, 31), (190, 45)])
def test_every_kind_is_drawn_within_its_room(kind: str, size: tuple[int, int]):
    pane = ReviewPane()
    pane.show(port(KINDS[kind]()).view_of())
    keys = {"take_target": "t", "open": "enter"}
    for _ in range(len(pane.offers) + 1):
        rows = card(pane, Look(keys), *size)
        assert len(rows) <= size[1]
        assert all(row_width(row) <= size[0] for row in rows)
        if fits(pane, *size):
            assert all(row_width(row) <= size[0] for row in columns(pane, Look(keys), *size))
        pane.move(1)


def _with_check(view: EngineView) -> EngineView:
    """The view with a check on the step of the conflicted worker."""
    run = view.runs[0]
    steps = tuple(
        replace(step, check="pytest -q") if step.name == "port" else step for step in run.steps
    )
    return replace(view, runs=(replace(run, steps=steps),))


def test_marks_move_with_what_grew_before_them():
    made = ReviewPort(conflicted_view(), files=(texts("a", "\tx = 1\n", "\tx = 2\n", "\tx = 3\n"),))
    pane = ReviewPane()
    pane.show(made.view_of())
    hunk = pane.hunk
    assert hunk is not None
    (line,) = [line for line in hunk.target if line.sign == "+"]
    assert line.text == "    x = 2"
    assert [line.text[a:b] for a, b in line.marks] == ["2"]


_NOT = {"ctrl+q", "ctrl+z", "ctrl+c", "q", "E", "T"}
_KEYS = sorted({key for keys in default_keymap().keys.values() for key in keys} - _NOT)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
async def test_any_keys_in_any_order_are_survived_with_conflicts_and_candidates(seed: int):
    chance = Random(seed)
    reader = diff_of_reader()
    first = "implement/worker_1"
    files = tuple(make() for make in KINDS.values() if make is not io_py) + conflicts()[:2]
    given = ReviewPort(conflicted_view(), files=_apart(files), diffs={first: reader, WHO: reader})
    size = chance.choice([(80, 24), (120, 36), (170, 40), (45, 12)])
    async with Reviewing(given, size=size) as console:
        for turn in range(25):
            screen = console.screen
            if turn % 5 == 0:
                console.app.session.worker = chance.choice([WHO, first])
                screen.go(chance.choice(["review", "compare"]))
                await console.pilot.pause()
            for key in [chance.choice(_KEYS) for _ in range(4)]:
                if console.screen.box.writing:
                    console.screen.box.box_closed()
                await console.keys(*([key] if len(key) > 2 or "+" in key[1:] else key))
            view = chance.choice([conflicted_view(), choosing_view()])
            given.tell(view=replace(view, at=NOW + turn))
            await console.pilot.pause()
            assert not console.is_leaving
            await console.until(lambda: bool(console.text.strip()))  # a new one mounts first
            console.screen.draw()
            assert {strip.cell_length for strip in strips_on(console.app)} == {size[0]}


def _apart(files: tuple[FileConflict, ...]) -> tuple[FileConflict, ...]:
    """One conflict for each path."""
    return tuple({file.path: file for file in files}.values())


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


async def test_a_target_that_moved_is_told_and_every_choice_kept():
    given = port(io_py(), more={"moved": True})
    async with Reviewing(given) as console:
        await console.shows("main moved and was merged again. Every choice was kept.")


async def test_a_file_that_was_set_by_hand_before_the_target_moved_is_pointed_at():
    given = port(io_py(), more={"moved": True, "to_look_at": (IO,)})
    async with Reviewing(given) as console:
        await console.shows("was set by hand before that: look at it once more")


async def test_a_merge_that_git_could_not_make_in_full_is_told_as_such():
    given = port(io_py(), more={"caveat": "Git stops over a mistake of its own here."})
    async with Reviewing(given) as console:
        await console.shows("▲ Git stops over a mistake of its own here.")


async def test_a_red_check_is_overruled_by_the_typed_word_and_by_nothing_else():
    given = ReviewPort(_with_check(conflicted_view()), files=(imports(),), will_pass=False)
    async with Reviewing(given) as console:
        await console.do("take_target", "check")
        await console.shows("check failed")
        await console.do("land")
        await console.type("yes\n")
        await console.shows("the word was not typed")
        assert not given.is_finished
        await console.do("land")
        await console.shows("to land it despite that; the commit will say so")
        await console.type("land\n")
        await console.until(lambda: given.is_finished)
    overruled = c.FinishResolving(is_despite_check=True, seen=given.tree)
    assert given.actions[-1] == overruled


async def test_a_check_that_was_not_run_is_not_overruled():
    given = port(imports())
    async with Reviewing(given) as console:
        await console.do("take_target", "land")
        await console.until(lambda: given.is_finished)
    assert given.actions[-1] == c.FinishResolving(seen=given.tree)


async def test_a_target_that_moved_is_said_and_the_merge_made_again_is_shown():
    given = port(imports(), is_overtaken=True)
    async with Reviewing(given) as console:
        await console.do("take_target", "land")
        await console.shows("the target moved; the merge was made again: 1 new conflict in")
        assert not given.is_finished
        assert "still to be decided" not in console.text


async def test_what_git_merged_by_itself_is_looked_at_and_edited(monkeypatch: pytest.MonkeyPatch):
    given = port(imports(), more={"merged": MERGED})
    given.looked_at = LOOKED_AT
    async with Reviewing(given) as console:
        await console.shows("2 files merged by git", "≈ 1 near")
        await console.do("unit_down", "unit_down")
        await console.shows("src/csvlite/cli.py", "merged by git without a conflict")
        await console.shows("t import sys", "► 20 lines as before")
        await console.shows("both sides changed lines close to each other here")
        await console.do("take_target")
        await console.shows("t refused: git merged it")
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


async def test_the_queue_of_landings_is_shown_in_its_order():
    view = changed(conflicted_view(), "implement/worker_3", phase=Phase.REVIEWING)
    given = ReviewPort(view, files=(imports(),))
    given.order = (
        PlannedLanding(worker=WHO, paths=("a",), hunks=1),
        PlannedLanding(worker="implement/worker_3", hunks=2),
    )
    async with Reviewing(given) as console:
        await console.shows("LAND QUEUE 2", "this", "2 conflicts")


async def test_sides_are_labelled_with_what_their_newest_commit_says():
    commits = (CommitView(id="a1", subject="Limit the block", author="Ann", at=NOW - 60),)
    given = port(imports(), more={"target_commits": commits})
    async with Reviewing(given) as console:
        await console.shows("main  since base: “Limit the block”")


async def test_a_side_whose_commit_says_nothing_is_labelled_with_what_was_asked():
    untold = "Work of port/worker_1, attempt 1, left uncommitted"
    commits = (CommitView(id="a1", subject=untold, author="Ann", at=NOW - 60),)
    given = port(imports(), more={"incoming_commits": commits})
    async with Reviewing(given) as console:
        await console.shows("port/worker_1  since base: “Port io.py to the streaming API.”")
        assert "left uncommitted" not in console.text


async def test_a_console_can_begin_on_the_review_screen():
    options = Options(begins_on="review", clock=lambda: NOW, is_plain=False)
    async with opened(port=port(io_py()), options=options) as console:
        console.app.session.worker = WHO
        await console.shows("conflict 1 of 2")
        assert console.screen.kind == "review"
