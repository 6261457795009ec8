"""Answers that a repository keeps, beyond the run that gave them."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.messages.asked import AnswerScope, KeptAnswer
from engine.work.kept_answers import KeptAnswers

LOOK = KeptAnswer(number=3, answer="allow", scope=AnswerScope.REPOSITORY, asked="May I look?")
PUSH = replace(LOOK, number=1, answer="deny", asked="May I push?")
FOR_RUN = replace(LOOK, number=4, scope=AnswerScope.RUN)


@pytest.fixture
def answers(tmp_path: Path) -> KeptAnswers:
    return KeptAnswers(tmp_path / "answers.json")


def test_only_answers_for_the_repository_are_kept(answers: KeptAnswers):
    answers.follow((), (LOOK, FOR_RUN))
    assert answers.read() == (replace(LOOK, number=1),)


def test_two_runs_write_beside_each_other(answers: KeptAnswers):
    answers.follow((), (LOOK,))
    answers.follow((), (PUSH,))
    answers.follow((LOOK,), ())
    assert answers.read() == (PUSH,)


def test_an_answer_is_kept_once(answers: KeptAnswers):
    answers.follow((), (LOOK,))
    answers.follow((), (replace(LOOK, number=9),))
    assert answers.read() == (replace(LOOK, number=1),)


@pytest.mark.parametrize("said", [b"", b"{", b"7", b'[{"type": "KeptAnswer"}]', b"[[]]"])
def test_a_file_that_is_damaged_keeps_nothing(said: bytes, answers: KeptAnswers):
    answers.path.write_bytes(said)
    assert answers.read() == ()
    answers.follow((), (LOOK,))
    assert answers.read() == (replace(LOOK, number=1),)
