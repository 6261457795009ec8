"""Calling for a human: once for what is new, never with foreign control sequences."""

from dataclasses import replace

from engine.phases import Phase
from tests.support.world import NOW, changed, csvlite
from tui.words.attention import needs_of, notification, sentence_of_new, set_title, title_of_view


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
