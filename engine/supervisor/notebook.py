"""A worker's own database, fed while it is watched: structured events, usage, samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.agents import agent_events as a
from engine.limits import Usage
from engine.store.agent_store import AgentRow, AgentStore, Table
from engine.store.codec import to_json


@dataclass
class Notebook:
    """Writes one attempt's rows; what was written before is not written again."""

    path: Path
    attempt: int
    _store: AgentStore | None = None
    _rows: list[AgentRow] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._store = AgentStore.open(self.path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def add(self, events: Sequence[a.AgentEvent], *, at: float, offset: int) -> None:
        """Take down events that say more than a line of output does."""
        for event in events:
            if isinstance(event, (a.Raw, a.Reply)):
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

    def save(self, parsed_offset: int) -> None:
        """Keep what was taken down, together with how far the recording was read."""
        if self._rows and self._store is not None:
            self._store.record(self.attempt, parsed_offset, self._rows)
            self._rows.clear()

    def finish(self, usage: Usage, *, at: float) -> None:
        """Keep the last of it, and what the attempt used in all."""
        self._rows.append(
            AgentRow(table=Table.USAGE, at=at, kind="Usage", json=to_json(usage), offset=None)
        )
        if self._store is not None:
            self._store.record(self.attempt, 0, self._rows)
            self._rows.clear()
