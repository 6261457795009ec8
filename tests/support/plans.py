"""Builders of plans: the smallest plan that says what a test is about, and random ones by seed."""

import random
from dataclasses import replace
from typing import Any

from engine.ids import WorkerId
from engine.plan.model import AgentChoice, Plan, PlannedStep, PlannedWorker, RetryRule, Runtime
from engine.policies import ChooseBy, MergeMode, Policy, PolicyKind

AGENT = AgentChoice(name="fake", adapter="scripted")


def a_step(name: str, workers: int = 1, **fields: Any) -> PlannedStep:
    planned = tuple(
        PlannedWorker(id=WorkerId(name, n), agent=AGENT, prompt="do it")
        for n in range(1, workers + 1)
    )
    return PlannedStep(name=name, workers=planned, **fields)


def a_plan(*steps: PlannedStep, **runtime: Any) -> Plan:
    return Plan(name="test", steps=steps, runtime=Runtime(**runtime))


def random_plan(seed: int) -> Plan:
    dice = random.Random(seed)
    steps: list[PlannedStep] = []
    for n in range(dice.randint(1, 5)):
        workers = dice.choice([1, 1, 2, 3, 4])
        kind = dice.choice(list(PolicyKind))
        steps.append(
            a_step(
                f"s{n}",
                workers,
                dependencies=tuple(s.name for s in steps if dice.random() < 0.4),
                policy=Policy(kind, dice.randint(1, workers)),
                merge=dice.choice(list(MergeMode)),
                choose=dice.choice(list(ChooseBy)),
                retry=RetryRule(attempts=dice.randint(1, 3), delay_s=1.0),
                check="test" if dice.random() < 0.5 else None,
                max_parallel=dice.choice([None, None, 1, 2]),
            )
        )
    steps = [replace(step, wants_change=step.merge.lands) for step in steps]
    return a_plan(*steps, max_concurrent_workers=dice.randint(1, 5), auto_merge=dice.random() < 0.5)
