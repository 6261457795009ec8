"""Commands against states: taken as facts, or refused with the reason a human needs."""

from dataclasses import replace
from typing import Any

import pytest

from engine.core import facts as f
from engine.limits import Limits
from engine.messages import commands as c
from engine.messages.asked import AnswerScope, Question
from engine.messages.results import Badge
from engine.phases import Phase
from engine.plan.model import RetryMode
from engine.policies import ChooseBy, MergeMode, Policy, PolicyKind
from engine.run.judge import Ruling, judge
from tests.support.core_runs import Told, a_run, who
from tests.support.plans import a_step

EACH: dict[str, Any] = {"merge": MergeMode.EACH}


def ruling(told: Told, command: c.Command) -> f.Fact:
    verdict = judge(told.state, command, at=told.at)
    assert isinstance(verdict, Ruling), verdict
    (fact,) = verdict.facts
    told.feed(fact)
    return fact


def refusal(told: Told, command: c.Command) -> c.Refused:
    verdict = judge(told.state, command, at=told.at)
    assert isinstance(verdict, c.Refused), verdict
    return verdict


@pytest.mark.parametrize("name", ["a/worker_2", "r1/a/worker_2", "a/worker_2@1", "worker_2"])
def test_a_worker_is_found_by_any_name_that_means_one(name: str):
    told = a_run(a_step("a", 2))
    fact = ruling(told, c.StopWorker(worker=name))
    assert fact == f.StopRequested(worker=who("a2"), attempt=1, at=told.at)


def test_a_name_that_means_several_is_refused_with_all_of_them():
    refused = refusal(a_run(a_step("a", 2)), c.StopWorker(worker="a"))
    assert refused.choices == ("a/worker_1", "a/worker_2")
    assert "several" in refused.reason


def test_a_name_that_means_nobody_is_refused():
    assert "not a worker" in refusal(a_run(a_step("a")), c.Steer(worker="b", text="x")).reason


