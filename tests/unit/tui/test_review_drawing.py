"""Conflicts of every kind are drawn in the room there is, with names that a reader knows."""

from dataclasses import replace
from random import Random

import pytest

from engine.api import CommitView
from engine.core.state import Worker
from engine.ids import WorkerId
from engine.merge import FileConflict
from engine.work.workshops import _left_over
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import strips_on
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
from tests.support.reviewing import Reviewing, port
from tests.support.world import NOW
from tui.ink import row_width, text_of
from tui.keys import default_keymap
from tui.screens.review.card import Look, card
from tui.screens.review.columns import INCOMING, TARGET, columns, fits
from tui.screens.review.model import ReviewPane
from tui.screens.review.screen import ReviewScreen

pytestmark = pytest.mark.anyio


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
    for at in (0, 150, 299, 302, 450, 601, 602):
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
            for dragged in ({}, {TARGET: 1}, {TARGET: 500, INCOMING: 500}, {INCOMING: 33}):
                rows = columns(pane, Look(keys, widths=dragged), *size)
                assert all(row_width(row) <= size[0] for row in rows)
        pane.move(1)


def test_marks_move_with_what_grew_before_them():
    made = ReviewPort(conflicted_view(), files=(texts("a", "\tx = 1\n", "\tx = 2\n", "\tx = 3\n"),))
    pane = ReviewPane()
    pane.show(made.view_of())
    hunk = pane.hunk
    assert hunk is not None
    (line,) = [line for line in hunk.target if line.sign == "+"]
    assert line.text == "    x = 2"
    assert [line.text[a:b] for a, b in line.marks] == ["2"]


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


async def test_sides_are_labeled_with_what_their_newest_commit_says():
    commits = (CommitView(id="a1", subject="Limit the block", author="Ann", at=NOW - 60),)
    given = port(imports(), more={"target_commits": commits})
    async with Reviewing(given) as console:
        await console.shows("main  since base: “Limit the block”")


@pytest.mark.parametrize(
    "untold",
    [
        _left_over(Worker(id=WorkerId("port", 1))).splitlines()[0],
        "Work of port/worker_1, attempt 1, left uncommitted",
    ],
)
async def test_a_side_whose_commit_says_nothing_is_labeled_with_what_was_asked(untold: str):
    commits = (CommitView(id="a1", subject=untold, author="Ann", at=NOW - 60),)
    given = port(imports(), more={"incoming_commits": commits})
    async with Reviewing(given) as console:
        await console.shows("port/worker_1  since base: “Port io.py to the streaming API.”")
        assert untold not in console.text


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
