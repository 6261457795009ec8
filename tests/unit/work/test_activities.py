"""One activity a worker: the next one waits for the last, and timers end with their reason."""

import anyio
import pytest
from anyio.abc import TaskGroup

from engine.core.effects import ReleaseWorkspace, StartAgent, StartTimer
from engine.errors import HostLost
from engine.ids import WorkerId
from engine.patterns import Background
from engine.work.activities import Activities, Activity

pytestmark = pytest.mark.anyio

WHO = WorkerId("a", 1)
RELEASE = ReleaseWorkspace(worker=WHO, attempt=1)
START = StartAgent(worker=WHO, attempt=2)
TIMER = StartTimer(worker=WHO, attempt=1, until=9.0)


class Acts:
    """The acts that are performed, in order; each act ends when it is released."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.failures: list[str] = []
        self.activities = Activities(Background(tasks), self._failed)
        self.begun: list[str] = []
        self.gate = anyio.Event()

    def _failed(self, worker: WorkerId, error: Exception) -> None:
        self.failures.append(f"{worker}: {error}")

    async def perform(self, activity: Activity) -> None:
        self.begun.append(type(activity.effect).__name__)
        await self.gate.wait()


@pytest.fixture
async def acts():
    async with anyio.create_task_group() as tasks:
        yield Acts(tasks)
        tasks.cancel_scope.cancel()


async def test_an_activity_begins_only_when_the_last_one_of_its_worker_has_ended(acts: Acts):
    acts.activities.begin(RELEASE, acts.perform)
    acts.activities.begin(START, acts.perform)
    await anyio.wait_all_tasks_blocked()
    assert acts.begun == ["ReleaseWorkspace"]
    assert acts.activities.under_way == 2
    acts.gate.set()
    await anyio.wait_all_tasks_blocked()
    assert acts.begun == ["ReleaseWorkspace", "StartAgent"]
    assert acts.activities.under_way == 0
    assert acts.activities.of(WHO) is None


async def test_an_activity_that_waits_for_another_can_be_ended(acts: Acts):
    acts.activities.begin(RELEASE, acts.perform)
    second = acts.activities.begin(START, acts.perform)
    with anyio.fail_after(30):
        await second.end()
    assert "StartAgent" not in acts.begun


async def test_a_timer_ends_when_nobody_waits_for_it_any_more(acts: Acts):
    timer = acts.activities.begin(TIMER, acts.perform)
    await anyio.wait_all_tasks_blocked()
    acts.activities.end_timers(lambda _: True)
    await anyio.wait_all_tasks_blocked()
    assert acts.activities.under_way == 1
    acts.activities.end_timers(lambda _: False)
    with anyio.fail_after(30):
        await timer.done.wait()
    assert acts.activities.under_way == 0


async def test_what_is_no_timer_is_left_alone(acts: Acts):
    acts.activities.begin(START, acts.perform)
    await anyio.wait_all_tasks_blocked()
    acts.activities.end_timers(lambda _: False)
    await anyio.wait_all_tasks_blocked()
    assert acts.activities.under_way == 1


async def test_an_activity_that_fails_ends_no_other_and_is_reported(acts: Acts):
    async def lost(activity: Activity | None = None) -> None:
        del activity
        raise HostLost("attempt 1", 0)

    acts.activities.begin(RELEASE, lost)
    acts.activities.aside(WHO, lost)
    other = acts.activities.begin(START, acts.perform)
    acts.gate.set()
    await other.done.wait()
    assert acts.failures == [f"{WHO}: {HostLost('attempt 1', 0)}"] * 2
    assert acts.activities.under_way == 0