@pytest.mark.parametrize(
    "command",
    [
        c.Answer(worker="a", answer="allow"),
        c.Steer(worker="a", text="x"),
        c.Interrupt(worker="a"),
        c.Approve(worker="a"),
        c.Reject(worker="a"),
        c.Choose(worker="a"),
        c.Land(worker="a"),
        c.RetryWorker(worker="a"),
        c.Pause(worker="a"),
        c.Resume(worker="a"),
        c.Resume(),
        c.SetCap(cap=0),
        c.RevokeAnswer(number=1),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_makes_no_sense_while_a_worker_is_prepared_is_refused(command: c.Command):
    told = a_run(a_step("a"))
    assert refusal(told, command).reason


def test_everything_settled_leaves_nothing_to_stop():
    told = a_run(a_step("a"))
    told.fails("a")
    assert refusal(told, c.StopWorker(worker="a")).reason
    assert refusal(told, c.StopRun()).reason


def test_a_run_in_which_only_a_review_is_left_cannot_be_stopped():
    told = a_run(a_step("a"), a_step("b"), max_concurrent_workers=2)
    told.does("a")
    ruling(told, c.StopRun())
    told = a_run(a_step("a"), a_step("b"), max_concurrent_workers=2)
    told.does("a")
    told.fails("b")
    assert "wait for review" in refusal(told, c.StopRun()).reason
    assert told.worker("a").phase is Phase.REVIEWING


def test_a_retry_carries_words_limits_and_another_agent():
    told = a_run(a_step("a"))
    told.does("a")
    command = c.RetryWorker(
        worker="a",
        mode=RetryMode.CONTINUE,
        feedback="name it better",
        limits=Limits(memory_mb=1),
        agent="scripted",
    )
    ruling(told, command)
    worker = told.worker("a")
    assert worker.phase is Phase.PREPARING
    assert (worker.next.words, worker.next.mode) == ("name it better", RetryMode.CONTINUE)
    assert worker.limits == Limits(memory_mb=1)
    assert worker.agent is not None
    assert refusal(told, c.RetryWorker(worker="a", agent="nobody")).reason


def test_a_sibling_of_a_standing_choice_is_not_retried_only_to_be_stopped():
    told = a_run(a_step("a", 2, choose=ChooseBy.HUMAN))
    told.does("a1", "a2")
    ruling(told, c.Choose(worker="a/worker_1"))
    assert "is chosen" in refusal(told, c.RetryWorker(worker="a/worker_2")).reason
    assert "chosen already" in refusal(told, c.Choose(worker="a/worker_1")).reason
    ruling(told, c.Reject(worker="a/worker_1"))
    ruling(told, c.RetryWorker(worker="a/worker_2"))
    assert told.phase("a2") is Phase.PREPARING


def test_who_lost_a_race_is_not_retried_only_to_lose_it_again():
    told = a_run(a_step("a", 2, policy=Policy(PolicyKind.FIRST, 1)))
    told.does("a1")
    told.is_stopped("a2")
    assert "successes" in refusal(told, c.RetryWorker(worker="a/worker_2")).reason


def test_a_stacked_change_lands_after_those_below_it():
    told = a_run(a_step("a"), a_step("b", dependencies=("a",)))
    told.does("a", "b")
    refused = refusal(told, c.Land(worker="b"))
    assert "stacked on a/worker_1" in refused.reason
    ruling(told, c.Land(worker="a"))
    told.landed("a")
    ruling(told, c.Land(worker="b"))


def test_a_violation_is_never_landed():
    told = a_run(a_step("a"))
    told.does("a")
    told.tell(f.ViolationSeen, "a", path="/etc/passwd")
    assert "/etc/passwd" in refusal(told, c.Land(worker="a")).reason


def test_an_answer_goes_to_the_question_it_names_or_the_oldest():
    told = a_run(a_step("a"))
    told.ready("a")
    told.ask("a", "q1")
    told.ask("a", "q2")
    assert "no longer" in refusal(told, c.Answer(worker="a", answer="x", question="q9")).reason
    ruling(told, c.Answer(worker="a", answer="x"))
    assert [question.id for question in told.worker("a").attempt.questions] == ["q2"]


def _asks_to_run(*, is_editable: bool) -> Told:
    told = a_run(a_step("a"))
    told.ready("a")
    asked = Question(
        id="q", text="Bash: pip", is_permission=True, command="pip", is_editable=is_editable
    )
    told.tell(f.AgentAsked, "a", question=asked)
    return told


def test_another_command_is_allowed_once_where_the_agent_runs_it():
    told = _asks_to_run(is_editable=True)
    kept = c.Answer(worker="a", answer="allow: uv", is_for_run=True)
    assert "only be allowed once" in refusal(told, kept).reason
    fact = ruling(told, c.Answer(worker="a", answer="allow: uv"))
    assert isinstance(fact, f.HumanAnswered)
    assert fact.answer == "allow: uv"


def test_another_command_is_refused_by_name_where_the_agent_runs_only_its_own():
    told = _asks_to_run(is_editable=False)
    refused = refusal(told, c.Answer(worker="a", answer="allow: uv"))
    assert "cannot run an edited command" in refused.reason
    assert "deny" in refused.hint
    ruling(told, c.Answer(worker="a", answer="allow"))


def test_no_answer_is_kept_to_what_is_not_known_exactly():
    told = a_run(a_step("a"))
    told.ready("a")
    asked = Question(id="q", text="Bash: git … (cut)", is_permission=True, needs_human=True)
    told.tell(f.AgentAsked, "a", question=asked)
    for kept in (
        c.Answer(worker="a", answer="allow", is_for_run=True),
        c.Answer(worker="a", answer="allow", scope=AnswerScope.REPOSITORY),
    ):
        assert "cannot be kept" in refusal(told, kept).reason
    ruling(told, c.Answer(worker="a", answer="allow"))


def test_an_answer_to_another_text_under_the_same_name_is_refused():
    told = _asks_to_run(is_editable=False)
    asked = c.Answer(worker="a", answer="allow", question="q", asked="Bash: ls")
    assert "no longer asks this" in refusal(told, asked).reason
    ruling(told, replace(asked, asked="Bash: pip"))


def test_a_request_that_hides_something_is_allowed_once_by_whoever_has_read_it():
    told = a_run(a_step("a"))
    told.ready("a")
    hidden = Question(id="q", text="Bash: ls \x1b]0;rm -rf ~;\x07", is_permission=True)
    told.tell(f.AgentAsked, "a", question=hidden)
    blind = c.Answer(worker="a", answer="allow", question="q")
    assert "hides characters" in refusal(told, blind).reason
    read = replace(blind, asked=hidden.text)
    assert "only be allowed once" in refusal(told, replace(read, is_for_run=True)).reason
    kept = replace(read, scope=AnswerScope.RUN, pattern="Bash(*)")
    assert "only be allowed once" in refusal(told, kept).reason
    ruling(told, replace(blind, answer="deny", is_for_run=True))


def test_a_request_that_hides_something_is_allowed_by_whoever_has_read_it():
    told = a_run(a_step("a"))
    told.ready("a")
    hidden = Question(id="q", text="Bash: ls\u202e", is_permission=True)
    told.tell(f.AgentAsked, "a", question=hidden)
    ruling(told, c.Answer(worker="a", answer="allow", question="q", asked=hidden.text))


def test_a_step_joins_a_run_only_if_it_fits():
    told = a_run(a_step("a"))
    assert "already" in refusal(told, c.AddStep(step=a_step("a"))).reason
    assert "no step z" in refusal(told, c.AddStep(step=a_step("b", dependencies=("z",)))).reason
    assert "no workers" in refusal(told, c.AddStep(step=a_step("b", 0))).reason
    twice = a_step("b").workers * 2
    broken = c.AddStep(step=a_step("b"))
    object.__setattr__(broken.step, "workers", twice)
    assert refusal(told, broken).reason
    ruling(told, c.AddStep(step=a_step("b", dependencies=("a",))))
    assert told.phase("b") is Phase.WAITING


def test_a_worker_joins_like_the_last_of_its_step():
    told = a_run(a_step("a", **EACH))
    assert refusal(told, c.AddWorker(step="z")).reason
    assert refusal(told, c.AddWorker(step="a", agent="nobody")).reason
    ruling(told, c.AddWorker(step="a"))
    assert told.phase("a2") is Phase.PREPARING


def test_nobody_joins_a_step_on_which_others_already_build_or_which_is_decided():
    told = a_run(a_step("a", 2, **EACH), a_step("b", dependencies=("a",)), max_concurrent_workers=4)
    told.does("a1", "a2")
    assert told.phase("b") is Phase.PREPARING
    assert "b/worker_1 already builds on a" in refusal(told, c.AddWorker(step="a")).reason
    told.does("b")
    ruling(told, c.AddWorker(step="a"))  # what has ended stays, and is marked until it is done anew
    assert told.phase("b") is Phase.REVIEWING
    told.does("a3")
    assert Badge.BASE_OUTDATED in told.worker("b").badges
    told = a_run(a_step("a", 2))
    told.fails("a1")
    assert "has failed" in refusal(told, c.AddWorker(step="a")).reason
    told = a_run(a_step("a", 2), max_concurrent_workers=2)
    told.does("a1", "a2")
    ruling(told, c.Choose(worker="a/worker_1"))
    assert "is chosen" in refusal(told, c.AddWorker(step="a")).reason


def test_nothing_joins_a_run_that_was_stopped():
    told = a_run(a_step("a"))
    ruling(told, c.StopRun())
    told.is_stopped("a")
    assert "stopped" in refusal(told, c.AddStep(step=a_step("b"))).reason
    assert "stopped" in refusal(told, c.AddWorker(step="a")).reason
    ruling(told, c.Resume())
    ruling(told, c.AddStep(step=a_step("b")))


@pytest.mark.parametrize("command", [c.Resume(), c.Resume(worker="a")])
def test_who_waits_for_a_login_is_resumed_by_a_word(command: c.Command):
    told = a_run(a_step("a"))
    told.ready("a")
    told.ended("a", ok=False, needs_login=True)
    told.collected("a")
    assert ruling(told, command) == f.BackoffElapsed(worker=who("a"), attempt=1, at=told.at)
    assert told.phase("a") is Phase.PREPARING
    refusal(told, command)
