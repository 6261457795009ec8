"""A worker's own database, fed while it is watched: structured events, usage, samples.

Everything in it comes from the recording, so it may lag behind: it is written in a thread, some
rows at a time, and never holds the event loop up.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.agents import agent_events as a
from engine.errors import StoreError
from engine.limits import Usage
from engine.store.agent_store import AgentRow, Table, write_down
from engine.store.codec import to_json

_BATCH = 64
WRITING = threading.Lock()
"""Held by whoever writes a worker's database: one connection at a time does."""


@dataclass
class Notebook:
    """Writes one attempt's rows; what was written before is not written again."""

    path: Path
    attempt: int
    _rows: list[AgentRow] = field(default_factory=list)

    def add(self, events: Sequence[a.AgentEvent], *, at: float, offset: int) -> None:
        """Take down events that say more than a line of output does."""
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
        """Keep what was taken down, once it is worth it, with how far the recording was read."""
        if len(self._rows) >= _BATCH:
            await self._write(parsed_offset)

    async def finish(self, usage: Usage, *, at: float, parsed_offset: int) -> None:
        """Keep the rest, and what the attempt used in all."""
        self._rows.append(
            AgentRow(table=Table.USAGE, at=at, kind="Usage", json=to_json(usage), offset=None)
        )
        await self._write(parsed_offset)

    async def _write(self, parsed_offset: int) -> None:
        rows, self._rows = self._rows, []
        write = partial(_record, self.path, self.attempt, parsed_offset, rows)
        try:
            await anyio.to_thread.run_sync(write)
        except StoreError:  # a full disk must end no agent; the rows are tried again with the next
            self._rows = [*rows, *self._rows]


def _record(path: Path, attempt: int, parsed_offset: int, rows: Sequence[AgentRow]) -> None:
    # The end of one attempt may be written down while the next of its worker already runs, and a
    # log that two connections write at once is not safe with every SQLite.
    with WRITING:
        write_down(path, attempt, parsed_offset, rows)
