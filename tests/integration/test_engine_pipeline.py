"""Whole runs in plain folders with real keepers: what comes out, and that it comes out twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.messages.results import Outcome, RunReport
from engine.port.public import report_json
from tests.support.engine_runs import Place, manifest, phases, scripted, wait_worker

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def pipeline(place: Place) -> dict[str, Any]:
    """Every kind of step; a race is won when those who lose it are at work."""
    out = place.outside
    all_began = f"until test $(ls {out} | grep -c ^$PLAIT_RUN) = 2; do sleep 0.01; done"
    return place.manifest(
        {
            "name": "design",
            "agent": scripted(
                {"say": "a plan for {prompt}"},
                {"write": {"path": "design.md", "text": "the design"}},
                {"result": "designed"},
            ),
            "artifacts": ["design.md"],
        },
        {
            "name": "implement",
            "dependencies": ["design"],
            "prompt": "after: {steps.design.output}",
            "agent": scripted({"read": "design.md"}, {"result": "{prompt} #{index}"}),
            "concurrency": 3,
            "policy": "settled",
        },
        {
            "name": "compare",
            "dependencies": ["design"],
            "variants": [{"agent": "quick"}, {"agent": "slow", "n": 2}],
            "policy": "race",
        },
        {
            "name": "port",
            "dependencies": ["implement"],
            "prompt": "port {item}",
            "agent": scripted(
                {"result": "{prompt}"}, workers={"2": [{"fail": "cannot port this"}]}
            ),
            "strategy": {"matrix": {"items": ["x.py", "y.py", "z.py"]}},
            "policy": "quorum(2)",
        },
        {
            "name": "flaky",
            "agent": scripted(
                attempts={"1": [{"fail": "no idea"}], "2": [{"result": "{feedback}"}]}
            ),
            "retry": {"attempts": 2, "delay_seconds": 0.01},
        },
        {
            "name": "broken",
            "agent": scripted({"fail": "never works"}),
        },
        {"name": "after-broken", "dependencies": ["broken"], "run": "echo never"},
        {
            "name": "verify",
            "dependencies": ["port", "flaky"],
            "run": "echo $PLAIT_STEP $PLAIT_WORKER; exit 0",
        },
        agents={
            "quick": scripted({"shell": all_began}, {"result": "quick"}),
            "slow": scripted({"shell": f"mktemp -p {out} $PLAIT_RUN.XXXXXX"}, {"hang": True}),
        },
        max_concurrent_workers=8,
    )


def comparable(report: RunReport) -> Any:
    """A report without what no two runs share: times, ids, paths and usage."""
    found = report_json(report)
    found.pop("duration_s")
    for step in found["steps"].values():
        step.pop("worker_workspaces")
        for worker in step["worker_results"]:
            for name in ("usage", "attempt_usages", "workspace", "duration_s"):
                worker.pop(name)
    return json.loads(json.dumps(found).replace(report.run, "RUN"))


async def test_a_pipeline_of_every_kind_of_step_reports_the_same_twice(place: Place):
    reports = []
    async with place.engine() as engine:
        for _ in range(2):
            run = await engine.start(pipeline(place))
            reports.append(await run.wait())
            await engine.wait_idle()
    first, second = reports
    assert phases(first) == {
        "design/worker_1": "FINISHED",
        "implement/worker_1": "FINISHED",
        "implement/worker_2": "FINISHED",
        "implement/worker_3": "FINISHED",
        "compare/worker_1": "FINISHED",
        "compare/worker_2": "CANCELLED RACE_LOST",
        "compare/worker_3": "CANCELLED RACE_LOST",
        "port/worker_1": "FINISHED",
        "port/worker_2": "FAILED AGENT",
        "port/worker_3": "FINISHED",
        "flaky/worker_1": "FINISHED",
        "broken/worker_1": "FAILED AGENT",
        "after-broken/worker_1": "SKIPPED",
        "verify/worker_1": "FINISHED",
    }
    assert first.outcome is Outcome.FAILED
    assert first.steps["port"].outcome is Outcome.SUCCESS
    assert (first.steps["port"].success_count, first.steps["port"].fail_count) == (2, 1)
    assert first.steps["implement"].worker_results[1].output == "after: designed #2"
    assert [w.output for w in first.steps["port"].worker_results] == [
        "port x.py",
        "cannot port this",
        "port z.py",
    ]
    flaky = first.steps["flaky"].worker_results[0]
    assert flaky.attempts == 2
    assert "no idea" in flaky.output
    assert "attempt 2" in flaky.output
    assert first.steps["verify"].worker_results[0].output == "verify verify/worker_1"
    assert comparable(first) == comparable(second)
    assert not await place.survivors()


async def test_the_steps_of_a_report_stand_in_plan_order_whatever_ended_first(place: Place):
    plan = manifest(
        {"name": "late", "run": "sleep 0.3"},
        {"name": "early", "run": "true"},
    )
    async with place.engine() as engine:
        report = await (await engine.start(plan)).wait()
    assert list(report.steps) == ["late", "early"]


@pytest.mark.parametrize(
    ("policy", "expected", "outcome"),
    [
        ("all", ["CANCELLED FAIL_FAST", "FAILED AGENT", "CANCELLED FAIL_FAST"], Outcome.FAILED),
        ("settled", ["FINISHED", "FAILED AGENT", "FINISHED"], Outcome.SUCCESS),
        ("first(1)", ["FINISHED", "FAILED AGENT", "CANCELLED RACE_LOST"], Outcome.SUCCESS),
        ("quorum(2)", ["FINISHED", "FAILED AGENT", "FINISHED"], Outcome.SUCCESS),
        ("quorum(3)", ["FINISHED", "FAILED AGENT", "FINISHED"], Outcome.FAILED),
    ],
)
async def test_each_policy_ends_its_step_as_it_says(
    place: Place, policy: str, expected: list[str], outcome: Outcome
):
    def waits(name: str) -> list[dict[str, str]]:
        return [{"shell": place.waits_at(name)}, {"result": "done"}]

    agent = scripted(workers={"1": waits("one"), "2": [{"fail": "no"}], "3": waits("three")})
    plan = place.manifest({"name": "a", "agent": agent, "concurrency": 3, "policy": policy})
    async with place.engine() as engine:
        run = await engine.start(plan)
        if policy != "all":
            await wait_worker(engine, run, "a/worker_2", lambda w: w.phase.is_settled)
            place.open_gate("one")
        if policy in {"settled", "quorum(2)", "quorum(3)"}:
            place.open_gate("three")
        report = await run.wait()
    assert list(phases(report).values()) == expected, [
        w.error for w in report.steps["a"].worker_results
    ]
    assert report.outcome is outcome
    assert not await place.survivors()
