"""Answers to permissions that are kept: for whom, for which questions, and until when."""

import pytest

from engine.core import facts as f
from engine.core import run_facts as rf
from engine.core.effects import SendAnswer
from engine.messages.asked import AnswerScope, Question
from tests.support.core_runs import Told, a_run
from tests.support.plans import a_step


@pytest.fixture
def told() -> Told:
    run = a_run(a_step("a", 2), a_step("b"))
    run.ready("a1", "a2", "b")
    return run


def asks(told: Told, name: str, command: str, number: str = "q", *, danger: str = "") -> bool:
    """Ask for a permission; return whether it was answered at once."""
    question = Question(
        id=number,
        text=f"Bash: {command}",
        is_permission=True,
        about=f"Bash({command})",
        danger=danger,
    )
    told.tell(f.AgentAsked, name, question=question)
    return any(isinstance(effect, SendAnswer) for effect in told.effects)


@pytest.mark.parametrize(
    ("scope", "others"),
    [
        (None, [False, False, False]),
        (AnswerScope.WORKER, [True, False, False]),
        (AnswerScope.STEP, [True, True, False]),
        (AnswerScope.RUN, [True, True, True]),
        (AnswerScope.REPOSITORY, [True, True, True]),
    ],
)
def test_an_answer_is_kept_for_those_it_was_given_for(
    scope: AnswerScope | None, others: list[bool], told: Told
):
    asks(told, "a1", "ls")
    told.tell(f.HumanAnswered, "a1", question="q", answer="allow", scope=scope)
    assert [asks(told, name, "ls", "q2") for name in ("a1", "a2", "b")] == others
    assert not asks(told, "a1", "ls -l", "q3")


def test_replicas_that_wait_for_the_same_are_answered_by_one_word(told: Told):
    for name in ("a1", "a2", "b"):
        asks(told, name, "ls")
    told.tell(f.HumanAnswered, "a1", question="q", answer="deny", scope=AnswerScope.STEP)
    sent = [effect for effect in told.effects if isinstance(effect, SendAnswer)]
    assert [(one.worker.step, one.worker.index, one.answer) for one in sent] == [
        ("a", 1, "deny"),
        ("a", 2, "deny"),
    ]
    assert told.worker("b").attempt.questions


def test_a_pattern_answers_what_it_matches_and_nothing_dangerous(told: Told):
    asks(told, "a1", "git status")
    told.tell(
        f.HumanAnswered,
        "a1",
        question="q",
        answer="allow",
        scope=AnswerScope.RUN,
        pattern="Bash(git *)",
    )
    assert asks(told, "b", "git diff")
    assert not asks(told, "a2", "make")
    assert not asks(told, "a1", "git push", "q2", danger="sends commits away")


@pytest.mark.parametrize("pattern", ["", "Bash(*)"])
def test_no_kept_answer_allows_what_hides_something(pattern: str, told: Told):
    hidden = "ls \x1b]0;rm -rf ~;\x07"
    asks(told, "a1", hidden)
    rule = {"question": "q", "scope": AnswerScope.RUN, "pattern": pattern}
    told.tell(f.HumanAnswered, "a1", answer="allow", **rule)
    assert not asks(told, "b", hidden)
    told.tell(f.HumanAnswered, "b", answer="deny", **rule)
    assert asks(told, "a2", hidden)


def test_a_dangerous_command_that_was_allowed_by_itself_stays_allowed(told: Told):
    asks(told, "a1", "git push", danger="sends commits away")
    told.tell(f.HumanAnswered, "a1", question="q", answer="allow", scope=AnswerScope.RUN)
    assert asks(told, "b", "git push", danger="sends commits away")


def test_an_answer_that_is_revoked_counts_no_more_and_its_number_is_not_used_again(told: Told):
    asks(told, "a1", "ls", "q3")
    told.tell(f.HumanAnswered, "a1", question="q3", answer="allow", scope=AnswerScope.RUN)
    (rule,) = told.state.rules
    assert (rule.number, rule.answer, rule.asked) == (1, "allow", "Bash: ls")
    told.feed(rf.AnswerRevoked(number=rule.number, at=told.at))
    assert told.state.rules == ()
    assert not asks(told, "b", "ls")
    told.tell(f.HumanAnswered, "b", question="q", answer="deny", scope=AnswerScope.RUN)
    assert [one.number for one in told.state.rules] == [2]
