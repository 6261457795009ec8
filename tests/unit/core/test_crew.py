"""A crew's counts are what looking at every worker would tell, however often they have changed."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from engine.core.crew import Crew
from engine.core.state import RunState, Worker, initial_state
from engine.ids import RunId, WorkerId
from engine.messages.results import Outcome
from engine.phases import HOLDING, SETTLED, Phase
from tests.support.plans import a_plan, a_step


def a_crew() -> Crew[Worker]:
    return initial_state(RunId("r"), a_plan(a_step("a", 7), a_step("b", 1), a_step("c", 4))).crew


def recounted(crew: Crew[Worker]) -> list[object]:
    every = list(crew.values())
    return [
        [[w for w in every if w.phase is phase] for phase in Phase],
        [[w for w in every if w.id.step == step and w.phase in HOLDING] for step in "abc"],
        [Counter(w.outcome for w in every if w.id.step == step) for step in "abc"],
        [tuple(w for w in every if w.id.step == step) for step in "abc"],
        sum(w.phase.holds_slot for w in every),
        all(w.phase in SETTLED for w in every),
    ]


def counted(crew: Crew[Worker]) -> list[object]:
    return [
        [crew.standing((phase,)) for phase in Phase],
        [crew.standing(HOLDING, step) for step in "abc"],
        [+Counter(crew.outcomes(step)) for step in "abc"],
        [crew.of(step) for step in "abc"],
        crew.holding,
        crew.is_settled,
    ]


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_those_of_a_recount_when_workers_change(seed: int) -> None:
    dice, crew = random.Random(seed), a_crew()
    for _ in range(60):
        worker = dice.choice(list(crew))
        phase, outcome = dice.choice(list(Phase)), dice.choice(list(Outcome))
        crew.put(replace(crew[worker], phase=phase, outcome=outcome))
        assert counted(crew) == recounted(crew)


def test_copy_leaves_the_crew_before_as_it_was() -> None:
    crew = a_crew()
    before = recounted(crew)
    changed = crew.copy()
    for worker in list(changed):
        changed.put(replace(changed[worker], phase=Phase.FINISHED, outcome=Outcome.SUCCESS))
    assert counted(crew) == before
    assert changed.is_settled
    assert not crew.is_settled


def test_a_turn_copies_no_more_of_a_thousand_workers_than_of_a_few() -> None:
    crew = initial_state(RunId("r"), a_plan(a_step("a", 1_000), a_step("b", 1_000))).crew
    changed = crew.copy()
    worker = WorkerId("a", 500)
    changed.put(replace(crew[worker], phase=Phase.RUNNING))
    copied = [
        new for old, new in zip(crew._members, changed._members, strict=True) if old is not new
    ]
    assert [worker in {w.id for w in shelf} for shelf in copied] == [True]
    assert len(copied[0]) < 100
    assert changed._steps["b"] is crew._steps["b"]
    assert (changed[worker].phase, crew[worker].phase) == (Phase.RUNNING, Phase.WAITING)


@pytest.mark.parametrize("at_most", [None, 0, 1, 2, 70, 1_000])
def test_the_first_of_many_come_in_plan_order(at_most: int | None) -> None:
    crew = initial_state(RunId("r"), a_plan(a_step("a", 100), a_step("b", 100))).crew
    for number in (3, 64, 65, 66, 99):
        for step in "ba":
            crew.put(replace(crew[WorkerId(step, number)], phase=Phase.QUEUED))
    queued = [w for w in crew.values() if w.phase is Phase.QUEUED]
    assert crew.standing((Phase.QUEUED,), at_most=at_most) == queued[:at_most]
    assert (
        crew.standing((Phase.WAITING,), "b", at_most)
        == [w for w in crew.of("b") if w.phase is Phase.WAITING][:at_most]
    )


def test_nobody_is_counted_for_a_step_without_workers() -> None:
    crew = a_crew()
    assert (crew.of("z"), crew.standing(Phase, "z"), crew.count(Phase, "z")) == ((), [], 0)
    assert not crew.outcomes("z")


def test_a_state_counts_the_workers_it_is_given_as_a_plain_mapping() -> None:
    state = initial_state(RunId("r"), a_plan(a_step("a", 2)))
    first = WorkerId("a", 1)
    workers = {**state.workers, first: replace(state.workers[first], phase=Phase.RUNNING)}
    given: RunState = replace(state, workers=workers)
    assert given.slots_in_use == 1
