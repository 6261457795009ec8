"""The same plan at two sites makes the same events, output, trees and landings, line by line."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from engine.messages.events import (
    Answered,
    Asked,
    CheckFinished,
    Event,
    LimitHitSeen,
    OfAttempt,
    ReviewWanted,
    RunWaiting,
    WorkerMoved,
    WorkerSettled,
)
from engine.phases import Phase
from tests.support.engine_runs import scripted, wait_worker
from tests.support.merging_runs import MergingPlace, changed, land, writes
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
TOLD = (WorkerMoved, ReviewWanted, CheckFinished, WorkerSettled, Asked, Answered, LimitHitSeen)
"""Events whose order, for one worker, does not hang on who was quicker."""


def steps() -> tuple[Mapping[str, Any], ...]:
    """One of each: checked, red, tried again, cut by a limit, given an artifact, a command."""
    half = {"write": {"path": "half", "text": "of it"}}
    return (
        {
            "name": "good",
            "agent": scripted(
                {"say": "at work"},
                {"write": {"path": "code", "text": changed(3, "three")}},
                {"shell": "mkdir kept; echo of $PLAIT_WORKER > kept/x; echo kept >> .gitignore"},
                {"result": "done"},
            ),
            "check": "grep three code",
            "artifacts": ["kept"],
        },
        {"name": "red", "agent": writes({"other": "red\n"}), "check": "echo why; exit 3"},
        {
            "name": "flaky",
            "agent": scripted(
                attempts={"1": [half, {"fail": "no idea"}], "2": [half, {"result": "{feedback}"}]}
            ),
            "retry": {"attempts": 2, "delay_seconds": 0.01},
        },
        {
            "name": "slow",
            "agent": scripted({"write": {"path": "slow", "text": "begun"}}, {"hang": True}),
            "limits": {"time_seconds": 6},  # it writes before it hangs, on a busy machine too
        },
        {"name": "use", "dependencies": ["good"], "run": "cat kept/x code; git log --format=%s -1"},
    )


async def told(place: MergingPlace, site: str) -> dict[str, Any]:
    """All that is to be the same wherever the workers live."""
    plan = place.manifest(*steps(), isolation_strategy="worktree", sites={"default": site})
    heard: dict[str, list[Any]] = defaultdict(list)
    async with place.engine() as engine:
        run = await engine.start(plan)
        async for one in engine.events(0, run=run.id):
            if isinstance(one.event, TOLD):
                heard[one.event.worker].append(plain(one.event))
            if isinstance(one.event, RunWaiting):
                break
        assert await land(engine, run, "good/worker_1") is Phase.LANDED
        await wait_worker(engine, run, "use/worker_1", lambda w: w.phase.is_settled)
        view = await engine.view(run.id)
        found: dict[str, Any] = {"events": dict(heard)}
        found["phases"] = {w.worker: (w.phase, w.cause, w.attempt) for w in view.workers}
        found["changes"] = {w.worker: change_of(place.built, w.change) for w in view.workers}
        found["lines"] = {
            w.worker: [
                (line.kind, line.text) for line in (await engine.log(run.id, w.worker)).lines
            ]
            for w in view.workers
            if not w.worker.startswith("slow")
        }
        found["sites"] = {w.site for w in view.workers if w.workspace}
    kept = place.built.path / f".git/plait/runs/{run.id}/good/worker_1/artifacts_1"
    found["kept"] = await to_thread.run_sync(names_in, kept)
    found["main"] = place.built.git("rev-parse", "main^{tree}")
    refs = place.built.git("for-each-ref", "--format=%(refname)", "refs/plait")
    found["refs"] = sorted(ref.replace(run.id, "RUN") for ref in refs.split())
    place.built.fsck()
    return found


def names_in(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*")}


def plain(event: Event) -> Any:
    """An event without what time and commits make of it."""
    assert isinstance(event, OfAttempt)
    kept = {name: value for name, value in vars(event).items() if name not in {"check", "hit"}}
    if isinstance(event, CheckFinished):
        kept["check"] = (event.check.passed, event.check.exit_code, event.check.summary)
    if isinstance(event, LimitHitSeen):
        kept["hit"] = (event.hit.dimension, event.hit.allowed)
    return type(event).__name__, kept


def change_of(built: RepositoryBuilder, change: Any) -> Any:
    if change is None:
        return None
    tree = built.git("rev-parse", f"{change.head}^{{tree}}") if change.head else ""
    return tree, change.files, change.insertions, change.artifacts, change.set_aside


@pytest.fixture
def places(tmp_path: Path) -> Mapping[str, MergingPlace]:
    made = {}
    for site in ("local", "child"):
        (tmp_path / site).mkdir()
        made[site] = MergingPlace(tmp_path / site)
    return made


async def test_a_plan_is_the_same_story_at_every_site(places: Mapping[str, MergingPlace]) -> None:
    stories = {site: await told(place, site) for site, place in places.items()}
    here, there = stories["local"], stories["child"]
    assert (here.pop("sites"), there.pop("sites")) == ({""}, {"child"})
    assert here["kept"] == {"kept", "kept/x"}
    assert here["phases"]["good/worker_1"] == (Phase.LANDED, None, 1)
    assert len(here["events"]) == len(steps())
    for part, said in here.items():
        assert there[part] == said, part
