"""A user's key file changes keys, or says what is wrong with it and changes nothing."""

import pytest

from tui.keys import default_keymap, read_key_file


def _problem(text: str) -> str:
    keymap, problems = read_key_file(text, "keys.toml")
    assert keymap == default_keymap()
    assert problems
    return str(problems[0])


def test_an_empty_file_leaves_the_defaults():
    assert read_key_file("") == (default_keymap(), [])


def test_an_action_gets_other_keys():
    keymap, problems = read_key_file('[fleet]\nretry = "ctrl+e, semicolon"\n')
    assert problems == []
    assert keymap.of("fleet.retry") == ("ctrl+e", ";")
    assert keymap.of("worker.retry") == ("r",)


def test_an_idea_gets_other_keys_on_every_screen():
    keymap, problems = read_key_file('retry = "t"\n[review]\ntake_target = "r"\n')
    assert problems == []
    assert keymap.of("diff.retry") == ("t",)


def test_an_action_can_lose_its_key():
    keymap, problems = read_key_file('[fleet]\nretry = ""\n')
    assert problems == []
    assert keymap.of("fleet.retry") == ()


def test_signs_are_written_by_name():
    keymap, problems = read_key_file('[everywhere]\nhelp = "hash"\n')
    assert problems == []
    assert keymap.of("everywhere.help") == ("#",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[fleet]\n\nretri = "t"\n',
            "keys.toml:3: unknown action 'fleet.retri'; did you mean 'fleet.retry'?",
        ),
        (
            '[fleet]\nretry = "semicolo"\n',
            "keys.toml:2: unknown key 'semicolo'; did you mean 'semicolon'?",
        ),
        ('[fleet]\nretry = "ctrl+s"\n', "some terminals send another key"),
        ('[fleet]\nretry = "escape"\n', "is reserved"),
        ('[everywhere]\nleave = "t"\n', "cannot be rebound"),
        ('[fleet]\nretry = "x"\n', "'x' on fleet means both"),
        ('[fleet]\nretry = "g"\n', "starts chords"),
        ("[fleet]\nretry = 3\n", "3 is not a key"),
        ("[fleet\n", "not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_the_defaults_stay(text: str, said: str):
    assert said in _problem(text)
