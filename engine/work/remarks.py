"""Keep the lines that this engine itself put into agents' logs: no recording holds them.

Remarks are few, so each is kept at once, in the database of its worker, and found again by whoever
reads the log anew: a later engine that takes the attempt up, or a human when all has long ended.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.to_thread

from engine.errors import StoreError
from engine.ids import WorkerId
from engine.messages.logs import LogKind
from engine.store.store import AgentLog, AgentRow, Table
from engine.work.logbook import Remark


class Remarks:
    """The remarks of one run, on their way to its workers' databases."""

    def __init__(
        self,
        log_of: Callable[[WorkerId], AgentLog],
        aside: Callable[[WorkerId, Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._log_of, self._aside = log_of, aside
        self._waiting: list[tuple[WorkerId, int, Remark]] = []

    def keep(self, worker: WorkerId, attempt: int, remark: Remark) -> None:
        """Write it down soon, in the order in which they come."""
        if not self._waiting:
            self._aside(worker, self._write)
        self._waiting.append((worker, attempt, remark))

    async def _write(self) -> None:
        with anyio.CancelScope(shield=True):
            while self._waiting:
                worker, attempt, remark = self._waiting[0]
                write = partial(_record, self._log_of(worker), attempt, remark)
                await anyio.to_thread.run_sync(write)
                self._waiting.pop(0)

    async def found(self, worker: WorkerId, attempt: int) -> list[Remark]:
        """Return the remarks of engines before this one on an attempt."""
        return await anyio.to_thread.run_sync(remarks_of, self._log_of(worker), attempt)


def remarks_of(log: AgentLog, attempt: int) -> list[Remark]:
    """Return the remarks on an attempt, in order."""
    try:
        rows = log.rows(Table.NOTES, attempt=attempt)
    except StoreError:  # nothing was ever kept of the worker, or it was cleaned away
        return []
    return [Remark(row.at, LogKind(row.kind), json.loads(row.json)) for row in rows]


def _record(log: AgentLog, attempt: int, remark: Remark) -> None:
    row = AgentRow(table=Table.NOTES, at=remark.at, kind=remark.kind, json=json.dumps(remark.text))
    try:
        log.record(attempt, 0, [row])
    except (StoreError, OSError):  # the remark is seen now, and lost later: its disk is full
        return
