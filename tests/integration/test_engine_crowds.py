"""Many workers at once, again and again: nothing fails, nothing is left, nothing is touched."""

import os
from pathlib import Path

import pytest

from engine.phases import Phase
from tests.support.engine_runs import scripted, wait_view
from tests.support.merging_runs import MergingPlace
from tests.support.repositories import snapshot_of

pytestmark = pytest.mark.anyio
ROUNDS, CROWD = (50, 20) if os.environ.get("PLAIT_THOROUGH") else (1, 8)


@pytest.fixture
def place(tmp_path: Path) -> MergingPlace:
    return MergingPlace(tmp_path, {".gitignore": "*.o\n"})


async def test_a_crowd_of_workers_at_once_leave_the_users_checkout_as_it_is(place: MergingPlace):
    built = place.built
    agent = scripted(
        {"write": {"path": "made{index}", "text": "by {index}\n"}},
        {"commit": "half"},
        {"shell": f"until test -e {place.outside}/gate; do sleep 0.1; done"},
        {"append": {"path": "code", "text": "by {index}\n"}},
        {"result": "done"},
    )
    plan = place.manifest(
        {"name": "crowd", "agent": agent, "concurrency": CROWD, "policy": "settled"},
        isolation_strategy="worktree",
        max_concurrent_workers=CROWD,
        limits={"memory_mb": 256},
    )
    async with place.engine(within_s=120 * ROUNDS) as engine:
        for number in range(ROUNDS):
            built.write("untracked", f"{number}\n")
            built.write("ignored.o", f"{number}\n")
            built.write("code", "edited by the user\n")
            gate = place.outside / "gate"
            gate.unlink(missing_ok=True)
            run = await engine.start(plan)
            await wait_view(
                engine,
                run,
                lambda view: sum(w.phase is Phase.RUNNING for w in view.workers) == CROWD,
                within_s=100,
            )
            if number % 2 == 0:
                built.git("clean", "-fdxq")
            before = snapshot_of(built.path)
            gate.touch()
            report = await run.wait()

            assert report.steps["crowd"].success_count == CROWD, report
            assert snapshot_of(built.path) == before
            names = {f"plait/{run.id}/crowd/worker_{n}" for n in range(1, CROWD + 1)}
            assert {b for b in built.branches() if b.startswith(f"plait/{run.id}/")} == names
            for name in sorted(names):
                index = name.rpartition("_")[2]
                assert built.show(name, f"made{index}") == f"by {index}\n".encode()
                assert built.show(name, "code").endswith(f"by {index}\n".encode())
    assert len(built.branches()) == 1 + ROUNDS * CROWD
    left = [lock for lock in (built.path / ".git").rglob("*.lock") if lock.parent.name != "plait"]
    assert left == []
    built.fsck()
