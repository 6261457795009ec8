"""What a run works with: the rooms of one engine, handed down together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from engine.git.runner import Repo
from engine.store.layout import Layout
from engine.supervisor.attempts import Starter
from engine.supervisor.bus import Bus
from engine.supervisor.clock import Clock
from engine.supervisor.ledger import Ledger
from engine.supervisor.logins import Logins
from engine.supervisor.ports import Ports
from engine.supervisor.seeds import Seeds
from engine.supervisor.tampering import Proof
from engine.supervisor.workshop import Workshop


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The rooms a run works with; `landing` lets one landing at a time touch the repository."""

    starter: Starter
    workshop: Workshop
    layout: Layout
    bus: Bus
    clock: Clock
    project: Path
    workspaces: Path
    environ: Mapping[str, str]
    logins: Logins
    ledger: Ledger
    seeds: Seeds
    proof: Proof
    repo: Repo | None = None
    landing: anyio.Lock = field(default_factory=anyio.Lock)
    ports: Ports = field(default_factory=Ports)
