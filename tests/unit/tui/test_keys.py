"""The key table keeps its own rules, and pressed keys become the right actions."""

import re

from tests.support.key_page import KEYMAP, key_page, keys_on
from tui.keys import ACTIONS, CHORD_STARTS, IDEAS, SCREENS
from tui.keys.file import UNSENT, clashes, read_key_file
from tui.keys.groups import GROUPS


def test_the_key_file_on_the_page_of_keys_is_right():
    (example,) = re.findall("```toml\n(.*?)```", key_page(), re.DOTALL)
    keymap, problems = read_key_file(example)
    assert not problems
    assert keymap.keys["everywhere.go_stats"] == ("g[",)


def test_one_key_has_one_idea_over_all_screens():
    ideas: dict[str, str] = {}
    for screen in SCREENS:
        for key, action in keys_on(screen).items():
            assert ideas.setdefault(key, action.idea) == action.idea


def test_no_key_means_two_things_on_one_screen():
    assert list(clashes(KEYMAP)) == []


def test_no_key_begins_a_chord_and_acts_as_well():
    for screen in SCREENS:
        table = keys_on(screen)
        chords = {key[0] for key in table if len(key) == 2 and key[0] in CHORD_STARTS}
        assert not chords & set(table)


def test_no_bound_key_is_one_that_terminals_cannot_send():
    bound = {key for keys in KEYMAP.keys.values() for key in keys}
    assert not bound & UNSENT
    assert not any(key.startswith(("alt+", "super+", "ctrl+shift+")) for key in bound)
    assert not any(key[0] == "f" and key[1:].isdigit() for key in bound)


def test_every_action_says_what_it_does_in_few_words():
    for action in ACTIONS.values():
        assert action.told
        assert len(action.label) <= 15
        assert action.idea in IDEAS


def test_footer_labels_fit():
    shown = [a for a in ACTIONS.values() if a.screen != "everywhere"]
    assert all(len(action.label) <= 14 for action in shown)


def test_signs_that_some_keyboards_cannot_type_are_never_the_only_way():
    hard = set("[]{}\\|~@#'\"^`")
    for action in ACTIONS.values():
        keys = KEYMAP.of(action.id)
        if keys and all(set(key) & hard for key in keys):
            assert action.idea in {
                "next_hunk",
                "previous_hunk",
                "next_file",
                "previous_file",
                "next_tab",
                "previous_tab",
            }


def test_what_lands_or_stops_is_not_on_a_key_that_navigates():
    moving = {"down", "up", "left", "right", "open", "next", "previous", "mark"}
    dangerous = {"yes", "no", "no_wide", "land", "retry"}
    for screen in SCREENS:
        keys = keys_on(screen)
        for key, action in keys.items():
            if action.idea in dangerous:
                assert all(key not in KEYMAP.keys.get(f"everywhere.{idea}", ()) for idea in moving)


def test_every_idea_of_a_screen_stands_under_a_heading():
    assert set(GROUPS) <= set(IDEAS)
