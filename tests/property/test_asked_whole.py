"""A human allows exactly the command that runs: nothing of a request is hidden, cut or mixed up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.legible import hides
from engine.messages.asked import AnswerScope, KeptAnswer, Question
from engine.messages.results import WorkerView
from engine.phases import Phase
from tests.support.world import worker
from tui.ink import width_of
from tui.kit.cards import question_pieces
from tui.words.asking import raw_of, who_asks_alike
from tui.words.clean import LONGEST, clean_asked, clean_block, clean_tree
from tui.words.cutting import wrap_whole

_STAND_INS = "→·<>\u2190" + "".join(map(chr, range(0x2400, 0x2422)))
"""Signs that stand for hidden characters: a text may hold them itself."""
_HIDING = st.sampled_from(
    [
        "\x1b]0;rm -rf ~;\x07",
        "\x1b]0;rm -rf ~\x1b\\",
        "\x9d0;rm -rf ~\x9c",
        "\x1bPrm -rf ~\x1b\\",
        "\x1b[8m",
        "\x1b[2K",
        "\x1bc",
        "\r",
        "\x08" * 9,
        "\x00",
        "\x85",
        "\u200b",
        "\u202e",
        "\u2066",
        "\u2028",
        "\u3164",
        "\ufe0f",
        "\U000e0041",
        "\u00a0",
        "\udc9b",
        " " * 200,
        "\t" * 30,
    ]
)
_SEEN = st.sampled_from(["ls", " -l", "; ", "rm -rf ~", "x" * 90, "\n", "    ", "\t", "é", "日本"])
_WORDS = st.text(st.characters(exclude_characters=_STAND_INS), max_size=9)
_COMMANDS = st.lists(st.one_of(_SEEN, _HIDING, _WORDS), min_size=1, max_size=8).map("".join)
_HIDING_COMMANDS = st.tuples(_COMMANDS, _HIDING, _COMMANDS).map("".join)


def question(command: str, name: str = "q") -> Question:
    """Return a request to run a command, as the engine words it."""
    return Question(
        id=name,
        text=f"Bash: {command}",
        is_permission=True,
        about=f"Bash({command})",
        command=command,
    )


def asks(name: str, command: str) -> WorkerView:
    """Return a worker that asks, as the console holds it."""
    return clean_tree(worker(name, Phase.RUNNING, questions=(question(command, name),)))


@given(_COMMANDS)
def test_nothing_that_is_asked_vanishes(command: str):
    drawn = iter(clean_asked(command))
    assert all(char in drawn for char in command if "!" <= char <= "~")


@given(_COMMANDS, _COMMANDS)
def test_two_requests_that_differ_are_drawn_apart(one: str, other: str):
    assert (clean_asked(one) == clean_asked(other)) == (one == other)


@given(_COMMANDS, st.integers(2, 80))
def test_the_rows_of_a_request_are_the_whole_request(command: str, cells: int):
    drawn = clean_asked(command)
    rows = [wrap_whole(line, cells) for line in drawn.split("\n")]
    assert "\n".join(map("".join, rows)) == drawn
    assert all(width_of(piece) <= cells for pieces in rows for piece in pieces)
    first, rest = question_pieces(drawn, cells)
    assert "".join((*first, *rest)) == drawn.replace("\n", "")


@pytest.mark.needs("Unicode 14")
def test_a_character_hides_exactly_where_a_sign_stands_for_it():
    chars = [chr(code) for code in range(0x110000) if chr(code) not in " \n\t"]
    assert [ascii(char) for char in chars if hides(char) != (clean_asked(char) != char)] == []


@given(_HIDING_COMMANDS)
def test_no_rule_and_no_other_answer_allows_what_hides_something(command: str):
    asked = question(command)
    for pattern in ("", "*", "Bash(*"):
        rule = KeptAnswer(
            number=1, answer="allow", scope=AnswerScope.RUN, asked=asked.text, pattern=pattern
        )
        assert not rule.answers(asked, worker="a/worker_1", step="a")
        denying = replace(rule, answer="deny")
        assert denying.answers(asked, worker="a/worker_1", step="a")
    workers = [asks("a/worker_1", command), asks("a/worker_2", command)]
    assert who_asks_alike(workers, workers[0]) == workers[:1]


@given(_COMMANDS, _COMMANDS)
def test_only_who_asks_byte_for_byte_the_same_asks_alike(one: str, other: str):
    workers = [asks("a/worker_1", one), asks("a/worker_2", other)]
    is_alike = len(who_asks_alike(workers, workers[0])) > 1
    assert is_alike == (one == other and not hides(one))


def test_what_hides_nothing_is_answered_by_a_rule_and_together():
    asked = question("git status")
    rule = KeptAnswer(number=1, answer="allow", scope=AnswerScope.RUN, asked=asked.text)
    assert rule.answers(asked, worker="a/worker_1", step="a")
    workers = [asks("a/worker_1", "git status"), asks("a/worker_2", "git status")]
    assert who_asks_alike(workers, workers[0]) == workers


def test_the_cleaning_of_other_texts_would_hide_it():
    for hidden in ("ls \x1b]0;rm -rf ~;\x07", "a" * LONGEST + "; rm -rf ~"):
        assert "rm" not in clean_block(hidden)
        assert "rm -rf ~" in clean_asked(hidden)


@given(_COMMANDS)
def test_the_console_keeps_what_is_asked_byte_for_byte_beside_what_it_draws(command: str):
    held = asks("a/worker_1", command).questions[0]
    assert raw_of(held) == question(command, "a/worker_1")
    assert held.id == "a/worker_1"
    assert clean_tree(held) == held
