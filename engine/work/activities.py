"""Track each worker's activity: at most one, begun by an entry effect."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import anyio

from engine.core.effects import EntryEffect, StartTimer
from engine.ids import WorkerId
from engine.patterns.background import Background
from engine.work.watch import Watch


@dataclass(eq=False)
class Activity:
    """One entry effect being performed; `watch` is there once it follows an agent."""

    effect: EntryEffect
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    done: anyio.Event = field(default_factory=anyio.Event)
    watched: anyio.Event = field(default_factory=anyio.Event)
    watch: Watch | None = None

    async def wait_watched(self) -> None:
        """Return when there is a watch, or when there will be none any more."""
        await self.watched.wait()

    async def end(self) -> None:
        """Cancel the activity and wait until it has cleaned up."""
        self.scope.cancel()
        await self.done.wait()


class Activities:
    """All activities of one run, counted before they begin so that nothing is ever missed."""

    def __init__(self, tasks: Background, failed: Callable[[WorkerId, Exception], None]) -> None:
        """`failed` hears of a worker's activity that ended without a fact about its end."""
        self._tasks = tasks
        self._failed = failed
        self._by_worker: dict[WorkerId, Activity] = {}
        self._under_way = 0
        self._changed = anyio.Event()

    @property
    def under_way(self) -> int:
        """Return how many effects are being performed."""
        return self._under_way

    def of(self, worker: WorkerId) -> Activity | None:
        """Return a worker's current activity, if any."""
        return self._by_worker.get(worker)

    def begin(
        self, effect: EntryEffect, perform: Callable[[Activity], Awaitable[None]]
    ) -> Activity:
        """Start performing an entry effect, once the worker's last one has come to its end."""
        activity = Activity(effect)
        last = self._by_worker.get(effect.worker)
        self._by_worker[effect.worker] = activity
        # Counted before it starts: waiters for rest must not see a gap between two effects.
        self._under_way += 1
        failed = partial(self._failed, effect.worker)
        self._tasks.start_soon(self._run, activity, perform, last, failed=failed)
        return activity

    def end_timers(self, waiting: Callable[[StartTimer], bool]) -> None:
        """Cancel every timer that nobody waits for any more."""
        for activity in self._by_worker.values():
            if isinstance(activity.effect, StartTimer) and not waiting(activity.effect):
                activity.scope.cancel()

    def aside(self, worker: WorkerId, act: Callable[[], Awaitable[None]]) -> None:
        """Start something small for a worker, that replaces nothing."""
        self._under_way += 1
        self._tasks.start_soon(self._run_aside, act, failed=partial(self._failed, worker))

    async def _run(
        self,
        activity: Activity,
        perform: Callable[[Activity], Awaitable[None]],
        last: Activity | None,
    ) -> None:
        try:
            with activity.scope:
                # A workspace that is being put away must not be taken up at the same time.
                if last is not None:
                    await last.done.wait()
                await perform(activity)
        finally:
            activity.done.set()
            activity.watched.set()
            if self._by_worker.get(activity.effect.worker) is activity:
                del self._by_worker[activity.effect.worker]
            self._leave()

    async def _run_aside(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        finally:
            self._leave()

    def _leave(self) -> None:
        self._under_way -= 1
        self.changed()

    def changed(self) -> None:
        """Wake whoever waits for the run to come to rest."""
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_changed(self) -> None:
        """Return when an activity has ended or the state has changed."""
        await self._changed.wait()
