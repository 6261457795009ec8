"""Numbers that agents tell: what can be counted is taken, all else is none. Titles of tools."""

import pytest

from engine.agents.records import commands_of, count_of, edit_of, input_of, number_of, title_of


@pytest.mark.parametrize("told", [0, 3, 0.25, 2**53 - 1])
def test_a_plain_number_is_taken_as_it_is(told: float) -> None:
    assert number_of(told) == told
    assert count_of(told) == int(told)


@pytest.mark.parametrize(
    "told", [-1, 1.7e308, 10**400, float("inf"), float("nan"), 2**53, True, "3", None, [3]]
)
def test_what_no_sum_could_hold_is_none(told: object) -> None:
    assert number_of(told) is None
    assert count_of(told) is None


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"old_string": "a\nb\nc", "new_string": "a\nx\ny\nc"}, (2, 1)),
        ({"oldString": "a", "newString": ""}, (0, 1)),
        ({"edits": [{"old_string": "a", "new_string": "b\nc\nd"}]}, (3, 1)),
        ({"old_str": "a\na", "new_str": "a\na"}, (0, 0)),
        ({"content": "all of it"}, None),
        ({"old_string": 1, "new_string": None}, None),
        ("text", None),
    ],
)
def test_an_edit_tells_how_many_lines_it_adds_and_removes(
    given: object, lines: tuple[int, int] | None
):
    assert edit_of(given) == lines


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ({"commands": ["make test", "ls"]}, "make test"),
        ({"commands": []}, ""),
        ({"command": "ls", "commands": ["make"]}, "ls"),
        ({"command": ["sh", "-c", "ls"], "path": "/w"}, "/w"),
    ],
)
def test_a_tool_is_titled_by_its_command(given: dict[str, object], title: str) -> None:
    assert title_of(given) == title


@pytest.mark.parametrize(
    ("given", "command", "whole"),
    [
        ({"command": " ls\nrm x "}, "ls\nrm x", ""),
        ({"command": ["bash", "-lc", "rm -rf ~"]}, "bash -lc 'rm -rf ~'", ""),
        ({"commands": ["make test", "rm -rf ~"]}, "make test\nrm -rf ~", ""),
        ({"command": "ls", "commands": ["ls"]}, "ls", ""),
        ({"commands": "ls"}, "", "commands: ls"),
        ({"file_path": "a.py", "content": "x"}, "", ""),
        ({"url": "https://x.example"}, "", ""),
        ({"url": "https://x.example\n?y"}, "", ""),
        (
            {"description": "harmless", "target": {"name": "prod"}},
            "",
            'description: harmless\ntarget: {"name": "prod"}',
        ),
        ("text", "", ""),
    ],
)
def test_what_is_asked_for_is_known_as_a_whole(given: object, command: str, whole: str) -> None:
    assert ("\n".join(commands_of(given)), input_of(given)) == (command, whole)
