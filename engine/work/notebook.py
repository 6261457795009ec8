"""Fill a worker's own database while it is watched: structured events, usage, samples.

Everything in it comes from the recording, so it may lag behind: it is written in a thread, some
rows at a time, and never holds the event loop up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio.to_thread

from engine.agents import agent_events as a
from engine.errors import StoreError
from engine.limits import Usage
from engine.store.codec import to_json
from engine.store.store import AgentLog, AgentRow, Table

_BATCH = 64


@dataclass
class Notebook:
    """Writes one attempt's rows; what was written before is not written again."""

    log: AgentLog
    attempt: int
    _rows: list[AgentRow] = field(default_factory=list)

    def add(self, events: Sequence[a.AgentEvent], *, at: float, offset: int) -> None:
        """Record events that say more than a line of output does."""
        for event in events:
            if isinstance(event, (a.Raw, a.Printed, a.ProtocolReply)):
                continue
            table = Table.USAGE if isinstance(event, a.UsageSeen) else Table.EVENTS
            self._rows.append(
                AgentRow(
                    table=table,
                    at=at,
                    kind=type(event).__name__,
                    json=to_json(event),
                    offset=offset,
                )
            )

    async def save(self, parsed_offset: int) -> None:
        """Write the recorded rows, once there are enough, with how far the recording was read."""
        if len(self._rows) >= _BATCH:
            await self._write(parsed_offset)

    async def finish(self, usage: Usage, *, at: float, parsed_offset: int) -> None:
        """Write the rest, and what the attempt used in all."""
        self._rows.append(
            AgentRow(table=Table.USAGE, at=at, kind="Usage", json=to_json(usage), offset=None)
        )
        await self._write(parsed_offset)

    async def _write(self, parsed_offset: int) -> None:
        rows, self._rows = self._rows, []
        write = partial(self.log.record, self.attempt, parsed_offset, rows)
        try:
            await anyio.to_thread.run_sync(write)
        except StoreError:  # a full disk must end no agent; the rows are tried again with the next
            self._rows = [*rows, *self._rows]
