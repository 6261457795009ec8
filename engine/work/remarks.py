"""What this engine itself put into the logs of its agents: no recording holds it.

Remarks are few, so each is kept at once, in the database of its worker, and found again by whoever
reads the log anew: a later engine that takes the attempt up, or a human when all has long ended.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from engine.errors import StoreError
from engine.ids import WorkerId
from engine.messages.logs import LogKind
from engine.store.agent_store import AgentRow, AgentStore, Table, write_down
from engine.work.logbook import Remark
from engine.work.notebook import WRITING


class Remarks:
    """The remarks of one run, on their way to its workers' databases."""

    def __init__(
        self,
        path_of: Callable[[WorkerId], Path],
        aside: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._path_of, self._aside = path_of, aside
        self._waiting: list[tuple[WorkerId, int, Remark]] = []

    def keep(self, worker: WorkerId, attempt: int, remark: Remark) -> None:
        """Write it down soon, in the order in which they come."""
        if not self._waiting:
            self._aside(self._write)
        self._waiting.append((worker, attempt, remark))

    async def _write(self) -> None:
        with anyio.CancelScope(shield=True):
            while self._waiting:
                worker, attempt, remark = self._waiting[0]
                write = partial(_record, self._path_of(worker), attempt, remark)
                await anyio.to_thread.run_sync(write)
                self._waiting.pop(0)

    async def found(self, worker: WorkerId, attempt: int) -> list[Remark]:
        """What was remarked of an attempt by engines before this one."""
        return await anyio.to_thread.run_sync(remarks_of, self._path_of(worker), attempt)


def remarks_of(path: Path, attempt: int) -> list[Remark]:
    """What was remarked of an attempt, in order."""
    try:
        with AgentStore.open(path, read_only=True) as store:
            rows = list(store.rows(Table.NOTES, attempt=attempt))
    except StoreError:  # there is no such file: nothing was ever remarked, or it was cleaned away
        return []
    return [Remark(row.at, LogKind(row.kind), json.loads(row.json)) for row in rows]


def _record(path: Path, attempt: int, remark: Remark) -> None:
    row = AgentRow(table=Table.NOTES, at=remark.at, kind=remark.kind, json=json.dumps(remark.text))
    try:
        with WRITING:
            write_down(path, attempt, 0, [row])
    except StoreError:  # a full disk must end no agent; the remark is seen now, and lost later
        return
