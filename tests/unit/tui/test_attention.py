"""Calling for a human: once for what is new, never with foreign control sequences."""

from dataclasses import replace
from datetime import time

import pytest

from engine.phases import Phase
from tests.support.consoles import opened
from tests.support.world import NOW, changed, csvlite
from tui.app import Options
from tui.words.attention import (
    needs_of,
    notification,
    sentence_of_new,
    set_title,
    title_of_view,
)
from tui.words.hours import read_hours


def test_only_what_is_new_is_called_out():
    before = needs_of(csvlite())
    assert sentence_of_new(before, before) == ""
    more = needs_of(changed(csvlite(), "implement/worker_1", phase=Phase.REVIEWING))
    assert sentence_of_new(before, more) == "implement/worker_1 needs you"
    assert sentence_of_new(more, before) == ""
    assert sentence_of_new(frozenset(), more).endswith(f"and {len(more) - 1} more need you")


def test_the_end_of_a_run_is_called_out():
    view = csvlite()
    ended = replace(view, runs=(replace(view.runs[0], ended_at=NOW),))
    assert sentence_of_new(needs_of(view), needs_of(ended)) == "run 2f1c has ended"


def test_the_title_counts_who_waits_and_carries_nothing_foreign():
    assert title_of_view(csvlite()) == f"({len(needs_of(csvlite()))}) plait csvlite: fix"
    title = title_of_view(csvlite(repository="/a/evil\x1b]52;c;aGk=\x07"))
    assert "\x1b" not in title
    assert "\x07" not in title
    assert set_title("x") == "\x1b]2;x\x07"


def test_tmux_gets_an_envelope():
    assert notification("hi", is_in_tmux=False) == "\x1b]9;hi\x07"
    assert notification("hi", is_in_tmux=True) == "\x1bPtmux;\x1b\x1b]9;hi\x07\x1b\\"


@pytest.mark.parametrize(
    ("terminal", "begins"),
    [
        ("xterm-256color", "\x1b]9;hi"),
        ("xterm-kitty", "\x1b]99;;plait: hi"),
        ("foot", "\x1b]777;notify;plait;hi"),
        ("rxvt-unicode-256color", "\x1b]777;notify;plait;hi"),
    ],
)
def test_each_terminal_is_told_in_its_own_way(terminal: str, begins: str):
    told = notification("hi", is_in_tmux=False, terminal=terminal)
    assert told.startswith(begins)
    assert notification("hi", is_in_tmux=True, terminal=terminal).count("\x1b\x1b]") == 1


@pytest.mark.parametrize(
    ("hours", "quiet", "loud"),
    [
        ("22:00-07:30", ["22:00", "23:59", "00:00", "07:29"], ["07:30", "12:00", "21:59"]),
        ("12:00 - 13:00", ["12:00", "12:59"], ["11:59", "13:00"]),
    ],
)
def test_quiet_hours_may_go_over_midnight(hours: str, quiet: list[str], loud: list[str]):
    found = read_hours(hours)
    assert found
    assert all(found.hold(time.fromisoformat(at)) for at in quiet)
    assert not any(found.hold(time.fromisoformat(at)) for at in loud)


@pytest.mark.parametrize("text", ["", "22:00", "late-early", "25:00-07:00", "22:00-"])
def test_what_names_no_hours_names_none(text: str):
    assert read_hours(text) is None


@pytest.mark.anyio
@pytest.mark.parametrize("is_quiet", [True, False])
async def test_nobody_is_called_in_quiet_hours(is_quiet: bool):  # noqa: FBT001 - a case
    options = Options(
        clock=lambda: NOW, is_plain=False, has_truecolor=True, is_quiet=lambda: is_quiet
    )
    async with opened(csvlite(), options=options) as console:
        console.app.session.bridge.view = changed(
            csvlite(), "implement/worker_1", phase=Phase.REVIEWING
        )
        console.app.session.look()
        call = console.app.living.call(is_quiet=options.is_quiet())
        assert call.rings is not is_quiet
        assert any("]2;" in sequence for sequence in call.sequences)
