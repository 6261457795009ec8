"""An agent that ends well where a change was wanted, and has made none: no success, no failure."""

import pytest

from engine.core.outcome import candidates, chosen_of, is_choice_due
from engine.core.report import report, waits_for
from engine.messages.results import Outcome
from engine.phases import Phase
from engine.plan.make import parse_policy
from tests.support.core_runs import Told, a_run
from tests.support.plans import a_step

RACE, SETTLED = parse_policy("race"), parse_policy("settled")


def ends(told: Told, name: str, text: str = "") -> None:
    told.ready(name)
    told.ended(name, text=text)
    told.collected(name, None)


@pytest.mark.parametrize(
    ("said", "ending"),
    [
        ("All is as it should be.", "ended without a change"),
        ("", "ended without a change"),
        ("I could not find the parser.", "says it could not do it"),
        ("I can't run commands here.", "says it could not do it"),
        ("I was unable to reach the database.", "says it could not do it"),
    ],
)
def test_an_end_without_the_change_that_was_wanted_is_no_success(said: str, ending: str):
    told = a_run(a_step("a", wants_change=True))
    ends(told, "a", said)
    found = report(told.state)
    (worker,) = found.steps["a"].worker_results
    assert (worker.phase, worker.outcome, worker.ending) == (
        Phase.FINISHED,
        Outcome.UNCHANGED,
        ending,
    )
    assert (found.outcome, found.steps["a"].outcome) == (Outcome.UNCHANGED, Outcome.UNCHANGED)
    assert found.steps["a"].success_count == 0
    assert told.outcome("a") is Outcome.UNCHANGED


def test_where_no_change_is_wanted_its_words_are_a_success():
    told = a_run(a_step("a"))
    ends(told, "a", "I could not agree more.")
    found = report(told.state)
    assert found.outcome is Outcome.SUCCESS
    assert found.steps["a"].worker_results[0].ending == ""


def test_a_check_that_passes_proves_that_nothing_was_to_be_done():
    told = a_run(a_step("a", wants_change=True, check="test"))
    told.does("a", change=None)
    assert (told.phase("a"), told.outcome("a")) == (Phase.FINISHED, Outcome.SUCCESS)


def test_nobody_wins_a_race_by_changing_nothing():
    told = a_run(a_step("a", 2, wants_change=True, policy=RACE))
    ends(told, "a1")
    assert told.phases("a1", "a2") == [Phase.FINISHED, Phase.PREPARING]
    assert told.outcome("a") is Outcome.PENDING
    told.does("a2")
    assert told.outcome("a") is Outcome.SUCCESS
    step = told.state.plan.step("a")
    assert chosen_of(told.state, step) == told.worker("a2").id


def test_a_race_in_which_nobody_changes_anything_ends():
    told = a_run(a_step("a", 2, wants_change=True, policy=RACE))
    ends(told, "a1")
    ends(told, "a2")
    assert report(told.state).outcome is Outcome.UNCHANGED


def test_who_changed_nothing_is_no_candidate_beside_those_who_did():
    told = a_run(a_step("a", 3, wants_change=True, policy=SETTLED))
    told.does("a1", "a2")
    ends(told, "a3")
    step = told.state.plan.step("a")
    assert candidates(told.state, step) == (told.worker("a1").id, told.worker("a2").id)
    assert is_choice_due(told.state, step)


@pytest.mark.parametrize("is_behind", [False, True])
def test_there_is_nothing_to_choose_where_nobody_changed_anything(*, is_behind: bool):
    """Unless another step goes on from the chosen one, whatever that has said."""
    behind = [a_step("b", dependencies=("a",))] if is_behind else []
    told = a_run(a_step("a", 2, wants_change=True, policy=SETTLED), *behind)
    ends(told, "a1")
    ends(told, "a2")
    assert is_choice_due(told.state, told.state.plan.step("a")) is is_behind
    assert bool(waits_for(told.state)) is is_behind


def test_a_step_behind_it_begins_all_the_same():
    told = a_run(a_step("a", wants_change=True), a_step("b", dependencies=("a",)))
    ends(told, "a")
    assert told.phase("b") is Phase.PREPARING
    told.does("b")
    found = report(told.state)
    assert (found.outcome, found.steps["a"].outcome) == (Outcome.SUCCESS, Outcome.UNCHANGED)
