"""Ten thousand stories, one a seed: every invariant holds in each, and each comes to rest."""

import os
from typing import Any

import pytest

from engine.core.report import report
from engine.phases import Phase
from engine.testing.simulator import Story, replay
from tests.support.plans import random_plan

SEEDS = 10_000 if os.environ.get("PLAIT_THOROUGH") else 300
RESTING = {Phase.REVIEWING, Phase.CONFLICTED, Phase.WAITING, Phase.QUEUED}


def tell(seed: int, **fields: Any) -> Story:
    story = Story(random_plan(seed), seed, **fields)
    story.run(meddling=40)
    return story


@pytest.mark.parametrize("block", range(6))
def test_every_story_comes_to_rest(block: int):
    for seed in range(block * SEEDS // 6, (block + 1) * SEEDS // 6):
        story = tell(seed)
        for w in story.state.workers.values():
            assert w.phase.is_settled or w.phase in RESTING, (seed, w.id, w.phase)
        waiting = [w for w in story.state.workers.values() if not w.phase.is_settled]
        assert story.state.is_finished_told == (not waiting), seed
        if waiting:
            assert report(story.state).waits_for, (seed, [(w.id, w.phase) for w in waiting])


def test_the_same_seed_tells_the_same_story():
    for seed in range(20):
        assert tell(seed).trace == tell(seed).trace


def test_a_replayed_journal_gives_the_same_state_at_every_point():
    for seed in range(15):
        story = tell(seed, crash_chance=0.0)
        assert replay(story.plan, story.journal) == story.state


def test_an_engine_that_dies_at_every_step_loses_nothing():
    for seed in range(40):
        tell(seed, crash_chance=0.5)


def test_a_story_in_which_each_effect_fails_once_comes_to_rest():
    for seed in range(3 if SEEDS < 1_000 else 100):
        number, answered = 0, 1
        while number < answered:
            number += 1
            story = Story(random_plan(seed), seed, fails_at=number)
            story.run(meddling=10)
            answered = story.answered
            for w in story.state.workers.values():
                assert w.phase.is_settled or w.phase in RESTING, (seed, number, w.id, w.phase)


def test_a_fact_that_comes_too_late_is_dropped_and_moves_nobody():
    dropped = sum(tell(seed).state.dropped for seed in range(60))
    assert dropped > 5
